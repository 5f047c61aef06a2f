/* SPDX-License-Identifier: MIT */
/*
 * query.c - libpq's connections on threads, which wait in ut_poll(), and a server of
 * PostgreSQL's protocol that answers with the query, in pieces.
 *
 *	query POLICY CPUS MS FOLDER [KNOB=VALUE]...
 */
#define _GNU_SOURCE
#include "check.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NR 8
#define TIMES 100		/* an answer is the query so many times */
#define REPLY_BYTES 16384
#define MINUTE_NS 60000000000ULL

static char folder[100];
static uint64_t end_ns;

/* ---- the server ------------------------------------------------------------------ */

struct reply {
	char bytes[REPLY_BYTES];
	size_t nr, start;
};

static void add(struct reply *r, const void *bytes, size_t nr)
{
	CHECK(r->nr + nr <= sizeof(r->bytes));
	memcpy(r->bytes + r->nr, bytes, nr);
	r->nr += nr;
}

static void add_int(struct reply *r, uint32_t value)
{
	value = htonl(value);
	add(r, &value, sizeof(value));
}

static void add_short(struct reply *r, uint16_t value)
{
	value = htons(value);
	add(r, &value, sizeof(value));
}

static void begin_message(struct reply *r, char kind)
{
	add(r, &kind, 1);
	r->start = r->nr;
	add_int(r, 0);
}

static void end_message(struct reply *r)
{
	uint32_t bytes = htonl((uint32_t)(r->nr - r->start));

	memcpy(r->bytes + r->start, &bytes, sizeof(bytes));
}

static void add_ready(struct reply *r)
{
	begin_message(r, 'Z');
	add(r, "I", 1);
	end_message(r);
}

static void add_answer(struct reply *r, const char *query)
{
	begin_message(r, 'T');
	add_short(r, 1);
	add(r, "answer", 7);
	add_int(r, 0);
	add_short(r, 0);
	add_int(r, 25); /* text, of any length */
	add_short(r, (uint16_t)-1);
	add_int(r, (uint32_t)-1);
	add_short(r, 0);
	end_message(r);
	begin_message(r, 'D');
	add_short(r, 1);
	add_int(r, (uint32_t)strlen(query) * TIMES);
	for (int i = 0; i < TIMES; i++)
		add(r, query, strlen(query));
	end_message(r);
	begin_message(r, 'C');
	add(r, "SELECT 1", 9);
	end_message(r);
	add_ready(r);
}

static void read_all(int fd, void *to, size_t bytes)
{
	for (size_t n = 0; n < bytes;) {
		ssize_t more = ut_read(fd, (char *)to + n, bytes - n);

		CHECK(more > 0);
		n += (size_t)more;
	}
}

static uint32_t read_int(int fd)
{
	uint32_t value;

	read_all(fd, &value, sizeof(value));
	return ntohl(value);
}

/* The client has to wait again in between. */
static void send_reply(int fd, const struct reply *r)
{
	size_t half = r->nr / 2;

	CHECK_IS(ut_write(fd, r->bytes, half), (ssize_t)half);
	ut_yield();
	CHECK_IS(ut_write(fd, r->bytes + half, r->nr - half), (ssize_t)(r->nr - half));
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct reply *r = calloc(1, sizeof(*r));
	char text[1024], kind;
	uint32_t bytes;

	bytes = read_int(fd) - 4;
	CHECK(bytes <= sizeof(text));
	read_all(fd, text, bytes);
	begin_message(r, 'R');
	add_int(r, 0);
	end_message(r);
	add_ready(r);
	send_reply(fd, r);
	for (;;) {
		read_all(fd, &kind, 1);
		bytes = read_int(fd) - 4;
		CHECK(bytes <= sizeof(text));
		read_all(fd, text, bytes);
		if (kind == 'X')
			break;
		CHECK_IS(kind, 'Q');
		r->nr = 0;
		add_answer(r, text);
		send_reply(fd, r);
	}
	CHECK_IS(close(fd), 0);
	free(r);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct ut_attr attr = UT_ATTR_INIT;
	int server = (int)(intptr_t)arg;

	attr.is_detached = 1;
	for (int i = 0; i < NR; i++) {
		int fd = ut_accept(server, NULL, NULL, 0);

		CHECK(fd >= 0);
		CHECK_IS(ut_create(NULL, &attr, serve, (void *)(intptr_t)fd), 0);
	}
	return NULL;
}

/* ---- clients --------------------------------------------------------------------- */

static void wait_for(PGconn *c, short events)
{
	int found = ut_poll(PQsocket(c), events, ut_now_ns() + MINUTE_NS);

	if (found <= 0)
		fprintf(stderr, "ut_poll: %d; %s\n", found, PQerrorMessage(c));
	CHECK(found > 0);
}

static PGconn *open_connection(void)
{
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;
	char about[400];
	PGconn *c;

	snprintf(about, sizeof(about),
		 "host=%s port=5432 user=u dbname=d passfile=%s/none "
		 "sslmode=disable gssencmode=disable",
		 folder, folder);
	c = PQconnectStart(about);
	CHECK(c);
	while (status != PGRES_POLLING_OK) {
		if (status == PGRES_POLLING_FAILED)
			fputs(PQerrorMessage(c), stderr);
		CHECK(status != PGRES_POLLING_FAILED);
		wait_for(c, status == PGRES_POLLING_READING ? POLLIN : POLLOUT);
		status = PQconnectPoll(c);
	}
	CHECK_IS(PQsetnonblocking(c, 1), 0);
	return c;
}

static PGresult *next_result(PGconn *c)
{
	while (PQisBusy(c)) {
		wait_for(c, POLLIN);
		CHECK_IS(PQconsumeInput(c), 1);
	}
	return PQgetResult(c);
}

static void ask(PGconn *c, int nr, int round)
{
	char query[64];
	const char *answer;
	PGresult *result;
	size_t bytes;

	snprintf(query, sizeof(query), "select %d of %d; ", round, nr);
	bytes = strlen(query);
	CHECK_IS(PQsendQuery(c, query), 1);
	while (PQflush(c))
		wait_for(c, POLLOUT);
	result = next_result(c);
	CHECK_IS(PQresultStatus(result), PGRES_TUPLES_OK);
	answer = PQgetvalue(result, 0, 0);
	CHECK_IS(strlen(answer), bytes * TIMES);
	for (int i = 0; i < TIMES; i++)
		CHECK_IS(memcmp(answer + (size_t)i * bytes, query, bytes), 0);
	PQclear(result);
	CHECK(!next_result(c));
}

static void *query(void *arg)
{
	PGconn *c = open_connection();
	int round = 0;

	do {
		ask(c, (int)(intptr_t)arg, round++);
	} while (ut_now_ns() < end_ns);
	PQfinish(c);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int server = socket(AF_UNIX, SOCK_STREAM, 0);
	ut_id ids[NR + 1];

	CHECK(argc > 4);
	CHECK((size_t)snprintf(folder, sizeof(folder), "%s", argv[4]) < sizeof(folder) - 20);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/.s.PGSQL.5432", folder);
	CHECK_IS(bind(server, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_IS(listen(server, NR), 0);
	config.sets = (const char *const *)&argv[5];
	check_init(&config);
	end_ns = ut_now_ns() + (uint64_t)atoi(argv[3]) * 1000000;
	CHECK_IS(ut_create(&ids[NR], NULL, accept_all, (void *)(intptr_t)server), 0);
	for (intptr_t i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, query, (void *)i), 0);
	for (int i = 0; i <= NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(close(server), 0);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
