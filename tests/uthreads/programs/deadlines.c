/* SPDX-License-Identifier: MIT */
/*
 * deadlines.c - every call that waits ends at a deadline, and has then done nothing.
 *
 *	deadlines POLICY CPUS
 */
#define _GNU_SOURCE
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SHORT_NS 2000000
#define HOUR_NS 3600000000000ULL
#define MANY_BYTES 300000	/* more than a pipe holds */

static ut_mutex mutex = UT_MUTEX_INIT;
static ut_cond cond = UT_COND_INIT;
static ut_sem sem = UT_SEM_INIT(0), has_locked = UT_SEM_INIT(0);
static ut_barrier barrier = UT_BARRIER_INIT(2);
static ut_chan *chan;
static char many[MANY_BYTES];

/* @call gives up when its time has come, and not before. */
#define CHECK_LATE(call)						\
	do {								\
		uint64_t at_ns = ut_now_ns() + SHORT_NS;		\
									\
		CHECK_IS(ut_set_deadline(at_ns), UT_NEVER);		\
		CHECK_IS(call, -ETIMEDOUT);				\
		CHECK(ut_now_ns() >= at_ns);				\
		/* It is over, for a second call, too. */		\
		CHECK_IS(call, -ETIMEDOUT);				\
		CHECK_IS(ut_set_deadline(UT_NEVER), at_ns);		\
	} while (0)

static void *lock_until_told(void *arg)
{
	CHECK_IS(ut_mutex_lock(&mutex), 0);
	CHECK_IS(ut_sem_post(&has_locked), 0);
	CHECK_IS(ut_sem_wait(&sem), 0);
	CHECK_IS(ut_mutex_unlock(&mutex), 0);
	return arg;
}

static void *come_later(void *arg)
{
	CHECK_IS(ut_sleep_ns(SHORT_NS), 0);
	CHECK(ut_barrier_wait(&barrier) >= 0);
	return arg;
}

static void test_objects(void)
{
	uint64_t at_ns;
	int message = 7;
	ut_id id;

	CHECK_IS(ut_create(&id, NULL, lock_until_told, NULL), 0);
	CHECK_IS(ut_sem_wait(&has_locked), 0);
	CHECK_LATE(ut_mutex_lock(&mutex));
	CHECK_LATE(ut_join(id, NULL));
	CHECK_IS(ut_sem_post(&sem), 0);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_LATE(ut_sem_wait(&sem));
	CHECK_LATE(ut_barrier_wait(&barrier));
	/* A thread that left is not counted. */
	CHECK_IS(ut_create(&id, NULL, come_later, NULL), 0);
	CHECK_IS(ut_set_deadline(ut_now_ns() + HOUR_NS), UT_NEVER);
	CHECK(ut_barrier_wait(&barrier) >= 0);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK(ut_set_deadline(UT_NEVER) < UT_NEVER);
	/* The mutex is the caller's again, however late it is. */
	CHECK_IS(ut_mutex_lock(&mutex), 0);
	CHECK_LATE(ut_cond_wait(&cond, &mutex));
	CHECK_IS(ut_mutex_unlock(&mutex), 0);
	CHECK_IS(ut_chan_create(&chan, sizeof(message), 1), 0);
	CHECK_LATE(ut_chan_recv(chan, &message));
	CHECK_IS(ut_chan_send(chan, &message), 0);
	CHECK_LATE(ut_chan_send(chan, &message));
	/* One message was sent. */
	CHECK_IS(ut_chan_recv(chan, &message), 0);
	CHECK_IS(ut_chan_try_recv(chan, &message), -EAGAIN);
	CHECK_IS(ut_chan_destroy(chan), 0);
	/* Of two times the first counts, and what does not wait is not late. */
	at_ns = ut_now_ns() + SHORT_NS;
	CHECK_IS(ut_set_deadline(at_ns), UT_NEVER);
	CHECK_IS(ut_sleep_ns(HOUR_NS), -ETIMEDOUT);
	CHECK_IS(ut_sem_wait_until(&sem, ut_now_ns() + HOUR_NS), -ETIMEDOUT);
	CHECK_IS(ut_mutex_lock(&mutex), 0);
	CHECK_IS(ut_mutex_unlock(&mutex), 0);
	CHECK_IS(ut_set_deadline(ut_now_ns() + HOUR_NS), at_ns);
	CHECK_IS(ut_sem_wait_until(&sem, ut_now_ns() + SHORT_NS), -ETIMEDOUT);
	CHECK_IS(ut_sleep_ns(SHORT_NS), 0);
	CHECK(ut_set_deadline(UT_NEVER) > at_ns);
}

static void see_byte(int from, int to)
{
	char byte = 0;

	CHECK_IS(ut_write(to, "x", 1), 1);
	CHECK_IS(ut_read(from, &byte, 1), 1);
	CHECK_IS(byte, 'x');
}

/* Two ends of anything: a reader and a writer that are late leave nothing behind. */
static void test_ends(int from, int to)
{
	char byte;
	ssize_t n;

	CHECK_LATE(ut_read(from, &byte, 1));
	see_byte(from, to);
	CHECK_IS(ut_set_deadline(ut_now_ns() + SHORT_NS), UT_NEVER);
	/* What was written by then. */
	n = ut_write(to, many, MANY_BYTES);
	CHECK(n > 0 && n < MANY_BYTES);
	ut_set_deadline(UT_NEVER);
	for (; n > 0; n -= ut_read(from, many, MANY_BYTES))
		;
	CHECK_IS(n, 0);
	CHECK_IS(ut_poll(from, POLLIN, 0), -ETIMEDOUT);
	CHECK_IS(close(from), 0);
	CHECK_IS(close(to), 0);
}

static void *write_later(void *arg)
{
	CHECK_IS(ut_sleep_ns(SHORT_NS), 0);
	CHECK_IS(ut_write((int)(intptr_t)arg, "x", 1), 1);
	return NULL;
}

static void test_poll(void)
{
	uint64_t at_ns;
	int fds[2];
	char byte;
	ut_id id;

	CHECK_IS(pipe(fds), 0);
	CHECK_IS(ut_poll(fds[1], POLLOUT, UT_NEVER), POLLOUT);
	CHECK_IS(ut_poll(fds[0], POLLIN, 0), -ETIMEDOUT);
	at_ns = ut_now_ns() + SHORT_NS;
	CHECK_IS(ut_poll(fds[0], POLLIN, at_ns), -ETIMEDOUT);
	CHECK(ut_now_ns() >= at_ns);
	CHECK_LATE(ut_poll(fds[0], POLLIN, UT_NEVER));
	for (int i = 0; i < 2; i++) {
		CHECK_IS(ut_create(&id, NULL, write_later, (void *)(intptr_t)fds[1]), 0);
		CHECK_IS(ut_poll(fds[0], POLLIN, i ? UT_NEVER : ut_now_ns() + HOUR_NS), POLLIN);
		CHECK_IS(ut_read(fds[0], &byte, 1), 1);
		CHECK_IS(ut_join(id, NULL), 0);
	}
	CHECK_IS(close(fds[1]), 0);
	CHECK_IS(ut_poll(fds[0], POLLIN, UT_NEVER), POLLHUP);
	CHECK_IS(close(fds[0]), 0);
	CHECK_IS(ut_poll(fds[0], POLLIN, UT_NEVER), -EBADF);
	/* A file is always ready. */
	fds[0] = open("/proc/self/exe", O_RDONLY);
	CHECK_IS(ut_poll(fds[0], POLLIN, UT_NEVER), POLLIN);
	CHECK_IS(close(fds[0]), 0);
}

/* A server whose queue is full: accept() has none, connect() no room. */
static void test_connections(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int server = socket(AF_UNIX, SOCK_STREAM, 0);
	int client = socket(AF_UNIX, SOCK_STREAM, 0);
	int late = socket(AF_UNIX, SOCK_STREAM, 0);
	int fd;

	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "deadlines-%d", (int)getpid());
	CHECK_IS(bind(server, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_IS(listen(server, 0), 0);
	CHECK_LATE(ut_accept(server, NULL, NULL, 0));
	CHECK_IS(ut_connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_LATE(ut_connect(late, (struct sockaddr *)&address, sizeof(address)));
	fd = ut_accept(server, NULL, NULL, 0);
	CHECK(fd >= 0);
	CHECK_IS(ut_connect(late, (struct sockaddr *)&address, sizeof(address)), 0);
	see_byte(fd, client);
	CHECK_IS(close(fd) | close(client) | close(late) | close(server), 0);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	int fds[2];

	CHECK_IS(ut_set_deadline(0), UT_NEVER);
	check_init(&config);
	test_objects();
	CHECK_IS(pipe(fds), 0);
	test_ends(fds[0], fds[1]);
	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	test_ends(fds[0], fds[1]);
	test_poll();
	test_connections();
	CHECK_IS(ut_exit(), 0);
	return 0;
}
