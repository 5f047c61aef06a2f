/* SPDX-License-Identifier: MIT */
/*
 * merge.c - a file of events, read in order of time.
 *
 * The events of one CPU stand in the order in which its ring had them, which is
 * that of time but for an interrupt that came between the reading of the clock
 * and the writing. So each CPU's are put right first, and then
 * all are merged. What was read from /proc is a stream of its own.
 *
 * Called by lives.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record.h"

struct stream {
	uint32_t *rows; /* of events in the file, in order of time */
	uint64_t nr;
	uint64_t at;
};

static char wrong[400];

static const char *check_header(const struct events_header *h, uint64_t bytes, const char *path)
{
	if (bytes < sizeof(*h) || memcmp(h->magic, EVENTS_MAGIC, 8)) {
		snprintf(wrong, sizeof(wrong), "%s: not a file of recorded events", path);
		return wrong;
	}
	if (h->version != EVENTS_VERSION || h->header_bytes != sizeof(*h) ||
	    h->event_bytes != sizeof(struct event) || !h->nr_cpus || h->nr_cpus > RECORD_CPUS_MAX) {
		snprintf(wrong, sizeof(wrong),
			 "%s: events of version %u, %u CPUs; this schedlab reads "
			 "version %d",
			 path, h->version, h->nr_cpus, EVENTS_VERSION);
		return wrong;
	}
	return NULL;
}

/* Kinds and CPUs are what they may be, so that no reader has to look again. */
static const char *check_events(const struct events *events, const char *path)
{
	for (uint64_t i = 0; i < events->nr; i++) {
		const struct event *e = &events->first[i];

		if (e->kind && e->kind < NR_EVENT_KINDS && e->cpu < events->header->nr_cpus &&
		    e->pid < PIDS_MAX && (e->kind > EVENT_NEW || e->other < PIDS_MAX))
			continue;
		snprintf(wrong, sizeof(wrong),
			 "%s: at byte %llu: no event (kind %u, CPU %u, pid %u); "
			 "the file is damaged",
			 path,
			 (unsigned long long)(sizeof(struct events_header) +
					      i * sizeof(struct event)),
			 e->kind, e->cpu, e->pid);
		return wrong;
	}
	return NULL;
}

/* Without its END a file counts up to its last SYNC. */
static void find_end(struct events *events)
{
	uint64_t nr = events->nr;

	events->is_whole = nr && events->first[nr - 1].kind == EVENT_END;
	while (nr && events->first[nr - 1].kind != EVENT_SYNC &&
	       events->first[nr - 1].kind != EVENT_END)
		nr--;
	events->nr = nr;
	events->end_ns = nr ? events->first[nr - 1].t_ns : events->header->begin_ns;
}

const char *events_open(struct events *events, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *failed;
	struct stat status;
	void *memory;

	if (fd < 0 || fstat(fd, &status)) {
		snprintf(wrong, sizeof(wrong), "%s: %s", path, strerror(errno));
		return wrong;
	}
	memory = mmap(NULL, (size_t)status.st_size + 1, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (memory == MAP_FAILED) {
		snprintf(wrong, sizeof(wrong), "%s: %s", path, strerror(errno));
		return wrong;
	}
	failed = check_header(memory, (uint64_t)status.st_size, path);
	if (failed)
		return failed;
	events->header = memory;
	events->first = (const struct event *)(events->header + 1);
	events->nr = ((uint64_t)status.st_size - sizeof(*events->header)) / sizeof(struct event);
	if (events->nr > UINT32_MAX)
		return "more events than 4,294,967,295; record a shorter time";
	find_end(events);
	return check_events(events, path);
}

/* ---- merging ---------------------------------------------------------------- */

static bool is_timed(const struct event *e)
{
	return e->kind != EVENT_NAME && e->kind != EVENT_SYNC && e->kind != EVENT_END;
}

static uint32_t stream_of(const struct events *events, const struct event *e)
{
	return e->kind == EVENT_MEMBER ? events->header->nr_cpus : e->cpu;
}

static int compare_rows(const void *a, const void *b, void *first)
{
	const struct event *events = first;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (events[x].t_ns != events[y].t_ns)
		return events[x].t_ns < events[y].t_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

/*
 * Put a stream in order of time, events of one instant in that of the file. A few that are
 * late change places with their neighbours; a file with more is no recorder's.
 */
static void put_right(const struct events *events, struct stream *s)
{
	uint64_t nr_moves = 0;

	for (uint64_t i = 1; i < s->nr; i++) {
		uint32_t row = s->rows[i];
		uint64_t at = i;

		while (at && events->first[s->rows[at - 1]].t_ns > events->first[row].t_ns) {
			s->rows[at] = s->rows[at - 1];
			at--;
		}
		s->rows[at] = row;
		nr_moves += i - at;
		if (nr_moves > 16 * s->nr) {
			qsort_r(s->rows, s->nr, sizeof(*s->rows), compare_rows,
				(void *)(uintptr_t)events->first);
			return;
		}
	}
}

static const char *split(const struct events *events, struct stream *streams, uint32_t *rows)
{
	uint32_t nr_streams = events->header->nr_cpus + 1;

	for (uint64_t i = 0; i < events->nr; i++) {
		const struct event *e = &events->first[i];

		if (is_timed(e))
			streams[stream_of(events, e)].nr++;
	}
	for (uint32_t i = 0; i < nr_streams; i++) {
		streams[i].rows = rows;
		rows += streams[i].nr;
		streams[i].nr = 0;
	}
	for (uint64_t i = 0; i < events->nr; i++) {
		const struct event *e = &events->first[i];

		struct stream *s = &streams[stream_of(events, e)];

		if (is_timed(e))
			s->rows[s->nr++] = (uint32_t)i;
	}
	for (uint32_t i = 0; i < nr_streams; i++)
		put_right(events, &streams[i]);
	return NULL;
}

static uint64_t next_ns(const struct events *events, const struct stream *s)
{
	return events->first[s->rows[s->at]].t_ns;
}

/* Of what happened at one instant, the file's order may know the cause. */
static bool is_before(const struct events *events, const struct stream *a, const struct stream *b)
{
	uint64_t a_ns = next_ns(events, a), b_ns = next_ns(events, b);

	return a_ns < b_ns || (a_ns == b_ns && a->rows[a->at] < b->rows[b->at]);
}

/* Put the stream at the root of a heap of the earliest where it belongs. */
static void sift_down(const struct events *events, struct stream **heap, uint32_t nr, uint32_t at)
{
	for (;;) {
		uint32_t first = at, left = 2 * at + 1;
		struct stream *moved;

		for (uint32_t i = left; i < left + 2 && i < nr; i++) {
			if (is_before(events, heap[i], heap[first]))
				first = i;
		}
		if (first == at)
			return;
		moved = heap[at];
		heap[at] = heap[first];
		heap[first] = moved;
		at = first;
	}
}

/* Names stand before their event; only a MEMBER has to be known before them. */
static void handle_named(const struct events *events, uint32_t row,
			 void (*handle)(const struct event *e))
{
	const struct event *e = &events->first[row];

	if (e->kind == EVENT_MEMBER)
		handle(e);
	/* A switch may name both; the order between them does not matter. */
	for (uint32_t i = 1; i <= 2 && i <= row; i++) {
		if (e[-(int)i].kind != EVENT_NAME || e[-(int)i].cpu != e->cpu)
			break;
		handle(&e[-(int)i]);
	}
	if (e->kind != EVENT_MEMBER)
		handle(e);
}

const char *events_walk(const struct events *events, uint64_t end_ns,
			void (*handle)(const struct event *e))
{
	uint32_t nr_streams = events->header->nr_cpus + 1, nr = 0;
	struct stream *streams = calloc(nr_streams, sizeof(*streams));
	struct stream **heap = calloc(nr_streams, sizeof(*heap));
	uint32_t *rows = malloc((events->nr + 1) * sizeof(*rows));

	if (!streams || !heap || !rows)
		return "no memory to put the events in order";
	split(events, streams, rows);
	for (uint32_t i = 0; i < nr_streams; i++) {
		if (streams[i].nr)
			heap[nr++] = &streams[i];
	}
	for (uint32_t i = nr; i-- > 0;)
		sift_down(events, heap, nr, i);
	while (nr && next_ns(events, heap[0]) <= end_ns) {
		struct stream *s = heap[0];
		uint32_t row = s->rows[s->at++];

		handle_named(events, row, handle);
		if (s->at == s->nr)
			heap[0] = heap[--nr];
		if (nr)
			sift_down(events, heap, nr, 0);
	}
	free(rows);
	free(heap);
	free(streams);
	return NULL;
}
