/* SPDX-License-Identifier: MIT */
/*
 * random_held.c - policies that hold tasks themselves, and name them late.
 *
 * The same task is named twice, after its turn, or after its end: then the core
 * must drop what they say (S21).
 *
 * Read next: random_ops.c, which runs them.
 */
#include "random_policy.h"

/* ---- pids: the policy's own queue, in a map ------------------------------ */

#define RING 4096
struct ring {
	struct bpf_spin_lock lock;
	u32 head, tail;
	s32 pids[RING];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ring);
} ring SEC(".maps");

static struct ring *the_ring(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&ring, &zero);
}

static void push_pid(s32 pid)
{
	struct ring *r = the_ring();

	bpf_spin_lock(&r->lock);
	CHECK(r->tail - r->head < RING, "the test's ring is too small");
	r->pids[r->tail++ % RING] = pid;
	bpf_spin_unlock(&r->lock);
}

static s32 pop_pid(void)
{
	struct ring *r = the_ring();
	s32 pid = -1;

	bpf_spin_lock(&r->lock);
	if (r->head != r->tail)
		pid = r->pids[r->head++ % RING];
	bpf_spin_unlock(&r->lock);
	return pid;
}

static void pids_enqueue(struct task_struct *p, u64 enq_flags)
{
	count(COUNT_ENQUEUE);
	seen_custody(p);
	push_pid(p->pid);
	/* Another time, so that stale dispatches happen. */
	if (!below(8))
		push_pid(p->pid);
	if (enq_flags & SCX_ENQ_CPU_SELECTED)
		kick_idle(p);
}

static void pids_dispatch(s32 cpu, struct task_struct *prev)
{
	u32 nr_wanted = 1 + below(4);
	struct task_struct *p;

	(void)prev;
	count(COUNT_DISPATCH);
	scx_bpf_dsq_move_to_local(SHARED_DSQ);
	for (u32 i = 0; i < nr_wanted && scx_bpf_dispatch_nr_slots(); i++) {
		s32 pid = pop_pid();

		if (pid < 0)
			break;
		p = bpf_task_from_pid(pid);
		if (!p)
			continue;
		switch (below(4)) {
		case 0:
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, 0);
			break;
		case 1:
			scx_bpf_dsq_insert(p,
					   SCX_DSQ_LOCAL_ON |
						   (((u32)cpu + 1) % scx_bpf_nr_cpu_ids()),
					   SLICE_NS, 0);
			break;
		case 2:
			scx_bpf_dsq_insert(p, SHARED_DSQ, SLICE_NS, 0);
			break;
		default:
			scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SLICE_NS, 0);
		}
		if (!below(16)) {
			/* Thinks better of it: back into the ring. */
			scx_bpf_dispatch_cancel();
			push_pid(pid);
		}
		bpf_task_release(p);
	}
	scx_bpf_dsq_move_to_local(SHARED_DSQ);
}

struct sched_ext_ops pids_ops = {
	SEEN,
	.running = seen_running,
	.name = "pids",
	.init = create_dsqs,
	.enqueue = pids_enqueue,
	.dispatch = pids_dispatch,
	.dispatch_max_batch = 8,
};

/* ---- late: dispatches pointers to tasks that may be no more --------------- */

#define NR_LATE 64
static struct task_struct *late[NR_LATE]; /* atomic */

static void late_enqueue(struct task_struct *p, u64 enq_flags)
{
	count(COUNT_ENQUEUE);
	seen_custody(p);
	/* This one makes it run; the other comes whenever it comes. */
	push_pid(p->pid);
	__atomic_store_n(&late[below(NR_LATE)], p, __ATOMIC_RELEASE);
	if (enq_flags & SCX_ENQ_CPU_SELECTED)
		kick_idle(p);
}

static void late_dispatch(s32 cpu, struct task_struct *prev)
{
	u32 nr_late = below(4);
	s32 pid = pop_pid();
	struct task_struct *p = pid < 0 ? NULL : bpf_task_from_pid(pid);

	(void)cpu;
	(void)prev;
	count(COUNT_DISPATCH);
	if (p)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, 0);
	for (u32 i = 0; i < nr_late; i++) {
		p = __atomic_load_n(&late[below(NR_LATE)], __ATOMIC_ACQUIRE);
		if (!p)
			continue;
		if (!READ_ONCE(sl_task_of(p)->is_attached))
			count(COUNT_STALE);
		/* The storage is that of whoever has the memory now. */
		if (below(2))
			bpf_task_storage_get(&contexts, p, NULL, 0);
		scx_bpf_dsq_insert_vtime(p, below(2) ? OTHER_DSQ : SHARED_DSQ, SLICE_NS,
					 below(1000), 0);
	}
	if (!scx_bpf_dsq_move_to_local(OTHER_DSQ))
		scx_bpf_dsq_move_to_local(SHARED_DSQ);
}

struct sched_ext_ops late_ops = {
	SEEN,
	.running = seen_running,
	.name = "late",
	.init = create_dsqs,
	.enqueue = late_enqueue,
	.dispatch = late_dispatch,
};

/* ---- faulty: goes wrong at a random moment ------------------------------- */

static u64 faulty_countdown; /* atomic */

static bool is_the_moment(void)
{
	return __atomic_fetch_sub(&faulty_countdown, 1, __ATOMIC_RELAXED) == 0;
}

static s32 faulty_select_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	if (is_the_moment())
		return 9999;
	return default_select_cpu(p, prev_cpu, wake_flags);
}

static void faulty_enqueue(struct task_struct *p, u64 enq_flags)
{
	count(COUNT_ENQUEUE);
	if (is_the_moment()) {
		/* Into a queue that is not, or nowhere at all. */
		if (below(2))
			scx_bpf_dsq_insert(p, 0xbad, SLICE_NS, enq_flags);
		else
			scx_bpf_error("lost [%d]", p->pid);
		return;
	}
	seen_custody(p);
	if (below(2)) {
		push_pid(p->pid);
	} else if (below(2)) {
		scx_bpf_dsq_insert_vtime(p, OTHER_DSQ, SLICE_NS, below(1000), enq_flags);
	} else {
		scx_bpf_dsq_insert(p, SHARED_DSQ, SLICE_NS, enq_flags);
	}
	kick_idle(p);
}

static void faulty_dispatch(s32 cpu, struct task_struct *prev)
{
	s32 pid = pop_pid();
	struct task_struct *p = pid < 0 ? NULL : bpf_task_from_pid(pid);

	(void)cpu;
	(void)prev;
	count(COUNT_DISPATCH);
	if (p)
		scx_bpf_dsq_insert(p, SHARED_DSQ, SLICE_NS, 0);
	if (is_the_moment()) {
		/* A queue goes while others insert into it, or just words. */
		if (below(2))
			scx_bpf_destroy_dsq(OTHER_DSQ);
		else
			scx_bpf_error("dispatch fails on cpu %d", cpu);
	}
	if (!scx_bpf_dsq_move_to_local(OTHER_DSQ))
		scx_bpf_dsq_move_to_local(SHARED_DSQ);
}

static void faulty_running(struct task_struct *p)
{
	seen_running(p);
	if (is_the_moment())
		scx_bpf_error("running [%d]", p->pid);
}

static void faulty_dump(struct scx_dump_ctx *ctx)
{
	struct task_struct *p;

	scx_bpf_dump("exit kind %d at %llu ns\n", ctx->kind, ctx->at_ns);
	bpf_for_each(scx_dsq, p, SHARED_DSQ, 0)
		scx_bpf_dump("%d ", p->pid);
}

static void faulty_dump_task(struct scx_dump_ctx *ctx, struct task_struct *p)
{
	struct context *c = bpf_task_storage_get(&contexts, p, NULL, 0);

	(void)ctx;
	CHECK(!c || c->magic == CONTEXT_MAGIC + (u32)p->pid);
}

struct sched_ext_ops faulty_ops = {
	SEEN,
	.name = "faulty",
	.init = create_dsqs,
	.select_cpu = faulty_select_cpu,
	.enqueue = faulty_enqueue,
	.dispatch = faulty_dispatch,
	.running = faulty_running,
	.dump = faulty_dump,
	.dump_task = faulty_dump_task,
};

void random_held_reset(void)
{
	memset(late, 0, sizeof(late));
	faulty_countdown = below(600);
}
