/* SPDX-License-Identifier: MIT */
/*
 * inode.h - files and directories by number and by name; what the rest of the
 * kernel calls of the file system.
 *
 *	begin_op();
 *	ip = namei("/README");		a reference: it will not go away
 *	ilock(ip);			its contents, for the caller alone
 *	readi(ip, ...);
 *	iunlockput(ip);
 *	end_op();
 *
 * begin_op() comes before any ilock(), and one operation does not begin another.
 * A caller of iput() that may drop the last reference must be inside an
 * operation: the inode may be free then.
 *
 * Read next: inode.c, then dir.c.
 */
#ifndef KERNEL_INODE_H
#define KERNEL_INODE_H

#include <scx/types.h>

#include "cache.h"
#include "fs.h"
#include "stat.h"

struct inode {
	struct cached c; /* c.number is its own; ilock() locks it */
	struct dinode d; /* as on the disk, after iupdate() */
	uint dir_hint;	 /* in a directory: no free entry lies before it */
};

/**
 * fs_init - mount the disk: replay its log, check all of it, free orphans
 *
 * Context: the first process; sleeps.
 * Return: 0, or -1 when the image is refused; the reason was printed.
 */
int fs_init(void);

/* At mount, by fs_init(): the table; @nr_free: inodes on disk. False: no memory. */
bool inode_init(u32 nr_free);

extern struct superblock sb; /* read at mount, never changed */

/* Make everything that was done so far survive a power cut. May sleep. */
void fs_sync(void);

/* Brackets of what changes the disk: all of it survives a power cut, or none. */
void begin_op(void);
void end_op(void);

/**
 * ialloc - a new inode on disk, of nlink 0
 * @type: T_*
 *
 * Context: in an operation.
 * Return: a reference, locked; NULL when there are no inodes left.
 */
struct inode *ialloc(short type);

/* The inode with that number, not locked; NULL when the table is full. */
struct inode *iget(u32 inum);

/* One more reference. Return: ip. */
struct inode *idup(struct inode *ip);

void ilock(struct inode *ip);
void iunlock(struct inode *ip);

/* Drop a reference; the last one to a file without a name frees it. In an op. */
void iput(struct inode *ip);
void iunlockput(struct inode *ip);

/* Write ip's own fields to its block. Context: locked, in an operation. */
void iupdate(struct inode *ip);

/* Free all its blocks; size 0 then. Context: locked, in an operation. */
void itrunc(struct inode *ip);

/* Context of the three: @ip is locked. */
void stati(struct inode *ip, struct stat *st);

/**
 * readi - read from a file
 * @is_user: @to is an address of the current process, else the kernel's
 *
 * Return: bytes read, less than @n at the end of the file; -1 for a bad address, or
 * when the disk cannot read it.
 */
int readi(struct inode *ip, bool is_user, uint64 to, uint off, uint n);

/**
 * writei - write to a file, making it longer where needed
 *
 * Context: in an operation, which has room for WRITEI_BLOCKS of data.
 * Return: bytes written, less than @n when the disk is full or @from is bad;
 * -1 when @off is past the end, or the file would be too long.
 */
int writei(struct inode *ip, bool is_user, uint64 from, uint off, uint n);

#define WRITEI_BLOCKS 8		/* data that one operation may write */

/* dir.c */

/* Cut at 14. Return: 0 when equal. */
int namecmp(const char *a, const char *b);

/**
 * dirlookup - find a name in a directory
 * @off: set to where its entry lies; may be NULL
 *
 * Context: @dir is locked.
 * Return: a reference, not locked; NULL when there is no such name.
 */
struct inode *dirlookup(struct inode *dir, const char *name, uint *off);

/*
 * Add a name. In an op, locked. Return: 0; -1 if it exists, the directory has
 * itself been removed, or the disk is full.
 */
int dirlink(struct inode *dir, const char *name, u32 inum);

/* Clear the entry at @off. In an op, locked. */
void dirunlink(struct inode *dir, uint off);

bool dir_is_empty(struct inode *dir);

/**
 * namei - the inode that a path leads to, from / or the current directory
 *
 * Context: in an operation.
 * Return: a reference, not locked; NULL when there is none.
 */
struct inode *namei(const char *path);

/* The directory that holds the last name of @path, which is put into @name. */
struct inode *nameiparent(const char *path, char name[DIRSIZ]);

/* balloc.c */

/* At mount. @nr_free: zero bits in the bitmap, as counted by the check. */
void balloc_init(u32 nr_free);

/*
 * A free block, in use from now on, or 0 when the disk is full. What is in it
 * is undefined. Context: in an operation.
 */
u32 balloc(void);

/* The block is free again. Context: in an operation. */
void bfree(u32 block);

/* For memstat(). */
u32 nr_blocks_free(void);
u32 nr_inodes_free(void);
u32 nr_inodes_in_use(void);

#endif
