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
#define STOLEN_MIN_NS 5000LL

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
		return; /* slower than 1 MHz: too coarse */
	ut_clock.base_cycles = last.cycles;
	ut_clock.ns_per_cycle_q32 = ((last.ns - first.ns) << 32) / (last.cycles - first.cycles);
}

/* ---- what other processes took --------------------------------------------------
 *
 *	since the mark    |######|       |####|          |########
 *	kernel thread has  its CPU  other   its CPU  other
 *
 * Away is the time since the mark without the CPU time since then. It is always
 * computed from the mark, never from the last look: the error of a reading is then
 * not added to that of the next one. A reader takes the time first and the CPU time
 * after it, and whatever comes between them makes the difference smaller; so the
 * largest is the right one, whichever CPU has found it.
 */

static bool cpu_time_ns(const struct ut_cpu *cpu, u64 *ns)
{
	struct timespec at;

	if (clock_gettime(cpu->k->clock, &at))
		return false;
	*ns = (u64)at.tv_sec * 1000000000 + (u64)at.tv_nsec;
	return true;
}

/* The caller's CPU is to run from now on; before, it slept. */
void ut_stolen_mark(struct ut_cpu *cpu)
{
	u64 cpu_ns, now_ns;

	if (!cpu_time_ns(cpu, &cpu_ns))
		return;
	now_ns = sl_host_now_ns();
	__atomic_fetch_add(&cpu->k->nr_marks, 1, __ATOMIC_SEQ_CST);
	/* What was found before the mark stays found. */
	WRITE_ONCE(cpu->k->marked_ns, now_ns - READ_ONCE(cpu->k->stolen_ns));
	WRITE_ONCE(cpu->k->marked_cpu_ns, cpu_ns);
	__atomic_fetch_add(&cpu->k->nr_marks, 1, __ATOMIC_SEQ_CST);
	WRITE_ONCE(cpu->hot.looked_ns, now_ns);
	cpu->k->idle_since_ns = now_ns;
}

/* Another process had @cpu for so long; also noted by a CPU that wakes up late. */
void ut_note_away(struct ut_cpu *cpu, u64 away_ns)
{
	if (away_ns > READ_ONCE(cpu->k->away_ns_max))
		WRITE_ONCE(cpu->k->away_ns_max, away_ns);
}

/*
 * Find out what others had of @cpu until @now_ns. From any CPU, without a lock: a
 * kernel thread that lost its CPU with one would keep the others from looking.
 * Return: how much of it was not known before.
 */
static u64 look(struct ut_cpu *cpu, u64 now_ns)
{
	u32 nr_marks = smp_load_acquire(&cpu->k->nr_marks);
	u64 marked_ns = READ_ONCE(cpu->k->marked_ns);
	u64 marked_cpu_ns = READ_ONCE(cpu->k->marked_cpu_ns);
	u64 cpu_ns, stolen_ns;
	u64 known_ns = READ_ONCE(cpu->k->stolen_ns);

	if (!cpu_time_ns(cpu, &cpu_ns))
		return 0;
	/* One that slept meanwhile lost nothing by that. */
	if (cpu != ut_this_cpu() &&
	    (nr_marks & 1 || smp_load_acquire(&cpu->k->doorbell) != UT_BELL_OFF ||
	     smp_load_acquire(&cpu->k->nr_marks) != nr_marks))
		return 0;
	if (now_ns > READ_ONCE(cpu->hot.looked_ns))
		WRITE_ONCE(cpu->hot.looked_ns, now_ns);
	stolen_ns = now_ns - marked_ns - (cpu_ns - marked_cpu_ns);
	do {
		if ((s64)(stolen_ns - known_ns) < STOLEN_MIN_NS)
			return 0;
	} while (!__atomic_compare_exchange_n(&cpu->k->stolen_ns, &known_ns, stolen_ns, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	ut_note_away(cpu, stolen_ns - known_ns);
	__atomic_fetch_add(&ut_taken_ns, (stolen_ns - known_ns) / ut.nr_cpus, __ATOMIC_RELAXED);
	return stolen_ns - known_ns;
}

/* At the caller's CPU. Context: preemption disabled, any lock may be held. */
void ut_stolen_look(u64 now_ns)
{
	look(ut_this_cpu(), now_ns);
}

/*
 * No task ran on @cpu, the caller's: no task has lost what others are known to have had.
 * Return: for how long others had it, as this CPU or another has found.
 */
static u64 settle_without_task(struct ut_cpu *cpu)
{
	u64 settled_ns = cpu->k->settled_ns;

	cpu->k->settled_ns = READ_ONCE(cpu->k->stolen_ns);
	return cpu->k->settled_ns - settled_ns;
}

/* The caller's CPU was idle, and awake, until @now_ns. */
void ut_stolen_idle(struct ut_cpu *cpu, u64 now_ns)
{
	u64 idle_ns = now_ns - cpu->k->idle_since_ns;
	u64 stolen_ns;

	if (now_ns - READ_ONCE(cpu->hot.looked_ns) >= UT_STOLEN_FROM_NS)
		look(cpu, now_ns);
	stolen_ns = settle_without_task(cpu);
	cpu->k->idle_ns += idle_ns > stolen_ns ? idle_ns - stolen_ns : 0;
	cpu->k->idle_since_ns = now_ns;
}

/*
 * The core has chosen between @from_ns and @now_ns, may have waited for another CPU's
 * lock meanwhile, and given this one away by sched_yield(): the next task begins now,
 * and has lost nothing of it.
 */
void ut_stolen_switch(u64 from_ns, u64 now_ns)
{
	struct ut_cpu *cpu = ut_this_cpu();
	u64 switch_ns = now_ns - from_ns;
	u64 stolen_ns;

	look(cpu, now_ns);
	stolen_ns = settle_without_task(cpu);
	cpu->hot.switch_ns -= stolen_ns < switch_ns ? stolen_ns : switch_ns;
}

/*
 * At all CPUs, also those that are taken away at this moment: what a policy is to give
 * out for them is not there. Context: preemption disabled.
 */
void ut_stolen_look_everywhere(void)
{
	/* One that is idle is not missing. */
	for (u32 i = 0; i < ut.nr_cpus; i++)
		look(&ut.cpus[i], sl_host_now_ns());
}

/**
 * ut_stolen_ns - for how much of the last @ran_ns did the CPU not run at all
 * @t: the task that runs on it
 *
 * What is missing belongs to the run that was long enough to be looked at.
 *
 * Context: the lock of @t's CPU is held; from any CPU, which has just read its clock.
 */
u64 ut_stolen_ns(struct sl_task *t, u64 ran_ns)
{
	struct ut_cpu *cpu = &ut.cpus[READ_ONCE(t->cpu)];
	u64 stolen_ns;

	look(cpu, ut_this_cpu()->hot.now_ns);
	stolen_ns = READ_ONCE(cpu->k->stolen_ns) - cpu->k->settled_ns;
	if (!stolen_ns)
		return 0;
	/* It was found late: the rest of this run had so much less of the CPU. */
	if (stolen_ns > ran_ns)
		stolen_ns = ran_ns;
	cpu->k->settled_ns += stolen_ns;
	sl_host_record(SL_RECORD_OVERHEAD, 0, cpu->id, SL_OVERHEAD_STOLEN, stolen_ns);
	return stolen_ns;
}

/* The caller's CPU is to run no task any more: what its kernel thread had of a CPU. */
void ut_clock_end(struct ut_cpu *cpu)
{
	u64 cpu_ns;

	ut_stolen_idle(cpu, sl_host_now_ns());
	if (cpu_time_ns(cpu, &cpu_ns))
		cpu->k->clock_ns = cpu_ns - cpu->k->clock_from_ns;
}

/* Time is zero now. Context: no other CPU asks. */
void ut_clock_restart(void)
{
	ut_clock.base_cycles = ut_cycles();
	kernel_base_ns = monotonic_ns();
	ut_taken_ns = 0;
	for (u32 i = 0; i < ut.nr_cpus; i++) {
		ut.cpus[i].hot.now_ns = 0;
		ut.cpus[i].hot.policy_ns = 0;
		cpu_time_ns(&ut.cpus[i], &ut.cpus[i].k->clock_from_ns);
	}
	ut_stolen_mark(ut_this_cpu());
}
