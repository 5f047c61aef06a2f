/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * bpf.h - sched_ext's programming interface, for policies compiled for Linux.
 *
 * The counterpart of native.h: the same names, declared so that `clang -target
 * bpf` makes an object which a running kernel loads. It needs no header of the
 * kernel and none of libbpf.
 *
 * Linux renames functions now and then. Where it did, the newest name is tried
 * first and the old one is the fall-back; a "___suffix" after a function's name
 * is not part of the name that the loader looks up.
 *
 * Read next: policies/fifo.bpf.c, the shortest user.
 */
#ifndef SCX_BPF_H
#define SCX_BPF_H

#include <scx/bpf_types.h>

/* ---- the policy itself ------------------------------------------------- */

/*
 * The kernel calls a program with a pointer to an array of its arguments. The
 * function that the policy writes is the inner one, which has named arguments;
 * the outer one takes them out of the array. The pointers in between only keep
 * clang from asking whether an integer was meant.
 */
#define SL_PASS_0
#define SL_PASS_1 , (void *)sl_args[0]
#define SL_PASS_2 SL_PASS_1, (void *)sl_args[1]
#define SL_PASS_3 SL_PASS_2, (void *)sl_args[2]
#define SL_PASS_4 SL_PASS_3, (void *)sl_args[3]
#define SL_PASS_5 SL_PASS_4, (void *)sl_args[4]
#define SL_PASS_ARGS(...) SL_JOIN(SL_PASS_, SL_NR_ARGS(__VA_ARGS__))

#define SL_STRUCT_OPS(section, name, ...)				\
SEC(section #name) name(u64 *sl_args);					\
static __always_inline __typeof__(name(NULL))				\
sl_inner_##name(u64 *sl_args, ##__VA_ARGS__);				\
__typeof__(name(NULL)) name(u64 *sl_args)				\
{									\
	_Pragma("clang diagnostic push")				\
	_Pragma("clang diagnostic ignored \"-Wint-conversion\"")	\
	return sl_inner_##name(sl_args SL_PASS_ARGS(__VA_ARGS__));	\
	_Pragma("clang diagnostic pop")					\
}									\
static __always_inline __typeof__(name(NULL))				\
sl_inner_##name(u64 *sl_args __maybe_unused, ##__VA_ARGS__)

#define BPF_STRUCT_OPS(name, ...) \
	SL_STRUCT_OPS("struct_ops/", name, ##__VA_ARGS__)
#define BPF_STRUCT_OPS_SLEEPABLE(name, ...) \
	SL_STRUCT_OPS("struct_ops.s/", name, ##__VA_ARGS__)

#define SCX_OPS_DEFINE(name, ...) \
	SEC(".struct_ops.link") struct sched_ext_ops name = { __VA_ARGS__ }

/* ---- maps -------------------------------------------------------------- */

struct bpf_map;
#define __uint(name, val) int (*name)[val]
#define __type(name, val) __typeof__(val) *name
#define __array(name, val) __typeof__(val) *name[]

/* A helper of the kernel is called by its number. */
#define SL_HELPER(nr, type, name, ...) \
	static type (*const name)(__VA_ARGS__) __maybe_unused = (void *)nr

struct bpf_spin_lock {
	u32 val;
};
struct bpf_res_spin_lock {
	u32 val;
};
struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));
struct bpf_dynptr {
	u64 opaque[2];
} __attribute__((aligned(8)));

SL_HELPER(1, void *, bpf_map_lookup_elem, void *map, const void *key);
SL_HELPER(2, long, bpf_map_update_elem, void *map, const void *key, const void *value, u64 flags);
SL_HELPER(3, long, bpf_map_delete_elem, void *map, const void *key);
SL_HELPER(5, u64, bpf_ktime_get_ns, void);
SL_HELPER(7, u32, bpf_get_prandom_u32, void);
SL_HELPER(8, u32, bpf_get_smp_processor_id, void);
SL_HELPER(14, u64, bpf_get_current_pid_tgid, void);
SL_HELPER(55, long, bpf_perf_event_read_value, void *map, u64 flags,
	  struct bpf_perf_event_value *value, u32 bytes);
SL_HELPER(87, long, bpf_map_push_elem, void *map, const void *value, u64 flags);
SL_HELPER(88, long, bpf_map_pop_elem, void *map, void *value);
SL_HELPER(89, long, bpf_map_peek_elem, void *map, void *value);
SL_HELPER(93, long, bpf_spin_lock, struct bpf_spin_lock *lock);
SL_HELPER(94, long, bpf_spin_unlock, struct bpf_spin_lock *lock);
SL_HELPER(113, long, bpf_probe_read_kernel, void *dst, u32 bytes, const void *src);
SL_HELPER(115, long, bpf_probe_read_kernel_str, void *dst, u32 bytes, const void *src);
/* Linux's own of this name is not for sched_ext, and reads users' addresses, too. */
#define bpf_probe_read_str bpf_probe_read_kernel_str
#define bpf_core_read_str(dst, bytes, src)				\
	bpf_probe_read_kernel_str(dst, bytes, __builtin_preserve_access_index(src))
SL_HELPER(118, u64, bpf_jiffies64, void);
SL_HELPER(130, long, bpf_ringbuf_output, void *map, void *data, u64 bytes, u64 flags);
SL_HELPER(131, void *, bpf_ringbuf_reserve, void *map, u64 bytes, u64 flags);
SL_HELPER(132, void, bpf_ringbuf_submit, void *record, u64 flags);
SL_HELPER(133, void, bpf_ringbuf_discard, void *record, u64 flags);
SL_HELPER(134, u64, bpf_ringbuf_query, void *map, u64 flags);
SL_HELPER(153, void *, bpf_per_cpu_ptr, const void *per_cpu, u32 cpu);
SL_HELPER(182, long, bpf_strncmp, const char *text, u32 bytes, const char *other);
SL_HELPER(154, void *, bpf_this_cpu_ptr, const void *per_cpu);
SL_HELPER(156, void *, bpf_task_storage_get, void *map, struct task_struct *p, void *value,
	  u64 flags);
SL_HELPER(157, long, bpf_task_storage_delete, void *map, struct task_struct *p);
SL_HELPER(158, struct task_struct *, bpf_get_current_task_btf, void);
SL_HELPER(165, long, bpf_snprintf, char *to, u32 bytes, const char *fmt, const u64 *data,
	  u32 data_bytes);
SL_HELPER(169, long, bpf_timer_init, struct bpf_timer *timer, void *map, u64 flags);
SL_HELPER(170, long, bpf_timer_set_callback, struct bpf_timer *timer, void *callback);
SL_HELPER(171, long, bpf_timer_start, struct bpf_timer *timer, u64 nsecs, u64 flags);
SL_HELPER(172, long, bpf_timer_cancel, struct bpf_timer *timer);
SL_HELPER(177, long, bpf_trace_vprintk, const char *fmt, u32 fmt_bytes, const void *data,
	  u32 data_bytes);
SL_HELPER(181, long, bpf_loop, u32 nr_loops, void *callback, void *ctx, u64 flags);
SL_HELPER(194, void *, bpf_kptr_xchg, void *slot, void *ptr);
SL_HELPER(195, void *, bpf_map_lookup_percpu_elem, void *map, const void *key, u32 cpu);
SL_HELPER(201, long, bpf_dynptr_read, void *to, u32 bytes, const struct bpf_dynptr *ptr, u32 offset,
	  u64 flags);
SL_HELPER(203, void *, bpf_dynptr_data, const struct bpf_dynptr *ptr, u32 offset, u32 bytes);
SL_HELPER(209, long, bpf_user_ringbuf_drain, void *map, void *callback, void *ctx, u64 flags);
SL_HELPER(210, void *, bpf_cgrp_storage_get, void *map, struct cgroup *cgrp, void *value, u64 flags);
SL_HELPER(211, long, bpf_cgrp_storage_delete, void *map, struct cgroup *cgrp);

#ifndef CLOCK_MONOTONIC
#define CLOCK_MONOTONIC 1
#endif
#define BPF_F_TIMER_ABS 1
#define BPF_F_TIMER_CPU_PIN 2

#define bpf_core_read(dst, bytes, src)					\
	bpf_probe_read_kernel((dst), (bytes),				\
			      __builtin_preserve_access_index(src))
#define BPF_CORE_READ(src, a)						\
	({								\
		__typeof__((src)->a) ___value;				\
		bpf_core_read(&___value, sizeof(___value), &(src)->a);	\
		___value;						\
	})

/*
 * A pointer to a member or element that the verifier believes in, or NULL where
 * the index is out of range. In assembly, since a compiler may check one copy
 * of the index and use another, and the verifier then refuses the program.
 */
#define SL_CHECKED_PTR(start, off, last)				\
	({								\
		u64 ___start = (u64)(start);				\
		u64 ___off = (off);					\
		__asm__ volatile("if %0 > %2 goto 1f\n"			\
				 "%0 += %1\n"				\
				 "goto 2f\n"				\
				 "1: %0 = 0\n"				\
				 "2:\n"					\
				 : "+&r"(___off)				\
				 : "r"(___start), "ri"(last));		\
		___off;							\
	})
#define MEMBER_VPTR(base, member)					\
	((__typeof__((base)member) *)SL_CHECKED_PTR(			\
		&(base), (u64)&((base)member) - (u64)&(base),		\
		sizeof(base) - sizeof((base)member)))
#define ARRAY_ELEM_PTR(arr, i, n)					\
	((__typeof__(&(arr)[0]))SL_CHECKED_PTR(				\
		(arr), (u64)&(arr)[i] - (u64)(arr),			\
		sizeof((arr)[0]) * ((n) - 1)))

/* ---- loops and iterators ----------------------------------------------- */

struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));
int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym __weak;
int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym __weak;
void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym __weak;

struct bpf_iter_scx_dsq {
	u64 opaque[6];
} __attribute__((aligned(8)));
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym __weak;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym __weak;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym __weak;

/*
 * clang leaves a function that is named in a cleanup attribute only out of the
 * object's type information; naming it once more, as a value, puts it in.
 */
#define SL_ITER(type, ...)						\
	struct bpf_iter_##type ___it					\
		__attribute__((cleanup(bpf_iter_##type##_destroy))),	\
	*___unused __maybe_unused =					\
		(bpf_iter_##type##_new(&___it, __VA_ARGS__),		\
		 (void)bpf_iter_##type##_destroy, NULL)

/* The comparison tells the verifier what the iterator knows already. */
#define SL_NUM_NEXT(i, start, end)					\
	({								\
		int *___next = bpf_iter_num_next(&___it);		\
		int ___value = ___next ? *___next : 0;			\
		bool ___more = ___next && ___value >= (int)(start) &&	\
			       ___value < (int)(end);			\
		if (___more)						\
			(i) = ___value;					\
		___more;						\
	})
#define bpf_for(i, start, end) \
	for (SL_ITER(num, (start), (end)); SL_NUM_NEXT(i, start, end);)
#define BPF_MAX_LOOPS (8U << 20)
#define bpf_repeat(n) for (SL_ITER(num, 0, (n)); bpf_iter_num_next(&___it);)
#define bpf_for_each(type, cur, ...) \
	for (SL_ITER(type, __VA_ARGS__); ((cur) = bpf_iter_##type##_next(&___it));)
#define BPF_FOR_EACH_ITER (&___it)

/* True until the kernel decides that a loop has taken too long. */
#define can_loop							\
	({								\
		__label__ ___too_long, ___out;				\
		bool ___go_on = true;					\
		__asm__ goto("may_goto %l[___too_long]"			\
			     : : : : ___too_long);			\
		goto ___out;						\
	___too_long:							\
		___go_on = false;					\
	___out:								\
		___go_on;						\
	})

/* ---- tasks ------------------------------------------------------------- */

void bpf_rcu_read_lock(void) __ksym __weak;
void bpf_rcu_read_unlock(void) __ksym __weak;
int bpf_res_spin_lock(struct bpf_res_spin_lock *lock) __ksym __weak;
void bpf_res_spin_unlock(struct bpf_res_spin_lock *lock) __ksym __weak;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym __weak;
void bpf_task_release(struct task_struct *p) __ksym __weak;
bool scx_bpf_task_running(const struct task_struct *p) __ksym __weak;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym __weak;
struct task_struct *scx_bpf_cpu_curr(s32 cpu) __ksym __weak;
u64 scx_bpf_now___core(void) __ksym __weak;
bool scx_bpf_task_set_slice___core(struct task_struct *p, u64 slice) __ksym __weak;
bool scx_bpf_task_set_dsq_vtime___core(struct task_struct *p, u64 vtime) __ksym __weak;

/* Since 6.14. */
static inline u64 scx_bpf_now(void)
{
	return bpf_ksym_exists(scx_bpf_now___core) ? scx_bpf_now___core() : bpf_ktime_get_ns();
}

/* Since 6.19; before, policies wrote the field. */
static inline bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice___core))
		return scx_bpf_task_set_slice___core(p, slice);
	p->scx.slice = slice;
	return true;
}

static inline bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_task_set_dsq_vtime___core))
		return scx_bpf_task_set_dsq_vtime___core(p, vtime);
	p->scx.dsq_vtime = vtime;
	return true;
}

/*
 * Entering a program may itself disable migration of the current task, once;
 * for that task a count of one says nothing.
 */
static inline bool is_migration_disabled(const struct task_struct *p)
{
	if (!bpf_core_field_exists(p->migration_disabled))
		return false;
	if (p->migration_disabled == 1)
		return bpf_get_current_task_btf() != p;
	return p->migration_disabled;
}

/*
 * x86 keeps the nesting of interrupts in a variable of each CPU: from bit 8 on
 * 1 for a software interrupt that is served, from bit 16 on hardware interrupts.
 * Elsewhere it cannot be told, and the answer is the one that claims nothing.
 */
extern const int __preempt_count __ksym __weak;
static inline bool bpf_in_task(void)
{
	if (!bpf_ksym_exists(&__preempt_count))
		return false;
	return !(*(const int *)bpf_this_cpu_ptr(&__preempt_count) & 0xff0100);
}

/* ---- dispatch queues --------------------------------------------------- */

struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym __weak;
void scx_bpf_destroy_dsq(u64 dsq_id) __ksym __weak;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym __weak;
struct task_struct *scx_bpf_dsq_peek(u64 dsq_id) __ksym __weak;
u32 scx_bpf_dispatch_nr_slots(void) __ksym __weak;
void scx_bpf_dispatch_cancel(void) __ksym __weak;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
		      u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
			    u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice) __ksym __weak;
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime) __ksym __weak;

bool scx_bpf_dsq_insert___v2___core(struct task_struct *p, u64 dsq_id, u64 slice,
				    u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_insert___core(struct task_struct *p, u64 dsq_id, u64 slice,
			       u64 enq_flags) __ksym __weak;
bool __scx_bpf_dsq_insert_vtime(struct task_struct *p,
				struct scx_bpf_dsq_insert_vtime_args *args) __ksym __weak;
void scx_bpf_dsq_insert_vtime___core(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
				     u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___v2___core(u64 dsq_id, u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___core(u64 dsq_id) __ksym __weak;
void scx_bpf_reenqueue_local___v2___core(void) __ksym __weak;
u32 scx_bpf_reenqueue_local___v1(void) __ksym __weak;

/*
 * Macros, not functions: the verifier and the kernel's stacks then name the line
 * of the policy, not one of this file.
 *
 * The form that returns whether the insertion took place came with 6.19.
 */
#define scx_bpf_dsq_insert(p, dsq_id, slice, enq_flags)			\
	({								\
		bool ___is_in = true;					\
		if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___core))	\
			___is_in = scx_bpf_dsq_insert___v2___core(	\
				(p), (dsq_id), (slice), (enq_flags));	\
		else							\
			scx_bpf_dsq_insert___core((p), (dsq_id), (slice), \
						  (enq_flags));		\
		___is_in;						\
	})

#define scx_bpf_dsq_insert_vtime(p, dsq_id_, slice_, vtime_, enq_flags_) \
	({								\
		bool ___is_in = true;					\
		if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime)) {	\
			struct scx_bpf_dsq_insert_vtime_args ___args = { \
				.dsq_id = (dsq_id_),			\
				.slice = (slice_),			\
				.vtime = (vtime_),			\
				.enq_flags = (enq_flags_),		\
			};						\
			___is_in = __scx_bpf_dsq_insert_vtime((p), &___args); \
		} else {						\
			scx_bpf_dsq_insert_vtime___core(		\
				(p), (dsq_id_), (slice_), (vtime_), (enq_flags_)); \
		}							\
		___is_in;						\
	})

/* Flags came with 7.1; earlier kernels and sources give the queue alone. */
#define SL_MOVE_TO_LOCAL(dsq_id, enq_flags, ...)			\
	(bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___core) ?	\
	 scx_bpf_dsq_move_to_local___v2___core((dsq_id), (enq_flags)) :	\
	 scx_bpf_dsq_move_to_local___core(dsq_id))
#define scx_bpf_dsq_move_to_local(...) SL_MOVE_TO_LOCAL(__VA_ARGS__, 0, 0)

/* The newer form works later, and so does not know how many there were: 0. */
static inline u32 scx_bpf_reenqueue_local(void)
{
	if (bpf_ksym_exists(scx_bpf_reenqueue_local___v2___core)) {
		scx_bpf_reenqueue_local___v2___core();
		return 0;
	}
	return scx_bpf_reenqueue_local___v1();
}

/* ---- CPUs -------------------------------------------------------------- */

struct scx_bpf_select_cpu_and_args {
	s32 prev_cpu;
	u64 wake_flags;
	u64 flags;
};

u32 scx_bpf_nr_cpu_ids(void) __ksym __weak;
u32 scx_bpf_nr_node_ids(void) __ksym __weak;
s32 scx_bpf_cpu_node(s32 cpu) __ksym __weak;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym __weak;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   bool *is_idle) __ksym __weak;
s32 __scx_bpf_select_cpu_and(struct task_struct *p, const struct cpumask *cpus_allowed,
			     struct scx_bpf_select_cpu_and_args *args) __ksym __weak;
s32 scx_bpf_select_cpu_and___core(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				  const struct cpumask *cpus_allowed, u64 flags) __ksym __weak;
const struct cpumask *scx_bpf_get_possible_cpumask(void) __ksym __weak;
const struct cpumask *scx_bpf_get_online_cpumask(void) __ksym __weak;
const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym __weak;
const struct cpumask *scx_bpf_get_idle_smtmask(void) __ksym __weak;
void scx_bpf_put_cpumask(const struct cpumask *mask) __ksym __weak;
void scx_bpf_put_idle_cpumask(const struct cpumask *mask) __ksym __weak;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym __weak;
s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags) __ksym __weak;
void scx_bpf_events(struct scx_event_stats *events, unsigned long events__sz) __ksym __weak;
const struct cpumask *scx_bpf_get_idle_cpumask_node(int node) __ksym __weak;
const struct cpumask *scx_bpf_get_idle_smtmask_node(int node) __ksym __weak;
s32 scx_bpf_pick_idle_cpu_node(const struct cpumask *allowed, int node, u64 flags) __ksym __weak;
s32 scx_bpf_pick_any_cpu_node(const struct cpumask *allowed, int node, u64 flags) __ksym __weak;
s32 scx_bpf_pick_any_cpu(const struct cpumask *allowed, u64 flags) __ksym __weak;
u32 scx_bpf_cpuperf_cap(s32 cpu) __ksym __weak;
u32 scx_bpf_cpuperf_cur(s32 cpu) __ksym __weak;
void scx_bpf_cpuperf_set(s32 cpu, u32 perf) __ksym __weak;

static inline s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
					 const struct cpumask *cpus_allowed, u64 flags)
{
	if (bpf_ksym_exists(__scx_bpf_select_cpu_and)) {
		struct scx_bpf_select_cpu_and_args args = {
			.prev_cpu = prev_cpu,
			.wake_flags = wake_flags,
			.flags = flags,
		};

		return __scx_bpf_select_cpu_and(p, cpus_allowed, &args);
	}
	return scx_bpf_select_cpu_and___core(p, prev_cpu, wake_flags, cpus_allowed, flags);
}

void *bpf_obj_new_impl(u64 type_id, void *unused) __ksym __weak;
void bpf_obj_drop_impl(void *object, void *unused) __ksym __weak;
int bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node,
			bool (*less)(struct bpf_rb_node *a, const struct bpf_rb_node *b),
			void *unused, u64 unused_too) __ksym __weak;
struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root,
				      struct bpf_rb_node *node) __ksym __weak;
struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root) __ksym __weak;
#define bpf_obj_new(type) \
	((type *)bpf_obj_new_impl(__builtin_btf_type_id(*(type *)0, 0), NULL))
#define bpf_obj_drop(object) bpf_obj_drop_impl((object), NULL)
#define bpf_rbtree_add(root, node, less) \
	bpf_rbtree_add_impl((root), (node), (less), NULL, 0)
struct cgroup *scx_bpf_task_cgroup(struct task_struct *p) __ksym __weak;
struct cgroup *bpf_cgroup_from_id(u64 id) __ksym __weak;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, s32 level) __ksym __weak;
struct cgroup *bpf_cgroup_acquire(struct cgroup *cgrp) __ksym __weak;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym __weak;

enum bpf_cgroup_iter_order {
	BPF_CGROUP_ITER_DESCENDANTS_PRE = 2,
	BPF_CGROUP_ITER_DESCENDANTS_POST = 3,
};
struct bpf_iter_css {
	u64 opaque[3];
} __attribute__((aligned(8)));
int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start,
		     u32 flags) __ksym __weak;
struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it) __ksym __weak;
void bpf_iter_css_destroy(struct bpf_iter_css *it) __ksym __weak;
struct bpf_cpumask *bpf_cpumask_create(void) __ksym __weak;
void bpf_cpumask_release(struct bpf_cpumask *mask) __ksym __weak;
struct bpf_cpumask *bpf_cpumask_acquire(struct bpf_cpumask *mask) __ksym __weak;
u32 bpf_cpumask_first(const struct cpumask *mask) __ksym __weak;
u32 bpf_cpumask_first_zero(const struct cpumask *mask) __ksym __weak;
u32 bpf_cpumask_first_and(const struct cpumask *a, const struct cpumask *b) __ksym __weak;
u32 bpf_cpumask_any_distribute(const struct cpumask *mask) __ksym __weak;
u32 bpf_cpumask_any_and_distribute(const struct cpumask *a, const struct cpumask *b) __ksym __weak;
u32 bpf_cpumask_weight(const struct cpumask *mask) __ksym __weak;
void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask) __ksym __weak;
void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *mask) __ksym __weak;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym __weak;
bool bpf_cpumask_test_and_set_cpu(u32 cpu, struct bpf_cpumask *mask) __ksym __weak;
bool bpf_cpumask_test_and_clear_cpu(u32 cpu, struct bpf_cpumask *mask) __ksym __weak;
void bpf_cpumask_setall(struct bpf_cpumask *mask) __ksym __weak;
void bpf_cpumask_clear(struct bpf_cpumask *mask) __ksym __weak;
bool bpf_cpumask_and(struct bpf_cpumask *dst, const struct cpumask *a,
		     const struct cpumask *b) __ksym __weak;
void bpf_cpumask_or(struct bpf_cpumask *dst, const struct cpumask *a,
		    const struct cpumask *b) __ksym __weak;
void bpf_cpumask_xor(struct bpf_cpumask *dst, const struct cpumask *a,
		     const struct cpumask *b) __ksym __weak;
bool bpf_cpumask_equal(const struct cpumask *a, const struct cpumask *b) __ksym __weak;
bool bpf_cpumask_intersects(const struct cpumask *a, const struct cpumask *b) __ksym __weak;
bool bpf_cpumask_subset(const struct cpumask *a, const struct cpumask *b) __ksym __weak;
bool bpf_cpumask_empty(const struct cpumask *mask) __ksym __weak;
bool bpf_cpumask_full(const struct cpumask *mask) __ksym __weak;
void bpf_cpumask_copy(struct bpf_cpumask *dst, const struct cpumask *src) __ksym __weak;
int bpf_cpumask_populate(struct cpumask *dst, const void *src, unsigned long src__sz) __ksym __weak;
#define cast_mask(mask) ((const struct cpumask *)(mask))

/* ---- text and ending --------------------------------------------------- */

void scx_bpf_error_bstr(char *fmt, u64 *data, u32 data__sz) __ksym __weak;
void scx_bpf_exit_bstr(s64 exit_code, char *fmt, u64 *data, u32 data__sz) __ksym __weak;
void scx_bpf_dump_bstr(char *fmt, u64 *data, u32 data__sz) __ksym __weak;

/* The arguments of a text as the array of u64 that the kernel wants. */
#define SL_U64_0() 0
#define SL_U64_1(a) (u64)(a)
#define SL_U64_2(a, ...) (u64)(a), SL_U64_1(__VA_ARGS__)
#define SL_U64_3(a, ...) (u64)(a), SL_U64_2(__VA_ARGS__)
#define SL_U64_4(a, ...) (u64)(a), SL_U64_3(__VA_ARGS__)
#define SL_U64_5(a, ...) (u64)(a), SL_U64_4(__VA_ARGS__)
#define SL_U64_6(a, ...) (u64)(a), SL_U64_5(__VA_ARGS__)
#define SL_U64_7(a, ...) (u64)(a), SL_U64_6(__VA_ARGS__)
#define SL_U64_8(a, ...) (u64)(a), SL_U64_7(__VA_ARGS__)
#define SL_U64_9(a, ...) (u64)(a), SL_U64_8(__VA_ARGS__)
#define SL_U64_10(a, ...) (u64)(a), SL_U64_9(__VA_ARGS__)
#define SL_U64_11(a, ...) (u64)(a), SL_U64_10(__VA_ARGS__)
#define SL_U64_12(a, ...) (u64)(a), SL_U64_11(__VA_ARGS__)
#define SL_U64_ARRAY(...) \
	{ SL_JOIN(SL_U64_, SL_NR_ARGS(__VA_ARGS__))(__VA_ARGS__) }

static inline
	__attribute__((format(printf, 1, 2))) void sl_check_format(const char *fmt __maybe_unused,
								   ...)
{
}

/* The kernel writes to neither, but wants both where it could write. */
#define SL_TEXT(fmt, ...)						\
	static char ___fmt[] = fmt;					\
	u64 ___data[] = SL_U64_ARRAY(__VA_ARGS__);			\
	if (0)								\
		sl_check_format(fmt, ##__VA_ARGS__)
#define scx_bpf_error(fmt, ...)						\
	({								\
		SL_TEXT(fmt, ##__VA_ARGS__);				\
		scx_bpf_error_bstr(___fmt, ___data, sizeof(___data));	\
	})
#define scx_bpf_exit(code, fmt, ...)					\
	({								\
		SL_TEXT(fmt, ##__VA_ARGS__);				\
		scx_bpf_exit_bstr((code), ___fmt, ___data,		\
				  sizeof(___data));			\
	})
#define scx_bpf_dump(fmt, ...)						\
	({								\
		SL_TEXT(fmt, ##__VA_ARGS__);				\
		scx_bpf_dump_bstr(___fmt, ___data, sizeof(___data));	\
	})
#define bpf_printk(fmt, ...)						\
	({								\
		SL_TEXT(fmt, ##__VA_ARGS__);				\
		bpf_trace_vprintk(___fmt, sizeof(___fmt), ___data,	\
				  sizeof(___data));			\
	})

/* What the loader reads after the policy has ended; the same as native. */
struct user_exit_info {
	int kind;
	s64 exit_code;
	char reason[128];
	char msg[SCX_EXIT_MSG_LEN];
};
#define UEI_DEFINE(name) struct user_exit_info name SEC(".data")

/* The kind comes last: the loader waits for it to be other than 0. */
#define UEI_RECORD(uei, ei)						\
	({								\
		bpf_probe_read_kernel_str((uei).reason,			\
					  sizeof((uei).reason),		\
					  (ei)->reason);		\
		bpf_probe_read_kernel_str((uei).msg, sizeof((uei).msg),	\
					  (ei)->msg);			\
		(uei).exit_code = (ei)->exit_code;			\
		WRITE_ONCE((uei).kind, (ei)->kind);			\
	})

#endif
