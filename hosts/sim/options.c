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

#include "options.h"
#include "sim.h"

#define TIME_MAX (1ULL << 61)
#define REQUEST_ARGS_MAX 256

const struct sim_options sim_default_options = {
	.nr_cpus = 1,
	.arrivals = "start",
	.exits = "once",
	.user_thread = "on",
	.tick_ns = 1000000,
	.callback_limit_ms = 2000,
	.device = { .latency_ns = 100000, .ns_per_kib = 1000, .call_ns = 1000, .depth = 1 },
	.work_ps = { [SL_WORK_PI] = 1000, [SL_WORK_MATMUL] = 1000, [SL_WORK_SPIN] = 1000 },
};

/* What options are to one another, and words of a few. */
static int check(struct sim_options *o, char *why, u32 why_bytes)
{
	o->arrivals_wake = !strcmp(o->arrivals, "wake");
	o->roots_wake = o->arrivals_wake || !strcmp(o->arrivals, "roots");
	if (!o->roots_wake && strcmp(o->arrivals, "start")) {
		snprintf(why, why_bytes,
			 "--arrivals: '%.80s' is none of 'start', 'wake' and 'roots'", o->arrivals);
		return -1;
	}
	o->exits_regroup = !strcmp(o->exits, "regroup");
	if (!o->exits_regroup && strcmp(o->exits, "once")) {
		snprintf(why, why_bytes, "--exits: '%.80s' is neither 'once' nor 'regroup'",
			 o->exits);
		return -1;
	}
	o->has_no_user_thread = !strcmp(o->user_thread, "off");
	if (!o->has_no_user_thread && strcmp(o->user_thread, "on")) {
		snprintf(why, why_bytes, "--user-thread: '%.80s' is neither 'on' nor 'off'",
			 o->user_thread);
		return -1;
	}
	if (sim_above_parse(o, why, why_bytes) || sim_speed_parse(o, why, why_bytes))
		return -1;
	if (o->costs.tick_ns >= o->tick_ns) {
		snprintf(why, why_bytes,
			 "--cost tick_ns=%llu: a tick may not cost a whole tick (%llu ns)",
			 (unsigned long long)o->costs.tick_ns, (unsigned long long)o->tick_ns);
		return -1;
	}
	return 0;
}

#define COST(name)							\
	{								\
		#name, 0, 1000000000, .to64 = &o->costs.name		\
	}

/* Return: 0, or -1 with @why filled in. --serve and --help are main()'s. */
int sim_parse(struct sim_options *o, int argc, char **argv, char *why, u32 why_bytes)
{
	const struct sl_option costs[] = {
		COST(switch_ns),       COST(leave_ns),	 COST(migrate_ns), COST(migrate_llc_ns),
		COST(migrate_node_ns), COST(start_ns),	 COST(exit_ns),	   COST(call_ns),
		COST(wakeup_ns),       COST(tick_ns),	 COST(ipi_ns),	   COST(timer_ns),
		COST(jitter_ns),       { .name = NULL },
	};
	const struct sl_option work[] = {
		{ "pi_ps", 1, 1000000000000, .to64 = &o->work_ps[SL_WORK_PI] },
		{ "matmul_ps", 1, 1000000000000, .to64 = &o->work_ps[SL_WORK_MATMUL] },
		{ "spin_ps", 1, 1000000000000, .to64 = &o->work_ps[SL_WORK_SPIN] },
		{ .name = NULL },
	};
	const struct sl_option io[] = {
		{ "latency_ns", 0, 1000000000000, .to64 = &o->device.latency_ns },
		{ "ns_per_kib", 0, 1000000000, .to64 = &o->device.ns_per_kib },
		{ "call_ns", 0, 1000000000, .to64 = &o->device.call_ns },
		{ "depth", 1, 1000000, .to32 = &o->device.depth },
		{ .name = NULL },
	};
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
		{ "--image", .text = &o->image_path },
		{ "--id", .text = &o->id },
		{ "--cpus", 1, SCX_CPUS_MAX, .to32 = &o->nr_cpus },
		{ "--seed", 0, ~0ULL, .to64 = &o->seed },
		{ "--tick-ns", 1000, 10000000000ULL, .to64 = &o->tick_ns },
		{ "--limit-ns", 0, TIME_MAX, .to64 = &o->limit_ns },
		{ "--dump-at-ns", 1, TIME_MAX, .to64 = &o->dump_at_ns },
		{ "--callback-limit-ms", 1, 3600000, .to32 = &o->callback_limit_ms },
		{ "--detail", .flag = &o->has_detail },
		{ "--no-fork", .flag = &o->no_fork },
		{ "--arrivals", .text = &o->arrivals },
		{ "--exits", .text = &o->exits },
		{ "--user-thread", .text = &o->user_thread },
		{ "--above", .text = &o->above },
		{ "--offline", .text = &o->offline },
		{ "--capacity", .text = &o->capacity },
		{ "--set", .words = o->sets },
		{ "--cost", .keys = costs },
		{ "--work", .keys = work },
		{ "--io", .keys = io },
		{ "--topology", .keys = topology },
		{ SIM_INTERLEAVES ? "--interleave" : NULL, .text = &o->interleave }, /* or the end */
		{ "--promise", .text = &o->promises },
		{ "--events", .text = &o->events },
		{ "--worlds", .flag = &o->serves_worlds },
		{ "--coverage", .text = &o->coverage },
		{ "--calls", .text = &o->calls },
		{ "--calls-from-ns", 0, TIME_MAX, .to64 = &o->calls_from_ns },
		{ "--calls-to-ns", 0, TIME_MAX, .to64 = &o->calls_to_ns },
		{ .name = NULL },
	};

	return sl_options_parse(options, argc, argv, why, why_bytes) ?: check(o, why, why_bytes);
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
