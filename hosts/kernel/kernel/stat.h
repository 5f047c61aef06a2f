/* SPDX-License-Identifier: MIT */
/*
 * stat.h - what fstat() says of a file. Layout and numbers are xv6's.
 *
 * Read next: fcntl.h.
 */
#ifndef KERNEL_STAT_H
#define KERNEL_STAT_H

#define T_DIR		1
#define T_FILE		2
#define T_DEVICE	3

struct stat {
	int dev;	    /* device that holds the file system */
	unsigned int ino;   /* number of the inode */
	short type;	    /* T_* */
	short nlink;	    /* directory entries that name it */
	unsigned long size; /* bytes */
};

#endif
