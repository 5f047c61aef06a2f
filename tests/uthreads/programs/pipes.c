/* SPDX-License-Identifier: MIT */
/*
 * pipes.c - more threads wait for pipes than there are kernel threads to wait.
 *
 *	pipes POLICY CPUS
 *
 * Each thread reads from its own pipe and writes to the next one's. The last is
 * filled first, so nobody can go on before all of them wait.
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define NR_THREADS 60

static int ends[NR_THREADS + 1][2];

static void *pass_on(void *arg)
{
	intptr_t me = (intptr_t)arg;
	char byte = 0;

	CHECK(ut_read(ends[me][0], &byte, 1) == 1);
	CHECK(byte == 'x');
	CHECK(ut_write(ends[me + 1][1], &byte, 1) == 1);
	return arg;
}

/* One that would not block a process does not block a thread. */
static void try_nonblocking(void)
{
	char byte;
	int fds[2];

	CHECK(!pipe2(fds, O_NONBLOCK));
	CHECK(ut_read(fds[0], &byte, 1) == -EAGAIN);
	CHECK(ut_write(fds[1], "y", 1) == 1);
	CHECK(ut_read(fds[0], &byte, 1) == 1 && byte == 'y');
	close(fds[1]);
	CHECK(ut_read(fds[0], &byte, 1) == 0);
	close(fds[0]);
	CHECK(ut_read(fds[0], &byte, 1) == -EBADF);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id ids[NR_THREADS];
	char byte;

	check_init(&config);
	for (int i = 0; i <= NR_THREADS; i++)
		CHECK(!pipe(ends[i]));
	for (intptr_t i = 0; i < NR_THREADS; i++)
		CHECK(!ut_create(&ids[i], NULL, pass_on, (void *)i));
	CHECK(!ut_sleep_ns(2000000));
	CHECK(ut_write(ends[0][1], "x", 1) == 1);
	CHECK(ut_read(ends[NR_THREADS][0], &byte, 1) == 1);
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!ut_join(ids[i], NULL));
	try_nonblocking();
	CHECK(!ut_exit());
	return 0;
}
