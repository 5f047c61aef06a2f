/* SPDX-License-Identifier: MIT */
/*
 * random_run.h - what random_ops.c and random_check.c share.
 *
 * Read next: random_ops.c.
 */
#ifndef RANDOM_RUN_H
#define RANDOM_RUN_H

#include <pthread.h>

#include "random_ops.h"

#define RANDOM_TASKS_MAX 1024
#define RANDOM_IDX_MAX 4096

struct random_run {
	u64 seed;
	u32 nr_cpus, nr_tasks, nr_rounds, round_ms;
	const struct random_policy *policy;
	struct sl_policy loaded;
	/* One bit pattern each, mask 0 is empty; constant, so that a task may
	 * use one for as long as it likes. */
	struct cpumask masks[16];
	u32 nr_masks;

	pthread_mutex_t slots_lock;
	struct model_task *slots[RANDOM_TASKS_MAX];
	bool idx_in_use[RANDOM_IDX_MAX]; /* of tasks that are not detached yet, too */
	struct model_task *graves;
	s32 next_pid;

	u32 nr_alive; /* atomic, as all below */
	u64 nr_spawned;
	u64 nr_reused; /* whose memory was another task's before */
	u64 nr_steps;
	u64 nr_failures;
	u64 nr_switched; /* policies, while all CPUs were at work */
	bool is_draining;
	bool is_over;

	pthread_mutex_t switch_lock; /* who changes the policy */
	pthread_mutex_t park_lock;
	pthread_cond_t park_changed;
	bool must_park;
	u32 nr_parked;
};

extern struct random_run run;

void random_options(int argc, char **argv);
void random_check_all(void);
void random_forget_seen(void);
void random_report(void);

#endif
