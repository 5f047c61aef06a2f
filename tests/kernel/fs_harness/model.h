/* SPDX-License-Identifier: MIT */
/*
 * model.h - what the system calls should do, written as plainly as possible.
 *
 * No blocks, no log, no locks: nodes with bytes, directories with slots. Written
 * from docs/kernel-files.md, not from the kernel's code.
 *
 * Read next: model.c.
 */
#ifndef MODEL_H
#define MODEL_H

#include <scx/types.h>

#define M_PROCS		4
#define M_FDS		16
#define M_FILES		128
#define M_NODES		2048
#define M_FILE_BYTES	(268 * 1024)

struct m_slot {
	char name[15];
	int node; /* 0: free */
};

struct m_node {
	int type; /* T_*; 0: unused */
	int major;
	int nlink;
	int refs; /* open files, current directories */
	u32 size;
	u8 *data;	      /* of a file: M_FILE_BYTES, once written to */
	struct m_slot *slots; /* of a directory */
	u32 nr_slots;
};

struct m_pipe {
	u8 data[512];
	u32 nr;
	int readers, writers;
};

struct m_file {
	int refs;
	int node; /* 0: a pipe */
	struct m_pipe *pipe;
	u32 off;
	bool readable, writable, append;
};

struct m_proc {
	int fd[M_FDS]; /* index of an m_file plus 1, 0: closed */
	int cwd;
};

struct model {
	struct m_node nodes[M_NODES]; /* 1: the root */
	struct m_file files[M_FILES];
	struct m_proc procs[M_PROCS];
	int now; /* the current process */
};

extern struct model model;

void m_init(int nr_procs);
struct m_file *m_file_of(int fd);

int m_open(const char *path, int mode);
int m_close(int fd);
int m_dup(int fd);
int m_pipe(int fd[2]);
int m_link(const char *old, const char *new);
int m_unlink(const char *path);
int m_make(const char *path, int type, int major);
int m_chdir(const char *path);
/* @to: what is read. Return: as read(). */
int m_read(int fd, u8 *to, int n);
int m_write(int fd, const u8 *from, int n);
/* A write ended early, @done bytes into it: the disk was full, or memory bad. */
void m_wrote(struct m_file *f, const u8 *from, int done);

/* Hash of all names and contents; equal to kernel_tree_hash() if all is well. */
u64 m_tree_hash(void);

/* Both hashes are made of these. */
u64 hash_bytes(u64 hash, const void *from, u64 n);

#endif
