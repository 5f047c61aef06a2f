/* SPDX-License-Identifier: MIT */
/*
 * check.h - hosts/sim with CPUs that interleave, to find what a policy cannot stand.
 *
 *	hosts/sim/loop.c -> interleave.c -> hosts/sim/cpu.c -> core/, policy
 *	  one event           this one and others               points: back to
 *	                      of the same instant               interleave.c
 *
 *	worlds.c -> reset.c -> hosts/sim/worker.c -> laws.c
 *	  many worlds in one process                   what its records show
 *
 * Read next: interleave.c, then updates.c; worlds.c.
 */
#ifndef CHECK_H
#define CHECK_H

#include "sim.h"

/* interleave.c */
bool check_is_in_event(void);
bool check_is_on_stack(const void *at);
/* How many events have begun on @cpu. */
u64 check_event_number(s32 cpu);

/* Names for addresses in the policy's file: <0x...>, of which the caller knows the line. */
#define CHECK_NAME_BYTES 48
const char *check_name(const void *at, char *text, const char *else_text);
/* "CPU 0, in ops.enqueue() for a[1],". Return: its length. */
u32 check_name_callback(s32 cpu, char *text, u32 nr_bytes);

/* This CPU waits until check_wake(@lock); of NULL: of all locks of the policy. */
void check_wait(const u32 *lock, bool is_policys);
void check_wake(const u32 *lock);

/* locks.c */
void check_forget_locks(void);
void check_end_callbacks(s32 cpu);

/* Reserve what all worlds of this process use. Context: before check_remember(). */
void check_prepare_cpus(void);
void check_prepare_updates(void);

/* updates.c: this CPU has done what it announced last. */
void check_settle(void);
/* A run begins: what the one before has accessed is no more. */
void check_forget_accesses(void);

/* reset.c: what has changed since check_remember() is as it was then. */
int check_remember(void);
void check_reset(bool has_settings);
/* Mapped memory that outlives a world; as sim_map(). */
void *check_map_kept(u64 bytes);

/* laws.c */
struct check_shown {
	u64	longest_wait_ns;
	u64	hash;		/* of the records */
	bool	is_suspect;	/* python/schedlab has to look at it; */
	bool	is_wasteful;	/* at this, if no CPU may be idle beside a task */
};
struct check_shown check_laws(const struct sl_record *records, u64 nr);

#endif
