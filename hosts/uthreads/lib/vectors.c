/* SPDX-License-Identifier: MIT */
/*
 * vectors.c - messages with addresses, and several buffers in one call: ut_recvmsg() to
 * ut_writev().
 *
 * A socket is used by the thread itself, which waits while it is not ready; other
 * descriptors as in calls.c. What a stream or a pipe
 * has no room for at once is written part by part.
 *
 * Read next: calls.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io.h"

/* Of a vector @done bytes are written: the rest. Return: bytes of both; -errno. */
static ssize_t write_rest(const struct vector *v, ssize_t done, int flags)
{
	size_t sum = done > 0 ? (size_t)done : 0;
	size_t end = 0;
	ssize_t n = done;

	for (size_t i = 0; i < v->nr && n >= 0; i++) {
		size_t start = end;

		end += v->parts[i].iov_len;
		if (sum >= end)
			continue;
		n = ut_io_write(v->fd, (char *)v->parts[i].iov_base + (sum - start), end - sum,
				flags);
		sum += n > 0 ? (size_t)n : 0;
		if (sum < end)
			break;
	}
	return sum ? (ssize_t)sum : n;
}

/*
 * Send or receive once, when the socket is ready. Context: preemption disabled.
 * Return: bytes; -EAGAIN with @may_retry: it is not, and said that it was; -errno.
 */
static ssize_t use_socket(int fd, struct msghdr *msg, int flags, bool is_write, bool *may_retry)
{
	int err = ut_may_block() ? -EPERM : 0;
	bool has_waited = false;

	while (err >= 0) {
		ssize_t n = is_write ? sendmsg(fd, msg, flags | MSG_DONTWAIT) :
				       recvmsg(fd, msg, flags | MSG_DONTWAIT);

		if (n >= 0)
			return n;
		err = ut_io_error();
		*may_retry = err == -EAGAIN && !(flags & MSG_DONTWAIT) && !ut_io_is_nonblocking(fd);
		if (err == -EINTR)
			err = 0;
		else if (*may_retry && !has_waited)
			err = ut_io_wait_ready(fd, is_write ? EPOLLOUT : EPOLLIN);
		has_waited = err > 0;
	}
	return err;
}

static ssize_t transfer(int fd, struct msghdr *msg, int flags, bool is_write)
{
	u64 pause_ns = UT_IO_PAUSE_NS;
	bool may_retry = false;
	ssize_t n;

	for (;;) {
		n = ut_inside(use_socket(fd, msg, flags, is_write, &may_retry));
		if (n != -EAGAIN || !may_retry)
			return n;
		n = ut_io_pause(&pause_ns);
		if (n)
			return n;
	}
}

ssize_t ut_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return transfer(fd, msg, flags, false);
}

ssize_t ut_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct vector v = { .fd = fd, .parts = msg->msg_iov, .nr = msg->msg_iovlen };
	ssize_t n = transfer(fd, (struct msghdr *)(uintptr_t)msg, flags, true);

	/* A message that is one is sent as a whole, or not at all. */
	return n <= 0 || flags & MSG_DONTWAIT ? n : write_rest(&v, n, flags);
}

ssize_t ut_recvfrom(int fd, void *buffer, size_t bytes, int flags, struct sockaddr *address,
		    socklen_t *address_bytes)
{
	struct iovec part = { buffer, bytes };
	struct msghdr msg = { .msg_name = address,
			      .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_namelen = address ? *address_bytes : 0 };
	ssize_t n = ut_recvmsg(fd, &msg, flags);

	if (n >= 0 && address)
		*address_bytes = msg.msg_namelen;
	return n;
}

ssize_t ut_sendto(int fd, const void *buffer, size_t bytes, int flags,
		  const struct sockaddr *address, socklen_t address_bytes)
{
	struct iovec part = { (void *)(uintptr_t)buffer, bytes };
	struct msghdr msg = { .msg_name = (void *)(uintptr_t)address,
			      .msg_namelen = address_bytes,
			      .msg_iov = &part,
			      .msg_iovlen = 1 };

	return ut_sendmsg(fd, &msg, flags);
}

static ssize_t transfer_vector(int fd, const struct iovec *parts, int nr, bool is_write)
{
	struct vector v = { fd, parts, (size_t)nr, is_write, UT_IO_OWN_PLACE, 0 };
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)parts,
			      .msg_iovlen = (size_t)nr };
	ssize_t n;

	if (nr < 0 || nr > IOV_MAX)
		return -EINVAL;
	/* recvmsg() would wait for something. */
	if (!is_write && !ut_io_bytes(&v))
		return ut_read(fd, NULL, 0);
	n = transfer(fd, &msg, 0, is_write);
	if (n == -ENOTSOCK)
		n = ut_inside(ut_io_use_other(&v));
	return is_write ? write_rest(&v, n, 0) : n;
}

ssize_t ut_readv(int fd, const struct iovec *parts, int nr)
{
	return transfer_vector(fd, parts, nr, false);
}

ssize_t ut_writev(int fd, const struct iovec *parts, int nr)
{
	return transfer_vector(fd, parts, nr, true);
}
