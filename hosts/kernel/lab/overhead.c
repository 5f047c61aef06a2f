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

#include "bootargs.h"
#include "proc.h"

bool overhead_is_counted;

struct account {
	u64 since; /* instret when the present one began */
	u32 now;   /* enum overhead */
	u64 instructions[NR_OVERHEADS];
	u64 entries[NR_OVERHEADS]; /* how often each began */
} __attribute__((aligned(64)));

static struct account accounts[NCPU];

static struct overhead_total *totals; /* [sl_nr_linked_policies + 1] */
static struct overhead_total charged; /* to all policies so far */
static struct spinlock lock;

void overhead_init(void)
{
	overhead_is_counted = bootarg_u64("overhead", 0);
}

u32 overhead_count_enter(enum overhead what)
{
	struct account *a = &accounts[sl_host_cpu()];
	u32 was = a->now;

	overhead_count_leave(what);
	a->entries[what]++;
	return was;
}

void overhead_count_leave(u32 was)
{
	struct account *a = &accounts[sl_host_cpu()];
	u64 n = overhead_instret();

	a->instructions[a->now] += n - a->since;
	a->since = n;
	a->now = was;
}

const char *overhead_name(u32 what)
{
	static const char *const names[NR_OVERHEADS] = {
		[OVERHEAD_USER] = "user",   [OVERHEAD_KERNEL] = "kernel", [OVERHEAD_TRAP] = "trap",
		[OVERHEAD_SCHED] = "sched", [OVERHEAD_SWITCH] = "switch", [OVERHEAD_IDLE] = "idle",
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

	if (!overhead_is_counted)
		return;
	push_off();
	/* This hart's counters are up to date; the others' lag by one switch. */
	overhead_leave(accounts[mycpu()->idx].now);
	pop_off();
	acquire(&lock);
	if (!totals)
		totals = sl_host_alloc((sl_nr_linked_policies + 1) * sizeof(*totals));
	for (u32 cpu = 0; cpu < nr_cpus; cpu++) {
		for (u32 i = 0; i < NR_OVERHEADS; i++) {
			sum.instructions[i] += READ_ONCE(accounts[cpu].instructions[i]);
			sum.entries[i] += READ_ONCE(accounts[cpu].entries[i]);
		}
	}
	for (u32 i = 0; totals && i < NR_OVERHEADS; i++) {
		charge(&totals[policy_idx].instructions[i], &charged.instructions[i],
		       sum.instructions[i]);
		charge(&totals[policy_idx].entries[i], &charged.entries[i], sum.entries[i]);
	}
	release(&lock);
}

const struct overhead_total *overhead_total(u32 policy_idx)
{
	static const struct overhead_total none;

	return totals && policy_idx <= sl_nr_linked_policies ? &totals[policy_idx] : &none;
}
