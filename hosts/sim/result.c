/* SPDX-License-Identifier: MIT */
/*
 * result.c - what a run has come to: its first failure, and one line of JSON.
 *
 * The line is printed by worker.c when the run is over, also from a signal; and by
 * serve.c for what never became a run.
 *
 * Read next: record.c.
 */
#include <stdarg.h>
#include <stdio.h>

#include "json_text.h"
#include "sim.h"

struct sim sim;

/* The first failure is the one that counts; the run ends at once. */
void sim_fail(const char *kind, s32 pid, const char *fmt, ...)
{
	struct sim_result *r = sim.result;
	va_list args;

	sim.is_over = true;
	if (r->error_kind)
		return;
	r->status = "failed";
	r->error_kind = kind;
	r->task = pid;
	va_start(args, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, args);
	va_end(args);
}

static void print_cpus(FILE *out, u64 *nr_switches)
{
	fputs("\"cpus\":[", out);
	*nr_switches = 0;
	for (u32 i = 0; sim.cpus && i < sl_core.nr_cpus; i++) {
		const struct sl_cpu *cpu = &sl_core.cpus[i];

		*nr_switches += cpu->nr_switches;
		fprintf(out,
			"%s{\"busy_ns\":%llu,\"idle_ns\":%llu,\"overhead_ns\":%llu,\"nr_switches\":%llu}",
			i ? "," : "", (unsigned long long)sim.cpus[i].busy_ns,
			(unsigned long long)cpu->idle_ns,
			(unsigned long long)sim.cpus[i].overhead_ns,
			(unsigned long long)cpu->nr_switches);
	}
	fputs("],", out);
}

/* One JSON object and a newline; closes @fd. Also called from a signal, once. */
void sim_print_result(int fd, const struct sim_options *o,
		      const struct sim_result *r)
{
	FILE *out = fdopen(fd, "w");
	u64 nr_switches;

	if (!out)
		return;
	fputc('{', out);
	sl_json_text(out, "id", o->id);
	sl_json_text(out, "status", r->status);
	sl_json_text(out, "error", r->error_kind ? r->error : NULL);
	sl_json_text(out, "error_kind", r->error_kind);
	if (r->task)
		fprintf(out, "\"task\":%d,", r->task);
	else
		fputs("\"task\":null,", out);
	if (r->policy_offset)
		fprintf(out, "\"policy_offset\":%llu,",
			(unsigned long long)r->policy_offset);
	print_cpus(out, &nr_switches);
	fprintf(out,
		"\"end_ns\":%llu,\"nr_switches\":%llu,\"nr_records\":%llu,\"nr_lost\":0,\"nr_tasks\":%u,\"nr_exited\":%u}\n",
		(unsigned long long)r->end_ns, (unsigned long long)nr_switches,
		(unsigned long long)r->nr_records, sim.nr_tasks, r->nr_exited);
	/* A server prints one for each request that fails: close it, too. */
	fclose(out);
}
