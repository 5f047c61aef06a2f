/* SPDX-License-Identifier: MIT */
/*
 * channel.c - messages from thread to thread, in order, with room for some.
 *
 *	senders that wait -> [ring of capacity messages] -> receivers that wait
 *
 * Never do both wait; and senders wait only when the ring is full. The thread
 * that completes another's wait copies the message for it, so that a woken
 * thread has nothing left to do.
 *
 * Read next: wait.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ut.h"

struct ut_chan {
	sl_lock_t lock;
	size_t message_bytes;
	size_t capacity;
	/* lock protects: */
	size_t nr;		/* messages in the ring */
	size_t first;		/* the oldest of them */
	bool is_closed;
	struct ut_queue senders, receivers;
	char ring[] __attribute__((aligned(16)));
};

int ut_chan_create(ut_chan **chan, size_t message_bytes, size_t capacity)
{
	struct ut_chan *c;
	size_t bytes;

	if (!ut_this_cpu())
		return -EPERM;
	if (!chan || !message_bytes ||
	    __builtin_mul_overflow(message_bytes, capacity, &bytes) ||
	    bytes > SIZE_MAX / 2)
		return -EINVAL;
	ut_disable();
	c = calloc(1, sizeof(*c) + bytes);
	ut_enable();
	if (!c)
		return -ENOMEM;
	c->message_bytes = message_bytes;
	c->capacity = capacity;
	*chan = c;
	return 0;
}

static char *place_in(struct ut_chan *c, size_t nr)
{
	size_t idx = c->first + nr;

	if (idx >= c->capacity)
		idx -= c->capacity;
	return c->ring + idx * c->message_bytes;
}

/* These sizes are most usual, and a call of memcpy() is dear for them. */
static inline void copy(void *to, const void *from, size_t bytes)
{
	if (bytes == sizeof(u64))
		__builtin_memcpy(to, from, sizeof(u64));
	else if (bytes == sizeof(u32))
		__builtin_memcpy(to, from, sizeof(u32));
	else
		memcpy(to, from, bytes);
}

static void push(struct ut_chan *c, const void *message)
{
	copy(place_in(c, c->nr++), message, c->message_bytes);
}

static void pop(struct ut_chan *c, void *message)
{
	copy(message, place_in(c, 0), c->message_bytes);
	c->nr--;
	if (++c->first == c->capacity)
		c->first = 0;
}

/* Context: preemption disabled. */
static int send_message(struct ut_chan *c, const void *message, bool may_wait)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	struct ut_thread *t;
	int err = 0;

	sl_lock(&c->lock);
	if (c->is_closed) {
		sl_unlock(&c->lock);
		return -EPIPE;
	}
	t = ut_queue_take(&c->receivers);
	if (t) {
		copy(t->message, message, c->message_bytes);
		t->answer = 0;
		sl_unlock(&c->lock);
		ut_wake_taken(t);
		return 0;
	}
	if (c->nr < c->capacity)
		push(c, message);
	else if (!may_wait)
		err = -EAGAIN;
	else {
		self->message = (void *)(uintptr_t)message;
		err = ut_wait_in(&c->senders, &c->lock, UT_WAIT_SEND, c,
				 self->deadline_ns);
		return err ? err : self->answer;
	}
	sl_unlock(&c->lock);
	return err;
}

/* The first sender that waits is served. Context: lock held, dropped here. */
static void let_sender_go(struct ut_chan *c)
{
	struct ut_thread *t = ut_queue_take(&c->senders);

	if (t) {
		push(c, t->message);
		t->answer = 0;
	}
	sl_unlock(&c->lock);
	if (t)
		ut_wake_taken(t);
}

/* No ring: straight from the sender. Return: whether there was one. */
static bool take_from_sender(struct ut_chan *c, void *message)
{
	struct ut_thread *t = ut_queue_take(&c->senders);

	if (!t)
		return false;
	copy(message, t->message, c->message_bytes);
	t->answer = 0;
	sl_unlock(&c->lock);
	ut_wake_taken(t);
	return true;
}

/* Context: preemption disabled. */
static int recv_message(struct ut_chan *c, void *message, bool may_wait)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	int err;

	sl_lock(&c->lock);
	if (c->nr) {
		pop(c, message);
		let_sender_go(c);
		return 0;
	}
	if (take_from_sender(c, message))
		return 0;
	err = c->is_closed ? -EPIPE : may_wait ? 0 : -EAGAIN;
	if (err) {
		sl_unlock(&c->lock);
		return err;
	}
	self->message = message;
	err = ut_wait_in(&c->receivers, &c->lock, UT_WAIT_RECV, c,
			 self->deadline_ns);
	return err ? err : self->answer;
}

int ut_chan_send(ut_chan *chan, const void *message)
{
	return ut_inside(send_message(chan, message, true));
}

int ut_chan_try_send(ut_chan *chan, const void *message)
{
	return ut_inside(send_message(chan, message, false));
}

int ut_chan_recv(ut_chan *chan, void *message)
{
	return ut_inside(recv_message(chan, message, true));
}

int ut_chan_try_recv(ut_chan *chan, void *message)
{
	return ut_inside(recv_message(chan, message, false));
}

/* All waiters are woken, with -EPIPE. Context: lock held. */
static void refuse_all(struct ut_queue *q)
{
	struct ut_thread *t;

	while ((t = ut_queue_take(q))) {
		t->answer = -EPIPE;
		ut_wake_taken(t);
	}
}

int ut_chan_close(ut_chan *chan)
{
	bool was_closed;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	sl_lock(&chan->lock);
	was_closed = chan->is_closed;
	chan->is_closed = true;
	refuse_all(&chan->senders);
	refuse_all(&chan->receivers);
	sl_unlock(&chan->lock);
	ut_enable();
	return was_closed ? -EPIPE : 0;
}

int ut_chan_destroy(ut_chan *chan)
{
	bool is_used;

	if (!ut_this_cpu())
		return -EPERM;
	if (!chan)
		return 0;
	ut_disable();
	sl_lock(&chan->lock);
	is_used = chan->senders.first || chan->receivers.first;
	sl_unlock(&chan->lock);
	if (!is_used)
		free(chan);
	ut_enable();
	return is_used ? -EBUSY : 0;
}
