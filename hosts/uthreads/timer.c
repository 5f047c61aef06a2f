/* SPDX-License-Identifier: MIT */
/*
 * timer.c - what happens at a time: sleepers, the policy's timers, the watchdog.
 *
 * Each CPU has a heap of the threads that went to sleep on it. The policy's
 * timers, but for those that are pinned, and the watchdog are CPU 0's; the timers are others' where it is late. A CPU that runs a thread has its timer
 * signal at the first of these times; one that is idle sleeps until then.
 *
 * Read next: preempt.c, the signal.
 */
#include <errno.h>
#include <string.h>

#include "ut.h"

/* When the policy's first timer is due, by its clock, and the watchdog; atomic. */
static u64 policy_timer_ns = UT_NEVER;

static void place(struct ut_cpu *cpu, u32 idx, struct ut_thread *t)
{
	cpu->sleepers[idx] = t;
	/* Without the lock its thread asks whether it is still among them. */
	WRITE_ONCE(t->heap_idx, idx);
}

static void sift_up(struct ut_cpu *cpu, u32 idx, struct ut_thread *t)
{
	while (idx) {
		u32 above = (idx - 1) / 2;

		if (cpu->sleepers[above]->wake_ns <= t->wake_ns)
			break;
		place(cpu, idx, cpu->sleepers[above]);
		idx = above;
	}
	place(cpu, idx, t);
}

static void sift_down(struct ut_cpu *cpu, u32 idx, struct ut_thread *t)
{
	u32 nr = cpu->nr_sleepers;

	for (;;) {
		u32 below = 2 * idx + 1;

		if (below >= nr)
			break;
		if (below + 1 < nr &&
		    cpu->sleepers[below + 1]->wake_ns < cpu->sleepers[below]->wake_ns)
			below++;
		if (t->wake_ns <= cpu->sleepers[below]->wake_ns)
			break;
		place(cpu, idx, cpu->sleepers[below]);
		idx = below;
	}
	place(cpu, idx, t);
}

/* Context: sleep_lock held. */
static int add(struct ut_cpu *cpu, struct ut_thread *t)
{
	u32 room = cpu->sleepers_room;

	if (cpu->nr_sleepers == room) {
		u32 more = room ? 2 * room : 64;
		struct ut_thread **wider = sl_host_alloc(more * sizeof(*wider));

		if (!wider)
			return -ENOMEM;
		if (room)
			memcpy(wider, cpu->sleepers, room * sizeof(*wider));
		sl_host_free(cpu->sleepers, room * sizeof(*wider));
		cpu->sleepers = wider;
		cpu->sleepers_room = more;
	}
	WRITE_ONCE(cpu->nr_sleepers, cpu->nr_sleepers + 1);
	sift_up(cpu, cpu->nr_sleepers - 1, t);
	return 0;
}

/* Context: sleep_lock held. */
static void take_out(struct ut_cpu *cpu, struct ut_thread *t)
{
	u32 idx = t->heap_idx;
	struct ut_thread *last = cpu->sleepers[cpu->nr_sleepers - 1];

	WRITE_ONCE(cpu->nr_sleepers, cpu->nr_sleepers - 1);
	smp_store_release(&t->heap_idx, UT_NOT_IN_HEAP);
	if (last == t)
		return;
	if (idx && cpu->sleepers[(idx - 1) / 2]->wake_ns > last->wake_ns)
		sift_up(cpu, idx, last);
	else
		sift_down(cpu, idx, last);
}

static void wake_sleepers(struct ut_cpu *cpu, u64 now_ns)
{
	struct ut_thread *t;

	while (READ_ONCE(cpu->nr_sleepers)) {
		sl_lock(&cpu->sleep_lock);
		t = cpu->nr_sleepers ? cpu->sleepers[0] : NULL;
		if (t && t->wake_ns > now_ns)
			t = NULL;
		if (t)
			take_out(cpu, t);
		sl_unlock(&cpu->sleep_lock);
		if (!t)
			return;
		ut_wake_by_interrupt(t);
	}
}

/*
 * @t, which runs here, is to be woken at @at_ns. Context: preemption disabled.
 * Return: 0; -ENOMEM.
 */
int ut_sleeper_add(struct ut_thread *t, u64 at_ns)
{
	struct ut_cpu *cpu = ut_this_cpu();
	int err;

	t->wake_ns = at_ns;
	t->heap_cpu = cpu->id;
	sl_lock(&cpu->sleep_lock);
	err = add(cpu, t);
	sl_unlock(&cpu->sleep_lock);
	/* The next thread sets the timer only for its own slice. */
	if (!err && at_ns < cpu->k->armed_ns)
		ut_timer_arm(cpu);
	return err;
}

/* Return: whether its time had not come. Context: preemption disabled. */
bool ut_sleeper_remove(struct ut_thread *t)
{
	struct ut_cpu *cpu = &ut.cpus[t->heap_cpu];
	bool was_in;

	if (smp_load_acquire(&t->heap_idx) == UT_NOT_IN_HEAP)
		return false;
	sl_lock(&cpu->sleep_lock);
	was_in = t->heap_idx != UT_NOT_IN_HEAP;
	if (was_in)
		take_out(cpu, t);
	sl_unlock(&cpu->sleep_lock);
	return was_in;
}

/* Clocks of two CPUs may differ by a moment: the heap says when it is time. */
static int sleep_until(u64 at_ns)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	int err = ut_begin_wait(self, at_ns);

	if (err)
		return err;
	for (;;) {
		ut_prepare_block(self, UT_WAIT_SLEEP, NULL);
		if (smp_load_acquire(&self->heap_idx) == UT_NOT_IN_HEAP)
			break;
		if (smp_load_acquire(&self->is_cancelled)) {
			if (ut_sleeper_remove(self))
				err = -ECANCELED;
			break;
		}
		ut_block(self);
	}
	ut_end_wait(self);
	return err;
}

int ut_sleep_ns(uint64_t ns)
{
	u64 at_ns, until_ns;
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	if (__builtin_add_overflow(sl_host_now_ns(), ns, &at_ns))
		at_ns = UT_NEVER - 1;
	until_ns = ut_until(ut_this_cpu()->curr, at_ns);
	err = sleep_until(until_ns);
	ut_enable();
	return !err && until_ns < at_ns ? -ETIMEDOUT : err;
}

uint64_t ut_set_deadline(uint64_t until_ns)
{
	u64 former_ns;

	if (!ut_this_cpu())
		return UT_NEVER;
	ut_disable();
	former_ns = ut_this_cpu()->curr->deadline_ns;
	ut_this_cpu()->curr->deadline_ns = until_ns;
	ut_enable();
	return former_ns;
}

void ut_policy_timer_set(u64 at_ns, bool is_pinned)
{
	struct ut_cpu *cpu = is_pinned ? ut_this_cpu() : &ut.cpus[0];

	smp_store_release(is_pinned ? &cpu->timer_ns : &policy_timer_ns, at_ns);
	ut_ring(cpu, UT_PENDING_TIMER);
}

/*
 * The same by the library's clock, without further steal time until then; checked again when
 * due.
 */
static u64 policy_timer_due_ns(const u64 *timer_ns)
{
	u64 at_ns = smp_load_acquire(timer_ns);

	return at_ns < UT_NEVER / 2 ? at_ns + READ_ONCE(ut_taken_ns) : UT_NEVER;
}

/* Return: whether it was due, later by @late_ns, and no other CPU has taken it meanwhile. */
static bool take_policy_timer(u64 *timer_ns, u64 now_ns, u64 late_ns)
{
	u64 due_ns = policy_timer_due_ns(timer_ns);

	/* It is set again when what was due has been run. */
	return due_ns != UT_NEVER && now_ns >= due_ns + late_ns &&
	       __atomic_exchange_n(timer_ns, UT_NEVER, __ATOMIC_SEQ_CST) != UT_NEVER;
}

/*
 * Those that are not pinned are CPU 0's; but when that is not there, since another process
 * has it, the others do not go without what a policy gives out at a time.
 */
static void run_policy_timers(struct ut_cpu *cpu, u64 now_ns)
{
	bool is_due = take_policy_timer(&policy_timer_ns, now_ns, cpu->id ? ut.tick_ns : 0);

	is_due |= take_policy_timer(&cpu->timer_ns, now_ns, 0);
	if (!is_due)
		return;
	ut_stolen_look_everywhere();
	sl_timers_run();
}

/* Everything that is due on this CPU. Context: preemption disabled. */
void ut_timers_run(struct ut_cpu *cpu)
{
	u64 now_ns = sl_host_now_ns();

	wake_sleepers(cpu, now_ns);
	run_policy_timers(cpu, now_ns);
	if (cpu->id)
		return;
	if (ut.hook && ut.hook_ns <= now_ns)
		ut.hook();
}

/* When ut_timers_run() is to be called next on @cpu. */
u64 ut_timers_first_ns(struct ut_cpu *cpu)
{
	u64 first_ns = UT_NEVER;
	u64 other_ns;

	if (READ_ONCE(cpu->nr_sleepers)) {
		sl_lock(&cpu->sleep_lock);
		if (cpu->nr_sleepers)
			first_ns = cpu->sleepers[0]->wake_ns;
		sl_unlock(&cpu->sleep_lock);
	}
	other_ns = policy_timer_due_ns(&cpu->timer_ns);
	first_ns = other_ns < first_ns ? other_ns : first_ns;
	if (cpu->id)
		return first_ns;
	other_ns = policy_timer_due_ns(&policy_timer_ns);
	first_ns = other_ns < first_ns ? other_ns : first_ns;
	if (ut.hook && ut.hook_ns < first_ns)
		first_ns = ut.hook_ns;
	return first_ns;
}

void ut_timers_exit(void)
{
	for (u32 i = 0; i < ut.nr_cpus; i++)
		sl_host_free(ut.cpus[i].sleepers,
			     ut.cpus[i].sleepers_room * sizeof(struct ut_thread *));
	policy_timer_ns = UT_NEVER;
}
