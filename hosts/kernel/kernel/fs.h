/* SPDX-License-Identifier: MIT */
/*
 * fs.h - the file system on disk. Names, numbers and layout are xv6's, so that
 * its programs read directories here as they do there.
 *
 *	block 0 | super | log | inodes | bitmap of used blocks | data
 *	  boot     1      2...
 *
 * The log's blocks are described in log.h; they alone differ from xv6's.
 * Included by the kernel, by programs, and by mkfs on the build machine.
 *
 * Read next: inode.h, an inode in memory; mkfs/mkfs.c, which makes an image.
 */
#ifndef KERNEL_FS_H
#define KERNEL_FS_H

#include "types.h"

#define ROOTINO	1	/* inode of / */
#define BSIZE	1024	/* bytes of a block */

#define FSMAGIC	0x10203040

/* Block 1. All but magic count blocks, or are numbers of blocks. */
struct superblock {
	uint magic;   /* FSMAGIC */
	uint size;    /* of the whole image */
	uint nblocks; /* of data */
	uint ninodes; /* inodes, not blocks of them */
	uint nlog;    /* of the log */
	uint logstart;
	uint inodestart;
	uint bmapstart;
};

#define NDIRECT		12
#define NINDIRECT	(BSIZE / sizeof(uint))
#define MAXFILE		(NDIRECT + NINDIRECT)	/* blocks of the largest file */

/* An inode on disk. Type 0: free. */
struct dinode {
	short type;  /* T_* of stat.h */
	short major; /* of a device file */
	short minor;
	short nlink;		 /* entries that name it, "." not counted */
	uint size;		 /* bytes */
	uint addrs[NDIRECT + 1]; /* data blocks; the last lists NINDIRECT more */
};

#define IPB		(BSIZE / sizeof(struct dinode))	/* inodes per block */
#define IBLOCK(i, sb)	((i) / IPB + (sb).inodestart)	/* the block of inode i */
#define BPB		(BSIZE * 8)			/* bits per block */
#define BBLOCK(b, sb)	((b) / BPB + (sb).bmapstart)	/* the one of block b's bit */

/* A directory is a file of these. inum 0: a free entry. */
#define DIRSIZ	14

struct dirent {
	ushort inum;
	char name[DIRSIZ]; /* padded with 0; all 14 may be used */
};

_Static_assert(sizeof(struct dinode) == 64, "the layout on disk is fixed");
_Static_assert(sizeof(struct dirent) == 16, "the layout on disk is fixed");
_Static_assert(sizeof(struct superblock) == 32, "the layout on disk is fixed");

#endif
