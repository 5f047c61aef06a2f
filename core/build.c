/* SPDX-License-Identifier: MIT */
/*
 * build.c - the core and bpf/ as one translation unit, in reading order.
 *
 * So that what a file keeps to itself is static, and a host's locks, clock and
 * records are inlined into every chapter (compare kernel/sched/build_policy.c).
 *
 * Read next: dsq.c, the first chapter.
 */
#include "core.h"
#include "chapters.h"

struct sl_core sl_core;
const struct sched_ext_ops sl_no_ops;

#include "dsq.c"
#include "idle.c"
#include "enqueue.c"
#include "schedule.c"
#include "wake.c"
#include "change.c"
#include "cgroup.c"
#include "tasks.c"
#include "policy.c"
#include "load.c"
#include "dump.c"
#include "kfuncs_dsq.c"
#include "kfuncs_cpu.c"

#include "../bpf/maps.c"
#include "../bpf/storage.c"
#include "../bpf/arena.c"
#include "../bpf/attr.c"
#include "../bpf/timer.c"
#include "../bpf/spin_lock.c"
#include "../bpf/objects.c"
#include "../bpf/cpumask.c"
#include "../bpf/helpers.c"
#include "../bpf/print.c"
