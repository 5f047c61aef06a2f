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
	struct superblock sb; /* from here on, set by check_image() */
	u32 nr_logged;	      /* blocks that the log holds, and are in place now */
};

/* Print "mkfs: " and a message with its remedy; exit 2. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void *block_of(const struct image *image, u32 block);
struct dinode *inode_of(const struct image *image, u32 inum);

/* Block @idx of a file, or 0. The image was checked. */
u32 file_block(const struct image *image, const struct dinode *d, u32 idx);

/* Read a whole image. */
struct image load_image(const char *path);

/* check.c. Return: the number of problems, which were printed. */
u32 check_image(struct image *image);

/* dump.c */
void dump_image(struct image *image);

#endif
