/* SPDX-License-Identifier: MIT */
/*
 * elf.h - what exec() needs of the ELF format, 64 bits, little-endian.
 *
 * Read next: exec.c.
 */
#ifndef KERNEL_ELF_H
#define KERNEL_ELF_H

#include <scx/types.h>

#define ELF_MAGIC "\x7f" "ELF\2\1\1"	/* 64 bits, little-endian, version 1 */
#define ELF_RISCV 243
#define ELF_LOAD 1

enum elf_rights {
	ELF_EXECUTE = 1,
	ELF_WRITE = 2,
	ELF_READ = 4,
};

struct elf_header {
	u8 magic[7];
	u8 abi[9];
	u16 type;
	u16 machine;
	u32 version;
	u64 entry;		/* address of the first instruction */
	u64 segments;		/* where their table begins in the file */
	u64 sections;
	u32 flags;
	u16 header_bytes;
	u16 segment_bytes;	/* of one entry of that table */
	u16 nr_segments;
	u16 section_bytes;
	u16 nr_sections;
	u16 names_idx;
};

struct elf_segment {
	u32 type;
	u32 flags;		/* enum elf_rights */
	u64 offset;		/* in the file */
	u64 at;			/* in memory */
	u64 phys;
	u64 file_bytes;
	u64 bytes;		/* in memory; the rest is zero */
	u64 align;
};

_Static_assert(sizeof(struct elf_header) == 64, "as the format has it");
_Static_assert(sizeof(struct elf_segment) == 56, "as the format has it");

#endif
