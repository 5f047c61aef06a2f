/* SPDX-License-Identifier: MIT */
/*
 * options.c - the command line. The options are the simulator's, where they make sense here.
 *
 * Read next: play.c.
 */
#include <stdio.h>

#include "runner.h"

#define TIME_MAX (1ULL << 61)

int parse_options(struct options *o, int argc, char **argv, char *why, u32 why_bytes)
{
	const struct sl_option topology[] = {
		{ "smt", 1, SCX_CPUS_MAX, .to32 = &o->smt },
		{ "llc", 1, SCX_CPUS_MAX, .to32 = &o->llc },
		{ "node", 1, SCX_CPUS_MAX, .to32 = &o->node },
		{ .name = NULL },
	};
	const struct sl_option options[] = {
		{ "--policy", .text = &o->policy_path },
		{ "--program", .text = &o->program_path },
		{ "--records", .text = &o->records_path },
		{ "--id", .text = &o->id },
		{ "--events", .text = &o->events },
		{ "--cpus", 1, SCX_CPUS_MAX, .to32 = &o->nr_cpus },
		{ "--seed", 0, ~0ULL, .to64 = &o->seed },
		{ "--tick-ns", 10000, 10000000000ULL, .to64 = &o->tick_ns },
		{ "--limit-ns", 0, TIME_MAX, .to64 = &o->limit_ns },
		{ "--detail", .flag = &o->has_detail },
		{ "--pin", .flag = &o->is_pinned },
		{ "--set", .words = o->sets },
		{ "--topology", .keys = topology },
		{ .name = NULL },
	};

	if (sl_options_parse(options, argc, argv, why, why_bytes))
		return -1;
	if (!o->policy_path || !o->program_path) {
		snprintf(why, why_bytes, "%s is missing", o->policy_path ? "--program" : "--policy");
		return -1;
	}
	return 0;
}
