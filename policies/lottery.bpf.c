/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * lottery.bpf.c - the task whose ticket is drawn runs next (report 5).
 *
 * Every runnable task holds tickets: its attribute or, without one, its weight, which
 * is 100 at nice 0. When a slice ends, one of all tickets is drawn; its holder gets the
 * next slice. With compensation, a task that used a fraction f of its slice holds 1/f
 * times its tickets until it runs again: one that blocks often still gets its share.
 *
 * Good at: shares in proportion to tickets, for any mix, without memory; none starves.
 * Bad at: everything that needs a bound. After n draws a share of p is still off by
 * about sqrt(p (1 - p) / n): short runs are unfair, equal runs differ. Without
 * compensation, tasks that block get less than their share. The cost of a draw grows
 * with the queue. lfsr16, the report's numbers, is not uniform (scx/policy/draw.h).
 *
 * @knob slice_ns ns 1 10000000000  what a ticket wins (default 10 ms)
 * @knob compensation bool 0 1  compensation tickets (default 0, as in report 5)
 * @knob random_source enum bpf=0,lfsr16=1  source of the draws (default bpf)
 * @knob lfsr_seed count 1 65535  where lfsr16 starts (default 44257)
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free yes  each draw may be of any ticket
 * @source report 5, section 4.1.2; Waldspurger and Weihl, Lottery Scheduling, 1994
 *
 * Read next: policies/cfs.bpf.c, shares without chance.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>
#include <scx/policy/draw.h>

char _license[] SEC("license") = "GPL";

#define NR_QUEUES 64		/* a power of two; a task's is that of its pid */
#define COMPENSATION_MAX 1024	/* times; keeps the sum of all tickets in range */
const volatile u64 slice_ns = 10000000;
const volatile u32 compensation = 0;
const volatile u32 random_source = RANDOM_BPF;
const volatile u32 lfsr_seed = 44257;

struct task_ctx {
	u64 counted;	   /* its tickets in nr_tickets; 0: it is not queued */
	u64 is_bound;	   /* is counted in nr_bound */
	u64 start_exec_ns; /* its CPU time when its slice began */
	u64 used_ns;	   /* of its last slice; 0: it never ran */
};
DEFINE_TASK_CTX(struct task_ctx);

/* Of the tasks in the queues; atomic. May be ahead of the queues or behind them. */
static u64 nr_tickets, nr_tickets_in[NR_QUEUES];
static u64 nr_bound; /* tasks that may not run everywhere */

static u32 queue_of(const struct task_struct *p)
{
	return (u32)p->pid % NR_QUEUES;
}

static u64 compensated_tickets(struct task_struct *p, const struct task_ctx *tc)
{
	u64 tickets = task_tickets(p);
	u64 used_ns = tc->used_ns;

	if (!compensation || !used_ns || used_ns >= slice_ns)
		return tickets;
	if (used_ns < slice_ns / COMPENSATION_MAX)
		return tickets * COMPENSATION_MAX;
	return tickets * slice_ns / used_ns;
}

static void note_used(struct task_struct *p, struct task_ctx *tc)
{
	tc->used_ns = (p->se.sum_exec_runtime - tc->start_exec_ns) ?: 1;
}

static void count(u32 queue, u64 tickets, u64 bound)
{
	__sync_fetch_and_add(&nr_tickets, tickets);
	__sync_fetch_and_add(&nr_tickets_in[queue], tickets);
	__sync_fetch_and_add(&nr_bound, bound);
}

/* By the CPU that runs the task, or ops.dequeue(): the first call counts. */
static void take_tickets(struct task_struct *p, struct task_ctx *tc)
{
	u64 counted = __sync_lock_test_and_set(&tc->counted, 0);

	if (counted)
		count(queue_of(p), -counted, -tc->is_bound);
}

s32 BPF_STRUCT_OPS(lottery_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_and_insert(p, prev_cpu, wake_flags, slice_ns);
}

void BPF_STRUCT_OPS(lottery_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice_ns, enq_flags);
		return;
	}
	take_tickets(p, tc);
	tc->counted = compensated_tickets(p, tc);
	tc->is_bound = (u32)p->nr_cpus_allowed < scx_bpf_nr_cpu_ids();
	count(queue_of(p), tc->counted, tc->is_bound);
	scx_bpf_dsq_insert(p, queue_of(p), slice_ns, enq_flags);
	kick_idle_cpu(p, enq_flags);
}

void BPF_STRUCT_OPS(lottery_dequeue, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		take_tickets(p, tc);
}

/* What those tasks of a queue hold that may run on @cpu. */
static u64 tickets_in(u32 queue, s32 cpu, bool check_cpu)
{
	struct task_struct *p;
	u64 tickets = 0;

	if (!check_cpu)
		return nr_tickets_in[queue % NR_QUEUES];
	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (tc && bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			tickets += tc->counted;
	}
	return tickets;
}

static u64 tickets_of_all(s32 cpu, bool check_cpu)
{
	u64 tickets = 0;
	int queue;

	if (!check_cpu)
		return nr_tickets;
	bpf_for(queue, 0, NR_QUEUES)
		tickets += tickets_in(queue, cpu, true);
	return tickets;
}

/* Take the task of a queue that holds ticket @winner of those that may run on @cpu. */
static bool take_from(u32 queue, s32 cpu, u64 winner)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_ctx *tc = task_ctx(p);

		/* Always: the first bound one may have come since the sums were read. */
		if (!tc || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (winner < tc->counted &&
		    scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)) {
			take_tickets(p, tc);
			return true;
		}
		winner -= tc->counted;
	}
	return false;
}

/* The same in all queues. Return: false if the sums were ahead of the queues. */
static bool take_winner(s32 cpu, u64 winner, bool check_cpu)
{
	int queue;

	bpf_for(queue, 0, NR_QUEUES) {
		u64 tickets = tickets_in(queue, cpu, check_cpu);

		if (winner < tickets)
			return take_from(queue, cpu, winner);
		winner -= tickets;
	}
	return false;
}

/*
 * How many tickets come before those of @prev, which is in no queue. Where each is drawn by chance that does not
 * matter, and there are none. The numbers of a shift register follow from each other, so there tickets have to stay
 * where they are, in the order of pids (modulo NR_QUEUES), as in the report's table of processes: if they moved with the task that runs, eight
 * equal tasks would get from 2 % to 22 %.
 */
static u64 tickets_before(const struct task_struct *prev, s32 cpu, bool check_cpu)
{
	u64 tickets = 0;
	int queue;

	if (random_source != RANDOM_LFSR16)
		return 0;
	bpf_for(queue, 0, (int)queue_of(prev))
		tickets += tickets_in(queue, cpu, check_cpu);
	return tickets;
}

void BPF_STRUCT_OPS(lottery_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);
	u64 own = 0, before = 0, winner;
	bool check_cpu = nr_bound;

	if (prev && tc) {
		note_used(prev, tc);
		own = compensated_tickets(prev, tc);
		before = tickets_before(prev, cpu, check_cpu);
	}
	if (nr_tickets) {
		winner = draw(own + tickets_of_all(cpu, check_cpu), random_source);
		if (winner < before || winner >= before + own) {
			winner -= winner < before ? 0 : own;
			if (take_winner(cpu, winner, check_cpu) || move_first_to_local(NR_QUEUES))
				return;
		}
	}
	if (!prev || !tc)
		return;
	/* It won again, and gets the policy's slice, not one of the kernel's length. */
	tc->start_exec_ns = prev->se.sum_exec_runtime;
	scx_bpf_task_set_slice(prev, slice_ns);
}

/* Also called when an attribute of a running task has changed: it goes on with what is left of its slice. */
void BPF_STRUCT_OPS(lottery_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc && p->scx.slice >= slice_ns)
		tc->start_exec_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(lottery_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		note_used(p, tc);
}

s32 BPF_STRUCT_OPS(lottery_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return create_task_ctx(p) ? 0 : -ENOMEM;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(lottery_init)
{
	lfsr = lfsr_seed;
	return create_dsqs(NR_QUEUES);
}

SCX_OPS_DEFINE(lottery_ops,
	       .select_cpu = (void *)lottery_select_cpu,
	       .enqueue = (void *)lottery_enqueue,
	       .dequeue = (void *)lottery_dequeue,
	       .dispatch = (void *)lottery_dispatch,
	       .running = (void *)lottery_running,
	       .stopping = (void *)lottery_stopping,
	       .init_task = (void *)lottery_init_task,
	       .init = (void *)lottery_init,
	       .name = "lottery");
