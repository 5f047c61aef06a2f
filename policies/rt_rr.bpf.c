/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * rt_rr.bpf.c - 99 levels, the highest one runs, in slices: Linux's SCHED_RR.
 *
 * As policies/rt_fifo.bpf.c, but tasks of one level have slices of slice_ns. A task
 * whose slice was cut short by a higher level, by its own sleep or by a yield has the
 * rest of it left. A slice ends at the first tick after it is used up.
 *
 * Good at: known urgency, and equal parts for tasks that are equally urgent.
 * Bad at: everything that has no urgency. Levels below one that never blocks starve
 * (Linux unloads the policy after 30 seconds of that; there is no throttling as for
 * the real class); slices of 100 ms are long for people; it knows nothing of locks;
 * and each wake-up looks at all CPUs.
 *
 * @knob slice_ns ns 1 10000000000  slice within a level (default 100 ms, as Linux's)
 * @knob default_level count 0 98  level of tasks without priority (default 5)
 * @knob rt_priority bool 0 1  priorities count as in sched_setscheduler() (default 0)
 * @priority priority then queued at once
 * @latency wake-up within slice_ns
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free no  a level that never empties keeps those below it waiting
 * @source reports 2 and 4 (SCHED_RR); POSIX.1-2017, 2.8.4, SCHED_RR; sched(7)
 *
 * Read next: policies/edf.bpf.c, where urgency follows from a deadline.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

const volatile u64 slice_ns = 100000000;
const volatile u32 default_level = 5;
const volatile u32 rt_priority = 0;

#include <scx/policy/rt.h>

SCX_OPS_DEFINE(rt_rr_ops, RT_OPS, .name = "rt_rr");
