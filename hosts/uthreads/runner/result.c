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
	printf("\"cpus\":null,\"end_ns\":%llu,\"nr_switches\":%llu,\"nr_products\":%u,\"nr_tasks\":%u,\"nr_exited\":%u}\n",
	       r->end_ns, r->nr_switches, r->nr_products, r->nr_tasks,
	       r->nr_exited);
}
