/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * mlfq.bpf.c - multi-level feedback queue: a task that runs long runs later (report 5).
 *
 * Four levels, 3 the highest. A task starts at level 3; when it has used up the
 * allotment of its level it moves one level down. A free CPU takes from the highest
 * level that has a task; at each tick one of a higher level preempts a running task.
 *
 *	new, boosted --> 3 --1 quantum--> 2 --2 quanta--> 1 --4 quanta--> 0
 *	                 ^                |               |               |
 *	                 +----------------+--- boost -----+---------------+
 *
 * An allotment counts from each wake-up (visit, as in the report), or all the time at
 * the level (cumulative). With boost_ns, all tasks return to level 3 once per period.
 *
 * Good at: short response times for tasks that block often, without being told
 * which ones; few switches for those that compute.
 * Bad at: shares; tasks at the bottom starve beside enough others unless they are
 * boosted, and one that computes first and interacts later stays there. Per visit it
 * can be gamed: a task that sleeps shortly before its quantum ends keeps level 3 and
 * nearly the whole CPU. It knows nothing of locks.
 *
 * @knob quantum_ns ns 1 1000000000  allotment of level 3 (default 10 ms, one tick)
 * @knob bottom_turn_ns ns 1 10000000000  slice at level 0, without allotment (default 10 ms)
 * @knob allotment enum visit=0,cumulative=1  how it is counted (default visit)
 * @knob boost_ns ns 0 1000000000000  period of boosts (default 0, none)
 * @knob rotate bool 0 1  slices of one quantum at all levels, as in the report (default 0)
 * @latency wake-up within quantum_ns
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free no  by default nothing boosts a task of the lowest level
 * @source report 5, section 4.1.3; R. H. and A. C. Arpaci-Dusseau, Operating
 *         Systems: Three Easy Pieces, chapter 8 (cumulative allotment, boost)
 *
 * Read next: policies/priority.bpf.c, where the levels are given.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/task_ctx.h>

char _license[] SEC("license") = "GPL";

#define NR_LEVELS 4
#define TOP_LEVEL (NR_LEVELS - 1)
enum { ALLOTMENT_VISIT, ALLOTMENT_CUMULATIVE };

const volatile u64 quantum_ns = 10000000;
const volatile u64 bottom_turn_ns = 10000000;
const volatile u32 allotment = ALLOTMENT_VISIT;
const volatile u64 boost_ns = 0;
const volatile u32 rotate = 0;

struct task_ctx {
	u32 level;     /* the queue it is in, or belongs to */
	u64 used_ns;   /* of the allotment of that level */
	u64 exec_ns;   /* its CPU time when used_ns was last brought up to date */
	u64 nr_boosts; /* that it has seen */
};
DEFINE_TASK_CTX(struct task_ctx);

static u64 start_ns;
/* Boosts that were carried out; one CPU at a time raises it. */
static u64 nr_boosts;

/* The mask changes nothing, but bounds the shift for the verifier. */
static u64 allotment_ns(u32 level)
{
	return quantum_ns << ((TOP_LEVEL - level) & TOP_LEVEL);
}

/* How long it may run now. Context: it is up to date, see below. */
static u64 slice_of(const struct task_ctx *tc)
{
	u64 left_ns = allotment_ns(tc->level) - tc->used_ns;

	if (tc->level == 0)
		return bottom_turn_ns;
	return rotate && left_ns > quantum_ns ? quantum_ns : left_ns;
}

/* For a task that was not queued when a boost came. */
static void catch_up(struct task_ctx *tc)
{
	if (tc->nr_boosts == nr_boosts)
		return;
	tc->nr_boosts = nr_boosts;
	tc->level = TOP_LEVEL;
	tc->used_ns = 0;
}

/*
 * Charge the CPU time since the last call. What a task used beyond its allotment,
 * since slices end at ticks, is forgiven.
 */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	tc->used_ns += exec_ns_since(p, &tc->exec_ns);
	catch_up(tc);
	if (tc->level == 0 || tc->used_ns < allotment_ns(tc->level))
		return;
	tc->level--;
	tc->used_ns = 0;
}

static void begin_visit(struct task_ctx *tc)
{
	catch_up(tc);
	if (allotment == ALLOTMENT_VISIT)
		tc->used_ns = 0;
}

s32 BPF_STRUCT_OPS(mlfq_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return prev_cpu;
	/* Also in enqueue, which comes only if no CPU is idle. */
	begin_visit(tc);
	return select_cpu_and_insert(p, prev_cpu, wake_flags, slice_of(tc));
}

void BPF_STRUCT_OPS(mlfq_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc) {
		scx_bpf_dsq_insert(p, TOP_LEVEL, quantum_ns, enq_flags);
		return;
	}
	if (enq_flags & SCX_ENQ_WAKEUP)
		begin_visit(tc);
	else
		catch_up(tc);
	scx_bpf_dsq_insert(p, tc->level, slice_of(tc), enq_flags);
	kick_idle_cpu(p, enq_flags);
}

static u64 nr_boosts_due(void)
{
	return boost_ns ? (scx_bpf_now() - start_ns) / boost_ns : 0;
}

/* Those at level 3 keep their place, and get a new allotment. */
static void boost_level(u32 level)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, level, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (!tc)
			continue;
		catch_up(tc);
		scx_bpf_task_set_slice(p, slice_of(tc));
		if (level != TOP_LEVEL)
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, TOP_LEVEL, 0);
	}
}

static void boost(void)
{
	u64 nr_seen = nr_boosts;
	u64 nr_due = nr_boosts_due();
	int i;

	if (nr_due == nr_seen || __sync_val_compare_and_swap(&nr_boosts, nr_seen, nr_due) != nr_seen)
		return;
	bpf_for(i, 0, NR_LEVELS)
		boost_level(TOP_LEVEL - i);
}

/* Those of the level of @prev go before it, since its slice is used up. */
void BPF_STRUCT_OPS(mlfq_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);
	u32 nr_levels = NR_LEVELS;
	int i;

	boost();
	if (prev && tc) {
		charge(prev, tc);
		nr_levels = NR_LEVELS - tc->level;
	}
	bpf_for(i, 0, nr_levels) {
		if (scx_bpf_dsq_move_to_local(TOP_LEVEL - i))
			return;
	}
	/* Otherwise it would get the kernel's default slice, not the policy's. */
	if (prev && tc)
		scx_bpf_task_set_slice(prev, slice_of(tc));
}

void BPF_STRUCT_OPS(mlfq_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	charge(p, tc);
	if (nr_boosts_due() != nr_boosts || is_any_queued(tc->level + 1, NR_LEVELS))
		scx_bpf_task_set_slice(p, 0);
}

void BPF_STRUCT_OPS(mlfq_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->exec_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(mlfq_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		charge(p, tc);
}

s32 BPF_STRUCT_OPS(mlfq_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tc = create_task_ctx(p);

	if (!tc)
		return -ENOMEM;
	tc->level = TOP_LEVEL;
	tc->nr_boosts = nr_boosts;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(mlfq_init)
{
	start_ns = scx_bpf_now();
	return create_dsqs(NR_LEVELS);
}

SCX_OPS_DEFINE(mlfq_ops,
	       .select_cpu = (void *)mlfq_select_cpu,
	       .enqueue = (void *)mlfq_enqueue,
	       .dispatch = (void *)mlfq_dispatch,
	       .tick = (void *)mlfq_tick,
	       .running = (void *)mlfq_running,
	       .stopping = (void *)mlfq_stopping,
	       .init_task = (void *)mlfq_init_task,
	       .init = (void *)mlfq_init,
	       .name = "mlfq");
