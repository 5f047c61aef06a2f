/* SPDX-License-Identifier: MIT */
/*
 * cache.h - what the disk has under a number, in memory at most once: blocks
 * (bio.c) and inodes (inode.c).
 *
 *	           refs 0 -> 1              refs 1 -> 0
 *	unused list ---------> in use ------------------> end of the unused list
 *	   \_ its first takes the place of a number that is not here
 *
 * A reference keeps a thing in its place; its sleep lock protects what is
 * inside.
 *
 * Read next: cache.c.
 */
#ifndef KERNEL_CACHE_H
#define KERNEL_CACHE_H

#include "wait.h"

#define CACHE_BUCKETS 1024

/* First in struct buf and struct inode. */
struct cached {
	/* The cache's lock guards: */
	u32 number; /* 0: never used so far */
	u32 refs;   /* users and waiters; 0: it may be reused */
	struct cached *hash_next;
	struct link unused; /* while refs is 0 */

	struct sleeplock lock; /* guards what is in it, and: */
	bool is_valid;	       /* it was read from the disk */
};

struct cache {
	struct spinlock lock;
	struct waitq has_unused;
	struct link unused; /* longest unused first */
	struct cached *hash[CACHE_BUCKETS];
	u32 nr_in_use;
};

/*
 * At mount: @nr things of @bytes each, zeroed but for their struct cached. Return:
 * the first; NULL: no memory.
 */
void *cache_init(struct cache *cache, u32 nr, u64 bytes, const char *name);

/* @number, with a reference, not locked; NULL when all are in use. */
struct cached *cache_get(struct cache *cache, u32 number);

/* The same, but waits for one. All users let go unconditionally. */
struct cached *cache_wait(struct cache *cache, u32 number);

/* One reference more. Context: any. */
void cache_keep(struct cache *cache, struct cached *thing);

/* One reference less. Context: the cache's lock is held. */
void cache_put(struct cache *cache, struct cached *thing);

#endif
