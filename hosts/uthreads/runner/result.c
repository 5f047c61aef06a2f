/* SPDX-License-Identifier: MIT */
/*
 * result.c - how a run ended, as one line of JSON: the simulator's keys, and
 * what only a real machine can say.
 *
 * Read next: hosts/sim/result.c.
 */
#include <stdio.h>

#include "json_text.h"
#include "runner.h"

/* Of the processor's counter, as the run has found it; 0: it is not used. */
static u64 counter_hz(void)
{
	u64 q32 = ut_clock.ns_per_cycle_q32;

	return q32 ? (u64)(((unsigned __int128)1000000000 << 32) / q32) : 0;
}

void print_result(const struct options *o, const struct result *r)
{
	putchar('{');
	sl_json_text(stdout, "id", o->id);
	sl_json_text(stdout, "status", r->status);
	sl_json_text(stdout, "error", r->error_kind ? r->error : NULL);
	sl_json_text(stdout, "error_kind", r->error_kind);
	if (r->task)
		printf("\"task\":%d,", r->task);
	else
		printf("\"task\":null,");
	printf("\"cpus\":null,\"end_ns\":%llu,\"nr_switches\":%llu,\"nr_products\":%u,\"nr_tasks\":%u,\"nr_exited\":%u,"
	       "\"taken_ns\":%llu,\"away_ns_max\":%llu,\"timer_late_ns_max\":%llu,\"clock_ns\":%llu,\"idle_clock_ns\":%llu,"
	       "\"switch_clock_ns\":%llu,\"counter_hz\":%llu}\n",
	       r->end_ns, r->nr_switches, r->nr_products, r->nr_tasks, r->nr_exited, r->taken_ns,
	       r->away_ns_max, r->timer_late_ns_max, r->clock_ns, r->idle_clock_ns,
	       r->switch_clock_ns, counter_hz());
}

/* How CPU time is measured here, which `run` uses up: the same for every run. */
void print_clock(void)
{
	ut_clock_init();
	printf("{\"counter\":%s,\"compared_ns\":%u}\n", counter_hz() ? "true" : "false",
	       UT_CALIBRATION_NS);
}
