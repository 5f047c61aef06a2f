/* SPDX-License-Identifier: MIT */
/*
 * bio.c - blocks of the disk in memory.
 *
 * Called by the log and by the files' side. Must stay true: no process holds more
 * than three blocks at once, and one that waits for another block releases them
 * eventually.
 *
 * Read next: log.c.
 */
#include "bio.h"

#include "disk.h"
#include "mem.h"
#include "print.h"

static struct cache blocks;

bool bio_init(void)
{
	struct buf *bufs = cache_init(&blocks, NR_BUFS, sizeof(*bufs), "buffer");
	u8 *data = kalloc_pages(NR_BUFS * BSIZE / PGSIZE);

	for (u32 i = 0; bufs && data && i < NR_BUFS; i++)
		bufs[i].data = data + i * BSIZE;
	return bufs && data;
}

/* The buffer of @block, with a reference, locked; perhaps not valid. */
static struct buf *bget(u32 block)
{
	struct cached *c = cache_wait(&blocks, block);

	acquiresleep(&c->lock);
	return (struct buf *)c;
}

struct buf *bread_if(u32 block)
{
	struct buf *b = bget(block);

	if (!b->c.is_valid)
		b->c.is_valid = disk_transfer(DISK_READ, block, 1, b->data);
	if (b->c.is_valid)
		return b;
	brelse(b);
	return NULL;
}

struct buf *bread(u32 block)
{
	struct buf *b = bread_if(block);

	if (!b)
		panic("disk: block %u cannot be read", block);
	return b;
}

struct buf *bzeroed(u32 block)
{
	struct buf *b = bget(block);

	memset(b->data, 0, BSIZE);
	b->c.is_valid = true;
	return b;
}

void bpin(struct buf *b)
{
	cache_keep(&blocks, &b->c);
}

void bunpin(struct buf *b)
{
	acquire(&blocks.lock);
	cache_put(&blocks, &b->c);
	release(&blocks.lock);
}

void brelse(struct buf *b)
{
	releasesleep(&b->c.lock);
	bunpin(b);
}
