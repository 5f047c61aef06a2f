/* SPDX-License-Identifier: MIT */
/*
 * balloc.c - which blocks of the disk are free: one bit each, 1: in use.
 *
 * A search goes on where the last one ended, a word of 64 bits at a time, and
 * wraps around. The number of free blocks is kept, so that a full disk is known
 * without a search.
 *
 * Called by inode.c, inside operations. Must stay true: nr_free is the number of
 * zero bits for blocks of the data area.
 *
 * Read next: mkfs/fscheck.c, which counts the bits against the inodes.
 */
#include "inode.h"

#include "bio.h"
#include "log.h"
#include "print.h"

static struct {
	struct spinlock lock;
	u32 nr_free;
	u32 next; /* where to look first; a hint */
} blocks;

void balloc_init(u32 nr_free)
{
	initlock(&blocks.lock, "balloc");
	blocks.nr_free = nr_free;
	blocks.next = sb.bmapstart;
}

u32 nr_blocks_free(void)
{
	return blocks.nr_free;
}

/* Take one from the count. Return: false when there is none. */
static bool reserve(u32 *hint)
{
	bool is_there;

	acquire(&blocks.lock);
	is_there = blocks.nr_free > 0;
	if (is_there)
		blocks.nr_free--;
	*hint = blocks.next;
	release(&blocks.lock);
	return is_there;
}

/*
 * Claim the first zero bit in [from, to) of one bitmap block. Return: its
 * number, or @to. Words are little-endian, as the bytes of the bitmap are.
 */
static u32 claim_bit(u64 *words, u32 from, u32 to)
{
	for (u32 i = from / 64; i <= (to - 1) / 64; i++) {
		u64 free = ~words[i];
		u32 bit;

		if (i == from / 64)
			free &= ~0ULL << from % 64;
		if (!free)
			continue;
		bit = i * 64 + __builtin_ctzll(free);
		if (bit >= to)
			return to;
		words[i] |= 1ULL << bit % 64;
		return bit;
	}
	return to;
}

/* The same in the bitmap block of @from, up to the end of it or to @to. */
static u32 claim_from(u32 from, u32 to)
{
	u32 base = from / BPB * BPB, end = base + BPB < to ? base + BPB : to;
	struct buf *b = bread(BBLOCK(from, sb));
	u32 found = base + claim_bit((u64 *)b->data, from - base, end - base);

	if (found < end)
		log_write(b);
	brelse(b);
	return found < end ? found : 0;
}

u32 balloc(void)
{
	u32 hint, block = 0;

	if (!reserve(&hint))
		return 0;
	/* Bits before the hint may be freed meanwhile, so one round may miss. */
	while (!block) {
		for (u32 at = hint; at < sb.size && !block; at = (at / BPB + 1) * BPB)
			block = claim_from(at, sb.size);
		for (u32 at = 0; at < hint && !block; at = (at / BPB + 1) * BPB)
			block = claim_from(at, hint);
	}
	acquire(&blocks.lock);
	blocks.next = block + 1 < sb.size ? block + 1 : 0;
	release(&blocks.lock);
	return block;
}

void bfree(u32 block)
{
	struct buf *b = bread(BBLOCK(block, sb));
	u8 mask = 1 << block % 8;

	if (!(b->data[block % BPB / 8] & mask))
		panic("fs: block %u is freed twice", block);
	b->data[block % BPB / 8] &= ~mask;
	log_write(b);
	brelse(b);
	acquire(&blocks.lock);
	blocks.nr_free++;
	release(&blocks.lock);
}
