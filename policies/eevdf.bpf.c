/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * eevdf.bpf.c - earliest eligible virtual deadline first: Linux's fair class now.
 *
 * Every task has a virtual time v: its CPU time, divided by its weight. V is the mean
 * of all v, weighted: where everybody would be who had had just his share. V - v is
 * the task's lag; with a lag of 0 or more it is eligible. A task asks for one slice
 * after the other, each with a virtual deadline, one slice's worth after v. Of those
 * that are eligible the one with the earliest deadline runs, until its slice is used.
 *
 *	lag < 0: had too much, waits   V   lag >= 0: eligible
 *	                               |
 *	  ... v ======slice======> deadline ...      (weights stretch the time)
 *
 *	starts:   v := V, deadline := v + half a slice; may preempt
 *	sleeps:   lag is kept, up to two slices; what it owes fades as V goes on
 *	wakes up: v := V - lag, deadline := v + slice; may preempt. Who still owes
 *	          goes on where it was, with the deadline that it had
 *	yields:   what it had not used of its share, it forgoes
 *
 * Who wakes up takes the CPU if it would be chosen now and who runs is not
 * eligible any more, or has a longer slice. Otherwise that one is let alone, but only
 * for the slice with which it got the CPU ("run to parity" in Linux): who has stayed
 * longer, since he was chosen again or alone, is compared with whoever comes, and
 * with all others at each tick.
 *
 * Good at: shares in proportion to weights, with a bound: on one CPU nobody is ever
 * more than one slice off, as long as slices, and halves of them, are whole ticks. And,
 * unlike cfs, latency apart from shares: who asks for short slices runs sooner and more
 * often, and gets no more than its share.
 * Bad at: batches, which it slices up and finishes all late; and deadlines that are
 * not virtual. A decision looks at tasks in the order of deadlines until one is
 * eligible: usually a few, but all at worst (Linux has a tree for it). It has one
 * queue for all CPUs; a task worth more than one CPU forgoes what it cannot use. As
 * slices end at ticks, none is finer than a tick. Who sleeps and owes does not count in
 * V meanwhile (in Linux he does, until he would be chosen).
 *
 * @knob slice_ns ns 100000 100000000  slice (default 3 ms, about that of Linux on 8 CPUs
 *       or more; on n < 8 it is 0.7 ms times 1 + log2 n, rounded down)
 * @knob slice_source enum same=0,burst=1,priority=2  slices are all of slice_ns, the
 *       task's burst, 0.1 to 100 ms, or by priority, as a latency nice: 5 has slice_ns,
 *       each level below half of the last (default same)
 * @knob preempt enum never=0,linux=1,any=2  whom a wake-up preempts: never anybody, as
 *       Linux does, or also whose deadline is later (default linux)
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @source I. Stoica and H. Abdel-Wahab, Earliest Eligible Virtual Deadline First, 1995;
 *         Linux since 6.6, kernel/sched/fair.c
 *
 * Read next: policies/stride.bpf.c, which has no notion of latency.
 */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

enum { SLICE_SAME, SLICE_BURST, SLICE_PRIORITY };
enum { PREEMPT_NEVER, PREEMPT_LINUX, PREEMPT_ANY };

#define EEVDF_DSQ 0
#define VTIME_PER_NS (100ULL << 10)	/* at a weight of 1; 1024 at nice 0 */
#define SLICE_MIN_NS 100000ULL
#define SLICE_MAX_NS 100000000ULL
#define SLICE_SLACK_NS 1000ULL		/* a slice that has no more left is used up */
#define LAG_SLACK_NS 3000ULL		/* who is ahead of V by no more is eligible */
#define DEFAULT_PRIORITY 5
#define LAG_SLICES 2
/* On several CPUs; below one tick, ordinary waiting would be forgone. */
#define LAG_MIN_NS 20000000ULL

const volatile u64 slice_ns = 3000000;
const volatile u32 slice_source = SLICE_SAME;
const volatile u32 preempt = PREEMPT_LINUX;

struct task_ctx {
	u64 v;			/* virtual time; wraps */
	u64 deadline;		/* virtual time */
	s64 lag;		/* virtual time; while it is not runnable */
	u64 weight;		/* with which it is, or was last, counted */
	u64 slice_ns;		/* that it asks for */
	u64 exec_ns;		/* its CPU time when it was last charged ... */
	u64 charged_ns;		/* ... and when that was, or when it became runnable */
	bool has_yielded;
	bool is_new;		/* has never run */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/*
 * V is base + sum / weight. Running tasks are ahead of what they were last charged:
 * by nr_running times now, less since_ns.
 */
struct mean {
	struct bpf_spin_lock lock;
	/* lock protects: */
	u64 base;		/* virtual time; close to V */
	s64 sum;		/* of weight * (v - base), over all runnable tasks */
	u64 weight;		/* of all runnable tasks, the running ones included */
	u64 nr_running;
	u64 since_ns;		/* sum of charged_ns of the running tasks; wraps */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mean);
} means SEC(".maps");

/* What runs on a CPU; others read it without a lock, and may be a slice late. */
struct cpu_ctx {
	u64 v;			/* when it was last charged ... */
	u64 charged_ns;		/* ... which was then */
	u64 weight;
	u64 deadline;
	u64 protected_v;	/* until then it is let alone while it is eligible */
	u64 slice_ns;		/* 0: nothing runs */
};
static struct cpu_ctx cpu_ctxs[SCX_CPUS_MAX];

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static struct mean *the_mean(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&means, &key);
}

/* ---- time ------------------------------------------------------------------ */

/* BPF divides no signed numbers. */
static __always_inline s64 divide(s64 a, u64 b)
{
	return a < 0 ? -(s64)((u64)-a / b) : (s64)((u64)a / b);
}

static u64 vtime_of(u64 ns, u64 weight)
{
	return ns * VTIME_PER_NS / weight;
}

static u64 clamp_slice(u64 ns)
{
	if (ns < SLICE_MIN_NS)
		return SLICE_MIN_NS;
	return ns < SLICE_MAX_NS ? ns : SLICE_MAX_NS;
}

/* The slice that @p asks for. */
static u64 own_slice_ns(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);
	s32 priority;

	if (slice_source == SLICE_BURST &&
	    task_attr_given(attr, TASK_ATTR_BURST) && attr->burst_ns)
		return clamp_slice(attr->burst_ns);
	if (slice_source != SLICE_PRIORITY ||
	    !task_attr_given(attr, TASK_ATTR_PRIORITY))
		return slice_ns;
	priority = attr->priority;
	if (priority < DEFAULT_PRIORITY)
		return clamp_slice(slice_ns >> (priority < 0 ? DEFAULT_PRIORITY :
						DEFAULT_PRIORITY - priority));
	if (priority > 2 * DEFAULT_PRIORITY)
		priority = 2 * DEFAULT_PRIORITY;
	return clamp_slice(slice_ns << ((priority - DEFAULT_PRIORITY) & 7));
}

/* What it may still run of its slice, in CPU time; at least a little. */
static u64 slice_left_ns(const struct task_ctx *tc)
{
	u64 left = tc->deadline - tc->v;

	if ((s64)left <= 0)
		return 1;
	return (left * tc->weight + VTIME_PER_NS - 1) / VTIME_PER_NS;
}

/* ---- V ---------------------------------------------------------------------- */

/* Context: the lock is held. */
static __always_inline u64 mean_at(struct mean *m, u64 now_ns)
{
	s64 ahead_ns = (s64)(m->nr_running * now_ns - m->since_ns);
	s64 sum = m->sum;

	if (!m->weight)
		return m->base;
	/* CPUs' clocks may differ by a little. */
	if (ahead_ns > 0)
		sum += ahead_ns * (s64)VTIME_PER_NS;
	return m->base + (u64)divide(sum, m->weight);
}

static u64 mean_of(u64 now_ns)
{
	struct mean *m = the_mean();
	u64 v;

	if (!m)
		return 0;
	bpf_spin_lock(&m->lock);
	v = mean_at(m, now_ns);
	bpf_spin_unlock(&m->lock);
	return v;
}

/* V goes by the clock while somebody runs, and he by his CPU time: a little less. */
static bool is_eligible(const struct task_ctx *tc, u64 mean)
{
	return time_before_eq(tc->v, mean + vtime_of(LAG_SLACK_NS, tc->weight));
}

/* The most lag that is kept, in virtual time. */
static u64 lag_max(const struct task_ctx *tc)
{
	u64 ns = LAG_SLICES * tc->slice_ns;

	return vtime_of(ns > LAG_MIN_NS ? ns : LAG_MIN_NS, tc->weight);
}

/* Ask for the next slice; a new task's first is half of one, to come in sooner. */
static void make_request(struct task_struct *p, struct task_ctx *tc)
{
	tc->slice_ns = own_slice_ns(p);
	tc->deadline = tc->v + vtime_of(tc->is_new ? tc->slice_ns / 2 : tc->slice_ns,
					tc->weight);
}

/*
 * Charge the CPU time since the last call; if the slice is used up, ask for the next
 * one. Context: @p is running.
 */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	u64 now_ns = scx_bpf_now();
	u64 used = vtime_of(p->se.sum_exec_runtime - tc->exec_ns, tc->weight);
	u64 max = tc->has_yielded ? 0 : lag_max(tc);
	bool forgoes = tc->has_yielded || scx_bpf_nr_cpu_ids() > 1;
	struct mean *m = the_mean();
	u64 lag;
	s64 shift;

	if (!m)
		return;
	bpf_spin_lock(&m->lock);
	m->since_ns += now_ns - tc->charged_ns;
	/* It cannot use more than a CPU, or does not want to: see the head. */
	lag = mean_at(m, now_ns) - (tc->v + used);
	if (forgoes && (s64)lag > (s64)max)
		used += lag - max;
	tc->v += used;
	m->sum += (s64)(used * tc->weight);
	/* Keep the sum small, so that products stay in range. */
	shift = m->weight ? divide(m->sum, m->weight) : 0;
	m->base += (u64)shift;
	m->sum -= shift * (s64)m->weight;
	bpf_spin_unlock(&m->lock);
	tc->exec_ns = p->se.sum_exec_runtime;
	tc->charged_ns = now_ns;
	if (time_before_eq(tc->deadline,
			   tc->v + vtime_of(SLICE_SLACK_NS, tc->weight)))
		make_request(p, tc);
}

/*
 * Put a task that was not runnable where its lag is what it was; V moves as it comes,
 * by its part of all weight. What it owed is less if V went on since then: it stays
 * where it was, unless V has passed it, and is never better off for that. (In Linux it
 * is not taken off the queue until then: "delayed dequeue".)
 */
static void join(struct task_struct *p, struct task_ctx *tc)
{
	u64 weight = p->scx.weight ? p->scx.weight : 1;
	u64 now_ns = scx_bpf_now();
	struct mean *m = the_mean();
	bool still_owes = false;
	s64 lag = tc->lag;
	u64 v;

	if (!m)
		return;
	if (weight != tc->weight)
		lag = divide(lag * (s64)tc->weight, weight);
	bpf_spin_lock(&m->lock);
	v = mean_at(m, now_ns);
	if (lag < 0 && weight == tc->weight) {
		lag = time_before(tc->v, v) ? 0 : (s64)(v - tc->v);
		still_owes = lag < 0;
	} else if (m->weight) {
		lag += divide(lag * (s64)weight, m->weight);
	}
	tc->v = v - (u64)lag;
	tc->charged_ns = now_ns;
	tc->weight = weight;
	m->weight += weight;
	m->sum += (s64)(tc->v - m->base) * (s64)weight;
	bpf_spin_unlock(&m->lock);
	if (!still_owes)
		make_request(p, tc);
}

/* Context: the task is charged. */
static void leave(struct task_ctx *tc)
{
	s64 max = (s64)lag_max(tc);
	u64 now_ns = scx_bpf_now();
	struct mean *m = the_mean();
	u64 v;

	if (!m)
		return;
	bpf_spin_lock(&m->lock);
	v = mean_at(m, now_ns);
	m->weight -= tc->weight;
	m->sum -= (s64)(tc->v - m->base) * (s64)tc->weight;
	if (!m->weight) {
		m->base = v;
		m->sum = 0;
	}
	bpf_spin_unlock(&m->lock);
	tc->lag = (s64)(v - tc->v);
	if (tc->lag > max)
		tc->lag = max;
	if (tc->lag >= -max)
		return;
	tc->lag = -max;
	tc->deadline -= tc->v - (v + (u64)max);
	tc->v = v + (u64)max;
}

/* ---- the way to a queue ------------------------------------------------------- */

/* Comes before enqueue, and also for a task that goes straight to an idle CPU. */
void BPF_STRUCT_OPS(eevdf_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	/* Else it has slept somewhere before, under this policy or not. */
	if (enq_flags & SCX_ENQ_WAKEUP)
		tc->is_new = false;
	join(p, tc);
}

void BPF_STRUCT_OPS(eevdf_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		leave(tc);
}

s32 BPF_STRUCT_OPS(eevdf_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	bool is_idle = false;
	/* Not behind a waker that may run on: another CPU is idle now. */
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu,
					 wake_flags & ~SCX_WAKE_SYNC, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, own_slice_ns(p), 0);
	return cpu;
}

/* How far who runs on the CPU of @cc was at @now_ns. */
static u64 running_v(const struct cpu_ctx *cc, u64 now_ns)
{
	/* CPUs' clocks may differ by a little. */
	if (!cc->weight || !time_after(now_ns, cc->charged_ns))
		return cc->v;
	return cc->v + vtime_of(now_ns - cc->charged_ns, cc->weight);
}

/* Is nobody in the queue to be chosen before @tc, which has just come? */
static bool is_next(s32 cpu, const struct task_ctx *tc, u64 mean)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, EEVDF_DSQ, 0) {
		struct task_ctx *other = task_ctx(p);

		if (!time_before(p->scx.dsq_vtime, tc->deadline))
			return true;
		if (other && is_eligible(other, mean) &&
		    bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return false;
	}
	return true;
}

/*
 * @tc has come to @cpu: see the head, and Linux's check_preempt_wakeup_fair(). All is
 * as of the moment in which it became runnable. Somebody who was alone until then is
 * just at V, and stays for his slice; some microseconds later he would be ahead.
 */
static void maybe_preempt(s32 cpu, const struct task_ctx *tc)
{
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);
	u64 mean, v;

	if (preempt == PREEMPT_NEVER || !cc || !cc->slice_ns || !cc->weight)
		return;
	v = running_v(cc, tc->charged_ns);
	if (time_before_eq(cc->protected_v, v)) {
		/* He takes part in the choice himself. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return;
	}
	mean = mean_of(tc->charged_ns);
	if (!is_eligible(tc, mean) || !is_next(cpu, tc, mean))
		return;
	if (time_before_eq(v, mean + vtime_of(SLICE_SLACK_NS, cc->weight))) {
		/* Who runs is eligible, too. */
		if (preempt == PREEMPT_LINUX && tc->slice_ns >= cc->slice_ns)
			return;
		if (!time_before(tc->deadline, cc->deadline))
			return;
	}
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(eevdf_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	tc->has_yielded = false;
	scx_bpf_dsq_insert_vtime(p, EEVDF_DSQ, slice_left_ns(tc), tc->deadline,
				 enq_flags);
	if (!(enq_flags & SCX_ENQ_CPU_SELECTED)) {
		/* It was preempted, or is bound here; another CPU may be idle. */
		cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (cpu >= 0) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			return;
		}
	}
	if ((enq_flags & SCX_ENQ_WAKEUP) || tc->is_new)
		maybe_preempt(scx_bpf_task_cpu(p), tc);
}

/* ---- the choice ----------------------------------------------------------------- */

/* Context: the task is charged. */
static void note_running(s32 cpu, const struct task_ctx *tc)
{
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);

	if (!cc)
		return;
	cc->v = tc->v;
	cc->charged_ns = tc->charged_ns;
	cc->weight = tc->weight;
	cc->deadline = tc->deadline;
	cc->slice_ns = tc->slice_ns;
}

/*
 * Take the first task that is eligible and may run on @cpu, unless the deadline of
 * @rival comes before its own. Return: whether there was one.
 */
static bool take_eligible(s32 cpu, u64 mean, const struct task_ctx *rival)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, EEVDF_DSQ, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (rival && time_before(rival->deadline, p->scx.dsq_vtime))
			return false;
		if (!tc || !is_eligible(tc, mean) ||
		    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return true;
	}
	return false;
}

/*
 * @prev is in no queue, and takes part if it is eligible and has not yielded. On
 * several CPUs it may happen that nobody is eligible whom this one could run: the
 * earliest deadline has to do then.
 */
void BPF_STRUCT_OPS(eevdf_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = NULL;
	bool takes_part = false;
	u64 mean;

	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		tc = task_ctx(prev);
	if (tc)
		charge(prev, tc);
	if (scx_bpf_dsq_nr_queued(EEVDF_DSQ) > 0) {
		mean = mean_of(scx_bpf_now());
		takes_part = tc && !tc->has_yielded && is_eligible(tc, mean);
		if (take_eligible(cpu, mean, takes_part ? tc : NULL))
			return;
		if (!takes_part && scx_bpf_dsq_move_to_local(EEVDF_DSQ))
			return;
	}
	if (!prev || !tc)
		return;
	/* It goes on, until all are asked again at the next tick. */
	tc->has_yielded = false;
	scx_bpf_task_set_slice(prev, 1);
	note_running(cpu, tc);
}

void BPF_STRUCT_OPS(eevdf_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);
	struct task_ctx *tc = task_ctx(p);
	u64 now_ns = scx_bpf_now();
	struct mean *m = the_mean();

	if (!tc || !m || !cc)
		return;
	tc->is_new = false;
	cc->protected_v = tc->deadline;
	tc->exec_ns = p->se.sum_exec_runtime;
	tc->charged_ns = now_ns;
	bpf_spin_lock(&m->lock);
	m->nr_running++;
	m->since_ns += now_ns;
	bpf_spin_unlock(&m->lock);
	note_running(cpu, tc);
}

void BPF_STRUCT_OPS(eevdf_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);
	struct mean *m = the_mean();
	struct cpu_ctx *cc;

	if (!tc || !m)
		return;
	charge(p, tc);
	bpf_spin_lock(&m->lock);
	m->nr_running--;
	m->since_ns -= tc->charged_ns;
	bpf_spin_unlock(&m->lock);
	cc = ARRAY_ELEM_PTR(cpu_ctxs, scx_bpf_task_cpu(p), SCX_CPUS_MAX);
	if (cc)
		cc->slice_ns = 0;
}

/* Others go first, eligible or not: else it would be a yield to nobody. */
bool BPF_STRUCT_OPS(eevdf_yield, struct task_struct *from,
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

s32 BPF_STRUCT_OPS(eevdf_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, NULL,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tc)
		return -12;	/* ENOMEM */
	tc->weight = p->scx.weight ? p->scx.weight : 1;
	tc->is_new = args->fork;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(eevdf_init)
{
	return scx_bpf_create_dsq(EEVDF_DSQ, -1);
}

SCX_OPS_DEFINE(eevdf_ops,
	       .select_cpu = (void *)eevdf_select_cpu,
	       .runnable = (void *)eevdf_runnable,
	       .quiescent = (void *)eevdf_quiescent,
	       .enqueue = (void *)eevdf_enqueue,
	       .dispatch = (void *)eevdf_dispatch,
	       .running = (void *)eevdf_running,
	       .stopping = (void *)eevdf_stopping,
	       .yield = (void *)eevdf_yield,
	       .init_task = (void *)eevdf_init_task,
	       .init = (void *)eevdf_init,
	       .name = "eevdf");
