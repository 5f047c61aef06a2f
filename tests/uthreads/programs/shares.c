/* SPDX-License-Identifier: MIT */
/*
 * shares.c - eight threads per CPU that compute, and who gets how much of it.
 *
 * Arguments: POLICY CPUS SECONDS COMPETITORS KNOB=VALUE... So many SECONDS of CPU time
 * are given out by the policy, after two for a beginning; so many other
 * processes compute beside it on its CPUs meanwhile. Prints the largest difference
 * between what a thread had, by the library's own clock, and what its credits and its
 * cap say, in percent of a CPU.
 */
#define _GNU_SOURCE
#include "check.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NR_EACH 8
#define NR_MAX (2 * NR_EACH)
#define NEVER_MIND_NS 2000000000LL	/* until all have begun, and owe nothing */

static const int credits[NR_EACH] = { 50, 100, 150, 200, 250, 300, 350, 400 };
/* Of one CPU; the rest of its part is shared by the others. */
static const uint32_t caps[NR_EACH] = { 0, 0, 0, 0, 0, 0, 0, 10 };

static ut_id ids[NR_MAX];
static int nr;
static int must_end;

static void *compute(void *arg)
{
	while (!__atomic_load_n(&must_end, __ATOMIC_RELAXED))
		;
	return arg;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

/* This process and what it starts, on its first @nr_cpus CPUs. */
static void stay_on(int nr_cpus)
{
	cpu_set_t set;
	int nr_left = nr_cpus;

	CHECK_IS(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &set) && nr_left-- <= 0)
			CPU_CLR(i, &set);
	}
	CHECK_IS(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void compete(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return;
	/* It must not stay when its parent ends by a failure. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		;
	_exit(0);
}

/* What each is due, as parts of all the CPU time: who is capped, and the others. */
static void find_due(int nr_cpus, double *due)
{
	double free_part = 1, free_credits = 0;

	for (int i = 0; i < nr; i++) {
		double cap = caps[i % NR_EACH] / 100.0 / nr_cpus;

		if (cap > 0)
			free_part -= cap;
		else
			free_credits += credits[i % NR_EACH];
		due[i] = cap;
	}
	for (int i = 0; i < nr; i++) {
		if (!due[i])
			due[i] = free_part * credits[i % NR_EACH] / free_credits;
	}
}

static int64_t read_all(int64_t *had_ns)
{
	int64_t sum_ns = 0;

	for (int i = 0; i < nr; i++) {
		had_ns[i] = (int64_t)ut_cpu_time_ns(ids[i]);
		sum_ns += had_ns[i];
	}
	return sum_ns;
}

/* Until all together have had so much. */
static void wait_until_had(int64_t wanted_ns)
{
	int64_t had_ns[NR_MAX];

	while (read_all(had_ns) < wanted_ns)
		CHECK_IS(ut_sleep_ns(20000000), 0);
}

static void measure(int nr_cpus, int64_t length_ns)
{
	int64_t before_ns[NR_MAX], after_ns[NR_MAX];
	int64_t wall_ns, cpu_ns, sum_ns;
	double due[NR_MAX];
	double worst = 0;

	wait_until_had(NEVER_MIND_NS < length_ns ? NEVER_MIND_NS : length_ns);
	wall_ns = clock_ns(CLOCK_MONOTONIC);
	cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	sum_ns = read_all(before_ns);
	wait_until_had(sum_ns + length_ns);
	sum_ns = read_all(after_ns) - sum_ns;
	wall_ns = clock_ns(CLOCK_MONOTONIC) - wall_ns;
	cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	find_due(nr_cpus, due);
	for (int i = 0; i < nr; i++) {
		double part = (double)(after_ns[i] - before_ns[i]) / (double)sum_ns;
		double off = 100 * nr_cpus * (part - due[i]);

		fprintf(stderr, "%d credits, cap %u: %.2f %% of a CPU, %+.2f\n",
			credits[i % NR_EACH], caps[i % NR_EACH], 100 * nr_cpus * part, off);
		if (off > worst || -off > worst)
			worst = off > 0 ? off : -off;
	}
	printf("{\"worst_percent\": %.3f, \"taken_percent\": %.1f, \"counted_percent\": %.2f}\n",
	       worst, 100 - 100.0 * (double)cpu_ns / (double)wall_ns / nr_cpus,
	       100.0 * (double)sum_ns / (double)cpu_ns);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	struct ut_attr attr = UT_ATTR_INIT;
	int nr_cpus = (int)config.nr_cpus;

	CHECK(argc > 4 && nr_cpus <= NR_MAX / NR_EACH);
	stay_on(nr_cpus);
	for (int i = 0; i < atoi(argv[4]); i++)
		compete();
	config.sets = (const char *const *)&argv[5];
	check_init(&config);
	nr = nr_cpus * NR_EACH;
	attr.given = UT_GIVES_CREDITS | UT_GIVES_CAP;
	for (int i = 0; i < nr; i++) {
		attr.credits = credits[i % NR_EACH];
		attr.cap_percent = caps[i % NR_EACH];
		CHECK_IS(ut_create(&ids[i], &attr, compute, NULL), 0);
	}
	measure(nr_cpus, (int64_t)(atof(argv[3]) * 1e9));
	__atomic_store_n(&must_end, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < nr; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
