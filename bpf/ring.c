/* SPDX-License-Identifier: MIT */
/*
 * ring.c - ring buffers: of records that a policy writes for its user half, and of those that the
 * user half writes for the policy.
 *
 * As on Linux a record follows its header of 8 bytes, whose first word is the record's size and
 * two bits. Positions only grow. The area is allocated twice, so that a record that begins before
 * its end is in one piece, too.
 *
 * A user half that no host runs reads nothing: its ring buffer fills up.
 *
 * Read next: include/scx/launch.h, the user half's calls; hosts/sim/interpret.c, which runs it.
 */
#include "../core/core.h"

#define RING_HEADER_BYTES 8
#define RING_BUSY (1U << 31)
#define RING_DISCARDED (1U << 30)
/* A callback that is called more often waits for the next drain. */
#define BPF_MAX_USER_RINGBUF_SAMPLES (128 * 1024)

static u32 *ring_header(const struct sl_map *ring, u64 at)
{
	return (u32 *)(void *)(ring->entries + (at & (ring->max_entries - 1)));
}

static u64 ring_step(u32 bytes)
{
	return ((u64)(bytes & ~(RING_BUSY | RING_DISCARDED)) + RING_HEADER_BYTES + 7) & ~7ULL;
}

/* Context: no lock held. Return: NULL: there is no room for it, or it is no ring buffer of @type. */
static void *ring_reserve(struct sl_map *ring, u32 type, u64 bytes)
{
	void *at = NULL;

	SL_ASSERT(ring);
	if (ring->type != type || bytes >= ring->max_entries)
		return NULL;
	sl_lock(&ring->lock);
	if (ring->produced - ring->consumed + ring_step((u32)bytes) <= ring->max_entries) {
		u32 *header = ring_header(ring, ring->produced);

		WRITE_ONCE(*header, (u32)bytes | RING_BUSY);
		at = header + RING_HEADER_BYTES / sizeof(*header);
		smp_store_release(&ring->produced, ring->produced + ring_step((u32)bytes));
	}
	sl_unlock(&ring->lock);
	return at;
}

static void ring_finish(void *record, u32 bits)
{
	u32 *header = (u32 *)record - RING_HEADER_BYTES / sizeof(*header);

	smp_store_release(header, (*header & ~RING_BUSY) | bits);
}

/* Discarded records are dropped. Return: the oldest one; NULL: none, or it is being written. */
static void *ring_first(struct sl_map *ring, u32 *bytes)
{
	while (ring->consumed != smp_load_acquire(&ring->produced)) {
		u32 *header = ring_header(ring, ring->consumed);
		u32 word = smp_load_acquire(header);

		if (word & RING_BUSY)
			return NULL;
		*bytes = word;
		if (!(word & RING_DISCARDED))
			return header + RING_HEADER_BYTES / sizeof(*header);
		smp_store_release(&ring->consumed, ring->consumed + ring_step(word));
	}
	return NULL;
}

void *sl_ringbuf_reserve(struct sl_map *map, u64 bytes)
{
	return ring_reserve(map, BPF_MAP_TYPE_RINGBUF, bytes);
}

void bpf_ringbuf_submit(void *record, u64 flags)
{
	(void)flags;
	ring_finish(record, 0);
}

void bpf_ringbuf_discard(void *record, u64 flags)
{
	(void)flags;
	ring_finish(record, RING_DISCARDED);
}

/* Return: 0, or -EAGAIN: there is no room. */
long sl_ringbuf_output(struct sl_map *map, const void *data, u64 bytes, u64 flags)
{
	void *record;

	if (flags & ~(u64)(BPF_RB_NO_WAKEUP | BPF_RB_FORCE_WAKEUP))
		return -EINVAL;
	record = sl_ringbuf_reserve(map, bytes);
	if (!record)
		return -EAGAIN;
	__builtin_memcpy(record, data, bytes);
	ring_finish(record, 0);
	return 0;
}

/* Return: what @flags names; 0 of what is not known. */
u64 sl_ringbuf_query(struct sl_map *map, u64 flags)
{
	SL_ASSERT(map);
	switch (flags) {
	case BPF_RB_AVAIL_DATA:
		return smp_load_acquire(&map->produced) - smp_load_acquire(&map->consumed);
	case BPF_RB_RING_SIZE:
		return map->max_entries;
	case BPF_RB_CONS_POS:
		return smp_load_acquire(&map->consumed);
	case BPF_RB_PROD_POS:
		return smp_load_acquire(&map->produced);
	default:
		return 0;
	}
}

/*
 * Return: how many records @callback was called with; -EBUSY: another CPU is in this call;
 * -EINVAL: unknown flags, or it is no such ring buffer.
 */
long sl_user_ringbuf_drain(struct sl_map *map,
			   long (*callback)(struct bpf_dynptr *record, void *ctx), void *ctx,
			   u64 flags)
{
	long nr = 0, is_over = 0;

	SL_ASSERT(map);
	if (map->type != BPF_MAP_TYPE_USER_RINGBUF ||
	    (flags & ~(u64)(BPF_RB_NO_WAKEUP | BPF_RB_FORCE_WAKEUP)))
		return -EINVAL;
	if (!sl_cas_u64(&map->is_drained, 0, 1))
		return -EBUSY;
	while (!is_over && nr < BPF_MAX_USER_RINGBUF_SAMPLES) {
		struct bpf_dynptr record = { 0 };

		record.data = ring_first(map, &record.bytes);
		if (!record.data)
			break;
		is_over = callback(&record, ctx);
		smp_store_release(&map->consumed, map->consumed + ring_step(record.bytes));
		nr++;
	}
	smp_store_release(&map->is_drained, 0ULL);
	return nr;
}

void *bpf_dynptr_data(const struct bpf_dynptr *ptr, u32 offset, u32 bytes)
{
	if (offset > ptr->bytes || bytes > ptr->bytes - offset)
		return NULL;
	return (u8 *)ptr->data + offset;
}

long bpf_dynptr_read(void *to, u32 bytes, const struct bpf_dynptr *ptr, u32 offset, u64 flags)
{
	const void *from = bpf_dynptr_data(ptr, offset, bytes);

	if (flags)
		return -EINVAL;
	if (!from)
		return -E2BIG;
	__builtin_memcpy(to, from, bytes);
	return 0;
}

/* ---- for the user half ------------------------------------------------------ */

/* Return: whether there was a record of at most @bytes_max, which is taken. */
bool sl_scx_ring_read(struct sl_map *ring, void *to, u32 bytes_max)
{
	u32 bytes = 0;
	const void *record;

	SL_ASSERT(ring);
	record = ring->type == BPF_MAP_TYPE_RINGBUF ? ring_first(ring, &bytes) : NULL;
	if (!record || bytes > bytes_max)
		return false;
	__builtin_memcpy(to, record, bytes);
	smp_store_release(&ring->consumed, ring->consumed + ring_step(bytes));
	return true;
}

/* Return: whether there was room for it. */
bool sl_scx_ring_write(struct sl_map *ring, const void *from, u32 bytes)
{
	void *record = ring_reserve(ring, BPF_MAP_TYPE_USER_RINGBUF, bytes);

	if (!record)
		return false;
	__builtin_memcpy(record, from, bytes);
	ring_finish(record, 0);
	return true;
}
