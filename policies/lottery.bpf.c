/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * lottery.bpf.c - whose ticket is drawn, runs next (report 5).
 *
 * Every runnable task holds tickets. Whenever a slice ends, one of all tickets is
 * drawn, those of the task that just ran included, and its holder gets the next
 * slice. Tickets are the task's attribute, changeable while it runs; without one
 * they are its weight, which is 100 at nice 0. With compensation, a task that used
 * a fraction f of its slice holds 1/f times its tickets until it runs again, so
 * that one that blocks often still gets its share.
 *
 * Good at: shares in proportion to tickets, for any mix and without bookkeeping of
 * the past; nobody starves.
 * Bad at: everything that needs a bound. After n draws a share of p is still off by
 * about sqrt(p (1 - p) / n), so short runs are unfair, equal runs differ, and
 * response times are scattered. Without compensation, tasks that block get less
 * than their share. A draw walks the queue: its cost grows with the tasks.
 *
 * lfsr16 is the report's source: a 16-bit shift register, modulo the tickets. It
 * never gives a number above 65,535, so that with 100 tickets each nobody behind the
 * first 655 that wait ever wins; smaller numbers come more often by up to one part in
 * 65,536 / tickets; and each number is the last one shifted by a bit, so that
 * draws follow each other in a pattern, which repeats after 65,535 of them.
 *
 * @knob slice_ns ns 1 10000000000  what a ticket wins (default 10 ms)
 * @knob compensation bool 0 1  compensation tickets (default 0, as in report 5)
 * @knob random_source enum bpf=0,lfsr16=1  source of the draws (default bpf)
 * @knob lfsr_seed count 1 65535  where lfsr16 starts (default 44257)
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @source report 5, section 4.1.2; C. A. Waldspurger and W. E. Weihl, Lottery
 *         Scheduling, OSDI 1994
 *
 * Read next: policies/cfs.bpf.c, shares without chance.
 */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

#define NR_QUEUES 64		/* a power of two; a task's is that of its pid */
#define COMPENSATION_MAX 1024	/* times; keeps the sum of all tickets in range */

enum { RANDOM_BPF, RANDOM_LFSR16 };

const volatile u64 slice_ns = 10000000;
const volatile u32 compensation = 0;
const volatile u32 random_source = RANDOM_BPF;
const volatile u32 lfsr_seed = 44257;

struct task_ctx {
	u64 counted;		/* its tickets in nr_tickets; 0: it is not queued */
	u64 is_bound;		/* is counted in nr_bound */
	u64 start_exec_ns;	/* its CPU time when its slice began */
	u64 used_ns;		/* of its last slice; 0: it never ran */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/* Of the tasks in the queues; atomic. May be ahead of the queues or behind them. */
static u64 nr_tickets;
static u64 nr_tickets_in[NR_QUEUES];
/* Tasks in the queues that may not run everywhere; atomic. */
static u64 nr_bound;
/* Two CPUs that draw at once may draw the same number; no harm. */
static u32 lfsr;

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static u32 queue_of(const struct task_struct *p)
{
	return (u32)p->pid % NR_QUEUES;
}

static u64 own_tickets(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);

	if (task_attr_given(attr, TASK_ATTR_TICKETS) && attr->tickets)
		return attr->tickets;
	return p->scx.weight ? p->scx.weight : 1;
}

static u64 compensated_tickets(struct task_struct *p, const struct task_ctx *tc)
{
	u64 tickets = own_tickets(p);
	u64 used_ns = tc->used_ns;

	if (!compensation || !used_ns || used_ns >= slice_ns)
		return tickets;
	if (used_ns < slice_ns / COMPENSATION_MAX)
		return tickets * COMPENSATION_MAX;
	return tickets * slice_ns / used_ns;
}

/* Taps 16, 14, 13 and 11: the longest period that 16 bits allow. */
static u64 draw_lfsr16(void)
{
	u32 bit = (lfsr ^ (lfsr >> 2) ^ (lfsr >> 3) ^ (lfsr >> 5)) & 1;

	lfsr = (lfsr >> 1) | (bit << 15);
	return lfsr;
}

/* A number from 0 to @nr - 1; @nr is not 0. */
static u64 draw(u64 nr)
{
	u64 high, low;

	if (random_source == RANDOM_LFSR16)
		return draw_lfsr16() % nr;
	high = bpf_get_prandom_u32();
	low = bpf_get_prandom_u32();
	return (high << 32 | low) % nr;
}

static void note_used(struct task_struct *p, struct task_ctx *tc)
{
	u64 used_ns = p->se.sum_exec_runtime - tc->start_exec_ns;

	tc->used_ns = used_ns ? used_ns : 1;
}

static void add_tickets(struct task_struct *p, struct task_ctx *tc)
{
	tc->counted = compensated_tickets(p, tc);
	__sync_fetch_and_add(&nr_tickets, tc->counted);
	__sync_fetch_and_add(&nr_tickets_in[queue_of(p)], tc->counted);
	tc->is_bound = (u32)p->nr_cpus_allowed < scx_bpf_nr_cpu_ids();
	if (tc->is_bound)
		__sync_fetch_and_add(&nr_bound, 1);
}

/* Whoever comes first takes them away: the winner's CPU, or ops.dequeue(). */
static void take_tickets(struct task_struct *p, struct task_ctx *tc)
{
	u64 counted = __sync_lock_test_and_set(&tc->counted, 0);

	if (!counted)
		return;
	__sync_fetch_and_sub(&nr_tickets, counted);
	__sync_fetch_and_sub(&nr_tickets_in[queue_of(p)], counted);
	if (tc->is_bound)
		__sync_fetch_and_sub(&nr_bound, 1);
}

s32 BPF_STRUCT_OPS(lottery_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	bool is_idle = false;
	/* Not behind a waker that may run on: another CPU is idle now. */
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu,
					 wake_flags & ~SCX_WAKE_SYNC, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return cpu;
}

void BPF_STRUCT_OPS(lottery_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice_ns, enq_flags);
		return;
	}
	take_tickets(p, tc);
	add_tickets(p, tc);
	scx_bpf_dsq_insert(p, queue_of(p), slice_ns, enq_flags);
	if (enq_flags & SCX_ENQ_CPU_SELECTED)
		return;
	/* It made way for a task that is bound here; another CPU may be idle. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
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

/* Take the task of a queue that holds ticket @winner. Return: whether there was one. */
static bool take_from(u32 queue, s32 cpu, u64 winner)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_ctx *tc = task_ctx(p);

		/* Always: the first bound one may have come since the sums were read. */
		if (!tc || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (winner >= tc->counted) {
			winner -= tc->counted;
			continue;
		}
		if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			continue;
		take_tickets(p, tc);
		return true;
	}
	return false;
}

/*
 * Take the task that holds ticket @winner, counted among those that may run on
 * @cpu; or, where the sums were ahead of the queues, anyone. Return: whether there
 * was one.
 */
static bool take_winner(s32 cpu, u64 winner, bool check_cpu)
{
	int queue;

	bpf_for(queue, 0, NR_QUEUES) {
		u64 tickets = tickets_in(queue, cpu, check_cpu);

		if (winner >= tickets) {
			winner -= tickets;
			continue;
		}
		if (take_from(queue, cpu, winner))
			return true;
		break;
	}
	bpf_for(queue, 0, NR_QUEUES) {
		if (scx_bpf_dsq_move_to_local(queue))
			return true;
	}
	return false;
}

/* What it holds in the draw that ends its slice. */
static u64 tickets_after_slice(struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return own_tickets(p);
	note_used(p, tc);
	return compensated_tickets(p, tc);
}

/* It won again. The kernel would give it its default slice, not ours. */
static void renew(struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->start_exec_ns = p->se.sum_exec_runtime;
	scx_bpf_task_set_slice(p, slice_ns);
}

/* @prev is in no queue, but plays; its tickets are the first ones. */
void BPF_STRUCT_OPS(lottery_dispatch, s32 cpu, struct task_struct *prev)
{
	bool plays = prev && (prev->scx.flags & SCX_TASK_QUEUED);
	bool check_cpu = nr_bound;
	u64 prev_tickets = 0;
	u64 winner = 0;
	u64 total;

	if (prev && plays)
		prev_tickets = tickets_after_slice(prev);
	total = prev_tickets;
	if (nr_tickets) {
		total += tickets_of_all(cpu, check_cpu);
		if (total)
			winner = draw(total);
		if (winner >= prev_tickets &&
		    take_winner(cpu, winner - prev_tickets, check_cpu))
			return;
	}
	if (prev && plays)
		renew(prev);
}

void BPF_STRUCT_OPS(lottery_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->start_exec_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(lottery_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		note_used(p, tc);
}

s32 BPF_STRUCT_OPS(lottery_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, NULL,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);

	return tc ? 0 : -12;	/* ENOMEM */
}

s32 BPF_STRUCT_OPS_SLEEPABLE(lottery_init)
{
	int queue;
	s32 err;

	lfsr = lfsr_seed;
	bpf_for(queue, 0, NR_QUEUES) {
		err = scx_bpf_create_dsq(queue, -1);
		if (err)
			return err;
	}
	return 0;
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
