/* SPDX-License-Identifier: MIT */
/*
 * waits.c - who waits for somebody else can be cancelled, and keeps nobody from working.
 *
 *	waits POLICY CPUS
 */
#define _GNU_SOURCE
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define NR 24			/* more than there are helpers */
#define MANY_BYTES 300000	/* more than a pipe holds */
#define SHORT_NS 2000000

static int ends[NR][2];
static int server;
static struct sockaddr_un address;
static int nr_accepted;

static void *read_some(void *arg)
{
	uint64_t bytes;

	return (void *)(intptr_t)ut_read((int)(intptr_t)arg, &bytes, sizeof(bytes));
}

static void *write_many(void *arg)
{
	char *bytes = calloc(1, MANY_BYTES);
	ssize_t n = ut_write((int)(intptr_t)arg, bytes, MANY_BYTES);

	free(bytes);
	return (void *)(intptr_t)n;
}

static void *accept_one(void *arg)
{
	return (void *)(intptr_t)ut_accept((int)(intptr_t)arg, NULL, NULL, 0);
}

static bool is_full(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLOUT };

	return poll(&one, 1, 0) == 0;
}

/*
 * Cancels @fn where it waits, or is about to if others have the CPU; a writer not before
 * what it wrote is in the way of more. Return: the result of @fn.
 */
static intptr_t cancelled(ut_fn fn, int fd)
{
	void *result;
	ut_id id;

	CHECK_IS(ut_create(&id, NULL, fn, (void *)(intptr_t)fd), 0);
	do {
		CHECK_IS(ut_sleep_ns(SHORT_NS), 0);
	} while (fn == write_many && !is_full(fd));
	CHECK_IS(ut_cancel(id), 0);
	CHECK_IS(ut_join(id, &result), 0);
	return (intptr_t)result;
}

/* Nobody is left who would take what comes later. */
static void see_byte(int from, int to)
{
	char byte = 0;

	CHECK_IS(ut_write(to, "x", 1), 1);
	CHECK_IS(ut_read(from, &byte, 1), 1);
	CHECK_IS(byte, 'x');
}

static void test_cancel(void)
{
	int event = eventfd(0, 0);
	uint64_t one = 1, found = 0;
	intptr_t n;
	int fds[2];

	CHECK_IS(pipe(fds), 0);
	CHECK_IS(cancelled(read_some, fds[0]), -ECANCELED);
	see_byte(fds[0], fds[1]);
	/* What is in the pipe has been written. */
	n = cancelled(write_many, fds[1]);
	CHECK(n >= 4096 && n < MANY_BYTES);
	CHECK_IS(close(fds[0]), 0);
	CHECK_IS(close(fds[1]), 0);
	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	CHECK_IS(cancelled(read_some, fds[0]), -ECANCELED);
	see_byte(fds[0], fds[1]);
	n = cancelled(write_many, fds[1]);
	CHECK(n > 0 && n < MANY_BYTES);
	CHECK_IS(close(fds[0]), 0);
	CHECK_IS(close(fds[1]), 0);
	CHECK_IS(cancelled(accept_one, server), -ECANCELED);
	CHECK_IS(cancelled(read_some, event), -ECANCELED);
	CHECK_IS(ut_write(event, &one, sizeof(one)), sizeof(one));
	CHECK_IS(ut_read(event, &found, sizeof(found)), sizeof(found));
	CHECK_IS(close(event), 0);
}

/* Nothing waits for no bytes. */
static void test_nothing(void)
{
	int fds[2];

	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	CHECK_IS(ut_read(fds[0], NULL, 0), 0);
	CHECK_IS(ut_write(fds[0], NULL, 0), 0);
	CHECK_IS(close(fds[0]), 0);
	CHECK_IS(close(fds[1]), 0);
	CHECK_IS(pipe(fds), 0);
	CHECK_IS(ut_read(fds[0], NULL, 0), 0);
	CHECK_IS(ut_read(fds[1], NULL, 0), -EBADF);
	CHECK_IS(close(fds[0]), 0);
	CHECK_IS(close(fds[1]), 0);
}

static void *read_many(void *arg)
{
	char *bytes = malloc(MANY_BYTES);
	intptr_t sum = 0;
	ssize_t n;

	while (sum < MANY_BYTES) {
		n = ut_read((int)(intptr_t)arg, bytes, MANY_BYTES);
		CHECK(n > 0);
		sum += n;
	}
	free(bytes);
	return (void *)sum;
}

/* Writers that fill their pipes do not keep the readers waiting. */
static void test_writers(void)
{
	ut_id ids[2][NR];
	void *result;

	for (int i = 0; i < NR; i++) {
		CHECK_IS(pipe(ends[i]), 0);
		CHECK_IS(ut_create(&ids[0][i], NULL, write_many, (void *)(intptr_t)ends[i][1]), 0);
	}
	CHECK_IS(ut_sleep_ns(SHORT_NS), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[1][i], NULL, read_many, (void *)(intptr_t)ends[i][0]), 0);
	for (int i = 0; i < 2 * NR; i++) {
		CHECK_IS(ut_join(ids[i / NR][i % NR], &result), 0);
		CHECK_IS((intptr_t)result, MANY_BYTES);
	}
	for (int i = 0; i < 2 * NR; i++)
		CHECK_IS(close(ends[i / 2][i % 2]), 0);
}

static void open_server(int backlog)
{
	address.sun_family = AF_UNIX;
	/* Without a name in any folder; the first byte is zero. */
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "waits-%d", (int)getpid());
	server = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_IS(bind(server, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_IS(listen(server, backlog), 0);
}

static void *serve_some(void *arg)
{
	int fd;

	while (__atomic_add_fetch(&nr_accepted, 1, __ATOMIC_SEQ_CST) <= NR) {
		fd = ut_accept(server, NULL, NULL, 0);
		CHECK(fd >= 0);
		CHECK_IS(ut_write(fd, "hello", 5), 5);
		/* Of a helper, where there is no ring. */
		CHECK_IS(ut_fsync(server), -EINVAL);
		CHECK_IS(close(fd), 0);
	}
	return arg;
}

static void *be_client(void *arg)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char text[8];

	CHECK_IS(ut_connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_IS(ut_read(fd, text, sizeof(text)), 5);
	CHECK_IS(close(fd), 0);
	return arg;
}

/* More wait for one connection, and to be accepted, than there are helpers. */
static void test_server(void)
{
	ut_id ids[2 * NR];

	nr_accepted = 0;
	for (int i = 0; i < 2 * NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, i < NR ? serve_some : be_client, NULL), 0);
	for (int i = 0; i < 2 * NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
}

static void ignore(int signal)
{
	(void)signal;
}

/* Signals of the program's, all the time: no call notices. */
static void start_alarms(void)
{
	struct sigaction act = { .sa_handler = ignore };
	struct itimerval each_ms = { { 0, 1000 }, { 0, 1000 } };

	CHECK_IS(sigaction(SIGALRM, &act, NULL), 0);
	CHECK_IS(setitimer(ITIMER_REAL, &each_ms, NULL), 0);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);

	for (int i = 0; i < 2; i++) {
		check_init(&config);
		if (i)
			start_alarms();
		open_server(2);
		test_cancel();
		test_nothing();
		test_writers();
		test_server();
		CHECK_IS(close(server), 0);
		CHECK_IS(ut_exit(), 0);
	}
	puts("good");
	return 0;
}
