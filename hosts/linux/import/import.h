/* SPDX-License-Identifier: MIT */
/*
 * import.h - traces of other tools, made the events that the recorder writes.
 *
 *	text   --lines.c--> a line --text.c----+
 *	Perfetto's protobuf -----perfetto.c----+--sink.c--> FILE.slev
 *	FILE.slev of a recorder ---main.c------+
 *
 * From FILE.slev on there is one path for all: record/lives.c. A trace is read once,
 * from its begin to its end, so that it can come from a pipe; memory does not grow
 * with it.
 *
 * Must stay true: an event of the scheduler is understood, or the trace is refused
 * with its place; nothing else in the trace matters.
 *
 * Read next: main.c.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* Where a trace is read from; "-" is standard input. */
struct source {
	int fd;
	const char *name; /* in messages */
};

/* Up to @bytes. Return: how many were read; 0 at the end. Refuses when it cannot. */
size_t source_read(const struct source *s, void *data, size_t bytes);

/* ---- sink.c: events, written as the recorder writes them ------------------- */

/* @is_anonymous: names become keyed hashes, pids are numbered by appearance. */
void sink_open(const char *path, bool is_anonymous);

/*
 * One event. Return: NULL, or what is wrong with its pid, CPU or time; its kind
 * is not NAME, SYNC or END.
 */
const char *sink_put(struct event e);

/* The name of a task, before the event that had it; kept only if it is new. */
void sink_name(uint32_t pid, uint16_t cpu, const char *name, size_t bytes);

/*
 * Events of a CPU are missing between the last and the next. Before its first
 * event it only means that the trace begins later there.
 */
const char *sink_lost(uint64_t cpu, uint64_t nr);

/*
 * Writes the end and the header, and prints what is known of the events, as fields of
 * a JSON object. @end_ns: of a recorder's file; 0: the last event's time.
 */
void sink_close(bool is_whole, uint64_t end_ns);

/* What events_header has of a recorder's file is kept. */
void sink_keep_header(const struct events_header *h);

/* ---- text.c: one line ------------------------------------------------------- */

/*
 * Read a line of ftrace's `trace`, `trace-cmd report` or `perf script`. Return:
 * NULL, or what is wrong with it. @is_page: in a page of HTML, where other lines than
 * those of the trace may look like it.
 */
const char *text_line(const char *line, const char *end, bool is_page);

/* Whether wake-ups had flags that tell interrupts from tasks. */
bool text_has_flags(void);

/* ---- lines.c, perfetto.c: one whole trace ------------------------------------ */

/* Return: how many lines; *is_cut: the last one had no end and is left out. */
uint64_t lines_read(const struct source *s, bool *is_cut);

/* Return: how many packets; *is_cut: the last one is not whole and is left out. */
uint64_t perfetto_read(const struct source *s, bool *is_cut);
/* Places where events are missing, without a count; each is one LOST event of 1. */
uint64_t perfetto_nr_unknown_losses(void);

/* ---- siphash.c ------------------------------------------------------------------ */

/* SipHash-2-4 (Aumasson and Bernstein 2012) of @bytes under @key. */
uint64_t siphash(const uint64_t key[2], const void *data, size_t bytes);

/* ---- main.c ------------------------------------------------------------------- */

int import_main(int argc, char **argv);

#endif
