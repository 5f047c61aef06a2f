/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * knows_no_locks.bpf.c - strict priorities, also for a task that holds the lock for which an urgent one waits.
 *
 * @breaks inversion
 * @priority priority at once through locks
 * @starvation-free no  a task that never blocks keeps those below it waiting
 */
#define LOOKS_AT_ALL_CPUS
#include "preempts_previous_cpu.bpf.c"
