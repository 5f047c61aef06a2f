/* SPDX-License-Identifier: MIT */
/*
 * vectors.c - datagrams, messages, and several buffers in one call.
 *
 *	vectors POLICY CPUS FOLDER
 */
#define _GNU_SOURCE
#include "check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

#define NR_DATAGRAMS 50
#define NR_PARTS 3
#define PART_BYTES 100000	/* of three: more than a pipe or a socket holds */
#define MANY_BYTES (NR_PARTS * PART_BYTES)

static char sent[MANY_BYTES], got[MANY_BYTES];
static const struct iovec sent_parts[NR_PARTS] = {
	{ sent, 1 },
	{ sent + 1, PART_BYTES },
	{ sent + 1 + PART_BYTES, MANY_BYTES - PART_BYTES - 1 },
};

static int open_udp(struct sockaddr_in *address)
{
	socklen_t bytes = sizeof(*address);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_IS(bind(fd, (struct sockaddr *)address, bytes), 0);
	CHECK_IS(getsockname(fd, (struct sockaddr *)address, &bytes), 0);
	return fd;
}

/* Each datagram goes back to where it came from. */
static void *echo(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct sockaddr_in from;
	char text[32];

	for (int i = 0; i < NR_DATAGRAMS; i++) {
		socklen_t bytes = sizeof(from);
		ssize_t n = ut_recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&from, &bytes);

		CHECK(n > 0);
		CHECK_IS(bytes, sizeof(from));
		CHECK_IS(ut_sendto(fd, text, (size_t)n, 0, (struct sockaddr *)&from, bytes), n);
	}
	return arg;
}

static void *receive_one(void *arg)
{
	char byte;

	return (void *)(intptr_t)ut_recvfrom((int)(intptr_t)arg, &byte, 1, 0, NULL, NULL);
}

static void test_datagrams(void)
{
	struct sockaddr_in here, there, from;
	int fd = open_udp(&here), peer = open_udp(&there);
	socklen_t bytes;
	void *result;
	char text[32], back[32];
	ut_id id;

	CHECK_IS(ut_create(&id, NULL, echo, (void *)(intptr_t)peer), 0);
	for (int i = 0; i < NR_DATAGRAMS; i++) {
		int n = snprintf(text, sizeof(text), "number %d", i);

		CHECK_IS(ut_sendto(fd, text, (size_t)n, 0, (struct sockaddr *)&there, sizeof(there)),
			 n);
		bytes = sizeof(from);
		CHECK_IS(ut_recvfrom(fd, back, sizeof(back), 0, (struct sockaddr *)&from, &bytes),
			 n);
		CHECK_IS(memcmp(text, back, (size_t)n), 0);
		CHECK_IS(from.sin_port, there.sin_port);
	}
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(ut_recvfrom(fd, back, 1, MSG_DONTWAIT, NULL, NULL), -EAGAIN);
	ut_set_deadline(ut_now_ns() + 1000000);
	CHECK_IS(ut_recvfrom(fd, back, 1, 0, NULL, NULL), -ETIMEDOUT);
	ut_set_deadline(UT_NEVER);
	CHECK_IS(ut_create(&id, NULL, receive_one, (void *)(intptr_t)fd), 0);
	ut_yield();
	CHECK_IS(ut_cancel(id), 0);
	CHECK_IS(ut_join(id, &result), 0);
	CHECK_IS((intptr_t)result, -ECANCELED);
	CHECK_IS(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	CHECK_IS(ut_recvfrom(fd, back, 1, 0, NULL, NULL), -EAGAIN);
	CHECK_IS(close(fd) | close(peer), 0);
	CHECK_IS(ut_recvfrom(fd, back, 1, 0, NULL, NULL), -EBADF);
}

static void *receive_many(void *arg)
{
	char byte;

	for (int i = 0; i < NR_DATAGRAMS; i++) {
		CHECK_IS(ut_recvfrom((int)(intptr_t)arg, &byte, 1, 0, NULL, NULL), 1);
		CHECK_IS(byte, i);
	}
	return NULL;
}

/* A local socket's queue is full after some ten, and says that it is ready. */
static void test_full(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), from = socket(AF_UNIX, SOCK_DGRAM, 0);
	ut_id id;

	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "vectors-%d", (int)getpid());
	CHECK_IS(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_IS(ut_create(&id, NULL, receive_many, (void *)(intptr_t)fd), 0);
	for (char i = 0; i < NR_DATAGRAMS; i++)
		CHECK_IS(ut_sendto(from, &i, 1, 0, (struct sockaddr *)&address, sizeof(address)), 1);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(close(fd) | close(from), 0);
}

/* Reads all that was sent, into two parts a time. */
static void *read_parts(void *arg)
{
	size_t sum = 0;

	while (sum < MANY_BYTES) {
		size_t half = (MANY_BYTES - sum) / 2;
		struct iovec parts[2] = { { got + sum, half },
					  { got + sum + half, MANY_BYTES - sum - half } };
		ssize_t n = ut_readv((int)(intptr_t)arg, parts, 2);

		CHECK(n > 0);
		sum += (size_t)n;
	}
	return arg;
}

static void test_ends(int from, int to)
{
	struct iovec nothing = { NULL, 0 }, whole = { sent, MANY_BYTES };
	ut_id id;

	CHECK_IS(ut_readv(from, &nothing, 1), 0);
	CHECK_IS(ut_readv(from, &nothing, -1), -EINVAL);
	CHECK_IS(ut_writev(to, NULL, 0), 0);
	for (int nr = 1; nr <= NR_PARTS; nr += NR_PARTS - 1) {
		memset(got, 0, sizeof(got));
		CHECK_IS(ut_create(&id, NULL, read_parts, (void *)(intptr_t)from), 0);
		CHECK_IS(ut_writev(to, nr == 1 ? &whole : sent_parts, nr), MANY_BYTES);
		CHECK_IS(ut_join(id, NULL), 0);
		CHECK_IS(memcmp(sent, got, MANY_BYTES), 0);
	}
	CHECK_IS(fcntl(to, F_SETFL, O_NONBLOCK), 0);
	CHECK(ut_writev(to, sent_parts, NR_PARTS) > 0);
	CHECK_IS(ut_writev(to, sent_parts, NR_PARTS), -EAGAIN);
	CHECK_IS(close(to), 0);
	CHECK_IS(close(from), 0);
	CHECK_IS(ut_writev(to, sent_parts, NR_PARTS), -EBADF);
}

static int receive_descriptor(int from)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec first = { got, 10 };
	struct msghdr msg = { .msg_iov = &first,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *head;
	int fd;

	CHECK_IS(ut_recvmsg(from, &msg, 0), 10);
	head = CMSG_FIRSTHDR(&msg);
	CHECK(head && head->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(head), sizeof(int));
	return fd;
}

static void *receive_message(void *arg)
{
	int from = (int)(intptr_t)arg;
	int fd = receive_descriptor(from);
	ssize_t n;

	for (size_t sum = 10; sum < MANY_BYTES; sum += (size_t)n) {
		n = ut_read(from, got + sum, MANY_BYTES - sum);
		CHECK(n > 0);
	}
	return (void *)(intptr_t)fd;
}

/* A descriptor goes with the first part of what is too long for a socket's queue. */
static void test_messages(void)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)sent_parts,
			      .msg_iovlen = NR_PARTS,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	int ends[2], fds[2];
	void *copy;
	ut_id id;

	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	CHECK_IS(pipe(fds), 0);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fds[1], sizeof(int));
	memset(got, 0, sizeof(got));
	CHECK_IS(ut_create(&id, NULL, receive_message, (void *)(intptr_t)ends[0]), 0);
	CHECK_IS(ut_sendmsg(ends[1], &msg, MSG_NOSIGNAL), MANY_BYTES);
	CHECK_IS(ut_join(id, &copy), 0);
	CHECK_IS(memcmp(sent, got, MANY_BYTES), 0);
	CHECK_IS(ut_write((int)(intptr_t)copy, "x", 1), 1);
	CHECK_IS(ut_read(fds[0], got, 1), 1);
	CHECK_IS(ut_recvmsg(fds[0], &msg, 0), -ENOTSOCK);
	CHECK_IS(close((int)(intptr_t)copy) | close(fds[0]) | close(ends[0]), 0);
	CHECK_IS(ut_sendmsg(ends[1], &msg, MSG_NOSIGNAL), -EPIPE);
	CHECK_IS(close(ends[1]) | close(fds[1]), 0);
}

static void test_file(const char *folder)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/vectors", folder);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0);
	CHECK_IS(ut_writev(fd, sent_parts, NR_PARTS), MANY_BYTES);
	CHECK_IS(lseek(fd, 0, SEEK_SET), 0);
	memset(got, 0, sizeof(got));
	read_parts((void *)(intptr_t)fd);
	CHECK_IS(memcmp(sent, got, MANY_BYTES), 0);
	CHECK_IS(close(fd), 0);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	int fds[2];

	CHECK(argc > 3);
	for (int i = 0; i < MANY_BYTES; i++)
		sent[i] = (char)(i % 251);
	check_init(&config);
	test_datagrams();
	test_full();
	CHECK_IS(pipe(fds), 0);
	test_ends(fds[0], fds[1]);
	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	test_ends(fds[0], fds[1]);
	test_messages();
	test_file(argv[3]);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
