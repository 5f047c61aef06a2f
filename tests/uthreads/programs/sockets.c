/* SPDX-License-Identifier: MIT */
/*
 * sockets.c - who waits for a socket is woken by its events, and by no others.
 *
 *	sockets POLICY CPUS
 */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY_BYTES 1000000	/* more than a socket holds */
#define SHORT_NS 2000000
#define NR 100
#define ROUNDS 50

static int ends[NR][2];

static void *read_byte(void *arg)
{
	char byte = 0;
	ssize_t n = ut_read((int)(intptr_t)arg, &byte, 1);

	return (void *)(intptr_t)(n == 1 ? byte : n);
}

static void *write_many(void *arg)
{
	char *bytes = calloc(1, MANY_BYTES);
	ssize_t n = ut_write((int)(intptr_t)arg, bytes, MANY_BYTES);

	free(bytes);
	return (void *)(intptr_t)n;
}

static ut_id started(ut_fn fn, int fd)
{
	ut_id id;

	CHECK_IS(ut_create(&id, NULL, fn, (void *)(intptr_t)fd), 0);
	CHECK_IS(ut_sleep_ns(SHORT_NS), 0);
	return id;
}

static intptr_t joined(ut_id id)
{
	void *result;

	CHECK_IS(ut_join(id, &result), 0);
	return (intptr_t)result;
}

/* One thread reads a socket, another one writes it, and both wait. */
static void test_both_ways(void)
{
	char *bytes = malloc(MANY_BYTES);
	ut_id reader, writer;
	long nr = 0;
	int fds[2];

	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	reader = started(read_byte, fds[0]);
	writer = started(write_many, fds[0]);
	while (nr < MANY_BYTES) {
		ssize_t n = ut_read(fds[1], bytes, MANY_BYTES);

		CHECK(n > 0);
		nr += n;
	}
	CHECK_IS(joined(writer), MANY_BYTES);
	CHECK_IS(ut_write(fds[1], "r", 1), 1);
	CHECK_IS(joined(reader), 'r');
	close(fds[0]);
	close(fds[1]);
	free(bytes);
}

/*
 * A wait is over, and its socket open under another number; then its number is another
 * socket's. What happens to the first one is no event of the second one's.
 */
static void test_number_used_again(void)
{
	int old[2], new[2], kept;
	ut_id id;

	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, old), 0);
	id = started(read_byte, old[0]);
	CHECK_IS(ut_cancel(id), 0);
	CHECK_IS(joined(id), -ECANCELED);
	kept = dup(old[0]);
	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, new), 0);
	CHECK_IS(dup2(new[0], old[0]), old[0]);
	id = started(read_byte, old[0]);
	CHECK_IS(ut_write(old[1], "o", 1), 1);
	CHECK_IS(ut_sleep_ns(SHORT_NS), 0);
	CHECK_IS(ut_write(new[1], "n", 1), 1);
	CHECK_IS(joined(id), 'n');
	CHECK_IS((intptr_t)read_byte((void *)(intptr_t)kept), 'o');
	close(kept);
	close(old[0]);
	close(old[1]);
	close(new[0]);
	close(new[1]);
}

/* While a thread waits for a closed socket, its number is another socket's. */
static void test_number_used_again_meanwhile(void)
{
	int old[2], new[2];
	ut_id first, second;

	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, old), 0);
	first = started(read_byte, old[0]);
	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, new), 0);
	CHECK_IS(dup2(new[0], old[0]), old[0]);
	second = started(read_byte, old[0]);
	CHECK_IS(ut_write(new[1], "n", 1), 1);
	CHECK_IS(joined(second), 'n');
	CHECK_IS(ut_cancel(first), 0);
	CHECK_IS(joined(first), -ECANCELED);
	close(old[0]);
	close(old[1]);
	close(new[0]);
	close(new[1]);
}

/* Many wait for one socket, and each byte wakes one of them; no descriptor is needed for it. */
static void test_many_wait_for_one(void)
{
	struct rlimit limit, none;
	ut_id ids[NR];
	int fds[2];

	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	CHECK_IS(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 1;
	CHECK_IS(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, read_byte, (void *)(intptr_t)fds[0]), 0);
	CHECK_IS(ut_sleep_ns(SHORT_NS), 0);
	CHECK_IS(ut_cancel(ids[NR / 2]), 0);
	CHECK_IS(joined(ids[NR / 2]), -ECANCELED);
	for (int i = 0; i < NR - 1; i++)
		CHECK_IS(ut_write(fds[1], "m", 1), 1);
	for (int i = 0; i < NR; i++) {
		if (i != NR / 2)
			CHECK_IS(joined(ids[i]), 'm');
	}
	CHECK_IS(setrlimit(RLIMIT_NOFILE, &limit), 0);
	close(fds[0]);
	close(fds[1]);
}

static bool must_end; /* atomic */

static void *compute(void *arg)
{
	while (!__atomic_load_n(&must_end, __ATOMIC_RELAXED))
		;
	return arg;
}

static void *answer(void *arg)
{
	int *fds = arg;
	char byte;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_IS(ut_read(fds[0], &byte, 1), 1);
		CHECK_IS(ut_write(fds[0], &byte, 1), 1);
	}
	return NULL;
}

/* Outside the machine. */
static void *ask(void *arg)
{
	char byte;

	for (int i = 0; i < ROUNDS; i++) {
		for (int j = 0; j < NR; j++)
			CHECK_IS(write(ends[j][1], "x", 1), 1);
		for (int j = 0; j < NR; j++)
			CHECK_IS(read(ends[j][1], &byte, 1), 1);
	}
	return arg;
}

/* @nr_computing threads make no calls meanwhile, on each CPU one, or none. */
static void test_many(int nr_computing)
{
	ut_id ids[NR], computing[8];
	pthread_t asker;

	__atomic_store_n(&must_end, false, __ATOMIC_RELAXED);
	for (int i = 0; i < NR; i++) {
		CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
		CHECK_IS(ut_create(&ids[i], NULL, answer, ends[i]), 0);
	}
	for (int i = 0; i < nr_computing; i++)
		CHECK_IS(ut_create(&computing[i], NULL, compute, NULL), 0);
	CHECK_IS(pthread_create(&asker, NULL, ask, NULL), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(joined(ids[i]), 0);
	__atomic_store_n(&must_end, true, __ATOMIC_RELAXED);
	for (int i = 0; i < nr_computing; i++)
		CHECK_IS(joined(computing[i]), 0);
	pthread_join(asker, NULL);
	for (int i = 0; i < NR; i++) {
		close(ends[i][0]);
		close(ends[i][1]);
	}
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);

	check_init(&config);
	test_both_ways();
	test_number_used_again();
	test_number_used_again_meanwhile();
	test_many_wait_for_one();
	test_many(0);
	test_many((int)config.nr_cpus);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
