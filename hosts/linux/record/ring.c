/* SPDX-License-Identifier: MIT */
/*
 * ring.c - one CPU's ring of events, shared with the kernel.
 *
 *	[control page][ data, a power of two ........ ]
 *	               ^ data_tail: here    ^ data_head: the kernel's
 *
 * All tracepoints of a CPU write into the ring of the first. When it is full the
 * kernel drops what comes and says later how much that was.
 *
 * Some kernels (sandboxes of hosting companies) do not tell of switches away from
 * their idle task, or from a task of their own. So sched_stat_runtime is on, too:
 * at each tick and stop of a task it says how long that has run since it was last
 * said. It is kept only where it tells of a task that no switch has told of.
 *
 * Must stay true: data_tail moves only behind what has been copied.
 * Read next: capture.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record.h"

/* Bits of common_flags: the event came from an interrupt, not from the task. */
#define COMMON_FLAG_INTERRUPT 0x18
#define COMMON_FLAG_HARDIRQ 0x08
/* Longest sample that is looked at; a longer one is of no event that is recorded. */
#define SAMPLE_BYTES_MAX 512

/* What every event begins with, by the kernel's own header_event. */
struct common {
	uint16_t type;
	uint8_t flags;
	uint8_t preempt_count;
	int32_t pid;
};

/* PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD, PERF_SAMPLE_READ of a leader, PERF_SAMPLE_RAW */
struct sample {
	struct perf_event_header header;
	uint64_t t_ns;
	uint64_t period;
	uint8_t rest[];
} __attribute__((packed));

/* What begins the rest: more than two bytes are in any event. */
#define NR_IN_GROUP 2

struct lost {
	struct perf_event_header header;
	uint64_t id;
	uint64_t nr;
};

/* Last name that was put for each pid, so that only changes are. */
static char (*names)[NAME_BYTES];

/* Tasks of this name are recorded from when they have it; all 0: no name is. */
static char wanted_name[NAME_BYTES];

void ring_want_name(const char *name)
{
	memset(wanted_name, 0, NAME_BYTES);
	if (name)
		strncpy(wanted_name, name, NAME_BYTES - 1);
}

static const char *allocate_names(void)
{
	if (names)
		return NULL;
	/* Untouched pages cost nothing. */
	names = mmap(NULL, (size_t)PIDS_MAX * NAME_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (names != MAP_FAILED)
		return NULL;
	names = NULL;
	return "no memory for the names of tasks";
}

char *ring_name(uint32_t pid)
{
	const char *failed = allocate_names();

	if (failed)
		refuse("%s", failed);
	return names[pid];
}

static uint64_t field(const struct tracepoint *t, int i, const uint8_t *raw)
{
	uint64_t value = 0;

	memcpy(&value, raw + t->offset[i], t->size[i] == 8 ? 8 : 4);
	return value;
}

/* A name is new when a task is first seen, and when it executes a program. */
static void put_name(const struct tracepoint *t, int i, const uint8_t *raw, uint32_t pid,
		     const struct event *of)
{
	struct event e = { .pid = pid, .cpu = of->cpu, .kind = EVENT_NAME };
	struct event member = {
		.pid = pid, .cpu = of->cpu, .flags = 1, .kind = EVENT_MEMBER, .t_ns = of->t_ns
	};
	const uint8_t *name = raw + t->offset[i];

	if (!pid || pid >= PIDS_MAX || t->size[i] != NAME_BYTES ||
	    !memcmp(names[pid], name, NAME_BYTES))
		return;
	memcpy(names[pid], name, NAME_BYTES);
	memcpy(e.name, name, NAME_BYTES);
	if (wanted_name[0] && !strncmp(e.name, wanted_name, NAME_BYTES))
		event_put(&member);
	event_put(&e);
}

/* The fields of each kind in the order of `tracepoints`. */
static void fill(struct event *e, const struct tracepoint *t, const uint8_t *raw,
		 const struct common *common)
{
	uint64_t args[6];
	int64_t result;

	switch (t->kind) {
	case EVENT_SWITCH:
		e->pid = (uint32_t)field(t, 0, raw);
		e->other = (uint32_t)field(t, 1, raw);
		e->value = (int32_t)field(t, 2, raw);
		e->flags = (uint8_t)field(t, 3, raw);
		put_name(t, 4, raw, e->pid, e);
		put_name(t, 5, raw, e->other, e);
		break;
	case EVENT_NEW:
		put_name(t, 2, raw, (uint32_t)field(t, 0, raw), e);
		/* fall through */
	case EVENT_WAKING:
	case EVENT_WAKEUP:
		e->pid = (uint32_t)field(t, 0, raw);
		e->other = (uint32_t)common->pid;
		e->value = (int32_t)field(t, 1, raw);
		if (common->flags & COMMON_FLAG_INTERRUPT)
			e->flags = EVENT_IN_INTERRUPT |
				   (common->flags & COMMON_FLAG_HARDIRQ ? 0 : EVENT_IN_SOFTIRQ);
		break;
	case EVENT_MIGRATE:
		e->pid = (uint32_t)field(t, 0, raw);
		e->other = (uint32_t)field(t, 1, raw);
		e->value = (int32_t)field(t, 2, raw);
		break;
	case EVENT_FORK:
	case EVENT_EXEC:
		e->pid = (uint32_t)field(t, 0, raw);
		e->other = (uint32_t)field(t, 1, raw);
		break;
	case EVENT_EXIT:
		e->pid = (uint32_t)field(t, 0, raw);
		break;
	case EVENT_RUNTIME:
		e->pid = (uint32_t)field(t, 0, raw);
		/* More than 4.2 s without a tick, none of it seen, is not. */
		e->other = (uint32_t)field(t, 1, raw);
		/* A CPU that wakes a task for another one also does its accounts. */
		if (e->pid != (uint32_t)common->pid)
			e->flags = EVENT_ELSEWHERE;
		break;
	case EVENT_CALL:
		memcpy(args, raw + t->offset[1], sizeof(args));
		e->pid = (uint32_t)common->pid;
		e->flags = call_of(field(t, 0, raw), args);
		e->other = call_object(e->flags, args);
		break;
	case EVENT_RETURN:
		e->pid = (uint32_t)common->pid;
		e->flags = call_of(field(t, 0, raw), NULL);
		result = (int64_t)field(t, 1, raw);
		e->value = result > INT32_MAX ? INT32_MAX : (int32_t)result;
		break;
	case EVENT_THREAD:
		e->pid = (uint32_t)field(t, 0, raw);
		e->flags = !!(field(t, 1, raw) & CLONE_THREAD);
		break;
	default:
		e->pid = (uint32_t)common->pid;
	}
}

/* Keep track of what runs. Return: whether the event is of any use. */
static bool follow_current(struct ring *r, const struct event *e)
{
	if (e->kind == EVENT_SWITCH) {
		r->current = e->other;
	} else if (e->kind == EVENT_RUNTIME && !e->flags) {
		if (r->is_current_known && r->current == e->pid)
			return false;
		r->current = e->pid;
	} else if (e->kind >= EVENT_CALL) {
		return e->flags;
	} else {
		return true;
	}
	r->is_current_known = true;
	return true;
}

/* The task that leaves the CPU has made so many since it came. */
static void put_calls(const struct event *change, uint64_t nr)
{
	struct event e = { .pid = change->pid,
			   .cpu = change->cpu,
			   .kind = EVENT_CALLS,
			   .t_ns = change->t_ns,
			   .other = nr > UINT32_MAX ? UINT32_MAX : (uint32_t)nr };

	event_put(&e);
}

/* Take off what a leader's sample has counted. Return: the rest. */
static const uint8_t *read_group(struct ring *r, const uint8_t *at, uint64_t *nr_calls)
{
	uint64_t group[1 + 2 * NR_IN_GROUP];
	uint32_t words = 1 + NR_IN_GROUP * (1 + r->counts_losses), nr;

	memcpy(&nr, at, sizeof(nr));
	if (nr != NR_IN_GROUP)
		return at;
	memcpy(group, at, words * sizeof(group[0]));
	*nr_calls = group[words - 1 - r->counts_losses] - r->nr_calls;
	r->nr_calls += *nr_calls;
	return at + words * sizeof(group[0]);
}

static void put_sample(struct ring *r, const struct sample *s)
{
	struct common common;
	uint64_t nr_calls = 0;
	const uint8_t *raw = read_group(r, s->rest, &nr_calls) + sizeof(uint32_t);

	memcpy(&common, raw, sizeof(common));
	for (int i = 0; i < NR_TRACEPOINTS; i++) {
		struct event e = { .cpu = (uint16_t)r->cpu, .t_ns = s->t_ns };

		if (tracepoints[i].id != common.type)
			continue;
		e.kind = tracepoints[i].kind;
		fill(&e, &tracepoints[i], raw, &common);
		if (nr_calls)
			put_calls(&e, nr_calls);
		if (e.kind == EVENT_FORK)
			members_forget(e.pid);
		if (follow_current(r, &e))
			event_put(&e);
		return;
	}
}

static void put_lost(struct ring *r, uint64_t nr, uint64_t t_ns)
{
	struct event e = {
		.cpu = (uint16_t)r->cpu,
		.kind = EVENT_LOST,
		.t_ns = t_ns,
		.other = nr > UINT32_MAX ? UINT32_MAX : (uint32_t)nr,
	};

	r->nr_lost += nr;
	r->is_current_known = false;
	event_put(&e);
}

void ring_drain(struct ring *r)
{
	struct perf_event_mmap_page *control = r->memory;
	const uint8_t *data = (uint8_t *)r->memory + control->data_offset;
	uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = control->data_tail, mask = r->data_bytes - 1;
	_Alignas(8) uint8_t copy[SAMPLE_BYTES_MAX];
	struct perf_event_header header;
	uint64_t lost = 0;

	while (tail < head) {
		const uint8_t *at = data + (tail & mask);

		/* A header is 8 bytes and aligned: it never wraps. */
		memcpy(&header, at, sizeof(header));
		if (!header.size || header.size > head - tail)
			break;
		if ((tail & mask) + header.size > r->data_bytes && header.size <= sizeof(copy)) {
			uint64_t first = r->data_bytes - (tail & mask);

			memcpy(copy, at, first);
			memcpy(copy + first, data, header.size - first);
			at = copy;
		}
		if (header.type == PERF_RECORD_LOST) {
			lost += ((const struct lost *)at)->nr;
		} else if (header.type == PERF_RECORD_SAMPLE && header.size <= SAMPLE_BYTES_MAX) {
			const struct sample *s = (const struct sample *)at;

			/* The kernel tells of losses just before what it kept. */
			if (lost)
				put_lost(r, lost, s->t_ns);
			lost = 0;
			put_sample(r, s);
		}
		tail += header.size;
	}
	if (lost)
		put_lost(r, lost, now_ns());
	__atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
}

uint64_t ring_count_lost(const struct ring *r)
{
	uint64_t values[1 + 2 * NR_IN_GROUP], nr = 0;

	for (int i = 0; i < NR_TRACEPOINTS; i++) {
		ssize_t bytes = r->fds[i] < 0 ? 0 : read(r->fds[i], values, sizeof(values));

		/* A count and its losses; of a group, how many, then those of each. */
		if (bytes == 2 * sizeof(values[0]))
			nr += values[1];
		else if (bytes == sizeof(values))
			nr += values[2];
	}
	return nr;
}

void ring_enable(struct ring *r, bool on)
{
	r->is_current_known = false;
	for (int i = 0; i < NR_TRACEPOINTS; i++) {
		if (r->fds[i] >= 0)
			ioctl(r->fds[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
	}
}

void ring_close(struct ring *r)
{
	if (r->memory)
		munmap(r->memory, r->data_bytes + (uint64_t)getpagesize());
	r->memory = NULL;
	for (int i = 0; i < NR_TRACEPOINTS; i++) {
		if (r->fds[i] >= 0)
			close(r->fds[i]);
		r->fds[i] = -1;
	}
	if (r->calls_fd >= 0)
		close(r->calls_fd);
	r->calls_fd = -1;
}

static const char *map_ring(struct ring *r)
{
	static char wrong[200];

	r->memory = mmap(NULL, r->data_bytes + (uint64_t)getpagesize(), PROT_READ | PROT_WRITE,
			 MAP_SHARED, r->fds[0], 0);
	if (r->memory != MAP_FAILED)
		return NULL;
	snprintf(wrong, sizeof(wrong),
		 "no ring of %llu KiB for CPU %d: %s; take a smaller --buffer",
		 (unsigned long long)r->data_bytes >> 10, r->cpu, strerror(errno));
	r->memory = NULL;
	return wrong;
}

/* The number of the tracepoint that makes such events; -1: it is not wanted. */
static int tracepoint_of(uint8_t kind)
{
	for (int i = 0; i < NR_TRACEPOINTS; i++) {
		if (tracepoints[i].kind == kind)
			return tracepoints[i].id;
	}
	return -1;
}

/* Count all calls of the CPU, also those of which there is no sample. Return: 0, or -1 with errno. */
static int count_calls(struct ring *r, int id)
{
	uint64_t values[1 + 2 * NR_IN_GROUP];

	r->calls_fd = tracepoint_count(id, r->cpu, r->fds[0]);
	if (r->calls_fd < 0)
		return -1;
	r->counts_losses = read(r->fds[0], values, sizeof(values)) == sizeof(values);
	return 0;
}

const char *ring_open(struct ring *r, int cpu, uint64_t data_bytes)
{
	const char *failed = allocate_names();
	int calls = tracepoint_of(EVENT_CALL);

	*r = (struct ring){ .cpu = cpu, .calls_fd = -1, .data_bytes = data_bytes };
	for (int i = 0; i < NR_TRACEPOINTS; i++)
		r->fds[i] = -1;
	for (int i = 0; !failed && i < NR_TRACEPOINTS; i++) {
		if (tracepoints[i].id < 0)
			continue;
		r->fds[i] = tracepoint_open(tracepoints[i].id, cpu, (uint32_t)(data_bytes / 4),
					    i == 0 && calls >= 0);
		if (r->fds[i] < 0)
			failed = strerror(-r->fds[i]);
		else if ((tracepoints[i].kind == EVENT_CALL ||
			  tracepoints[i].kind == EVENT_RETURN) &&
			 ioctl(r->fds[i], PERF_EVENT_IOC_SET_FILTER, calls_filter()))
			failed = strerror(errno);
		else if (i == 0)
			failed = calls >= 0 && count_calls(r, calls) ? strerror(errno) :
								       map_ring(r);
		else if (ioctl(r->fds[i], PERF_EVENT_IOC_SET_OUTPUT, r->fds[0]))
			failed = strerror(errno);
	}
	if (failed)
		ring_close(r);
	return failed;
}
