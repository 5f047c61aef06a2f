/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * rt.h - the real-time policies, rt_fifo and rt_rr: they differ by the slice alone.
 *
 * One queue for all CPUs, in the order of levels, 0 the highest, and of arrival
 * within a level. With n CPUs, the n highest of the runnable tasks run: one that
 * becomes runnable preempts the lowest at once, on whichever CPU that runs.
 *
 *	woken, new, yielded, slice used up --> tail of its level
 *	preempted                          --> head of its level, before its equals
 *
 * The level is the task's priority, as in policies/priority.bpf.c and inside Linux.
 * Callers of Linux count the other way, from 1 to 99, the highest: rt_priority=1
 * reads it like that. Without attributes the level follows nice: one level per
 * factor of two in weight, from default_level.
 *
 * Included after the constants that it reads: slice_ns (0: no slices), default_level
 * and rt_priority. Read next: policies/rt_fifo.bpf.c.
 */
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/level.h>
#include <scx/running.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

#define RT_DSQ 0
#define NR_LEVELS 99
#define RT_PRIORITY_MAX 99

/* Order within the queue: the level, then the place in it, heads below the middle. */
#define LEVEL_SHIFT 48
#define PLACE_MIDDLE (1ULL << (LEVEL_SHIFT - 1))

struct task_ctx {
	u64 exec_ns; /* its CPU time when it was last charged */
	u64 used_ns; /* of its slice; less than that */
	u32 level;
	bool is_slice_over; /* its slice is used up, or it yielded */
	bool was_preempted; /* and so is to be queued at the head */
};
DEFINE_TASK_CTX(struct task_ctx);

/* Tasks that were ever put at a tail, or at a head; atomic. */
static u64 nr_tails, nr_heads;

static u32 own_level(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);

	if (rt_priority && task_attr_given(attr, TASK_ATTR_PRIORITY))
		return clamp_level((s64)RT_PRIORITY_MAX - attr->priority, NR_LEVELS);
	return task_level(p, attr, default_level, NR_LEVELS);
}

/* Charge the CPU time since the last call. */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	tc->used_ns += exec_ns_since(p, &tc->exec_ns);
	if (!slice_ns || tc->used_ns < slice_ns)
		return;
	tc->used_ns = 0;
	tc->is_slice_over = true;
}

static u64 slice_left_ns(const struct task_ctx *tc)
{
	return slice_ns ? slice_ns - tc->used_ns : SCX_SLICE_INF;
}

static bool is_level_queued_above(s32 cpu, u32 end)
{
	return is_queued_before(RT_DSQ, cpu, (u64)end << LEVEL_SHIFT);
}

s32 BPF_STRUCT_OPS(rt_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_only(p, prev_cpu, wake_flags);
}

void BPF_STRUCT_OPS(rt_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	u64 place;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	tc->level = own_level(p);
	if (tc->was_preempted)
		place = PLACE_MIDDLE - __sync_fetch_and_add(&nr_heads, 1);
	else
		place = PLACE_MIDDLE + 1 + __sync_fetch_and_add(&nr_tails, 1);
	tc->was_preempted = false;
	tc->is_slice_over = false;
	scx_bpf_dsq_insert_vtime(p, RT_DSQ, slice_left_ns(tc),
				 ((u64)tc->level << LEVEL_SHIFT) + place, enq_flags);
	preempt_last(p, tc->level, 0);
}

/*
 * Its equals go before @prev only if its slice is over. When there is nothing to run,
 * @prev included, the CPU is noted as idle.
 */
void BPF_STRUCT_OPS(rt_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);

	if (!prev || !tc) {
		if (!take_and_preempt(RT_DSQ, cpu, LEVEL_SHIFT, NR_LEVELS, 0))
			note_idle(cpu);
		return;
	}
	charge(prev, tc);
	if (is_level_queued_above(cpu, tc->level + tc->is_slice_over) &&
	    take_and_preempt(RT_DSQ, cpu, LEVEL_SHIFT, NR_LEVELS, 0))
		return;
	/* It continues, with the policy's slice and not of the kernel's length. */
	tc->is_slice_over = false;
	scx_bpf_task_set_slice(prev, slice_left_ns(tc));
	note_running(cpu, tc->level, 0);
}

/*
 * Called when it comes to run, and also when its weight was changed meanwhile: it
 * may have to be preempted at once. Not where others wait in the local queue, as tasks
 * do that must not migrate: they would be next, and preempted as well, without end.
 */
void BPF_STRUCT_OPS(rt_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!tc)
		return;
	tc->exec_ns = p->se.sum_exec_runtime;
	tc->level = own_level(p);
	note_running(cpu, tc->level, 0);
	if (is_level_queued_above(cpu, tc->level) &&
	    !scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | (u64)cpu))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* A task that is stopped within its slice goes to the head of its level. */
void BPF_STRUCT_OPS(rt_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	charge(p, tc);
	tc->was_preempted = runnable && !tc->is_slice_over;
}

/*
 * For a priority that another program wrote into the map while it ran (S36); and
 * for a wake-up that crossed another CPU's choice, see running.h.
 */
void BPF_STRUCT_OPS(rt_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!tc)
		return;
	tc->level = own_level(p);
	note_running(cpu, tc->level, 0);
	if (is_level_queued_above(cpu, tc->level))
		scx_bpf_task_set_slice(p, 0);
}

bool BPF_STRUCT_OPS(rt_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	return yield_slice(from, to, tc ? &tc->is_slice_over : NULL);
}

s32 BPF_STRUCT_OPS(rt_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return create_task_ctx(p) ? 0 : -ENOMEM;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rt_init)
{
	return scx_bpf_create_dsq(RT_DSQ, -1);
}

/* A task that exits is not left behind one that runs without a slice. */
#define RT_OPS							\
	.select_cpu = (void *)rt_select_cpu,			\
	.enqueue = (void *)rt_enqueue,				\
	.dispatch = (void *)rt_dispatch,			\
	.running = (void *)rt_running,				\
	.stopping = (void *)rt_stopping,			\
	.tick = (void *)rt_tick,				\
	.yield = (void *)rt_yield,				\
	.init_task = (void *)rt_init_task,			\
	.init = (void *)rt_init,				\
	.flags = SCX_OPS_ENQ_EXITING
