/* SPDX-License-Identifier: MIT */
/*
 * options.c - reads the command line; what is wrong is said in one line that
 * names the option. The options are the simulator's, where they make sense here.
 *
 * Read next: play.c.
 */
#include <stdio.h>
#include <string.h>

#include "numbers.h"
#include "runner.h"

#define TIME_MAX (1ULL << 61)

/* @text: KEY=N[,KEY=N...], keys smt, llc, node. */
static int set_topology(struct options *o, const char *text, char *why,
			u32 why_bytes)
{
	const struct sl_number keys[] = {
		{ "smt", 1, SCX_CPUS_MAX, NULL, &o->smt },
		{ "llc", 1, SCX_CPUS_MAX, NULL, &o->llc },
		{ "node", 1, SCX_CPUS_MAX, NULL, &o->node },
		{ NULL, 0, 0, NULL, NULL },
	};

	return sl_numbers_set("--topology", keys, text, why, why_bytes);
}

static int set_text(struct options *o, const char *option, const char *value,
		    char *why, u32 why_bytes)
{
	if (!strcmp(option, "--policy")) {
		o->policy_path = value;
	} else if (!strcmp(option, "--program")) {
		o->program_path = value;
	} else if (!strcmp(option, "--records")) {
		o->records_path = value;
	} else if (!strcmp(option, "--id")) {
		o->id = value;
	} else if (!strcmp(option, "--topology")) {
		return set_topology(o, value, why, why_bytes);
	} else if (!strcmp(option, "--set")) {
		if (o->nr_sets == sizeof(o->sets) / sizeof(o->sets[0]) - 1) {
			snprintf(why, why_bytes, "--set: more than %u", o->nr_sets);
			return -1;
		}
		o->sets[o->nr_sets++] = value;
	} else {
		snprintf(why, why_bytes, "unknown option '%.80s'", option);
		return -1;
	}
	return 0;
}

static int set_option(struct options *o, const char *option, const char *value,
		      char *why, u32 why_bytes)
{
	const struct sl_number numbers[] = {
		{ "--cpus", 1, SCX_CPUS_MAX, NULL, &o->nr_cpus },
		{ "--seed", 0, ~0ULL, &o->seed, NULL },
		{ "--tick-ns", 10000, 10000000000ULL, &o->tick_ns, NULL },
		{ "--limit-ns", 0, TIME_MAX, &o->limit_ns, NULL },
		{ NULL, 0, 0, NULL, NULL },
	};

	const struct sl_number *n = sl_number_find(numbers, option);

	if (n)
		return sl_number_set(n, value, why, why_bytes);
	return set_text(o, option, value, why, why_bytes);
}

int parse_options(struct options *o, int argc, char **argv, char *why,
		  u32 why_bytes)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--detail")) {
			o->has_detail = true;
			continue;
		}
		if (!strcmp(argv[i], "--pin")) {
			o->is_pinned = true;
			continue;
		}
		if (i + 1 == argc) {
			snprintf(why, why_bytes, "'%.80s' is unknown or lacks a value",
				 argv[i]);
			return -1;
		}
		if (set_option(o, argv[i], argv[i + 1], why, why_bytes))
			return -1;
		i++;
	}
	if (!o->policy_path || !o->program_path) {
		snprintf(why, why_bytes, "%s is missing",
			 o->policy_path ? "--program" : "--policy");
		return -1;
	}
	return 0;
}
