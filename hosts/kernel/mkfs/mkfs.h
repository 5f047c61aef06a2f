/* SPDX-License-Identifier: MIT */
/*
 * mkfs.h - an image of a disk in this machine's memory.
 *
 * The image is little-endian, as both machines are.
 *
 * Read next: mkfs.c.
 */
#ifndef MKFS_H
#define MKFS_H

#include <scx/types.h>

#include "kernel/fs.h"

struct image {
	const char *path;
	u8 *data;
	u32 nr_blocks;
	struct superblock sb;
};

/* Print "mkfs: " and a message with its remedy; exit 2. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void *block_of(const struct image *image, u32 block);
struct dinode *inode_of(const struct image *image, u32 inum);

/* Block @idx of a file, or 0. The image was checked. */
u32 file_block(const struct image *image, const struct dinode *d, u32 idx);

/* Read a whole image; @is_strict: die unless its superblock is right. */
struct image load_image(const char *path);

/*
 * Put into place, in memory, what the log has promised. Return: its blocks; 0
 * when there is nothing. Their numbers are in the log's header.
 */
u32 replay(struct image *image);

/* check.c. Return: the number of problems, which were printed. */
u32 check_image(struct image *image);

/* dump.c */
void dump_image(struct image *image);

#endif
