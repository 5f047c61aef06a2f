/* SPDX-License-Identifier: MIT */
/*
 * clocks.c - whether the clocks of a trace's CPUs agree.
 *
 * A task that sleeps blocks, is woken, and runs again, in this order on whichever CPU it
 * is seen. Where a waking on one CPU stands before its sleeper blocks on another, or after
 * it runs again, the clocks of the two differ by at least as much. One such wake-up can be
 * a lost event, many are none.
 *
 * Called by lives.c.
 */
#include <stdlib.h>

#include "record.h"

/* The kernel tells of a switch shortly after the task can be woken; this is no skew. */
#define RACE_NS 20000
/* As many contradictions are no accident; and this many in a hundred wake-ups. */
#define NR_MIN 5
#define PERCENT_MIN 3
#define KEPT_MAX 4096

static uint64_t kept[KEPT_MAX];
static uint64_t nr;

void clocks_contradict(uint64_t ns)
{
	if (ns < RACE_NS)
		return;
	if (nr < KEPT_MAX)
		kept[nr] = ns;
	nr++;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

uint64_t clocks_differ_ns(uint64_t nr_wakeups)
{
	size_t nr_kept = nr < KEPT_MAX ? nr : KEPT_MAX;

	if (nr < NR_MIN || nr * 100 < nr_wakeups * PERCENT_MIN)
		return 0;
	/* Each is a lower bound, but of a lost event it is anything: the middle one is neither. */
	qsort(kept, nr_kept, sizeof(kept[0]), by_size);
	return kept[nr_kept / 2];
}
