/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * priority.bpf.c - eleven priorities, with ageing (report 1).
 *
 * One queue per level, 0 (highest) to 10, and round-robin within a level. A free
 * CPU takes from the highest level that has a task. A task that has waited
 * ageing_ns in its queue moves one level up, again and again, until it runs; then
 * it is back at its own level. At each tick a running task is preempted by one of a
 * higher level, once it has run for min_slice_ns.
 *
 * The level is the task's priority; without one it follows nice: one level per factor
 * of two in weight, 100 being level 5. With inherit_ns, a task that waits lends its
 * level to the one that it waits for (scx/policy/inherit.h).
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
 * given. On several CPUs the first CPU that ticks is preempted, even if another one
 * runs something less urgent.
 *
 * Five rules of the report are here only to reproduce it: pid_rule; short_fifo, as
 * the report's text says; fifo_first, as its code does; high_slice_ns, there five
 * ticks; and its kernel kills all but PID 1 after 10,000 ticks. A policy cannot kill,
 * nor continue as if it had: with kill_ns it ends the run, as a failed one, and names
 * the first task that would have been killed.
 *
 * @knob slice_ns ns 1 10000000000  slice within a level (default 10 ms, one tick); 20 ms there
 * @knob high_slice_ns ns 0 10000000000  slice of levels 0 to 2 (default 0: slice_ns); 50 ms there
 * @knob ageing_ns ns 0 1000000000000  wait per level (default 500 ms, 50 ticks); 0: none
 * @knob min_slice_ns ns 0 10000000000  time without preemption (default 0)
 * @knob short_fifo bool 0 1  level 5 runs first come, first served (default 0)
 * @knob fifo_first bool 0 1  level 5 is chosen before level 0 (default 0)
 * @knob pid_rule bool 0 1  PIDs above 100 are at level 5, without ageing (default 0)
 * @knob sched_log bool 0 1  print each switch, as sched_log() did (default 0)
 * @knob kill_ns ns 0 1000000000000  fail when a task gets this old (default 0: never); 100 s there
 * @knob inherit_ns ns 0 10000000000  most that a loan of priority is good for (default 0: none)
 * @priority priority within ageing_ns
 * @latency wake-up within slice_ns
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free no  without ageing, a level that never empties keeps those below it waiting
 * @source report 1, sections 5 and 8
 *
 * Read next: policies/mlfq.bpf.c, which finds out the levels by itself.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/level.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

char _license[] SEC("license") = "GPL";

#define NR_LEVELS 11
#define DEFAULT_LEVEL 5
#define HIGH_LEVEL_MAX 2
#define REPORT_TICK_NS 10000000
#define REPORT_PID_MAX 100

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

/* Members of a loan are written by the lender's CPU: see has_loan(). */
struct task_ctx {
	u32 level;	    /* its own, or aged; where it queues without a loan */
	u64 since_ns;	    /* when it came to its queue */
	s32 waker;	    /* pid of the task that woke it last; 0: none has */
	u32 nr_wakeups;	    /* so far: tells one wait from the next */
	s32 lender;	    /* pid; 0: it has no loan */
	u32 lender_wakeups; /* nr_wakeups of the lender when it began to wait */
	u32 lent_level;
	u64 lent_until_ns; /* of this task's CPU time */
};
DEFINE_TASK_CTX(struct task_ctx);

/*
 * No task in a queue is due for ageing before this. Written by any CPU without a
 * lock: the worst that comes of it is one sweep too many.
 */
static u64 next_ageing_ns;
static u64 nr_switches;
static u64 start_ns;

#include <scx/policy/inherit.h>

static bool is_forced(const struct task_struct *p)
{
	return pid_rule && p->pid > REPORT_PID_MAX;
}

/* The level without ageing. */
static u32 own_level(struct task_struct *p)
{
	if (is_forced(p))
		return DEFAULT_LEVEL;
	return task_level(p, task_attr(p), DEFAULT_LEVEL, NR_LEVELS);
}

static u64 slice_of(struct task_struct *p)
{
	if (high_slice_ns && own_level(p) <= HIGH_LEVEL_MAX)
		return high_slice_ns;
	return slice_ns;
}

s32 BPF_STRUCT_OPS(priority_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_and_insert(p, prev_cpu, wake_flags, slice_of(p));
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

	if (!tc || !inherit_ns || !(deq_flags & SCX_DEQ_SLEEP) || (p->flags & PF_EXITING))
		return;
	tc->level = own_level(p);
	lend_along_chain(p, tc);
}

void BPF_STRUCT_OPS(priority_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc) {
		scx_bpf_dsq_insert(p, DEFAULT_LEVEL, slice_of(p), enq_flags);
		return;
	}
	tc->since_ns = scx_bpf_now();
	scx_bpf_dsq_insert(p, level_of(p, tc), slice_of(p), enq_flags);
	kick_idle_cpu(p, enq_flags);
}

/*
 * Move what is due from @level to the level above. Queues are in order of
 * arrival, so that the first task that is not due ends it.
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
			return time_before(task_due_ns, due_ns) ? task_due_ns : due_ns;
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
 * From the lowest level up, so that a task that is late by several levels makes them
 * all at once. What is queued from now on is due no sooner than in ageing_ns.
 */
static void age(void)
{
	u64 now_ns = scx_bpf_now();
	u64 due_ns = now_ns + ageing_ns;
	int level;

	if (!ageing_ns || time_before(now_ns, next_ageing_ns))
		return;
	bpf_for(level, 1, NR_LEVELS)
		due_ns = age_level(NR_LEVELS - level, now_ns, due_ns);
	next_ageing_ns = due_ns;
}

/* Those of the level of @prev go before it, since its slice is used up. */
void BPF_STRUCT_OPS(priority_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);
	u32 nr_levels = NR_LEVELS;
	bool continues = false;

	age();
	move_all_borrowers();
	if (prev && tc) {
		tc->level = own_level(prev);
		nr_levels = level_of(prev, tc) + 1;
		continues = short_fifo && nr_levels == DEFAULT_LEVEL + 1;
		if (continues)
			nr_levels--;
	}
	if (fifo_first && !continues && scx_bpf_dsq_move_to_local(DEFAULT_LEVEL))
		return;
	if (move_first_to_local(nr_levels))
		return;
	/* Otherwise it would get the kernel's default slice, not the policy's. */
	if (prev && tc)
		scx_bpf_task_set_slice(prev, slice_of(prev));
}

/* Not scx_bpf_now(): Linux counts a task's start by this clock. */
static void check_age(struct task_struct *p)
{
	if (kill_ns && p->pid != 1 && time_after(bpf_ktime_get_ns(), p->start_time + kill_ns))
		scx_bpf_error("report 1's kernel would kill %s[%d] here: it is older than %llu ns",
			      p->comm, p->pid, kill_ns);
}

/* A slice that is longer than the policy's is the kernel's; it has run for nothing. */
void BPF_STRUCT_OPS(priority_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);
	u64 left_ns = p->scx.slice, all_ns = slice_of(p);

	check_age(p);
	if (!tc || (left_ns < all_ns ? all_ns - left_ns : 0) < min_slice_ns)
		return;
	if (is_any_queued(0, level_of(p, tc)))
		scx_bpf_task_set_slice(p, 0);
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
		   (scx_bpf_now() - start_ns) / REPORT_TICK_NS, p->pid,
		   tc ? tc->level : DEFAULT_LEVEL, nr_switches);
}

/*
 * Its slice is over: what it gained by ageing is spent. Where a class above this one, or
 * a kernel thread of one, only interrupts it, there is something left of its slice; it
 * stays first on its CPU then, without coming through enqueue, and keeps its level.
 */
void BPF_STRUCT_OPS(priority_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc && runnable && !p->scx.slice)
		tc->level = own_level(p);
}

s32 BPF_STRUCT_OPS(priority_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tc = create_task_ctx(p);

	if (!tc)
		return -ENOMEM;
	tc->level = DEFAULT_LEVEL;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(priority_init)
{
	start_ns = scx_bpf_now();
	return create_dsqs(NR_LEVELS);
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
