/* SPDX-License-Identifier: MIT */
/*
 * random_policy.h - what the policies of random operations have in common.
 *
 * The callbacks check that the core tells a policy a consistent story;
 * random_policies.c has them.
 *
 * Read next: random_policies.c.
 */
#ifndef RANDOM_POLICY_H
#define RANDOM_POLICY_H

#include "random_ops.h"
#include <scx/common.bpf.h>

#define SHARED_DSQ 100
#define OTHER_DSQ 101
#define CPU_DSQ 200		/* + number of the CPU */
#define BRIEF_DSQ 300		/* + 0 to 3; empty, now and then */
#define SLICE_NS 200000

static inline void count(enum count what)
{
	__atomic_fetch_add(&random_counts[what], 1, __ATOMIC_RELAXED);
}

static inline u32 below(u32 limit)
{
	return (u32)(((u64)bpf_get_prandom_u32() * limit) >> 32);
}

static inline struct model_task *model(struct task_struct *p)
{
	return (struct model_task *)p;
}

struct context {
	u64 vtime;
	u32 magic;
};

struct random_contexts {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct context);
};
extern struct random_contexts contexts;

#define CONTEXT_MAGIC 0x5ced

void seen_runnable(struct task_struct *p, u64 enq_flags);
void seen_running(struct task_struct *p);
void seen_stopping(struct task_struct *p, bool runnable);
void seen_quiescent(struct task_struct *p, u64 deq_flags);
void seen_dequeue(struct task_struct *p, u64 deq_flags);
void seen_custody(struct task_struct *p);
s32 seen_init_task(struct task_struct *p, struct scx_init_task_args *args);
void seen_exit_task(struct task_struct *p, struct scx_exit_task_args *args);
s32 create_dsqs(void);
s32 default_select_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
void kick_idle(struct task_struct *p);

#define SEEN						\
	.runnable = seen_runnable,			\
	.stopping = seen_stopping,			\
	.quiescent = seen_quiescent,			\
	.dequeue = seen_dequeue,			\
	.init_task = seen_init_task,			\
	.exit_task = seen_exit_task,			\
	.timeout_ms = 30000

extern struct sched_ext_ops pids_ops, late_ops, faulty_ops;

/* Forget what an earlier start left in the globals of random_held.c. */
void random_held_reset(void);

#endif
