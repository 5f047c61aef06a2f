/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * burst.h - what sjf and srtf know of a task's burst: how much of it is left.
 *
 * A burst is the CPU time from a wake-up to the next sleep. Its length is the task's
 * attribute `burst`; where none was declared it is predicted from the task's past
 * bursts, by exponential averaging, with the policy's knobs alpha_percent and
 * initial_ns:
 *
 *	prediction := alpha * last burst + (1 - alpha) * prediction
 *
 * A burst that outlives its length by some time is taken to have as much time left
 * again: a wrong prediction costs a little, and then more and more other tasks pass.
 *
 * Included after these knobs. Read next: policies/sjf.bpf.c.
 */
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

struct task_ctx {
	u64 predicted_ns; /* length of its next burst */
	u64 used_ns;	  /* of the present burst */
	u64 exec_ns;	  /* its CPU time when it was last charged */
	bool has_yielded;
};
DEFINE_TASK_CTX(struct task_ctx);

/* How much of its burst @p has left. Context: it is charged. */
static u64 left_ns(struct task_struct *p, const struct task_ctx *tc)
{
	struct task_attr *attr = task_attr(p);
	u64 burst_ns = tc->predicted_ns;

	if (task_attr_given(attr, TASK_ATTR_BURST) && attr->burst_ns)
		burst_ns = attr->burst_ns;
	return burst_ns > tc->used_ns ? burst_ns - tc->used_ns : tc->used_ns - burst_ns;
}

/* For ops.quiescent. What is merely changed while it is runnable keeps its burst. */
static void end_burst(struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc || !(deq_flags & SCX_DEQ_SLEEP))
		return;
	tc->predicted_ns = (tc->used_ns * alpha_percent + tc->predicted_ns * (100 - alpha_percent)) /
			   100;
	tc->used_ns = 0;
}

/* For ops.init_task. */
static s32 init_burst(struct task_struct *p)
{
	struct task_ctx *tc = create_task_ctx(p);

	if (!tc)
		return -ENOMEM;
	tc->predicted_ns = initial_ns;
	return 0;
}
