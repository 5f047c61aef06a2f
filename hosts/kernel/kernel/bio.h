/* SPDX-License-Identifier: MIT */
/*
 * bio.h - blocks of the disk in memory, each at most once.
 *
 *	b = bread(block);  ... b->data ...  log_write(b);  brelse(b);
 *
 * Nothing is written to the disk by way of this cache: a changed block goes to
 * log_write(), which pins it here until it stands on the disk.
 *
 * Read next: bio.c, then log.h.
 */
#ifndef KERNEL_BIO_H
#define KERNEL_BIO_H

#include "cache.h"
#include "fs.h"

#define NR_BUFS 2048		/* 2 MiB, more than twice what a log can pin */

struct buf {
	struct cached c; /* c.number is the block's; bread() locks it */
	bool is_logged;	 /* in the running transaction; the log's lock */
	u8 *data;	 /* BSIZE bytes */
};

/* At boot. Return: false when memory is too short. */
bool bio_init(void);

/*
 * The block, locked, with what is in it. Sleeps. When the disk fails to read it:
 * bread() panics, since the file system cannot go on without what it says of
 * itself; bread_if(), for what is in files, returns NULL.
 */
struct buf *bread(u32 block);
struct buf *bread_if(u32 block);

/* The block, locked and filled with zeros: its old contents do not matter. */
struct buf *bzeroed(u32 block);

/* Unlock it and let it go. */
void brelse(struct buf *b);

/* Keep it in memory, and no longer. Context: any. */
void bpin(struct buf *b);
void bunpin(struct buf *b);

#endif
