/* SPDX-License-Identifier: MIT */
/*
 * sync.h - locks, pipes of bytes, barriers, conditions, counters and a device,
 * for programs that play workloads; a set of them hides behind a file.
 *
 * Read next: sync.c.
 */
#ifndef KERNEL_SYNC_H
#define KERNEL_SYNC_H

#include <scx/types.h>

#include "syncspec.h"

struct syncs;
struct file;

#define SYNC_AT_EXIT_MAX 2	/* counters that one process can tell of its end */

/* In struct proc: what sync_exit() does; zero: nothing. */
struct sync_at_exit {
	struct file *file; /* a reference of its own */
	u32 nr;
	u32 idx[SYNC_AT_EXIT_MAX];
	u64 amount[SYNC_AT_EXIT_MAX];
};

/* The last file of the set is closed: no process waits in it any more. */
void syncs_free(struct syncs *s);

/*
 * The process ends, and is about to leave the CPU: tell the counters that it
 * promised to tell, and forget them.
 * Context: its own; what it still does afterwards must not block.
 */
void sync_exit(struct sync_at_exit *at_exit);

#endif
