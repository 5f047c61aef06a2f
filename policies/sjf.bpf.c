/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * sjf.bpf.c - shortest job first: when a CPU is free, the shortest burst begins.
 *
 * Each time a task becomes runnable it begins a burst, which ends when it blocks.
 * One queue for all CPUs, in the order of the lengths of bursts; a free CPU takes
 * the first task that may run there. Nobody is ever preempted.
 *
 * The length of a burst is the task's attribute `burst`. Where none was declared it
 * is predicted from the task's past bursts, by exponential averaging:
 *
 *	prediction := alpha * last burst + (1 - alpha) * prediction
 *
 * A task that yields goes behind whoever is first, for what its burst has left, or,
 * where it has outlived its length, for as long again as it has.
 *
 * Good at: mean turnaround of jobs that are there at the same time. No order of
 * them has a lower one, on one CPU and with lengths that are known.
 * Bad at: a short job that comes while a long one runs, which waits for all of it;
 * long jobs beside enough short ones, which starve (Linux unloads the policy after
 * 30 seconds of that); shares. With predictions it is as good as they are. Nobody
 * has a reason to declare his bursts honestly.
 *
 * @knob alpha_percent percent 0 100  weight of the last burst (default 50)
 * @knob initial_ns ns 1 10000000000  first prediction of a task (default 10 ms)
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @source W. E. Smith, Various Optimizers for Single-Stage Production, 1956;
 *         A. Silberschatz et al., Operating System Concepts, section 5.3.2
 *
 * Read next: policies/srtf.bpf.c, where a shorter job preempts.
 */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

#define SJF_DSQ 0

const volatile u32 alpha_percent = 50;
const volatile u64 initial_ns = 10000000;

struct task_ctx {
	u64 predicted_ns;	/* length of its next burst */
	u64 used_ns;		/* of the present burst, up to where it last stopped */
	u64 exec_ns;		/* its CPU time when it last came to run */
	bool has_yielded;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

/* How much of its burst @p has left. */
static u64 left_ns(struct task_struct *p, const struct task_ctx *tc)
{
	struct task_attr *attr = task_attr(p);
	u64 burst_ns = tc->predicted_ns;

	if (task_attr_given(attr, TASK_ATTR_BURST) && attr->burst_ns)
		burst_ns = attr->burst_ns;
	return burst_ns > tc->used_ns ? burst_ns - tc->used_ns :
					tc->used_ns - burst_ns;
}

/*
 * An idle CPU is only chosen here. The task goes through the queue even then, or
 * it would pass by a shorter one that is about to be fetched by that CPU.
 */
s32 BPF_STRUCT_OPS(sjf_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	bool is_idle = false;

	/* Not behind a waker that may run on: another CPU is idle now. */
	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC,
				      &is_idle);
}

void BPF_STRUCT_OPS(sjf_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
		return;
	}
	tc->has_yielded = false;
	scx_bpf_dsq_insert_vtime(p, SJF_DSQ, SCX_SLICE_INF, left_ns(p, tc),
				 enq_flags);
	if (enq_flags & SCX_ENQ_CPU_SELECTED)
		return;
	/* It yielded to a task that is bound here; another CPU may be idle. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* @prev comes here with its burst unfinished only if it yielded. */
void BPF_STRUCT_OPS(sjf_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = NULL;

	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		tc = task_ctx(prev);
	if ((!tc || tc->has_yielded) && scx_bpf_dsq_move_to_local(SJF_DSQ))
		return;
	if (!prev || !tc)
		return;
	/* A task that yielded to nobody has lost its slice, and needs a new one. */
	tc->has_yielded = false;
	scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
}

void BPF_STRUCT_OPS(sjf_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->exec_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(sjf_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->used_ns += p->se.sum_exec_runtime - tc->exec_ns;
}

/* The end of a burst; what is merely changed while it is runnable goes on with it. */
void BPF_STRUCT_OPS(sjf_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc || !(deq_flags & SCX_DEQ_SLEEP))
		return;
	tc->predicted_ns = (tc->used_ns * alpha_percent +
			    tc->predicted_ns * (100 - alpha_percent)) / 100;
	tc->used_ns = 0;
}

bool BPF_STRUCT_OPS(sjf_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	if (to)
		return false;
	if (tc)
		tc->has_yielded = true;
	scx_bpf_task_set_slice(from, 0);
	return true;
}

s32 BPF_STRUCT_OPS(sjf_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, NULL,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tc)
		return -12;	/* ENOMEM */
	tc->predicted_ns = initial_ns;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(sjf_init)
{
	return scx_bpf_create_dsq(SJF_DSQ, -1);
}

SCX_OPS_DEFINE(sjf_ops,
	       .select_cpu = (void *)sjf_select_cpu,
	       .enqueue = (void *)sjf_enqueue,
	       .dispatch = (void *)sjf_dispatch,
	       .running = (void *)sjf_running,
	       .stopping = (void *)sjf_stopping,
	       .quiescent = (void *)sjf_quiescent,
	       .yield = (void *)sjf_yield,
	       .init_task = (void *)sjf_init_task,
	       .init = (void *)sjf_init,
	       .name = "sjf");
