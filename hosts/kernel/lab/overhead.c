/* SPDX-License-Identifier: MIT */
/*
 * overhead.c - what overhead.h counts, added up per policy.
 *
 * The harts count without knowing policies; a change of the policy first
 * charges what was counted so far to the old one.
 *
 * Read next: policy.c.
 */
#include "overhead.h"

#include <schedlab/linked.h>

#include <schedlab/host.h>

#include "proc.h"

struct overhead_hart overhead_harts[NCPU];

static struct overhead_total *totals;	/* [sl_nr_linked_policies + 1] */
static struct overhead_total charged;	/* to all policies so far */
static struct spinlock lock;

const char *overhead_name(u32 what)
{
	static const char *const names[NR_OVERHEADS] = {
		[OVERHEAD_USER] = "user",	[OVERHEAD_KERNEL] = "kernel",
		[OVERHEAD_TRAP] = "trap",	[OVERHEAD_SCHED] = "sched",
		[OVERHEAD_SWITCH] = "switch",	[OVERHEAD_IDLE] = "idle",
	};

	return what < NR_OVERHEADS ? names[what] : "?";
}

static void charge(u64 *account, u64 *so_far, u64 counted)
{
	*account += counted - *so_far;
	*so_far = counted;
}

void overhead_charge(u32 policy_idx)
{
	struct overhead_total sum = { 0 };

	push_off();
	/* This hart's counters are up to date; the others' lag by one switch. */
	overhead_leave(overhead_harts[mycpu()->idx].now);
	pop_off();
	acquire(&lock);
	if (!totals)
		totals = sl_host_alloc((sl_nr_linked_policies + 1) * sizeof(*totals));
	for (u32 cpu = 0; cpu < nr_cpus; cpu++) {
		for (u32 i = 0; i < NR_OVERHEADS; i++) {
			sum.instructions[i] +=
				READ_ONCE(overhead_harts[cpu].instructions[i]);
			sum.entries[i] += READ_ONCE(overhead_harts[cpu].entries[i]);
		}
	}
	for (u32 i = 0; totals && i < NR_OVERHEADS; i++) {
		charge(&totals[policy_idx].instructions[i],
		       &charged.instructions[i], sum.instructions[i]);
		charge(&totals[policy_idx].entries[i], &charged.entries[i],
		       sum.entries[i]);
	}
	release(&lock);
}

const struct overhead_total *overhead_total(u32 policy_idx)
{
	static const struct overhead_total none;

	return totals && policy_idx <= sl_nr_linked_policies ?
	       &totals[policy_idx] : &none;
}
