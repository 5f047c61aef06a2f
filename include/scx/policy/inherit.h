/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * inherit.h - priority inheritance, as far as a policy can see which task waits for which.
 *
 * Nothing tells a policy which task holds a lock or owes an answer, but it sees which
 * task wakes which. A task that begins to wait lends its level to the task that woke
 * it last; if that one waits itself, also to the one that woke that, and so on over
 * CHAIN_MAX tasks. The loan ends when the lender is woken, or when the borrower has
 * run for inherit_ns of it. Give it the longest critical section or answer. It is off
 * by default, as report 1 has none and since it guesses:
 * - the first wait for a task teaches which task that is, and is not helped;
 * - it knows only one waker: of two locks' holders, the last that released one;
 * - a wait for a timer looks like any other, so the last waker of a task is lent its
 *   level while that sleeps, too; each wait may cost the levels in between inherit_ns
 *   and a tick, or several of these where the loan is passed on;
 * - a wake-up from an interrupt has no waker (a timer, a device, on Linux the network
 *   even if a process on the same machine sent something), and a task that is woken
 *   through a kernel thread none that counts;
 * - a borrower has one loan, the most urgent, of equal ones the last: when that lender
 *   is woken, another that still waits has to wait again to lend again.
 *
 * Included after the knob inherit_ns and struct task_ctx. For what inheritance has to
 * achieve see Sha, Rajkumar and Lehoczky (1990).
 *
 * Read next: policies/priority.bpf.c.
 */
#define CHAIN_MAX 4

/* Loans to tasks in queues; up to where dispatch has found them. */
static u64 nr_loans, nr_loans_seen;

/*
 * Whether the lender of @p still waits, and the bound is not reached. Racy on purpose:
 * a loan that is read while it is written counts for one slice, at most.
 */
static bool has_loan(struct task_struct *p, struct task_ctx *tc)
{
	struct task_struct *lender;
	struct task_ctx *lc;
	bool is_waiting;

	if (!inherit_ns || !tc->lender || p->se.sum_exec_runtime >= tc->lent_until_ns)
		return false;
	lender = bpf_task_from_pid(tc->lender);
	if (!lender)
		return false;
	lc = task_ctx(lender);
	is_waiting = lc && lc->nr_wakeups == tc->lender_wakeups;
	bpf_task_release(lender);
	return is_waiting;
}

/* Where @p queues, and which levels preempt it. */
static u32 level_of(struct task_struct *p, struct task_ctx *tc)
{
	if (has_loan(p, tc) && tc->lent_level < tc->level)
		return tc->lent_level;
	return tc->level;
}

/*
 * Lend @level to @p, unless it has something better.
 * Return: the task that must run before @p can, if it is known; 0 otherwise.
 */
static s32 lend_to(struct task_struct *p, u32 level, s32 lender, u32 lender_wakeups)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return 0;
	if (!has_loan(p, tc) || level <= tc->lent_level) {
		tc->lent_level = level;
		tc->lender_wakeups = lender_wakeups;
		tc->lent_until_ns = p->se.sum_exec_runtime + inherit_ns;
		tc->lender = lender;
	}
	if (!(p->scx.flags & SCX_TASK_QUEUED))
		return tc->waker;
	if (level < tc->level)
		__sync_fetch_and_add(&nr_loans, 1);
	return 0;
}

/* A circle ends where it began, at the lender; any other at CHAIN_MAX. */
static void lend_along_chain(struct task_struct *p, struct task_ctx *tc)
{
	u32 level = level_of(p, tc);
	s32 pid = tc->waker;
	int i;

	bpf_for(i, 0, CHAIN_MAX) {
		struct task_struct *borrower;

		if (!pid || pid == p->pid)
			return;
		borrower = bpf_task_from_pid(pid);
		if (!borrower)
			return;
		pid = lend_to(borrower, level, p->pid, tc->nr_wakeups);
		bpf_task_release(borrower);
	}
}

/* @p has just been woken: by the task that runs here, unless an interrupt did it. */
static void learn_waker(struct task_struct *p, struct task_ctx *tc)
{
	struct task_struct *waker = bpf_get_current_task_btf();

	tc->nr_wakeups++;
	if (bpf_in_task() && waker->pid != p->pid && !(waker->flags & (PF_IDLE | PF_KTHREAD)))
		tc->waker = waker->pid;
}

/* A task that has been lent a level since it queued at @level goes there. */
static void move_borrowers(u32 level)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, level, 0) {
		struct task_ctx *tc = task_ctx(p);
		u32 better;

		if (!tc || !tc->lender)
			continue;
		better = level_of(p, tc);
		if (better < level && better < NR_LEVELS &&
		    scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, better, 0))
			tc->since_ns = scx_bpf_now();
	}
}

/* A loan that is made meanwhile is found by the next dispatch. */
static void move_all_borrowers(void)
{
	u64 nr = nr_loans;
	int level;

	if (nr == nr_loans_seen)
		return;
	nr_loans_seen = nr;
	bpf_for(level, 1, NR_LEVELS)
		move_borrowers(level);
}
