/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stride.bpf.c - shares by tickets, as the lottery's, but without chance.
 *
 * Every task has a pass, which grows with its CPU time, divided by its tickets: its
 * attribute or, without one, its weight, which is 100 at nice 0. One queue for all
 * CPUs, in the order of passes; a free CPU takes the first task. The global pass grows
 * as that of a task would that held the tickets of all runnable tasks: a task that has
 * had just its share is there.
 *
 *	leaves:  remain := pass - global pass       (late or early, by how much)
 *	joins:   pass   := global pass + remain     (sleep neither earns nor costs)
 *	new:     remain := one slice's worth        (as if it had just run)
 *	tickets change: remain := remain * old / new
 *
 * Good at: exact shares. Of any two tasks that want to run all the time, on one CPU,
 * neither is ever more than one slice off its part of what the two have had.
 * Bad at: response; a task that wakes up waits until it is behind, with few tickets among
 * many for long, while one with many tickets has its slices in a row. On several CPUs,
 * a task whose tickets are worth more than one CPU falls behind without end, others
 * stand far ahead of the global pass, and one that joins may forgo what remained.
 *
 * @knob slice_ns ns 1 10000000000  quantum (default 10 ms)
 * @shares tickets within slice_ns
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free no  on several CPUs a task worth more than one falls behind, and others far ahead, for long
 * @virtual-time yes
 * @source C. A. Waldspurger and W. E. Weihl, Stride Scheduling, 1995
 *
 * Read next: policies/eevdf.bpf.c, where short slices need not wait for long ones.
 */
#include <scx/common.bpf.h>
#include <scx/divide.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

char _license[] SEC("license") = "GPL";

#define STRIDE_DSQ 0
#define TICKETS_MAX (1ULL << 20)	/* of one task; keeps products in range */
#define PASS_SHIFT 16			/* passes are in 1/65536 ns per ticket */
const volatile u64 slice_ns = 10000000;

struct task_ctx {
	u64 pass;	  /* wraps */
	s64 remain;	  /* while it is not runnable; time, in tickets' worth */
	u64 tickets;	  /* with which it is, or was last, counted; 0: it is new */
	u64 exec_ns;	  /* its CPU time when pass was last brought up to date */
	u64 offset_ns;	  /* of the clock to its CPU time, when it last came to run */
	bool has_yielded; /* the first of the queue goes next; the claim stays */
};
DEFINE_TASK_CTX(struct task_ctx);

private(STRIDE) struct bpf_spin_lock stride_lock;
/* stride_lock protects: */
static u64 global_pass;	   /* at advanced_ns */
static u64 global_tickets; /* of all runnable tasks, the running ones included */
static u64 nr_running;
static u64 advanced_ns;
static u64 furthest_pass; /* of all that came to run; a lost update is made up for */

static u64 own_tickets(struct task_struct *p)
{
	u64 tickets = task_tickets(p);

	return tickets < TICKETS_MAX ? tickets : TICKETS_MAX;
}

static __always_inline u64 pass_of(u64 ns, u64 tickets)
{
	return (ns << PASS_SHIFT) / tickets;
}

/*
 * Bring the global pass up to date, then let @tickets join and @running tasks begin to
 * run; negative: leave, stop. It goes by the clock: @excess_ns of that was not the
 * task's time, but the switch to it. Return: the global pass.
 */
static u64 update_global(s64 tickets, s64 running, s64 excess_ns)
{
	u64 now_ns = scx_bpf_now();
	s64 ran_ns;
	u64 pass;

	bpf_spin_lock(&stride_lock);
	ran_ns = (s64)(nr_running * (now_ns - advanced_ns));
	advanced_ns = now_ns;
	/* CPUs' clocks may differ by a little. */
	if (global_tickets && ran_ns > 0)
		global_pass += pass_of((u64)ran_ns, global_tickets);
	if (global_tickets && excess_ns > 0)
		global_pass -= pass_of((u64)excess_ns, global_tickets);
	global_tickets += (u64)tickets;
	nr_running += (u64)running;
	pass = global_pass;
	bpf_spin_unlock(&stride_lock);
	return pass;
}

static void advance_furthest(u64 pass)
{
	if (time_before(furthest_pass, pass))
		furthest_pass = pass;
}

/* Context: the task is charged, and has just left or is about to join. */
static void join(struct task_struct *p, struct task_ctx *tc)
{
	u64 tickets = own_tickets(p);

	if (!tc->tickets) {
		tc->remain = (s64)pass_of(slice_ns, tickets);
	} else if (tickets != tc->tickets) {
		s64 slice = (s64)pass_of(slice_ns, tc->tickets);

		/* It may be of the furthest pass: not to be multiplied with each change. */
		if (scx_bpf_nr_cpu_ids() > 1 && tc->remain > slice)
			tc->remain = slice;
		tc->remain = divide_signed(tc->remain, tickets) * (s64)tc->tickets;
	}
	tc->tickets = tickets;
	tc->pass = update_global((s64)tickets, 0, 0) + (u64)tc->remain;
	if (scx_bpf_nr_cpu_ids() > 1 && time_before(tc->pass, furthest_pass))
		tc->pass = furthest_pass;
}

static void leave(struct task_ctx *tc)
{
	tc->remain = (s64)(tc->pass - update_global(-(s64)tc->tickets, 0, 0));
}

/* Another program may write into the map without queueing the task anew (S36). */
static void review_tickets(struct task_struct *p, struct task_ctx *tc)
{
	if (own_tickets(p) == tc->tickets)
		return;
	leave(tc);
	join(p, tc);
}

/* Comes before enqueue, and also for a task that goes straight to an idle CPU. */
void BPF_STRUCT_OPS(stride_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		join(p, tc);
}

void BPF_STRUCT_OPS(stride_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		leave(tc);
}

s32 BPF_STRUCT_OPS(stride_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_and_insert(p, prev_cpu, wake_flags, slice_ns);
}

void BPF_STRUCT_OPS(stride_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	tc->has_yielded = false;
	scx_bpf_dsq_insert_vtime(p, STRIDE_DSQ, slice_ns, tc->pass, enq_flags);
	kick_idle_cpu(p, enq_flags);
}

/* @prev is in no queue: it is compared with the first task of the queue. */
void BPF_STRUCT_OPS(stride_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);

	if (!prev || !tc) {
		scx_bpf_dsq_move_to_local(STRIDE_DSQ);
		return;
	}
	tc->pass += pass_of(exec_ns_since(prev, &tc->exec_ns), tc->tickets);
	review_tickets(prev, tc);
	if ((tc->has_yielded || is_queued_before(STRIDE_DSQ, cpu, tc->pass + 1)) &&
	    scx_bpf_dsq_move_to_local(STRIDE_DSQ))
		return;
	/* It continues, with the policy's slice and not of the kernel's length. */
	tc->has_yielded = false;
	advance_furthest(tc->pass);
	scx_bpf_task_set_slice(prev, slice_ns);
}

void BPF_STRUCT_OPS(stride_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	tc->exec_ns = p->se.sum_exec_runtime;
	advance_furthest(tc->pass);
	tc->offset_ns = scx_bpf_now() - tc->exec_ns;
	update_global(0, 1, 0);
}

void BPF_STRUCT_OPS(stride_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	tc->pass += pass_of(exec_ns_since(p, &tc->exec_ns), tc->tickets);
	update_global(0, -1, (s64)(scx_bpf_now() - tc->exec_ns - tc->offset_ns));
	if (runnable)
		review_tickets(p, tc);
}

bool BPF_STRUCT_OPS(stride_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	return yield_slice(from, to, tc ? &tc->has_yielded : NULL);
}

s32 BPF_STRUCT_OPS(stride_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return create_task_ctx(p) ? 0 : -ENOMEM;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(stride_init)
{
	return scx_bpf_create_dsq(STRIDE_DSQ, -1);
}

SCX_OPS_DEFINE(stride_ops,
	       .select_cpu = (void *)stride_select_cpu,
	       .runnable = (void *)stride_runnable,
	       .quiescent = (void *)stride_quiescent,
	       .enqueue = (void *)stride_enqueue,
	       .dispatch = (void *)stride_dispatch,
	       .running = (void *)stride_running,
	       .stopping = (void *)stride_stopping,
	       .yield = (void *)stride_yield,
	       .init_task = (void *)stride_init_task,
	       .init = (void *)stride_init,
	       .name = "stride");
