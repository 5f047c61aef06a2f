/* SPDX-License-Identifier: MIT */
/*
 * policy.h - the policies that are linked into the kernel, and which one is in
 * force.
 *
 * A policy is chosen by a text: its name, then settings of its knobs, such as
 * "mlfq quantum_ns=8000000". The name "builtin" stands for the core's own FIFO,
 * which is in force while no policy is.
 *
 * Read next: policy.c; include/schedlab/linked.h.
 */
#ifndef KERNEL_POLICY_H
#define KERNEL_POLICY_H

#include <scx/types.h>

#include "wait.h"

#define POLICY_TEXT_MAX 512

/* Held by a process that changes the policy, or ends it with the machine. */
extern struct sleeplock policy_lock;

/*
 * At boot, when the core is set up and before the first process: remembers
 * every policy as it was linked, and puts the one in force that the boot
 * argument `policy` names; its knobs are `set=NAME=VALUE,NAME=VALUE`.
 */
void policy_init(void);

/**
 * policy_start - put a policy in force; every process is handed over to it
 * @text: see above
 * @why: of POLICY_TEXT_MAX bytes; what is wrong, when something is
 *
 * Context: policy_lock, or nothing else can change it: boot, or an interrupt in
 * a machine that plays a workload.
 * Return: 0; or -1 with @why. After an unknown name or knob the old policy goes
 * on; when the new one does not start, the built-in FIFO is in force.
 */
int policy_start(const char *text, char *why);

/**
 * policy_describe - a policy in words
 * @which: number in the order they are linked, the last being the built-in one;
 *	-1: the one in force
 * @to: of @bytes > 0; gets the name, then "NAME=VALUE" of each knob
 *
 * Return: length of the text; -1: there is no such policy.
 */
int policy_describe(int which, char *to, u32 bytes);

/* Number of the policy in force, see policy_describe(); and a number's name. */
u32 policy_now(void);
const char *policy_name(u32 idx);

#endif
