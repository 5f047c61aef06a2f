/* SPDX-License-Identifier: MIT */
/*
 * kfuncs_dsq.c - what a policy calls to work on dispatch queues.
 *
 * Thin: checks what the policy gives, then uses dispatch.c and dsq.c. Names and
 * meanings are Linux's; include/scx/native.h lists them.
 *
 * Read next: kfuncs_cpu.c.
 */
#include "core.h"

/* Context: dsqs_lock held; no such id in the table, which has room. */
static void enter(struct sl_dsq *q)
{
	u32 slot = sl_dsq_slot(q->id);

	while (sl_core.dsqs[slot])
		slot = (slot + 1) % (2 * SL_DSQS_MAX);
	sl_core.nr_dsqs++;
	smp_store_release(&sl_core.dsqs[slot], q);
}

/*
 * Take @q out of the table: whoever stands behind it moves up, so that a search
 * still ends at the first hole. Context: dsqs_lock held.
 */
static void leave(struct sl_dsq *q)
{
	u32 hole = sl_dsq_slot(q->id);
	struct sl_dsq *next;
	u32 from, way, need;

	while (sl_core.dsqs[hole] != q)
		hole = (hole + 1) % (2 * SL_DSQS_MAX);
	from = hole;
	for (;;) {
		from = (from + 1) % (2 * SL_DSQS_MAX);
		next = sl_core.dsqs[from];
		if (!next)
			break;
		/* It may move if its search comes by the hole. */
		way = (from - sl_dsq_slot(next->id)) % (2 * SL_DSQS_MAX);
		need = (from - hole) % (2 * SL_DSQS_MAX);
		if (way < need)
			continue;
		smp_store_release(&sl_core.dsqs[hole], next);
		hole = from;
	}
	smp_store_release(&sl_core.dsqs[hole], NULL);
	sl_core.nr_dsqs--;
}

/*
 * What was a queue before becomes one again, under its lock: another CPU may be
 * about to take it. It goes on counting insertions, for its walks (S27).
 * Context: dsqs_lock held.
 */
static void revive(struct sl_dsq *q, u64 id)
{
	sl_lock(&q->lock);
	SL_ASSERT(q->is_dead && !q->nr);
	WRITE_ONCE(q->id, id);
	WRITE_ONCE(q->is_dead, false);
	sl_unlock(&q->lock);
}

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node)
{
	struct sl_dsq *q;
	s32 err = 0;

	(void)node;
	if (dsq_id & SCX_DSQ_FLAG_BUILTIN)
		return -22;
	q = sl_host_alloc(sizeof(*q));
	if (!q)
		return -12;
	sl_dsq_init(q, dsq_id, -1);
	sl_lock(&sl_core.dsqs_lock);
	if (sl_dsq_search(dsq_id)) {
		err = -17;
	} else if (sl_core.nr_dsqs == SL_DSQS_MAX) {
		err = -28;
	} else if (sl_core.free_dsqs) {
		struct sl_dsq *old = sl_core.free_dsqs;

		sl_core.free_dsqs = old->next_free;
		revive(old, dsq_id);
		enter(old);
	} else {
		enter(q);
		q = NULL;
	}
	sl_unlock(&sl_core.dsqs_lock);
	if (q)
		sl_host_free(q, sizeof(*q));
	return err;
}

/*
 * The queue is marked dead and found no more; its memory is the next queue's, or
 * stays until the policy is unloaded, because another CPU may be looking at it.
 */
void scx_bpf_destroy_dsq(u64 dsq_id)
{
	struct sl_dsq *q = sl_dsq_find(sl_this_cpu(), dsq_id);
	bool is_ours = false;

	if (!q)
		return;
	sl_lock(&q->lock);
	if (sl_dsq_is(q, dsq_id)) {
		is_ours = !q->nr;
		if (q->nr)
			sl_policy_error(SCX_EXIT_ERROR, q->first->p.pid,
					"destroying DSQ 0x%llx with %u tasks on it",
					(unsigned long long)dsq_id, q->nr);
		else
			WRITE_ONCE(q->is_dead, true);
	}
	sl_unlock(&q->lock);
	if (!is_ours)
		return;
	sl_lock(&sl_core.dsqs_lock);
	leave(q);
	q->next_free = sl_core.free_dsqs;
	sl_core.free_dsqs = q;
	sl_unlock(&sl_core.dsqs_lock);
}

/* S2: the global queue is not a policy's to look into. */
static struct sl_dsq *find_countable(u64 id)
{
	u64 cpu = id & SCX_DSQ_LOCAL_CPU_MASK;

	if (!(id & SCX_DSQ_FLAG_BUILTIN))
		return sl_dsq_find(sl_this_cpu(), id);
	if (id == SCX_DSQ_LOCAL)
		return &sl_this_cpu()->local;
	if ((id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON && cpu < sl_core.nr_cpus)
		return &sl_core.cpus[cpu].local;
	return NULL;
}

/* Return: length, a hint when other CPUs are at work; -ENOENT. */
s32 scx_bpf_dsq_nr_queued(u64 dsq_id)
{
	struct sl_dsq *q = find_countable(dsq_id);

	return q ? (s32)READ_ONCE(q->nr) : -2;
}

struct task_struct *scx_bpf_dsq_peek(u64 dsq_id)
{
	struct sl_dsq *q = sl_dsq_find(sl_this_cpu(), dsq_id);
	struct sl_task *t;

	if (unlikely(!q)) {
		sl_policy_error(SCX_EXIT_ERROR, 0, "peek %s DSQ 0x%llx",
				dsq_id & SCX_DSQ_FLAG_BUILTIN ?
				"disallowed on builtin" : "on non-existent",
				(unsigned long long)dsq_id);
		return NULL;
	}
	t = smp_load_acquire(&q->first);
	return t ? &t->p : NULL;
}

/* S10: a slice of 0 keeps what is left, or becomes the smallest there is. */
sl_inline void give_slice(struct sl_task *t, u64 slice)
{
	if (likely(slice))
		sl_set_slice(t, slice);
	else if (!sl_slice(t))
		sl_set_slice(t, 1);
	/* A stale insertion (S21) may meet a task that runs. */
	if (unlikely(READ_ONCE(t->state) == SL_TASK_RUNNING))
		sl_host_slice_changed(t);
}

__flatten bool scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice,
			u64 enq_flags)
{
	struct sl_task *t = sl_task_of(p);

	if (!sl_verdict(t, dsq_id, enq_flags, false))
		return false;
	give_slice(t, slice);
	return true;
}

bool scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice,
			      u64 vtime, u64 enq_flags)
{
	struct sl_task *t = sl_task_of(p);

	if (!sl_verdict(t, dsq_id, enq_flags, true))
		return false;
	give_slice(t, slice);
	WRITE_ONCE(t->p.scx.dsq_vtime, vtime);
	return true;
}

__flatten bool sl_dsq_move_to_local(u64 dsq_id, u64 enq_flags)
{
	struct sl_cpu *here = sl_this_cpu();
	struct sl_dsq *q;

	(void)enq_flags;
	if (unlikely(here->callback != SL_IN_dispatch)) {
		sl_policy_error(SCX_EXIT_ERROR, 0,
				"scx_bpf_dsq_move_to_local() called outside ops.dispatch()");
		return false;
	}
	if (unlikely(here->nr_inserts))
		sl_flush_inserts(here);
	q = sl_dsq_find(here, dsq_id);
	if (!q) {
		sl_policy_error(SCX_EXIT_ERROR, 0,
				"invalid DSQ ID 0x%llx in scx_bpf_dsq_move_to_local()",
				(unsigned long long)dsq_id);
		return false;
	}
	/*
	 * It comes from another CPU's cache while the lock is taken. It is not read
	 * before: without the lock another CPU may run it to its end and free it.
	 */
	sl_host_prefetch(READ_ONCE(q->first));
	if (!sl_move_to_local(here, q, dsq_id))
		return false;
	here->nr_moved++;
	return true;
}

int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags)
{
	struct sl_dsq *q = dsq_id & SCX_DSQ_FLAG_BUILTIN ? NULL :
							   sl_dsq_find(sl_this_cpu(), dsq_id);

	__builtin_memset(it, 0, sizeof(*it));
	it->flags = flags;
	if (!q)
		return -2;
	sl_lock(&q->lock);
	if (!sl_dsq_is(q, dsq_id)) {
		sl_unlock(&q->lock);
		return -2;
	}
	it->dsq = q;
	it->next = flags & SCX_DSQ_ITER_REV ? q->last : q->first;
	it->seq = q->seq;
	it->link = q->walks;
	q->walks = it;
	sl_unlock(&q->lock);
	return 0;
}

struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it)
{
	struct sl_dsq *q = it->dsq;
	struct sl_task *t;

	it->has_slice = false;
	it->has_vtime = false;
	if (!q)
		return NULL;
	sl_lock(&q->lock);
	/* Tasks inserted since the walk began are not part of it (S27). */
	for (t = it->next; t && t->dsq_seq >= it->seq;)
		t = it->flags & SCX_DSQ_ITER_REV ? t->prev : t->next;
	if (t)
		it->next = it->flags & SCX_DSQ_ITER_REV ? t->prev : t->next;
	else
		it->next = NULL;
	sl_unlock(&q->lock);
	return t ? &t->p : NULL;
}

void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it)
{
	struct sl_dsq *q = it->dsq;
	struct bpf_iter_scx_dsq **link;

	if (!q)
		return;
	sl_lock(&q->lock);
	for (link = &q->walks; *link != it; link = &(*link)->link)
		;
	*link = it->link;
	sl_unlock(&q->lock);
	it->dsq = NULL;
}

void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice)
{
	it->slice = slice;
	it->has_slice = true;
}

void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime)
{
	it->vtime = vtime;
	it->has_vtime = true;
}

/*
 * Move @p from the walked queue. Fails, without harm, if it has left the queue
 * since the walk saw it.
 */
static bool move(struct bpf_iter_scx_dsq *it, struct task_struct *p,
		 u64 dsq_id, u64 enq_flags, bool by_vtime)
{
	struct sl_cpu *here = sl_this_cpu();
	struct sl_task *t = sl_task_of(p);
	struct sl_dsq *from = it->dsq;
	bool is_there;

	/* Where locks are held, they must be those of dispatch. */
	if (here->callback != SL_IN_dispatch && here->callback != SL_IN_timer &&
	    here->callback != SL_IN_init && here->callback != SL_IN_init_task) {
		sl_policy_error(SCX_EXIT_ERROR, p->pid,
				"scx_bpf_dsq_move() called from ops.%s()",
				sl_callback_name(here->callback) ?: "?");
		return false;
	}
	if (!from)
		return false;
	sl_lock(&from->lock);
	is_there = READ_ONCE(t->dsq) == from && t->dsq_seq < it->seq;
	if (is_there) {
		sl_set_ops_state(t, SL_OPSS_DISPATCHING);
		sl_dsq_remove(from, t);
		t->from_dsq_id = from->id;
		if (it->has_slice)
			sl_set_slice(t, it->slice);
		if (it->has_vtime)
			WRITE_ONCE(t->p.scx.dsq_vtime, it->vtime);
	}
	sl_unlock(&from->lock);
	it->has_slice = false;
	it->has_vtime = false;
	if (is_there)
		sl_place(here, t, dsq_id, enq_flags, by_vtime);
	return is_there;
}

bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p,
		      u64 dsq_id, u64 enq_flags)
{
	return move(it, p, dsq_id, enq_flags, false);
}

bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p,
			    u64 dsq_id, u64 enq_flags)
{
	return move(it, p, dsq_id, enq_flags, true);
}

u32 scx_bpf_dispatch_nr_slots(void)
{
	return sl_core.dispatch_batch - sl_this_cpu()->nr_inserts;
}

void scx_bpf_dispatch_cancel(void)
{
	struct sl_cpu *here = sl_this_cpu();

	if (here->nr_inserts)
		here->nr_inserts--;
	else
		sl_policy_error(SCX_EXIT_ERROR, 0, "dispatch buffer underflow");
}
