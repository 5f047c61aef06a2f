/* SPDX-License-Identifier: MIT */
/*
 * record.c - the chunks behind record_put(), and where they go when full.
 *
 * With a channel a full chunk is sent, and the hart goes on in its other one,
 * which the host has read long since. Should it not have, records are counted as
 * lost until it has. Without a channel the other chunk is taken over as it is:
 * what schedlog() has not drained of it is lost.
 *
 * Called by record.h, sysinfo.c and the end of a job. Must stay true: a record
 * is sent or drained once, or counted as lost.
 * Read next: virtio_serial.c.
 */
#include <schedlab/host.h>

#include "record.h"

#include "proc.h"

/* A hart's chunks. `lock` guards all but what record_put() does to the hart. */
struct store {
	struct record_chunk *chunk[2];
	bool is_sent[2]; /* the host has read it, and it is free */
	u32 filling;	 /* which of them record_put() fills */
	u32 nr_sent;
	u64 nr_lost;
	u64 nr_lost_told; /* in frames so far */
	/* Without a channel: what has not been drained yet. */
	struct sl_record *unread;	     /* first one in the chunk being filled */
	struct sl_record *older, *older_end; /* in the other chunk */
};

static struct store stores[NCPU];
static u32 nr_stores;
static bool is_over; /* the last records have been sent */
static struct spinlock lock;

static void fill(u32 hart, u32 which)
{
	struct record_chunk *c = stores[hart].chunk[which];

	stores[hart].filling = which;
	stores[hart].unread = c->records;
	cpus[hart].record_end = c->records + RECORD_CHUNK_RECORDS;
	/* Last: the reader that drains sees a chunk as soon as it sees this. */
	__atomic_store_n(&cpus[hart].record_at, c->records, __ATOMIC_RELEASE);
}

void record_init(u32 nr_harts)
{
	initlock(&lock, "record");
	for (u32 i = 0; i < nr_harts; i++) {
		for (u32 j = 0; j < 2; j++) {
			stores[i].chunk[j] = sl_host_alloc(RECORD_CHUNK_BYTES);
			stores[i].is_sent[j] = true;
			if (!stores[i].chunk[j])
				return;
		}
		fill(i, 0);
		nr_stores = i + 1;
	}
}

/* Send what the hart has filled so far. Context: lock held. */
static void send(u32 hart)
{
	struct store *s = &stores[hart];
	struct record_chunk *c = s->chunk[s->filling];
	struct sl_record *at = __atomic_load_n(&cpus[hart].record_at, __ATOMIC_ACQUIRE);
	u64 nr = at ? at - c->records : 0;

	if (!nr)
		return;
	c->head = (struct channel_frame){
		.magic = CHANNEL_MAGIC,
		.kind = CHANNEL_RECORDS,
		.hart = (u16)hart,
		.bytes = (u32)(nr * sizeof(struct sl_record)),
		.seq = s->nr_sent++,
		.arg = s->nr_lost - s->nr_lost_told,
	};
	s->nr_lost_told = s->nr_lost;
	channel_send(&c->head, &s->is_sent[s->filling]);
}

/* Go on in a chunk that is free. Return: false if the host has both. */
static bool take_free(u32 hart)
{
	struct store *s = &stores[hart];

	channel_poll();
	for (u32 i = 0; i < 2; i++) {
		u32 which = (s->filling + 1 + i) % 2;

		if (__atomic_load_n(&s->is_sent[which], __ATOMIC_ACQUIRE)) {
			fill(hart, which);
			return true;
		}
	}
	return false;
}

/* The hart's chunk is full, and there is no channel: the other one goes. */
static void turn_over(u32 hart)
{
	struct store *s = &stores[hart];

	s->nr_lost += s->older_end - s->older;
	s->older = s->unread;
	s->older_end = cpus[hart].record_at;
	fill(hart, !s->filling);
}

/* Change chunks. Return: whether the hart can go on writing; if not, a record is lost. */
static bool make_room(u32 hart)
{
	bool has_room = false;

	if (hart >= nr_stores)
		return false;
	acquire(&lock);
	if (!channel_is_open()) {
		turn_over(hart);
		has_room = true;
	} else if (!is_over) {
		send(hart);
		cpus[hart].record_at = cpus[hart].record_end = NULL;
		has_room = take_free(hart);
		stores[hart].nr_lost += !has_room;
	}
	release(&lock);
	return has_room;
}

void record_make_room_and_put(struct hart *hart, u64 t_ns, u8 kind, s32 task, s32 cpu, u8 flags,
			      u64 arg)
{
	if (make_room(hart->idx))
		record_put(hart, t_ns, kind, task, cpu, flags, arg);
}

void record_flush_all(void)
{
	acquire(&lock);
	is_over = true;
	for (u32 i = 0; i < nr_stores && channel_is_open(); i++)
		send(i);
	release(&lock);
}

u64 record_last_ns(u32 hart)
{
	const struct store *s = &stores[hart];
	const struct sl_record *at = cpus[hart].record_at;

	if (!at)
		return ~0ULL;
	if (at != s->chunk[s->filling]->records)
		return at[-1].t_ns;
	/* The chunk before is still there; it was full. */
	return s->nr_sent ? s->chunk[!s->filling]->records[RECORD_CHUNK_RECORDS - 1].t_ns : 0;
}

u64 record_nr_lost(void)
{
	u64 nr = 0;

	for (u32 i = 0; i < nr_stores; i++)
		nr += stores[i].nr_lost;
	return nr;
}

/* Where the hart's oldest undrained record is, or NULL. Context: lock held. */
static struct sl_record **oldest_of(u32 hart)
{
	struct store *s = &stores[hart];

	if (s->older != s->older_end)
		return &s->older;
	if (s->unread != __atomic_load_n(&cpus[hart].record_at, __ATOMIC_ACQUIRE))
		return &s->unread;
	return NULL;
}

/* Take the oldest record of all harts. Return: false if there is none. */
static bool take_oldest(struct sl_record *to)
{
	struct sl_record **oldest = NULL;

	for (u32 i = 0; i < nr_stores; i++) {
		struct sl_record **candidate = oldest_of(i);

		if (candidate && (!oldest || (*candidate)->t_ns < (*oldest)->t_ns))
			oldest = candidate;
	}
	if (!oldest)
		return false;
	*to = *(*oldest)++;
	return true;
}

s64 record_drain(u64 to, u32 nr)
{
	struct sl_record some[16];
	u32 nr_done = 0;

	while (nr_done < nr && !channel_is_open()) {
		u32 nr_some = 0;

		acquire(&lock);
		while (nr_some < ARRAY_SIZE(some) && nr_done + nr_some < nr &&
		       take_oldest(&some[nr_some]))
			nr_some++;
		release(&lock);
		if (!nr_some)
			break;
		if (copyout(to + nr_done * sizeof(*some), some, nr_some * sizeof(*some)))
			return -1;
		nr_done += nr_some;
	}
	return nr_done;
}
