/* SPDX-License-Identifier: MIT */
/*
 * watcher.c - the kernel thread that looks for what is ready cannot be started, or what ends it
 * has a number beyond all that threads may wait for.
 *
 *	watcher POLICY CPUS
 *
 * Functions of the C library are the program's here, as where a limit is reached.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LIMIT (1 << 20)		/* of descriptors that threads wait for */
#define SHORT_US 20000
#define LONG_NS 2000000000

static bool fails, is_starting, is_waiting; /* atomic */
static int pipe_fds[2], other_fds[2];

#define FLAG(flag) __atomic_load_n(&(flag), __ATOMIC_SEQ_CST)
#define SET(flag, value) __atomic_store_n(&(flag), value, __ATOMIC_SEQ_CST)

int pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	typeof(pthread_create) *real = (typeof(real))dlsym(RTLD_NEXT, "pthread_create");

	if (!FLAG(fails))
		return real(id, attr, fn, arg);
	SET(fails, false);
	SET(is_starting, true);
	while (!FLAG(is_waiting))
		;
	/* It begins its wait meanwhile, if that does not need the watcher. */
	usleep(SHORT_US);
	return EAGAIN;
}

static int real_number(int fd)
{
	return fd >= LIMIT ? fd - LIMIT : fd;
}

int eventfd(unsigned int count, int flags)
{
	typeof(eventfd) *real = (typeof(real))dlsym(RTLD_NEXT, "eventfd");

	return real(count, flags) + LIMIT;
}

int eventfd_write(int fd, eventfd_t value)
{
	typeof(eventfd_write) *real = (typeof(real))dlsym(RTLD_NEXT, "eventfd_write");

	return real(real_number(fd), value);
}

int close(int fd)
{
	typeof(close) *real = (typeof(real))dlsym(RTLD_NEXT, "close");

	return real(real_number(fd));
}

int poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	typeof(poll) *real = (typeof(real))dlsym(RTLD_NEXT, "poll");

	for (nfds_t i = 0; i < nr; i++)
		fds[i].fd = real_number(fds[i].fd);
	return real(fds, nr, timeout);
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	typeof(epoll_ctl) *real = (typeof(real))dlsym(RTLD_NEXT, "epoll_ctl");

	CHECK(fd < LIMIT);
	return real(epoll, operation, fd, event);
}

static void *wait_for_other(void *arg)
{
	while (!FLAG(is_starting))
		;
	SET(is_waiting, true);
	CHECK_IS(ut_poll(other_fds[0], POLLIN, ut_now_ns() + LONG_NS), POLLIN);
	return arg;
}

/* One thread starts the watcher in vain while another one wants to wait. */
static void test_cannot_be_started(void)
{
	ut_id id;

	CHECK_IS(ut_create(&id, NULL, wait_for_other, NULL), 0);
	SET(fails, true);
	CHECK_IS(ut_poll(pipe_fds[0], POLLIN, UT_NEVER), -EAGAIN);
	CHECK_IS(write(other_fds[1], "o", 1), 1);
	CHECK_IS(ut_join(id, NULL), 0);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);

	check_init(&config);
	CHECK_IS(pipe(pipe_fds), 0);
	CHECK_IS(pipe(other_fds), 0);
	test_cannot_be_started();
	CHECK_IS(ut_poll(pipe_fds[0], POLLIN, ut_now_ns() + 1000000), -ETIMEDOUT);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
