/* SPDX-License-Identifier: MIT */
/*
 * page.h - setting up the allocator of mem.h; for main.c.
 *
 * Read next: page.c.
 */
#ifndef KERNEL_PAGE_H
#define KERNEL_PAGE_H

#include "mem.h"

/*
 * @start: physical address of the first free page; @bytes: of RAM, from KERNBASE.
 * Moves the job to where it is in nobody's way.
 */
void page_init(u64 start, u64 bytes);

/* From here on, nr_pages_total() is what is free now. */
void page_count_total(void);

#endif
