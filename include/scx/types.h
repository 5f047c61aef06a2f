/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * types.h - what a policy sees of the kernel, on the hosts that are not Linux.
 *
 * The names, the meanings and (where a policy can observe them) the values are
 * those of Linux 7.2. On Linux itself this file is not used: bpf.h declares the
 * same types for CO-RE there. Structures hold the fields that policies read; a
 * host may rely on nothing else being here.
 *
 * Read next: native.h, the functions that work on these types.
 */
#ifndef SCX_TYPES_H
#define SCX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in Linux a u64 is a long long, so that "%llu" fits it on every host. */
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;

#define SCX_CPUS_MAX 1024
#define TASK_COMM_LEN 16

struct cpumask {
	unsigned long bits[SCX_CPUS_MAX / (8 * sizeof(unsigned long))];
};
typedef struct cpumask cpumask_t;

/* A mask that a policy owns; cast to struct cpumask to read it, as on Linux. */
struct bpf_cpumask {
	struct cpumask cpumask;
	u32 usage;
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
#define SCX_EXIT_MSG_LEN	1024
#define SCX_CPUPERF_ONE		1024

/* scx_wake_flags */
#define SCX_WAKE_FORK		0x04ULL
#define SCX_WAKE_TTWU		0x08ULL
#define SCX_WAKE_SYNC		0x10ULL

/* scx_enq_flags */
#define SCX_ENQ_WAKEUP		0x0001ULL
#define SCX_ENQ_HEAD		0x10000ULL
#define SCX_ENQ_CPU_SELECTED	0x100000ULL
#define SCX_ENQ_PREEMPT		(1ULL << 32)
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
#define SCX_OPS_SWITCH_PARTIAL		(1ULL << 3)
#define SCX_OPS_ENQ_MIGRATION_DISABLED	(1ULL << 4)
#define SCX_OPS_ALLOW_QUEUED_WAKEUP	(1ULL << 5)
#define SCX_OPS_BUILTIN_IDLE_PER_NODE	(1ULL << 6)

/* sched_ext_entity.flags */
#define SCX_TASK_QUEUED		(1U << 0)

enum scx_exit_kind {
	SCX_EXIT_NONE,
	SCX_EXIT_DONE,
	SCX_EXIT_UNREG = 64,
	SCX_EXIT_UNREG_BPF,
	SCX_EXIT_UNREG_KERN,
	SCX_EXIT_SYSRQ,
	SCX_EXIT_PARENT,
	SCX_EXIT_ERROR = 1024,
	SCX_EXIT_ERROR_BPF,
	SCX_EXIT_ERROR_STALL,
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
};

struct scx_init_task_args {
	bool fork;		/* the task is being created, not taken over */
};

struct scx_exit_task_args {
	bool cancelled;		/* the task ended before it was enabled */
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
	u64 slice;		/* ns left; SCX_SLICE_INF never ends */
	u64 dsq_vtime;		/* key of the last vtime insert; the policy's to keep */
	u32 flags;		/* SCX_TASK_* */
	u32 weight;		/* 1..10000, 100 is nice 0 */
	s32 sticky_cpu;
	s32 selected_cpu;	/* what select_cpu last returned */
	bool disallow;		/* set in init_task: not for this scheduler */
};

struct sched_entity {
	u64 sum_exec_runtime;	/* ns of CPU time so far */
};

#define PF_IDLE		0x00000002
#define PF_EXITING	0x00000004
#define PF_KTHREAD	0x00200000

struct task_struct {
	struct sched_ext_entity scx;
	const cpumask_t *cpus_ptr;	/* where the task may run */
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct sched_entity se;
	u64 start_time;			/* ns */
	unsigned long nvcsw;		/* voluntary switches: blocked or yielded */
	unsigned long nivcsw;		/* involuntary switches: preempted */
	s32 pid;
	s32 tgid;
	u32 flags;			/* PF_* */
	s32 prio;
	s32 static_prio;		/* 120 + nice */
	s32 normal_prio;
	u32 policy;
	s32 nr_cpus_allowed;
	char comm[TASK_COMM_LEN];
	u16 migration_disabled;
};

/*
 * The operations of a policy. Every member may be absent. docs/semantics.md
 * says when each is called; Linux's header says it for Linux.
 */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	void (*update_idle)(s32 cpu, bool idle);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;		/* 0: 32 */
	u64 flags;			/* SCX_OPS_* */
	u32 timeout_ms;			/* watchdog; 0: 30,000; more is refused */
	u32 exit_dump_len;
	u64 hotplug_seq;
	char name[128];
};

#endif
