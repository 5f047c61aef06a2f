/* SPDX-License-Identifier: MIT */
/*
 * laws.c - one pass over a world's records: is there anything to be looked at?
 *
 * It decides nothing. What it suspects is run again and judged by
 * python/schedlab/metrics/consistency.py, which says what is broken; so it may
 * suspect too much, and never too little. The laws are those of that file, but for the
 * work that a program declares.
 *
 * Read next: worlds.c, the caller.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "program.h"

#define CPUS_MAX 64	/* bits of a task's mask; more are suspect */

enum state { ABSENT, WAITS, RUNS, BLOCKED, ENDED, CUT };

struct course {
	u8 state;
	u16 cpu;
	u64 since_ns;
	u64 allowed;	      /* CPUs */
	bool is_mask_changed; /* in the run: it may run anywhere, and no CPU is idle beside it */
};

static struct course *tasks; /* of the program */
static struct {
	u32 running;	/* pid, or 0 */
	u32 nr_waiting; /* tasks that wait and may run there */
	u64 busy_ns;
} cpus[CPUS_MAX];
static struct check_shown shown;
static u64 now_ns;

static u64 mask_of(const struct sl_program_task *task)
{
	const u64 *words = sl_program_values(sim.program) + task->affinity;

	return task->affinity == SL_PROGRAM_NONE || !task->affinity_words ? ~0ULL : words[0];
}

/* Which CPUs each may have, by the program; of one whose mask changes that is not known. */
static void find_masks(void)
{
	const struct sl_program_task *programs = sl_program_tasks(sim.program);

	for (u32 i = 0; i < sim.nr_tasks; i++)
		tasks[i].allowed = mask_of(&programs[i]);
	for (u32 i = 0; i < sim.nr_tasks; i++) {
		const struct sl_program_op *op = sl_program_ops(sim.program) + programs[i].op_first;

		for (const struct sl_program_op *end = op + programs[i].nr_ops; op < end; op++) {
			struct course *t;

			if (op->verb != SL_VERB_CHANGE || op->slot != SL_CHANGE_AFFINITY)
				continue;
			t = &tasks[op->a == SL_PROGRAM_NONE ? i : op->a];
			t->allowed = ~0ULL;
			t->is_mask_changed = true;
		}
	}
}

/* Time moves to @t_ns: meanwhile no CPU may have been idle beside a task that waits. */
static void move_to(u64 t_ns)
{
	if (t_ns == now_ns)
		return;
	for (u32 i = 0; i < sim.options->nr_cpus; i++)
		shown.is_wasteful |= !cpus[i].running && cpus[i].nr_waiting;
	shown.is_suspect |= t_ns < now_ns;
	now_ns = t_ns;
}

static void set_waiting(struct course *t, bool is_waiting)
{
	u64 waited_ns = now_ns - t->since_ns;

	for (u32 i = 0; i < sim.options->nr_cpus && !t->is_mask_changed; i++)
		cpus[i].nr_waiting += t->allowed >> i & 1 ? (is_waiting ? 1U : -1U) : 0;
	if (!is_waiting && waited_ns > shown.longest_wait_ns)
		shown.longest_wait_ns = waited_ns;
	t->since_ns = now_ns;
}

static void enter(struct course *t, enum state state)
{
	if (t->state == WAITS)
		set_waiting(t, false);
	t->state = state;
	if (state == WAITS)
		set_waiting(t, true);
}

static void stop(struct course *t, const struct sl_record *r)
{
	static const u8 after[] = {
		[SL_STOP_PREEMPTED] = WAITS, [SL_STOP_YIELDED] = WAITS, [SL_STOP_BLOCKED] = BLOCKED,
		[SL_STOP_EXITED] = ENDED,    [SL_STOP_HORIZON] = CUT,
	};

	shown.is_suspect |= t->state != RUNS || t->cpu != r->cpu ||
			    cpus[r->cpu].running != r->task || now_ns - t->since_ns != r->arg ||
			    r->flags > SL_STOP_HORIZON;
	cpus[r->cpu].running = 0;
	cpus[r->cpu].busy_ns += r->arg;
	if (r->flags <= SL_STOP_HORIZON)
		enter(t, after[r->flags]);
}

static void take(const struct sl_record *r)
{
	const struct sl_program_task *programs = sl_program_tasks(sim.program);
	struct course *t;

	if (r->task < 1 || r->task > sim.nr_tasks || r->cpu >= sim.options->nr_cpus) {
		shown.is_suspect = true;
		return;
	}
	t = &tasks[r->task - 1];
	switch (r->kind) {
	case SL_RECORD_ARRIVE:
		shown.is_suspect |= t->state != ABSENT ||
				    (programs[r->task - 1].arrival_ns != ~0ULL &&
				     programs[r->task - 1].arrival_ns != r->t_ns);
		enter(t, WAITS);
		break;
	case SL_RECORD_WAKE:
		shown.is_suspect |= t->state != BLOCKED;
		enter(t, WAITS);
		break;
	case SL_RECORD_RUN:
		shown.is_suspect |= t->state != WAITS || cpus[r->cpu].running ||
				    !(t->allowed >> r->cpu & 1);
		enter(t, RUNS);
		t->cpu = r->cpu;
		t->since_ns = now_ns;
		cpus[r->cpu].running = r->task;
		break;
	case SL_RECORD_STOP:
		stop(t, r);
		break;
	default:
		break;
	}
}

/* All that should have come has come; each has ended, or the horizon has cut it off. */
static void check_ends(void)
{
	const struct sl_program_task *programs = sl_program_tasks(sim.program);
	u64 horizon_ns = sl_program_header(sim.program)->horizon_ns;
	bool is_cut = horizon_ns && now_ns >= horizon_ns;

	for (u32 i = 0; i < sim.nr_tasks; i++) {
		u64 arrival_ns = programs[i].arrival_ns;

		if (tasks[i].state == ABSENT)
			shown.is_suspect |= arrival_ns == ~0ULL ? !is_cut : arrival_ns < now_ns;
		else
			shown.is_suspect |= is_cut ? tasks[i].state == RUNS :
						     tasks[i].state != ENDED;
		enter(&tasks[i], ABSENT);
	}
	for (u32 i = 0; i < sim.options->nr_cpus; i++)
		shown.is_suspect |= cpus[i].busy_ns != sim.cpus[i].busy_ns;
}

bool check_has_steady_mask(u32 task, u64 *allowed)
{
	*allowed = tasks[task].allowed;
	return !tasks[task].is_mask_changed;
}

/* Of the run that has just ended. */
struct check_shown check_laws(const struct sl_record *records, u64 nr)
{
	tasks = calloc(sim.nr_tasks, sizeof(*tasks));
	if (!tasks || sim.options->nr_cpus > CPUS_MAX) {
		shown.is_suspect = true;
		return shown;
	}
	find_masks();
	for (u64 i = 0; i < nr; i++) {
		const struct sl_record *r = &records[i];
		u64 words[3];

		memcpy(words, r, sizeof(words));
		shown.hash = check_mix(check_mix(check_mix(shown.hash, words[0]), words[1]),
				       words[2]);
		move_to(r->t_ns);
		/* Here switches take no time: the user half of a policy does, and a higher class. */
		shown.is_suspect |= r->kind == SL_RECORD_LOST || (r->kind == SL_RECORD_OVERHEAD &&
								  r->flags != SL_OVERHEAD_STOLEN);
		if (r->kind <= SL_RECORD_STOP)
			take(r);
	}
	move_to(sim.result->end_ns);
	check_ends();
	return shown;
}
