/* SPDX-License-Identifier: MIT */
/*
 * memdisk.c - a disk in memory, as bad as a disk may be: requests end in any
 * order, and a power cut keeps what a flush covers and any sectors of the rest.
 *
 * History is a list of events. A write is safe after the end of a flush that was
 * begun after the write had ended; before, each of its 512-byte sectors is or is
 * not on the disk, from the moment that it was submitted.
 */
#include "harness.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "../../../hosts/kernel/kernel/disk.h"

#define IN_FLIGHT_MAX	256
#define EVENTS_MAX	200000
#define DATA_MAX	(256u << 20)
#define SECTOR		512

enum event_kind { WRITE_BEGIN, WRITE_END, FLUSH_BEGIN, FLUSH_END };

struct event {
	u32 kind;
	u32 begin; /* of an END: its BEGIN */
	u32 block, nr_blocks;
	u64 data;	       /* of a WRITE_BEGIN: offset */
	u32 started, promised; /* operations, when it happened */
};

/* Shared with the processes that look at it. */
struct history {
	u32 nr;
	u64 bytes;
	struct event events[EVENTS_MAX];
	u8 data[DATA_MAX];
};

u8 *disk;
u32 disk_blocks;
bool is_recorded;
u32 ops_started, ops_promised;

static struct history *history;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct disk_request *request;
	u32 begin;
	u8 *copy;
} in_flight[IN_FLIGHT_MAX];
static u32 nr_in_flight;

void disk_use(u8 *memory, u32 nr_blocks)
{
	disk = memory;
	disk_blocks = nr_blocks;
}

u32 disk_init(void)
{
	return disk_blocks;
}

void history_new(void)
{
	if (!history)
		history = mmap(NULL, sizeof(*history), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(history != MAP_FAILED, "no memory for the history");
	history->nr = 0;
	history->bytes = 0;
	ops_started = ops_promised = 0;
}

u32 history_length(void)
{
	return history->nr;
}

static u32 remember(u32 kind, u32 begin, const struct disk_request *r)
{
	struct event *e;

	if (!is_recorded)
		return 0;
	CHECK(history->nr < EVENTS_MAX && history->bytes < DATA_MAX - (1 << 20),
	      "the history is full");
	e = &history->events[history->nr];
	*e = (struct event){ kind,	     begin,	  r->block,    r->nr_blocks,
			     history->bytes, ops_started, ops_promised };
	if (kind == WRITE_BEGIN) {
		memcpy(history->data + history->bytes, r->data, r->nr_blocks * BSIZE);
		history->bytes += r->nr_blocks * BSIZE;
	}
	return history->nr++;
}

void disk_submit(struct disk_request *r)
{
	u32 i;

	pthread_mutex_lock(&lock);
	i = nr_in_flight++;
	CHECK(i < IN_FLIGHT_MAX, "too many requests");
	CHECK(r->op == DISK_FLUSH || (u64)r->block + r->nr_blocks <= disk_blocks, "block %u of %u",
	      r->block, disk_blocks);
	in_flight[i].request = r;
	in_flight[i].copy = NULL;
	if (r->op == DISK_WRITE) {
		in_flight[i].copy = malloc(r->nr_blocks * BSIZE);
		memcpy(in_flight[i].copy, r->data, r->nr_blocks * BSIZE);
	}
	if (r->op != DISK_READ)
		in_flight[i].begin = remember(r->op == DISK_WRITE ? WRITE_BEGIN : FLUSH_BEGIN, 0, r);
	pthread_mutex_unlock(&lock);
}

bool disk_step(void)
{
	struct disk_request *r;
	u32 i;

	pthread_mutex_lock(&lock);
	if (!nr_in_flight) {
		pthread_mutex_unlock(&lock);
		return false;
	}
	i = random_below(nr_in_flight);
	r = in_flight[i].request;
	if (r->op == DISK_READ) {
		memcpy(r->data, disk + (u64)r->block * BSIZE, r->nr_blocks * BSIZE);
	} else if (r->op == DISK_WRITE) {
		CHECK(!memcmp(in_flight[i].copy, r->data, r->nr_blocks * BSIZE),
		      "block %u changes while it is written", r->block);
		memcpy(disk + (u64)r->block * BSIZE, r->data, r->nr_blocks * BSIZE);
		free(in_flight[i].copy);
	}
	if (r->op != DISK_READ)
		remember(r->op == DISK_WRITE ? WRITE_END : FLUSH_END, in_flight[i].begin, r);
	in_flight[i] = in_flight[--nr_in_flight];
	pthread_mutex_unlock(&lock);
	r->has_failed = false;
	r->done(r);
	return true;
}

/* On the stack of a process that waits. */
struct waiter {
	struct waitq q;
	struct spinlock lock;
	bool is_done;
};

static void wake_waiter(struct disk_request *r)
{
	struct waiter *w = r->arg;

	acquire(&w->lock);
	w->is_done = true;
	wake_one(&w->q);
	release(&w->lock);
}

bool disk_transfer(enum disk_op op, u32 block, u32 nr_blocks, void *data)
{
	struct waiter w = { .is_done = false };
	struct disk_request r = {
		.op = op,
		.block = block,
		.nr_blocks = nr_blocks,
		.data = data,
		.done = wake_waiter,
		.arg = &w,
	};

	initlock(&w.lock, "transfer");
	waitq_init(&w.q, "disk");
	disk_submit(&r);
	acquire(&w.lock);
	while (!w.is_done)
		sleep_on(&w.q, &w.lock);
	release(&w.lock);
	return !r.has_failed;
}

/* Is the write begun at @i safe, if the power goes before event @at? */
static bool is_safe(u32 i, u32 at)
{
	u32 end = at;

	for (u32 j = i + 1; j < at; j++) {
		const struct event *e = &history->events[j];

		if (e->kind == WRITE_END && e->begin == i)
			end = j;
		if (e->kind == FLUSH_END && e->begin > end)
			return true;
	}
	return false;
}

void history_cut(u32 at, u8 *image, const u8 *start, u32 *promised, u32 *started)
{
	u32 keep = random_below(5); /* 0: nothing unsafe, 4: nearly all */

	memcpy(image, start, (u64)disk_blocks * BSIZE);
	for (u32 i = 0; i < at; i++) {
		const struct event *e = &history->events[i];
		bool safe;

		if (e->kind != WRITE_BEGIN)
			continue;
		safe = is_safe(i, at);
		for (u32 s = 0; s < e->nr_blocks * (BSIZE / SECTOR); s++) {
			if (safe || random_below(5) < keep + (keep == 4 && random_below(4)))
				memcpy(image + (u64)e->block * BSIZE + s * SECTOR,
				       history->data + e->data + s * SECTOR, SECTOR);
		}
	}
	*promised = at < history->nr ? history->events[at].promised : ops_promised;
	*started = at < history->nr ? history->events[at].started : ops_started;
}
