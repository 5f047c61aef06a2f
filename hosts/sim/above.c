/* SPDX-License-Identifier: MIT */
/*
 * above.c - real-time tasks, which are above the policy, have a CPU for a while.
 *
 * When and where is said before the run (--above), in a list that is kept in order of
 * time; so the first that has not begun is the one that is due.
 *
 * Called by options.c, loop.c and, for events of its own, hosts/check. Read next: cpu.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct above {
	u64 start_ns, length_ns;
	u32 cpu;
};

static struct above *list;
static u32 nr, next;

static int by_start(const void *a, const void *b)
{
	const struct above *one = a, *other = b;

	return (one->start_ns > other->start_ns) - (one->start_ns < other->start_ns);
}

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

/* Return: 0, or -1 with @why filled in. */
int sim_above_parse(const struct sim_options *o, char *why, u32 why_bytes)
{
	const char *text = o->above;
	u64 cpu, start_ns, length_ns;

	nr = next = 0;
	while (text && *text) {
		const char *one = text;

		if (!sim_take_number(&text, ':', &cpu) || !sim_take_number(&text, ':', &start_ns) ||
		    !sim_take_number(&text, ',', &length_ns) || cpu >= o->nr_cpus || !length_ns ||
		    start_ns > SIM_TIME_MAX || length_ns > SIM_TIME_MAX) {
			snprintf(why, why_bytes,
				 "--above: '%.40s' does not begin with CPU:START_NS:LENGTH_NS, of a CPU from 0 to %u",
				 one, o->nr_cpus - 1);
			return -1;
		}
		list = realloc(list, (nr + 1ULL) * sizeof(*list));
		SL_ASSERT(list);
		list[nr++] = (struct above){ start_ns, length_ns, (u32)cpu };
	}
	if (nr)
		qsort(list, nr, sizeof(*list), by_start);
	return 0;
}

/* Before the run. */
void sim_above_push_all(void)
{
	for (u32 i = 0; i < nr; i++)
		sim_heap_push(list[i].start_ns, SIM_EVENT_ABOVE, 0);
}

/* A real-time task wants @cpu for so long, which takes it as it takes a kick. */
void sim_above_want(u32 cpu, u64 length_ns)
{
	struct sim_cpu *c = &sim.cpus[cpu];

	/* Real-time tasks wait for one another. */
	if (c->above_until_ns)
		c->above_until_ns = sim_instant(c->above_until_ns + length_ns);
	else
		c->above_ns = sim_instant(c->above_ns + length_ns);
	sim_cpu_set_resched(cpu, sim_now_ns);
}

/* The next one is due. */
void sim_above_begin(void)
{
	const struct above *a = &list[next++];

	sim_above_want(a->cpu, a->length_ns);
}
