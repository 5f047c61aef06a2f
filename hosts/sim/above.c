/* SPDX-License-Identifier: MIT */
/*
 * above.c - what takes a CPU from the policy for a while: real-time tasks, which are above
 * it, and that the CPU is offline.
 *
 * When and where is said before the run (--above, --offline).
 *
 * Called by options.c, loop.c and, for events of its own, hosts/check. Read next: cpu.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

#define ABOVE_MAX (1U << 19)
/* What waits for something else is tried again so much later. */
#define LATER_NS 1000000

struct above {
	u64 start_ns, length_ns;
	u32 cpu;
	bool is_offline;
};

static struct above *list;
static u32 nr;

/*
 * Take the number before @end, or before the text's end where @end is a comma. Without
 * sscanf(), which the simulator does not have as WebAssembly.
 */
bool sim_take_number(const char **text, char end, u64 *number)
{
	char *rest;

	if (**text < '0' || **text > '9')
		return false;
	*number = strtoull(*text, &rest, 10);
	if (*rest != end && (*rest || end != ','))
		return false;
	*text = *rest ? rest + 1 : rest;
	return true;
}

static void add(const struct above *a)
{
	SL_ASSERT(nr < ABOVE_MAX);
	list = realloc(list, (nr + 1ULL) * sizeof(*list));
	SL_ASSERT(list);
	list[nr++] = *a;
}

static int parse(const char *text, const char *option, u32 first_cpu, const struct sim_options *o,
		 char *why, u32 why_bytes)
{
	while (text && *text) {
		struct above a = { .is_offline = first_cpu };
		const char *one = text;
		u64 cpu;

		if (!sim_take_number(&text, ':', &cpu) ||
		    !sim_take_number(&text, ':', &a.start_ns) ||
		    !sim_take_number(&text, ',', &a.length_ns) || cpu < first_cpu ||
		    cpu >= o->nr_cpus || !a.length_ns || a.start_ns > SIM_TIME_MAX ||
		    a.length_ns > SIM_TIME_MAX || nr == ABOVE_MAX / 2) {
			snprintf(why, why_bytes,
				 "%s: '%.40s' does not begin with CPU:START_NS:LENGTH_NS, of a CPU from %u to %u",
				 option, one, first_cpu, o->nr_cpus - 1);
			return -1;
		}
		a.cpu = (u32)cpu;
		add(&a);
	}
	return 0;
}

/* The first CPU stays online, as on Linux. Return: 0, or -1 with @why filled in. */
int sim_above_parse(const struct sim_options *o, char *why, u32 why_bytes)
{
	nr = 0;
	return parse(o->above, "--above", 0, o, why, why_bytes) ?:
		       parse(o->offline, "--offline", 1, o, why, why_bytes);
}

/* Before the run. */
void sim_above_push_all(void)
{
	for (u32 i = 0; i < nr; i++)
		sim_heap_push(list[i].start_ns, SIM_EVENT_ABOVE, i);
}

/* @cpu cannot go offline now. */
void sim_offline_later(u32 cpu, u64 length_ns)
{
	add(&(struct above){ sim_now_ns + LATER_NS, length_ns, cpu, true });
	sim_heap_push(sim_now_ns + LATER_NS, SIM_EVENT_ABOVE, nr - 1);
}

/* A real-time task wants @cpu for so long, or it goes offline; it takes that as a kick. */
void sim_above_want(u32 cpu, u64 length_ns, bool is_offline)
{
	struct sim_cpu *c = &sim.cpus[cpu];

	if (!c->above_ns && !c->above_until_ns) {
		c->goes_offline = is_offline;
	} else if (c->goes_offline != is_offline) {
		/* Linux has the real-time tasks of a CPU that is offline elsewhere. */
		if (is_offline)
			sim_offline_later(cpu, length_ns);
		return;
	}
	/* Two of a kind come one after the other. */
	if (c->above_until_ns)
		c->above_until_ns = sim_instant(c->above_until_ns + length_ns);
	else
		c->above_ns = sim_instant(c->above_ns + length_ns);
	sim_cpu_set_resched(cpu, sim_now_ns);
}

/* Entry @i is due. */
void sim_above_begin(u32 i)
{
	sim_above_want(list[i].cpu, list[i].length_ns, list[i].is_offline);
}
