/* SPDX-License-Identifier: MIT */
/*
 * result.c - how a run ended, as one line of JSON.
 *
 * Called by worker.c when the run is over, also from a signal; and by serve.c for
 * what never became a run.
 *
 * Read next: record.c.
 */
#include <stdio.h>

#include "sim.h"

/* Return: bytes of the UTF-8 sequence that @s begins with, 0 if it is none. */
static u32 utf8_bytes(const unsigned char *s)
{
	u32 n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;

	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	/* Too long a form, a surrogate, or above the last character. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	for (u32 i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* As a JSON string; what is no UTF-8, such as half a name, shows as U+FFFD. */
static void print_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\"%s\":", key);
	if (!text) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		u32 n = utf8_bytes((const unsigned char *)text);

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (n) {
			fwrite(text, 1, n, out);
			text += n - 1;
		} else if (c < 32 || c > 126)
			fprintf(out, "\\u%04x", c > 127 ? 0xfffd : c);
		else
			fputc(c, out);
	}
	fputc('"', out);
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
	print_text(out, "id", o->id);
	fputc(',', out);
	print_text(out, "status", r->status);
	fputc(',', out);
	print_text(out, "error", r->error_kind ? r->error : NULL);
	fputc(',', out);
	print_text(out, "error_kind", r->error_kind);
	fputc(',', out);
	if (r->task)
		fprintf(out, "\"task\":%d,", r->task);
	else
		fputs("\"task\":null,", out);
	print_cpus(out, &nr_switches);
	fprintf(out,
		"\"end_ns\":%llu,\"nr_switches\":%llu,\"nr_records\":%llu,\"nr_lost\":0,\"nr_tasks\":%u,\"nr_exited\":%u}\n",
		(unsigned long long)r->end_ns, (unsigned long long)nr_switches,
		(unsigned long long)r->nr_records, sim.nr_tasks, r->nr_exited);
	/* A server prints one for each request that fails: close it, too. */
	fclose(out);
}
