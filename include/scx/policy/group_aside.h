/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * group_aside.h - where the tasks of a throttled group wait.
 *
 * A task without a budget is enqueued as any other. The next dispatch moves it to a queue that no CPU
 * looks into, one for each group; when there is a budget again, they all go back. A task that
 * is aside does not count as runnable, neither in its group nor, with it, in those above, as
 * if it slept; it comes back as a sleeper that wakes up.
 *
 *	queue 0, or nr with a tree        queue GROUPS_MAX + nr
 *	  +---------------------+  dispatch  +----------------+
 *	  | tasks that may run  | ---------> |  tasks aside   |
 *	  +---------------------+ <--------- +----------------+
 *	                          timer
 *
 * What happens to a task meanwhile (a new affinity, another cgroup, another weight) takes it off
 * any queue and enqueues it again: it is not lost. Between its looking and its moving a CPU may be
 * overtaken by one that takes the task, or by the timer. So a task is counted out before it is
 * moved, and counted in again if it was not moved, or when it runs; and after it was moved the budget is
 * looked at once more. A task that was overlooked runs until the next tick.
 *
 * Included after group_tree.h or groups.h and struct task_ctx, which has a `group`. The policy
 * defines count_out() and count_in_again(). Read next: policies/cfs.bpf.c, a user.
 */
#ifndef SCX_POLICY_GROUP_ASIDE_H
#define SCX_POLICY_GROUP_ASIDE_H

#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/policy/groups.h>

#define NR_GROUP_DSQS (2 * GROUPS_MAX)

/* @p is set aside: it does not count as runnable, if it did. It may do anything meanwhile. */
static void count_out(struct task_struct *p, struct task_ctx *tc);
/* The opposite, if it is aside. Return: its place in its queue. */
static u64 count_in_again(struct task_struct *p, struct task_ctx *tc);

/* Return: the queue in which a task waits that is counted in group @nr. */
static inline u32 group_queue(u32 nr)
{
	return groups == GROUPS_TREE ? nr : 0;
}

static inline void put_back_queue(u32 nr)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, GROUPS_MAX + nr, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (!tc)
			continue;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, count_in_again(p, tc));
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, group_queue(nr), 0);
	}
}

/* Parts go by what is runnable: all that come back count before the first is given its own. */
static inline void recount_queue(u32 nr)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, GROUPS_MAX + nr, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (tc)
			group_recount(&tc->group);
	}
}

static void put_back_tasks(void)
{
	s32 nr;

	bpf_for(nr, 1, GROUPS_MAX) {
		if (groups == GROUPS_FLAT && scx_bpf_dsq_nr_queued(GROUPS_MAX + nr) &&
		    !is_throttled_now(nr))
			recount_queue(nr);
	}
	bpf_for(nr, 1, GROUPS_MAX) {
		if (scx_bpf_dsq_nr_queued(GROUPS_MAX + nr) && !is_throttled_now(nr))
			put_back_queue(nr);
	}
}

static inline void set_aside_queue(u32 queue)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (!tc || !is_throttled(tc->group.in))
			continue;
		count_out(p, tc);
		if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, GROUPS_MAX + tc->group.in, 0))
			count_in_again(p, tc);
	}
}

/* Not static: the kernel's verifier reads it apart from its caller. */
__noinline u32 group_set_aside(void)
{
	s32 nr;

	if (groups == GROUPS_FLAT)
		set_aside_queue(0);
	bpf_for(nr, 1, GROUPS_MAX) {
		if (groups == GROUPS_TREE && is_throttled(nr))
			set_aside_queue(nr);
	}
	put_back_tasks();
	return 0;
}

/* For ops.dispatch, before the choice. */
static inline void set_throttled_aside(void)
{
	if (groups != GROUPS_NONE && must_set_aside && __sync_lock_test_and_set(&must_set_aside, 0))
		group_set_aside();
}

/* For ops.running. */
static inline void note_not_aside(struct task_struct *p, struct task_ctx *tc)
{
	if (groups != GROUPS_NONE && tc->group.state == GROUP_ASIDE)
		count_in_again(p, tc);
}

/*
 * For ops.enqueue, at its end, with SCX_OPS_ENQ_LAST. Return: whether the task may preempt now; if not, an
 * idle CPU looks into the queue.
 */
static inline bool wants_preemption(struct task_struct *p, const struct task_ctx *tc, u64 enq_flags)
{
	bool is_out = tc && is_throttled(tc->group.in);

	if (is_out)
		must_set_aside = 1;
	if (enq_flags & SCX_ENQ_LAST) {
		/* Its CPU goes idle; there may be a budget again when it has. */
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), 0);
		return false;
	}
	return !kick_idle_cpu(p, enq_flags) && !is_out;
}

/* For ops.select_cpu: as select_cpu_and_insert(), but a throttled task does not pass ops.enqueue by. */
static inline s32 select_cpu_and_insert_unthrottled(struct task_struct *p, s32 prev_cpu,
						    u64 wake_flags, u64 slice_ns)
{
	struct task_ctx *tc = groups == GROUPS_NONE ? NULL : task_ctx(p);

	if (tc && is_throttled(tc->group.nr))
		return select_cpu_only(p, prev_cpu, wake_flags);
	return select_cpu_and_insert(p, prev_cpu, wake_flags, slice_ns);
}

#endif
