/* SPDX-License-Identifier: MIT */
/*
 * options.c - reads options, from the command line or from a request.
 *
 * Every number has its range, every key its name; what is wrong is said in one
 * line that names the option. Called by main.c and serve.c.
 *
 * Read next: serve.c.
 */
#include <stdio.h>
#include <string.h>

#include "numbers.h"
#include "sim.h"

#define TIME_MAX (1ULL << 61)
#define REQUEST_ARGS_MAX 256

const struct sim_options sim_default_options = {
	.nr_cpus = 1,
	.tick_ns = 1000000,
	.callback_limit_ms = 2000,
	.device = { .latency_ns = 100000, .ns_per_kib = 1000, .call_ns = 1000, .depth = 1 },
	.work_ps = { [SL_WORK_PI] = 1000, [SL_WORK_MATMUL] = 1000, [SL_WORK_SPIN] = 1000 },
};

static int parse_group(struct sim_options *o, const char *option,
		       const char *value, char *why, u32 why_bytes)
{
	struct sim_costs *c = &o->costs;
	struct sim_device_config *d = &o->device;
	const struct sl_number costs[] = {
		{ "switch_ns", 0, 1000000000, &c->switch_ns, NULL },
		{ "leave_ns", 0, 1000000000, &c->leave_ns, NULL },
		{ "migrate_ns", 0, 1000000000, &c->migrate_ns, NULL },
		{ "migrate_llc_ns", 0, 1000000000, &c->migrate_llc_ns, NULL },
		{ "migrate_node_ns", 0, 1000000000, &c->migrate_node_ns, NULL },
		{ "start_ns", 0, 1000000000, &c->start_ns, NULL },
		{ "exit_ns", 0, 1000000000, &c->exit_ns, NULL },
		{ "call_ns", 0, 1000000000, &c->call_ns, NULL },
		{ "wakeup_ns", 0, 1000000000, &c->wakeup_ns, NULL },
		{ "tick_ns", 0, 1000000000, &c->tick_ns, NULL },
		{ "ipi_ns", 0, 1000000000, &c->ipi_ns, NULL },
		{ NULL, 0, 0, NULL, NULL },
	};
	const struct sl_number work[] = {
		{ "pi_ps", 1, 1000000000000, &o->work_ps[SL_WORK_PI], NULL },
		{ "matmul_ps", 1, 1000000000000, &o->work_ps[SL_WORK_MATMUL], NULL },
		{ "spin_ps", 1, 1000000000000, &o->work_ps[SL_WORK_SPIN], NULL },
		{ NULL, 0, 0, NULL, NULL },
	};
	const struct sl_number io[] = {
		{ "latency_ns", 0, 1000000000000, &d->latency_ns, NULL },
		{ "ns_per_kib", 0, 1000000000, &d->ns_per_kib, NULL },
		{ "call_ns", 0, 1000000000, &d->call_ns, NULL },
		{ "depth", 1, 1000000, NULL, &d->depth },
		{ NULL, 0, 0, NULL, NULL },
	};
	const struct sl_number topology[] = {
		{ "smt", 1, SCX_CPUS_MAX, NULL, &o->smt },
		{ "llc", 1, SCX_CPUS_MAX, NULL, &o->llc },
		{ "node", 1, SCX_CPUS_MAX, NULL, &o->node },
		{ NULL, 0, 0, NULL, NULL },
	};

	if (!strcmp(option, "--cost"))
		return sl_numbers_set(option, costs, value, why, why_bytes);
	if (!strcmp(option, "--work"))
		return sl_numbers_set(option, work, value, why, why_bytes);
	if (!strcmp(option, "--io"))
		return sl_numbers_set(option, io, value, why, why_bytes);
	return sl_numbers_set(option, topology, value, why, why_bytes);
}

static int set_arrivals(struct sim_options *o, const char *value, char *why,
			u32 why_bytes)
{
	o->arrivals_wake = !strcmp(value, "wake");
	o->roots_wake = o->arrivals_wake || !strcmp(value, "roots");
	if (o->roots_wake || !strcmp(value, "start"))
		return 0;
	snprintf(why, why_bytes,
		 "--arrivals: '%.80s' is none of 'start', 'wake' and 'roots'", value);
	return -1;
}

static int parse_value(struct sim_options *o, const char *option,
		       const char *value, char *why, u32 why_bytes)
{
	const struct sl_number numbers[] = {
		{ "--cpus", 1, SCX_CPUS_MAX, NULL, &o->nr_cpus },
		{ "--seed", 0, ~0ULL, &o->seed, NULL },
		{ "--tick-ns", 1000, 10000000000ULL, &o->tick_ns, NULL },
		{ "--limit-ns", 0, TIME_MAX, &o->limit_ns, NULL },
		{ "--dump-at-ns", 1, TIME_MAX, &o->dump_at_ns, NULL },
		{ "--callback-limit-ms", 1, 3600000, NULL, &o->callback_limit_ms },
		{ NULL, 0, 0, NULL, NULL },
	};

	const struct sl_number *n = sl_number_find(numbers, option);

	if (n)
		return sl_number_set(n, value, why, why_bytes);
	if (!strcmp(option, "--policy")) {
		o->policy_path = value;
	} else if (!strcmp(option, "--program")) {
		o->program_path = value;
	} else if (!strcmp(option, "--records")) {
		o->records_path = value;
	} else if (!strcmp(option, "--image")) {
		o->image_path = value;
	} else if (!strcmp(option, "--id")) {
		o->id = value;
	} else if (!strcmp(option, "--arrivals")) {
		return set_arrivals(o, value, why, why_bytes);
	} else if (SIM_INTERLEAVES && !strcmp(option, "--interleave")) {
		o->interleave = value;
	} else if (SIM_INTERLEAVES && !strcmp(option, "--promise")) {
		o->promises = value;
	} else if (!strcmp(option, "--set")) {
		if (o->nr_sets == sizeof(o->sets) / sizeof(o->sets[0])) {
			snprintf(why, why_bytes, "--set: more than %u", o->nr_sets);
			return -1;
		}
		o->sets[o->nr_sets++] = value;
	} else if (!strcmp(option, "--cost") || !strcmp(option, "--work") ||
		   !strcmp(option, "--io") || !strcmp(option, "--topology")) {
		return parse_group(o, option, value, why, why_bytes);
	} else {
		snprintf(why, why_bytes, "unknown option '%.80s'", option);
		return -1;
	}
	return 0;
}

/* Return: 0, or -1 with @why filled in. --serve and --help are main()'s. */
int sim_parse(struct sim_options *o, int argc, char **argv, char *why,
	      u32 why_bytes)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--detail")) {
			o->has_detail = true;
			continue;
		}
		if (!strcmp(argv[i], "--no-fork")) {
			o->no_fork = true;
			continue;
		}
		if (SIM_INTERLEAVES && !strcmp(argv[i], "--worlds")) {
			o->serves_worlds = true;
			continue;
		}
		if (SIM_INTERLEAVES && !strcmp(argv[i], "--coverage") && i + 1 < argc) {
			o->coverage = argv[++i];
			continue;
		}
		if (i + 1 == argc) {
			snprintf(why, why_bytes, "'%.80s' is unknown or lacks a value",
				 argv[i]);
			return -1;
		}
		if (parse_value(o, argv[i], argv[i + 1], why, why_bytes))
			return -1;
		i++;
	}
	if (o->costs.tick_ns >= o->tick_ns) {
		snprintf(why, why_bytes,
			 "--cost tick_ns=%llu: a tick may not cost a whole tick (%llu ns)",
			 (unsigned long long)o->costs.tick_ns,
			 (unsigned long long)o->tick_ns);
		return -1;
	}
	return 0;
}

/*
 * A line of TAB-separated options, which is cut up and stays in use.
 * Return: 0, or -1 with @why filled in.
 */
int sim_parse_request(struct sim_options *o, char *line, char *why, u32 why_bytes)
{
	char *args[REQUEST_ARGS_MAX] = { "schedlab-sim" };
	char *at = line;
	int nr = 1;

	while (at && nr < REQUEST_ARGS_MAX - 1) {
		char *tab = strchr(at, '\t');

		if (tab)
			*tab++ = 0;
		args[nr++] = at;
		at = tab;
	}
	if (at) {
		snprintf(why, why_bytes, "a request of too many words");
		return -1;
	}
	return sim_parse(o, nr, args, why, why_bytes);
}
