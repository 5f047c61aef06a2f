/* SPDX-License-Identifier: MIT */
/*
 * dsq.c - one dispatch queue: a list in running order, and for queues ordered
 * by virtual time a tree beside it.
 *
 * Called by dispatch.c and schedule.c, which hold the lock. FIFO insertion and
 * removal cost O(1), vtime insertion O(log n) expected. The tree is a treap
 * whose priorities are a hash of the task's slot, so its shape, and with it
 * every run, depends on nothing but the input. The list makes the first task
 * and iteration O(1) per step for both kinds.
 *
 *	first -> t3 -> t1 -> t7 -> t2 <- last         the list
 *	              \ __|__ /
 *	                 root                          the tree over it
 *
 * Read next: dispatch.c.
 */
#include "core.h"

void sl_dsq_init(struct sl_dsq *q, u64 id, s32 cpu)
{
	*q = (struct sl_dsq){ .id = id, .cpu = cpu, .is_local = cpu >= 0 };
	sl_lock_init(&q->lock);
}

/* Link @t into the list behind @before, or at the head if that is NULL. */
static void link_after(struct sl_dsq *q, struct sl_task *t,
		       struct sl_task *before)
{
	struct sl_task *after = before ? before->next : q->first;

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
	t->dsq_seq = q->seq++;
	WRITE_ONCE(q->nr, q->nr + 1);
	smp_store_release(&t->dsq, q);
}

void sl_dsq_insert_head(struct sl_dsq *q, struct sl_task *t)
{
	SL_ASSERT(!t->dsq);
	link_after(q, t, NULL);
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
static void replace_child(struct sl_dsq *q, struct sl_task *old,
			  struct sl_task *child)
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
 * sl_dsq_insert_vtime - queue a task in virtual-time order
 * @q: queue to insert into
 * @t: task to insert; on no queue yet
 * @vtime: sort key in weighted ns; it wraps, so only differences matter
 *
 * Equal keys keep arrival order, so that a simulated run can be repeated.
 *
 * Context: caller holds @q->lock.
 * Return: false, with nothing changed, if @q holds tasks in FIFO order.
 */
bool sl_dsq_insert_vtime(struct sl_dsq *q, struct sl_task *t, u64 vtime)
{
	struct sl_task **link = &q->root;
	struct sl_task *above = NULL;
	struct sl_task *before = NULL;

	SL_ASSERT(!t->dsq);
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
	link_after(q, t, before);
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

/* sl_dsq_remove() where there is a tree, or somebody walks the list. */
void sl_dsq_remove_walked(struct sl_dsq *q, struct sl_task *t)
{
	SL_ASSERT(q->nr > 0);
	for (struct bpf_iter_scx_dsq *it = q->walks; it; it = it->link) {
		if (it->next == t)
			it->next = it->flags & SCX_DSQ_ITER_REV ? t->prev :
								  t->next;
	}
	if (q->root)
		remove_from_tree(q, t);
	sl_dsq_unlink(q, t);
}
