/* SPDX-License-Identifier: MIT */
/*
 * fake_host.h - a host whose only purpose is to catch the core out.
 *
 * fake_host.c implements include/schedlab/host.h; a test says what happens on
 * a record, finds tasks by pid, and chooses between the machine's clock and one
 * that stands still until the test moves it.
 *
 * Read next: fake_host.c.
 */
#ifndef FAKE_HOST_H
#define FAKE_HOST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define FAKE_CPUS_MAX 256
#define FAKE_PIDS_MAX (1 << 20)

struct fake_cpu {
	u32 is_kicked;	 /* atomic; set by sl_host_kick() */
	u64 nr_kicks;	 /* atomic */
	u32 is_asleep;	 /* atomic: its thread waits on `is_kicked` */
	u64 timer_at_ns; /* of timers that are pinned here; atomic; ~0: none */
} __attribute__((aligned(64)));

struct fake_host {
	bool has_real_clock;
	u64 start_ns;
	u64 now_ns; /* where the clock stands; atomic */
	struct fake_cpu cpus[FAKE_CPUS_MAX];
	struct sl_task *by_pid[FAKE_PIDS_MAX]; /* atomic */
	u64 timer_at_ns;		       /* atomic; ~0: none */
	u64 alloc_bytes;		       /* now in use; atomic */
	u64 alloc_fail_after;		       /* this many allocations succeed; ~0: all */
	u64 nr_failures;		       /* of policies; atomic */
	u64 nr_slice_changes;		       /* atomic */
	enum scx_exit_kind failure_kind;       /* of the last one */
	s32 failure_pid;
	char failure_msg[SCX_EXIT_MSG_LEN];
	char last_line[256]; /* that the core printed */
	u32 nr_lines;	     /* atomic */
	bool is_verbose;
	char replay[256]; /* the command that repeats this test */
	/* What a test wants to see; each may be NULL. */
	void (*on_record)(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg);
	void (*on_panic)(void);
};

extern struct fake_host fake;

void fake_init(u64 seed, bool has_real_clock);
void fake_seed_thread(u64 seed);
u32 fake_below(u32 limit); /* a random number < @limit */
bool fake_take_kick(s32 cpu);
void fake_sleep(s32 cpu, u64 ns_max); /* until kicked, or for so long */

/* A test failed: print where, the seed, and how to run it again; exit 1. */
_Noreturn void fake_fail(const char *file, int line, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define CHECK(cond, ...)						\
	do {								\
		if (!(cond))						\
			fake_fail(__FILE__, __LINE__, #cond, " " __VA_ARGS__); \
	} while (0)

#endif
