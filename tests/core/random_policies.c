/* SPDX-License-Identifier: MIT */
/*
 * random_policies.c - policies that use every way through the core.
 *
 * Not examples: each does what a policy may do, at random, so that the ways
 * meet. All share the callbacks at the top, which check that the core tells a
 * policy a consistent story. A policy's own data are atomic or under a
 * bpf_spin_lock, so that every race that is found is the core's.
 *
 * Read next: random_held.c, those that hold tasks themselves.
 */
#include "random_policy.h"
#include <scx/task_attr.h>

u64 random_counts[NR_COUNTS];

/* ---- the story that every policy is told --------------------------------- */

void seen_runnable(struct task_struct *p, u64 enq_flags)
{
	(void)enq_flags;
	CHECK(model(p)->seen == SEEN_OFF, "[%d] seen %d", p->pid, model(p)->seen);
	model(p)->seen = SEEN_READY;
}

void seen_running(struct task_struct *p)
{
	CHECK(model(p)->seen == SEEN_READY, "[%d] seen %d", p->pid, model(p)->seen);
	CHECK(!model(p)->in_custody, "[%d] runs, no dequeue() came", p->pid);
	model(p)->seen = SEEN_RUN;
}

void seen_stopping(struct task_struct *p, bool runnable)
{
	CHECK(model(p)->seen == SEEN_RUN, "[%d] seen %d", p->pid, model(p)->seen);
	model(p)->seen = runnable ? SEEN_READY : SEEN_STOPPED;
}

void seen_quiescent(struct task_struct *p, u64 deq_flags)
{
	(void)deq_flags;
	CHECK(model(p)->seen == SEEN_READY || model(p)->seen == SEEN_STOPPED, "[%d] seen %d",
	      p->pid, model(p)->seen);
	CHECK(!model(p)->in_custody, "[%d] no dequeue() came", p->pid);
	model(p)->seen = SEEN_OFF;
}

void seen_dequeue(struct task_struct *p, u64 deq_flags)
{
	(void)deq_flags;
	count(COUNT_DEQUEUE);
	CHECK(model(p)->in_custody, "[%d] dequeue() twice, or without custody", p->pid);
	model(p)->in_custody = false;
}

/* To be called by enqueue() before the policy keeps @p or queues it. */
void seen_custody(struct task_struct *p)
{
	count(COUNT_CUSTODY);
	CHECK(!model(p)->in_custody, "[%d] enqueued twice", p->pid);
	CHECK(model(p)->seen == SEEN_READY, "[%d] seen %d", p->pid, model(p)->seen);
	model(p)->in_custody = true;
}

/* ---- task storage, used by all with init_task ---------------------------- */

struct random_contexts contexts SEC(".maps");

s32 seen_init_task(struct task_struct *p, struct scx_init_task_args *args)
{
	struct context *c = bpf_task_storage_get(&contexts, p, NULL, 0);

	(void)args;
	CHECK(!c, "[%d] inherits another task's storage", p->pid);
	c = bpf_task_storage_get(&contexts, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	CHECK(c && !c->magic && !c->vtime);
	c->magic = CONTEXT_MAGIC + (u32)p->pid;
	return 0;
}

void seen_exit_task(struct task_struct *p, struct scx_exit_task_args *args)
{
	struct context *c = bpf_task_storage_get(&contexts, p, NULL, 0);

	(void)args;
	CHECK(c && c->magic == CONTEXT_MAGIC + (u32)p->pid);
}

s32 create_dsqs(void)
{
	s32 err = scx_bpf_create_dsq(SHARED_DSQ, -1);

	CHECK(!err, "%d", err);
	CHECK(!scx_bpf_create_dsq(OTHER_DSQ, -1));
	for (u32 i = 0; i < scx_bpf_nr_cpu_ids(); i++)
		CHECK(!scx_bpf_create_dsq(CPU_DSQ + i, -1));
	return 0;
}

/* ---- fifo ---------------------------------------------------------------- */

s32 default_select_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle) {
		count(COUNT_DIRECT);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, 0);
	}
	return cpu;
}

void kick_idle(struct task_struct *p)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	if (cpu >= 0) {
		count(COUNT_KICK);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
}

static void fifo_enqueue(struct task_struct *p, u64 enq_flags)
{
	count(COUNT_ENQUEUE);
	seen_custody(p);
	scx_bpf_dsq_insert(p, SHARED_DSQ, SLICE_NS, enq_flags);
	kick_idle(p);
}

static void fifo_dispatch(s32 cpu, struct task_struct *prev)
{
	(void)cpu;
	(void)prev;
	count(COUNT_DISPATCH);
	scx_bpf_dsq_move_to_local(SHARED_DSQ);
}

static struct sched_ext_ops fifo_ops = {
	SEEN,
	.running = seen_running,
	.name = "fifo",
	.init = create_dsqs,
	.select_cpu = default_select_cpu,
	.enqueue = fifo_enqueue,
	.dispatch = fifo_dispatch,
};

/* ---- vtime --------------------------------------------------------------- */

static void vtime_enqueue(struct task_struct *p, u64 enq_flags)
{
	struct context *c = bpf_task_storage_get(&contexts, p, NULL, 0);
	struct task_attr *attr = task_attr(p);

	count(COUNT_ENQUEUE);
	CHECK(c && c->magic == CONTEXT_MAGIC + (u32)p->pid);
	/* Only the task itself sets it, and it does not run now. */
	CHECK(!attr || attr->tickets == (u32)p->pid, "[%d] has %u tickets", p->pid, attr->tickets);
	c->vtime += 1 + below(100) * 10000 / p->scx.weight;
	seen_custody(p);
	scx_bpf_dsq_insert_vtime(p, SHARED_DSQ, SLICE_NS, c->vtime, enq_flags);
	kick_idle(p);
}

static struct sched_ext_ops vtime_ops = {
	SEEN,
	.running = seen_running,
	.name = "vtime",
	.init = create_dsqs,
	.enqueue = vtime_enqueue,
	.dispatch = fifo_dispatch,
};

/* ---- percpu: local queues of other CPUs, given back, and stealing -------------------- */

static void percpu_enqueue(struct task_struct *p, u64 enq_flags)
{
	u32 nr = scx_bpf_nr_cpu_ids();
	u32 cpu = below(nr);
	u32 dice = below(8);

	count(enq_flags & SCX_ENQ_REENQ ? COUNT_REENQUEUED : COUNT_ENQUEUE);
	while (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		cpu = (cpu + 1) % nr;
	if (dice < 4) {
		count(COUNT_DIRECT);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cpu, SLICE_NS,
				   enq_flags | (dice == 0 ? SCX_ENQ_PREEMPT : 0) |
					   (dice & 1 ? SCX_ENQ_IMMED : 0));
		return;
	}
	seen_custody(p);
	scx_bpf_dsq_insert(p, CPU_DSQ + cpu, SLICE_NS, enq_flags | (dice == 4 ? SCX_ENQ_HEAD : 0));
	count(COUNT_KICK);
	scx_bpf_kick_cpu((s32)cpu, dice & 1 ? SCX_KICK_IDLE : 0);
}

static void percpu_dispatch(s32 cpu, struct task_struct *prev)
{
	u32 nr = scx_bpf_nr_cpu_ids();

	(void)prev;
	count(COUNT_DISPATCH);
	if (!below(4))
		scx_bpf_reenqueue_local();
	for (u32 i = 0; i < nr; i++) {
		if (scx_bpf_dsq_move_to_local(CPU_DSQ + ((u32)cpu + i) % nr))
			return;
	}
}

static struct sched_ext_ops percpu_ops = {
	SEEN,
	.running = seen_running,
	.name = "percpu",
	.init = create_dsqs,
	.enqueue = percpu_enqueue,
	.dispatch = percpu_dispatch,
};

/* ---- walk: iterate, and move what one finds ------------------------------ */

struct clock {
	struct bpf_timer timer;
	u64 nr_fired;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct clock);
} clocks SEC(".maps");

/* Move some tasks from one queue to another, whichever way they are walked. */
static void stir(u64 from, u64 to)
{
	u64 flags = below(2) ? SCX_DSQ_ITER_REV : 0;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, from, flags) {
		if (below(3))
			continue;
		if (below(2))
			scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, SLICE_NS * 2);
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, to, 0))
			count(COUNT_MOVED);
	}
}

/* Queues that come and go while others look for them. */
static void make_and_break(void)
{
	u64 id = BRIEF_DSQ + below(4);

	if (below(2))
		scx_bpf_create_dsq(id, -1);
	else
		scx_bpf_destroy_dsq(id);
}

static int walk_timer(void *map, u32 *key, struct clock *c)
{
	CHECK(map && c);
	(void)key;
	count(COUNT_TIMER);
	__atomic_fetch_add(&c->nr_fired, 1, __ATOMIC_RELAXED);
	stir(SHARED_DSQ, OTHER_DSQ);
	stir(OTHER_DSQ, SCX_DSQ_GLOBAL);
	make_and_break();
	for (u32 i = 0; i < scx_bpf_nr_cpu_ids(); i++)
		scx_bpf_kick_cpu((s32)i, SCX_KICK_IDLE);
	CHECK(!bpf_timer_start(&c->timer, 100000 + below(500000), 0));
	return 0;
}

static s32 walk_init(void)
{
	u32 zero = 0;
	struct clock *c = bpf_map_lookup_elem(&clocks, &zero);

	create_dsqs();
	CHECK(!bpf_timer_init(&c->timer, &clocks, CLOCK_MONOTONIC));
	CHECK(!bpf_timer_set_callback(&c->timer, walk_timer));
	CHECK(!bpf_timer_start(&c->timer, 1000, 0));
	return 0;
}

static void walk_dispatch(s32 cpu, struct task_struct *prev)
{
	u64 flags = below(2) ? SCX_DSQ_ITER_REV : 0;
	u32 nr = scx_bpf_nr_cpu_ids();
	struct task_struct *p;

	(void)prev;
	count(COUNT_DISPATCH);
	bpf_for_each(scx_dsq, p, BRIEF_DSQ + below(4), flags)
		CHECK(!p, "nobody queues there");
	bpf_for_each(scx_dsq, p, SHARED_DSQ, flags) {
		u64 to = SCX_DSQ_LOCAL;
		u32 target = (u32)cpu;
		/* Its owner may be changing it: then the move fails (S27). */
		const struct cpumask *mask = READ_ONCE(p->cpus_ptr);

		if (below(4) == 0) {
			target = below(nr);
			to = SCX_DSQ_LOCAL_ON | target;
		}
		if (!bpf_cpumask_test_cpu(target, mask) || is_migration_disabled(p))
			continue;
		if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, to, 0))
			continue;
		count(COUNT_MOVED);
		if (to == SCX_DSQ_LOCAL)
			return;
		scx_bpf_kick_cpu((s32)target, 0);
	}
	if (!below(4))
		stir(SHARED_DSQ, OTHER_DSQ);
	if (!scx_bpf_dsq_move_to_local(OTHER_DSQ))
		scx_bpf_dsq_move_to_local(SHARED_DSQ);
}

static struct sched_ext_ops walk_ops = {
	SEEN,
	.running = seen_running,
	.name = "walk",
	.init = walk_init,
	.select_cpu = default_select_cpu,
	.enqueue = fifo_enqueue,
	.dispatch = walk_dispatch,
};

/* ---- direct: everything is decided in select_cpu ------------------------- */

static s32 direct_select_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 cpu = scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, p->cpus_ptr,
					 below(2) ? SCX_PICK_IDLE_CORE : 0);

	if (cpu < 0)
		cpu = scx_bpf_pick_any_cpu(p->cpus_ptr, 0);
	if (below(4))
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | (u32)cpu, SLICE_NS, 0);
	else
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SLICE_NS, 0);
	count(COUNT_DIRECT);
	return below(2) ? cpu : prev_cpu;
}

static void direct_enqueue(struct task_struct *p, u64 enq_flags)
{
	count(COUNT_ENQUEUE);
	scx_bpf_dsq_insert(p, below(2) ? SCX_DSQ_GLOBAL : SCX_DSQ_LOCAL, SLICE_NS, enq_flags);
	kick_idle(p);
}

static struct sched_ext_ops direct_ops = {
	SEEN,
	.running = seen_running,
	.name = "direct",
	.init = create_dsqs,
	.select_cpu = direct_select_cpu,
	.enqueue = direct_enqueue,
};

/* ---- last: hears of the last runnable task ------------------------------- */

static void last_enqueue(struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);

	count(COUNT_ENQUEUE);
	if (enq_flags & SCX_ENQ_LAST) {
		count(COUNT_LAST);
		if (below(2)) {
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, 0);
			return;
		}
	}
	seen_custody(p);
	scx_bpf_dsq_insert(p, SHARED_DSQ, SLICE_NS, enq_flags);
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

static struct sched_ext_ops last_ops = {
	SEEN,
	.running = seen_running,
	.name = "last",
	.init = create_dsqs,
	.flags = SCX_OPS_ENQ_LAST,
	.select_cpu = default_select_cpu,
	.enqueue = last_enqueue,
	.dispatch = fifo_dispatch,
};

/* ---- preempt: kicks, heads of queues, slices, own idle tracking ---------- */

static void preempt_tick(struct task_struct *p)
{
	if (!below(4))
		scx_bpf_task_set_slice(p, 0);
	if (!below(8))
		scx_bpf_kick_cpu((s32)below(scx_bpf_nr_cpu_ids()), SCX_KICK_PREEMPT);
}

static bool preempt_yield(struct task_struct *from, struct task_struct *to)
{
	(void)to;
	if (below(2))
		scx_bpf_task_set_slice(from, 0);
	return true;
}

static void preempt_enqueue(struct task_struct *p, u64 enq_flags)
{
	u32 dice = below(6);

	count(COUNT_ENQUEUE);
	if (dice == 0) {
		count(COUNT_DIRECT);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	seen_custody(p);
	scx_bpf_dsq_insert(p, SHARED_DSQ, dice == 1 ? SCX_SLICE_INF : SLICE_NS,
			   enq_flags | (dice == 2 ? SCX_ENQ_HEAD : 0));
	count(COUNT_KICK);
	scx_bpf_kick_cpu((s32)below(scx_bpf_nr_cpu_ids()),
			 dice & 1 ? SCX_KICK_PREEMPT : SCX_KICK_IDLE);
}

static u64 nr_idle_now; /* atomic */

static void preempt_update_idle(s32 cpu, bool idle)
{
	u64 nr = __atomic_add_fetch(&nr_idle_now, idle ? 1 : (u64)-1, __ATOMIC_RELAXED);

	CHECK(nr <= scx_bpf_nr_cpu_ids(), "%lld idle", (long long)nr);
	if (idle && scx_bpf_dsq_nr_queued(SHARED_DSQ) > 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

static struct sched_ext_ops preempt_ops = {
	SEEN,
	.running = seen_running,
	.name = "preempt",
	.init = create_dsqs,
	.enqueue = preempt_enqueue,
	.dispatch = fifo_dispatch,
	.tick = preempt_tick,
	.yield = preempt_yield,
	.update_idle = preempt_update_idle,
};

/* -------------------------------------------------------------------------- */

const struct random_policy random_policies[] = {
	{ .name = "none" },
	{ .name = "fifo", .ops = &fifo_ops },
	{ .name = "vtime", .ops = &vtime_ops },
	{ .name = "percpu", .ops = &percpu_ops },
	{ .name = "pids", .ops = &pids_ops, .no_affinity = true, .holds_pointers = true },
	{ .name = "late", .ops = &late_ops, .no_affinity = true, .holds_pointers = true },
	{ .name = "walk", .ops = &walk_ops, .holds_pointers = true },
	{ .name = "direct", .ops = &direct_ops },
	{ .name = "last", .ops = &last_ops },
	{ .name = "preempt", .ops = &preempt_ops, .counts_idle = true },
	{ .name = "faulty", .ops = &faulty_ops, .holds_pointers = true, .may_fail = true },
};
const u32 nr_random_policies = ARRAY_SIZE(random_policies);

struct sl_policy random_policy_of(const struct random_policy *chosen)
{
	return (struct sl_policy){
		.ops = chosen->ops,
		.sites = __start_sl_map_sites,
		.sites_end = __stop_sl_map_sites,
	};
}

/* Idle CPUs can be counted only while nobody is in the core. */
void random_policies_reset(bool is_live)
{
	nr_idle_now = 0;
	for (u32 i = 0; i < sl_core.nr_cpus && !is_live; i++)
		nr_idle_now += !sl_core.cpus[i].curr;
	random_held_reset();
}
