/* SPDX-License-Identifier: MIT */
/*
 * bio.c - the cache of blocks: found by hash, reused least recently used first.
 *
 *	        refs 0 -> 1                  refs 1 -> 0
 *	LRU list ---------> in use, pinned ------------> end of the LRU list
 *	   \_ its head takes the place of a block that is not cached
 *
 * Called by the log and by inode.c. Must stay true: a block is in one buffer at
 * most; a buffer with a reference keeps its block.
 *
 * Read next: log.c.
 */
#include "bio.h"

#include "disk.h"
#include "mem.h"
#include "print.h"

#define NR_BUCKETS 1024

static struct {
	struct spinlock lock;
	struct waitq unused;		/* wait here for a buffer without references */
	struct buf lru;			/* head of the ring; next: longest unused */
	struct buf *hash[NR_BUCKETS];
} cache;

static void lru_add(struct buf *b)
{
	b->lru_next = &cache.lru;
	b->lru_prev = cache.lru.lru_prev;
	b->lru_prev->lru_next = b;
	cache.lru.lru_prev = b;
}

static void lru_remove(struct buf *b)
{
	b->lru_prev->lru_next = b->lru_next;
	b->lru_next->lru_prev = b->lru_prev;
}

bool bio_init(void)
{
	u64 bytes = NR_BUFS * (sizeof(struct buf) + BSIZE);
	u8 *data = kalloc_pages((bytes + PGSIZE - 1) / PGSIZE);
	struct buf *bufs;

	if (!data)
		return false;
	initlock(&cache.lock, "bcache");
	waitq_init(&cache.unused, "buffer");
	cache.lru.lru_next = cache.lru.lru_prev = &cache.lru;
	bufs = (struct buf *)(data + NR_BUFS * BSIZE);
	memset(bufs, 0, NR_BUFS * sizeof(struct buf));
	for (u32 i = 0; i < NR_BUFS; i++) {
		bufs[i].data = data + i * BSIZE;
		initsleeplock(&bufs[i].lock, "buffer");
		lru_add(&bufs[i]);
	}
	return true;
}

/* Put @block in place of what was unused longest. Context: cache.lock. */
static struct buf *recycle(u32 block)
{
	struct buf *b = cache.lru.lru_next, **link;

	if (b == &cache.lru)
		return NULL;
	if (b->block) {
		for (link = &cache.hash[b->block % NR_BUCKETS]; *link != b;)
			link = &(*link)->hash_next;
		*link = b->hash_next;
	}
	b->block = block;
	b->is_valid = false;
	b->hash_next = cache.hash[block % NR_BUCKETS];
	cache.hash[block % NR_BUCKETS] = b;
	return b;
}

/* The buffer of @block, with a reference, locked; perhaps not valid. */
static struct buf *bget(u32 block)
{
	struct buf *b;

	acquire(&cache.lock);
	for (;;) {
		for (b = cache.hash[block % NR_BUCKETS]; b; b = b->hash_next) {
			if (b->block == block)
				break;
		}
		if (!b)
			b = recycle(block);
		if (b)
			break;
		/* Each user holds three at most and lets them go unconditionally. */
		sleep_on(&cache.unused, &cache.lock);
	}
	if (b->refs++ == 0)
		lru_remove(b);
	release(&cache.lock);
	acquiresleep(&b->lock);
	return b;
}

struct buf *bread(u32 block)
{
	struct buf *b = bget(block);

	if (!b->is_valid) {
		if (!disk_transfer(DISK_READ, block, 1, b->data))
			panic("disk: block %u cannot be read", block);
		b->is_valid = true;
	}
	return b;
}

struct buf *bzeroed(u32 block)
{
	struct buf *b = bget(block);

	memset(b->data, 0, BSIZE);
	b->is_valid = true;
	return b;
}

void bpin(struct buf *b)
{
	acquire(&cache.lock);
	b->refs++;
	release(&cache.lock);
}

void bunpin(struct buf *b)
{
	acquire(&cache.lock);
	if (--b->refs == 0) {
		lru_add(b);
		wake_one(&cache.unused);
	}
	release(&cache.lock);
}

void brelse(struct buf *b)
{
	releasesleep(&b->lock);
	bunpin(b);
}
