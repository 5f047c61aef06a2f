/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * eevdf_lag.h - V, the mean of all virtual times, and what a task asks for: its lag
 * behind V, its slice, and its deadline.
 *
 * Included after the knobs slice_ns and slice_source.
 * Read next: policies/eevdf.bpf.c, which chooses by them.
 */
#include <scx/divide.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

#define VTIME_PER_NS (100ULL << 10)	/* at a weight of 1; 1024 at nice 0 */
#define SLICE_MIN_NS 100000ULL
#define SLICE_MAX_NS 100000000ULL
#define SLICE_SLACK_NS 1000ULL		/* a slice that has no more left is used up */
#define LAG_SLACK_NS 3000ULL		/* a task ahead of V by no more is eligible */
#define DEFAULT_PRIORITY 5
#define LAG_SLICES 2
/* On several CPUs; below one tick, ordinary waiting would be forgone. */
#define LAG_MIN_NS 20000000ULL

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
DEFINE_TASK_CTX(struct task_ctx);

/*
 * V is mean_base + mean_sum / total_weight. Running tasks are ahead of what they were last charged:
 * by nr_running times now, less since_ns.
 */
private(EEVDF) struct bpf_spin_lock eevdf_lock;
/* eevdf_lock protects: */
static u64 mean_base;		/* virtual time; close to V */
static s64 mean_sum;		/* of weight * (v - base), over all runnable tasks */
static u64 total_weight;	/* of all runnable tasks, the running ones included */
static u64 nr_running;
static u64 since_ns;		/* sum of charged_ns of the running tasks; wraps */

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

/* Context: eevdf_lock is held. */
static __always_inline u64 mean_at(u64 now_ns)
{
	s64 ahead_ns = (s64)(nr_running * now_ns - since_ns);
	s64 sum = mean_sum;

	if (!total_weight)
		return mean_base;
	/* CPUs' clocks may differ by a little. */
	if (ahead_ns > 0)
		sum += ahead_ns * (s64)VTIME_PER_NS;
	return mean_base + (u64)divide_signed(sum, total_weight);
}

static u64 mean_of(u64 now_ns)
{
	u64 v;

	bpf_spin_lock(&eevdf_lock);
	v = mean_at(now_ns);
	bpf_spin_unlock(&eevdf_lock);
	return v;
}

/* V goes by the clock while a task runs, and its v by its CPU time: a little less. */
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
	u64 used = vtime_of(exec_ns_since(p, &tc->exec_ns), tc->weight);
	u64 max = tc->has_yielded ? 0 : lag_max(tc);
	bool forgoes = tc->has_yielded || scx_bpf_nr_cpu_ids() > 1;
	u64 lag;
	s64 shift;

	bpf_spin_lock(&eevdf_lock);
	since_ns += now_ns - tc->charged_ns;
	/* It cannot use more than a CPU, or does not want to: see the head. */
	lag = mean_at(now_ns) - (tc->v + used);
	if (forgoes && (s64)lag > (s64)max)
		used += lag - max;
	tc->v += used;
	mean_sum += (s64)(used * tc->weight);
	/* Keep the sum small, so that products stay in range. */
	shift = total_weight ? divide_signed(mean_sum, total_weight) : 0;
	mean_base += (u64)shift;
	mean_sum -= shift * (s64)total_weight;
	bpf_spin_unlock(&eevdf_lock);
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
	u64 weight = p->scx.weight;
	u64 now_ns = scx_bpf_now();
	bool still_owes = false;
	s64 lag = tc->lag;
	u64 v;

	if (weight != tc->weight)
		lag = divide_signed(lag * (s64)tc->weight, weight);
	bpf_spin_lock(&eevdf_lock);
	v = mean_at(now_ns);
	if (lag < 0 && weight == tc->weight) {
		lag = time_before(tc->v, v) ? 0 : (s64)(v - tc->v);
		still_owes = lag < 0;
	} else if (total_weight) {
		lag += divide_signed(lag * (s64)weight, total_weight);
	}
	tc->v = v - (u64)lag;
	tc->charged_ns = now_ns;
	tc->weight = weight;
	total_weight += weight;
	mean_sum += (s64)(tc->v - mean_base) * (s64)weight;
	bpf_spin_unlock(&eevdf_lock);
	if (!still_owes)
		make_request(p, tc);
}

/* Context: the task is charged. */
static void leave(struct task_ctx *tc)
{
	s64 max = (s64)lag_max(tc);
	u64 now_ns = scx_bpf_now();
	u64 v;

	bpf_spin_lock(&eevdf_lock);
	v = mean_at(now_ns);
	total_weight -= tc->weight;
	mean_sum -= (s64)(tc->v - mean_base) * (s64)tc->weight;
	if (!total_weight) {
		mean_base = v;
		mean_sum = 0;
	}
	bpf_spin_unlock(&eevdf_lock);
	tc->lag = (s64)(v - tc->v);
	if (tc->lag > max)
		tc->lag = max;
	if (tc->lag >= -max)
		return;
	tc->lag = -max;
	tc->deadline -= tc->v - (v + (u64)max);
	tc->v = v + (u64)max;
}
