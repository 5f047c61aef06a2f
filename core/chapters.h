/* SPDX-License-Identifier: MIT */
/*
 * chapters.h - what a chapter of the core needs of a later one; see build.c.
 */
#ifndef SL_CHAPTERS_H
#define SL_CHAPTERS_H

static void global_enqueue(struct sl_task *t, u64 enq_flags);
static s32 any_allowed_cpu(const struct sl_task *t, s32 preferred);
static void make_runnable(struct sl_cpu *this_cpu, struct sl_cpu *cpu,
			  struct sl_task *t, u64 enq_flags);
static void finish_failure(struct sl_cpu *this_cpu);
static void lock_tasks(void);
static void unlock_tasks(void);
static struct sl_task *task_in_slot(u32 idx);
static void reclaim_all(struct sl_cpu *this_cpu);
static void wait_for_dumps(void);
static void dump_policy(struct sl_cpu *this_cpu);

/* bpf/: maps.c, arena.c, timer.c, spin_lock.c, objects.c */
static void bpf_init(void);
static void bpf_exit(void);
static int maps_create(const struct sl_policy *policy);
static void maps_destroy(void);
static void maps_forget_task(struct sl_task *t);
static void arena_free(struct sl_map *arena);
static void objects_free(void);
static void forget_storage(u32 type, u32 slot);
static int give_kept_attrs(struct sl_task *t);
static void set_host_timer(void);
static void timers_destroy(void);
static void timers_forget(const void *value, u32 bytes);
static void spin_locks_reset(void);

#endif
