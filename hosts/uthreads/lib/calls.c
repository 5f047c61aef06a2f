/* SPDX-License-Identifier: MIT */
/*
 * calls.c - the calls of files and sockets: ut_poll(), and ut_read() to ut_connect().
 *
 * The thread itself does what can be done without waiting, and waits while it cannot.
 * What Linux does not do so (a file that is not cached, a terminal) a helper does.
 *
 * Read next: io.c; vectors.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io.h"

#define PAUSE_NS_MAX 5000000

struct call {
	int fd;
	void *buffer;
	size_t bytes;
	int flags;
	struct sockaddr *address;
	socklen_t *address_bytes;
	ssize_t result;
};

/*
 * What is ready at once need not be waited for; and an event may be an earlier wait's.
 * Return: what is ready, not 0; -errno. Context: preemption disabled.
 */
int ut_io_poll(int fd, short events, u64 until_ns)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	u64 deadline_ns = self->deadline_ns;
	int err = 0;

	while (err >= 0) {
		struct pollfd one = { .fd = fd, .events = events };
		int found = poll(&one, 1, 0) < 0 ? ut_io_error() : one.revents;

		if (found == -EINTR)
			continue; /* a signal that is pending ends even this one */
		if (found)
			return found > 0 && (found & POLLNVAL) ? -EBADF : found;
		if (!until_ns)
			return -ETIMEDOUT;
		self->deadline_ns = ut_until(self, until_ns);
		err = ut_may_block();
		if (!err)
			err = ut_io_wait_ready(fd, (unsigned short)events);
		self->deadline_ns = deadline_ns;
	}
	return err;
}

int ut_poll(int fd, short events, uint64_t until_ns)
{
	return ut_inside(ut_io_poll(fd, events, until_ns));
}

/* The result of a system call, or -errno. */
static int finish(struct call *c, ssize_t result)
{
	c->result = result < 0 ? -errno : result;
	return 0;
}

static int do_fsync(void *arg)
{
	struct call *c = arg;

	return finish(c, fsync(c->fd));
}

static int do_accept(void *arg)
{
	struct call *c = arg;

	return finish(c, accept4(c->fd, c->address, c->address_bytes, c->flags));
}

static int do_connect(void *arg)
{
	struct call *c = arg;

	return finish(c, connect(c->fd, c->address, *c->address_bytes));
}

/* While it is held, a descriptor may say for a moment that it does not wait. */
static pthread_mutex_t flags_lock = PTHREAD_MUTEX_INITIALIZER;

bool ut_io_is_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || !(flags & O_NONBLOCK))
		return false;
	pthread_mutex_lock(&flags_lock);
	flags = fcntl(fd, F_GETFL);
	pthread_mutex_unlock(&flags_lock);
	return flags >= 0 && flags & O_NONBLOCK;
}

/*
 * Call @fn, which tells -EAGAIN where it would wait, whatever its descriptor says.
 * A helper would wait for a thread that may need a helper, and accept() and
 * connect() have no flag for it. Context: preemption disabled. Return: as the call,
 * or -errno.
 */
static int without_waiting(int (*fn)(void *), struct call *c)
{
	int flags;

	pthread_mutex_lock(&flags_lock);
	flags = fcntl(c->fd, F_GETFL);
	if (flags < 0 || fcntl(c->fd, F_SETFL, flags | O_NONBLOCK)) {
		c->result = ut_io_error();
	} else {
		fn(c);
		fcntl(c->fd, F_SETFL, flags);
	}
	pthread_mutex_unlock(&flags_lock);
	return (int)c->result;
}

/*
 * Read from, or write to, a socket: the thread does it itself, and waits while the
 * socket is not ready. As a call that blocks, a write goes on until all is written.
 * Return: bytes; -ENOTSOCK; -errno. Context: preemption disabled.
 */
static ssize_t use_socket(const struct call *c, bool is_write)
{
	int flags = c->flags | MSG_DONTWAIT;
	char *buffer = c->buffer;
	size_t bytes = c->bytes;
	size_t written = 0;
	int fd = c->fd;
	int err = 0;

	/* Nothing is there at once; recv() would wait for something. */
	if (!is_write && !bytes)
		return read(fd, buffer, 0) < 0 ? ut_io_error() : 0;
	for (;;) {
		ssize_t n = is_write ? send(fd, buffer + written, bytes - written, flags) :
				       recv(fd, buffer, bytes, flags);

		if (n >= 0 && !is_write)
			return n;
		if (n >= 0) {
			written += (size_t)n;
			if (written >= bytes || ut_io_is_nonblocking(fd))
				return (ssize_t)written;
			continue;
		}
		err = ut_io_error();
		if (err == -EINTR)
			continue;
		if (err == -EAGAIN && !ut_io_is_nonblocking(fd))
			err = ut_io_wait_ready(fd, is_write ? EPOLLOUT : EPOLLIN);
		if (err < 0)
			return written ? (ssize_t)written : err;
	}
}

static int do_vector(void *arg)
{
	struct vector *v = arg;

	v->result = v->is_write ? pwritev2(v->fd, v->parts, (int)v->nr, v->at, 0) :
				  preadv2(v->fd, v->parts, (int)v->nr, v->at, 0);
	if (v->result < 0)
		v->result = -errno;
	return 0;
}

size_t ut_io_bytes(const struct vector *v)
{
	size_t bytes = 0;

	for (size_t i = 0; i < v->nr; i++)
		bytes += v->parts[i].iov_len;
	return bytes;
}

/* Of what is ready is read as far as it goes, and a pipe has so much room. */
static ssize_t use_by_helper(struct vector v)
{
	bool may_wait = !ut_io_is_nonblocking(v.fd);
	struct stat about;
	struct iovec first;
	int err = 0;

	if (may_wait && ut_io_bytes(&v))
		err = ut_io_poll(v.fd, v.is_write ? POLLOUT : POLLIN, UT_NEVER);
	if (err < 0)
		return err;
	if (may_wait && v.is_write && ut_io_bytes(&v) > PIPE_BUF && !fstat(v.fd, &about) &&
	    !S_ISREG(about.st_mode)) {
		first = v.parts[0];
		if (first.iov_len > PIPE_BUF)
			first.iov_len = PIPE_BUF;
		v.parts = &first;
		v.nr = 1;
	}
	err = ut_io_call_outside(do_vector, &v);
	return err ? err : v.result;
}

/* Of a file Linux does at once what is cached, @n bytes; a helper does the rest. */
static ssize_t go_on(const struct vector *v, ssize_t n)
{
	struct iovec part = v->parts[0];
	struct vector rest = *v;
	struct stat about;
	ssize_t more;

	if (n <= 0 || (size_t)n >= part.iov_len || fstat(v->fd, &about) || !S_ISREG(about.st_mode))
		return n;
	part.iov_base = (char *)part.iov_base + n;
	part.iov_len -= (size_t)n;
	rest.parts = &part;
	if (rest.at != UT_IO_OWN_PLACE)
		rest.at += n;
	more = use_by_helper(rest);
	return more > 0 ? n + more : n;
}

/*
 * Read or write once what is no socket: at once, if Linux has a way to do so with this one,
 * or by a helper. Helpers must not wait for another thread: all of them might, for a
 * reader that needs a helper. So the thread waits before.
 *
 * Context: preemption disabled. Return: bytes; -errno.
 */
ssize_t ut_io_use_other(const struct vector *v)
{
	int err = ut_may_block();
	ssize_t n;

	if (err)
		return err;
	while (err >= 0 && v->nr == 1) {
		n = v->is_write ? pwritev2(v->fd, v->parts, 1, v->at, RWF_NOWAIT) :
				  preadv2(v->fd, v->parts, 1, v->at, RWF_NOWAIT);
		if (n >= 0)
			return go_on(v, n);
		err = ut_io_error();
		if (err == -EAGAIN && !ut_io_is_nonblocking(v->fd))
			err = ut_io_wait_ready(v->fd, v->is_write ? EPOLLOUT : EPOLLIN);
		else if (err != -EAGAIN && err != -EOPNOTSUPP)
			return err;
	}
	/* -EPERM: no descriptor to wait for, but a file. */
	return err == -ECANCELED || err == -ETIMEDOUT ? err : use_by_helper(*v);
}

/* A write that blocks goes on until all is written: a pipe takes what it has room for. */
static ssize_t use_other(const struct call *c, bool is_write)
{
	struct iovec rest = { c->buffer, c->bytes };
	ssize_t n;

	do {
		struct vector v = { c->fd, &rest, 1, is_write, UT_IO_OWN_PLACE, 0 };

		n = ut_io_use_other(&v);
		if (n <= 0)
			break;
		rest.iov_base = (char *)rest.iov_base + n;
		rest.iov_len -= (size_t)n;
	} while (is_write && rest.iov_len && !ut_io_is_nonblocking(c->fd));
	return rest.iov_len < c->bytes ? (ssize_t)(c->bytes - rest.iov_len) : n;
}

/* Context: preemption disabled. */
static ssize_t transfer(const struct call *c, bool is_write)
{
	ssize_t n = ut_may_block() ? -EPERM : use_socket(c, is_write);

	return n == -ENOTSOCK ? use_other(c, is_write) : n;
}

/* At a place, which a pipe has not. Context: preemption disabled. */
static ssize_t transfer_at(int fd, void *buffer, size_t bytes, off_t at, bool is_write)
{
	struct iovec part = { buffer, bytes };
	struct vector v = { fd, &part, 1, is_write, at, 0 };

	if (at < 0)
		return -EINVAL;
	return lseek(fd, 0, SEEK_CUR) < 0 ? ut_io_error() : ut_io_use_other(&v);
}

ssize_t ut_read(int fd, void *buffer, size_t bytes)
{
	struct call c = { .fd = fd, .buffer = buffer, .bytes = bytes };

	return ut_inside(transfer(&c, false));
}

/* @flags: of send(2), where it is a socket. Return: as ut_write(). */
ssize_t ut_io_write(int fd, const void *buffer, size_t bytes, int flags)
{
	struct call c = {
		.fd = fd, .buffer = (void *)(uintptr_t)buffer, .bytes = bytes, .flags = flags
	};

	return ut_inside(transfer(&c, true));
}

ssize_t ut_write(int fd, const void *buffer, size_t bytes)
{
	return ut_io_write(fd, buffer, bytes, 0);
}

ssize_t ut_pread(int fd, void *buffer, size_t bytes, off_t at)
{
	return ut_inside(transfer_at(fd, buffer, bytes, at, false));
}

ssize_t ut_pwrite(int fd, const void *buffer, size_t bytes, off_t at)
{
	return ut_inside(transfer_at(fd, (void *)(uintptr_t)buffer, bytes, at, true));
}

static int sync_file(int fd)
{
	struct call c = { .fd = fd };
	int err = ut_io_call_outside(do_fsync, &c);

	return err ? err : (int)c.result;
}

int ut_fsync(int fd)
{
	return ut_inside(sync_file(fd));
}

int ut_accept(int fd, struct sockaddr *address, socklen_t *address_bytes, int flags)
{
	struct call c = {
		.fd = fd, .address = address, .address_bytes = address_bytes, .flags = flags
	};
	int err = 0;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	if (ut_may_block()) {
		c.result = -EPERM;
	} else if (ut_io_is_nonblocking(fd)) {
		do_accept(&c);
	} else {
		/* Another caller of accept() may be faster. */
		while (err >= 0 && without_waiting(do_accept, &c) == -EAGAIN)
			err = ut_io_wait_ready(fd, EPOLLIN);
	}
	ut_enable();
	return err < 0 ? err : (int)c.result;
}

/*
 * Without blocking, then wait for how it went. -EAGAIN: a local socket's other side
 * has no room in its queue. Context: preemption disabled.
 */
static int connect_and_wait(struct call *c)
{
	socklen_t bytes = sizeof(int);
	int err = without_waiting(do_connect, c);

	if (err != -EINPROGRESS)
		return err;
	err = ut_io_poll(c->fd, POLLOUT, UT_NEVER);
	if (err >= 0 && getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &bytes))
		return ut_io_error();
	return err > 0 ? -err : err;
}

/* @may_wait: whether the descriptor says that it may. */
static int connect_once(struct call *c, bool *may_wait)
{
	int err;

	ut_disable();
	err = ut_may_block();
	*may_wait = !err && !ut_io_is_nonblocking(c->fd);
	if (*may_wait) {
		err = connect_and_wait(c);
	} else if (!err) {
		do_connect(c);
		err = (int)c->result;
	}
	ut_enable();
	return err;
}

/*
 * No event says when the other side of a local socket has room, and no helper must wait
 * for it: the caller looks again later, less and less often. Return: as ut_sleep_ns().
 */
int ut_io_pause(u64 *pause_ns)
{
	int err = ut_sleep_ns(*pause_ns);

	*pause_ns = *pause_ns < PAUSE_NS_MAX ? 2 * *pause_ns : PAUSE_NS_MAX;
	return err;
}

int ut_connect(int fd, const struct sockaddr *address, socklen_t address_bytes)
{
	struct call c = { .fd = fd,
			  .address = (struct sockaddr *)(uintptr_t)address,
			  .address_bytes = &address_bytes };
	u64 pause_ns = UT_IO_PAUSE_NS;
	bool may_wait;
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	for (;;) {
		err = connect_once(&c, &may_wait);
		if (err != -EAGAIN || !may_wait)
			return err;
		err = ut_io_pause(&pause_ns);
		if (err)
			return err;
	}
}
