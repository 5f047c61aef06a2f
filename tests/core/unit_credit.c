/* SPDX-License-Identifier: MIT */
/*
 * unit_credit.c - policies/credit.bpf.c where its accountings come late.
 *
 * No host can be told to be late, but here the clock goes as far as it is set. The
 * policy is compiled into this file, so that what it counts can be seen.
 *
 * Read next: policies/credit.bpf.c.
 */
#include "unit.h"

/* The other tests have a map of this name, too. */
#define task_attrs credit_task_attrs
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "../../policies/credit.bpf.c"

static u64 periods_after(u64 nr_periods)
{
	u64 before = period;

	fake.now_ns += nr_periods * period_ns;
	sl_timers_run();
	return period - before;
}

/* What was not given out would be missing for ever: tasks have used that time. */
TEST(credit_gives_out_what_it_was_late_for)
{
	unit_machine(2);
	CHECK(!unit_enable(&credit_ops));
	CHECK(periods_after(1) == 1);
	CHECK(periods_after(1) == 1);
	CHECK(periods_after(7) == 7);
	CHECK(periods_after(1) == 1);
	/* A machine that stood still has no debts: nobody may hoard more. */
	CHECK(periods_after(1000) == HOARD_PERIODS);
	CHECK(periods_after(1) == 1);
	unit_end();
}
