/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * srtf.bpf.c - shortest remaining time first: who will be done first, runs.
 *
 * Each time a task becomes runnable it begins a burst, which ends when it blocks.
 * One queue for all CPUs, in the order of how much of their burst tasks have left. A
 * task that becomes runnable preempts the one that has the most left, if that is
 * more than its own; otherwise nobody is preempted.
 *
 * The length of a burst is the task's attribute `burst`. Where none was declared it
 * is predicted from the task's past bursts, by exponential averaging:
 *
 *	prediction := alpha * last burst + (1 - alpha) * prediction
 *
 * A burst that outlives its length by some time is taken to have as much time left
 * again: a wrong prediction costs a little, and then more and more others pass.
 *
 * Good at: mean turnaround. On one CPU, with lengths that are known, no policy has a
 * lower one (Schrage 1968); short interactive bursts pass all others.
 * Bad at: long jobs, which starve beside enough short ones (Linux unloads the
 * policy after 30 seconds of that); shares; and tasks that change their behaviour,
 * for as many bursts as the prediction takes to follow. Nobody has a reason to
 * declare his bursts honestly. Each wake-up looks at all CPUs.
 *
 * @knob alpha_percent percent 0 100  weight of the last burst (default 50)
 * @knob initial_ns ns 1 10000000000  first prediction of a task (default 10 ms)
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @source L. Schrage, A Proof of the Optimality of the Shortest Remaining Processing
 *         Time Discipline, 1968; A. Silberschatz et al., Operating System Concepts,
 *         section 5.3.2 (prediction)
 *
 * Read next: policies/sjf.bpf.c, the same without preemption.
 */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

#define SRTF_DSQ 0
#define IDLE_NS (~0ULL >> 1)	/* more than any task can have left */

const volatile u32 alpha_percent = 50;
const volatile u64 initial_ns = 10000000;

struct task_ctx {
	u64 predicted_ns;	/* length of its next burst */
	u64 used_ns;		/* of the present burst */
	u64 exec_ns;		/* its CPU time when it was last charged */
	bool has_yielded;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/*
 * What the running task of a CPU had left at since_ns, or the one that will run
 * after a kick that is on its way; IDLE_NS: nothing runs. Written and read without
 * a lock: should two CPUs cross, the next tick puts it right.
 */
struct cpu_ctx {
	u64 left_ns;
	u64 since_ns;
};
static struct cpu_ctx cpu_ctxs[SCX_CPUS_MAX];

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

/* How much of its burst @p has left. Context: it is charged. */
static u64 left_ns(struct task_struct *p, const struct task_ctx *tc)
{
	struct task_attr *attr = task_attr(p);
	u64 burst_ns = tc->predicted_ns;

	if (task_attr_given(attr, TASK_ATTR_BURST) && attr->burst_ns)
		burst_ns = attr->burst_ns;
	return burst_ns > tc->used_ns ? burst_ns - tc->used_ns :
					tc->used_ns - burst_ns;
}

/* Charge the CPU time since the last call. */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	tc->used_ns += p->se.sum_exec_runtime - tc->exec_ns;
	tc->exec_ns = p->se.sum_exec_runtime;
}

static void note_running(s32 cpu, u64 left_ns)
{
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);

	if (!cc)
		return;
	cc->left_ns = left_ns;
	cc->since_ns = scx_bpf_now();
}

/* What the running task of @cpu has left at @now_ns, by the clock. */
static u64 left_on(s32 cpu, u64 now_ns)
{
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);
	u64 ran_ns, left_ns;

	if (!cc)
		return 0;
	left_ns = cc->left_ns;
	ran_ns = now_ns - cc->since_ns;
	if (left_ns == IDLE_NS)
		return IDLE_NS;
	return left_ns > ran_ns ? left_ns - ran_ns : ran_ns - left_ns;
}

/*
 * An idle CPU is only chosen here. The task goes through the queue even then, or
 * it would pass by a shorter one that is about to be fetched by that CPU.
 */
s32 BPF_STRUCT_OPS(srtf_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	bool is_idle = false;

	/* Not behind a waker that may run on: another CPU is idle now. */
	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC,
				      &is_idle);
}

/*
 * Have the CPU choose again whose task has the most left, if that is more than
 * @left_ns. It is noted as taken, so that the next task that wakes up finds
 * another one.
 */
static void preempt_longest(struct task_struct *p, u64 left_ns)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	u64 now_ns = scx_bpf_now();
	s32 longest_cpu = scx_bpf_task_cpu(p);
	u64 longest_ns = left_on(longest_cpu, now_ns);
	s32 cpu;

	bpf_for(cpu, 0, nr_cpus) {
		if (longest_ns == IDLE_NS)
			break;
		if (left_on(cpu, now_ns) <= longest_ns ||
		    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		longest_cpu = cpu;
		longest_ns = left_on(cpu, now_ns);
	}
	if (longest_ns <= left_ns)
		return;
	note_running(longest_cpu, left_ns);
	scx_bpf_kick_cpu(longest_cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(srtf_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	u64 left;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
		return;
	}
	tc->has_yielded = false;
	left = left_ns(p, tc);
	scx_bpf_dsq_insert_vtime(p, SRTF_DSQ, SCX_SLICE_INF, left, enq_flags);
	preempt_longest(p, left);
}

/* Whether a queued task that may run on @cpu has less than @end_ns left. */
static bool is_one_shorter(s32 cpu, u64 end_ns)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, SRTF_DSQ, 0) {
		if (p->scx.dsq_vtime >= end_ns)
			return false;
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return true;
	}
	return false;
}

/*
 * When there is nothing to run, @prev included, the CPU is noted as idle. After a
 * yield anybody goes first: else it would be a yield to nobody.
 */
void BPF_STRUCT_OPS(srtf_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = NULL;
	u64 left;

	if (prev && (prev->scx.flags & SCX_TASK_QUEUED) &&
	    bpf_cpumask_test_cpu(cpu, prev->cpus_ptr))
		tc = task_ctx(prev);
	if (!prev || !tc) {
		if (!scx_bpf_dsq_move_to_local(SRTF_DSQ))
			note_running(cpu, IDLE_NS);
		return;
	}
	charge(prev, tc);
	left = left_ns(prev, tc);
	if ((tc->has_yielded || is_one_shorter(cpu, left)) &&
	    scx_bpf_dsq_move_to_local(SRTF_DSQ))
		return;
	/* A task that yielded to nobody has lost its slice, and needs a new one. */
	tc->has_yielded = false;
	scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
	note_running(cpu, left);
}

void BPF_STRUCT_OPS(srtf_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	tc->exec_ns = p->se.sum_exec_runtime;
	note_running(scx_bpf_task_cpu(p), left_ns(p, tc));
}

void BPF_STRUCT_OPS(srtf_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		charge(p, tc);
}

/* The end of a burst; what is merely changed while it is runnable goes on with it. */
void BPF_STRUCT_OPS(srtf_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc || !(deq_flags & SCX_DEQ_SLEEP))
		return;
	tc->predicted_ns = (tc->used_ns * alpha_percent +
			    tc->predicted_ns * (100 - alpha_percent)) / 100;
	tc->used_ns = 0;
}

/*
 * For a burst that has outlived its length; and for a wake-up that crossed another
 * CPU's choice, see cpu_ctxs.
 */
void BPF_STRUCT_OPS(srtf_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u64 left;

	if (!tc)
		return;
	charge(p, tc);
	left = left_ns(p, tc);
	note_running(cpu, left);
	if (is_one_shorter(cpu, left))
		scx_bpf_task_set_slice(p, 0);
}

bool BPF_STRUCT_OPS(srtf_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	if (to)
		return false;
	if (tc)
		tc->has_yielded = true;
	scx_bpf_task_set_slice(from, 0);
	return true;
}

s32 BPF_STRUCT_OPS(srtf_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, NULL,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tc)
		return -12;	/* ENOMEM */
	tc->predicted_ns = initial_ns;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(srtf_init)
{
	s32 cpu;

	bpf_for(cpu, 0, SCX_CPUS_MAX)
		note_running(cpu, IDLE_NS);
	return scx_bpf_create_dsq(SRTF_DSQ, -1);
}

SCX_OPS_DEFINE(srtf_ops,
	       .select_cpu = (void *)srtf_select_cpu,
	       .enqueue = (void *)srtf_enqueue,
	       .dispatch = (void *)srtf_dispatch,
	       .running = (void *)srtf_running,
	       .stopping = (void *)srtf_stopping,
	       .quiescent = (void *)srtf_quiescent,
	       .tick = (void *)srtf_tick,
	       .yield = (void *)srtf_yield,
	       .init_task = (void *)srtf_init_task,
	       .init = (void *)srtf_init,
	       .name = "srtf");
