/* SPDX-License-Identifier: MIT */
/*
 * timings.c - the seven tests of report 1, three ways.
 *
 *	timings [--raw] [-n RUNS] [-d DIVISOR] [-a WAY] [TEST]...
 *
 * The report describes one program and published two others. So each test runs
 *
 *	text		as the report's text says, the same for every policy
 *	rr-code		as the code does that made its numbers for round-robin
 *	priority-code	as the code does that made those for priorities
 *
 * The differences, and nothing else, explain most of what the report found:
 *
 *	3  the priority code has 50 processes, not 100, and ten sleeps of one tick
 *	   each, not one of ten
 *	4  both codes print 50 as soon as any child took exactly 50 ticks, and the
 *	   sleepers say so whatever they took; the text means the time until all
 *	   have ended
 *	7  both codes time all six processes and fork the light one first; the text
 *	   means the light one, which is forked last here: only then it can win
 *
 * Default: 5 runs, all ways, all tests. -d divides the loops and sleeps, for a
 * quick look. --raw prints one line per run, for a program:
 *
 *	timing test=1 name=cpu-heavy way=text run=0 ticks=122 ns=1219999400 switches=131
 *
 * Read next: workloads/report-1/, the same for every host.
 */
#include "kernel/types.h"
#include "user/user.h"

#define TESTS		7
#define RUNS_MAX	100
#define PAUSE_TICKS	5	/* between tests, as in the report */

enum way { TEXT, RR_CODE, PRIORITY_CODE, WAYS };

static const char *const way_names[] = { "text", "rr-code", "priority-code" };

struct result {
	long ticks;
	unsigned long ns;
	int switches;
};

static long divisor = 1;

/* ---- what the children do ------------------------------------------------ */

/* The report's loop. The counter is in memory, so that it is not optimized away. */
static void compute(int iterations)
{
	for (volatile int i = 0; i < iterations / divisor; i++)
		;
}

static void rest(int ticks)
{
	sleep(ticks > divisor ? ticks / divisor : 1);
}

static int start(void)
{
	int pid = fork();

	if (pid < 0)
		fail("timings: fork failed; the tests need 52 processes");
	return pid;
}

static void wait_for(int nr_children)
{
	while (nr_children-- > 0)
		wait(0);
}

/* ---- the tests ----------------------------------------------------------- */

static void cpu_heavy(enum way way, struct result *result)
{
	for (int i = 0; i < 10; i++) {
		if (start() == 0) {
			compute(20000000);
			exit(0);
		}
	}
	wait_for(10);
}

static void switch_overhead(enum way way, struct result *result)
{
	for (int i = 0; i < 200; i++) {
		if (start() == 0)
			exit(0);
		wait_for(1);
	}
}

static void io_bound(enum way way, struct result *result)
{
	int nr_batches = way == PRIORITY_CODE ? 1 : 2;

	for (int batch = 0; batch < nr_batches; batch++) {
		for (int i = 0; i < 50; i++) {
			if (start())
				continue;
			if (way != RR_CODE)
				setpriority(0, i < 25 ? 5 : 0);
			if (way == PRIORITY_CODE) {
				/* Its short bursts are loops that the compiler removes. */
				for (int k = 0; k < 10; k++)
					sleep(1);
			} else {
				rest(10);
			}
			exit(0);
		}
		wait_for(50);
	}
}

/* Both codes let the sleepers report 50 without looking at a clock. */
static void mixed_child(enum way way, int is_sleeper, int fd)
{
	int start_ticks = uptime(), ticks;

	if (way != RR_CODE)
		setpriority(0, is_sleeper ? 10 : 0);
	if (is_sleeper)
		rest(50);
	else
		compute(50000000);
	ticks = is_sleeper ? 50 : uptime() - start_ticks;
	write(fd, &ticks, sizeof(ticks));
	exit(0);
}

static void mixed_load(enum way way, struct result *result)
{
	int fds[2], ticks, least = 9999, has_50 = 0;

	if (pipe(fds) < 0)
		fail("timings: no pipe");
	for (int i = 0; i < 10; i++)
		if (start() == 0)
			mixed_child(way, i < 5, fds[1]);
	close(fds[1]);
	for (int i = 0; i < 10; i++) {
		if (read(fds[0], &ticks, sizeof(ticks)) != sizeof(ticks))
			fail("timings: a child of test 4 said nothing");
		has_50 |= ticks == 50;
		if (ticks >= 50 && ticks < least)
			least = ticks;
		wait_for(1);
	}
	close(fds[0]);
	if (way != TEXT)
		result->ticks = has_50 || least == 9999 ? 50 : least;
}

static void creation(enum way way, struct result *result)
{
	for (int i = 0; i < 50; i++)
		if (start() == 0)
			exit(0);
	wait_for(50);
}

static void short_tasks(enum way way, struct result *result)
{
	for (int batch = 0; batch < 4; batch++) {
		for (int i = 0; i < 50; i++) {
			if (start() == 0) {
				compute(10000);
				exit(0);
			}
		}
		wait_for(50);
	}
}

/* What the light process of test 7 says of itself: from @from until it is done. */
static void light_child(int fd, int start_ticks, unsigned long start_ns)
{
	struct result light = { 0, 0, 0 };

	compute(50000);
	light.ticks = uptime() - start_ticks;
	light.ns = clock_ns() - start_ns;
	write(fd, &light, sizeof(light));
	exit(0);
}

static void start_heavies(enum way way)
{
	for (int i = 0; i < 5; i++) {
		if (start() == 0) {
			if (way == PRIORITY_CODE)
				setpriority(0, 10);
			compute(20000000);
			exit(0);
		}
	}
}

/*
 * Both codes fork the light process first, where it has nothing to win: it is done
 * before the heavy ones exist. For the text it is forked last, and inherits its
 * priority from its parent. It says itself when it was done: its parent would only hear of it
 * when it gets a CPU again, behind the heavy ones.
 */
static void starvation(enum way way, struct result *result)
{
	int start_ticks = uptime(), fds[2];
	unsigned long start_ns = clock_ns();
	struct result light = { 0, 0, 0 };

	if (pipe(fds) < 0)
		fail("timings: no pipe");
	if (way == TEXT) {
		start_heavies(way);
		setpriority(0, 0);
		start_ticks = uptime();
		start_ns = clock_ns();
	}
	if (start() == 0) {
		if (way == PRIORITY_CODE)
			setpriority(0, 0);
		light_child(fds[1], start_ticks, start_ns);
	}
	if (way == TEXT)
		setpriority(0, 5);
	else
		start_heavies(way);
	wait_for(6);
	if (read(fds[0], &light, sizeof(light)) == sizeof(light) && way == TEXT)
		*result = light;
	close(fds[0]);
	close(fds[1]);
}

static const struct test {
	const char *name;
	/* May fill in a result of its own; what is 0 is measured around it. */
	void (*run)(enum way way, struct result *result);
} tests[TESTS] = {
	{ "cpu-heavy", cpu_heavy },	  { "switch-overhead", switch_overhead },
	{ "io-bound", io_bound },	  { "mixed-load", mixed_load },
	{ "process-creation", creation }, { "short-tasks", short_tasks },
	{ "starvation", starvation },
};

/* ---- measuring and printing ---------------------------------------------- */

static struct result run_once(const struct test *test, enum way way)
{
	struct result result = { 0, 0, 0 };
	int switches = getcontextswitches(), ticks = uptime();
	unsigned long ns = clock_ns();

	test->run(way, &result);
	ns = clock_ns() - ns;
	ticks = uptime() - ticks;
	/* A light task that took less than a tick has a time, but no ticks. */
	if (!result.ns) {
		result.ns = ns;
		if (!result.ticks)
			result.ticks = ticks;
	}
	result.switches = getcontextswitches() - switches;
	return result;
}

/* All runs of one test in one way, as lines or as a cell of the table. */
static void run_and_print(int test, enum way way, int nr_runs, int is_raw)
{
	long sum = 0, switches = 0, least = 0, most = 0;
	char cell[64];

	for (int run = 0; run < nr_runs; run++) {
		struct result r = run_once(&tests[test], way);

		if (is_raw)
			printf("timing test=%d name=%s way=%s run=%d ticks=%ld ns=%lu switches=%d\n",
			       test + 1, tests[test].name, way_names[way], run, r.ticks, r.ns,
			       r.switches);
		sum += r.ticks;
		switches += r.switches;
		least = run && least < r.ticks ? least : r.ticks;
		most = most > r.ticks ? most : r.ticks;
		sleep(PAUSE_TICKS);
	}
	if (is_raw)
		return;
	snprintf(cell, sizeof(cell), "%ld (%ld-%ld)", sum / nr_runs, least, most);
	printf(" %14s %8ld", cell, switches / nr_runs);
}

static int find_way(const char *name)
{
	for (int way = 0; way < WAYS; way++)
		if (strcmp(name, way_names[way]) == 0)
			return way;
	fail("timings: there is no way %s; there are text, rr-code and priority-code", name);
}

static void print_heads(uint ways)
{
	static char policy[1024];

	if (getpolicy(-1, policy, sizeof(policy)) < 0)
		strcpy(policy, "?");
	printf("policy: %s\nticks, mean (least-most), and switches\n%-18s", policy, "");
	for (int way = 0; way < WAYS; way++)
		if (ways & 1U << way)
			printf(" %14s %8s", way_names[way], "switches");
	printf("\n");
}

static void usage(void)
{
	fail("usage: timings [--raw] [-n RUNS] [-d DIVISOR] [-a WAY] [TEST 1..7]...");
}

int main(int argc, char **argv)
{
	uint wanted = 0, ways = 0;
	int is_raw = 0;
	long nr_runs = 5, number;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--raw") == 0)
			is_raw = 1;
		else if (strcmp(argv[i], "-a") == 0 && i + 1 < argc)
			ways |= 1U << find_way(argv[++i]);
		else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc &&
			 parse_number(argv[i + 1], &nr_runs) && nr_runs >= 1 && nr_runs <= RUNS_MAX)
			i++;
		else if (strcmp(argv[i], "-d") == 0 && i + 1 < argc &&
			 parse_number(argv[i + 1], &divisor) && divisor >= 1 && divisor <= 10000)
			i++;
		else if (parse_number(argv[i], &number) && number >= 1 && number <= TESTS)
			wanted |= 1U << (number - 1);
		else
			usage();
	}
	ways = ways ? ways : (1U << WAYS) - 1;
	wanted = wanted ? wanted : (1U << TESTS) - 1;
	if (!is_raw)
		print_heads(ways);
	for (int test = 0; test < TESTS; test++) {
		if (!(wanted & 1U << test))
			continue;
		if (!is_raw)
			printf("%d %-16s", test + 1, tests[test].name);
		for (int way = 0; way < WAYS; way++)
			if (ways & 1U << way)
				run_and_print(test, way, nr_runs, is_raw);
		if (!is_raw)
			printf("\n");
	}
	return 0;
}
