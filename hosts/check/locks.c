/* SPDX-License-Identifier: MIT */
/*
 * locks.c - locks of the core and of the policy, which CPU holds which, and deadlocks.
 *
 *	CPU 0: takes A		 waits for B
 *	CPU 1:		takes B		     waits for A	<- found here
 *
 * Before a CPU waits, the chain from its lock to the holder, to the lock that this one waits
 * for, and so on, is followed. An end at a CPU that is in no callback is a lock that was never
 * dropped. The core takes its own locks in one order, so a circle without a lock of the
 * policy is a defect of the core.
 *
 * Read next: bpf/spin_lock.c, the policy's locks.
 */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

#define HELD_MAX 31	/* as many as Linux's rqspinlock knows of */

struct lock {
	const u32 *holder; /* CPU + 1; 0: free; NULL: there is no lock */
	const void *name;  /* where the policy has it; NULL: it is the core's */
	const void *caller;
};

static struct cpu {
	struct lock wanted;
	struct lock held[HELD_MAX]; /* of the policy, in the order in which they were taken */
	u32 nr_held;
} *cpus;

void check_forget_locks(void)
{
	cpus = calloc(sim.options->nr_cpus, sizeof(*cpus));
	SL_ASSERT(cpus);
}

/* ---- what is said ------------------------------------------------------------- */

struct text {
	char bytes[1024];
	u32 used;
};

static void add_callback(struct text *text, s32 cpu)
{
	text->used += check_name_callback(cpu, text->bytes + text->used,
					  (u32)sizeof(text->bytes) - text->used);
}

static void add_lock(struct text *text, const char *verb, const struct lock *lock)
{
	char name[CHECK_NAME_BYTES], caller[CHECK_NAME_BYTES];
	u32 room = (u32)sizeof(text->bytes) - text->used;
	int nr = snprintf(text->bytes + text->used, room, " %s %s at %s", verb,
			  lock->name ? check_name(lock->name, name, "a lock") : "a queue's lock",
			  lock->name ? check_name((const char *)lock->caller - 1, caller, "?") :
				       "sched_ext");

	text->used += (u32)nr < room ? (u32)nr : room - 1;
}

static s32 holder_of(const struct lock *lock)
{
	return (s32)*lock->holder - 1;
}

static const struct lock *held_as(s32 cpu, const u32 *holder)
{
	for (u32 i = 0; i < cpus[cpu].nr_held; i++) {
		if (cpus[cpu].held[i].holder == holder)
			return &cpus[cpu].held[i];
	}
	return NULL;
}

/* The same circle is told from the same CPU on, wherever it was closed. */
static s32 first_of_circle(s32 closed_by)
{
	s32 first = closed_by;

	for (s32 cpu = closed_by;;) {
		cpu = holder_of(&cpus[cpu].wanted);
		if (cpu == closed_by)
			return first;
		if (cpus[cpu].wanted.caller < cpus[first].wanted.caller)
			first = cpu;
	}
}

static sl_cold void report_circle(s32 closed_by)
{
	struct text text = { .used = 0 };
	s32 first = first_of_circle(closed_by);
	bool is_policys = false;
	s32 cpu = first;

	/* First what is held, then what is waited for. */
	do {
		const struct lock *wanted = &cpus[cpu].wanted;
		const struct lock *held = held_as(holder_of(wanted), wanted->holder);

		cpu = holder_of(wanted);
		is_policys |= !!wanted->name;
		add_callback(&text, cpu);
		add_lock(&text, "took", held ?: wanted);
		text.bytes[text.used++] = ';';
		text.bytes[text.used++] = ' ';
	} while (cpu != first);
	do {
		text.used += (u32)snprintf(text.bytes + text.used, 32, "%sCPU %d",
					   cpu == first ? "" : "; ", cpu);
		add_lock(&text, "waits for", &cpus[cpu].wanted);
		cpu = holder_of(&cpus[cpu].wanted);
	} while (cpu != first);
	if (!is_policys) {
		sim_log("%s\n", text.bytes);
		sl_host_panic(__FILE__, __LINE__, "a deadlock of the core's locks");
	}
	sim_fail("locks", 0, "a deadlock: %s", text.bytes);
}

static sl_cold void report_kept(s32 cpu, const struct lock *lock)
{
	struct text text = { .used = 0 };

	add_callback(&text, cpu);
	add_lock(&text, "took", lock);
	sim_fail("locks", 0, "a lock is not dropped: %s, and its callback is over", text.bytes);
}

/* A run that has failed goes to its end: its locks mean nothing. */
static bool is_failed(void)
{
	return sim.result->error_kind;
}

/* A CPU's callback is over: none of the policy's locks is left. */
void check_end_callbacks(s32 cpu)
{
	if (unlikely(cpus[cpu].nr_held)) {
		if (!is_failed())
			report_kept(cpu, &cpus[cpu].held[0]);
		cpus[cpu].nr_held = 0;
	}
}

static bool closes_circle(s32 self)
{
	s32 cpu = self;

	for (u32 i = 0; i < sim.options->nr_cpus && cpus[cpu].wanted.holder; i++) {
		cpu = holder_of(&cpus[cpu].wanted);
		if (cpu == self)
			return true;
		if (cpu < 0 || cpu >= (s32)sim.options->nr_cpus)
			return false;
	}
	return false;
}

/* ---- locks -------------------------------------------------------------------- */

/* Return: false: it will never be free, which only a policy's lock may be. */
static bool wait_until_free(const struct lock *lock)
{
	s32 self = sim_cpu_idx;

	check_point(lock->holder, true);
	while (*lock->holder) {
		if (lock->name && is_failed())
			return false;
		cpus[self].wanted = *lock;
		if (closes_circle(self) && !is_failed())
			report_circle(self);
		else
			check_wait(lock->holder, lock->name);
		cpus[self].wanted.holder = NULL;
	}
	return true;
}

void check_lock(sl_lock_t *lock)
{
	struct lock wanted = { .holder = &lock->holder, .caller = __builtin_return_address(0) };

	/* Outside of events nothing interleaves, and locks are as empty as in hosts/sim. */
	if (!check_is_in_event())
		return;
	wait_until_free(&wanted);
	SL_ASSERT(!lock->holder);
	lock->holder = (u32)sim_cpu_idx + 1;
}

void check_unlock(sl_lock_t *lock)
{
	if (!check_is_in_event())
		return;
	check_settle();
	SL_ASSERT(lock->holder);
	lock->holder = 0;
	check_wake(&lock->holder);
	check_point(lock, true);
}

bool check_policy_lock(const u32 *holder, const void *lock, const void *caller)
{
	struct lock wanted = { .holder = holder, .name = lock, .caller = caller };
	struct cpu *c = &cpus[sim_cpu_idx];

	if (!check_is_in_event())
		return false;
	if (!wait_until_free(&wanted))
		return true;
	if (c->nr_held < HELD_MAX)
		c->held[c->nr_held++] = wanted;
	return false;
}

void check_policy_unlock(const u32 *holder)
{
	struct cpu *c;
	u32 kept = 0;

	if (!check_is_in_event())
		return;
	check_settle();
	c = &cpus[sim_cpu_idx];
	for (u32 i = 0; i < c->nr_held; i++) {
		if (c->held[i].holder != holder)
			c->held[kept++] = c->held[i];
	}
	c->nr_held = kept;
	check_wake(holder);
	check_point(holder, true);
}
