/* SPDX-License-Identifier: MIT */
/*
 * result.c - how a run ended, as one line of JSON: the simulator's keys, and
 * what only a real machine can say.
 *
 * Read next: hosts/sim/result.c.
 */
#include <stdio.h>

#include "runner.h"

/* As a JSON string; whatever is not plain ASCII is left out. */
static void print_text(const char *key, const char *text)
{
	printf("\"%s\":", key);
	if (!text) {
		printf("null,");
		return;
	}
	putchar('"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 32 || c > 126)
			printf("\\u%04x", c > 127 ? 0xfffd : c);
		else
			putchar(c);
	}
	printf("\",");
}

void print_result(const struct options *o, const struct result *r)
{
	putchar('{');
	print_text("id", o->id);
	print_text("status", r->status);
	print_text("error", r->error_kind ? r->error : NULL);
	print_text("error_kind", r->error_kind);
	if (r->task)
		printf("\"task\":%d,", r->task);
	else
		printf("\"task\":null,");
	printf("\"cpus\":null,\"end_ns\":%llu,\"nr_switches\":%llu,\"nr_products\":%u,\"nr_tasks\":%u,\"nr_exited\":%u}\n",
	       r->end_ns, r->nr_switches, r->nr_products, r->nr_tasks,
	       r->nr_exited);
}
