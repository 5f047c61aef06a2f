/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stride.bpf.c - shares by tickets, as the lottery's, but without chance.
 *
 * Every task has a pass, which grows with its CPU time, divided by its tickets. One
 * queue for all CPUs, in the order of passes; a free CPU takes the first task. The
 * global pass grows as that of a task would that held all tickets of those who are
 * runnable: it says where a task stands that has had just its share.
 *
 *	leaves:  remain := pass - global pass       (late or early, by how much)
 *	joins:   pass   := global pass + remain     (sleep neither earns nor costs)
 *	new:     remain := one slice's worth        (as if it had just run)
 *	tickets change: remain := remain * old / new
 *
 * Tickets are the task's attribute, changeable while it runs; without one they are
 * its weight, which is 100 at nice 0. A change while it runs acts at the end of its
 * slice.
 *
 * Good at: exact shares. Of any two tasks that want to run all the time, on one CPU,
 * neither is ever more than one slice off its part of what the two have had.
 * Bad at: response; a task that wakes up waits for its turn, and with few tickets
 * among many for long, while one with many tickets has its slices in a row. Who
 * yields lets one other go first, but keeps its claim, and may make it up later. On
 * several CPUs, a task whose tickets would be worth more than one CPU falls behind
 * for ever, and the others stand far ahead of the global pass: who joins there begins
 * no earlier than the furthest of them, and may forgo what remained for it.
 *
 * @knob slice_ns ns 1 10000000000  quantum (default 10 ms)
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @source C. A. Waldspurger and W. E. Weihl, Stride Scheduling: Deterministic
 *         Proportional-Share Resource Management, 1995
 *
 * Read next: policies/eevdf.bpf.c, where short slices need not wait for long ones.
 */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

#define STRIDE_DSQ 0
#define TICKETS_MAX (1ULL << 20)	/* of one task; keeps products in range */
#define PASS_SHIFT 16			/* passes are in 1/65536 ns per ticket */

const volatile u64 slice_ns = 10000000;

struct task_ctx {
	u64 pass;		/* wraps */
	s64 remain;		/* while it is not runnable */
	u64 tickets;		/* with which it is, or was last, counted */
	u64 exec_ns;		/* its CPU time when pass was last brought up to date */
	u64 run_exec_ns;	/* its CPU time when it last came to run ... */
	u64 run_ns;		/* ... and when that was */
	bool is_new;
	bool has_yielded;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/*
 * The global pass, and what it takes to bring it up to date at any time: since_ns is
 * the sum, over all running tasks, of the time up to which their run is in it.
 */
struct global {
	struct bpf_spin_lock lock;
	/* lock protects: */
	u64 pass;
	u64 tickets;		/* of all runnable tasks, the running ones included */
	u64 nr_running;
	u64 since_ns;		/* wraps */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct global);
} globals SEC(".maps");

/*
 * The furthest pass with which a task came to run; for several CPUs, see above. A
 * lost update is made up for by the next one.
 */
static u64 furthest_pass;

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static struct global *the_global(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&globals, &key);
}

static u64 own_tickets(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);
	u64 tickets = p->scx.weight;

	if (task_attr_given(attr, TASK_ATTR_TICKETS))
		tickets = attr->tickets;
	if (tickets > TICKETS_MAX)
		return TICKETS_MAX;
	return tickets ? tickets : 1;
}

static u64 pass_of(u64 ns, u64 tickets)
{
	return (ns << PASS_SHIFT) / tickets;
}

/* What remains is time, in tickets of another worth. BPF divides no signed numbers. */
static s64 rescale(s64 remain, u64 from_tickets, u64 to_tickets)
{
	if (remain < 0)
		return -(s64)((u64)-remain / to_tickets * from_tickets);
	return (s64)((u64)remain / to_tickets * from_tickets);
}

/* Context: the lock is held. */
static __always_inline void advance(struct global *g, u64 now_ns)
{
	u64 ran_ns = g->nr_running * now_ns - g->since_ns;

	g->since_ns = g->nr_running * now_ns;
	/* CPUs' clocks may differ by a little. */
	if (g->tickets && (s64)ran_ns > 0)
		g->pass += pass_of(ran_ns, g->tickets);
}

/* Charge the CPU time since the last call. */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	tc->pass += pass_of(p->se.sum_exec_runtime - tc->exec_ns, tc->tickets);
	tc->exec_ns = p->se.sum_exec_runtime;
}

/* @p comes to run, or is given another slice. */
static void advance_furthest(const struct task_ctx *tc)
{
	if (time_before(furthest_pass, tc->pass))
		furthest_pass = tc->pass;
}

/* Context: the task is charged, and has just left or is about to join. */
static void join(struct task_struct *p, struct task_ctx *tc)
{
	u64 now_ns = scx_bpf_now();
	u64 tickets = own_tickets(p);
	struct global *g = the_global();

	if (!g)
		return;
	if (tc->is_new)
		tc->remain = (s64)pass_of(slice_ns, tickets);
	else if (tickets != tc->tickets)
		tc->remain = rescale(tc->remain, tc->tickets, tickets);
	tc->is_new = false;
	tc->tickets = tickets;
	bpf_spin_lock(&g->lock);
	advance(g, now_ns);
	g->tickets += tickets;
	tc->pass = g->pass + (u64)tc->remain;
	bpf_spin_unlock(&g->lock);
	if (scx_bpf_nr_cpu_ids() > 1 && time_before(tc->pass, furthest_pass))
		tc->pass = furthest_pass;
}

static void leave(struct task_ctx *tc)
{
	u64 now_ns = scx_bpf_now();
	struct global *g = the_global();

	if (!g)
		return;
	bpf_spin_lock(&g->lock);
	advance(g, now_ns);
	g->tickets -= tc->tickets;
	tc->remain = (s64)(tc->pass - g->pass);
	bpf_spin_unlock(&g->lock);
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

s32 BPF_STRUCT_OPS(stride_select_cpu, struct task_struct *p, s32 prev_cpu,
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

void BPF_STRUCT_OPS(stride_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	tc->has_yielded = false;
	scx_bpf_dsq_insert_vtime(p, STRIDE_DSQ, slice_ns, tc->pass, enq_flags);
	if (enq_flags & SCX_ENQ_CPU_SELECTED)
		return;
	/* It made way for a task that is bound here; another CPU may be idle. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Whether a task that may run on @cpu comes before @pass; equals do, they waited. */
static bool is_one_before(s32 cpu, u64 pass)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, STRIDE_DSQ, 0) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return !time_before(pass, p->scx.dsq_vtime);
	}
	return false;
}

/* @prev is in no queue: it is compared with the first task of the queue. */
void BPF_STRUCT_OPS(stride_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = NULL;

	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		tc = task_ctx(prev);
	if (!prev || !tc) {
		scx_bpf_dsq_move_to_local(STRIDE_DSQ);
		return;
	}
	charge(prev, tc);
	review_tickets(prev, tc);
	if ((tc->has_yielded || is_one_before(cpu, tc->pass)) &&
	    scx_bpf_dsq_move_to_local(STRIDE_DSQ))
		return;
	/* It goes on, with a slice of ours and not of the kernel's length. */
	tc->has_yielded = false;
	advance_furthest(tc);
	scx_bpf_task_set_slice(prev, slice_ns);
}

void BPF_STRUCT_OPS(stride_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);
	struct global *g = the_global();
	u64 now_ns = scx_bpf_now();

	if (!tc || !g)
		return;
	tc->exec_ns = p->se.sum_exec_runtime;
	advance_furthest(tc);
	tc->run_exec_ns = tc->exec_ns;
	tc->run_ns = now_ns;
	bpf_spin_lock(&g->lock);
	advance(g, now_ns);
	g->nr_running++;
	g->since_ns += now_ns;
	bpf_spin_unlock(&g->lock);
}

/*
 * The global pass went by the clock. What was not the task's time, but the switch to
 * it, is taken back here, or the two would drift apart.
 */
void BPF_STRUCT_OPS(stride_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);
	struct global *g = the_global();
	u64 now_ns = scx_bpf_now();
	s64 excess_ns;

	if (!tc || !g)
		return;
	charge(p, tc);
	excess_ns = (s64)(now_ns - tc->run_ns) -
		    (s64)(tc->exec_ns - tc->run_exec_ns);
	bpf_spin_lock(&g->lock);
	advance(g, now_ns);
	g->nr_running--;
	g->since_ns -= now_ns;
	if (g->tickets && excess_ns > 0)
		g->pass -= pass_of((u64)excess_ns, g->tickets);
	bpf_spin_unlock(&g->lock);
	if (runnable)
		review_tickets(p, tc);
}

/* The first task in the queue goes next, even if it is behind. */
bool BPF_STRUCT_OPS(stride_yield, struct task_struct *from,
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

s32 BPF_STRUCT_OPS(stride_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, NULL,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tc)
		return -12;	/* ENOMEM */
	tc->is_new = true;
	tc->tickets = 1;	/* never 0, as it divides */
	return 0;
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
