/* SPDX-License-Identifier: MIT */
/*
 * log.h - the write-ahead log: all of an operation reaches the disk, or nothing.
 *
 *	log's first block	struct log_header
 *	the next nr blocks	new contents of header.block[0..nr)
 *
 * The header carries a checksum over itself and those blocks. It is right only
 * if all of them reached the disk, so header and blocks are written in one go and
 * need one flush, not two. inode.h has begin_op() and end_op().
 *
 * Read next: log.c.
 */
#ifndef KERNEL_LOG_H
#define KERNEL_LOG_H

#include <scx/types.h>

#include "fs.h"

#define LOG_MAGIC 0x474f4c53U	/* "SLOG" */

struct log_header {
	u32 magic;			       /* LOG_MAGIC; anything else: an empty log */
	u32 nr;				       /* blocks that follow */
	u64 seq;			       /* number of this transaction, rising */
	u64 sum;			       /* log_sum(), with 0 in its own place */
	u32 block[(BSIZE - 24) / sizeof(u32)]; /* where they belong, rising */
};

_Static_assert(sizeof(struct log_header) == BSIZE, "it is one block");

#define LOG_BLOCKS_MAX	128	/* of a transaction, if the log has room for them */

/*
 * Blocks that one operation may log: WRITEI_BLOCKS of data and one more where
 * they are not aligned, an indirect block, an inode, and all bitmaps there are;
 * creating and removing need fewer.
 */
#define BITMAPS_MAX	8
#define OP_BLOCKS	20
_Static_assert(8 + 1 + 1 + 1 + BITMAPS_MAX <= OP_BLOCKS, "the largest write fits");

/* FNV-1a's idea over 64-bit words, with a shift to reach the low bits too. */
static inline u64 log_sum(const void *from, u64 bytes, u64 sum)
{
	const u64 *word = from;

	for (u64 i = 0; i < bytes / sizeof(u64); i++) {
		sum = (sum ^ word[i]) * 0x100000001b3ULL;
		sum ^= sum >> 29;
	}
	return sum;
}

#define LOG_SUM_START 0xcbf29ce484222325ULL

struct buf;
struct fs_check;

/*
 * Replay what the disk's log holds, then start one. @check: its superblock was
 * checked. Context: at mount; sleeps. Return: false when the image is refused; why
 * was printed.
 */
bool log_init(struct fs_check *check);

/* @b was changed in this operation. Context: an operation, b locked. */
void log_write(struct buf *b);

#endif
