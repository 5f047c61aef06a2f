/* SPDX-License-Identifier: MIT */
/*
 * main.c - schedlab-uthreads's command line.
 *
 * A policy and a program in, records and one JSON object out. People use
 * `schedlab run --host uthreads`; this program is what it starts.
 *
 * Read next: play.c.
 */
#include <stdio.h>
#include <string.h>

#include "runner.h"

static const char usage_text[] =
	"usage: schedlab-uthreads --policy POLICY.so --program FILE --cpus N [OPTION...]\n"
	"\n"
	"  --policy FILE        compiled policy (see include/scx/native.h)\n"
	"  --program FILE       workload program (see include/schedlab/program.h)\n"
	"  --cpus N             kernel threads, 1 to 1024 (default 1)\n"
	"  --seed N             for the policy's random numbers (default 0)\n"
	"  --tick-ns N          length of a tick (default 1000000)\n"
	"  --records FILE       write the record file\n"
	"  --detail             record every insertion into a queue\n"
	"  --set NAME=VALUE     a knob of the policy\n"
	"  --limit-ns N         fail when the run is longer than this\n"
	"  --topology KEY=N     smt llc node: what the policy is told, CPUs per core, cache\n"
	"                       and NUMA node; several may be given as smt=2,llc=8\n"
	"  --events LIST        weight:OBJECT@NS+WEIGHT, quota:OBJECT@NS+NS: what groups get\n"
	"  --pin                kernel thread n stays on the n-th CPU\n"
	"  --id TEXT            repeated in the result\n"
	"  --clock              only say how CPU time is measured here\n";

int main(int argc, char **argv)
{
	struct options o = { .nr_cpus = 1, .tick_ns = 1000000 };
	struct result r = { .status = "ok" };
	char why[1024];

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help")) {
			fputs(usage_text, stdout);
			return 0;
		}
		if (!strcmp(argv[i], "--clock")) {
			print_clock();
			return 0;
		}
	}
	if (parse_options(&o, argc, argv, why, sizeof(why))) {
		fprintf(stderr, "error: %s\n\n%s", why, usage_text);
		return 2;
	}
	play_run(&o, &r);
	print_result(&o, &r);
	return 0;
}
