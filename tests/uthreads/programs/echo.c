/* SPDX-License-Identifier: MIT */
/*
 * echo.c - a server with a thread per connection, and its clients.
 *
 *	./echo POLICY.so CPUS [CLIENTS [MESSAGES]]
 *
 * With more of both than there are helpers (io.c): nobody may wait for one.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <schedlab/uthreads.h>

#define MESSAGE_BYTES 64

static int nr_clients = 20;
static int nr_messages = 50;
static struct sockaddr_in address;
static int nr_right; /* messages that came back as they were sent; atomic */

static void must(long answer, const char *what)
{
	if (answer >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror((int)-answer));
	exit(1);
}

/* A stream may hand over less than was asked for. */
static int read_all(int fd, char *buffer, size_t bytes)
{
	while (bytes) {
		ssize_t n = ut_read(fd, buffer, bytes);

		if (n <= 0)
			return -1;
		buffer += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char message[MESSAGE_BYTES];

	while (!read_all(fd, message, sizeof(message)))
		must(ut_write(fd, message, sizeof(message)), "ut_write");
	close(fd);
	return NULL;
}

static void *listen_for_all(void *arg)
{
	struct ut_attr attr = UT_ATTR_INIT;
	int listener = (int)(intptr_t)arg;

	attr.is_detached = 1;
	attr.name = "server";
	for (int i = 0; i < nr_clients; i++) {
		int fd = ut_accept(listener, NULL, NULL, 0);

		must(fd, "ut_accept");
		must(ut_create(NULL, &attr, serve, (void *)(intptr_t)fd), "ut_create");
	}
	return NULL;
}

static void *client(void *arg)
{
	int me = (int)(intptr_t)arg;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(ut_connect(fd, (struct sockaddr *)&address, sizeof(address)), "ut_connect");
	for (int i = 0; i < nr_messages; i++) {
		char sent[MESSAGE_BYTES], got[MESSAGE_BYTES];

		memset(sent, 0, sizeof(sent));
		snprintf(sent, sizeof(sent), "message %d of client %d", i, me);
		must(ut_write(fd, sent, sizeof(sent)), "ut_write");
		if (!read_all(fd, got, sizeof(got)) && !memcmp(sent, got, sizeof(got)))
			__atomic_add_fetch(&nr_right, 1, __ATOMIC_RELAXED);
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ut_config config = UT_CONFIG_INIT;
	socklen_t bytes = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	ut_id server, *clients;

	config.policy = argc > 1 ? argv[1] : NULL;
	config.nr_cpus = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	nr_clients = argc > 3 ? atoi(argv[3]) : nr_clients;
	nr_messages = argc > 4 ? atoi(argv[4]) : nr_messages;
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* Port 0: whichever is free. */
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, nr_clients) ||
	    getsockname(listener, (struct sockaddr *)&address, &bytes)) {
		perror("listen");
		return 1;
	}

	must(ut_init(&config), "ut_init");
	must(ut_create(&server, NULL, listen_for_all, (void *)(intptr_t)listener), "ut_create");
	clients = calloc((size_t)nr_clients, sizeof(*clients));
	for (int i = 0; i < nr_clients; i++)
		must(ut_create(&clients[i], NULL, client, (void *)(intptr_t)i), "ut_create");
	for (int i = 0; i < nr_clients; i++)
		must(ut_join(clients[i], NULL), "ut_join");
	must(ut_join(server, NULL), "ut_join");
	must(ut_exit(), "ut_exit");
	free(clients);
	printf("%d of %d messages came back\n", nr_right, nr_clients * nr_messages);
	return nr_right != nr_clients * nr_messages;
}
