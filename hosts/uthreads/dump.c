/* SPDX-License-Identifier: MIT */
/*
 * dump.c - what every thread does, for people; and a deadlock is found.
 *
 * The core's dump (sl_dump(), the same lines on every host) shows which tasks
 * are queued and which run; this file, what each thread waits for. No locks, so
 * that it works from a signal and on a machine that is stuck: a line may
 * contradict the next.
 *
 * Read next: core/policy.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "ut.h"

#define EXIT_DEADLOCK 70

static const char *const wait_names[] = {
	[UT_WAIT_NONE] = "nothing",
	[UT_WAIT_JOIN] = "thread",
	[UT_WAIT_SLEEP] = "time",
	[UT_WAIT_MUTEX] = "mutex",
	[UT_WAIT_ONCE] = "what is done once",
	[UT_WAIT_READ] = "lock to read",
	[UT_WAIT_WRITE] = "lock to write",
	[UT_WAIT_COND] = "condition",
	[UT_WAIT_SEM] = "semaphore",
	[UT_WAIT_BARRIER] = "barrier",
	[UT_WAIT_SEND] = "channel to have room",
	[UT_WAIT_RECV] = "channel to hold a message",
	[UT_WAIT_SELECT] = "one of several channels",
	[UT_WAIT_IO] = "I/O",
	[UT_WAIT_ALL] = "all other threads",
	[UT_WAIT_OBJECT] = "object",
};

/* "a[3] for mutex 0x7f.. of b[4]". Return: characters written. */
static u32 describe(char *to, u32 bytes, const struct ut_thread *t)
{
	u8 wait = smp_load_acquire(&t->wait);
	const void *object = t->wait_object;
	bool is_text = wait == UT_WAIT_OBJECT && object;
	const char *what = is_text ? object : wait_names[wait];
	const struct ut_thread *of = NULL;
	u32 used = sl_print_to(to, bytes, "%s[%d] for %s", t->core.p.comm, t->core.p.pid, what);

	if (is_text)
		return used;
	if (wait == UT_WAIT_JOIN)
		of = object;
	if (wait == UT_WAIT_MUTEX)
		of = (void *)((uintptr_t)((const ut_mutex *)object)->owner_ & ~1UL);
	if (object && wait != UT_WAIT_JOIN)
		used += sl_print_to(to + used, bytes - used, " %p", object);
	if (of)
		used += sl_print_to(to + used, bytes - used, "%s %s[%d]",
				    wait == UT_WAIT_MUTEX ? " of" : "", of->core.p.comm,
				    of->core.p.pid);
	return used;
}

static bool is_alive(const struct ut_thread *t)
{
	return READ_ONCE(t->core.is_attached);
}

/* One line per thread that waits. */
void ut_dump_threads(void)
{
	char line[200];
	u32 end = READ_ONCE(ut.nr_threads_used);

	for (u32 i = 0; i < end; i++) {
		const struct ut_thread *t = &ut.threads[i];
		u32 used;

		if (!is_alive(t) || READ_ONCE(t->core.state) != SL_TASK_BLOCKED)
			continue;
		used = sl_print_to(line, sizeof(line), "waits ");
		used += describe(line + used, sizeof(line) - used, t);
		sl_print_to(line + used, sizeof(line) - used, ", stack %p to %p at %p",
			    (void *)t->stack.low, (void *)(t->stack.low + t->stack.bytes), t->sp);
		sl_host_print(line);
	}
}

/*
 * Is there a thread that runs, or may, or a time that a thread waits for? Each is
 * looked at in its turn, so that a thread that wakes up and goes to sleep again
 * meanwhile may be missed: but then its CPU has left idleness, and @idle is not what
 * it was.
 */
static bool is_alive_at_all(u64 idle)
{
	u32 end = smp_load_acquire(&ut.nr_threads_used);

	ut_forced_pause();
	if (smp_load_acquire(&ut.nr_outside) || (ut.hook && ut.hook_ns != UT_NEVER))
		return true;
	for (u32 i = 0; i < ut.nr_cpus; i++) {
		if (smp_load_acquire(&ut.cpus[i].nr_sleepers) ||
		    __atomic_load_n(&ut.cpus[i].pending, __ATOMIC_SEQ_CST))
			return true;
	}
	ut_forced_pause();
	for (u32 i = 0; i < end; i++) {
		if (is_alive(&ut.threads[i]) &&
		    smp_load_acquire(&ut.threads[i].core.state) != SL_TASK_BLOCKED)
			return true;
	}
	ut_forced_pause();
	return __atomic_load_n(&ut.idle, __ATOMIC_SEQ_CST) != idle;
}

/*
 * All CPUs are idle, the caller last, which made ut.idle @idle. If every thread waits
 * for another one, it will do so indefinitely. Context: preemption disabled.
 */
void ut_look_for_deadlock(u64 idle)
{
	char text[900];
	u32 end = smp_load_acquire(&ut.nr_threads_used);
	u32 used = 0;
	u32 nr = 0;
	s32 pid = 0;

	if (!ut_threads_left() || is_alive_at_all(idle))
		return;
	text[0] = 0;
	for (u32 i = 0; i < end; i++) {
		const struct ut_thread *t = &ut.threads[i];

		if (!is_alive(t))
			continue;
		if (!nr++)
			pid = t->core.p.pid;
		if (used > sizeof(text) - 160)
			continue;
		used += sl_print_to(text + used, sizeof(text) - used, "%s", nr > 1 ? ", " : "");
		used += describe(text + used, sizeof(text) - used, t);
	}
	ut_fail(-EDEADLK, "nothing can happen any more, %u threads wait: %s", nr, text);
	if (ut.on_deadlock) {
		ut.on_deadlock(ut.error, pid);
		return;
	}
	sl_host_print("deadlock: nothing can happen any more, every thread waits for another");
	ut_dump_threads();
	_exit(EXIT_DEADLOCK);
}
