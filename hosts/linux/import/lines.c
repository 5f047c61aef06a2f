/* SPDX-License-Identifier: MIT */
/*
 * lines.c - the lines of a trace that another tool printed.
 *
 * Called by main.c. Read next: text.c, what is in a line.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "import.h"

#define BUFFER_BYTES (1 << 20)
/* A longer line is none of the scheduler's. */
#define LINE_BYTES (1 << 16)
/* How much of a line is in a message. */
#define SHOWN_BYTES 120

static struct {
	char buffer[BUFFER_BYTES];
	size_t nr;	  /* bytes in it */
	bool is_skipping; /* the rest of a line that is too long */
	bool is_page;	  /* HTML */
	bool is_inside;	  /* the part of it that holds the trace */
	uint64_t nr_lines;
} in;

/* Systrace's page: the trace is a script of its class, or, earlier, one long string. */
static bool is_in_page(const char *line, size_t bytes)
{
	if (in.nr_lines == 1)
		in.is_page = bytes && line[0] == '<';
	if (!in.is_page)
		return true;
	if (memmem(line, bytes, "class=\"trace-data\"", 18) ||
	    memmem(line, bytes, "linuxPerfData", 13))
		in.is_inside = true;
	else if (memmem(line, bytes, "</script>", 9))
		in.is_inside = false;
	return in.is_inside;
}

static void read_line(const struct source *s, const char *line, size_t bytes)
{
	const char *wrong;

	in.nr_lines++;
	if (!is_in_page(line, bytes))
		return;
	wrong = text_line(line, line + bytes, in.is_page);
	if (!wrong)
		return;
	while (bytes && (*line == ' ' || *line == '\t')) {
		line++;
		bytes--;
	}
	refuse("%s:%llu: %s: '%.*s'", s->name, (unsigned long long)in.nr_lines, wrong,
	       (int)(bytes < SHOWN_BYTES ? bytes : SHOWN_BYTES), line);
}

/* All whole lines of the buffer; what is left moves to its start. */
static void read_lines(const struct source *s)
{
	char *line = in.buffer, *end = in.buffer + in.nr, *stop;

	while ((stop = memchr(line, '\n', (size_t)(end - line)))) {
		if (in.is_skipping)
			in.nr_lines++;
		else
			read_line(s, line, (size_t)(stop - line));
		in.is_skipping = false;
		line = stop + 1;
	}
	in.nr = (size_t)(end - line);
	if (in.nr > LINE_BYTES) {
		in.is_skipping = true;
		in.nr = 0;
	}
	memmove(in.buffer, line, in.nr);
}

uint64_t lines_read(const struct source *s, bool *is_cut)
{
	size_t n;

	while ((n = source_read(s, in.buffer + in.nr, BUFFER_BYTES - in.nr))) {
		in.nr += n;
		read_lines(s);
	}
	*is_cut = in.nr > 0;
	return in.nr_lines;
}
