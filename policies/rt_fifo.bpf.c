/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * rt_fifo.bpf.c - 99 levels, the highest one runs: Linux's SCHED_FIFO.
 *
 * One queue for all CPUs, in the order of levels, 0 the highest, and of arrival
 * within a level. With n CPUs, the n highest of the runnable tasks run: one that
 * becomes runnable preempts the lowest at once, on whichever CPU that runs. There
 * are no slices: a task runs until it blocks, yields or is preempted.
 *
 *	woken, new, yielded --> tail of its level
 *	preempted           --> head of its level, it goes on before its equals
 *
 * The level is the task's priority, as in policies/priority.bpf.c and inside Linux.
 * Callers of Linux count the other way, from 1 to 99, the highest: rt_priority=1
 * reads it like that. Without attributes the level follows nice: one level per
 * factor of two in weight, from default_level.
 *
 * Good at: known urgency. A task waits only for those above it and for those of its
 * own level who came first, which is what response-time analysis assumes.
 * Bad at: everything else. A task that never blocks starves all below it and its
 * equals (Linux unloads the policy after 30 seconds of that; there is no throttling
 * as for the real class); it knows nothing of locks, so that an urgent task waits
 * for whoever preempts the holder of its lock; and each wake-up looks at all CPUs.
 *
 * @knob default_level count 0 98  level of tasks without priority (default 5)
 * @knob rt_priority bool 0 1  priorities count as in sched_setscheduler() (default 0)
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @source reports 2 and 4 (SCHED_FIFO); POSIX.1-2017, 2.8.4, SCHED_FIFO; sched(7)
 *
 * Read next: policies/rt_rr.bpf.c, where equals take turns.
 */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

#define RT_DSQ 0
#define NR_LEVELS 99
#define DEFAULT_WEIGHT 100U
#define DOUBLINGS_MAX 7	/* a weight is 10,000 at most */
#define RT_PRIORITY_MAX 99

/* Order within the queue: the level, then the place in it, heads below the middle. */
#define LEVEL_SHIFT 48
#define PLACE_MIDDLE (1ULL << (LEVEL_SHIFT - 1))

const volatile u32 default_level = 5;
const volatile u32 rt_priority = 0;

struct task_ctx {
	u32 level;
	bool has_yielded;
	bool was_preempted;	/* and so is to be queued at the head */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/*
 * Level of what runs on a CPU, or will after a kick that is on its way; NR_LEVELS:
 * nothing. Written and read without a lock: should two CPUs cross, the next tick
 * puts it right.
 */
static u32 running_level[SCX_CPUS_MAX];
/* Tasks that were ever put at a tail, or at a head; atomic. */
static u64 nr_tails, nr_heads;

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

/* How many times a weight is twice that of nice 0; negative if it is less. */
static s32 doublings(u32 weight)
{
	s32 nr = 0;
	u32 i;

	for (i = 1; i <= DOUBLINGS_MAX; i++) {
		nr += weight >= DEFAULT_WEIGHT << i;
		nr -= weight << i <= DEFAULT_WEIGHT;
	}
	return nr;
}

static u32 own_level(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);
	s64 level;

	if (!task_attr_given(attr, TASK_ATTR_PRIORITY))
		level = (s64)default_level - doublings(p->scx.weight);
	else if (rt_priority)
		level = (s64)RT_PRIORITY_MAX - attr->priority;
	else
		level = attr->priority;
	if (level < 0)
		return 0;
	return level < NR_LEVELS ? (u32)level : NR_LEVELS - 1;
}

static void note_running(s32 cpu, u32 level)
{
	u32 *running = ARRAY_ELEM_PTR(running_level, cpu, SCX_CPUS_MAX);

	if (running)
		*running = level;
}

static u32 level_running(s32 cpu)
{
	u32 *running = ARRAY_ELEM_PTR(running_level, cpu, SCX_CPUS_MAX);

	return running ? *running : 0;
}

/*
 * An idle CPU is only chosen here. The task goes through the queue even then, or
 * it would pass by a higher one that is about to be fetched by that CPU.
 */
s32 BPF_STRUCT_OPS(rt_fifo_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	bool is_idle = false;

	/* Not behind a waker that may run on: another CPU is idle now. */
	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC,
				      &is_idle);
}

/*
 * Have the CPU choose again that runs the lowest level, if that is below @level.
 * It is noted as taken, so that the next task that wakes up finds another one.
 */
static void preempt_lowest(struct task_struct *p, u32 level)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	s32 lowest_cpu = scx_bpf_task_cpu(p);
	u32 lowest = level_running(lowest_cpu);
	s32 cpu;

	bpf_for(cpu, 0, nr_cpus) {
		if (lowest == NR_LEVELS)
			break;
		if (level_running(cpu) <= lowest ||
		    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		lowest_cpu = cpu;
		lowest = level_running(cpu);
	}
	if (lowest <= level)
		return;
	note_running(lowest_cpu, level);
	scx_bpf_kick_cpu(lowest_cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(rt_fifo_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	u64 place;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
		return;
	}
	tc->level = own_level(p);
	if (tc->was_preempted)
		place = PLACE_MIDDLE - __sync_fetch_and_add(&nr_heads, 1);
	else
		place = PLACE_MIDDLE + 1 + __sync_fetch_and_add(&nr_tails, 1);
	tc->was_preempted = false;
	tc->has_yielded = false;
	scx_bpf_dsq_insert_vtime(p, RT_DSQ, SCX_SLICE_INF,
				 ((u64)tc->level << LEVEL_SHIFT) + place,
				 enq_flags);
	preempt_lowest(p, tc->level);
}

/* Whether a queued task that may run on @cpu is of a level above @end. */
static bool is_one_above(s32 cpu, u32 end)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, RT_DSQ, 0) {
		if (p->scx.dsq_vtime >> LEVEL_SHIFT >= end)
			return false;
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return true;
	}
	return false;
}

/*
 * Its equals go before @prev only if it has yielded. When there is nothing to run,
 * @prev included, the CPU is noted as idle.
 */
void BPF_STRUCT_OPS(rt_fifo_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = NULL;

	if (prev && (prev->scx.flags & SCX_TASK_QUEUED) &&
	    bpf_cpumask_test_cpu(cpu, prev->cpus_ptr))
		tc = task_ctx(prev);
	if (!prev || !tc) {
		if (!scx_bpf_dsq_move_to_local(RT_DSQ))
			note_running(cpu, NR_LEVELS);
		return;
	}
	if (is_one_above(cpu, tc->level + tc->has_yielded) &&
	    scx_bpf_dsq_move_to_local(RT_DSQ))
		return;
	/* A task that yielded to nobody has lost its slice, and needs a new one. */
	tc->has_yielded = false;
	scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
	note_running(cpu, tc->level);
}

/*
 * Called when it comes to run, and also when its weight was changed meanwhile: it
 * may have to make way at once.
 */
void BPF_STRUCT_OPS(rt_fifo_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!tc)
		return;
	tc->level = own_level(p);
	note_running(cpu, tc->level);
	if (is_one_above(cpu, tc->level))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* What is not going to run on goes to the head of its level, unless it yielded. */
void BPF_STRUCT_OPS(rt_fifo_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->was_preempted = runnable && !tc->has_yielded;
}

/*
 * For a priority that another program wrote into the map while it ran (S36); and
 * for a wake-up that crossed another CPU's choice, see running_level.
 */
void BPF_STRUCT_OPS(rt_fifo_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	tc->level = own_level(p);
	note_running(scx_bpf_task_cpu(p), tc->level);
	if (is_one_above(scx_bpf_task_cpu(p), tc->level))
		scx_bpf_task_set_slice(p, 0);
}

bool BPF_STRUCT_OPS(rt_fifo_yield, struct task_struct *from,
		    struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	if (to)
		return false;
	if (tc)
		tc->has_yielded = true;
	scx_bpf_task_set_slice(from, 0);
	return true;
}

s32 BPF_STRUCT_OPS(rt_fifo_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, NULL,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);

	return tc ? 0 : -12;	/* ENOMEM */
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rt_fifo_init)
{
	s32 cpu;

	bpf_for(cpu, 0, SCX_CPUS_MAX)
		note_running(cpu, NR_LEVELS);
	return scx_bpf_create_dsq(RT_DSQ, -1);
}

SCX_OPS_DEFINE(rt_fifo_ops,
	       .select_cpu = (void *)rt_fifo_select_cpu,
	       .enqueue = (void *)rt_fifo_enqueue,
	       .dispatch = (void *)rt_fifo_dispatch,
	       .running = (void *)rt_fifo_running,
	       .stopping = (void *)rt_fifo_stopping,
	       .tick = (void *)rt_fifo_tick,
	       .yield = (void *)rt_fifo_yield,
	       .init_task = (void *)rt_fifo_init_task,
	       .init = (void *)rt_fifo_init,
	       .name = "rt_fifo");
