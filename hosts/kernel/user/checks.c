/* SPDX-License-Identifier: MIT */
/*
 * checks.c - runs the checks of the system calls and looks for leaks.
 *
 *	checks [-q] [-l] [-j WORKERS] [-s SEED] [NAME]...
 *
 * Each check runs in a process of its own, in an empty folder. Afterwards free
 * pages, blocks, inodes, open files and processes must be what they were. Then,
 * with -j, several workers run the checks at the same time, each in an order of
 * its own, but those that use up what others need. With -s all of it happens
 * while the policy is switched every few ms, at random. -q leaves out the long
 * ones; -l lists them all. Status 0 when all passed.
 *
 * Must stay true: the runner opens and allocates nothing between the two counts.
 * Read next: checks.h, then checks_memory.c.
 */
#include "kernel/types.h"
#include "lab/procinfo.h"
#include "user/checks.h"
#include "user/user.h"

#define CHECKS_MAX	256
#define WORKERS_MAX	16
#define SETTLE_TICKS	300	/* how long orphans may take to end */

static const struct check *const groups[] = {
	checks_memory, checks_faults, checks_files, checks_limits,
	checks_procs,  checks_sched,  checks_calls, checks_self,
};

static const struct check *chosen[CHECKS_MAX];
static int nr_chosen;
static unsigned long switch_seed; /* 0: the policy stays as it is */

struct leak {
	const char *what;
	long before, after;
};

/* Wait until the processes of the last check are gone. */
static void settle(unsigned long procs, struct memstat *to)
{
	for (int i = 0; i < SETTLE_TICKS; i++) {
		if (memstat(to) < 0)
			fail("checks: memstat() failed");
		if (to->procs <= procs)
			return;
		sleep(1);
	}
}

/* Return: how many of the counts differ. */
static int print_leaks(const struct memstat *before, const struct memstat *after)
{
	const struct leak leaks[] = {
		{ "free pages", before->pages_free, after->pages_free },
		{ "free blocks", before->blocks_free, after->blocks_free },
		{ "free inodes", before->inodes_free, after->inodes_free },
		{ "inodes in use", before->inodes_in_use, after->inodes_in_use },
		{ "open files", before->files_open, after->files_open },
		{ "processes", before->procs, after->procs },
	};
	int nr_leaks = 0;

	for (int i = 0; i < (int)(sizeof(leaks) / sizeof(leaks[0])); i++) {
		if (leaks[i].before == leaks[i].after)
			continue;
		printf("  leak: %s were %ld and are %ld\n", leaks[i].what, leaks[i].before,
		       leaks[i].after);
		nr_leaks++;
	}
	return nr_leaks;
}

/* In a child: run @check in a new folder. Return: its status. */
static int run_in_folder(const struct check *check)
{
	char folder[32];
	int pid, status = -1;

	snprintf(folder, sizeof(folder), "/c%d", getpid());
	if (mkdir(folder) < 0)
		fail("checks: cannot make %s", folder);
	pid = fork();
	if (pid == 0) {
		if (chdir(folder) < 0)
			fail("checks: cannot use %s", folder);
		check->run();
		exit(0);
	}
	if (pid < 0 || wait(&status) != pid)
		printf("  %s: fork or wait failed\n", check->name);
	if (unlink(folder) < 0) {
		printf("  %s: left files behind in %s\n", check->name, folder);
		return 1;
	}
	return status;
}

/* @switcher: a child that must not end meanwhile; 0: none. */
static int run_in_child(const struct check *check, int switcher)
{
	int status = -1, pid = fork(), ended;

	if (pid == 0)
		exit(run_in_folder(check));
	if (pid < 0)
		return -1;
	while ((ended = wait(&status)) != pid)
		if (ended == switcher || ended < 0)
			fail("checks: policies are not switched any more");
	return status;
}

/* Return: whether it passed and left nothing behind. */
static int run_alone(const struct check *check)
{
	struct memstat before, after;
	unsigned long start_ns = clock_ns();
	int status, is_good, switcher = 0;

	if (memstat(&before) < 0)
		fail("checks: memstat() failed");
	printf("check %s ...", check->name);
	if (switch_seed && !(check->flags & CHECK_STILL))
		switcher = check_start_switching(switch_seed++);
	status = run_in_child(check, switcher);
	if (switcher > 0 && check_stop_switching(switcher) < 0)
		fail("checks: the policy does not come back");
	settle(before.procs, &after);
	is_good = status == 0 && print_leaks(&before, &after) == 0;
	printf(" %s, %lu ms\n", is_good ? "ok" : "FAILED", (clock_ns() - start_ns) / 1000000);
	return is_good;
}

/* ---- several at the same time -------------------------------------------- */

/* One worker: all checks that may run beside others, in an order of its own. */
static int work(unsigned long seed)
{
	const struct check *order[CHECKS_MAX];
	int nr = 0, nr_failed = 0;

	for (int i = 0; i < nr_chosen; i++) {
		int j;

		if (chosen[i]->flags & CHECK_ALONE)
			continue;
		j = check_random(&seed) % (nr + 1);
		order[nr++] = order[j];
		order[j] = chosen[i];
	}
	for (int i = 0; i < nr; i++) {
		if (run_in_child(order[i], 0) != 0) {
			printf("check %s beside others FAILED\n", order[i]->name);
			nr_failed++;
		}
	}
	return nr_failed;
}

/* Return: whether all workers passed and nothing was left behind. */
static int run_beside(int nr_workers)
{
	struct memstat before, after;
	unsigned long start_ns = clock_ns();
	int is_good = 1, status, switcher = 0, ended;

	if (memstat(&before) < 0)
		fail("checks: memstat() failed");
	printf("checks by %d workers ...", nr_workers);
	if (switch_seed)
		switcher = check_start_switching(switch_seed++);
	for (int i = 0; i < nr_workers; i++) {
		int pid = fork();

		if (pid == 0)
			exit(work(i + 1) != 0);
		is_good &= pid > 0;
	}
	for (int i = 0; i < nr_workers; i++) {
		ended = wait(&status);
		is_good &= status == 0 && ended > 0 && ended != switcher;
	}
	if (switcher > 0 && check_stop_switching(switcher) < 0)
		fail("checks: the policy does not come back");
	settle(before.procs, &after);
	is_good &= print_leaks(&before, &after) == 0;
	printf(" %s, %lu ms\n", is_good ? "ok" : "FAILED", (clock_ns() - start_ns) / 1000000);
	return is_good;
}

/* ---- which -------------------------------------------------------------- */

/* Choose all checks called @name, all without one. Return: how many. */
static int choose(const char *name, int is_quick)
{
	int left_out = CHECK_FAILS | (is_quick ? CHECK_LONG : 0), nr = 0;

	for (int g = 0; g < (int)(sizeof(groups) / sizeof(groups[0])); g++) {
		for (const struct check *check = groups[g]; check->name; check++) {
			if (name ? strcmp(name, check->name) != 0 : check->flags & left_out)
				continue;
			if (nr_chosen == CHECKS_MAX)
				fail("checks: more than %d checks", CHECKS_MAX);
			chosen[nr_chosen++] = check;
			nr++;
		}
	}
	return nr;
}

int main(int argc, char **argv)
{
	int is_quick = 0, is_list = 0, nr_bad = 0, i = 1;
	long nr_workers = 0, seed = 0;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "-q") == 0)
			is_quick = 1;
		else if (strcmp(argv[i], "-l") == 0)
			is_list = 1;
		else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc &&
			 parse_number(argv[i + 1], &seed) && seed > 0)
			switch_seed = seed, i++;
		else if (strcmp(argv[i], "-j") != 0 || ++i == argc ||
			 !parse_number(argv[i], &nr_workers) || nr_workers < 1 ||
			 nr_workers > WORKERS_MAX)
			fail("usage: checks [-q] [-l] [-j WORKERS] [-s SEED] [NAME]...");
	}
	if (i == argc)
		choose(0, is_quick);
	for (; i < argc; i++)
		if (!choose(argv[i], 0))
			fail("checks: there is no check %s; `checks -l` lists them", argv[i]);
	for (i = 0; i < nr_chosen; i++) {
		if (is_list)
			printf("%s\n", chosen[i]->name);
		else
			nr_bad += !run_alone(chosen[i]);
	}
	if (is_list)
		return 0;
	if (nr_workers)
		nr_bad += !run_beside(nr_workers);
	printf("checks: %d of %d failed\n", nr_bad, nr_chosen + (nr_workers > 0));
	return nr_bad != 0;
}
