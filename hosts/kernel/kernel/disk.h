/* SPDX-License-Identifier: MIT */
/*
 * disk.h - the disk as the file system sees it: blocks, and flushes.
 *
 * A write that is done may still be lost in a power cut, in any order with the
 * others; only what was done before a flush began is safe when that flush is
 * done. Everything that the log promises stands on this one sentence.
 *
 * Read next: virtio_blk.c, which does it; log.c, which needs the flushes.
 */
#ifndef KERNEL_DISK_H
#define KERNEL_DISK_H

#include <scx/types.h>

/* The numbers are virtio's. */
enum disk_op {
	DISK_READ = 0,
	DISK_WRITE = 1,
	DISK_FLUSH = 4,
};

/* Filled in by the caller, and kept by it until done is called. */
struct disk_request {
	enum disk_op op;
	u32 block; /* the first, of BSIZE bytes */
	u32 nr_blocks;
	void *data;			      /* in the direct map of RAM, as virtio.h says */
	void (*done)(struct disk_request *r); /* interrupts off, no lock held */
	void *arg;			      /* the caller's */
	bool has_failed;		      /* set before done is called */
	struct disk_request *next;	      /* the driver's */
};

/* Find the disk. Return: its blocks; 0 when there is none; why was printed. */
u32 disk_init(void);

/* Begin @r. Context: any; done may be called before this returns. */
void disk_submit(struct disk_request *r);

/* Is a request under way? Context: any. */
bool disk_is_busy(void);

/* virtio_blk.c: the first two, of the machine's first block device. */
u32 virtio_blk_init(void);
void virtio_blk_submit(struct disk_request *r);

/* disk_submit(), and wait. Context: a process, no spin lock. Return: false: failed. */
bool disk_transfer(enum disk_op op, u32 block, u32 nr_blocks, void *data);

#endif
