/* SPDX-License-Identifier: MIT */
/*
 * timer.c - bpf_timer for natively compiled policies.
 *
 * A timer is a place in a map value that refers to one of a fixed number of
 * slots. The host is asked for one wake-up at the earliest expiry. Callbacks
 * run on the CPU that calls sl_timers_run(), in order of expiry (S28).
 *
 * Read next: hosts/sim/host.c, sl_host_set_timer().
 */
#include "core.h"

struct sl_timer {
	struct bpf_timer *owner;	/* NULL: the slot is free */
	u64 expires_ns;
	u64 start_nr;			/* which start armed it, of all timers' */
	bool is_armed;
	int (*callback)(void *map, void *key, void *value);
};

static u64 nr_starts;	/* timers_lock protects it */

static struct sl_timer *slot_of(struct bpf_timer *timer)
{
	u64 nr = timer->opaque[0];

	if (!nr || nr > SL_TIMERS_MAX || !sl_core.timers ||
	    sl_core.timers[nr - 1].owner != timer)
		return NULL;
	return &sl_core.timers[nr - 1];
}

/* Context: timers_lock held. */
static void ask_host(void)
{
	u64 first_ns = ~0ULL;

	for (u32 i = 0; i < SL_TIMERS_MAX; i++) {
		struct sl_timer *s = &sl_core.timers[i];

		if (s->owner && s->is_armed && s->expires_ns < first_ns)
			first_ns = s->expires_ns;
	}
	if (first_ns != ~0ULL)
		sl_host_set_timer(first_ns);
}

/*
 * Return: 0; -EBUSY when it is initialised already; -ENOMEM when all slots are
 * taken. Context: ops.init() or another place without locks.
 */
long sl_timer_init(struct bpf_timer *timer, struct sl_map *map, u64 flags)
{
	long err = -12;

	(void)map;
	(void)flags;
	sl_lock(&sl_core.timers_lock);
	if (!sl_core.timers)
		sl_core.timers = sl_host_alloc(SL_TIMERS_MAX *
					       sizeof(struct sl_timer));
	if (sl_core.timers && slot_of(timer))
		err = -16;
	for (u32 i = 0; sl_core.timers && err == -12 && i < SL_TIMERS_MAX; i++) {
		if (sl_core.timers[i].owner)
			continue;
		sl_core.timers[i] = (struct sl_timer){ .owner = timer };
		timer->opaque[0] = i + 1;
		err = 0;
	}
	sl_unlock(&sl_core.timers_lock);
	return err;
}

long sl_timer_set_callback(struct bpf_timer *timer,
			   int (*callback)(void *map, void *key, void *value))
{
	struct sl_timer *s = slot_of(timer);

	if (!s)
		return -22;
	s->callback = callback;
	return 0;
}

long bpf_timer_start(struct bpf_timer *timer, u64 nsecs, u64 flags)
{
	struct sl_timer *s = slot_of(timer);

	if (!s || !s->callback)
		return -22;
	/* A sum that does not fit is never, as on Linux. */
	if (!(flags & BPF_F_TIMER_ABS) &&
	    __builtin_add_overflow(nsecs, sl_host_now_ns(), &nsecs))
		nsecs = ~0ULL;
	sl_lock(&sl_core.timers_lock);
	s->expires_ns = nsecs;
	s->start_nr = ++nr_starts;
	s->is_armed = true;
	ask_host();
	sl_unlock(&sl_core.timers_lock);
	return 0;
}

/* Return: 1 if it was armed, 0 if not, -EINVAL if it was never initialised. */
long bpf_timer_cancel(struct bpf_timer *timer)
{
	struct sl_timer *s = slot_of(timer);
	bool was_armed;

	if (!s)
		return -22;
	sl_lock(&sl_core.timers_lock);
	was_armed = s->is_armed;
	s->is_armed = false;
	sl_unlock(&sl_core.timers_lock);
	return was_armed;
}

/*
 * Disarm the timer that is due first, of those armed by start @last_start or
 * before. Return: the timer, or NULL.
 */
static struct sl_timer *take_due(u64 now_ns, u64 last_start)
{
	struct sl_timer *due = NULL;

	sl_lock(&sl_core.timers_lock);
	for (u32 i = 0; sl_core.timers && i < SL_TIMERS_MAX; i++) {
		struct sl_timer *s = &sl_core.timers[i];

		if (!s->owner || !s->is_armed || s->expires_ns > now_ns ||
		    s->start_nr > last_start)
			continue;
		if (!due || s->expires_ns < due->expires_ns)
			due = s;
	}
	if (due)
		due->is_armed = false;
	sl_unlock(&sl_core.timers_lock);
	return due;
}

/*
 * Run what is due. A timer that its callback starts again for at once has to wait
 * for the next call, or this one might never end.
 * Context: on some CPU, no lock held.
 */
void sl_timers_run(void)
{
	struct sl_cpu *here = sl_this_cpu();
	u64 now_ns = sl_host_now_ns();
	struct sl_timer *s;
	u64 last_start;

	here->in_interrupt = true;
	sl_lock(&sl_core.timers_lock);
	last_start = nr_starts;
	sl_unlock(&sl_core.timers_lock);
	while (!sl_peek(&sl_core.bypass) &&
	       (s = take_due(now_ns, last_start))) {
		void *key = NULL;
		void *element = NULL;
		u32 number = 0;
		struct sl_map *map = sl_map_of_value(s->owner, &number, &key,
						     &element);

		sl_watch_idlers(here);
		here->context = SL_CTX_UNLOCKED;
		sl_poke(&here->callback, "timer");
		/* Not the task of the last callback: it may be gone. */
		here->callback_task = NULL;
		s->callback(map, key, element);
		here->context = SL_CTX_NONE;
		sl_poke(&here->callback, NULL);
		sl_flush(here);
	}
	sl_lock(&sl_core.timers_lock);
	if (sl_core.timers && !sl_peek(&sl_core.bypass))
		ask_host();
	sl_unlock(&sl_core.timers_lock);
	here->in_interrupt = false;
}

void sl_timers_destroy(void)
{
	struct sl_timer *timers;

	sl_lock(&sl_core.timers_lock);
	timers = sl_core.timers;
	sl_core.timers = NULL;
	sl_unlock(&sl_core.timers_lock);
	sl_host_free(timers, SL_TIMERS_MAX * sizeof(struct sl_timer));
}
