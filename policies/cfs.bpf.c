/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * cfs.bpf.c - completely fair: who has had the least, runs next.
 *
 * Every task has a virtual time: its CPU time, divided by its weight (100 is nice
 * 0). One queue, in the order of virtual times; a free CPU takes the first task.
 * A slice is the task's part of latency_ns, by weight, but not less than
 * min_granularity_ns. vtime_now is the furthest that any task has come to run at.
 *
 *	asleep for long:  vtime := vtime_now - sleeper_credit_ns   (runs soon)
 *	asleep shortly:   vtime stays                             (cannot gain)
 *	new:              vtime := vtime_now + up to one slice     (cannot gain)
 *	woken, and ahead of what runs by wakeup_granularity_ns: preempts it
 *
 * Good at: shares in proportion to weights, for any mix; tasks that sleep a lot get
 * the CPU at once when they wake up.
 * Bad at: batches, which it slices up and finishes all late; deadlines, for which
 * it has no notion; many wake-ups, each of which may preempt. Its one queue makes
 * it fair across CPUs, which Linux's queues per CPU are only after balancing, but
 * tasks move more often, and on many CPUs they all wait for the queue's lock.
 * As slices end at ticks, none is finer than a tick, however small latency_ns.
 *
 * @knob latency_ns ns 1000 10000000000  in which everybody runs once (default 6 ms)
 * @knob min_granularity_ns ns 1 1000000000  shortest slice (default 750 us)
 * @knob wakeup_granularity_ns ns 0 1000000000  lead to preempt by (default 1 ms)
 * @knob sleeper_credit_ns ns 0 1000000000  lead of a sleeper (default 3 ms)
 * @knob wakeup_preemption bool 0 1  wake-ups preempt (default 1)
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @source reports 2 and 4 (SCHED_OTHER); Linux 2.6.23 to 6.5, whose defaults on one
 *         CPU these are; I. Stoica and H. Abdel-Wahab, Earliest Eligible Virtual
 *         Deadline First, 1995, for virtual time
 *
 * Read next: policies/credit.bpf.c, shares with a queue per CPU.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define CFS_DSQ 0
#define DEFAULT_WEIGHT 100
/* Nobody is put back further: Linux ends a policy when a task waits for 30 s. */
#define WAIT_NS_MAX 10000000000ULL

const volatile u64 latency_ns = 6000000;
const volatile u64 min_granularity_ns = 750000;
const volatile u64 wakeup_granularity_ns = 1000000;
const volatile u64 sleeper_credit_ns = 3000000;
const volatile u32 wakeup_preemption = 1;

struct task_ctx {
	u64 vtime;		/* weighted ns; wraps */
	u64 exec_ns;		/* its CPU time when vtime was last brought up to date */
	u64 load;		/* its weight within total_load; 0: not runnable */
	bool is_new;
	bool has_yielded;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/* What runs on a CPU; others read it without a lock, and may be a slice late. */
struct cpu_ctx {
	u64 vtime;		/* of the running task, at since_ns */
	u64 since_ns;
	u64 weight;		/* 0: nothing runs */
};
static struct cpu_ctx cpu_ctxs[SCX_CPUS_MAX];

/* Weight of all runnable and running tasks; atomic. */
static u64 total_load;
/* The furthest virtual time at which a task came to run. A lost update is made up
 * for by the next one. */
static u64 vtime_now;

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static u64 weight_of(const struct task_struct *p)
{
	return p->scx.weight ? p->scx.weight : 1;
}

static u64 weighted(u64 ns, u64 weight)
{
	return ns * DEFAULT_WEIGHT / weight;
}

static u64 slice_ns_of(const struct task_struct *p)
{
	u64 weight = weight_of(p);
	u64 load = total_load > weight ? total_load : weight;
	u64 slice_ns = latency_ns * weight * scx_bpf_nr_cpu_ids() / load;

	if (slice_ns > latency_ns)
		slice_ns = latency_ns;
	return slice_ns > min_granularity_ns ? slice_ns : min_granularity_ns;
}

static void advance_vtime_now(u64 vtime)
{
	if (time_before(vtime_now, vtime))
		vtime_now = vtime;
}

/*
 * Charge the CPU time since the last call. A slice of a whole tick can take a very
 * light task so far ahead that the others would need minutes to get there.
 */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	u64 exec_ns = p->se.sum_exec_runtime;
	u64 latest;

	tc->vtime += weighted(exec_ns - tc->exec_ns, weight_of(p));
	tc->exec_ns = exec_ns;
	latest = vtime_now + weighted(WAIT_NS_MAX * scx_bpf_nr_cpu_ids(),
				      total_load ? total_load : 1);
	if (time_after(tc->vtime, latest))
		tc->vtime = latest;
}

static void note_running(s32 cpu, u64 vtime, u64 weight)
{
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);

	if (!cc)
		return;
	cc->vtime = vtime;
	cc->since_ns = scx_bpf_now();
	cc->weight = weight;
}

s32 BPF_STRUCT_OPS(cfs_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	bool is_idle = false;
	/* Not behind a waker that may run on: another CPU is idle now. */
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu,
					 wake_flags & ~SCX_WAKE_SYNC, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, latency_ns, 0);
	return cpu;
}

/*
 * Comes before enqueue, and also for a task that goes straight to an idle CPU:
 * its virtual time is set here.
 */
void BPF_STRUCT_OPS(cfs_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	u64 earliest, debit;

	if (!tc)
		return;
	tc->load = weight_of(p);
	__sync_fetch_and_add(&total_load, tc->load);
	if (tc->is_new) {
		/* Of a light task it is not known yet how long that would be. */
		tc->is_new = false;
		debit = weighted(slice_ns_of(p), weight_of(p));
		tc->vtime = vtime_now + (debit < latency_ns ? debit : latency_ns);
	} else if (enq_flags & SCX_ENQ_WAKEUP) {
		earliest = vtime_now - sleeper_credit_ns;
		if (time_before(tc->vtime, earliest))
			tc->vtime = earliest;
	}
}

void BPF_STRUCT_OPS(cfs_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	__sync_fetch_and_sub(&total_load, tc->load);
	tc->load = 0;
}

/* A task was woken on @cpu, with virtual time @vtime. */
static void maybe_preempt(s32 cpu, u64 vtime, u64 weight)
{
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);
	u64 ahead_vns = weighted(wakeup_granularity_ns, weight);
	u64 running_weight, running_vtime;

	if (!cc)
		return;
	running_weight = cc->weight;
	if (!running_weight)
		return;
	running_vtime = cc->vtime + weighted(scx_bpf_now() - cc->since_ns,
					     running_weight);
	if (time_before(vtime + ahead_vns, running_vtime))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(cfs_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	u64 vtime = tc ? tc->vtime : vtime_now;
	s32 cpu;

	scx_bpf_dsq_insert_vtime(p, CFS_DSQ, latency_ns, vtime, enq_flags);
	if (!(enq_flags & SCX_ENQ_CPU_SELECTED)) {
		/* It was preempted, or is bound here; another CPU may be idle. */
		cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (cpu >= 0) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			return;
		}
	}
	if (wakeup_preemption && (enq_flags & SCX_ENQ_WAKEUP))
		maybe_preempt(scx_bpf_task_cpu(p), vtime, weight_of(p));
}

/* Whether a task that may run on @cpu comes before @vtime. */
static bool is_one_before(s32 cpu, u64 vtime)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, CFS_DSQ, 0) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return !time_before(vtime, p->scx.dsq_vtime);
	}
	return false;
}

/* @prev is in no queue: it is compared with the first task of the queue. */
void BPF_STRUCT_OPS(cfs_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = NULL;

	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		tc = task_ctx(prev);
	if (!prev || !tc) {
		scx_bpf_dsq_move_to_local(CFS_DSQ);
		return;
	}
	charge(prev, tc);
	if (tc->has_yielded || is_one_before(cpu, tc->vtime)) {
		tc->has_yielded = false;
		if (scx_bpf_dsq_move_to_local(CFS_DSQ))
			return;
	}
	/* It goes on, with a slice of ours and not of the kernel's length. */
	scx_bpf_task_set_slice(prev, slice_ns_of(prev));
	advance_vtime_now(tc->vtime);
	note_running(cpu, tc->vtime, weight_of(prev));
}

/* Its part of the latency is known now, when it was queued it was another one. */
void BPF_STRUCT_OPS(cfs_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	scx_bpf_task_set_slice(p, slice_ns_of(p));
	tc->exec_ns = p->se.sum_exec_runtime;
	/*
	 * Linux takes a task that ends off its queue and puts it back: it is at the
	 * end of its turn then, and new tasks would begin behind that.
	 */
	if (!(p->flags & PF_EXITING))
		advance_vtime_now(tc->vtime);
	note_running(scx_bpf_task_cpu(p), tc->vtime, weight_of(p));
}

void BPF_STRUCT_OPS(cfs_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	charge(p, tc);
	note_running(scx_bpf_task_cpu(p), tc->vtime, 0);
}

/* The first task in the queue goes next, even if it is behind. */
bool BPF_STRUCT_OPS(cfs_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	if (to)
		return false;
	if (tc)
		tc->has_yielded = true;
	scx_bpf_task_set_slice(from, 0);
	return true;
}

s32 BPF_STRUCT_OPS(cfs_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, NULL,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tc)
		return -12;	/* ENOMEM */
	tc->vtime = vtime_now;
	tc->is_new = true;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cfs_init)
{
	return scx_bpf_create_dsq(CFS_DSQ, -1);
}

SCX_OPS_DEFINE(cfs_ops,
	       .select_cpu = (void *)cfs_select_cpu,
	       .runnable = (void *)cfs_runnable,
	       .quiescent = (void *)cfs_quiescent,
	       .enqueue = (void *)cfs_enqueue,
	       .dispatch = (void *)cfs_dispatch,
	       .running = (void *)cfs_running,
	       .stopping = (void *)cfs_stopping,
	       .yield = (void *)cfs_yield,
	       .init_task = (void *)cfs_init_task,
	       .init = (void *)cfs_init,
	       .name = "cfs");
