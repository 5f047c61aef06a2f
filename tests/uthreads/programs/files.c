/* SPDX-License-Identifier: MIT */
/*
 * files.c - files, pipes and connections.
 *
 *	files POLICY CPUS FOLDER
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#define NR 40
#define PARTS 20
#define PART_BYTES 3000
#define PIPE_BYTES (1 << 20)

static int file, ends[2];

/* Each thread has its own parts of one file. */
static void *use_parts(void *arg)
{
	char out[PART_BYTES], in[PART_BYTES];

	for (intptr_t i = (intptr_t)arg; i < NR * PARTS; i += NR) {
		memset(out, 'a' + (int)(i % 26), sizeof(out));
		CHECK_IS(ut_pwrite(file, out, sizeof(out), i * PART_BYTES), PART_BYTES);
		if (i % 16 == 0)
			CHECK_IS(ut_fsync(file), 0);
		CHECK_IS(ut_pread(file, in, sizeof(in), i * PART_BYTES), PART_BYTES);
		CHECK(!memcmp(in, out, sizeof(in)));
	}
	return NULL;
}

static void test_file(const char *folder)
{
	char path[4096], text[100];
	ut_id ids[NR];

	snprintf(path, sizeof(path), "%s/file", folder);
	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(file >= 0);
	for (intptr_t i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, use_parts, (void *)i), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(lseek(file, 0, SEEK_CUR), 0);
	/* The file's own position, and its end. */
	CHECK_IS(ut_read(file, text, 100), 100);
	CHECK_IS(ut_write(file, "here", 4), 4);
	CHECK_IS(lseek(file, 0, SEEK_CUR), 104);
	CHECK_IS(ut_pread(file, text, 4, 100), 4);
	CHECK(!memcmp(text, "here", 4));
	CHECK_IS(ut_pread(file, text, 4, NR * PARTS * PART_BYTES), 0);
	CHECK_IS(ut_pread(file, text, 100, NR * PARTS * PART_BYTES - 3), 3);
	CHECK_IS(ut_pread(file, text, 4, -1), -EINVAL);
	CHECK_IS(ut_pread(file, NULL, 4, 0), -EFAULT);
	CHECK_IS(close(file), 0);
	CHECK_IS(ut_read(file, text, 4), -EBADF);
	CHECK_IS(ut_pwrite(file, text, 4, 0), -EBADF);
	CHECK_IS(ut_fsync(file), -EBADF);
}

static void *fill_pipe(void *arg)
{
	char *all = malloc(PIPE_BYTES);

	for (int i = 0; i < PIPE_BYTES; i++)
		all[i] = (char)(i * 7 / 3);
	CHECK_IS(ut_write(ends[1], all, PIPE_BYTES), PIPE_BYTES);
	CHECK_IS(close(ends[1]), 0);
	free(all);
	return arg;
}

static void test_pipe(void)
{
	char text[5000];
	long nr = 0;
	ssize_t n;
	ut_id id;

	CHECK_IS(pipe(ends), 0);
	CHECK_IS(ut_pread(ends[0], text, 1, 0), -ESPIPE);
	CHECK_IS(ut_create(&id, NULL, fill_pipe, NULL), 0);
	while ((n = ut_read(ends[0], text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < n; i++, nr++)
			CHECK(text[i] == (char)(nr * 7 / 3));
	}
	CHECK_IS(n, 0);
	CHECK_IS(nr, PIPE_BYTES);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(close(ends[0]), 0);
	/* Who does not want to wait need not. */
	CHECK_IS(pipe2(ends, O_NONBLOCK), 0);
	CHECK_IS(ut_read(ends[0], text, 1), -EAGAIN);
	n = ut_write(ends[1], memset(text, 0, sizeof(text)), sizeof(text));
	CHECK_IS(n, sizeof(text));
	while (n == (ssize_t)sizeof(text))
		n = ut_write(ends[1], text, sizeof(text));
	CHECK(n == -EAGAIN || n > 0);
	CHECK_IS(close(ends[0]), 0);
	CHECK_IS(close(ends[1]), 0);
}

static void *connect_to(void *arg)
{
	struct sockaddr_in *address = arg;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_IS(ut_connect(fd, (struct sockaddr *)address, sizeof(*address)), 0);
	CHECK_IS(ut_write(fd, "hello", 5), 5);
	CHECK_IS(close(fd), 0);
	return NULL;
}

static void test_connections(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET }, peer;
	socklen_t bytes = sizeof(address), peer_bytes = sizeof(peer);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one;
	char text[8];
	ut_id id;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_IS(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_IS(listen(fd, 10), 0);
	CHECK_IS(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
	for (int i = 0; i < 10; i++) {
		CHECK_IS(ut_create(&id, NULL, connect_to, &address), 0);
		one = ut_accept(fd, (struct sockaddr *)&peer, &peer_bytes, SOCK_CLOEXEC);
		CHECK(one >= 0);
		CHECK_IS(peer.sin_family, AF_INET);
		CHECK_IS(fcntl(one, F_GETFD), FD_CLOEXEC);
		CHECK_IS(ut_read(one, text, sizeof(text)), 5);
		CHECK_IS(ut_read(one, text, sizeof(text)), 0);
		CHECK_IS(close(one), 0);
		CHECK_IS(ut_join(id, NULL), 0);
	}
	CHECK_IS(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	CHECK_IS(ut_accept(fd, NULL, NULL, 0), -EAGAIN);
	CHECK_IS(close(fd), 0);
	CHECK_IS(ut_accept(fd, NULL, NULL, 0), -EBADF);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);

	CHECK(argc > 3);
	for (int i = 0; i < 2; i++) {
		check_init(&config);
		test_file(argv[3]);
		test_pipe();
		test_connections();
		ut_preempt_disable();
		CHECK_IS(ut_pread(0, NULL, 0, 0), -EPERM);
		CHECK_IS(ut_fsync(0), -EPERM);
		ut_preempt_enable();
		CHECK_IS(ut_exit(), 0);
	}
	puts("good");
	return 0;
}
