/* SPDX-License-Identifier: MIT */
/*
 * harness.h - the kernel's file system, compiled for this machine and tormented.
 *
 *	main.c     modes and their numbers        host.c     locks, memory, time
 *	memdisk.c  a disk that can lose power     model.c    what should happen
 *	random.c   operations against the model   threads.c  several at once
 *	crash.c    power cuts                     corrupt.c  broken images
 *
 * A check that fails prints what, the seed, and aborts.
 *
 * Read next: main.c.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdio.h>
#include <stdlib.h>

#include "../../../hosts/kernel/kernel/fs.h"

#define CHECK(cond, ...)						\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__);			\
			fprintf(stderr, "\n");				\
			abort();					\
		}							\
	} while (0)

/* xorshift; one stream, or with threads one each. */
extern __thread u64 random_state;
u32 random_below(u32 n);

/* host.c */
extern bool is_threaded; /* else a waiting process runs the disk itself */
extern bool is_quiet;	 /* printk() is only remembered */
extern char last_printk[256];
extern u8 *user_memory;					   /* what copyin() and copyout() accept */
extern void (*after_release)(const struct spinlock *lock); /* or NULL */
#define USER_BYTES 65536
struct proc *proc_new(void);
void timers_run(u64 ns);    /* let time pass */
bool timers_run_next(void); /* to the next timer; false: there is none */
uint64 syscall3(uint64 (*fn)(void), uint64 a, uint64 b, uint64 c);

/* memdisk.c */
#define DISK_BLOCKS_MAX 1024
extern u8 *disk; /* as a reader sees it now */
extern u32 disk_blocks;
extern bool is_recorded;	      /* keep a history, for cuts */
extern u32 ops_started, ops_promised; /* stamped on each event */
bool disk_step(void);		      /* end one request; false: there is none */
void disk_use(u8 *memory, u32 nr_blocks);
void history_new(void);
u32 history_length(void);
/* Make @image what a power cut before event @at may leave. Return its stamps. */
void history_cut(u32 at, u8 *image, const u8 *start, u32 *promised, u32 *started);

/* An empty file system. */
void format(u8 *image, u32 nr_blocks, u32 nr_inodes, u32 nr_log);

/* Check the disk after fs_sync(); counts must be those the kernel has. */
void check_disk(const char *when);

/* random.c: @nr operations from the model's state on; calls @after_each, if any. */
void random_ops(u32 nr, void (*after_each)(u32 op));
void random_begin(u32 nr_procs); /* after fs_init() */
void random_end(void);		 /* everything is closed and removed */

/* crash.c: hash of all that a path leads to, read through the kernel. */
u64 kernel_tree_hash(void);

/* The modes; main.c has their arguments. */
void run_random(u32 nr_ops, u32 nr_blocks);
void run_threads(u32 nr_threads, u32 nr_ops);
void run_reuse(u32 nr_bytes);
void run_crash(u32 nr_ops, u32 nr_cuts);
void run_corrupt(u32 nr_images);
void run_mount(const char *path);

#endif
