/* SPDX-License-Identifier: MIT */
/*
 * clock.c - how fast the processor's counter counts.
 *
 * Compared with the kernel's monotonic clock over a few milliseconds at the
 * start. Each comparison takes the closest of several, since an interrupt may
 * come between the two readings. Where the counter is not constant, the kernel's
 * clock is used.
 *
 * Read next: host_inline.h, the reading.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "ut.h"

#define TRIES 10
#define STOLEN_MIN_NS 5000

struct ut_clock ut_clock;
u64 ut_taken_ns;
static u64 kernel_base_ns;

static u64 monotonic_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (u64)at.tv_sec * 1000000000 + (u64)at.tv_nsec;
}

u64 ut_kernel_clock_ns(void)
{
	return monotonic_ns() - kernel_base_ns;
}

struct instant {
	u64 cycles;
	u64 ns;
};

static struct instant compare_clocks(void)
{
	struct instant best = { 0, 0 };
	u64 best_cycles = ~0ULL;

	for (u32 i = 0; i < TRIES; i++) {
		u64 before = ut_cycles();
		u64 ns = monotonic_ns();
		u64 took = ut_cycles() - before;

		if (took < best_cycles) {
			best_cycles = took;
			best = (struct instant){ before + took / 2, ns };
		}
	}
	return best;
}

/* Does it count at one rate, whatever the processor's clock and sleep? */
static bool is_constant(void)
{
#if defined(__x86_64__)
	u32 a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1U << 8));
#else
	return true;
#endif
}

void ut_clock_init(void)
{
	struct instant first, last;

	ut_clock = (struct ut_clock){ 0 };
	kernel_base_ns = monotonic_ns();
	if (!is_constant())
		return;
	first = compare_clocks();
	while (monotonic_ns() - first.ns < UT_CALIBRATION_NS)
		ut_pause();
	last = compare_clocks();
	if (last.cycles - first.cycles < UT_CALIBRATION_NS / 1000)
		return;		/* slower than 1 MHz: too coarse */
	ut_clock.base_cycles = last.cycles;
	ut_clock.ns_per_cycle_q32 = ((last.ns - first.ns) << 32) /
				    (last.cycles - first.cycles);
}

/* ---- what other processes took -------------------------------------------------- */

static u64 cpu_time_ns(const struct ut_cpu *cpu)
{
	struct timespec at;

	if (clock_gettime(cpu->clock, &at))
		return 0;
	return (u64)at.tv_sec * 1000000000 + (u64)at.tv_nsec;
}

/* The caller's CPU is to run from now on; before, it slept. */
void ut_stolen_mark(struct ut_cpu *cpu)
{
	sl_lock(&cpu->stolen_lock);
	sl_poke(&cpu->hot.looked_ns, sl_host_now_ns());
	cpu->marked_cpu_ns = cpu_time_ns(cpu);
	sl_unlock(&cpu->stolen_lock);
}

/* Somebody else had @cpu for so long; also asked by who sees that it wakes up late. */
void ut_note_away(struct ut_cpu *cpu, u64 away_ns)
{
	if (away_ns > sl_peek(&cpu->away_ns_max))
		sl_poke(&cpu->away_ns_max, away_ns);
}

/*
 * The kernel knows how long the kernel thread of @cpu ran since the last look; for the
 * rest of the time until @now_ns somebody else had its CPU. Return: for how long.
 */
static u64 look(struct ut_cpu *cpu, u64 now_ns)
{
	u64 cpu_ns;
	s64 stolen_ns;

	/* Whoever has it is looking. */
	if (!sl_trylock(&cpu->stolen_lock))
		return 0;
	cpu_ns = cpu_time_ns(cpu);
	stolen_ns = (s64)(now_ns - cpu->hot.looked_ns) -
		    (s64)(cpu_ns - cpu->marked_cpu_ns);
	sl_poke(&cpu->hot.looked_ns, now_ns);
	cpu->marked_cpu_ns = cpu_ns;
	sl_unlock(&cpu->stolen_lock);
	/* The two clocks are read one after the other. */
	if (stolen_ns < STOLEN_MIN_NS)
		return 0;
	ut_note_away(cpu, (u64)stolen_ns);
	__atomic_fetch_add(&ut_taken_ns, (u64)stolen_ns / ut.nr_cpus,
			   __ATOMIC_RELAXED);
	return (u64)stolen_ns;
}

static void look_at_run(struct ut_cpu *cpu, u64 now_ns)
{
	u64 stolen_ns = look(cpu, now_ns);

	if (stolen_ns)
		__atomic_fetch_add(&cpu->stolen_ns, stolen_ns, __ATOMIC_RELAXED);
}

/* At the caller's CPU. Context: preemption disabled, any lock may be held. */
void ut_stolen_look(u64 now_ns)
{
	look_at_run(ut_this_cpu(), now_ns);
}

/* The caller's CPU was idle, and awake, until now: no task has lost anything. */
void ut_stolen_idle(struct ut_cpu *cpu)
{
	look(cpu, sl_host_now_ns());
}

/*
 * At all CPUs, also those that are taken away at this moment: what a policy is to give
 * out for them is not there. Context: preemption disabled.
 */
void ut_stolen_look_everywhere(void)
{
	for (u32 i = 0; i < ut.nr_cpus; i++) {
		struct ut_cpu *cpu = &ut.cpus[i];
		u64 now_ns = sl_host_now_ns();

		/* Who is idle is not missing; who goes idle after this is, a little. */
		if (cpu == ut_this_cpu() || sl_load(&cpu->doorbell) == UT_BELL_OFF)
			look_at_run(cpu, now_ns);
	}
}

/**
 * ut_stolen_ns - for how much of the last @ran_ns did the CPU not run at all
 * @t: the task that runs on it
 *
 * What is missing belongs to the run that was long enough to be looked at. Another
 * CPU than its own knows only what has been found so far.
 *
 * Context: the lock of @t's CPU is held; from any CPU.
 */
u64 ut_stolen_ns(struct sl_task *t, u64 ran_ns)
{
	struct ut_cpu *cpu = &ut.cpus[sl_peek(&t->cpu)];
	u64 stolen_ns;

	if (cpu == ut_this_cpu())
		ut_stolen_look(cpu->hot.now_ns);
	stolen_ns = __atomic_exchange_n(&cpu->stolen_ns, 0, __ATOMIC_RELAXED);
	if (!stolen_ns)
		return 0;
	/* It was found late: those that follow had so much less of the CPU. */
	if (stolen_ns > ran_ns) {
		__atomic_fetch_add(&cpu->stolen_ns, stolen_ns - ran_ns, __ATOMIC_RELAXED);
		stolen_ns = ran_ns;
	}
	sl_host_record(SL_RECORD_OVERHEAD, 0, cpu->id, SL_OVERHEAD_STOLEN,
		       stolen_ns);
	return stolen_ns;
}

/* Time is zero now. Context: nobody else asks. */
void ut_clock_restart(void)
{
	ut_clock.base_cycles = ut_cycles();
	kernel_base_ns = monotonic_ns();
	ut_taken_ns = 0;
	for (u32 i = 0; i < ut.nr_cpus; i++) {
		ut.cpus[i].hot.now_ns = 0;
		ut.cpus[i].hot.policy_ns = 0;
	}
	ut_stolen_mark(ut_this_cpu());
}
