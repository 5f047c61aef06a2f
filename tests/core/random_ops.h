/* SPDX-License-Identifier: MIT */
/*
 * random_ops.h - the naive model that random operations are checked against.
 *
 * Each task carries, beside the core's part, what the test believes about it.
 * Members without "atomic" are plain on purpose: they are touched where the
 * core promises that nobody else touches the task, so ThreadSanitizer checks
 * that promise.
 *
 *	what the policy is told (seen):
 *
 *	OFF --runnable--> READY --running--> RUN --stopping(1)--> READY
 *	 ^                  |                 |
 *	 |                  quiescent         stopping(0)
 *	 +------------------+---quiescent-- STOPPED
 *
 * Read next: random_policies.c, then random_ops.c.
 */
#ifndef RANDOM_OPS_H
#define RANDOM_OPS_H

#include "fake_host.h"
#include "inside.h"

enum seen {
	SEEN_OFF,
	SEEN_READY,
	SEEN_RUN,
	SEEN_STOPPED,
};

struct model_task {
	struct sl_task core; /* first: a policy's pointer is one to this too */
	u32 refs;	     /* atomic; at 0 it is detached and buried */
	struct model_task *next_grave;
	u32 slot;
	s32 runs_on;	  /* atomic; -1: no CPU */
	s32 pinned_to;	  /* where its migration is disabled; -1: nowhere */
	u32 nr_announced; /* blocks announced; atomic */
	u32 nr_woken;	  /* wake-ups that made a difference; atomic */
	u32 change_lock;  /* atomic; who changes weight or affinity */
	u32 version;	  /* atomic; odd while affinity changes */
	/* Under the core's protection: */
	enum seen seen;
	bool in_custody;
	bool has_arrived;
	bool is_on_record; /* a RUN record without its STOP */
	bool is_woken_on_record;
	u64 stopped_ns; /* sum of what STOP records say it ran */
	u64 arrive_ns;
};

struct random_policy {
	const char *name;
	struct sched_ext_ops *ops; /* NULL: the built-in FIFO */
	bool no_affinity;	   /* its dispatch may not be raced by a new mask */
	bool holds_pointers;	   /* to tasks, also when they are no more */
	bool counts_idle;	   /* so it has to know when it begins */
	bool may_fail;
};

extern const struct random_policy random_policies[];
extern const u32 nr_random_policies;
extern struct sl_policy random_policy_of(const struct random_policy *chosen);

/* Forget what an earlier start left in a policy's globals. */
void random_policies_reset(bool is_live);

/* What the policies saw, so that a test that tested nothing is noticed. */
enum count {
	COUNT_ENQUEUE,
	COUNT_DEQUEUE,
	COUNT_DISPATCH,
	COUNT_MOVED,
	COUNT_TIMER,
	COUNT_KICK,
	COUNT_CUSTODY,
	COUNT_LAST,
	COUNT_DIRECT,
	COUNT_STALE,
	COUNT_REENQUEUED,
	NR_COUNTS
};
extern u64 random_counts[NR_COUNTS]; /* atomic */

#endif
