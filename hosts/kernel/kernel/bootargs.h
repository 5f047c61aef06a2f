/* SPDX-License-Identifier: MIT */
/*
 * bootargs.h - what the machine and its boot arguments told the kernel.
 *
 * The boot arguments are QEMU's -append "key=value key=value ...", the job its
 * -initrd FILE.
 *
 * Read next: fdt.c, which finds them.
 */
#ifndef KERNEL_BOOTARGS_H
#define KERNEL_BOOTARGS_H

#include <scx/types.h>

#define BOOTARGS_MAX 1024

/* What the device tree says; main.c reads it once, before anything else. */
struct machine {
	u64 ram_bytes; /* from KERNBASE */
	u64 timebase_hz;
	u32 nr_harts;
	bool has_sstc; /* all of them */
};

/* Also sets what follows. @fdt: the tree; not needed afterwards. */
void fdt_read(const void *fdt, struct machine *machine);

/*
 * Copy the value of @key to @to, cut to @bytes with its 0. `run=` takes the rest
 * of the line, blanks included. Return: whether it was given.
 */
bool bootarg(const char *key, char *to, u32 bytes);

/* The same for a decimal number; panics if it is none. */
u64 bootarg_u64(const char *key, u64 otherwise);

/* The initrd; NULL and 0 if there is none. */
extern u8 *job_start;
extern u64 job_bytes;

#endif
