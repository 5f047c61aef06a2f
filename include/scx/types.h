/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * types.h - what a policy sees of the kernel, on the hosts that are not Linux.
 *
 * The names, the meanings and (where a policy can observe them) the values are
 * those of Linux 7.2. On Linux itself this file is not used: bpf_types.h declares
 * the same types for CO-RE there. Structures hold the fields that policies read; a
 * host may rely on nothing else being here.
 *
 * Read next: ops.h, what is the same on both sides; native.h, the functions that
 * work on these types.
 */
#ifndef SCX_TYPES_H
#define SCX_TYPES_H

#include <stdint.h>

#include <scx/ops.h>

/* A long of Linux: 64 bits, also where the compiler's own has 32 (WebAssembly). */
typedef unsigned long sl_ulong __attribute__((mode(DI)));

struct cpumask {
	sl_ulong bits[SCX_CPUS_MAX / 64];
};
typedef struct cpumask cpumask_t;

/* A mask that a policy owns; cast to struct cpumask to read it, as on Linux. */
struct bpf_cpumask {
	struct cpumask cpumask;
	u32 usage;
};

/* Zeroed they are an empty tree, and a node in none. See bpf/objects.c. */
struct bpf_rb_node {
	struct bpf_rb_node *next;
	struct bpf_rb_node *prev;
	struct bpf_rb_root *root;
};

struct bpf_rb_root {
	struct bpf_rb_node *first;
	struct bpf_rb_node *last;
};

/* Dispatch queue ids: bit 63 marks built-in queues, bit 62 "local of CPU n". */
#define SCX_DSQ_FLAG_BUILTIN	(1ULL << 63)
#define SCX_DSQ_FLAG_LOCAL_ON	(1ULL << 62)
#define SCX_DSQ_INVALID		(SCX_DSQ_FLAG_BUILTIN | 0)
#define SCX_DSQ_GLOBAL		(SCX_DSQ_FLAG_BUILTIN | 1)
#define SCX_DSQ_LOCAL		(SCX_DSQ_FLAG_BUILTIN | 2)
#define SCX_DSQ_BYPASS		(SCX_DSQ_FLAG_BUILTIN | 3)
#define SCX_DSQ_LOCAL_ON	(SCX_DSQ_FLAG_BUILTIN | SCX_DSQ_FLAG_LOCAL_ON)
#define SCX_DSQ_LOCAL_CPU_MASK	0xffffffffULL

#define SCX_SLICE_DFL		(20ULL * 1000000)	/* ns */
#define SCX_SLICE_BYPASS	(5ULL * 1000000)	/* ns */
#define SCX_SLICE_INF		(~0ULL)

/* scx_wake_flags */
#define SCX_WAKE_FORK		0x04ULL
#define SCX_WAKE_TTWU		0x08ULL
#define SCX_WAKE_SYNC		0x10ULL

/* scx_enq_flags */
#define SCX_ENQ_WAKEUP		0x0001ULL
#define SCX_ENQ_HEAD		0x10000ULL
#define SCX_ENQ_CPU_SELECTED	0x100000ULL
#define SCX_ENQ_PREEMPT		(1ULL << 32)
#define SCX_ENQ_IMMED		(1ULL << 33)
#define SCX_ENQ_REENQ		(1ULL << 40)
#define SCX_ENQ_LAST		(1ULL << 41)

/* scx_deq_flags */
#define SCX_DEQ_SLEEP		0x0001ULL
#define SCX_DEQ_CORE_SCHED_EXEC	(1ULL << 32)
#define SCX_DEQ_SCHED_CHANGE	(1ULL << 33)

/* scx_kick_flags, scx_pick_idle_cpu_flags */
#define SCX_KICK_IDLE		(1ULL << 0)
#define SCX_KICK_PREEMPT	(1ULL << 1)
#define SCX_KICK_WAIT		(1ULL << 2)
#define SCX_PICK_IDLE_CORE	(1ULL << 0)
#define SCX_PICK_IDLE_IN_NODE	(1ULL << 1)

/* iterator flags of bpf_for_each(scx_dsq, ...) */
#define SCX_DSQ_ITER_REV	(1ULL << 16)

/* sched_ext_ops.flags */
#define SCX_OPS_KEEP_BUILTIN_IDLE	(1ULL << 0)
#define SCX_OPS_ENQ_LAST		(1ULL << 1)
#define SCX_OPS_ENQ_EXITING		(1ULL << 2)
#define SCX_OPS_ENQ_MIGRATION_DISABLED	(1ULL << 4)
#define SCX_OPS_ALLOW_QUEUED_WAKEUP	(1ULL << 5)	/* a permission; see S39 */
#define SCX_OPS_BUILTIN_IDLE_PER_NODE	(1ULL << 6)
#define SCX_OPS_ALWAYS_ENQ_IMMED	(1ULL << 7)
#define SCX_OPS_HAS_CGROUP_WEIGHT	0ULL	/* without effect, and gone from Linux */

/*
 * Flags that only Linux can do what they ask for: a policy that uses one does not
 * compile here, and the compiler says why.
 */
#define SL_ONLY_LINUX(why) \
	(0ULL * sizeof(struct { char unused; _Static_assert(0, why); }))
#define SCX_OPS_SWITCH_PARTIAL \
	SL_ONLY_LINUX("SCX_OPS_SWITCH_PARTIAL: every task here is the policy's")

/* sched_ext_entity.flags */
#define SCX_TASK_QUEUED			(1U << 0)
#define SCX_TASK_IMMED			(1U << 5)
#define SCX_TASK_REENQ_REASON_MASK	(3U << 12) /* one of these, while it is enqueued anew: */
#define SCX_TASK_REENQ_NONE		(0U << 12)
#define SCX_TASK_REENQ_KFUNC		(1U << 12)
#define SCX_TASK_REENQ_IMMED		(2U << 12)
#define SCX_TASK_REENQ_PREEMPTED	(3U << 12)

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	u64 flags;
	const char *reason;
	sl_ulong *bt;
	u32 bt_len;
	char *msg;
	char *dump;
	s32 exit_cpu; /* where it was found; -1: on none */
};

struct kernfs_node {
	const char *name; /* "" for the root */
	u64 id;		  /* 1 for the root */
};

/* What iterators go over: of each cgroup the one of its own. */
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent; /* NULL: the root's */
	struct {
		unsigned long percpu_count_ptr; /* 0: it is not being removed */
	} refcnt;
};

enum cgroup_subsys_id { cpuset_cgrp_id, CGROUP_SUBSYS_COUNT };

/*
 * The CPUs of a cgroup (S49). The mask is first: a scheduler that declares a type of its own
 * with this one member reads it there, where Linux would relocate the access.
 */
struct cpuset {
	struct cpumask cpus_allowed[1]; /* as configured; empty: those of its parent */
	struct cgroup_subsys_state css;
	const struct cpumask *effective_cpus;
};

#define SL_CGROUP_DEPTH_MAX 32
struct cgroup {
	struct kernfs_node *kn;
	union {
		struct cgroup_subsys_state self;
		struct task_group {
			struct cgroup_subsys_state css;
		} task_group[1];
	};
	struct cgroup_subsys_state *subsys[CGROUP_SUBSYS_COUNT]; /* NULL: it has none of its own */
	struct cgroup *dom_cgrp;				 /* itself: none is threaded */
	s32 level;						 /* 0 for the root */
	struct cgroup *ancestors[SL_CGROUP_DEPTH_MAX];		 /* by level, itself the last */
};

/* Where a task is. */
struct css_set {
	struct cgroup *dfl_cgrp;
};

struct cred {
	struct {
		u32 val;
	} uid, gid, euid, egid; /* 0: every task is root's */
};

struct list_head {
	struct list_head *next, *prev;
};

/* The threads of a process. */
struct signal_struct {
	struct list_head thread_head;
};

struct scx_cgroup_init_args {
	u32 weight; /* 1..10000, 100 by default */
	u64 bw_period_us;
	u64 bw_quota_us; /* of each period; ~0: no limit */
	u64 bw_burst_us;
};

struct scx_init_task_args {
	bool fork;	       /* the task is being created, not taken over */
	struct cgroup *cgroup; /* that it is in */
};

struct scx_exit_task_args {
	bool cancelled; /* the task ended before it was enabled */
};

enum scx_cpu_preempt_reason {
	SCX_CPU_PREEMPT_RT,
	SCX_CPU_PREEMPT_DL,
	SCX_CPU_PREEMPT_STOP,
	SCX_CPU_PREEMPT_UNKNOWN,
};

struct scx_cpu_acquire_args { };

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

/* The scheduling state of a task that a policy may read, and partly write. */
struct sched_ext_entity {
	u64 slice;     /* ns left; SCX_SLICE_INF never ends */
	u64 dsq_vtime; /* key of the last vtime insert; the policy's to keep */
	u32 flags;     /* SCX_TASK_* */
	u32 weight;    /* 1..10000, 100 is nice 0 */
	s32 sticky_cpu;
	s32 selected_cpu; /* what select_cpu last returned */
	u64 ddsp_dsq_id;  /* direct dispatch, or SCX_DSQ_INVALID; the core's */
	u64 ddsp_enq_flags;
	unsigned long runnable_at; /* since when it waits, in ticks of jiffies */
	bool disallow;		   /* set in init_task: an error, there is no other class */
};

struct sched_entity {
	u64 sum_exec_runtime; /* ns of CPU time so far */
};

/* What every switch touches comes first, so that it is in few cache lines. */
struct task_struct {
	struct sched_ext_entity scx;
	const cpumask_t *cpus_ptr; /* where the task may run */
	s32 nr_cpus_allowed;
	u16 migration_disabled;
	u16 __state; /* 0 runnable, 1 asleep, 0x80 ended (TASK_DEAD) */
	union {
		struct sched_entity se;
		u64 utime; /* ns: all of `se.sum_exec_runtime`, as none is in the kernel */
	};
	s32 pid;
	u32 flags;	 /* PF_* */
	sl_ulong nvcsw;	 /* voluntary switches: blocked or yielded */
	sl_ulong nivcsw; /* involuntary switches: preempted */

	union {
		struct task_struct *real_parent;
		struct task_struct *parent; /* no task here is traced by another */
	};
	union {
		struct task_struct *group_leader;
		struct mm_struct *mm; /* shared with threads of its group only */
	};
	u64 start_time; /* ns */
	s32 tgid;
	s32 prio;
	s32 static_prio; /* 120 + nice */
	s32 normal_prio;
	u32 policy;
	s32 numa_preferred_nid;				      /* -1: nothing here prefers a node */
	char comm[TASK_COMM_LEN] __attribute__((aligned(8))); /* written by words */
	struct css_set *cgroups; /* the lock of the task's CPU protects it */
	const struct cred *real_cred;
	union {
		struct mempolicy *mempolicy; /* NULL: memory has no nodes here */
		u64 stime;		     /* ns, in the kernel: 0, too */
	};
	const struct sched_class *sched_class; /* one for all */
	struct signal_struct *signal;
	struct list_head thread_node; /* in the list of `signal` */
};

#endif
