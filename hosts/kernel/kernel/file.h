/* SPDX-License-Identifier: MIT */
/*
 * file.h - what a file descriptor stands for: a file, a pipe, a device, or
 * whatever else brings a table of operations.
 *
 *	proc->ofile[fd] --> struct file --> inode, pipe, set of locks, ...
 *
 * A struct file is shared by dup() and fork(), and with it the offset. It has no
 * lock: `refs` is atomic, `off` is under the lock of the inode, and the rest
 * does not change once the file is open.
 *
 * Read next: file.c; then pipe.c, the shortest kind of file.
 */
#ifndef KERNEL_FILE_H
#define KERNEL_FILE_H

#include <scx/types.h>

#include "param.h"
#include "stat.h"
#include "types.h"

struct file;
struct inode;

/*
 * What a kind of file does. read and write move at most n > 0 bytes from or to
 * user memory and return how many, or -1; the descriptor's mode was checked. A
 * NULL member means -1.
 */
struct file_ops {
	int (*read)(struct file *f, uint64 addr, int n);
	int (*write)(struct file *f, uint64 addr, int n);
	int (*stat)(struct file *f, struct stat *st);
	void (*close)(struct file *f); /* the last descriptor is gone */
};

struct file {
	const struct file_ops *ops;
	u32 refs; /* descriptors, of all processes; atomic */
	bool readable;
	bool writable;
	bool append;	  /* every write begins at the end */
	short major;	  /* of a device file */
	uint off;	  /* where the next read or write begins; under ip's lock */
	struct inode *ip; /* of a file, directory or device */
	void *object;	  /* of any other kind: its pipe, its set of locks */
	struct file *next_free;
};

/* A device driver. @addr is the user's. */
struct devsw {
	int (*read)(uint64 addr, int n);
	int (*write)(uint64 addr, int n);
};

/* By major number; filled in at boot, by the drivers' init functions. */
extern struct devsw devsw[NDEV];

#define CONSOLE	1
#define JOB	2	/* the bytes that the host gave, read-only */
#define NULLDEV	3	/* swallows everything, and is empty */
#define KEYS	4	/* the console, key by key; console.c */
#define CHANNEL	5	/* lines of text to the host; channel.h */

void file_init(void);
void console_init(void); /* at boot, after plic_init() and file_init() */

/* A new file with one reference and everything else zero, or NULL. */
struct file *filealloc(void);

/* One more descriptor. Return: f. */
struct file *filedup(struct file *f);

/* One less; the last one closes it. May sleep. */
void fileclose(struct file *f);

/* For memstat(). */
u32 nr_files_open(void);

/**
 * fdalloc - give the current process a descriptor for @f
 *
 * Takes over the caller's reference on success.
 * Return: the lowest free descriptor, or -1; then @f is still the caller's.
 */
int fdalloc(struct file *f);

/* The current process's file number @fd, or NULL; not one more reference. */
struct file *fd_file(int fd);

/* What open() gives: of f->ip, and of f->major if that is a device. */
extern const struct file_ops inode_file_ops;
extern const struct file_ops device_file_ops;

/**
 * pipealloc - two files, ends of a new pipe
 *
 * Return: 0, or -1 when files or memory are out.
 */
int pipealloc(struct file **reader, struct file **writer);

#endif
