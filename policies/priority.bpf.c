/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * priority.bpf.c - eleven priorities, with ageing (report 1).
 *
 * One queue per level, 0 (highest) to 10, and round-robin within a level. A free
 * CPU takes from the highest level that has a task. A task that has waited
 * ageing_ns in its queue moves one level up, again and again, until it runs; then
 * it is back at its own level. At each tick a running task makes way for a task of
 * a higher level, once it has run for min_slice_ns.
 *
 * The level is the task's priority, 5 where none is given; without attributes it
 * follows nice: one level per factor of two in weight, 100 being level 5.
 *
 *	tick on a CPU --> a higher level has a task? --> slice := 0 --+
 *	                                                              v
 *	level 0 [t t t]   <--+                                     dispatch:
 *	level 1 [t]       <--+ ageing, one level per ageing_ns     first task of
 *	  ...             <--+                                     the highest
 *	level 10 [t t]                                             level
 *
 * Good at: one urgent task among many; what is urgent never waits for more than a
 * tick.
 * Bad at: shares; how much each level gets follows from ageing and is hard to
 * foresee, and without ageing lower levels starve (Linux unloads the policy after
 * 30 seconds of that). It knows nothing of locks: an urgent task that waits for
 * one held by a task of a low level waits for that level, unless inherit_ns is
 * given. On several CPUs the first CPU that ticks makes way, even if another one
 * runs something less urgent.
 *
 * Inheritance. Nothing tells a policy who holds a lock or owes an answer, but it
 * sees who wakes whom. A task that begins to wait lends its level to the task that
 * woke it last; if that one waits itself, also to the one that woke that, and so on
 * over CHAIN_MAX tasks. The loan ends when the lender is woken, or when the borrower
 * has run for inherit_ns of it. Give it the longest critical section or answer. It
 * is off by default, as the report has none and since it guesses:
 * - the first wait for a task teaches who that is, and is not helped;
 * - it knows only one waker: of two locks' holders, the one that let go last;
 * - a wait for a timer looks like any other, so who once woke a task is lent its
 *   level while that sleeps, too; each wait may cost the levels in between
 *   inherit_ns and a tick, or several of these where the loan is passed on;
 * - a wake-up from an interrupt has no waker (a timer, a device, on Linux the
 *   network even if a process on the same machine sent something), and a task that
 *   is woken through a kernel thread none that counts;
 * - a borrower has one loan, the most urgent, of equal ones the last: when that
 *   lender is woken, another that still waits has to wait again to lend again.
 *
 * Five rules of the report are here only to reproduce it: pid_rule forces tasks
 * with a PID above 100 to level 5, without ageing; short_fifo serves level 5 first
 * come, first served, as the report's text says; fifo_first chooses level 5 before
 * all other levels, as its code does; high_slice_ns is its slice of five ticks at
 * levels 0 to 2; and its kernel kills all but PID 1 after 10,000 ticks. A
 * policy cannot kill, nor can it go on as if it had: with kill_ns it ends the run,
 * as a failed one, and names the first task that would have been killed.
 *
 * @knob slice_ns ns 1 10000000000  slice within a level (default 10 ms, one tick); 20 ms there
 * @knob high_slice_ns ns 0 10000000000  slice of levels 0 to 2 (default 0: slice_ns); 50 ms there
 * @knob ageing_ns ns 0 1000000000000  wait per level (default 500 ms, 50 ticks); 0: none
 * @knob min_slice_ns ns 0 10000000000  time without preemption (default 0)
 * @knob short_fifo bool 0 1  level 5 runs until it blocks (default 0)
 * @knob fifo_first bool 0 1  level 5 is chosen before level 0 (default 0)
 * @knob pid_rule bool 0 1  PIDs above 100 are at level 5 (default 0)
 * @knob sched_log bool 0 1  print each switch, as sched_log() did (default 0)
 * @knob kill_ns ns 0 1000000000000  fail when a task gets this old (default 0: never); 100 s there
 * @knob inherit_ns ns 0 10000000000  most that a loan of priority is good for (default 0: none)
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @source report 1, sections 5 and 8; Sha, Rajkumar and Lehoczky (1990) for what
 *	inheritance has to achieve
 *
 * Read next: policies/mlfq.bpf.c, which finds out the levels by itself.
 */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

#define NR_LEVELS 11
#define DEFAULT_LEVEL 5
#define HIGH_LEVEL_MAX 2
#define DEFAULT_WEIGHT 100
#define REPORT_TICK_NS 10000000
#define REPORT_PID_MAX 100
#define CHAIN_MAX 4

const volatile u64 slice_ns = 10000000;
const volatile u64 high_slice_ns = 0;
const volatile u64 ageing_ns = 500000000;
const volatile u64 min_slice_ns = 0;
const volatile u32 short_fifo = 0;
const volatile u32 fifo_first = 0;
const volatile u32 pid_rule = 0;
const volatile u32 sched_log = 0;
const volatile u64 kill_ns = 0;
const volatile u64 inherit_ns = 0;

/* Those of a loan are written by the lender's CPU: see has_loan(). */
struct task_ctx {
	u32 level;		/* its own, or aged; without a loan, where it queues */
	u64 since_ns;		/* when it came to its queue */
	s32 waker;		/* pid of the task that woke it last; 0: none has */
	u32 nr_wakeups;		/* so far: tells one wait from the next */
	s32 lender;		/* pid; 0: nobody has lent it anything */
	u32 lender_wakeups;	/* nr_wakeups of the lender when it began to wait */
	u32 lent_level;
	u64 lent_until_ns;	/* of this task's CPU time */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/*
 * No task in a queue is due for ageing before this. Written by any CPU without a
 * lock: the worst that comes of it is one sweep too many.
 */
static u64 next_ageing_ns;
static u64 nr_switches;
/* Loans to tasks in queues; up to where dispatch has seen to them. */
static u64 nr_loans, nr_loans_seen;

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static bool is_forced(const struct task_struct *p)
{
	return pid_rule && p->pid > REPORT_PID_MAX;
}

/* The level without ageing. */
static u32 own_level(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);
	u32 weight = p->scx.weight;
	u32 level = DEFAULT_LEVEL;
	int i;

	if (is_forced(p))
		return DEFAULT_LEVEL;
	if (task_attr_given(attr, TASK_ATTR_PRIORITY)) {
		if (attr->priority < 0)
			return 0;
		return attr->priority < NR_LEVELS ? attr->priority :
						    NR_LEVELS - 1;
	}
	for (i = 0; i < NR_LEVELS && weight >= 2 * DEFAULT_WEIGHT && level > 0; i++) {
		weight /= 2;
		level--;
	}
	for (i = 0; i < NR_LEVELS && weight <= DEFAULT_WEIGHT / 2 &&
	     level < NR_LEVELS - 1; i++) {
		weight *= 2;
		level++;
	}
	return level;
}

static u64 slice_of(struct task_struct *p)
{
	if (high_slice_ns && own_level(p) <= HIGH_LEVEL_MAX)
		return high_slice_ns;
	return slice_ns;
}

/*
 * Does the lender of @p still wait, and is the bound not reached? Racy on purpose:
 * who reads a loan while it is written acts on it for a turn, at most.
 */
static bool has_loan(struct task_struct *p, struct task_ctx *tc)
{
	struct task_struct *lender;
	struct task_ctx *lc;
	bool is_waiting;

	if (!inherit_ns || !tc->lender ||
	    p->se.sum_exec_runtime >= tc->lent_until_ns)
		return false;
	lender = bpf_task_from_pid(tc->lender);
	if (!lender)
		return false;
	lc = task_ctx(lender);
	is_waiting = lc && lc->nr_wakeups == tc->lender_wakeups;
	bpf_task_release(lender);
	return is_waiting;
}

/* Where @p queues, and what it has to make way for. */
static u32 level_of(struct task_struct *p, struct task_ctx *tc)
{
	if (has_loan(p, tc) && tc->lent_level < tc->level)
		return tc->lent_level;
	return tc->level;
}

/*
 * Lend @level to @p, unless it has something better.
 * Return: who must run before @p can, if it is known; 0 otherwise.
 */
static s32 lend_to(struct task_struct *p, u32 level, s32 lender,
		   u32 lender_wakeups)
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

/* A circle ends where it began, at who lends; any other at CHAIN_MAX. */
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

s32 BPF_STRUCT_OPS(priority_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	bool is_idle = false;
	/* Not behind a waker that may run on: another CPU is idle now. */
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu,
					 wake_flags & ~SCX_WAKE_SYNC, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_of(p), 0);
	return cpu;
}

/* @p has just been woken: by the task that runs here, unless an interrupt did it. */
static void learn_waker(struct task_struct *p, struct task_ctx *tc)
{
	struct task_struct *waker = bpf_get_current_task_btf();

	tc->nr_wakeups++;
	if (bpf_in_task() && waker->pid != p->pid &&
	    !(waker->flags & (PF_IDLE | PF_KTHREAD)))
		tc->waker = waker->pid;
}

/* On a wake-up, even one that goes straight to an idle CPU; on a new attribute. */
void BPF_STRUCT_OPS(priority_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	tc->level = own_level(p);
	if (inherit_ns && (enq_flags & SCX_ENQ_WAKEUP))
		learn_waker(p, tc);
}

/* It begins to wait. What it may have gained by ageing is not lent. */
void BPF_STRUCT_OPS(priority_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc || !inherit_ns || !(deq_flags & SCX_DEQ_SLEEP) ||
	    (p->flags & PF_EXITING))
		return;
	tc->level = own_level(p);
	lend_along_chain(p, tc);
}

void BPF_STRUCT_OPS(priority_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu;

	if (!tc) {
		scx_bpf_dsq_insert(p, DEFAULT_LEVEL, slice_of(p), enq_flags);
		return;
	}
	tc->since_ns = scx_bpf_now();
	scx_bpf_dsq_insert(p, level_of(p, tc), slice_of(p), enq_flags);
	if (enq_flags & SCX_ENQ_CPU_SELECTED)
		return;
	/* It made way for a task that is bound here; another CPU may be idle. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/*
 * Move what is due from @level to the level above. Queues are in order of
 * arrival, so that the walk ends at the first task that is not due.
 * Return: when that one is due, or @due_ns if that is earlier.
 */
static u64 age_level(u32 level, u64 now_ns, u64 due_ns)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, level, 0) {
		struct task_ctx *tc = task_ctx(p);
		u64 task_due_ns;

		if (!tc || is_forced(p))
			continue;
		task_due_ns = tc->since_ns + ageing_ns;
		if (time_after(task_due_ns, now_ns))
			return time_before(task_due_ns, due_ns) ? task_due_ns :
								  due_ns;
		if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, level - 1, 0))
			continue;
		/* That of its queue, unless a loan has brought it there. */
		if (tc->level)
			tc->level--;
		tc->since_ns = task_due_ns;
	}
	return due_ns;
}

/*
 * From the lowest level up, so that who is late by several levels makes them all
 * at once. What is queued from now on is due no sooner than in ageing_ns.
 */
static void age(void)
{
	u64 now_ns = scx_bpf_now();
	u64 due_ns = now_ns + ageing_ns;
	int level;

	if (!ageing_ns || time_before(now_ns, next_ageing_ns))
		return;
	bpf_for(level, 1, NR_LEVELS) {
		u32 from = NR_LEVELS - level;

		if (scx_bpf_dsq_nr_queued(from) > 0)
			due_ns = age_level(from, now_ns, due_ns);
	}
	next_ageing_ns = due_ns;
}

/* Who has been lent something since it queued at @level goes where that is. */
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

/* A loan that is made while this looks is seen to by the next dispatch. */
static void see_to_loans(void)
{
	u64 nr = nr_loans;
	int level;

	if (nr == nr_loans_seen)
		return;
	nr_loans_seen = nr;
	bpf_for(level, 1, NR_LEVELS) {
		if (scx_bpf_dsq_nr_queued(level) > 0)
			move_borrowers(level);
	}
}

/* Those of the level of @prev go before it, since it had its turn. */
void BPF_STRUCT_OPS(priority_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 nr_levels = NR_LEVELS;
	struct task_ctx *tc = NULL;
	bool keeps_on = false;
	int level;

	age();
	see_to_loans();
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED)) {
		tc = task_ctx(prev);
		if (tc) {
			tc->level = own_level(prev);
			nr_levels = level_of(prev, tc) + 1;
			keeps_on = short_fifo && nr_levels == DEFAULT_LEVEL + 1;
			if (keeps_on)
				nr_levels--;
		}
	}
	if (fifo_first && !keeps_on && scx_bpf_dsq_move_to_local(DEFAULT_LEVEL))
		return;
	bpf_for(level, 0, nr_levels) {
		if (scx_bpf_dsq_move_to_local(level))
			return;
	}
	/* Otherwise it would get the kernel's default slice, not ours. */
	if (prev && tc)
		scx_bpf_task_set_slice(prev, slice_of(prev));
}

/* Not scx_bpf_now(): Linux counts a task's start by this clock. */
static void check_age(struct task_struct *p)
{
	if (kill_ns && p->pid != 1 &&
	    time_after(bpf_ktime_get_ns(), p->start_time + kill_ns))
		scx_bpf_error("report 1's kernel would kill %s[%d] here: it is older than %llu ns",
			      p->comm, p->pid, kill_ns);
}

/* A slice that is longer than ours is the kernel's; it has run for nothing. */
void BPF_STRUCT_OPS(priority_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);
	u64 left_ns = p->scx.slice, all_ns = slice_of(p);
	int level;

	check_age(p);
	if (!tc || (left_ns < all_ns ? all_ns - left_ns : 0) < min_slice_ns)
		return;
	bpf_for(level, 0, level_of(p, tc)) {
		if (scx_bpf_dsq_nr_queued(level) > 0) {
			scx_bpf_task_set_slice(p, 0);
			return;
		}
	}
}

void BPF_STRUCT_OPS(priority_running, struct task_struct *p)
{
	struct task_ctx *tc;

	check_age(p);
	if (!sched_log)
		return;
	tc = task_ctx(p);
	__sync_fetch_and_add(&nr_switches, 1);
	bpf_printk("tick %llu pid %d priority %u switches %llu",
		   scx_bpf_now() / REPORT_TICK_NS, p->pid,
		   tc ? tc->level : DEFAULT_LEVEL, nr_switches);
}

/*
 * It has had its turn: what it gained by ageing is spent. Where a class above ours, or
 * a kernel thread of one, only interrupts it, there is something left of its slice; it
 * stays first on its CPU then, without coming through enqueue, and keeps its level.
 */
void BPF_STRUCT_OPS(priority_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc && runnable && !p->scx.slice)
		tc->level = own_level(p);
}

s32 BPF_STRUCT_OPS(priority_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, NULL,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tc)
		return -12;	/* ENOMEM */
	tc->level = DEFAULT_LEVEL;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(priority_init)
{
	int level;
	s32 err;

	bpf_for(level, 0, NR_LEVELS) {
		err = scx_bpf_create_dsq(level, -1);
		if (err)
			return err;
	}
	return 0;
}

SCX_OPS_DEFINE(priority_ops,
	       .select_cpu = (void *)priority_select_cpu,
	       .runnable = (void *)priority_runnable,
	       .quiescent = (void *)priority_quiescent,
	       .enqueue = (void *)priority_enqueue,
	       .dispatch = (void *)priority_dispatch,
	       .tick = (void *)priority_tick,
	       .running = (void *)priority_running,
	       .stopping = (void *)priority_stopping,
	       .init_task = (void *)priority_init_task,
	       .init = (void *)priority_init,
	       .name = "priority");
