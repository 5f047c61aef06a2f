/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ops.h - the types of sched_ext that are the same on Linux and on other hosts:
 * above all struct sched_ext_ops, which is what a policy is.
 *
 * Included by types.h and bpf_types.h, which declare what its callbacks are given,
 * each for its side.
 *
 * Read next: types.h.
 */
#ifndef SCX_OPS_H
#define SCX_OPS_H

#include <stdbool.h>
#include <stddef.h>

/* A published scheduler need not define the types below again. */
#define __VMLINUX_H__

/* As in Linux a u64 is a long long, so that "%llu" fits it on every host. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
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
#define SCX_EXIT_MSG_LEN 1024
#define SCX_CPUPERF_ONE 1024

#define PF_IDLE		0x00000002
#define PF_EXITING	0x00000004
#define PF_IO_WORKER	0x00000010
#define PF_WQ_WORKER	0x00000020
#define PF_KCOMPACTD	0x00010000
#define PF_KSWAPD	0x00020000
#define PF_KTHREAD	0x00200000

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

/* Of exit_code; Linux has these names. */
#define SCX_ECODE_RSN_HOTPLUG	(1LL << 32)
#define SCX_ECODE_ACT_RESTART	(1LL << 48)

/* How often the core did what a policy may not expect; S43. */
struct scx_event_stats {
	s64 SCX_EV_SELECT_CPU_FALLBACK; /* the CPU of ops.select_cpu() was not allowed */
	s64 SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE;
	s64 SCX_EV_DISPATCH_KEEP_LAST;
	s64 SCX_EV_ENQ_SKIP_EXITING;
	s64 SCX_EV_ENQ_SKIP_MIGRATION_DISABLED;
	s64 SCX_EV_REENQ_IMMED;
	s64 SCX_EV_REENQ_LOCAL_REPEAT;
	s64 SCX_EV_REFILL_SLICE_DFL;
	s64 SCX_EV_BYPASS_DURATION;
	s64 SCX_EV_BYPASS_DISPATCH;
	s64 SCX_EV_BYPASS_ACTIVATE;
};

struct cgroup;
struct cpumask;
struct scx_cgroup_init_args;
struct scx_cpu_acquire_args;
struct scx_cpu_release_args;
struct scx_dump_ctx;
struct scx_exit_info;
struct scx_exit_task_args;
struct scx_init_task_args;
struct task_struct;

/*
 * The operations of a policy. Every member may be absent. docs/semantics.md
 * says when each is called; Linux's header says it for Linux, where the loader
 * copies the members that are set to the kernel's, by name.
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
	/* A higher class gives a CPU back, or takes it: --above, and worlds of `schedlab check` (S46). */
	void (*cpu_acquire)(s32 cpu, struct scx_cpu_acquire_args *args);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	/* For what no host here has: core scheduling. */
	bool (*core_sched_before)(struct task_struct *a, struct task_struct *b);
	/* --offline, and worlds of `schedlab check` (S47). */
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	s32 (*cgroup_prep_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_cancel_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch; /* 0: 32 */
	u64 flags;		/* SCX_OPS_* */
	u32 timeout_ms;		/* watchdog; 0: 30,000; more is refused */
	u32 exit_dump_len;
	u64 hotplug_seq;
	char name[128];
};

#endif
