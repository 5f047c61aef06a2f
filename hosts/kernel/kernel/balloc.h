/* SPDX-License-Identifier: MIT */
/*
 * balloc.h - blocks of the disk, taken and given back.
 *
 * Read next: balloc.c.
 */
#ifndef KERNEL_BALLOC_H
#define KERNEL_BALLOC_H

#include <scx/types.h>

/* At mount. @nr_free: zero bits in the bitmap, as counted by the check. */
void balloc_init(u32 nr_free);

/*
 * A free block, in use from now on, or 0 when the disk is full. What is in it
 * is undefined. Context: in an operation.
 */
u32 balloc(void);

/* The block is free again. Context: in an operation. */
void bfree(u32 block);

#endif
