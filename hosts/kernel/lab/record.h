/* SPDX-License-Identifier: MIT */
/*
 * record.h - writes down what the scheduler does, for measurements.
 *
 * Each hart fills a chunk of 64 KiB of its own, so no lock is taken on the way.
 * A full chunk goes to the host as it is, through the channel; it begins with
 * the channel's frame, and nothing is copied. Without a channel the two chunks of
 * a hart are a ring that schedlog() drains, and what it drained too late is
 * counted as lost, never silently overwritten.
 *
 *	record_put() -> [chunk being filled] --full--> channel --> [free again]
 *	                        ^                                       |
 *	                        +---------------------------------------+
 *
 * Called through lab.h for the core. Must stay true: a hart's chunk is
 * touched by that hart only, with interrupts off, but for record_drain().
 *
 * Read next: record.c, then channel.h.
 */
#ifndef KERNEL_RECORD_H
#define KERNEL_RECORD_H

#include <schedlab/record.h>

#include "channel.h"

#define RECORD_CHUNK_BYTES 65536
#define RECORD_CHUNK_RECORDS						\
	((RECORD_CHUNK_BYTES - sizeof(struct channel_frame)) /		\
	 sizeof(struct sl_record))

struct record_chunk {
	struct channel_frame head;
	struct sl_record records[RECORD_CHUNK_RECORDS];
};

/* At boot, once memory can be allocated; before it, records are dropped. */
void record_init(u32 nr_harts);

/* Send what all harts have, at the end of a job; later records are dropped. */
void record_flush_all(void);

/*
 * Move up to @nr records of all harts to user memory @to, oldest first.
 * Return: how many; -1 for a bad address. Without a channel only.
 */
s64 record_drain(u64 to, u32 nr);

/* Time of the hart's last record; 0: none yet, ~0: not known. */
u64 record_last_ns(u32 hart);

/* Records that could not be kept, on all harts since boot. */
u64 record_nr_lost(void);

/*
 * @hart: the one this code runs on, whose chunk has room; @cpu: the one it is about.
 * Context: interrupts off; locks of the core may be held.
 */
sl_inline void record_put(struct hart *hart, u64 t_ns, u8 kind, s32 task, s32 cpu, u8 flags, u64 arg)
{
	struct sl_record *r = hart->record_at;

	*r = (struct sl_record){
		.t_ns = t_ns,
		.task = (u32)task,
		.cpu = (u16)cpu,
		.kind = kind,
		.flags = flags,
		.arg = arg,
	};
	/* The reader that drains this hart sees the record when it sees this. */
	__atomic_store_n(&hart->record_at, r + 1, __ATOMIC_RELEASE);
}

/* The same where the chunk is full, or there is none: the record may be lost. */
void record_make_room_and_put(struct hart *hart, u64 t_ns, u8 kind, s32 task, s32 cpu, u8 flags,
			      u64 arg);

#endif
