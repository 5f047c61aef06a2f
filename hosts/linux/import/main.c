/* SPDX-License-Identifier: MIT */
/*
 * main.c - one of the recorder's jobs: a trace of another tool becomes events.
 *
 *	schedlab-record import text|perfetto|events FILE EVENTS NAME [--anonymise]
 *
 * FILE may be "-"; NAME stands for it in messages. The answer is one line of JSON: how
 * many events of each kind there were, and what a reader must know of the trace.
 *
 * Called by record/main.c. Read next: lines.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "import.h"

size_t source_read(const struct source *s, void *data, size_t bytes)
{
	for (;;) {
		ssize_t n = read(s->fd, data, bytes);

		if (n >= 0)
			return (size_t)n;
		if (errno != EINTR)
			refuse("%s: cannot be read: %s", s->name, strerror(errno));
	}
}

static struct source source_open(const char *path, const char *name)
{
	struct source s = { .fd = STDIN_FILENO, .name = name };

	if (!strcmp(path, "-"))
		return s;
	s.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s.fd < 0)
		refuse("%s: cannot be read: %s", name, strerror(errno));
	return s;
}

/* A recorder's own file: nothing is read into it, but it can be made anonymous. */
static void copy_events(const char *path, const char *name)
{
	struct events events;
	const char *wrong = events_open(&events, path);

	if (wrong)
		refuse("%s", wrong);
	sink_keep_header(events.header);
	for (uint64_t i = 0; i < events.nr; i++) {
		const struct event *e = &events.first[i];

		if (e->kind == EVENT_NAME)
			sink_name(e->pid, e->cpu, e->name, strnlen(e->name, NAME_BYTES));
		else if (e->kind != EVENT_SYNC && e->kind != EVENT_END)
			wrong = sink_put(*e);
		if (wrong)
			refuse("%s: event %llu: %s; the file is damaged", name,
			       (unsigned long long)i, wrong);
	}
	printf("{");
	sink_close(events.is_whole, events.end_ns);
	puts("}");
}

int import_main(int argc, char **argv)
{
	bool is_anonymous = argc == 5 && !strcmp(argv[4], "--anonymise");
	bool is_perfetto = argc >= 4 && !strcmp(argv[0], "perfetto");
	struct source s;
	bool is_cut;
	uint64_t nr;

	if (argc != 4 + is_anonymous)
		refuse("import FORMAT FILE EVENTS NAME [--anonymise]");
	sink_open(argv[2], is_anonymous);
	if (!strcmp(argv[0], "events")) {
		copy_events(argv[1], argv[3]);
		return 0;
	}
	s = source_open(argv[1], argv[3]);
	nr = is_perfetto ? perfetto_read(&s, &is_cut) : lines_read(&s, &is_cut);
	printf("{\"%s\":%llu,\"is_cut\":%s,\"has_flags\":%s,\"unknown_losses\":%llu,",
	       is_perfetto ? "packets" : "lines", (unsigned long long)nr, is_cut ? "true" : "false",
	       is_perfetto || text_has_flags() ? "true" : "false",
	       (unsigned long long)perfetto_nr_unknown_losses());
	sink_close(true, 0);
	puts("}");
	return 0;
}
