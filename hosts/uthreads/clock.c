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

#define CALIBRATION_NS 3000000
#define TRIES 10
#define STOLEN_MIN_NS 5000

struct ut_clock ut_clock;
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
	while (monotonic_ns() - first.ns < CALIBRATION_NS)
		ut_pause();
	last = compare_clocks();
	if (last.cycles - first.cycles < CALIBRATION_NS / 1000)
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

/* From now on the kernel thread of @cpu is to run; before, it slept. */
void ut_stolen_mark(struct ut_cpu *cpu)
{
	cpu->marked_ns = sl_host_now_ns();
	cpu->marked_cpu_ns = cpu_time_ns(cpu);
}

/**
 * ut_stolen_ns - for how much of the last @ran_ns did the CPU not run at all
 * @t: the task that runs on it
 *
 * The kernel knows how long the kernel thread ran since the last look. What is
 * missing belongs to the run that was long enough to be looked at.
 *
 * Context: the lock of @t's CPU is held; from any CPU.
 */
u64 ut_stolen_ns(struct sl_task *t, u64 ran_ns)
{
	struct ut_cpu *cpu = &ut.cpus[sl_peek(&t->cpu)];
	u64 now_ns = ut_this_cpu()->hot.now_ns;
	u64 cpu_ns = cpu_time_ns(cpu);
	s64 stolen_ns = (s64)(now_ns - cpu->marked_ns) -
			(s64)(cpu_ns - cpu->marked_cpu_ns);

	cpu->marked_ns = now_ns;
	cpu->marked_cpu_ns = cpu_ns;
	/* The two clocks are read one after the other. */
	if (stolen_ns < STOLEN_MIN_NS)
		return 0;
	if ((u64)stolen_ns > ran_ns)
		stolen_ns = (s64)ran_ns;
	sl_host_record(SL_RECORD_OVERHEAD, 0, cpu->id, SL_OVERHEAD_STOLEN,
		       (u64)stolen_ns);
	return (u64)stolen_ns;
}

/* Time is zero now. Context: nobody else asks. */
void ut_clock_restart(void)
{
	ut_clock.base_cycles = ut_cycles();
	kernel_base_ns = monotonic_ns();
	for (u32 i = 0; i < ut.nr_cpus; i++)
		ut.cpus[i].hot.now_ns = 0;
}
