/* SPDX-License-Identifier: MIT */
/*
 * echo_load.c - gives an echo server its connections.
 *
 *	echo_load CONNECTIONS ROUNDS SERVER [WORD...]
 *
 * Starts SERVER with a listening socket as descriptor 3. Every connection sends a
 * message and waits for it ROUNDS times, all of them at once; then it is closed. The
 * server ends by itself, and prints what CPU time it needed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 64
#define EVENTS 256

static void must(int is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	exit(1);
}

static void serve(int listener, char **words)
{
	must(dup2(listener, 3) == 3, "dup2");
	execvp(words[0], words);
	must(0, words[0]);
}

static int connected(const struct sockaddr_in *address, int epoll)
{
	/* Closed without a trace: thousands of ports would stay in use for a minute. */
	struct linger linger = { 1, 0 };
	struct epoll_event event = { .events = EPOLLIN };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(fd >= 0, "socket");
	must(!connect(fd, (const struct sockaddr *)address, sizeof(*address)), "connect");
	must(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), "SO_LINGER");
	event.data.fd = fd;
	must(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
	return fd;
}

static void echoes(const int *fds, long nr, long rounds, int epoll)
{
	long *left = calloc((size_t)fds[nr - 1] + 1, sizeof(*left));
	struct epoll_event events[EVENTS];
	char message[BYTES] = "message";
	long nr_open = nr;

	must(left != NULL, "calloc");
	for (long i = 0; i < nr; i++) {
		left[fds[i]] = rounds;
		must(send(fds[i], message, BYTES, 0) == BYTES, "send");
	}
	while (nr_open) {
		int got = epoll_wait(epoll, events, EVENTS, -1);

		must(got > 0 || errno == EINTR, "epoll_wait");
		for (int i = 0; i < got; i++) {
			int fd = events[i].data.fd;

			must(recv(fd, message, BYTES, MSG_WAITALL) == BYTES, "recv");
			if (--left[fd]) {
				must(send(fd, message, BYTES, 0) == BYTES, "send");
			} else {
				close(fd);
				nr_open--;
			}
		}
	}
	free(left);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);
	struct rlimit limit;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	int status, *fds;
	long nr;

	must(argc > 3 && (nr = atol(argv[1])) > 0, "usage: echo_load CONNECTIONS ROUNDS SERVER");
	must(!getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
	limit.rlim_cur = limit.rlim_max;
	must(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	must(!bind(listener, (struct sockaddr *)&address, bytes), "bind");
	must(!listen(listener, 4096), "listen");
	must(!getsockname(listener, (struct sockaddr *)&address, &bytes), "getsockname");
	if (!fork())
		serve(listener, &argv[3]);
	/* If the server ends early, no connection is accepted. */
	close(listener);
	fds = calloc((size_t)nr, sizeof(*fds));
	must(fds != NULL, "calloc");
	for (long i = 0; i < nr; i++)
		fds[i] = connected(&address, epoll);
	echoes(fds, nr, atol(argv[2]), epoll);
	must(wait(&status) > 0, "wait");
	return status != 0;
}
