/* SPDX-License-Identifier: MIT */
/*
 * types.h - the names that xv6's programs and headers use for integers.
 *
 * The kernel itself counts in the u8..u64 of <scx/types.h>, as the core does;
 * here are only the names a user program may expect. uint64 is an unsigned
 * long, as in xv6, so that a program's "%lu" is right.
 *
 * Read next: stat.h.
 */
#ifndef KERNEL_TYPES_H
#define KERNEL_TYPES_H

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;

typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long uint64;

typedef uint64 pde_t; /* an entry of a page table */

#endif
