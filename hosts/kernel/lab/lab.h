/* SPDX-License-Identifier: MIT */
/*
 * lab.h - the seam between the kernel and its laboratory: all that the kernel
 * calls of lab/, and the only header of it that the kernel includes.
 *
 * The laboratory measures what the kernel does, and plays workloads on it: records,
 * counts of instructions, the binary way to the host, what tasks of a workload
 * wait for, knobs of policies. None of it is needed to boot, to run programs, or
 * to schedule with a policy: built with nolab/lab.h on the include path in place of
 * this file, and without the files beside it, the kernel does all of that
 * (tests/kernel/test_nolab.py). So whatever is added here is added there.
 *
 *	kernel --lab.h--> lab      calls what is here, where it happens
 *	lab --> kernel             may use any header of the kernel
 *
 * host_inline.h includes this file, behind the clock and the number of the hart,
 * which the inline functions need; so every file that includes host.h has it.
 *
 * Read next: nolab/lab.h, the same without a laboratory; then overhead.h.
 */
#ifndef KERNEL_LAB_H
#define KERNEL_LAB_H

#include <scx/types.h>

#include "clock.h"
#include "lateack.h"  /* lab_ticks() */
#include "overhead.h" /* overhead_enter(), overhead_leave() */
#include "record.h"
#include "sync.h"

struct cpu;
struct disk_request;
struct scx_exit_info;
struct sl_config;
struct sl_linked_policy;

/* System calls that are the laboratory's; syscall.c lists them with its own. */
#define LAB_SYSCALLS(FN)						\
	FN(getcontextswitches) FN(getpinfo) FN(schedlog) FN(cycles)	\
	FN(print_metrics) FN(forkheld) FN(release) FN(syncs) FN(syncop)	\
	FN(procs) FN(memstat) FN(play_at) FN(sleep_until_ns)		\
	FN(cputime_ns)

/* Part of struct proc; all zero in a process that has just been made. */
struct lab_proc {
	struct sync_at_exit at_exit; /* the counters told of its end */
};

/* At boot, once memory, the PLIC and files are there. */
void lab_init(void);

/*
 * The time on this hart. It may stand still from lab_clock_hold(), at the time for
 * which a timer interrupt was asked for, until lab_clock_go_on(), when a process goes
 * on or the hart sleeps: clock.h says why. Context: interrupts off.
 */
sl_inline u64 lab_clock_ns(void)
{
	u64 held_ns = this_hart()->clock_held_ns;

	return __builtin_expect(held_ns != 0, 0) ? held_ns : clock_running_ns();
}

void lab_clock_hold(u64 due_ns);

static inline void lab_clock_go_on(void)
{
	if (__builtin_expect(this_hart()->clock_held_ns != 0, 0))
		clock_go_on_late();
}

/*
 * The timer interrupt of @cpu has done its work, and is about to be acknowledged by
 * setting the timer again. Context: interrupts off, no lock held.
 */
static inline void lab_acknowledge(struct cpu *cpu)
{
	if (__builtin_expect(late_ack_is_wanted, 0))
		late_ack_yield(cpu);
}

/* Something happened. Context: interrupts off, in the core; its locks may be held. */
sl_inline void lab_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg)
{
	struct hart *hart = this_hart();

	if (__builtin_expect(hart->record_at != hart->record_end, 1))
		record_put(hart, lab_clock_ns(), kind, task, cpu, flags, arg);
	else
		record_make_room_and_put(hart, lab_clock_ns(), kind, task, cpu, flags, arg);
}

/*
 * The process ends: it is about to leave the CPU for good.
 * Context: its own, interrupts off; what it still does must not block.
 */
static inline void lab_proc_ends(struct lab_proc *lab)
{
	sync_exit(&lab->at_exit);
}

/* A line that the core or a policy prints. Return: false: it was not taken. */
bool lab_print(const char *line);

/*
 * The policy number @idx is about to end, see policy.h: what was counted so far
 * is its. Then: one has failed, and its reason.
 */
void lab_policy_ends(u32 idx);
void lab_policy_failed(const struct scx_exit_info *info, s32 pid);

/*
 * Set the knobs of a policy, "NAME=VALUE NAME=VALUE"; @l: NULL: the built-in one; @is_trial: only look whether
 * that is right. Return: 0, or -1 with @why (of POLICY_TEXT_MAX bytes).
 */
int lab_set_knobs(const struct sl_linked_policy *l, const char *settings, bool is_trial, char *why);

/* Put " NAME=VALUE" of each knob at @to. Return: how many bytes. */
u32 lab_describe_knobs(const struct sl_linked_policy *l, char *to, u32 bytes);

/*
 * A disk in RAM in place of the machine's. Return: its blocks; 0: there is none.
 * Then as disk_submit(); false: it is not this disk's.
 */
u32 lab_disk_init(void);
bool lab_disk_submit(struct disk_request *r);

/* Show the harts to the core, and so to policies, as what they are not. */
void lab_topology(struct sl_config *config);

/*
 * Send what is left to send and power off; QEMU ends with @status, 0 to 127.
 * Context: any; nothing else should be running.
 */
_Noreturn void lab_poweroff(int status);

#endif
