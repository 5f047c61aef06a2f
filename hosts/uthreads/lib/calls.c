/* SPDX-License-Identifier: MIT */
/*
 * calls.c - the calls of files and sockets: ut_poll(), and ut_read() to ut_connect().
 *
 * A socket is read and written by the thread itself, which waits while it is not
 * ready. Everything else is asked of the kernel's ring, and where there is none, of a
 * helper.
 *
 * Read next: io.c; vectors.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io.h"

#define PAUSE_NS_MAX 5000000

struct call {
	int fd;
	void *buffer;
	size_t bytes;
	off_t at;
	int flags;
	struct sockaddr *address;
	socklen_t *address_bytes;
	ssize_t result;
};

/* What is ready at once need not be asked of others. Context: preemption disabled. */
static int poll_one(struct ut_thread *self, int fd, short events, u64 until_ns)
{
	struct pollfd one = { .fd = fd, .events = events };
	u64 deadline_ns = self->deadline_ns;
	int found = poll(&one, 1, 0);

	if (found)
		return found < 0 ? ut_io_error() :
		       one.revents & POLLNVAL ? -EBADF : one.revents;
	if (!until_ns)
		return -ETIMEDOUT;
	self->deadline_ns = ut_until(self, until_ns);
	found = ut_io_wait_ready(fd, (unsigned short)events);
	self->deadline_ns = deadline_ns;
	return found;
}

int ut_poll(int fd, short events, uint64_t until_ns)
{
	int found;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	found = poll_one(ut_this_cpu()->curr, fd, events, until_ns);
	ut_enable();
	return found;
}

/* The result of a system call, or -errno. */
static int finish(struct call *c, ssize_t result)
{
	c->result = result < 0 ? -errno : result;
	return 0;
}

static int do_read(void *arg)
{
	struct call *c = arg;

	return finish(c, read(c->fd, c->buffer, c->bytes));
}

static int do_write(void *arg)
{
	struct call *c = arg;

	return finish(c, write(c->fd, c->buffer, c->bytes));
}

static int do_pread(void *arg)
{
	struct call *c = arg;

	return finish(c, pread(c->fd, c->buffer, c->bytes, c->at));
}

static int do_pwrite(void *arg)
{
	struct call *c = arg;

	return finish(c, pwrite(c->fd, c->buffer, c->bytes, c->at));
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
	int flags;

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
		ssize_t n = is_write ? send(fd, buffer + written, bytes - written,
					    flags) :
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

/* What the kernel's ring is asked for; more than this no call transfers at once. */
#define TRANSFER_MAX 0x7ffff000U

static struct io_uring_sqe sqe_of(u8 opcode, const struct call *c, u64 at)
{
	return (struct io_uring_sqe){
		.opcode = opcode,
		.fd = c->fd,
		.addr = (uintptr_t)c->buffer,
		.len = c->bytes < TRANSFER_MAX ? (u32)c->bytes : TRANSFER_MAX,
		.off = at,
	};
}

/*
 * Read or write what is no socket, at its own position. A write that blocks goes on
 * until all is written: a pipe takes what it has room for. The ring waits even where
 * the program said that it would not.
 * Return: whether the kernel did it.
 */
static bool transfer_by_kernel(const struct call *all, bool is_write, ssize_t *result)
{
	struct call rest = *all;
	ssize_t n = 0;

	if (ut_io_is_nonblocking(all->fd))
		return false;
	do {
		struct io_uring_sqe sqe = sqe_of(is_write ? IORING_OP_WRITE :
							    IORING_OP_READ,
						 &rest, ~0ULL);

		if (!ut_io_ask_kernel(&sqe, true, &n)) {
			*result = (ssize_t)(all->bytes - rest.bytes);
			return rest.bytes < all->bytes;
		}
		if (n <= 0)
			break;
		rest.buffer = (char *)rest.buffer + n;
		rest.bytes -= (size_t)n;
	} while (is_write && rest.bytes);
	*result = rest.bytes < all->bytes ? (ssize_t)(all->bytes - rest.bytes) : n;
	return true;
}

/*
 * By helpers, which must not wait for another thread: all of them might, for a reader
 * that needs a helper. So the thread waits before, and what is ready is read as far as
 * it goes, or takes as much as a pipe has room for then.
 */
static ssize_t transfer_by_helper(int (*fn)(void *), const struct call *all,
				  bool is_write)
{
	bool may_wait = !ut_io_is_nonblocking(all->fd);
	struct call rest = *all;
	ssize_t n;
	int err;

	do {
		struct call part = rest;

		/* A file is always ready (-EPERM); other errors the call tells. */
		err = may_wait ? ut_io_wait_ready(all->fd, is_write ? EPOLLOUT :
								      EPOLLIN) :
				 -EPERM;
		n = err;
		if (err == -ECANCELED || err == -ETIMEDOUT)
			break;
		if (err > 0 && is_write && part.bytes > PIPE_BUF)
			part.bytes = PIPE_BUF;
		n = ut_io_call_outside(fn, &part);
		n = n ? n : part.result;
		if (n <= 0)
			break;
		rest.buffer = (char *)rest.buffer + n;
		rest.bytes -= (size_t)n;
	} while (err > 0 && is_write && rest.bytes);
	return rest.bytes < all->bytes ? (ssize_t)(all->bytes - rest.bytes) : n;
}

/* What is no socket is for the kernel, or for a helper. Return: bytes; -errno. */
static ssize_t transfer(int (*fn)(void *), struct call *c, bool is_write)
{
	ssize_t n;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	n = ut_may_block() ? -EPERM : use_socket(c, is_write);
	if (n == -ENOTSOCK && !transfer_by_kernel(c, is_write, &n))
		n = transfer_by_helper(fn, c, is_write);
	ut_enable();
	return n;
}

/* By the kernel, or by a helper. */
static ssize_t do_call(int (*fn)(void *), struct call *c,
		       const struct io_uring_sqe *sqe)
{
	int err = 0;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	if (!ut_io_ask_kernel(sqe, false, &c->result))
		err = ut_io_call_outside(fn, c);
	ut_enable();
	return err ? err : c->result;
}

/* At a place, which a pipe has not; for the ring, -1 would be the file's own. */
static ssize_t do_call_at(int (*fn)(void *), struct call *c, u8 opcode)
{
	struct io_uring_sqe sqe = sqe_of(opcode, c, (u64)c->at);

	if (!ut_this_cpu())
		return -EPERM;
	if (c->at < 0)
		return -EINVAL;
	if (lseek(c->fd, 0, SEEK_CUR) < 0)
		return ut_io_error();
	return do_call(fn, c, &sqe);
}

ssize_t ut_read(int fd, void *buffer, size_t bytes)
{
	struct call c = { .fd = fd, .buffer = buffer, .bytes = bytes };

	return transfer(do_read, &c, false);
}

/* @flags: of send(2), where it is a socket. Return: as ut_write(). */
ssize_t ut_io_write(int fd, const void *buffer, size_t bytes, int flags)
{
	struct call c = { .fd = fd, .buffer = (void *)(uintptr_t)buffer,
			  .bytes = bytes, .flags = flags };

	return transfer(do_write, &c, true);
}

ssize_t ut_write(int fd, const void *buffer, size_t bytes)
{
	return ut_io_write(fd, buffer, bytes, 0);
}

ssize_t ut_pread(int fd, void *buffer, size_t bytes, off_t at)
{
	struct call c = { .fd = fd, .buffer = buffer, .bytes = bytes, .at = at };

	return do_call_at(do_pread, &c, IORING_OP_READ);
}

ssize_t ut_pwrite(int fd, const void *buffer, size_t bytes, off_t at)
{
	struct call c = { .fd = fd, .buffer = (void *)(uintptr_t)buffer,
			  .bytes = bytes, .at = at };

	return do_call_at(do_pwrite, &c, IORING_OP_WRITE);
}

int ut_fsync(int fd)
{
	struct call c = { .fd = fd };
	struct io_uring_sqe sqe = sqe_of(IORING_OP_FSYNC, &c, 0);

	return (int)do_call(do_fsync, &c, &sqe);
}

int ut_accept(int fd, struct sockaddr *address, socklen_t *address_bytes, int flags)
{
	struct call c = { .fd = fd, .address = address,
			  .address_bytes = address_bytes, .flags = flags };
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_ACCEPT,
		.fd = fd,
		.addr = (uintptr_t)address,
		.addr2 = (uintptr_t)address_bytes,
		.accept_flags = (u32)flags,
	};
	int err = 0;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	if (ut_may_block()) {
		c.result = -EPERM;
	} else if (ut_io_is_nonblocking(fd)) {
		/* The ring would wait. */
		do_accept(&c);
	} else if (!ut_io_ask_kernel(&sqe, true, &c.result)) {
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
	err = ut_io_wait_ready(c->fd, EPOLLOUT);
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
