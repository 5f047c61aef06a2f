/* SPDX-License-Identifier: MIT */
/*
 * top.c - which processes use the CPUs, again and again.
 *
 *	top [-n ROUNDS] [SECONDS]
 *
 * Every SECONDS (default 1) it shows what happened since the last time, busiest
 * process first. Without ROUNDS it goes on until ctrl-C.
 *
 * Read next: sched.c.
 */
#include "kernel/types.h"
#include "lab/procinfo.h"
#include "user/proclist.h"
#include "user/user.h"

#define ROWS_MAX 20

/* CPU time that @p had when it was seen last; 0 for a new process. */
static unsigned long cputime_before(const struct procinfo *before, int nr, const struct procinfo *p)
{
	/* Both lists are by age, and pids rise with age until they wrap. */
	for (int i = 0; i < nr; i++)
		if (before[i].pid == p->pid && before[i].start_ns == p->start_ns)
			return before[i].cputime_ns;
	return 0;
}

/* Put what each used since @before in place of its sum, and sort by it. */
static void sort_by_use(struct procinfo *list, int nr)
{
	struct procinfo one;
	int j;

	for (int i = 1; i < nr; i++) {
		one = list[i];
		for (j = i; j > 0 && list[j - 1].cputime_ns < one.cputime_ns; j--)
			list[j] = list[j - 1];
		list[j] = one;
	}
}

static void print_head(int nr, int nr_switches, unsigned long interval_ns)
{
	char policy[512];
	struct memstat memory;

	if (getpolicy(-1, policy, sizeof(policy)) < 0)
		strcpy(policy, "?");
	if (memstat(&memory) < 0)
		fail("top: memstat() failed");
	printf("up %lu s, %d processes, %lu of %lu MiB free, %lu switches/s\npolicy: %s\n",
	       clock_ns() / 1000000000, nr, memory.pages_free / 256, memory.pages_total / 256,
	       nr_switches * 1000000000UL / interval_ns, policy);
	printf("  pid state     cpu nice  %%cpu    cpu-ms name       attributes\n");
}

static void print_rows(const struct procinfo *used, int nr, unsigned long interval_ns)
{
	char attributes[128];

	for (int i = 0; i < nr && i < ROWS_MAX; i++) {
		const struct procinfo *p = &used[i];

		proc_attributes(p, attributes, sizeof(attributes));
		printf("%5d %-9s %3d %4d %5lu %9lu %-10s %s\n", p->pid, proc_state(p), p->cpu,
		       p->nice, p->cputime_ns * 100 / interval_ns, p->cputime_ns / 1000000, p->name,
		       attributes);
	}
	if (nr > ROWS_MAX)
		printf("(%d more)\n", nr - ROWS_MAX);
}

int main(int argc, char **argv)
{
	struct procinfo *before = 0, *now, *used;
	long rounds = -1, seconds = 1;
	int nr_before = 0, nr, switches = getcontextswitches(), i = 1;
	unsigned long last_ns = clock_ns();

	if (argc > 2 && strcmp(argv[1], "-n") == 0 && parse_number(argv[2], &rounds))
		i = 3;
	if (argc > i + 1 || (argc == i + 1 && !parse_number(argv[i], &seconds)) || seconds < 1 ||
	    seconds > 3600)
		fail("usage: top [-n ROUNDS] [SECONDS]");
	for (; rounds != 0; rounds -= rounds > 0) {
		int switches_now;
		unsigned long now_ns;

		nr_before = before ? nr_before : proc_list(&before);
		sleep_until_ns(last_ns + seconds * 1000000000UL);
		nr = proc_list(&now);
		used = malloc((nr > 0 ? nr : 1) * sizeof(*used));
		if (nr < 0 || nr_before < 0 || !used)
			fail("top: memory is used up");
		now_ns = clock_ns();
		switches_now = getcontextswitches();
		memmove(used, now, nr * sizeof(*used));
		for (int k = 0; k < nr; k++)
			used[k].cputime_ns -= cputime_before(before, nr_before, &used[k]);
		sort_by_use(used, nr);
		printf("\033[H\033[2J");
		print_head(nr, switches_now - switches, now_ns - last_ns);
		print_rows(used, nr, now_ns - last_ns);
		free(used);
		free(before);
		before = now;
		nr_before = nr;
		last_ns = now_ns;
		switches = switches_now;
	}
	return 0;
}
