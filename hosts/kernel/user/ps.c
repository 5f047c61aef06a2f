/* SPDX-License-Identifier: MIT */
/*
 * ps.c - list processes, and what a policy knows of each.
 *
 * Times are ms since the process began: on a CPU, and runnable without one.
 * "gave up" and "preempted" count switches. An attribute that was never set is
 * not printed; a policy then uses the weight, which follows from nice.
 *
 * Read next: top.c.
 */
#include "kernel/types.h"
#include "lab/procinfo.h"
#include "user/proclist.h"
#include "user/user.h"

static void print_process(const struct procinfo *p)
{
	char attributes[128];

	proc_attributes(p, attributes, sizeof(attributes));
	printf("%5d %5d %-9s", p->pid, p->ppid, proc_state(p));
	if (p->cpu >= 0)
		printf("%4d", p->cpu);
	else
		printf("   -");
	printf(" %4d %9lu %9lu %8lu %9lu %7lu %-10s %s%s%s\n", p->nice, p->cputime_ns / 1000000,
	       p->wait_ns / 1000000, p->nr_voluntary, p->nr_involuntary, p->memory_bytes / 1024,
	       p->name, attributes, p->waits_for[0] ? " waits for " : "", p->waits_for);
}

int main(void)
{
	char policy[512];
	struct procinfo *list;
	int nr = proc_list(&list);

	if (nr < 0)
		fail("ps: no list of processes; is memory used up?");
	if (getpolicy(-1, policy, sizeof(policy)) < 0)
		strcpy(policy, "?");
	printf("policy: %s\n", policy);
	printf("  pid  ppid state     cpu nice    cpu-ms   wait-ms  gave-up preempted  memKiB name\n");
	for (int i = 0; i < nr; i++)
		print_process(&list[i]);
	return 0;
}
