/* SPDX-License-Identifier: MIT */
/*
 * states.c - what happens to a task: it is woken, it runs, it stops, seen or unseen.
 *
 * Must stay true: RUN and STOP alternate for each task and each CPU.
 * Called by lives.c. Read next: output.c.
 */
#include "lives.h"

/* A switch this soon after sched_yield() is its doing; later ones are not. */
#define YIELD_NS_MAX 200000

void task_wakes(struct life *l, u64 t_ns, u16 cpu, u32 by)
{
	l->state = RUNNABLE;
	l->cpu = cpu;
	l->since_ns = t_ns;
	if (!c.has_begun)
		return;
	if (l->number) {
		output_put(t_ns, l->number, cpu, SL_RECORD_WAKE, 0, by);
		return;
	}
	l->number = ++c.nr_tasks;
	output_put(t_ns, l->number, cpu, SL_RECORD_ARRIVE, 0, by);
}

void task_runs(struct life *l, u64 t_ns, u16 cpu)
{
	l->state = RUNNING;
	l->cpu = cpu;
	l->since_ns = t_ns;
	l->started_ns = 0;
	l->yielded_ns = 0;
	l->woken_ns = 0;
	l->is_unwoken = l->left_unseen = false;
	c.cpus[cpu].accounted_ns = 0;
	c.cpus[cpu].life = (u32)(l - c.lives);
	c.cpus[cpu].outsider = 0;
	c.cpus[cpu].is_known = true;
	c.cpus[cpu].switched_ns = t_ns;
	if (c.has_begun)
		output_put(t_ns, l->number, cpu, SL_RECORD_RUN, 0, 0);
}

static void task_stops_at(struct life *l, u8 why, u64 t_ns)
{
	static const u8 after[] = {
		[SL_STOP_PREEMPTED] = RUNNABLE, [SL_STOP_YIELDED] = RUNNABLE,
		[SL_STOP_BLOCKED] = BLOCKED,	[SL_STOP_EXITED] = DEAD,
		[SL_STOP_HORIZON] = RUNNABLE,
	};

	l->state = after[why];
	c.cpus[l->cpu].life = 0;
	c.cpus[l->cpu].switched_ns = t_ns;
	if (c.has_begun)
		output_put(t_ns, l->number, l->cpu, SL_RECORD_STOP, why, t_ns - l->since_ns);
	l->since_ns = t_ns;
}

void task_stops(struct life *l, u8 why)
{
	task_stops_at(l, why, c.now_ns);
}

/*
 * No switch has told of @l's leaving, which was at @until_ns at the latest; its last
 * account says when. If it was woken since, or the idle task came next, it had blocked;
 * otherwise that is known when it is woken.
 */
void task_left_unseen(struct life *l, u8 why, u64 until_ns)
{
	u64 t_ns = c.cpus[l->cpu].accounted_ns, woken_ns = l->woken_ns;

	if (!t_ns)
		t_ns = why == SL_STOP_BLOCKED && woken_ns ? woken_ns : until_ns;
	if (t_ns > until_ns)
		t_ns = until_ns;
	if (woken_ns < t_ns)
		woken_ns = 0;
	task_stops_at(l, woken_ns ? SL_STOP_BLOCKED : why, t_ns);
	l->left_unseen = l->state == RUNNABLE;
	c.nr_wakeups += woken_ns && l->state == BLOCKED;
	if (woken_ns)
		task_wakes(l, woken_ns, l->cpu, l->woken_by);
}

void count_repair(void)
{
	c.nr_repairs += c.has_begun;
}

/*
 * @l runs on @cpu, and no switch has said so. It has since @t_ns at the latest,
 * but neither before it could nor before the CPU was last given to another.
 */
void task_ran_unseen(struct life *l, u16 cpu, u64 t_ns)
{
	const struct processor *p = &c.cpus[cpu];

	if (l->state == RUNNING && l->cpu == cpu)
		return;
	if (l->state == RUNNING) {
		count_repair();
		task_stops(l, SL_STOP_PREEMPTED);
		t_ns = c.now_ns;
	}
	if (!t_ns)
		t_ns = l->started_ns;
	c.nr_inferred += c.has_begun && p->is_known;
	if (t_ns < p->switched_ns)
		t_ns = p->switched_ns;
	if (t_ns < l->since_ns)
		t_ns = l->since_ns;
	if (l->state != RUNNABLE || (c.has_begun && !l->number))
		task_wakes(l, t_ns, cpu, 0);
	task_runs(l, t_ns, cpu);
}

u8 why_it_stops(const struct life *l, int32_t state)
{
	if (state & STATE_DEAD || (l->is_exiting && state & STATE_BLOCKED))
		return SL_STOP_EXITED;
	if (state & STATE_BLOCKED)
		return SL_STOP_BLOCKED;
	if (l->yielded_ns && c.now_ns - l->yielded_ns < YIELD_NS_MAX)
		return SL_STOP_YIELDED;
	return SL_STOP_PREEMPTED;
}
