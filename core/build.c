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

struct sl_core sl_core;

/* What a chapter needs of a later one. */
static void global_enqueue(struct sl_task *t, u64 enq_flags);
static void local_dsq_inserted_immed(struct sl_cpu *cpu, struct sl_task *t, u64 enq_flags);
static s32 any_allowed_cpu(struct sl_task *t, s32 preferred);
static void make_runnable(struct sl_cpu *this_cpu, struct sl_cpu *cpu, struct sl_task *t,
			  bool was_runnable, u64 enq_flags);
static struct sl_cpu *lock_online(struct sl_task *t, s32 nr);
static const struct cpumask *cpuset_cpus(const struct cgroup *cgrp);
static const struct cpumask *configured_cpus(const struct cgroup *cgrp);
static const struct cpumask *try_keep_mask(const struct cpumask *cpus);
static bool masks_meet(struct cpumask *both, const struct cpumask *a, const struct cpumask *b);
static bool mask_equal(const struct cpumask *a, const struct cpumask *b);
static int alloc_kept_masks(void);
static void free_kept_masks(void);
static void finish_failure(struct sl_cpu *this_cpu);
static void lock_tasks(void);
static void unlock_tasks(void);
static void reclaim_all(struct sl_cpu *this_cpu);
static void wait_for_dumps(void);
static void dump_policy(struct sl_cpu *this_cpu);

/* Of bpf/: */
static void bpf_init(void);
static void bpf_exit(void);
static int maps_create(const struct sl_policy *policy);
static void maps_destroy(void);
static void maps_forget_task(struct sl_task *t);
static void arena_free(struct sl_map *arena);
static void objects_free(void);
static void forget_storage(u32 type, u32 slot);
static int give_kept_attrs(struct sl_task *t);
static void set_host_timer(s32 cpu);
static void timers_destroy(void);
static void timers_unpin(const struct sl_cpu *cpu);
static void timers_forget(const void *value, u32 bytes);
static void spin_locks_reset(void);

#include "dsq.c"
#include "idle.c"
#include "enqueue.c"
#include "schedule.c"
#include "wake.c"
#include "change.c"
#include "cpuset.c"
#include "cgroup.c"
#include "tasks.c"
#include "policy.c"
#include "load.c"
#include "hotplug.c"
#include "dump.c"
#include "kfuncs_dsq.c"
#include "kfuncs_cpu.c"

#include "../bpf/maps.c"
#include "../bpf/storage.c"
#include "../bpf/arena.c"
#include "../bpf/ring.c"
#include "../bpf/attr.c"
#include "../bpf/timer.c"
#include "../bpf/spin_lock.c"
#include "../bpf/objects.c"
#include "../bpf/cpumask.c"
#include "../bpf/helpers.c"
#include "../bpf/print.c"
