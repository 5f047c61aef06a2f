/* SPDX-License-Identifier: MIT */
/*
 * uthreads.c - times what the thread library does, for `schedlab selfbench uthreads`.
 *
 *	uthreads WHAT POLICY.so CPUS OPS [NAME=VALUE...]
 *
 * Does OPS operations of kind WHAT and prints one JSON object: `ns`, CPU time of
 * the whole process for one of them, or what else the kind is about. The peers in
 * peers/ do the same with other packages; uthreads_bench.py takes the best of
 * several calls, since disturbances only ever make a program slower.
 *
 * Read next: uthreads_bench.py.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <schedlab/uthreads.h>

#define GAPS_MAX 100000
#define FAN_BATCH 1000

static long nr_ops;

static void check(int err, const char *what)
{
	if (err >= 0)
		return;
	fprintf(stderr, "%s: %s %s\n", what, strerror(-err), ut_error_text());
	exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void print_ns(uint64_t spent_ns, long ops)
{
	printf("{\"ns\": %.2f}\n", (double)spent_ns / (double)ops);
}

/* ---- yield ------------------------------------------------------------------- */

static long yields_each;

static void *yielder(void *arg)
{
	(void)arg;
	for (long i = 0; i < yields_each; i++)
		ut_yield();
	return NULL;
}

static void yields(int nr_threads)
{
	ut_id *ids = calloc((size_t)nr_threads, sizeof(*ids));
	uint64_t start_ns;

	yields_each = nr_ops / nr_threads;
	for (int i = 0; i < nr_threads; i++)
		check(ut_create(&ids[i], NULL, yielder, NULL), "ut_create");
	start_ns = cpu_ns();
	for (int i = 0; i < nr_threads; i++)
		ut_join(ids[i], NULL);
	print_ns(cpu_ns() - start_ns, yields_each * nr_threads);
	free(ids);
}

/* ---- create, run, join ----------------------------------------------------------- */

static void *nothing(void *arg)
{
	return arg;
}

static void creations(void)
{
	uint64_t start_ns = cpu_ns();
	ut_id id;

	for (long i = 0; i < nr_ops; i++) {
		check(ut_create(&id, NULL, nothing, NULL), "ut_create");
		ut_join(id, NULL);
	}
	print_ns(cpu_ns() - start_ns, nr_ops);
}

/* ---- two threads and two channels --------------------------------------------------- */

static ut_chan *there, *back;

static void *echo(void *arg)
{
	int ball;

	while (!ut_chan_recv(there, &ball))
		ut_chan_send(back, &ball);
	return arg;
}

static void round_trips(void)
{
	uint64_t start_ns;
	int ball = 1;
	ut_id id;

	check(ut_chan_create(&there, sizeof(ball), 1), "ut_chan_create");
	check(ut_chan_create(&back, sizeof(ball), 1), "ut_chan_create");
	check(ut_create(&id, NULL, echo, NULL), "ut_create");
	start_ns = cpu_ns();
	for (long i = 0; i < nr_ops; i++) {
		ut_chan_send(there, &ball);
		ut_chan_recv(back, &ball);
	}
	print_ns(cpu_ns() - start_ns, nr_ops);
	ut_chan_close(there);
	ut_join(id, NULL);
}

/* ---- many short tasks on several kernel threads ---------------------------------------- */

static ut_sem done = UT_SEM_INIT(0);

/* About a microsecond of work, the same number of steps in each peer. */
static void *short_task(void *arg)
{
	uint64_t x = 1;

	for (int i = 0; i < 1000; i++) {
		x = x * 3 + 1;
		__asm__ volatile("" : "+r"(x));
	}
	ut_sem_post(&done);
	return arg;
}

static void fan_out(void)
{
	struct ut_attr attr = UT_ATTR_INIT;
	uint64_t start_ns = cpu_ns();
	uint64_t wall_ns = clock_ns(CLOCK_MONOTONIC);

	attr.is_detached = 1;
	for (long i = 0; i < nr_ops; i += FAN_BATCH) {
		for (int j = 0; j < FAN_BATCH; j++)
			check(ut_create(NULL, &attr, short_task, NULL), "ut_create");
		for (int j = 0; j < FAN_BATCH; j++)
			ut_sem_wait(&done);
	}
	printf("{\"ns\": %.1f, \"wall_ns\": %.1f}\n",
	       (double)(cpu_ns() - start_ns) / (double)nr_ops,
	       (double)(clock_ns(CLOCK_MONOTONIC) - wall_ns) / (double)nr_ops);
}

/* ---- preemption -------------------------------------------------------------------------- */

/*
 * Each of two threads that never give way notes the time, over and over. Who finds
 * another's mark knows when that one was stopped: the time since is what the
 * preemption took. With one kernel thread, the CPU time that the process used from
 * one such change to the next is a slice.
 */
static volatile struct {
	int who;
	uint64_t at_ns;
} mark;
static volatile long nr_gaps;
static uint64_t gaps_ns[GAPS_MAX], changes_cpu_ns[GAPS_MAX];

static void *marker(void *arg)
{
	int me = (int)(intptr_t)arg;

	while (nr_gaps < nr_ops) {
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

		if (mark.who != me) {
			long gap = nr_gaps;

			/* It may have been stopped since it read the clock. */
			now_ns = clock_ns(CLOCK_MONOTONIC);
			gaps_ns[gap] = now_ns - mark.at_ns;
			changes_cpu_ns[gap] = cpu_ns();
			mark.who = me;
			nr_gaps = gap + 1;
		}
		mark.at_ns = now_ns;
	}
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void preemptions(void)
{
	static uint64_t lengths_ns[GAPS_MAX];
	ut_id a, b;

	if (nr_ops > GAPS_MAX)
		nr_ops = GAPS_MAX;
	check(ut_create(&a, NULL, marker, (void *)1), "ut_create");
	check(ut_create(&b, NULL, marker, (void *)2), "ut_create");
	ut_join(a, NULL);
	ut_join(b, NULL);
	/* Before the first mark there was none. */
	gaps_ns[0] = gaps_ns[1];
	for (long i = 1; i < nr_ops; i++)
		lengths_ns[i - 1] = changes_cpu_ns[i] - changes_cpu_ns[i - 1];
	qsort(gaps_ns, (size_t)nr_ops, sizeof(gaps_ns[0]), by_size);
	qsort(lengths_ns, (size_t)nr_ops - 1, sizeof(lengths_ns[0]), by_size);
	printf("{\"p50_ns\": %llu, \"p99_ns\": %llu, \"slice_p10_ns\": %llu, "
	       "\"slice_p50_ns\": %llu, \"slice_p90_ns\": %llu}\n",
	       (unsigned long long)gaps_ns[nr_ops / 2],
	       (unsigned long long)gaps_ns[nr_ops * 99 / 100],
	       (unsigned long long)lengths_ns[nr_ops / 10],
	       (unsigned long long)lengths_ns[nr_ops / 2],
	       (unsigned long long)lengths_ns[nr_ops * 9 / 10]);
}

/* ---- what timers cost who computes ----------------------------------------------------------- */

static void *steps(void *arg)
{
	uint64_t x = 1;

	for (long i = 0; i < nr_ops; i++) {
		x = x * 3 + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return arg;
}

/* The same steps, by two threads that are preempted, or are not (UT_NO_PREEMPTION). */
static void computing(void)
{
	uint64_t start_ns = cpu_ns();
	ut_id a, b;

	check(ut_create(&a, NULL, steps, NULL), "ut_create");
	check(ut_create(&b, NULL, steps, NULL), "ut_create");
	ut_join(a, NULL);
	ut_join(b, NULL);
	printf("{\"ns\": %llu}\n", (unsigned long long)(cpu_ns() - start_ns));
}

/* ---- many threads asleep -------------------------------------------------------------------- */

static long resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		exit(1);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static ut_sem gate = UT_SEM_INIT(0);
static long nr_asleep; /* atomic */

static void *sleeper(void *arg)
{
	__atomic_fetch_add(&nr_asleep, 1, __ATOMIC_RELAXED);
	ut_sem_wait(&gate);
	return arg;
}

static void sleepers(void)
{
	struct ut_attr attr = UT_ATTR_INIT;
	long before_bytes = resident_bytes();
	uint64_t start_ns = cpu_ns();

	attr.is_detached = 1;
	for (long i = 0; i < nr_ops; i++)
		check(ut_create(NULL, &attr, sleeper, NULL), "ut_create");
	while (__atomic_load_n(&nr_asleep, __ATOMIC_RELAXED) < nr_ops)
		ut_yield();
	printf("{\"bytes\": %.0f, \"ns\": %.0f}\n",
	       (double)(resident_bytes() - before_bytes) / (double)nr_ops,
	       (double)(cpu_ns() - start_ns) / (double)nr_ops);
	for (long i = 0; i < nr_ops; i++)
		ut_sem_post(&gate);
}

/* ---- an echo server ------------------------------------------------------------------------- */

static long nr_echoes; /* atomic */

/* Until the peer closes, or resets, the connection. */
static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	long nr = 0;
	char message[64];
	ssize_t bytes;

	while ((bytes = ut_read(fd, message, sizeof(message))) > 0) {
		ut_write(fd, message, (size_t)bytes);
		nr++;
	}
	__atomic_fetch_add(&nr_echoes, nr, __ATOMIC_RELAXED);
	close(fd);
	return NULL;
}

/* peers/echo_load.c has made the socket that is descriptor 3; OPS is the number of connections. */
static void echoes(void)
{
	ut_id *ids = calloc((size_t)nr_ops, sizeof(*ids));
	uint64_t start_ns = cpu_ns();

	for (long i = 0; i < nr_ops; i++) {
		int fd = ut_accept(3, NULL, NULL, 0);

		check(fd, "ut_accept");
		check(ut_create(&ids[i], NULL, serve, (void *)(intptr_t)fd), "ut_create");
	}
	for (long i = 0; i < nr_ops; i++)
		ut_join(ids[i], NULL);
	print_ns(cpu_ns() - start_ns, nr_echoes);
	free(ids);
}

int main(int argc, char **argv)
{
	struct ut_config config = UT_CONFIG_INIT;
	const char *what = argc > 4 ? argv[1] : "";

	if (argc < 5) {
		fprintf(stderr, "usage: %s WHAT POLICY.so CPUS OPS [NAME=VALUE...]\n", argv[0]);
		return 2;
	}
	config.policy = argv[2];
	config.nr_cpus = (uint32_t)atoi(argv[3]);
	config.sets = (const char *const *)&argv[5];
	nr_ops = atol(argv[4]);
	config.threads_max = strcmp(what, "sleepers") ? 0 : (uint32_t)nr_ops + 10;
	if (!strcmp(what, "computing_undisturbed"))
		config.flags = UT_NO_PREEMPTION;
	check(ut_init(&config), "ut_init");
	if (!strcmp(what, "yield_2"))
		yields(2);
	else if (!strcmp(what, "yield_1000"))
		yields(1000);
	else if (!strcmp(what, "create_join"))
		creations();
	else if (!strcmp(what, "ping_pong"))
		round_trips();
	else if (!strcmp(what, "fan_out"))
		fan_out();
	else if (!strcmp(what, "preemption"))
		preemptions();
	else if (!strncmp(what, "computing", 9))
		computing();
	else if (!strcmp(what, "sleepers"))
		sleepers();
	else if (!strcmp(what, "echo"))
		echoes();
	else
		check(-22, what);
	check(ut_exit(), "ut_exit");
	return 0;
}
