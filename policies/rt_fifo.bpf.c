/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * rt_fifo.bpf.c - 99 levels, the highest one runs: Linux's SCHED_FIFO.
 *
 * There are no slices: a task runs until it blocks, yields or is preempted by one of
 * a higher level. How levels are found and queued is in scx/policy/rt.h.
 *
 * Good at: known urgency. A task waits only for those above it and for those of its
 * own level that came first, which is what response-time analysis assumes.
 * Bad at: everything else. A task that never blocks starves all below it and its
 * equals (Linux unloads the policy after 30 seconds of that; there is no throttling
 * as for the real class); it knows nothing of locks, so that an urgent task waits
 * for any task that preempts the holder of its lock; each wake-up looks at all CPUs.
 *
 * @knob default_level count 0 98  level of tasks without priority (default 5)
 * @knob rt_priority bool 0 1  priorities count as in sched_setscheduler() (default 0)
 * @priority priority then queued at once
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free no  a task that never blocks keeps those below it and its equals waiting
 * @source reports 2 and 4 (SCHED_FIFO); POSIX.1-2017, 2.8.4, SCHED_FIFO; sched(7)
 *
 * Read next: scx/policy/rt.h, then policies/rt_rr.bpf.c, where equals have slices.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

static const u64 slice_ns = 0;
const volatile u32 default_level = 5;
const volatile u32 rt_priority = 0;

#include <scx/policy/rt.h>

SCX_OPS_DEFINE(rt_fifo_ops, RT_OPS, .name = "rt_fifo");
