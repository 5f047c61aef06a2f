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

#define PIECE_BYTES_MAX 512

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
	r->failed_at_ns = sim_now_ns;
	va_start(args, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, args);
	va_end(args);
}

/*
 * What waits to be written. After a crash nothing of the C library can be relied
 * on: its heap and its streams may be what the policy has damaged.
 */
struct line {
	int fd;
	u32 nr_bytes;
	char bytes[4096];
};

static void flush(struct line *line)
{
	/* There is no other place to report an error of this one. */
	(void)sim_file_write(line->fd, line->bytes, line->nr_bytes);
	line->nr_bytes = 0;
}

/* Context: what is put at once is at most PIECE_BYTES_MAX long. */
__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *fmt, ...)
{
	va_list args;

	if (line->nr_bytes + PIECE_BYTES_MAX > sizeof(line->bytes))
		flush(line);
	va_start(args, fmt);
	line->nr_bytes += sl_format(line->bytes + line->nr_bytes,
				    (u32)sizeof(line->bytes) - line->nr_bytes, fmt, args);
	va_end(args);
}

/* A member of the object; NULL: null. */
static void put_text(struct line *line, const char *key, const char *text)
{
	char bytes[SL_JSON_CHARACTER_MAX + 1];

	put(line, "\"%s\":%s", key, text ? "\"" : "null,");
	if (!text)
		return;
	while (*text) {
		bytes[sl_json_character(&text, bytes)] = 0;
		put(line, "%s", bytes);
	}
	put(line, "\",");
}

static void put_cpus(struct line *line, const struct sim_options *o, u64 *nr_switches)
{
	put(line, "\"cpus\":[");
	*nr_switches = 0;
	for (u32 i = 0; sim.cpus && i < o->nr_cpus; i++) {
		struct sl_cpu_report cpu = sl_cpu_report((s32)i);

		*nr_switches += cpu.nr_switches;
		put(line,
		    "%s{\"busy_ns\":%llu,\"idle_ns\":%llu,\"overhead_ns\":%llu,\"nr_switches\":%llu}",
		    i ? "," : "", (unsigned long long)sim.cpus[i].busy_ns,
		    (unsigned long long)cpu.idle_ns, (unsigned long long)sim.cpus[i].overhead_ns,
		    (unsigned long long)cpu.nr_switches);
	}
	put(line, "],");
}

/* One JSON object and a newline; closes @fd. Context: also a signal handler. */
void sim_print_result(int fd, const struct sim_options *o, const struct sim_result *r)
{
	struct line line = { .fd = fd };
	u64 nr_switches;

	put(&line, "{");
	put_text(&line, "id", o->id);
	put_text(&line, "status", r->status);
	put_text(&line, "error", r->error_kind ? r->error : NULL);
	put_text(&line, "error_kind", r->error_kind);
	if (r->task)
		put(&line, "\"task\":%d,", r->task);
	else
		put(&line, "\"task\":null,");
	if (SIM_INTERLEAVES)
		put_text(&line, "switches", sim_switches());
	if (r->failed_at_ns)
		put(&line, "\"failed_at_ns\":%llu,", (unsigned long long)r->failed_at_ns);
	if (r->policy_offset)
		put(&line, "\"policy_offset\":%llu,", (unsigned long long)r->policy_offset);
	put_cpus(&line, o, &nr_switches);
	put(&line,
	    "\"end_ns\":%llu,\"nr_switches\":%llu,\"nr_records\":%llu,\"nr_lost\":0,\"nr_tasks\":%u,\"nr_exited\":%u}\n",
	    (unsigned long long)r->end_ns, (unsigned long long)nr_switches,
	    (unsigned long long)r->nr_records, sim.nr_tasks, r->nr_exited);
	flush(&line);
	/* A server prints one for each request that fails: close it, too. */
	sim_file_close(fd);
}

/* A failure that comes before any worker; closes @fd. */
void sim_print_failure(int fd, const struct sim_options *o, const char *kind, const char *why)
{
	struct sim_result r = { .status = "failed", .error_kind = kind };

	snprintf(r.error, sizeof(r.error), "%s", why);
	sim_print_result(fd, o, &r);
}
