/* SPDX-License-Identifier: MIT */
/*
 * heap.h - memory of any size, for what the core and its policies keep.
 *
 * Read next: heap.c.
 */
#ifndef KERNEL_HEAP_H
#define KERNEL_HEAP_H

#include <scx/types.h>

/* Zeroed, aligned to 64 bytes; NULL when there is none. Context: any. */
void *heap_alloc(u64 bytes);
void heap_free(void *mem, u64 bytes);	/* @bytes as it was asked for */

#endif
