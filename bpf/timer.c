/* SPDX-License-Identifier: MIT */
/*
 * timer.c - bpf_timer for natively compiled policies.
 *
 * A timer is a place in a map value, known by its address: nothing is kept
 * there, so that an update of the value destroys nothing. Each has one of a fixed
 * number of slots. The host is asked for a wake-up at the earliest expiry, and on each CPU
 * at the earliest of those that are pinned there. Callbacks run on the CPU that calls
 * sl_timers_run(), in order of expiry (S28).
 *
 * Read next: spin_lock.c.
 */
#include "../core/core.h"

#define CLOCK_REALTIME 0
#define CLOCK_BOOTTIME 7

struct sl_timer {
	struct bpf_timer *owner; /* NULL: the slot is free */
	u64 expires_ns;
	u64 start_nr; /* which start armed it, of all timers' */
	s32 cpu;      /* where it was started, if it is pinned; or ANY_CPU */
	bool is_armed;
	int (*callback)(void *map, void *key, void *value);
};

static u64 nr_starts; /* timers_lock protects it */

/* Context: timers_lock held. */
#define for_each_timer(s)						\
	for (struct sl_timer *s = sl_bpf.timers; s && s < sl_bpf.timers + SL_TIMERS_MAX; s++)

/*
 * @timer: NULL: a slot that is free. Context: timers_lock held. Return: NULL if it was
 * never initialised.
 */
static struct sl_timer *slot_of(const struct bpf_timer *timer)
{
	for_each_timer(s) {
		if (s->owner == timer)
			return s;
	}
	return NULL;
}

/*
 * The host's timer for @cpu, this one or ANY_CPU, is for the first of these that is due;
 * that for any CPU is for the watchdog, too. Context: timers_lock held.
 */
static void set_host_timer_locked(s32 cpu)
{
	u64 first_ns = cpu == ANY_CPU ? READ_ONCE(sl_core.watchdog_ns) : ~0ULL;

	for_each_timer(s) {
		if (s->owner && s->is_armed && s->cpu == cpu && s->expires_ns < first_ns)
			first_ns = s->expires_ns;
	}
	if (first_ns != ~0ULL)
		sl_host_set_timer(first_ns, cpu != ANY_CPU);
}

static void set_host_timer(s32 cpu)
{
	sl_lock(&sl_bpf.timers_lock);
	set_host_timer_locked(cpu);
	sl_unlock(&sl_bpf.timers_lock);
}

/* Its pinned timers may run on any CPU then, as on Linux. Context: @cpu goes offline, no lock held. */
static void timers_unpin(const struct sl_cpu *cpu)
{
	sl_lock(&sl_bpf.timers_lock);
	for_each_timer(s) {
		if (s->owner && s->cpu == cpu->id)
			s->cpu = ANY_CPU;
	}
	set_host_timer_locked(ANY_CPU);
	sl_unlock(&sl_bpf.timers_lock);
}

/*
 * @clock: of the three that Linux takes all are the policy's clock here. Return: 0;
 * -EINVAL for another one; -EBUSY when it is initialised already; -ENOMEM when all
 * slots are taken. Context: ops.init() or another place without locks.
 */
long sl_timer_init(struct bpf_timer *timer, struct sl_map *map, u64 clock)
{
	struct sl_timer *free;
	long err = -ENOMEM;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return -EINVAL;
	sl_lock(&sl_bpf.timers_lock);
	if (!sl_bpf.timers)
		sl_bpf.timers = sl_host_alloc(SL_TIMERS_MAX * sizeof(struct sl_timer));
	free = slot_of(NULL);
	if (slot_of(timer)) {
		err = -EBUSY;
	} else if (free) {
		*free = (struct sl_timer){ .owner = timer };
		err = 0;
	}
	sl_unlock(&sl_bpf.timers_lock);
	if (!err)
		map_has_timers(map);
	return err;
}

/*
 * S31: a map element is updated or deleted: its timers are cancelled, and have to
 * be initialised again. Context: the map's lock may be held.
 */
static void timers_forget(const void *value, u32 bytes)
{
	sl_lock(&sl_bpf.timers_lock);
	for_each_timer(s) {
		if (s->owner && (u64)((u8 *)s->owner - (u8 *)value) < bytes)
			*s = (struct sl_timer){ 0 };
	}
	sl_unlock(&sl_bpf.timers_lock);
}

long sl_timer_set_callback(struct bpf_timer *timer,
			   int (*callback)(void *map, void *key, void *value))
{
	struct sl_timer *s;

	sl_lock(&sl_bpf.timers_lock);
	s = slot_of(timer);
	if (s)
		s->callback = callback;
	sl_unlock(&sl_bpf.timers_lock);
	return s ? 0 : -EINVAL;
}

long bpf_timer_start(struct bpf_timer *timer, u64 nsecs, u64 flags)
{
	struct sl_timer *s;
	long err = -EINVAL;

	if (flags & ~(u64)(BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN))
		return err;
	/* Kept in the host's time. A sum that does not fit is never, as on Linux. */
	if (flags & BPF_F_TIMER_ABS)
		nsecs = nsecs > SL_UPTIME_NS ? nsecs - SL_UPTIME_NS : 0;
	else if (__builtin_add_overflow(nsecs, sl_host_policy_now_ns(), &nsecs))
		nsecs = ~0ULL;
	sl_lock(&sl_bpf.timers_lock);
	s = slot_of(timer);
	if (s && s->callback) {
		s->expires_ns = nsecs;
		s->start_nr = ++nr_starts;
		s->cpu = flags & BPF_F_TIMER_CPU_PIN ? sl_this_cpu()->id : ANY_CPU;
		s->is_armed = true;
		set_host_timer_locked(s->cpu);
		err = 0;
	}
	sl_unlock(&sl_bpf.timers_lock);
	return err;
}

/* Where Linux has interrupts on: an operation in which it holds no lock of a CPU or task. */
#define INTERRUPTS_IN(name) (1ULL << SL_IN_##name)
#define WITH_INTERRUPTS							\
	(INTERRUPTS_IN(NOTHING) | INTERRUPTS_IN(timer) |		\
	 INTERRUPTS_IN(init) | INTERRUPTS_IN(exit) |			\
	 INTERRUPTS_IN(init_task) |					\
	 INTERRUPTS_IN(cpu_online) | INTERRUPTS_IN(cpu_offline) |	\
	 INTERRUPTS_IN(cgroup_init) | INTERRUPTS_IN(cgroup_exit) |	\
	 INTERRUPTS_IN(cgroup_prep_move) |				\
	 INTERRUPTS_IN(cgroup_set_weight) |				\
	 INTERRUPTS_IN(cgroup_set_bandwidth))

/*
 * Its callback is dropped with it, as on Linux. Return: 1 if it was armed, 0 if not,
 * -EINVAL if it was never initialised, -EDEADLK in its own callback, -EOPNOTSUPP where
 * Linux has interrupts off, since it waits for a callback that runs on another CPU.
 */
long bpf_timer_cancel(struct bpf_timer *timer)
{
	struct sl_timer *s;
	long was_armed = -EINVAL;

	if (!(WITH_INTERRUPTS >> sl_this_cpu()->callback & 1))
		return -EOPNOTSUPP;
	if (sl_this_cpu()->timer == timer)
		return -EDEADLK;
	sl_lock(&sl_bpf.timers_lock);
	s = slot_of(timer);
	if (s) {
		was_armed = s->is_armed;
		s->is_armed = false;
		s->callback = NULL;
	}
	sl_unlock(&sl_bpf.timers_lock);
	return was_armed;
}

/*
 * Disarm the timer that is due first on @cpu, of those armed by start @last_start or
 * before. Return: whether there is one, and a copy in @taken: another CPU may
 * delete its element meanwhile.
 */
static bool take_due(s32 cpu, u64 now_ns, u64 last_start, struct sl_timer *taken)
{
	struct sl_timer *due = NULL;

	sl_lock(&sl_bpf.timers_lock);
	for_each_timer(s) {
		if (!s->owner || !s->is_armed || s->expires_ns > now_ns || s->start_nr > last_start)
			continue;
		if (s->cpu != ANY_CPU && s->cpu != cpu)
			continue;
		if (!due || s->expires_ns < due->expires_ns)
			due = s;
	}
	if (due) {
		due->is_armed = false;
		*taken = *due;
	}
	sl_unlock(&sl_bpf.timers_lock);
	return due;
}

/*
 * Run what is due, the watchdog last. A timer that its callback starts again for at once has to wait
 * for the next call, or this one might never end.
 * Context: on some CPU, no lock held.
 */
void sl_timers_run(void)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	u64 now_ns = sl_host_policy_now_ns();
	struct sl_timer taken;
	u64 last_start;

	this_cpu->in_interrupt = true;
	sl_lock(&sl_bpf.timers_lock);
	last_start = nr_starts;
	sl_unlock(&sl_bpf.timers_lock);
	while (!sl_is_bypassed() && take_due(this_cpu->id, now_ns, last_start, &taken)) {
		void *key = NULL;
		void *element = NULL;
		u32 number = 0;
		struct sl_map *map = map_of_value(taken.owner, &number, &key, &element);
		int value;

		this_cpu->timer = taken.owner;
		SL_ENTER(this_cpu, timer, NULL);
		sl_host_callback_begins("timer", NULL, taken.callback, map->name,
					key_number(map, key));
		value = taken.callback(map, key, element);
		(void)value; /* where no host shows it */
		sl_host_callback_returns("timer", value);
		SL_LEAVE(this_cpu);
		this_cpu->timer = NULL;
		flush(this_cpu);
	}
	if (!sl_is_bypassed()) {
		if (now_ns >= READ_ONCE(sl_core.watchdog_ns)) {
			watchdog(this_cpu);
			start_watchdog();
		} else {
			set_host_timer(ANY_CPU);
		}
		set_host_timer(this_cpu->id);
	}
	this_cpu->in_interrupt = false;
}

static void timers_destroy(void)
{
	struct sl_timer *timers;

	sl_lock(&sl_bpf.timers_lock);
	timers = sl_bpf.timers;
	sl_bpf.timers = NULL;
	sl_unlock(&sl_bpf.timers_lock);
	sl_host_free(timers, SL_TIMERS_MAX * sizeof(struct sl_timer));
}
