/* SPDX-License-Identifier: MIT */
/*
 * fdt.h - what the device tree says; main.c reads it once, before anything else.
 *
 * Read next: fdt.c.
 */
#ifndef KERNEL_FDT_H
#define KERNEL_FDT_H

#include <scx/types.h>

struct machine {
	u64 ram_bytes;		/* from KERNBASE */
	u64 timebase_hz;
	u32 nr_harts;
	bool has_sstc;		/* all of them */
};

/* Also sets what bootargs.h declares. @fdt: the tree; not needed afterwards. */
void fdt_read(const void *fdt, struct machine *machine);

#endif
