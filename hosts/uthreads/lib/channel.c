/* SPDX-License-Identifier: MIT */
/*
 * channel.c - messages from thread to thread, in order, with room for some; and
 * ut_select(), which waits for several channels at once.
 *
 *	senders that wait -> [ring of capacity messages] -> receivers that wait
 *
 * Never do both wait; and senders wait only when the ring is full. The thread
 * that completes another's wait copies the message for it, so that a woken
 * thread has nothing left to do.
 *
 * A thread in ut_select() has a case in the list of each of its channels and sleeps
 * in a queue of its own. The first that sets `chosen`, under the lock of the
 * selection, serves the case; for all others it is as if the thread had left.
 * Locks: a channel's, then a selection's; never two of a kind.
 *
 * Read next: wait.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ut.h"

enum side { SENDERS, RECEIVERS };

/* Both are in order of arrival: of threads it is in `answer`, of cases in `arrival_`. */
struct waiters {
	struct ut_queue threads;      /* in ut_chan_send() or ut_chan_recv() */
	struct ut_case *first, *last; /* of threads in ut_select() */
};

struct ut_chan {
	sl_lock_t lock;
	size_t message_bytes;
	size_t capacity;
	/* lock protects: */
	size_t nr;	/* messages in the ring */
	size_t first;	/* the oldest of them */
	u32 nr_arrived; /* waiters so far */
	bool is_closed;
	struct waiters waiters[2]; /* by enum side */
	char ring[] __attribute__((aligned(16)));
};

/* A call of ut_select() that waits; on its thread's stack. */
struct selection {
	sl_lock_t lock;
	/* lock protects: */
	struct ut_queue sleeper;      /* the thread, while it sleeps */
	const struct ut_case *chosen; /* NULL: any of them can still be served */
};

static const struct ut_case no_case; /* `chosen`: the thread does not wait any longer */

int ut_chan_create(ut_chan **chan, size_t message_bytes, size_t capacity)
{
	struct ut_chan *c;
	size_t bytes;

	if (!ut_this_cpu())
		return -EPERM;
	if (!chan || !message_bytes || __builtin_mul_overflow(message_bytes, capacity, &bytes) ||
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

static void append_case(struct waiters *w, struct ut_case *k)
{
	k->next_ = NULL;
	k->prev_ = w->last;
	*(w->last ? &w->last->next_ : &w->first) = k;
	w->last = k;
}

static void unlink_case(struct waiters *w, struct ut_case *k)
{
	*(k->prev_ ? &k->prev_->next_ : &w->first) = k->next_;
	*(k->next_ ? &k->next_->prev_ : &w->last) = k->prev_;
}

/* A waiter on @side has or wants the message at @its, its peer the one at @message. */
static inline void transfer(const struct ut_chan *c, enum side side, void *its, void *message)
{
	if (side == RECEIVERS)
		copy(its, message, c->message_bytes);
	else
		copy(message, its, c->message_bytes);
}

/* Return: whether no other case of its thread was served before. As serve_first_case(). */
static bool serve_case(struct ut_chan *c, enum side side, struct ut_case *k, void *message,
		       struct ut_thread **woken)
{
	struct selection *s = k->selection_;
	bool is_first;

	sl_lock(&s->lock);
	is_first = !s->chosen;
	if (is_first) {
		unlink_case(&c->waiters[side], k);
		k->result = message ? 0 : -EPIPE;
		if (message)
			transfer(c, side, k->recv ? k->recv : (void *)(uintptr_t)k->send, message);
		WRITE_ONCE(s->chosen, k);
		*woken = ut_queue_take(&s->sleeper);
	}
	/* A thread that does not sleep yet may leave its stack from here on. */
	sl_unlock(&s->lock);
	return is_first;
}

/*
 * The first case that came before all waiting threads of the single calls. @message:
 * NULL: the channel is closed. Return: whether there was one; then @woken as in serve().
 */
static __noinline bool serve_first_case(struct ut_chan *c, enum side side, void *message,
					struct ut_thread **woken)
{
	const struct waiters *w = &c->waiters[side];
	const struct ut_thread *t = w->threads.first;
	struct ut_case *k;

	for (k = w->first; k; k = k->next_) {
		if (t && (s32)((u32)t->answer - k->arrival_) < 0)
			return false;
		if (serve_case(c, side, k, message, woken))
			return true;
	}
	return false;
}

/*
 * The waiter that came first gives its message to @message, or gets it from there.
 * @woken: its thread, for ut_wake_taken(); NULL: it has not fallen asleep yet. Return:
 * whether there was one. Context: the channel's lock is held.
 */
static inline bool serve(struct ut_chan *c, enum side side, void *message, struct ut_thread **woken)
{
	struct waiters *w = &c->waiters[side];
	struct ut_thread *t;

	if (unlikely(w->first) && serve_first_case(c, side, message, woken))
		return true;
	t = ut_queue_take(&w->threads);
	if (!t)
		return false;
	transfer(c, side, t->message, message);
	t->answer = 0;
	*woken = t;
	return true;
}

/* In one of the single calls. Context: the channel's lock is held, and dropped here. */
static int wait_on(struct ut_chan *c, enum side side, void *message)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	int err;

	self->message = message;
	self->answer = (int)c->nr_arrived++;
	err = ut_wait_in(&c->waiters[side].threads, &c->lock,
			 side == SENDERS ? UT_WAIT_SEND : UT_WAIT_RECV, c, self->deadline_ns);
	return err ? err : self->answer;
}

/* Context: preemption disabled. */
static int send_message(struct ut_chan *c, const void *message, bool may_wait)
{
	void *from = (void *)(uintptr_t)message;
	struct ut_thread *woken = NULL;
	int err = 0;

	sl_lock(&c->lock);
	if (c->is_closed)
		err = -EPIPE;
	else if (serve(c, RECEIVERS, from, &woken))
		;
	else if (c->nr < c->capacity)
		push(c, message);
	else if (may_wait)
		return wait_on(c, SENDERS, from);
	else
		err = -EAGAIN;
	sl_unlock(&c->lock);
	if (woken)
		ut_wake_taken(woken);
	return err;
}

/* Context: preemption disabled. */
static int recv_message(struct ut_chan *c, void *message, bool may_wait)
{
	struct ut_thread *woken = NULL;
	int err = 0;

	sl_lock(&c->lock);
	if (c->nr) {
		pop(c, message);
		/* The place that is free now. */
		if (serve(c, SENDERS, place_in(c, c->nr), &woken))
			c->nr++;
	} else if (serve(c, SENDERS, message, &woken))
		;
	else if (c->is_closed)
		err = -EPIPE;
	else if (may_wait)
		return wait_on(c, RECEIVERS, message);
	else
		err = -EAGAIN;
	sl_unlock(&c->lock);
	if (woken)
		ut_wake_taken(woken);
	return err;
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
static void refuse_all(struct ut_chan *c, enum side side)
{
	struct ut_thread *t;

	while ((t = ut_queue_take(&c->waiters[side].threads))) {
		t->answer = -EPIPE;
		ut_wake_taken(t);
	}
	while (serve_first_case(c, side, NULL, &t)) {
		if (t)
			ut_wake_taken(t);
	}
}

static int close_chan(struct ut_chan *c)
{
	bool was_closed;

	sl_lock(&c->lock);
	was_closed = c->is_closed;
	c->is_closed = true;
	refuse_all(c, SENDERS);
	refuse_all(c, RECEIVERS);
	sl_unlock(&c->lock);
	return was_closed ? -EPIPE : 0;
}

int ut_chan_close(ut_chan *chan)
{
	return ut_inside(close_chan(chan));
}

static int destroy_chan(struct ut_chan *c)
{
	bool is_used = false;

	sl_lock(&c->lock);
	for (int side = SENDERS; side <= RECEIVERS; side++)
		is_used |= c->waiters[side].threads.first || c->waiters[side].first;
	sl_unlock(&c->lock);
	if (!is_used)
		free(c);
	return is_used ? -EBUSY : 0;
}

int ut_chan_destroy(ut_chan *chan)
{
	return ut_inside(chan ? destroy_chan(chan) : 0);
}

/* ---- several at once -------------------------------------------------------- */

static bool are_cases(const struct ut_case *cases, int nr)
{
	for (int i = 0; i < nr; i++) {
		if (!cases[i].send == !cases[i].recv)
			return false;
	}
	return nr >= 0;
}

/* The cases' numbers in random order, each order as likely, in order_. */
static void shuffle(struct ut_case *cases, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		u32 j = sl_host_random() % (i + 1);

		cases[i].order_ = cases[j].order_;
		cases[j].order_ = i;
	}
}

/* Return: the number of the case that could be done at once; -EAGAIN: none. */
static int try_cases(struct ut_case *cases, int nr)
{
	shuffle(cases, (u32)nr);
	for (int i = 0; i < nr; i++) {
		struct ut_case *k = &cases[cases[i].order_];

		if (!k->chan)
			continue;
		k->result = k->recv ? recv_message(k->chan, k->recv, false) :
				      send_message(k->chan, k->send, false);
		if (k->result != -EAGAIN)
			return (int)(k - cases);
	}
	return -EAGAIN;
}

/* Would trying @k again help? Context: lock held. */
static bool is_ready(const struct ut_chan *c, const struct ut_case *k)
{
	const struct waiters *w = &c->waiters[k->recv ? SENDERS : RECEIVERS];
	const struct ut_case *other;

	if (c->is_closed || w->threads.first || (k->recv ? c->nr : c->nr < c->capacity))
		return true;
	for (other = w->first; other; other = other->next_) {
		const struct selection *s = other->selection_;

		if (s != k->selection_ && !READ_ONCE(s->chosen))
			return true;
	}
	return false;
}

/* Return: how many cases wait from now on; the next one, if any, is ready. */
static int join_channels(struct selection *s, struct ut_case *cases, int nr)
{
	for (int i = 0; i < nr; i++) {
		struct ut_case *k = &cases[i];
		struct ut_chan *c = k->chan;
		bool ready;

		if (!c)
			continue;
		k->selection_ = s;
		sl_lock(&c->lock);
		ready = is_ready(c, k);
		if (!ready) {
			k->arrival_ = c->nr_arrived++;
			append_case(&c->waiters[k->recv ? RECEIVERS : SENDERS], k);
		}
		sl_unlock(&c->lock);
		if (ready)
			return i;
		ut_forced_pause();
	}
	return nr;
}

/*
 * No case is served after this. That of the one that was is in no list: its channel may
 * be gone. Those of the others are not, as long as this thread is in their lists.
 */
static void leave_channels(struct selection *s, struct ut_case *cases, int nr)
{
	sl_lock(&s->lock);
	if (!s->chosen)
		WRITE_ONCE(s->chosen, &no_case);
	sl_unlock(&s->lock);
	ut_forced_pause();
	for (int i = 0; i < nr; i++) {
		struct ut_case *k = &cases[i];
		struct ut_chan *c = k->chan;

		if (!c || k == s->chosen)
			continue;
		sl_lock(&c->lock);
		unlink_case(&c->waiters[k->recv ? RECEIVERS : SENDERS], k);
		sl_unlock(&c->lock);
	}
}

static int select_case(struct ut_case *cases, int nr, u64 until_ns)
{
	u64 end_ns = ut_until(ut_this_cpu()->curr, until_ns);
	int found, nr_joined, err = 0;

	if (!are_cases(cases, nr))
		return -EINVAL;
	while ((found = try_cases(cases, nr)) < 0 && !err) {
		struct selection s = { 0 };

		if (!until_ns)
			return -ETIMEDOUT;
		nr_joined = join_channels(&s, cases, nr);
		sl_lock(&s.lock);
		if (nr_joined == nr && !s.chosen)
			err = ut_wait_in(&s.sleeper, &s.lock, UT_WAIT_SELECT, cases, end_ns);
		else
			sl_unlock(&s.lock);
		leave_channels(&s, cases, nr_joined);
		if (s.chosen != &no_case)
			return (int)(s.chosen - cases);
	}
	return found < 0 ? err : found;
}

int ut_select(struct ut_case *cases, int nr, uint64_t until_ns)
{
	return ut_inside(select_case(cases, nr, until_ns));
}
