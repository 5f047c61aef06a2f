/* SPDX-License-Identifier: MIT */
/*
 * unit.h - tests of the core's parts, one thread, a clock that obeys.
 *
 *	unit list              names of the tests
 *	unit NAME [SEED]       run one
 *
 * unit.c has the runner, and a machine whose CPUs take turns; unit_*.c the
 * tests, each starting from a zeroed core.
 *
 * Read next: unit.c.
 */
#ifndef UNIT_H
#define UNIT_H

#include "fake_host.h"
#include "inside.h"
#include <scx/common.bpf.h>

#define UNIT_TASKS_MAX 128

/* A task that runs for so many ticks of 1 ms, then exits. */
struct unit_task {
	struct sl_task core;
	u32 nr_ticks_left;
	u32 nr_runs;
	bool has_exited;
};

extern struct unit_task unit_tasks[UNIT_TASKS_MAX];
extern u32 unit_nr_tasks;

void unit_add_test(const char *name, void (*test)(void));
#define TEST(name)							\
	static void name(void);						\
	__attribute__((constructor)) static void add_##name(void)	\
	{								\
		unit_add_test(#name, name);				\
	}								\
	static void name(void)

/* A machine of so many equal CPUs, without tasks. */
void unit_machine(u32 nr_cpus);
/* A new task that will run for @nr_ticks, made runnable from this CPU. */
struct unit_task *unit_start(u32 nr_ticks);
struct unit_task *unit_attach(u32 nr_ticks); /* only made known */
/* CPU @cpu does what it has to: answers a kick, ticks, ends its task. */
void unit_step(s32 cpu);
/* All CPUs take turns, the clock goes on; for @nr_turns at most. */
void unit_turns(u32 nr_turns);
void unit_run_to_end(void);
/* Load @ops with every map of this program. Return: what the core returned. */
int unit_enable(struct sched_ext_ops *ops);
/* Everything is given back. */
void unit_end(void);

#endif
