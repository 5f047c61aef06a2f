/* SPDX-License-Identifier: MIT */
/*
 * lab.h - the seam to a laboratory that is not there: nothing is measured, and a
 * policy has the knobs it was written with.
 *
 * Stands in for lab/lab.h, which says what each of these means, in a kernel that is
 * built without lab/. Its system calls are then unknown ones, so ps, top and play
 * have nothing to show.
 *
 * Read next: lab/lab.h.
 */
#ifndef KERNEL_LAB_H
#define KERNEL_LAB_H

#include <scx/types.h>

struct cpu;
struct disk_request;
struct scx_exit_info;
struct sl_config;
struct sl_linked_policy;

#define LAB_SYSCALLS(FN)

struct lab_proc { };

enum overhead {
	OVERHEAD_USER,
	OVERHEAD_KERNEL,
	OVERHEAD_TRAP,
	OVERHEAD_SCHED,
	OVERHEAD_SWITCH,
	OVERHEAD_IDLE,
};

static inline u32 overhead_enter(enum overhead what)
{
	return what;
}

static inline void overhead_leave(u32 was)
{
	(void)was;
}

static inline void lab_init(void) { }

static inline void lab_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg)
{
	(void)kind, (void)task, (void)cpu, (void)flags, (void)arg;
}

static inline u64 lab_clock_ns(void)
{
	return clock_running_ns();
}

static inline void lab_clock_hold(u64 due_ns)
{
	(void)due_ns;
}

static inline void lab_clock_go_on(void) { }

static inline void lab_acknowledge(struct cpu *cpu)
{
	(void)cpu;
}

static inline u64 lab_ticks(u64 nr_true)
{
	return nr_true;
}

static inline void lab_proc_ends(struct lab_proc *lab)
{
	(void)lab;
}

static inline bool lab_print(const char *line)
{
	(void)line;
	return false;
}

static inline void lab_policy_ends(u32 idx)
{
	(void)idx;
}

static inline void lab_policy_failed(const struct scx_exit_info *info, s32 pid)
{
	(void)info, (void)pid;
}

static inline int lab_set_knobs(const struct sl_linked_policy *l, const char *settings,
				bool is_trial, char *why)
{
	(void)l, (void)is_trial;
	*why = 0;
	return *settings ? -1 : 0;
}

static inline u32 lab_describe_knobs(const struct sl_linked_policy *l, char *to, u32 bytes)
{
	(void)l, (void)to, (void)bytes;
	return 0;
}

static inline u32 lab_disk_init(void)
{
	return 0;
}

static inline bool lab_disk_submit(struct disk_request *r)
{
	(void)r;
	return false;
}

static inline void lab_topology(struct sl_config *config)
{
	(void)config;
}

_Noreturn void poweroff(int status); /* print.h */

_Noreturn static inline void lab_poweroff(int status)
{
	poweroff(status);
}

#endif
