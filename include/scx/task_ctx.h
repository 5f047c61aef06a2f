/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * task_ctx.h - what a policy keeps for each task: its `struct task_ctx`.
 *
 *	struct task_ctx {
 *		u64 used_ns;
 *	};
 *	DEFINE_TASK_CTX(struct task_ctx);
 *
 * defines the map and
 *
 *	task_ctx(p)             the task's context; NULL: ops.init_task has not been called
 *	create_task_ctx(p)      for ops.init_task; all 0; NULL: no memory
 *	prev_task_ctx(prev, cpu)  for ops.dispatch; NULL: @prev does not continue on @cpu
 *
 * Read next: policies/sjf.bpf.c, a small user.
 */
#ifndef SCX_TASK_CTX_H
#define SCX_TASK_CTX_H

#include <scx/common.bpf.h>

/* Whether the task that ran before wants to run on, and may on @cpu. */
static inline bool may_continue(struct task_struct *prev, s32 cpu)
{
	return prev && (prev->scx.flags & SCX_TASK_QUEUED) &&
	       bpf_cpumask_test_cpu(cpu, prev->cpus_ptr);
}

#define DEFINE_TASK_CTX(ctx_type)					\
struct {								\
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);			\
	__uint(map_flags, BPF_F_NO_PREALLOC);				\
	__type(key, int);						\
	__type(value, ctx_type);					\
} task_ctxs SEC(".maps");						\
									\
static inline ctx_type *task_ctx(struct task_struct *p)			\
{									\
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);		\
}									\
									\
static inline ctx_type *create_task_ctx(struct task_struct *p)		\
{									\
	return bpf_task_storage_get(&task_ctxs, p, NULL,		\
				    BPF_LOCAL_STORAGE_GET_F_CREATE);	\
}									\
									\
static inline ctx_type *prev_task_ctx(struct task_struct *prev, s32 cpu) \
{									\
	return may_continue(prev, cpu) ? task_ctx(prev) : NULL;		\
}									\
static inline ctx_type *task_ctx(struct task_struct *p) /* ; */

/*
 * CPU time of @p since *@exec_ns, which is brought up to date. sum_exec_runtime is
 * current in ops.running, ops.stopping, ops.tick and, of @prev, in ops.dispatch.
 */
static inline u64 exec_ns_since(const struct task_struct *p, u64 *exec_ns)
{
	u64 since_ns = p->se.sum_exec_runtime - *exec_ns;

	*exec_ns = p->se.sum_exec_runtime;
	return since_ns;
}

/*
 * For ops.yield: to no task in particular, by an end of the slice. *@has_yielded
 * tells ops.dispatch, where this task would be the first again.
 */
static inline bool yield_slice(struct task_struct *from, struct task_struct *to, bool *has_yielded)
{
	if (to)
		return false;
	if (has_yielded)
		*has_yielded = true;
	scx_bpf_task_set_slice(from, 0);
	return true;
}

#endif
