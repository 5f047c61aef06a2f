/* SPDX-License-Identifier: MIT */
/*
 * check.h - hosts/sim with CPUs that interleave, to find what a policy cannot stand.
 *
 *	hosts/sim/loop.c -> interleave.c -> hosts/sim/cpu.c -> core/, policy
 *	  one event           this one and others               points: back to
 *	                      of the same instant               interleave.c
 *
 *	worlds.c -> reset.c -> hosts/sim/worker.c -> laws.c
 *	  many worlds in one process                   promises.c: what its records show
 *
 * Read next: interleave.c, then updates.c; worlds.c.
 */
#ifndef CHECK_H
#define CHECK_H

#include "sim.h"

/* interleave.c */
#define CHECK_STACK_BYTES (256U << 10)
/* The event that is being handled; written in interleave.c alone. */
extern struct check_event {
	s32 cpu;    /* -1: none */
	u64 number; /* how many events have begun on this CPU */
	const char *stack;
} check_event;

sl_inline bool check_is_in_event(void)
{
	return check_event.cpu >= 0;
}

sl_inline bool check_is_on_stack(const void *at)
{
	return (u64)((const char *)at - check_event.stack) < CHECK_STACK_BYTES;
}

/* The switches that could come next, SWITCH@NS@COST,...: where they were asked for. Return: how many. */
u32 check_nexts(const char **text);

/* Names for addresses in the policy's file: <0x...>, of which the caller knows the line. */
#define CHECK_NAME_BYTES 48
const char *check_name(const void *at, char *text, const char *else_text);
/* "CPU 0, in ops.enqueue() for a[1],". Return: its length. */
u32 check_name_callback(s32 cpu, char *text, u32 nr_bytes);

/*
 * " before <0x...>, a write": the instruction of the policy that this CPU comes to, and what it
 * does there: read, write, or the name of what it has called; "": it is in none.
 */
const char *check_name_point(char *text, u32 nr_bytes);

/* This CPU waits until check_wake(@lock); of NULL: of all locks of the policy. */
void check_wait(const u32 *lock, bool is_policys);
void check_wake(const u32 *lock);

/* reset.c: what the policy's variables have now is what check_restore_policy() puts back. */
void check_remember_policy(void);
void check_restore_policy(void);

/* calls.c: a run begins, and its calls are written if it was asked for. */
void check_open_calls(const struct sim_options *o);

/* coverage.c: from now on this file has which instructions of the policy were returned to. */
void check_open_coverage(const char *path);

/* locks.c */
void check_forget_locks(void);
void check_end_callbacks(s32 cpu);

/* Reserve what all worlds of this process use. Context: before check_remember(). */
void check_prepare_cpus(void);
void check_prepare_updates(void);

/* updates.c: this CPU has done what it announced last. */
extern bool check_is_unsettled;
void check_settle_now(void);

sl_inline void check_settle(void)
{
	if (unlikely(check_is_unsettled))
		check_settle_now();
}

/* A run begins: what the one before has accessed is no more. */
void check_forget_accesses(void);

/* reset.c: what has changed since check_remember() is as it was then. */
int check_remember(void);
void check_reset(bool has_settings);

/* laws.c */
struct check_shown {
	u64 longest_wait_ns;
	u64 hash;	  /* of the records */
	u64 course;	  /* what tasks did, see promises.c; 0: it is not asked for */
	bool is_suspect;  /* python/schedlab has to look at it; */
	bool is_wasteful; /* at this, if no CPU may be idle beside a task */
	u32 near;	  /* see promises.c */
};
struct check_shown check_laws(const struct sl_record *records, u64 nr);

/* Return: whether the CPUs that a task may use stay the same; they are @allowed, by laws.c. */
bool check_has_steady_mask(u32 task, u64 *allowed);

/* promises.c */
u32 check_promises(const struct sl_record *records, u64 nr, u64 *course);

/* Return: a hash of both. */
sl_inline u64 check_mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

#endif
