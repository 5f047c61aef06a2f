/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * native.h - sched_ext's programming interface, for policies compiled natively.
 *
 * Declares what a policy calls; core/ implements it. Where Linux needs a
 * compiler trick (maps, iterators), the trick here has the same spelling.
 *
 * Maps: a map variable is a struct of pointers whose types carry its sizes, as
 * libbpf defined it. Each call on a map leaves one `sl_map_site` in a section
 * of the policy, with those sizes read off the declaration; the loader reads the
 * section before the policy starts and has the host allocate every map. The
 * first pointer of the variable then holds the map's handle.
 *
 * Read next: core/policy.c, which loads a policy, and bpf/maps.c.
 */
#ifndef SCX_NATIVE_H
#define SCX_NATIVE_H

#include <scx/types.h>
#include <scx/words.h>

/* ---- compiler words ---------------------------------------------------- */

#define SEC(name) __attribute__((used))
/* What the kernel may lack is weak: its address is NULL where it is not there. */
#define __ksym __attribute__((weak))
#define __kconfig
#define __kptr
#define __percpu
#define __rcu
#define __contains(...)
#define __arg_trusted
#define __arg_nullable
#define private(name) __attribute__((aligned(8)))

#define bpf_ksym_exists(sym) 1
#define bpf_core_enum_value_exists(type, value) 1
#define bpf_core_enum_value(type, value) (value)
#define bpf_core_field_exists(...) 1
#define bpf_core_type_exists(...) 1
#define bpf_core_read(dst, bytes, src) \
	(__builtin_memcpy((dst), (src), (bytes)), 0)
#define SL_CORE_READ(a, b, c, d, e, name, ...) name
#define SL_READ_1(src, a) ((src)->a)
#define SL_READ_2(src, a, b) ((src)->a->b)
#define SL_READ_3(src, a, b, c) ((src)->a->b->c)
#define BPF_CORE_READ(...) \
	SL_CORE_READ(__VA_ARGS__, , SL_READ_3, SL_READ_2, SL_READ_1)(__VA_ARGS__)
#define bpf_probe_read_kernel(dst, bytes, src) bpf_core_read(dst, bytes, src)
#define MEMBER_VPTR(base, member) (&((base)member))
#define ARRAY_ELEM_PTR(arr, i, n) \
	((u64)(i) < (u64)(n) ? &(arr)[i] : (__typeof__(&(arr)[0]))NULL)

/* ---- the policy itself ------------------------------------------------- */

#define BPF_STRUCT_OPS(name, ...) name(__VA_ARGS__)
#define BPF_STRUCT_OPS_SLEEPABLE(name, ...) name(__VA_ARGS__)

/*
 * One per place in the policy that names a map; see the head of this file. Aligned
 * by hand, since a compiler may put space between variables of this size.
 */
struct sl_map_site {
	void *map;	  /* the map variable */
	const char *name; /* as the call spells it: "&NAME" */
	u32 type;	  /* BPF_MAP_TYPE_* */
	u32 key_bytes;
	u64 value_bytes; /* of an array of maps: what SL_INNER() says */
	u32 max_entries; /* 0: one per task (task storage) */
	u32 var_bytes;	 /* of the map variable */
};

/*
 * What a policy and its host must agree on: a policy that was compiled with other headers
 * would read one member of a task for another. What it says of them is their sum.
 */
#define SL_LAYOUT_OF(type, member) \
	(31 * sizeof(type) + __builtin_offsetof(type, member))
#define SL_LAYOUT							\
	((u32)(SL_LAYOUT_OF(struct task_struct, comm) +			\
	       1009 * __builtin_offsetof(struct task_struct, pid) +	\
	       2003 * __builtin_offsetof(struct task_struct, cpus_ptr) + \
	       4001 * SL_LAYOUT_OF(struct sched_ext_ops, name) +	\
	       8009 * sizeof(struct sched_ext_entity)))

/* What the loader looks up in a compiled policy: the one symbol it exports. */
struct sl_policy {
	u64 layout; /* SL_LAYOUT */
	struct sched_ext_ops *ops;
	struct sl_map_site *sites;
	struct sl_map_site *sites_end;
	int (*start)(void); /* of the host: before ops.init(), maps exist; or NULL */
};

extern struct sl_map_site __start_sl_map_sites[] __attribute__((weak, visibility("hidden")));
extern struct sl_map_site __stop_sl_map_sites[] __attribute__((weak, visibility("hidden")));

#define SL_POLICY_OF(operations)						\
	struct sl_policy sl_policy = {					\
		.layout = SL_LAYOUT,					\
		.ops = &(operations),					\
		.sites = __start_sl_map_sites,				\
		.sites_end = __stop_sl_map_sites,			\
	}
#define SCX_OPS_DEFINE(name, ...)					\
	struct sched_ext_ops name = { __VA_ARGS__ };			\
	SL_POLICY_OF(name)

/*
 * The form of Linux's documentation, SEC(".struct_ops.link") struct sched_ext_ops NAME = { ... },
 * cannot be seen by a macro: it is compiled with SL_STRUCT_OPS defined as NAME.
 */
#ifdef SL_STRUCT_OPS
extern struct sched_ext_ops SL_STRUCT_OPS;
SL_POLICY_OF(SL_STRUCT_OPS);
#endif

/* ---- maps -------------------------------------------------------------- */

#define __uint(name, val) __scx_uint_##name(val)
#define __scx_uint_type(val) int (*type)[val]
#define __scx_uint_max_entries(val) int (*max_entries)[val]
#define __scx_uint_map_flags(val) int (*map_flags)[val]
#define __scx_uint_map_extra(val) int (*map_extra)[val]
#define __scx_uint_pinning(val) int (*pinning)[val]
#define __ulong(name, val) char *name
#define __scx_uint_key_size(val) char (*key)[val]
#define __scx_uint_value_size(val) char (*value)[val]
#define __type(name, val) __typeof__(val) *name

/*
 * An array of maps: the inner maps are named by the initializer of its variable,
 * and their sizes are in the type of `value`: type, bytes of a value, entries.
 */
#define SL_INNER_MAX 64
#define SL_INNER(val)							\
	((u64)sizeof(*((__typeof__(val) *)0)->type) / sizeof(int) << 56 | \
	 (u64)sizeof(*((__typeof__(val) *)0)->value) << 32 |		\
	 sizeof(*((__typeof__(val) *)0)->max_entries) / sizeof(int))
#define __array(name, val)						\
	char (*value)[SL_INNER(val)];					\
	__typeof__(val) *name[SL_INNER_MAX]

/*
 * Where the policy has a pointer of no type, as out of an array of maps, it points to a map's
 * variable, and another site has said that map's sizes: then this one says nothing.
 */
struct bpf_map;
struct sl_unknown_map {
	int (*type)[1];
	char (*key)[1];
	char (*value)[1];
	int (*max_entries)[1];
};
#define SL_MAP_TYPED(m) \
	_Generic((m), void *: (struct sl_unknown_map *)0,		\
		 struct bpf_map *: (struct sl_unknown_map *)0, default: (m))
#define SL_MAP_SITE(m, nr_max)						\
	({								\
		static struct sl_map_site ___site			\
			__attribute__((section("sl_map_sites"), used, aligned(8))) = { \
			.map = _Generic((m), void *: (void *)0, default: (m)), \
			.name = #m,					\
			.type = sizeof(*SL_MAP_TYPED(m)->type) / sizeof(int), \
			.key_bytes = sizeof(*SL_MAP_TYPED(m)->key),	\
			.value_bytes = sizeof(*SL_MAP_TYPED(m)->value),	\
			.max_entries = (nr_max),			\
			.var_bytes = sizeof(*SL_MAP_TYPED(m)),		\
		};							\
		*(struct sl_map **)_Generic((m), void *: (m), default: ___site.map); \
	})
#define SL_MAP(m) \
	SL_MAP_SITE(m, sizeof(*SL_MAP_TYPED(m)->max_entries) / sizeof(int))

/* Queues and stacks have no key. What is no constant address is a pointer to an inner map. */
#define SL_QUEUE(m)							\
	({								\
		const void *___map = (m);				\
		static struct sl_map_site ___site			\
			__attribute__((section("sl_map_sites"), used, aligned(8))) = { \
			.map = __builtin_choose_expr(			\
				__builtin_constant_p(!(__UINTPTR_TYPE__)(m)), (m), (void *)0), \
			.name = #m,					\
			.type = sizeof(*SL_MAP_TYPED(m)->type) / sizeof(int), \
			.value_bytes = sizeof(*SL_MAP_TYPED(m)->value),	\
			.max_entries = sizeof(*SL_MAP_TYPED(m)->max_entries) / \
				       sizeof(int),			\
		};							\
		*(struct sl_map *const *)___map;			\
	})

/* Of a map that has neither keys nor values, or none that a call names. */
#define SL_MAP_AREA(m)							\
	({								\
		static struct sl_map_site ___site			\
			__attribute__((section("sl_map_sites"), used, aligned(8))) = { \
			.map = (m),					\
			.name = #m,					\
			.type = sizeof(*(m)->type) / sizeof(int),	\
			.max_entries = sizeof(*(m)->max_entries) / sizeof(int), \
		};							\
		*(struct sl_map **)___site.map;				\
	})

struct sl_map;
long sl_map_push(struct sl_map *map, const void *value, u64 flags);
long sl_map_pop(struct sl_map *map, void *value);
long sl_map_peek(struct sl_map *map, void *value);
#define bpf_map_push_elem(m, value, flags) \
	sl_map_push(SL_QUEUE(m), (value), (flags))
#define bpf_map_pop_elem(m, value) sl_map_pop(SL_QUEUE(m), (value))
#define bpf_map_peek_elem(m, value) sl_map_peek(SL_QUEUE(m), (value))
void *sl_map_lookup(struct sl_map *map, const void *key);
void *sl_map_lookup_percpu(struct sl_map *map, const void *key, u32 cpu);
long sl_map_update(struct sl_map *map, const void *key, const void *value, u64 flags);
long sl_map_delete(struct sl_map *map, const void *key);
void *sl_task_storage_get(struct sl_map *map, struct task_struct *p, const void *value, u64 flags);
long sl_task_storage_delete(struct sl_map *map, struct task_struct *p);

#define bpf_map_lookup_elem(m, key) sl_map_lookup(SL_MAP(m), (key))
#define bpf_map_lookup_percpu_elem(m, key, cpu) \
	sl_map_lookup_percpu(SL_MAP(m), (key), (cpu))
#define bpf_map_update_elem(m, key, value, flags) \
	sl_map_update(SL_MAP(m), (key), (value), (flags))
#define bpf_map_delete_elem(m, key) sl_map_delete(SL_MAP(m), (key))
#define bpf_task_storage_get(m, p, value, flags) \
	sl_task_storage_get(SL_MAP_SITE(m, 0), (p), (value), (flags))
#define bpf_task_storage_delete(m, p) \
	sl_task_storage_delete(SL_MAP_SITE(m, 0), (p))
void *sl_cgrp_storage_get(struct sl_map *map, struct cgroup *cgrp, const void *value, u64 flags);
long sl_cgrp_storage_delete(struct sl_map *map, struct cgroup *cgrp);
#define bpf_cgrp_storage_get(m, cgrp, value, flags) \
	sl_cgrp_storage_get(SL_MAP_SITE(m, 0), (cgrp), (const void *)(value), (flags))
#define bpf_cgrp_storage_delete(m, cgrp) \
	sl_cgrp_storage_delete(SL_MAP_SITE(m, 0), (cgrp))

/* Ring buffers (bpf/ring.c). Without a user half that reads, what is reserved stays. NULL: it is full. */
void *sl_ringbuf_reserve(struct sl_map *map, u64 bytes);
#define bpf_ringbuf_reserve(m, bytes, flags) \
	((void)(flags), sl_ringbuf_reserve(SL_MAP_AREA(m), (bytes)))
void bpf_ringbuf_submit(void *record, u64 flags);
void bpf_ringbuf_discard(void *record, u64 flags);
long sl_ringbuf_output(struct sl_map *map, const void *data, u64 bytes, u64 flags);
#define bpf_ringbuf_output(m, data, bytes, flags) \
	sl_ringbuf_output(SL_MAP_AREA(m), (data), (bytes), (flags))
u64 sl_ringbuf_query(struct sl_map *map, u64 flags);
#define bpf_ringbuf_query(m, flags) sl_ringbuf_query(SL_MAP_AREA(m), (flags))

struct bpf_dynptr {
	void *data;
	u32 bytes;
	u32 unused;
};
void *bpf_dynptr_data(const struct bpf_dynptr *ptr, u32 offset, u32 bytes);
long bpf_dynptr_read(void *to, u32 bytes, const struct bpf_dynptr *ptr, u32 offset, u64 flags);
long sl_user_ringbuf_drain(struct sl_map *map,
			   long (*callback)(struct bpf_dynptr *record, void *ctx), void *ctx,
			   u64 flags);
#define bpf_user_ringbuf_drain(m, callback, ctx, flags) \
	sl_user_ringbuf_drain(SL_MAP_AREA(m), (callback), (ctx), (flags))

#define bpf_perf_event_read_value(m, flags, value, bytes) \
	((void)SL_MAP_SITE(m, 1), (void)(flags), \
	 __builtin_memset((value), 0, (bytes)), -2L)

/* ---- loops and iterators ----------------------------------------------- */

#define bpf_for(i, start, end)						\
	for (__typeof__(i) ___end = (((i) = (start)), (end)); (i) < ___end; (i)++)
#define bpf_repeat(n) for (int ___i = 0, ___n = (n); ___i < ___n; ___i++)
#define can_loop 1

#define bpf_for_each(type, cur, ...)					\
	for (struct bpf_iter_##type ___it				\
		     __attribute__((cleanup(bpf_iter_##type##_destroy))), \
	     *___unused __attribute__((unused)) =			\
		     (bpf_iter_##type##_new(&___it, __VA_ARGS__),	\
		      (struct bpf_iter_##type *)NULL);			\
	     ((cur) = bpf_iter_##type##_next(&___it));)
#define BPF_FOR_EACH_ITER (&___it)

/* The tasks that were in a queue when the iteration began, in queue order. */
struct bpf_iter_scx_dsq {
	struct bpf_iter_scx_dsq *link; /* other iterators of the same queue */
	void *dsq;
	void *next; /* the next task */
	u64 seq;    /* tasks queued later are not visited */
	u64 flags;
	u64 slice;
	u64 vtime;
	bool has_slice;
	bool has_vtime;
};
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags);
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it);
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it);

/* Limit as on Linux: 8 Mi rounds. Return: rounds done, or -E2BIG. */
long sl_bpf_loop(u32 nr_loops, long (*callback)(u64 i, void *ctx), void *ctx, u64 flags);
#define bpf_loop(nr, callback, ctx, flags) \
	sl_bpf_loop((nr), (long (*)(u64, void *))(callback), (ctx), (flags))

/* ---- locks, timers, random numbers, text ------------------------------- */

struct bpf_spin_lock {
	u32 val;
};
void bpf_spin_lock(struct bpf_spin_lock *lock);
void bpf_spin_unlock(struct bpf_spin_lock *lock);
/* Of these several may be held. Return: 0, -EDEADLK, -ETIMEDOUT. */
struct bpf_res_spin_lock {
	u32 val;
};
int bpf_res_spin_lock(struct bpf_res_spin_lock *lock);
void bpf_res_spin_unlock(struct bpf_res_spin_lock *lock);
#define BPF_MAX_LOOPS (8U << 20)
static inline void bpf_rcu_read_lock(void) { }
static inline void bpf_rcu_read_unlock(void) { }

#ifndef CLOCK_MONOTONIC
#define CLOCK_MONOTONIC 1
#endif
#define BPF_F_TIMER_ABS 1
#define BPF_F_TIMER_CPU_PIN 2
struct bpf_timer {
	u64 opaque[2];
};
long sl_timer_init(struct bpf_timer *timer, struct sl_map *map, u64 flags);
long bpf_timer_start(struct bpf_timer *timer, u64 nsecs, u64 flags);
long bpf_timer_cancel(struct bpf_timer *timer);
long sl_timer_set_callback(struct bpf_timer *timer,
			   int (*callback)(void *map, void *key, void *value));
#define bpf_timer_init(timer, m, flags) \
	sl_timer_init((timer), SL_MAP(m), (flags))
#define bpf_timer_set_callback(timer, callback) \
	sl_timer_set_callback((timer), (int (*)(void *, void *, void *))(callback))

u32 bpf_get_prandom_u32(void);
u64 bpf_ktime_get_ns(void);
u64 bpf_jiffies64(void);
long bpf_strncmp(const char *text, u32 bytes, const char *other);
/* Return: bytes written, with the 0 at the end. */
long bpf_probe_read_kernel_str(void *dst, u32 bytes, const void *src);
#define bpf_probe_read_str bpf_probe_read_kernel_str
#define bpf_core_read_str(dst, bytes, src) bpf_probe_read_kernel_str(dst, bytes, src)
u64 scx_bpf_now(void);
u32 bpf_get_smp_processor_id(void);
long sl_printk(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
long bpf_snprintf(char *to, u32 bytes, const char *fmt, const u64 *data, u32 data_bytes);
#define bpf_printk(fmt, ...) sl_printk(fmt "", ##__VA_ARGS__)

/* ---- tasks ------------------------------------------------------------- */

struct task_struct *bpf_get_current_task_btf(void);
/* Whether the current task runs, and is not interrupted. (S39) */
bool bpf_in_task(void);
static inline u64 bpf_get_current_pid_tgid(void)
{
	const struct task_struct *p = bpf_get_current_task_btf();

	return (u64)(u32)p->tgid << 32 | (u32)p->pid;
}
struct task_struct *bpf_task_from_pid(s32 pid);
struct task_struct *bpf_task_acquire(struct task_struct *p);
void bpf_task_release(struct task_struct *p);
bool scx_bpf_task_running(const struct task_struct *p);
s32 scx_bpf_task_cpu(const struct task_struct *p);
/* NULL: no such CPU. An idle one has its idle task. */
struct task_struct *scx_bpf_cpu_curr(s32 cpu);
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice);
bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime);
static inline bool is_migration_disabled(const struct task_struct *p)
{
	/* The task itself may be changing it. */
	return __atomic_load_n(&p->migration_disabled, __ATOMIC_RELAXED);
}

/* ---- cgroups: a reference that is never given back does no harm here --------- */

struct cgroup *scx_bpf_task_cgroup(struct task_struct *p);
struct cgroup *bpf_cgroup_from_id(u64 id);
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, s32 level);
struct cgroup *bpf_cgroup_acquire(struct cgroup *cgrp);
void bpf_cgroup_release(struct cgroup *cgrp);

/* Over a cgroup and what is below it: parents first, or children first. */
enum bpf_cgroup_iter_order {
	BPF_CGROUP_ITER_DESCENDANTS_PRE = 2,
	BPF_CGROUP_ITER_DESCENDANTS_POST = 3,
};
struct bpf_iter_css {
	struct cgroup_subsys_state *root, *next;
	bool is_post;
};
int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start, u32 flags);
struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it);
void bpf_iter_css_destroy(struct bpf_iter_css *it);

/* ---- dispatch queues --------------------------------------------------- */

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node);
void scx_bpf_destroy_dsq(u64 dsq_id);
s32 scx_bpf_dsq_nr_queued(u64 dsq_id);
struct task_struct *scx_bpf_dsq_peek(u64 dsq_id);
bool scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags);
bool scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			      u64 enq_flags);
bool sl_dsq_move_to_local(u64 dsq_id, u64 enq_flags);
/* Linux 7.1 added the flags; earlier sources give the queue alone. */
#define SL_MOVE_TO_LOCAL(dsq_id, enq_flags, ...) \
	sl_dsq_move_to_local((dsq_id), (enq_flags))
#define scx_bpf_dsq_move_to_local(...) SL_MOVE_TO_LOCAL(__VA_ARGS__, 0, 0)
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id, u64 enq_flags);
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
			    u64 enq_flags);
void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice);
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime);
u32 scx_bpf_dispatch_nr_slots(void);
void scx_bpf_dispatch_cancel(void);
u32 scx_bpf_reenqueue_local(void);
u32 scx_bpf_reenqueue_local___v1(void); /* S40: the form from before Linux 6.19 */

/* ---- CPUs -------------------------------------------------------------- */

u32 scx_bpf_nr_cpu_ids(void);
u32 scx_bpf_nr_node_ids(void);
s32 scx_bpf_cpu_node(s32 cpu);
void scx_bpf_kick_cpu(s32 cpu, u64 flags);
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle);
s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   const struct cpumask *cpus_allowed, u64 flags);
const struct cpumask *scx_bpf_get_possible_cpumask(void);
const struct cpumask *scx_bpf_get_online_cpumask(void);
const struct cpumask *scx_bpf_get_idle_cpumask(void);
const struct cpumask *scx_bpf_get_idle_smtmask(void);
void scx_bpf_put_cpumask(const struct cpumask *mask);
void scx_bpf_put_idle_cpumask(const struct cpumask *mask);
void scx_bpf_events(struct scx_event_stats *events, size_t bytes);
/* For policies that track idle CPUs by node, which only Linux can. */
const struct cpumask *scx_bpf_get_idle_cpumask_node(int node);
const struct cpumask *scx_bpf_get_idle_smtmask_node(int node);
s32 scx_bpf_pick_idle_cpu_node(const struct cpumask *allowed, int node, u64 flags);
s32 scx_bpf_pick_any_cpu_node(const struct cpumask *allowed, int node, u64 flags);
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu);
s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags);
s32 scx_bpf_pick_any_cpu(const struct cpumask *allowed, u64 flags);
int sl_scx_cpu_llc_id(s32 cpu);
int sl_scx_cpu_llc_size(s32 cpu);
u32 scx_bpf_cpuperf_cap(s32 cpu);
u32 scx_bpf_cpuperf_cur(s32 cpu);
void scx_bpf_cpuperf_set(s32 cpu, u32 perf);

struct bpf_cpumask *bpf_cpumask_create(void);
void bpf_cpumask_release(struct bpf_cpumask *mask);
struct bpf_cpumask *bpf_cpumask_acquire(struct bpf_cpumask *mask);
u32 bpf_cpumask_first(const struct cpumask *mask);
u32 bpf_cpumask_first_zero(const struct cpumask *mask);
u32 bpf_cpumask_first_and(const struct cpumask *a, const struct cpumask *b);
u32 bpf_cpumask_any_distribute(const struct cpumask *mask);
u32 bpf_cpumask_any_and_distribute(const struct cpumask *a, const struct cpumask *b);
u32 bpf_cpumask_weight(const struct cpumask *mask);
void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask);
void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *mask);
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask);
bool bpf_cpumask_test_and_set_cpu(u32 cpu, struct bpf_cpumask *mask);
bool bpf_cpumask_test_and_clear_cpu(u32 cpu, struct bpf_cpumask *mask);
void bpf_cpumask_setall(struct bpf_cpumask *mask);
void bpf_cpumask_clear(struct bpf_cpumask *mask);
bool bpf_cpumask_and(struct bpf_cpumask *dst, const struct cpumask *a, const struct cpumask *b);
void bpf_cpumask_or(struct bpf_cpumask *dst, const struct cpumask *a, const struct cpumask *b);
void bpf_cpumask_xor(struct bpf_cpumask *dst, const struct cpumask *a, const struct cpumask *b);
bool bpf_cpumask_equal(const struct cpumask *a, const struct cpumask *b);
bool bpf_cpumask_intersects(const struct cpumask *a, const struct cpumask *b);
bool bpf_cpumask_subset(const struct cpumask *a, const struct cpumask *b);
bool bpf_cpumask_empty(const struct cpumask *mask);
bool bpf_cpumask_full(const struct cpumask *mask);
void bpf_cpumask_copy(struct bpf_cpumask *dst, const struct cpumask *src);
int bpf_cpumask_populate(struct cpumask *dst, const void *src, size_t bytes);
#define cast_mask(mask) ((const struct cpumask *)(mask))
void *sl_obj_new(u64 bytes);
void sl_obj_drop(void *object);
#define bpf_obj_new(type) ((type *)sl_obj_new(sizeof(type)))
#define bpf_obj_drop(object) sl_obj_drop(object)
int bpf_rbtree_add(struct bpf_rb_root *root, struct bpf_rb_node *node,
		   bool (*less)(struct bpf_rb_node *a, const struct bpf_rb_node *b));
struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node);
struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root);
#define bpf_kptr_xchg(slot, ptr) \
	__atomic_exchange_n((slot), (ptr), __ATOMIC_ACQ_REL)

/* ---- ending ------------------------------------------------------------ */

void sl_scx_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sl_scx_exit(s64 code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sl_scx_dump(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#define scx_bpf_error(fmt, ...) sl_scx_error(fmt "", ##__VA_ARGS__)
#define scx_bpf_exit(code, fmt, ...) sl_scx_exit((code), fmt "", ##__VA_ARGS__)
#define scx_bpf_dump(fmt, ...) sl_scx_dump(fmt "", ##__VA_ARGS__)

struct user_exit_info {
	int kind;
	s64 exit_code;
	char reason[128];
	char msg[SCX_EXIT_MSG_LEN];
};
void sl_uei_record(struct user_exit_info *uei, const struct scx_exit_info *ei);
#define UEI_DEFINE(name) struct user_exit_info name
#define UEI_RECORD(name, ei) sl_uei_record(&(name), (ei))

#endif
