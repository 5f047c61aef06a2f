/* SPDX-License-Identifier: MIT */
/*
 * dsq.c - dispatch queues: one queue, and the table that finds it by its id.
 *
 * A queue is a list in running order, and for queues ordered by virtual time a
 * tree beside it. FIFO insertion and removal cost O(1), vtime insertion O(log n)
 * expected. The tree is a treap whose priorities are a hash of the task's slot, so
 * its shape, and with it every run, depends on nothing but the input. The list
 * makes the first task and iteration O(1) per step for both kinds.
 *
 *	first -> t3 -> t1 -> t7 -> t2 <- last         the list
 *	              \ __|__ /
 *	                 root                          the tree over it
 *
 * Read next: idle.c.
 */
#include "core.h"

/* Internal flags, as on Linux; this one: insert by p->scx.dsq_vtime. */
#define SCX_ENQ_INTERNAL_MASK (0xffULL << 56)
#define SCX_ENQ_DSQ_PRIQ (1ULL << 57)

static void dsq_init(struct sl_dsq *q, u64 id, s32 cpu)
{
	*q = (struct sl_dsq){ .id = id, .cpu = cpu, .is_local = cpu >= 0 };
	sl_lock_init(&q->lock);
}

/* Is @q, whose lock is held, still what was found as @id? */
static bool dsq_is(const struct sl_dsq *q, u64 id)
{
	return q->id == id && !q->is_dead;
}

/* Link @t into the list between two neighbours, or at an end if one is NULL. */
sl_inline void link_between(struct sl_dsq *q, struct sl_task *t, struct sl_task *before,
			    struct sl_task *after)
{
	SL_ASSERT(!t->dsq);
	t->prev = before;
	t->next = after;
	if (before)
		before->next = t;
	else
		smp_store_release(&q->first, t);
	if (after)
		after->prev = t;
	else
		q->last = t;
	WRITE_ONCE(q->nr, q->nr + 1);
	smp_store_release(&t->dsq, q);
}

/* Heap order of the treap: a fixed pseudo-random number per task. */
static u32 heap_priority(const struct sl_task *t)
{
	u32 x = (t->idx + 1) * 0x9e3779b1U;

	x ^= x >> 15;
	x *= 0x85ebca77U;
	return x ^ (x >> 13);
}

/* Put @child where @old hung below its parent. */
static void replace_child(struct sl_dsq *q, struct sl_task *old, struct sl_task *child)
{
	struct sl_task *above = old->parent;

	if (!above)
		q->root = child;
	else if (above->left == old)
		above->left = child;
	else
		above->right = child;
	if (child)
		child->parent = above;
}

/* Turn the edge between @t and its parent, so that @t comes to stand above. */
static void rotate_up(struct sl_dsq *q, struct sl_task *t)
{
	struct sl_task *above = t->parent;
	struct sl_task *middle;

	SL_ASSERT(above);
	replace_child(q, above, t);
	if (above->left == t) {
		middle = t->right;
		above->left = middle;
		t->right = above;
	} else {
		middle = t->left;
		above->right = middle;
		t->left = above;
	}
	if (middle)
		middle->parent = above;
	above->parent = t;
}

/**
 * dsq_insert_vtime - queue a task in virtual-time order
 * @q: queue to insert into
 * @t: task to insert; on no queue yet
 * @vtime: sort key in weighted ns; it wraps, so only differences matter
 *
 * Equal keys keep arrival order, so that a simulated run can be repeated.
 *
 * Context: caller holds @q->lock.
 * Return: false, with nothing changed, if @q holds tasks in FIFO order.
 */
static bool dsq_insert_vtime(struct sl_dsq *q, struct sl_task *t, u64 vtime)
{
	struct sl_task **link = &q->root;
	struct sl_task *above = NULL;
	struct sl_task *before = NULL;

	if (!q->root && q->first)
		return false;
	while (*link) {
		above = *link;
		if (sl_time_before(vtime, above->key)) {
			link = &above->left;
		} else {
			before = above;
			link = &above->right;
		}
	}
	t->key = vtime;
	t->left = NULL;
	t->right = NULL;
	t->parent = above;
	*link = t;
	link_between(q, t, before, before ? before->next : q->first);
	while (t->parent && heap_priority(t) > heap_priority(t->parent))
		rotate_up(q, t);
	return true;
}

static void remove_from_tree(struct sl_dsq *q, struct sl_task *t)
{
	while (t->left && t->right) {
		if (heap_priority(t->left) > heap_priority(t->right))
			rotate_up(q, t->left);
		else
			rotate_up(q, t->right);
	}
	replace_child(q, t, t->left ? t->left : t->right);
}

/* As dsq_insert(), where @t does not simply come last. */
static __noinline bool dsq_insert_ordered(struct sl_dsq *q, struct sl_task *t, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_DSQ_PRIQ)
		return dsq_insert_vtime(q, t, READ_ONCE(t->p.scx.dsq_vtime));
	if (q->root)
		return false;
	link_between(q, t, NULL, q->first);
	return true;
}

/*
 * Insert @t where its flags say: by its vtime, first, or last. @q: the global queue, or a
 * user queue. Context: its lock is held. Return: false if it holds tasks in the other order.
 */
sl_inline bool dsq_insert(struct sl_dsq *q, struct sl_task *t, u64 enq_flags)
{
	t->dsq_seq = q->seq++;
	if (unlikely((enq_flags & (SCX_ENQ_DSQ_PRIQ | SCX_ENQ_HEAD | SCX_ENQ_PREEMPT)) || q->root))
		return dsq_insert_ordered(q, t, enq_flags);
	link_between(q, t, q->last, NULL);
	return true;
}

static struct sl_task *iter_next(const struct bpf_iter_scx_dsq *it, const struct sl_task *t)
{
	return it->flags & SCX_DSQ_ITER_REV ? t->prev : t->next;
}

/* A local queue is a FIFO without iterators. Context: the lock of @cpu is held. */
sl_inline void local_dsq_insert(struct sl_cpu *cpu, struct sl_task *t, u64 enq_flags)
{
	struct sl_dsq *q = &cpu->local;

	if (unlikely(enq_flags & (SCX_ENQ_HEAD | SCX_ENQ_PREEMPT)))
		link_between(q, t, NULL, q->first);
	else
		link_between(q, t, q->last, NULL);
	if (unlikely(enq_flags & SCX_ENQ_IMMED))
		local_dsq_inserted_immed(cpu, t, enq_flags);
}

/* Before @t leaves @q: its iterators and its tree let go of it. */
static __noinline void leave_iterators_and_tree(struct sl_dsq *q, struct sl_task *t)
{
	for (struct bpf_iter_scx_dsq *it = q->iterators; it; it = it->link) {
		if (it->next == t)
			it->next = iter_next(it, t);
	}
	if (q->root)
		remove_from_tree(q, t);
}

/* For a local queue. Context: its lock, or that of its CPU, is held. */
sl_inline void dsq_unlink(struct sl_dsq *q, struct sl_task *t)
{
	struct sl_task *next = t->next;
	struct sl_task *prev = t->prev;

	SL_ASSERT(t->dsq == q);
	WRITE_ONCE(q->nr, q->nr - 1);
	smp_store_release(&t->dsq, NULL);
	if (unlikely(prev))
		prev->next = next;
	else
		smp_store_release(&q->first, next);
	if (next)
		next->prev = prev;
	else
		q->last = prev;
}

/* For any queue. Context: as above. */
sl_inline void dsq_remove(struct sl_dsq *q, struct sl_task *t)
{
	if (unlikely((uintptr_t)q->root | (uintptr_t)q->iterators))
		leave_iterators_and_tree(q, t);
	dsq_unlink(q, t);
}

/* ---- the table ----------------------------------------------------------- */

static struct sl_dsq **dsq_bucket(u64 id)
{
	return &sl_core.dsqs[(id * 0x9e3779b97f4a7c15ULL) >> 54];
}

/* Context: tables_lock held; without it one that exists may be missed. */
static struct sl_dsq *search_dsq(u64 id)
{
	struct sl_dsq *q = smp_load_acquire(dsq_bucket(id));

	while (q && (READ_ONCE(q->id) != id || READ_ONCE(q->is_dead)))
		q = smp_load_acquire(&q->next);
	return q;
}

static __noinline struct sl_dsq *find_another_dsq(struct sl_cpu *this_cpu, u64 id)
{
	struct sl_dsq *q = search_dsq(id);

	if (!q) {
		/* One that is destroyed meanwhile leads into another chain. */
		sl_lock(&sl_core.tables_lock);
		q = search_dsq(id);
		sl_unlock(&sl_core.tables_lock);
	}
	if (q)
		WRITE_ONCE(this_cpu->last_dsq, q);
	return q;
}

/*
 * The user queue with this id, or NULL. Its memory stays a queue, but it may be
 * destroyed, and become another one, until its lock is held: then dsq_is()
 * says. Most policies use one queue, or one per CPU, all the time.
 */
sl_inline struct sl_dsq *find_dsq(struct sl_cpu *this_cpu, u64 id)
{
	struct sl_dsq *q = this_cpu->last_dsq;

	if (likely(READ_ONCE(q->id) == id && !READ_ONCE(q->is_dead)))
		return q;
	return id & SCX_DSQ_FLAG_BUILTIN ? NULL : find_another_dsq(this_cpu, id);
}

/*
 * What was a queue before becomes one again, under its lock: another CPU may be
 * about to take it. It goes on counting insertions, for its iterators (S27).
 * Context: tables_lock held.
 */
static void reinit_dsq(struct sl_dsq *q, u64 id)
{
	sl_lock(&q->lock);
	SL_ASSERT(q->is_dead && !q->nr);
	WRITE_ONCE(q->id, id);
	WRITE_ONCE(q->is_dead, false);
	sl_unlock(&q->lock);
}

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node)
{
	struct sl_dsq *fresh, *q = NULL;
	s32 err = 0;

	if ((dsq_id & SCX_DSQ_FLAG_BUILTIN) || node < -1 || node >= (s32)sl_core.nr_nodes)
		return -EINVAL;
	fresh = alloc_for_policy(sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	dsq_init(fresh, dsq_id, -1);
	sl_lock(&sl_core.tables_lock);
	if (search_dsq(dsq_id)) {
		err = -EEXIST;
	} else if (sl_core.nr_dsqs == SL_DSQS_MAX) {
		err = -ENOSPC;
	} else if ((q = sl_core.free_dsqs)) {
		sl_core.free_dsqs = q->next;
		reinit_dsq(q, dsq_id);
	} else {
		q = fresh;
		fresh = NULL;
	}
	if (q) {
		sl_core.nr_dsqs++;
		smp_store_release(&q->next, *dsq_bucket(dsq_id));
		smp_store_release(dsq_bucket(dsq_id), q);
	}
	sl_unlock(&sl_core.tables_lock);
	if (fresh)
		sl_host_free(fresh, sizeof(*fresh));
	return err;
}

/*
 * The queue is marked dead and found no more; its memory is the next queue's, or
 * stays until the policy is unloaded, because another CPU may be looking at it.
 */
void scx_bpf_destroy_dsq(u64 dsq_id)
{
	struct sl_dsq *q, **link = dsq_bucket(dsq_id);

	sl_lock(&sl_core.tables_lock);
	q = search_dsq(dsq_id);
	if (q) {
		sl_lock(&q->lock);
		WRITE_ONCE(q->is_dead, !q->nr);
		if (q->nr)
			scx_error(q->first, "destroying DSQ 0x%llx with %u tasks on it", dsq_id,
				  q->nr);
		sl_unlock(&q->lock);
	}
	if (q && q->is_dead) {
		while (*link != q)
			link = &(*link)->next;
		smp_store_release(link, q->next);
		smp_store_release(&q->next, sl_core.free_dsqs);
		sl_core.free_dsqs = q;
		sl_core.nr_dsqs--;
	}
	sl_unlock(&sl_core.tables_lock);
}
