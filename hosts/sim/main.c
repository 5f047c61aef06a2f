/* SPDX-License-Identifier: MIT */
/*
 * main.c - schedlab-sim's command line.
 *
 * A policy and a program in, records and one JSON object out. People use
 * `schedlab run`; this program is what it starts, and is usable without it.
 *
 * Read next: options.c, then serve.c.
 */
#include <stdio.h>
#include <string.h>

#include "sim.h"

static const char usage_text[] =
	"usage: schedlab-sim --policy POLICY.so --program FILE --cpus N [OPTION...]\n"
	"       schedlab-sim --serve --policy POLICY.so    (requests on stdin)\n"
	"\n"
	"  --policy FILE        compiled policy (see include/scx/native.h)\n"
	"  --program FILE       workload program (see include/schedlab/program.h)\n"
	"  --cpus N             virtual CPUs, 1 to 1024 (default 1)\n"
	"  --seed N             for the policy's random numbers (default 0)\n"
	"  --tick-ns N          length of a tick (default 1000000)\n"
	"  --records FILE       write the record file\n"
	"  --image FILE         write what launch() has changed, and end; see image.c\n"
	"  --detail             record every insertion into a queue\n"
	"  --set NAME=VALUE     a knob of the policy\n"
	"  --cost KEY=NS        switch_ns leave_ns migrate_ns migrate_llc_ns migrate_node_ns\n"
	"                       start_ns exit_ns call_ns wakeup_ns tick_ns ipi_ns timer_ns jitter_ns\n"
	"                       (default 0)\n"
	"  --work KEY=PS        pi_ps matmul_ps spin_ps: picoseconds per unit of work\n"
	"  --io KEY=N           latency_ns ns_per_kib call_ns depth\n"
	"  --topology KEY=N     smt llc node: CPUs per core, cache and NUMA node;\n"
	"                       several may be given as smt=2,llc=8\n"
	"  --arrivals start|wake|roots  what an arrival is to the policy (default start); wake:\n"
	"                       of a task that was there before, asleep, as in the guest; roots:\n"
	"                       that for tasks that none spawns, as in a recording of Linux\n"
	"  --exits once|regroup  what the end of a task is to the policy (default once); regroup:\n"
	"                       it leaves its group first, as in Linux with autogroups\n"
	"  --above CPU:START_NS:LENGTH_NS  a real-time task has this CPU then;\n"
	"                       several may be given, separated by commas\n"
	"  --capacity CPUS=N    0-3=1024,4-7=512: what CPUs do of what the fastest one does;\n"
	"                       a policy then also sets clock frequencies; see speed.c\n"
	"  --limit-ns N         fail when the run is longer than this\n"
	"  --dump-at-ns N       print queues and tasks at this time\n"
	"  --callback-limit-ms N  CPU time a callback may take (default 2000)\n"
	"  --id TEXT            repeated in the result\n"
	"  --no-fork            run in this process, for debuggers\n";

static int usage_error(const char *why)
{
	fprintf(stderr, "error: %s\n\n%s", why, usage_text);
	return 2;
}

int main(int argc, char **argv)
{
	struct sim_options o = sim_default_options;
	char why[1024];
	bool is_server = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help")) {
			fputs(usage_text, stdout);
			return 0;
		}
	}
	if (argc > 1 && !strcmp(argv[1], "--serve")) {
		is_server = true;
		argv++;
		argc--;
	}
	if (sim_parse(&o, argc, argv, why, sizeof(why)))
		return usage_error(why);
	if (!o.policy_path)
		return usage_error("--policy is missing");
	if (is_server)
		return sim_serve(&o);
	if (sim_serve_worlds(&o))
		return 0;
	if (!o.program_path)
		return usage_error("--program is missing");
	if (sl_policy_file_open(&sim_policy_file, o.policy_path, why, sizeof(why)))
		return usage_error(why);
	if (o.image_path) {
		o.start = sim_image(o.image_path);
		o.no_fork = true;
	}
	return sim_run_forked(&o) ? 1 : 0;
}
