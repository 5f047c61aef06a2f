/* SPDX-License-Identifier: MIT */
/*
 * handover.c - locks and pipes that go to the task that has waited longest.
 *
 * On every host an unlocked lock belongs to its first waiter before that one runs, and
 * data to the reader that came first (docs/semantics.md). Linux's own pipes, and mutexes
 * of futexes, serve the first task that comes by: the one that was woken may find
 * nothing and block again, and other requests meet other workers. That is another
 * schedule of the same program, and none of the policy's making.
 *
 * A pipe is two positions in a stream of bytes: how much tasks have asked to send, and to
 * receive. A receive that ends at r is complete when r has been sent, a send that ends
 * at s when it fits: s <= received + capacity. So bytes of a large message flow in steps.
 *
 * Invariant: no system call is made under an object's guard, so that a woken task that
 * preempts its waker finds the guard free.
 * Read next: verbs.c.
 */
#include "guest.h"

struct waiters {
	u32 first; /* number of the task, counted from 1; 0: none */
	u32 last;
};

struct handover {
	u32 guard;	/* futex lock, protects: */
	u32 owner;	/* lock: number of the task that holds it; 0: free */
	u64 sent_bytes; /* pipe: asked for so far */
	u64 received_bytes;
	struct waiters waiters; /* for the lock, or for data */
	struct waiters senders;
};

u64 handover_bytes(void)
{
	return sizeof(struct handover);
}

static struct handover *begin(struct sl_player *p, u32 object)
{
	struct shared *s = p->host;
	struct handover *h = &s->handovers[object];

	futex_lock(&h->guard);
	return h;
}

static struct shared_task *task_of(struct shared *s, u32 number)
{
	return &s->tasks[number - 1];
}

static void push(struct shared *s, struct waiters *w, u32 number, u64 needs_bytes)
{
	struct shared_task *t = task_of(s, number);

	t->needs_bytes = needs_bytes;
	t->next_waiter = 0;
	__atomic_store_n(&t->is_served, 0, __ATOMIC_RELAXED);
	if (w->first)
		task_of(s, w->last)->next_waiter = number;
	else
		w->first = number;
	w->last = number;
}

/* Move the waiters whose position has come to the end of @to. */
static void serve(struct shared *s, struct waiters *w, u64 position_bytes, struct waiters *to)
{
	while (w->first && task_of(s, w->first)->needs_bytes <= position_bytes) {
		u32 number = w->first;
		struct shared_task *t = task_of(s, number);

		w->first = t->next_waiter;
		t->next_waiter = 0;
		if (to->first)
			task_of(s, to->last)->next_waiter = number;
		else
			to->first = number;
		to->last = number;
	}
}

/* Let the object go, then wake those that were served, then wait if need be. */
static void finish(struct sl_player *p, struct handover *h, const struct waiters *served,
		   bool must_wait)
{
	struct shared *s = p->host;
	struct shared_task *me = &s->tasks[p->task];
	u32 number = served->first;

	futex_unlock(&h->guard);
	while (number) {
		struct shared_task *t = task_of(s, number);

		/* From the store on it may wait for something else. */
		number = t->next_waiter;
		__atomic_store_n(&t->is_served, 1, __ATOMIC_RELEASE);
		futex_wake(&t->is_served, 1);
	}
	while (must_wait && !__atomic_load_n(&me->is_served, __ATOMIC_ACQUIRE))
		futex_wait(&me->is_served, 0, ~0ULL);
}

int handover_lock(struct sl_player *p, u32 object)
{
	struct handover *h = begin(p, object);
	bool must_wait = h->owner;

	if (must_wait)
		push(p->host, &h->waiters, p->task + 1, 0);
	else
		h->owner = p->task + 1;
	finish(p, h, &(struct waiters){ 0 }, must_wait);
	return 0;
}

int handover_unlock(struct sl_player *p, u32 object)
{
	struct shared *s = p->host;
	struct handover *h = begin(p, object);
	struct waiters next = { h->waiters.first, h->waiters.first };

	h->owner = next.first;
	if (next.first) {
		h->waiters.first = task_of(s, next.first)->next_waiter;
		task_of(s, next.first)->next_waiter = 0;
	}
	finish(p, h, &next, false);
	return 0;
}

static int use_pipe(struct sl_player *p, u32 object, u64 bytes, bool is_send)
{
	u64 capacity_bytes = sl_program_objects(p->program)[object].param;
	struct shared *s = p->host;
	struct handover *h = begin(p, object);
	struct waiters served = { 0 };
	bool must_wait;

	if (is_send) {
		h->sent_bytes += bytes;
		must_wait = h->sent_bytes > h->received_bytes + capacity_bytes;
		if (must_wait)
			push(s, &h->senders, p->task + 1, h->sent_bytes);
	} else {
		h->received_bytes += bytes;
		must_wait = h->received_bytes > h->sent_bytes;
		if (must_wait)
			push(s, &h->waiters, p->task + 1, h->received_bytes);
	}
	serve(s, &h->waiters, h->sent_bytes, &served);
	serve(s, &h->senders, h->received_bytes + capacity_bytes, &served);
	finish(p, h, &served, must_wait);
	return 0;
}

int handover_send(struct sl_player *p, u32 object, u64 bytes)
{
	return use_pipe(p, object, bytes, true);
}

int handover_recv(struct sl_player *p, u32 object, u64 bytes)
{
	return use_pipe(p, object, bytes, false);
}
