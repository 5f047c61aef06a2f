/* SPDX-License-Identifier: MIT */
/*
 * fscheck.h - is this a file system, in every detail?
 *
 * The kernel mounts nothing that fails this check, so that the rest of it can
 * trust what it reads; `mkfs --check` is the same code on the build machine.
 *
 * Read next: fscheck.c, which lists what must hold.
 */
#ifndef MKFS_FSCHECK_H
#define MKFS_FSCHECK_H

#include <stdarg.h>
#include <scx/types.h>

#include "kernel/fs.h"

struct log_header;

struct fs_check {
	/* The caller fills in: */
	u32 nr_device_blocks;
	bool (*read)(u32 block, void *to);	    /* false: it cannot be read */
	void (*say)(const char *fmt, va_list args); /* one problem */
	bool is_thorough; /* equal names in a directory too: slow for long ones */

	/* What was found: */
	struct superblock sb;
	u32 nr_problems;
	u32 nr_blocks_free;
	u32 nr_inodes_free;
	u32 nr_orphans; /* no name left, but were open: a mount frees them */

	/* Working memory; fscheck.c explains. */
	u8 *seen;
	u8 *type;
	u16 *nr_names;
	u16 *parent;
	u16 *queue;
	u8 inode_block[BSIZE] __attribute__((aligned(8)));
	u8 list_block[BSIZE] __attribute__((aligned(8)));
	u8 data_block[BSIZE] __attribute__((aligned(8)));
};

/* Read and check the superblock. Return: whether it is one. */
bool fs_check_super(struct fs_check *c);

/*
 * Is what the log holds a whole transaction? @h: the log, from its header on.
 * Return: its blocks; 0: none was promised; -1: it is for impossible places.
 */
s64 fs_check_log(struct fs_check *c, struct log_header *h);

/* Working memory that fs_check_all() needs, in bytes. After fs_check_super(). */
u64 fs_check_bytes(const struct fs_check *c);

/**
 * fs_check_all - check everything else
 * @memory: fs_check_bytes() of it, aligned to 8
 *
 * The log must have been replayed. Problems go to c->say; when inodes or bitmap
 * have any, directories are not looked at.
 * Return: whether there were none.
 */
bool fs_check_all(struct fs_check *c, void *memory);

#endif
