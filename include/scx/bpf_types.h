/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * bpf_types.h - what a policy sees of the kernel, on Linux itself.
 *
 * The counterpart of types.h. Structures are partial: the loader finds each
 * field by its name in the running kernel (CO-RE), so that one object works on
 * every kernel that has the fields. Enumerators that a policy computes with are
 * looked up in the same way; those that C wants as constants (flags inside
 * SCX_OPS_DEFINE, array sizes, `case` labels) are plain enumerators, with the
 * values of Linux 7.2.
 *
 * Read next: bpf.h, the functions that work on these types.
 */
#ifndef SCX_BPF_TYPES_H
#define SCX_BPF_TYPES_H

#include <scx/ops.h>
#include <scx/words.h>

/* ---- compiler words ---------------------------------------------------- */

#define SEC(name) __attribute__((section(name), used))
#define __ksym __attribute__((section(".ksyms")))
#define __kconfig __attribute__((section(".kconfig")))
#define __kptr __attribute__((btf_type_tag("kptr")))
#define __percpu __attribute__((btf_type_tag("percpu")))
#define __rcu __attribute__((btf_type_tag("rcu")))
#define __contains(type, node) \
	__attribute__((btf_decl_tag("contains:" #type ":" #node)))
#define __arg_trusted __attribute__((btf_decl_tag("arg:trusted")))
#define __arg_nullable __attribute__((btf_decl_tag("arg:nullable")))
/* A lock outside a map must have a data section of its own. */
#define private(name) \
	SEC(".data." #name) __hidden __attribute__((aligned(8)))

/* The n-th argument and the number of arguments (0 to 12) of a macro. */
#define SL_ARG_13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, n, ...) n
#define SL_NR_ARGS(...) \
	SL_ARG_13(_, ##__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define SL_JOIN_(a, b) a##b
#define SL_JOIN(a, b) SL_JOIN_(a, b)

/* ---- CO-RE ------------------------------------------------------------- */

/* Numbers that clang's relocation builtins and the loader agree on. */
#define SL_CORE_FIELD_EXISTS 2
#define SL_CORE_TYPE_EXISTS 0
#define SL_CORE_ENUMVAL_EXISTS 0
#define SL_CORE_ENUMVAL_VALUE 1

#define bpf_ksym_exists(sym) (!!(void *)(sym))
#define bpf_core_type_exists(type) \
	__builtin_preserve_type_info(*(type *)0, SL_CORE_TYPE_EXISTS)
#define SL_CORE_FIELD_1(field) \
	__builtin_preserve_field_info(field, SL_CORE_FIELD_EXISTS)
#define SL_CORE_FIELD_2(type, field) SL_CORE_FIELD_1(((type *)0)->field)
#define bpf_core_field_exists(...) \
	SL_JOIN(SL_CORE_FIELD_, SL_NR_ARGS(__VA_ARGS__))(__VA_ARGS__)

/*
 * For the enumerators declared below with "___core" (which is not part of the
 * name that is looked up). The plain name is a macro, hence the two names.
 */
#define bpf_core_enum_value_exists(type, value)				\
	__builtin_preserve_enum_value(*(type *)value##___core,		\
				      SL_CORE_ENUMVAL_EXISTS)
#define bpf_core_enum_value(type, value)				\
	__builtin_preserve_enum_value(*(type *)value##___core,		\
				      SL_CORE_ENUMVAL_VALUE)
/* A flag that the running kernel does not have is 0 there. */
#define SL_CORE_FLAG(type, value)					\
	(bpf_core_enum_value_exists(enum type, value) ?			\
	 bpf_core_enum_value(enum type, value) : 0ULL)

/* ---- types ------------------------------------------------------------- */

enum scx_ops_flags {
	SCX_OPS_KEEP_BUILTIN_IDLE = 1ULL << 0,
	SCX_OPS_ENQ_LAST = 1ULL << 1,
	SCX_OPS_ENQ_EXITING = 1ULL << 2,
	SCX_OPS_SWITCH_PARTIAL = 1ULL << 3,
	SCX_OPS_ENQ_MIGRATION_DISABLED = 1ULL << 4,
	SCX_OPS_ALLOW_QUEUED_WAKEUP = 1ULL << 5,
	SCX_OPS_BUILTIN_IDLE_PER_NODE = 1ULL << 6,
	SCX_OPS_ALWAYS_ENQ_IMMED = 1ULL << 7,
	SCX_OPS_HAS_CGROUP_WEIGHT = 0, /* without effect, and gone from Linux */
};

enum scx_ent_flags {
	SCX_TASK_QUEUED = 1U << 0,
	SCX_TASK_IMMED = 1U << 5,
	SCX_TASK_REENQ_REASON_MASK = 3U << 12,
	SCX_TASK_REENQ_NONE = 0U << 12,
	SCX_TASK_REENQ_KFUNC = 1U << 12,
	SCX_TASK_REENQ_IMMED = 2U << 12,
	SCX_TASK_REENQ_PREEMPTED = 3U << 12,
};

enum scx_dsq_iter_flags {
	SCX_DSQ_ITER_REV = 1U << 16,
};

enum scx_dsq_id_flags {
	SCX_DSQ_FLAG_BUILTIN___core = 1ULL << 63,
	SCX_DSQ_FLAG_LOCAL_ON___core = 1ULL << 62,
	SCX_DSQ_INVALID___core = 1ULL << 63,
	SCX_DSQ_GLOBAL___core = 1ULL << 63 | 1,
	SCX_DSQ_LOCAL___core = 1ULL << 63 | 2,
	SCX_DSQ_BYPASS___core = 1ULL << 63 | 3,
	SCX_DSQ_LOCAL_ON___core = 3ULL << 62,
	SCX_DSQ_LOCAL_CPU_MASK___core = 0xffffffffULL,
};
#define SL_DSQ_ID(name) bpf_core_enum_value(enum scx_dsq_id_flags, name)
#define SCX_DSQ_FLAG_BUILTIN	SL_DSQ_ID(SCX_DSQ_FLAG_BUILTIN)
#define SCX_DSQ_FLAG_LOCAL_ON	SL_DSQ_ID(SCX_DSQ_FLAG_LOCAL_ON)
#define SCX_DSQ_INVALID		SL_DSQ_ID(SCX_DSQ_INVALID)
#define SCX_DSQ_GLOBAL		SL_DSQ_ID(SCX_DSQ_GLOBAL)
#define SCX_DSQ_LOCAL		SL_DSQ_ID(SCX_DSQ_LOCAL)
#define SCX_DSQ_BYPASS		SL_DSQ_ID(SCX_DSQ_BYPASS)
#define SCX_DSQ_LOCAL_ON	SL_DSQ_ID(SCX_DSQ_LOCAL_ON)
#define SCX_DSQ_LOCAL_CPU_MASK	SL_DSQ_ID(SCX_DSQ_LOCAL_CPU_MASK)

enum scx_public_consts {
	SCX_SLICE_DFL___core = 20ULL * 1000000,
	SCX_SLICE_BYPASS___core = 5ULL * 1000000,
	SCX_SLICE_INF___core = ~0ULL,
};
#define SL_SLICE(name) bpf_core_enum_value(enum scx_public_consts, name)
#define SCX_SLICE_DFL		SL_SLICE(SCX_SLICE_DFL)
#define SCX_SLICE_BYPASS	SL_CORE_FLAG(scx_public_consts, SCX_SLICE_BYPASS)
#define SCX_SLICE_INF		SL_SLICE(SCX_SLICE_INF)

enum scx_wake_flags {
	SCX_WAKE_FORK___core = 0x04,
	SCX_WAKE_TTWU___core = 0x08,
	SCX_WAKE_SYNC___core = 0x10,
};
#define SCX_WAKE_FORK		SL_CORE_FLAG(scx_wake_flags, SCX_WAKE_FORK)
#define SCX_WAKE_TTWU		SL_CORE_FLAG(scx_wake_flags, SCX_WAKE_TTWU)
#define SCX_WAKE_SYNC		SL_CORE_FLAG(scx_wake_flags, SCX_WAKE_SYNC)

enum scx_enq_flags {
	SCX_ENQ_WAKEUP___core = 1ULL << 0,
	SCX_ENQ_HEAD___core = 1ULL << 16,
	SCX_ENQ_CPU_SELECTED___core = 1ULL << 20,
	SCX_ENQ_PREEMPT___core = 1ULL << 32,
	SCX_ENQ_IMMED___core = 1ULL << 33,
	SCX_ENQ_REENQ___core = 1ULL << 40,
	SCX_ENQ_LAST___core = 1ULL << 41,
};
#define SCX_ENQ_WAKEUP		SL_CORE_FLAG(scx_enq_flags, SCX_ENQ_WAKEUP)
#define SCX_ENQ_HEAD		SL_CORE_FLAG(scx_enq_flags, SCX_ENQ_HEAD)
#define SCX_ENQ_CPU_SELECTED	SL_CORE_FLAG(scx_enq_flags, SCX_ENQ_CPU_SELECTED)
#define SCX_ENQ_PREEMPT		SL_CORE_FLAG(scx_enq_flags, SCX_ENQ_PREEMPT)
#define SCX_ENQ_IMMED		SL_CORE_FLAG(scx_enq_flags, SCX_ENQ_IMMED)
#define SCX_ENQ_REENQ		SL_CORE_FLAG(scx_enq_flags, SCX_ENQ_REENQ)
#define SCX_ENQ_LAST		SL_CORE_FLAG(scx_enq_flags, SCX_ENQ_LAST)

enum scx_deq_flags {
	SCX_DEQ_SLEEP___core = 1ULL << 0,
	SCX_DEQ_CORE_SCHED_EXEC___core = 1ULL << 32,
	SCX_DEQ_SCHED_CHANGE___core = 1ULL << 33,
};
#define SCX_DEQ_SLEEP		SL_CORE_FLAG(scx_deq_flags, SCX_DEQ_SLEEP)
#define SCX_DEQ_CORE_SCHED_EXEC	SL_CORE_FLAG(scx_deq_flags, SCX_DEQ_CORE_SCHED_EXEC)
#define SCX_DEQ_SCHED_CHANGE	SL_CORE_FLAG(scx_deq_flags, SCX_DEQ_SCHED_CHANGE)

enum scx_kick_flags {
	SCX_KICK_IDLE___core = 1U << 0,
	SCX_KICK_PREEMPT___core = 1U << 1,
	SCX_KICK_WAIT___core = 1U << 2,
};
#define SCX_KICK_IDLE		SL_CORE_FLAG(scx_kick_flags, SCX_KICK_IDLE)
#define SCX_KICK_PREEMPT	SL_CORE_FLAG(scx_kick_flags, SCX_KICK_PREEMPT)
#define SCX_KICK_WAIT		SL_CORE_FLAG(scx_kick_flags, SCX_KICK_WAIT)

enum scx_pick_idle_cpu_flags {
	SCX_PICK_IDLE_CORE___core = 1U << 0,
	SCX_PICK_IDLE_IN_NODE___core = 1U << 1,
};
#define SCX_PICK_IDLE_CORE \
	SL_CORE_FLAG(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_CORE)
#define SCX_PICK_IDLE_IN_NODE \
	SL_CORE_FLAG(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_IN_NODE)

/* What is in a policy's own structures, of the size that Linux says. */
struct bpf_rb_root {
	u64 opaque[2];
} __attribute__((aligned(8)));

struct bpf_rb_node {
	u64 opaque[4];
} __attribute__((aligned(8)));

/* From here on, every field access is relocated to the running kernel. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[SCX_CPUS_MAX / (8 * sizeof(unsigned long))];
};
typedef struct cpumask cpumask_t;

struct bpf_cpumask {
	cpumask_t cpumask;
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	u64 flags;
	const char *reason;
	unsigned long *bt;
	u32 bt_len;
	char *msg;
	char *dump;
	s32 exit_cpu;
};

struct kernfs_node {
	const char *name;
	u64 id;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup *dom_cgrp;
	s32 level;
	struct cgroup *ancestors[];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us;
	u64 bw_quota_us;
	u64 bw_burst_us;
};

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};

struct scx_exit_task_args {
	bool cancelled;
};

enum scx_cpu_preempt_reason {
	SCX_CPU_PREEMPT_RT,
	SCX_CPU_PREEMPT_DL,
	SCX_CPU_PREEMPT_STOP,
	SCX_CPU_PREEMPT_UNKNOWN,
};

struct scx_cpu_release_args {
	enum scx_cpu_preempt_reason reason;
	struct task_struct *task;
};

struct scx_dump_ctx {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	u64 at_ns;
	u64 at_jiffies;
};

struct sched_ext_entity {
	u64 slice;
	u64 dsq_vtime;
	u32 flags;
	u32 weight;
	s32 sticky_cpu;
	s32 selected_cpu;
	bool disallow;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct task_struct {
	struct sched_ext_entity scx;
	const cpumask_t *cpus_ptr;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct sched_entity se;
	u64 start_time;
	u64 utime;
	u64 stime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	s32 pid;
	s32 tgid;
	u32 flags;
	s32 prio;
	s32 static_prio;
	s32 normal_prio;
	u32 policy;
	int numa_preferred_nid;
	u32 __state;
	struct mm_struct *mm;
	s32 nr_cpus_allowed;
	u16 migration_disabled;
	char comm[TASK_COMM_LEN];
	struct css_set *cgroups;
};

#pragma clang attribute pop

#endif
