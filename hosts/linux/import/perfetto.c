/* SPDX-License-Identifier: MIT */
/*
 * perfetto.c - a trace of Perfetto: the scheduler's events in its protobuf.
 *
 *	Trace: packet 1 -> ftrace_events 1 -> bundle of one CPU: event 2, compact_sched 4
 *
 * A bundle has its events one by one, or switches and wakings as columns. These lack
 * the task that leaves, which is the last that came, and the waker, which is the one
 * that runs.
 *
 * Invariant: the numbers of fields are those of Perfetto's protos/perfetto/trace.
 * Called by main.c. Read next: sink.c.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "import.h"

#define BUFFER_BYTES (1 << 20)
#define PACKET_BYTES_MAX (1U << 30)

enum { PACKET_FTRACE = 1, PACKET_DROPPED = 42, PACKET_COMPRESSED = 50, PACKET_ZSTD = 133 };
enum { BUNDLE_CPU = 1, BUNDLE_EVENT = 2, BUNDLE_LOST = 3, BUNDLE_COMPACT = 4 };
enum { COMPACT_INTERN = 5, NR_COMPACT = 16 };
enum { FTRACE_TIME = 1, FTRACE_PID = 2, FTRACE_FLAGS = 5 };

/* common_flags: hard and soft interrupt, NMI. */
#define FLAG_INTERRUPT 0x58
#define FIELDS_MAX_OF_EVENT 8

struct bytes {
	const uint8_t *at;
	const uint8_t *end;
};

/* One field of a message. */
struct pb_field {
	uint32_t number;
	uint64_t value;	    /* of a number */
	struct bytes bytes; /* of anything with a length */
};

/* The fields of one small message, by their number. */
struct message {
	uint64_t value[FIELDS_MAX_OF_EVENT];
	struct bytes bytes[FIELDS_MAX_OF_EVENT];
};

/* An event of a bundle, and the names in it. */
struct item {
	struct event e;
	uint32_t order;
	bool is_compact; /* without the task that is on the CPU */
	struct bytes names[2];
};

static struct {
	const char *name;
	uint64_t at; /* byte of the trace at which the packet begins */
	uint64_t nr_unknown_losses;
	struct item *items;
	uint32_t nr_items, room;
	struct bytes *strings; /* of the bundle's table */
	uint32_t nr_strings, room_of_strings;
	uint32_t current[RECORD_CPUS_MAX]; /* pid; 0: idle or not known */
	bool has_events[RECORD_CPUS_MAX];
} p;

_Noreturn static void damaged(const char *what)
{
	refuse("%s: at byte %llu: %s; the file is damaged", p.name, (unsigned long long)p.at, what);
}

/* ---- protobuf --------------------------------------------------------------------- */

static bool read_varint(struct bytes *b, uint64_t *value)
{
	*value = 0;
	for (int shift = 0; shift < 70 && b->at < b->end; shift += 7) {
		uint8_t byte = *b->at++;

		if (shift < 64)
			*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The next field of a message; false at its end. */
static bool next_field(struct bytes *b, struct pb_field *f)
{
	uint64_t key, length = 0;

	if (b->at == b->end)
		return false;
	*f = (struct pb_field){ 0 };
	if (!read_varint(b, &key) || key >> 3 > UINT32_MAX)
		damaged("a field without its number");
	f->number = (uint32_t)(key >> 3);
	switch (key & 7) {
	case 0:
		if (!read_varint(b, &f->value))
			damaged("a number that does not end");
		return true;
	case 1:
		length = 8;
		break;
	case 2:
		if (!read_varint(b, &length))
			damaged("a length that does not end");
		break;
	case 5:
		length = 4;
		break;
	default:
		damaged("a field of a kind that protobuf does not have");
	}
	if (length > (uint64_t)(b->end - b->at))
		damaged("a field longer than its message");
	f->bytes = (struct bytes){ b->at, b->at + length };
	b->at += length;
	if ((key & 7) != 2)
		memcpy(&f->value, f->bytes.at, length);
	return true;
}

static struct message read_message(struct bytes b)
{
	struct message m = { 0 };
	struct pb_field f;

	while (next_field(&b, &f)) {
		if (f.number >= FIELDS_MAX_OF_EVENT)
			continue;
		m.value[f.number] = f.value;
		m.bytes[f.number] = f.bytes;
	}
	return m;
}

/* ---- a bundle -------------------------------------------------------------------- */

static void *grow(void *memory, uint32_t *room, size_t size)
{
	*room = *room ? 2 * *room : 4096;
	memory = realloc(memory, *room * size);
	if (!memory)
		refuse("no memory for a packet of %s", p.name);
	return memory;
}

static struct item *add(struct event e, struct bytes first, struct bytes second)
{
	if (p.nr_items == p.room)
		p.items = grow(p.items, &p.room, sizeof(*p.items));
	p.items[p.nr_items] = (struct item){
		.e = e,
		.order = p.nr_items,
		.names = { first, second },
	};
	return &p.items[p.nr_items++];
}

static uint32_t pid_of(uint64_t value)
{
	/* Negative numbers are written with 64 bits. */
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static int32_t state_of(uint64_t bits)
{
	return bits & STATE_DEAD ? 0x10 : !!(bits & STATE_BLOCKED);
}

static int32_t cpu_of(uint64_t value)
{
	return value < INT32_MAX ? (int32_t)value : INT32_MAX;
}

/* One of the kinds of event that are read; of its message, which field is what. */
static void add_event(uint32_t number, struct bytes b, struct event e)
{
	static const struct bytes none;
	struct message m = read_message(b);

	switch (number) {
	case 4: /* sched_switch */
		e.kind = EVENT_SWITCH;
		e.pid = pid_of(m.value[2]);
		e.value = state_of(m.value[4]);
		e.other = pid_of(m.value[6]);
		e.flags = (uint8_t)m.value[7];
		add(e, m.bytes[1], m.bytes[5]);
		return;
	case 17:  /* sched_wakeup */
	case 20:  /* sched_waking */
	case 114: /* sched_wakeup_new */
		e.kind = number == 17 ? EVENT_WAKEUP : number == 20 ? EVENT_WAKING : EVENT_NEW;
		e.pid = pid_of(m.value[2]);
		e.value = cpu_of(m.value[5]);
		add(e, number == 114 ? m.bytes[1] : none, none);
		return;
	case 491: /* sched_migrate_task */
		e.kind = EVENT_MIGRATE;
		e.pid = pid_of(m.value[2]);
		e.other = pid_of(m.value[4]);
		e.value = cpu_of(m.value[5]);
		break;
	case 237: /* sched_process_exec */
		e.kind = EVENT_EXEC;
		e.pid = pid_of(m.value[2]);
		e.other = pid_of(m.value[3]);
		break;
	case 238: /* sched_process_exit */
		e.kind = EVENT_EXIT;
		e.pid = pid_of(m.value[2]);
		break;
	case 239: /* sched_process_fork */
		e.kind = EVENT_FORK;
		e.pid = pid_of(m.value[4]);
		e.other = pid_of(m.value[2]);
		add(e, m.bytes[1], none);
		return;
	}
	e.flags = 0;
	add(e, none, none);
}

static bool is_read(uint32_t number)
{
	return number == 4 || number == 17 || number == 20 || number == 114 || number == 491 ||
	       (number >= 237 && number <= 239);
}

static void read_event(struct bytes b, uint16_t cpu)
{
	struct event e = { .cpu = cpu };
	struct bytes what = { 0 };
	struct pb_field f;
	uint32_t number = 0;

	while (next_field(&b, &f)) {
		if (f.number == FTRACE_TIME)
			e.t_ns = f.value;
		else if (f.number == FTRACE_PID)
			e.other = pid_of(f.value);
		else if (f.number == FTRACE_FLAGS)
			e.flags = f.value & FLAG_INTERRUPT ? EVENT_IN_INTERRUPT : 0;
		else if (is_read(f.number)) {
			number = f.number;
			what = f.bytes;
		}
	}
	if (number)
		add_event(number, what, e);
}

static struct bytes string_at(uint64_t index)
{
	if (index >= p.nr_strings)
		damaged("a name that is not in its table");
	return p.strings[index];
}

static uint64_t next_of(struct bytes *column)
{
	uint64_t value;

	if (!read_varint(column, &value))
		damaged("columns of compact events that differ in length");
	return value;
}

/* The table of names, and the columns, by their number. */
static void read_compact(struct bytes b, uint16_t cpu)
{
	static const struct bytes none;
	struct bytes column[NR_COMPACT] = { 0 };
	struct event e = { .cpu = cpu };
	struct pb_field f;

	p.nr_strings = 0;
	while (next_field(&b, &f)) {
		if (f.number == COMPACT_INTERN) {
			if (p.nr_strings == p.room_of_strings)
				p.strings = grow(p.strings, &p.room_of_strings, sizeof(*p.strings));
			p.strings[p.nr_strings++] = f.bytes;
		} else if (f.number < NR_COMPACT) {
			column[f.number] = f.bytes;
		}
	}
	e.kind = EVENT_SWITCH;
	while (column[1].at < column[1].end) {
		e.t_ns += next_of(&column[1]);
		e.value = state_of(next_of(&column[2]));
		e.other = pid_of(next_of(&column[3]));
		e.flags = (uint8_t)next_of(&column[4]);
		add(e, none, string_at(next_of(&column[6])))->is_compact = true;
	}
	e = (struct event){ .kind = EVENT_WAKING, .cpu = cpu };
	while (column[7].at < column[7].end) {
		e.t_ns += next_of(&column[7]);
		e.pid = pid_of(next_of(&column[8]));
		e.value = cpu_of(next_of(&column[9]));
		next_of(&column[10]);
		string_at(next_of(&column[11]));
		/* Flags came later than the other columns. */
		e.flags = column[12].at < column[12].end && next_of(&column[12]) & FLAG_INTERRUPT ?
				  EVENT_IN_INTERRUPT :
				  0;
		add(e, none, none)->is_compact = true;
	}
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->e.t_ns != y->e.t_ns)
		return x->e.t_ns < y->e.t_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void put_name(uint32_t pid, uint16_t cpu, struct bytes name)
{
	if (name.at)
		sink_name(pid, cpu, (const char *)name.at, (size_t)(name.end - name.at));
}

static void put_item(struct item *i)
{
	uint32_t *current = &p.current[i->e.cpu];
	bool is_switch = i->e.kind == EVENT_SWITCH;
	const char *wrong;

	if (is_switch && i->is_compact) {
		i->e.pid = *current;
		/* Of a task that is not known it does not matter why it left. */
		i->e.value = *current ? i->e.value : 0;
	} else if (i->is_compact) {
		i->e.other = *current;
	}
	put_name(i->e.kind == EVENT_FORK ? i->e.other : i->e.pid, i->e.cpu, i->names[0]);
	put_name(i->e.other, i->e.cpu, i->names[1]);
	wrong = sink_put(i->e);
	if (wrong)
		damaged(wrong);
	if (is_switch)
		*current = i->e.other;
	p.has_events[i->e.cpu] = true;
}

static void read_bundle(struct bytes b, bool is_dropped)
{
	struct bytes again = b;
	struct pb_field f;
	uint64_t cpu = 0;
	bool has_lost = is_dropped;

	while (next_field(&again, &f)) {
		if (f.number == BUNDLE_CPU)
			cpu = f.value;
		else if (f.number == BUNDLE_LOST)
			has_lost |= f.value != 0;
	}
	if (cpu >= RECORD_CPUS_MAX)
		damaged(sink_lost(cpu, 1));
	if (has_lost) {
		sink_lost(cpu, 1);
		p.nr_unknown_losses += p.has_events[cpu];
		p.current[cpu] = 0;
	}
	p.nr_items = 0;
	while (next_field(&b, &f)) {
		if (f.number == BUNDLE_EVENT)
			read_event(f.bytes, (uint16_t)cpu);
		else if (f.number == BUNDLE_COMPACT)
			read_compact(f.bytes, (uint16_t)cpu);
	}
	if (p.nr_items)
		qsort(p.items, p.nr_items, sizeof(*p.items), compare_items);
	for (uint32_t i = 0; i < p.nr_items; i++)
		put_item(&p.items[i]);
}

static void read_packet(struct bytes b)
{
	struct bytes bundle = { 0 };
	struct pb_field f;
	bool is_dropped = false;

	while (next_field(&b, &f)) {
		if (f.number == PACKET_FTRACE)
			bundle = f.bytes;
		else if (f.number == PACKET_DROPPED)
			is_dropped = f.value != 0;
		else if (f.number == PACKET_COMPRESSED || f.number == PACKET_ZSTD)
			damaged("compressed packets within packets");
	}
	if (bundle.at)
		read_bundle(bundle, is_dropped);
}

/* ---- the trace ------------------------------------------------------------------- */

static struct {
	uint8_t *data;
	size_t from, to, room;
	uint64_t begin; /* byte of the trace at which the data begins */
	bool has_ended;
} in;

/* Have so many bytes from in.from on, if the trace has them. */
static bool fill(const struct source *s, size_t bytes)
{
	while (in.to - in.from < bytes && !in.has_ended) {
		size_t n;

		if (in.from) {
			memmove(in.data, in.data + in.from, in.to - in.from);
			in.to -= in.from;
			in.begin += in.from;
			in.from = 0;
		}
		if (in.to + BUFFER_BYTES > in.room) {
			in.room = 2 * in.room + BUFFER_BYTES;
			in.data = realloc(in.data, in.room);
			if (!in.data)
				refuse("no memory for a packet of %s", s->name);
		}
		n = source_read(s, in.data + in.to, in.room - in.to);
		in.to += n;
		in.has_ended = !n;
	}
	return in.to - in.from >= bytes;
}

uint64_t perfetto_nr_unknown_losses(void)
{
	return p.nr_unknown_losses;
}

uint64_t perfetto_read(const struct source *s, bool *is_cut)
{
	uint64_t nr_packets = 0, key, length;

	p.name = s->name;
	*is_cut = false;
	while (fill(s, 1)) {
		struct bytes head;

		/* A key and a length are of 20 bytes at most. */
		fill(s, 20);
		p.at = in.begin + in.from;
		head = (struct bytes){ in.data + in.from, in.data + in.to };
		*is_cut = !read_varint(&head, &key) || !read_varint(&head, &length);
		if (*is_cut && !in.has_ended)
			damaged("a packet without its length");
		if (*is_cut)
			break;
		if ((key & 7) != 2 || length > PACKET_BYTES_MAX)
			damaged("no packet of Perfetto's");
		in.from = (size_t)(head.at - in.data);
		if (!fill(s, length)) {
			*is_cut = true;
			break;
		}
		if (key >> 3 == 1)
			read_packet((struct bytes){ in.data + in.from, in.data + in.from + length });
		in.from += length;
		nr_packets++;
	}
	return nr_packets;
}
