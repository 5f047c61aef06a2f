/* SPDX-License-Identifier: MIT */
/*
 * promises.c - how near a world came to what the policy's header rules out.
 *
 *	--promise shares:KEY:NS		two tasks that always want to run: how far from their parts
 *	--promise priority:KEY:NS	a task that waits: how long less urgent tasks run on its CPUs
 *
 * KEY is enum task_attr_key, NS what is allowed. As laws.c it decides nothing: what is beyond is
 * run again and decided by python/schedlab/check/shares.py and priorities.py, with the same sums.
 *
 * Read next: worlds.c, the caller.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <scx/types.h>
#include <scx/attrs.h>

#include "check.h"
#include "program.h"

#define PERMILLE 1000
#define NEVER (~0ULL)
#define LAST_RANK (1LL << 62)	/* of a task without deadline: after all others */

struct rival {
	u64 ran_ns, since_ns; /* it runs since then, or it did */
	s64 rank;	      /* the smaller, the more urgent */
	u64 behind_ns;	      /* less urgent tasks have run since then; NEVER: none runs */
	u64 allowed;	      /* CPUs */
	u64 weight;
	bool wants, runs, waits;
	bool is_ranked;
};

/* What the first has gained on the second since both want to run. */
struct pair {
	u64 had_ns[2];
	double low_ns, high_ns;
};

static struct rival *rivals; /* of the program */
static struct pair *pairs;   /* [first][second] */
static u32 key;
static u64 now_ns;

static u64 had_ns(const struct rival *t)
{
	return t->ran_ns + (t->runs ? now_ns - t->since_ns : 0);
}

/* ---- shares -------------------------------------------------------------------------- */

static struct pair *pair_of(u32 *first, u32 *second)
{
	if (*first > *second) {
		u32 other = *first;

		*first = *second;
		*second = other;
	}
	return &pairs[*first * sim.nr_tasks + *second];
}

static void begin_pairs(u32 task)
{
	for (u32 i = 0; i < sim.nr_tasks; i++) {
		u32 first = task, second = i;
		struct pair *p = pair_of(&first, &second);

		if (i == task || !rivals[i].wants)
			continue;
		p->had_ns[0] = had_ns(&rivals[first]);
		p->had_ns[1] = had_ns(&rivals[second]);
	}
}

/* Return: how far @task and another are from their parts of what both have had, at most. */
static double look_at_pairs(u32 task)
{
	double widest_ns = 0;

	for (u32 i = 0; i < sim.nr_tasks; i++) {
		u32 first = task, second = i;
		struct pair *p = pair_of(&first, &second);
		double one, other, gained_ns;
		u64 sum = rivals[first].weight + rivals[second].weight;

		if (i == task || !rivals[i].wants || !sum)
			continue;
		one = (double)(had_ns(&rivals[first]) - p->had_ns[0]);
		other = (double)(had_ns(&rivals[second]) - p->had_ns[1]);
		gained_ns = one - (one + other) * (double)rivals[first].weight / (double)sum;
		p->low_ns = gained_ns < p->low_ns ? gained_ns : p->low_ns;
		p->high_ns = gained_ns > p->high_ns ? gained_ns : p->high_ns;
		if (p->high_ns - p->low_ns > widest_ns)
			widest_ns = p->high_ns - p->low_ns;
	}
	return widest_ns;
}

static double take_for_shares(const struct sl_record *r)
{
	u32 task = r->task - 1;
	struct rival *t = &rivals[task];
	double widest_ns;

	now_ns = r->t_ns;
	if (r->kind == SL_RECORD_ARRIVE) {
		t->wants = true;
		begin_pairs(task);
	}
	if (!t->wants)
		return 0;
	if (r->kind == SL_RECORD_STOP) {
		t->ran_ns = had_ns(t);
		t->runs = false;
	} else if (r->kind == SL_RECORD_RUN) {
		t->runs = true;
		t->since_ns = now_ns;
	}
	widest_ns = look_at_pairs(task);
	if (r->kind == SL_RECORD_STOP)
		t->wants = r->flags == SL_STOP_PREEMPTED || r->flags == SL_STOP_HORIZON;
	return widest_ns;
}

/* ---- priority ------------------------------------------------------------------------ */

/* Until @t_ns nothing changes. Return: for how long a task has been behind less urgent ones, at most. */
static u64 wait_until(u64 t_ns, const u32 *running)
{
	u64 longest_ns = 0;

	for (struct rival *t = rivals; t < rivals + sim.nr_tasks && t_ns > now_ns; t++) {
		bool is_behind = false;

		for (u32 cpu = 0; t->waits && t->is_ranked && cpu < sim.options->nr_cpus; cpu++) {
			const struct rival *other = running[cpu] ? &rivals[running[cpu] - 1] : NULL;

			is_behind |= other && other->is_ranked && other->rank > t->rank &&
				     t->allowed >> cpu & 1;
		}
		if (!is_behind)
			t->behind_ns = NEVER;
		else if (t->behind_ns == NEVER)
			t->behind_ns = now_ns;
		if (is_behind && t_ns - t->behind_ns > longest_ns)
			longest_ns = t_ns - t->behind_ns;
	}
	now_ns = t_ns;
	return longest_ns;
}

static void take_for_priority(const struct sl_record *r, u32 *running)
{
	struct rival *t = &rivals[r->task - 1];

	if (r->kind == SL_RECORD_ARRIVE || r->kind == SL_RECORD_WAKE) {
		t->waits = true;
		if (key == TASK_ATTR_DEADLINE && t->is_ranked) {
			u64 deadline_ns = sl_program_tasks(sim.program)[r->task - 1].deadline_ns;

			t->rank = deadline_ns ? (s64)(r->t_ns + deadline_ns) : LAST_RANK;
		}
	} else if (r->kind == SL_RECORD_RUN) {
		t->waits = false;
		t->behind_ns = NEVER;
		running[r->cpu] = r->task;
	} else if (r->kind == SL_RECORD_STOP) {
		t->waits = r->flags == SL_STOP_PREEMPTED || r->flags == SL_STOP_YIELDED;
		running[r->cpu] = 0;
	}
}

/* ---- a world ------------------------------------------------------------------------- */

/* Tasks whose attribute changes in the run: how urgent they are then is not known. */
static void leave_out_changed(void)
{
	const struct sl_program_task *programs = sl_program_tasks(sim.program);

	for (u32 i = 0; i < sim.nr_tasks; i++) {
		const struct sl_program_op *op = sl_program_ops(sim.program) + programs[i].op_first;

		for (const struct sl_program_op *end = op + programs[i].nr_ops; op < end; op++) {
			if (op->verb == SL_VERB_SET && op->a == key)
				rivals[i].is_ranked = false;
			else if (op->verb == SL_VERB_CHANGE && op->slot == key)
				rivals[op->a == SL_PROGRAM_NONE ? i : op->a].is_ranked = false;
		}
	}
}

static void find_rivals(bool is_of_shares)
{
	const struct sl_program_task *programs = sl_program_tasks(sim.program);

	for (u32 i = 0; i < sim.nr_tasks; i++) {
		const struct sl_program_task *pt = &programs[i];
		bool is_given = pt->attr_given & 1U << key;
		struct rival *t = &rivals[i];

		*t = (struct rival){ .behind_ns = NEVER };
		t->weight = !is_given		     ? pt->weight :
			    key == TASK_ATTR_TICKETS ? pt->tickets :
			    key == TASK_ATTR_CREDITS ? (u64)pt->credits :
						       pt->weight;
		if (is_of_shares)
			continue;
		t->rank = pt->priority;
		t->is_ranked = check_has_steady_mask(i, &t->allowed) &&
			       (is_given || key == TASK_ATTR_DEADLINE);
	}
	if (!is_of_shares)
		leave_out_changed();
}

/* Return: 1000 times what was seen by what is allowed: more than 1000 is to be looked at. */
static u32 nearness(double seen_ns, double allowed_ns)
{
	double share;

	if (seen_ns > allowed_ns && seen_ns <= 2 * allowed_ns)
		return PERMILLE + 1 + (u32)((seen_ns / allowed_ns - 1) * PERMILLE);
	share = allowed_ns > 0 ? seen_ns / allowed_ns : seen_ns > 0 ? 2 : 0;
	return (u32)((share < 100 ? share : 100) * PERMILLE);
}

static u32 look_at_promise(const char *text, const struct sl_record *records, u64 nr)
{
	u32 running[SCX_CPUS_MAX] = { 0 };
	unsigned long long allowed_ns = 0;
	bool is_of_shares = !strncmp(text, "shares:", 7);
	double worst_ns = 0;

	pairs = calloc(is_of_shares ? (u64)sim.nr_tasks * sim.nr_tasks : 1, sizeof(*pairs));
	if (!pairs || sscanf(text, "%*[a-z]:%u:%llu", &key, &allowed_ns) != 2)
		return ~0U;
	find_rivals(is_of_shares);
	now_ns = 0;
	for (u64 i = 0; i <= nr; i++) {
		const struct sl_record *r = &records[i];
		u64 t_ns = i < nr ? r->t_ns : sim.result->end_ns;
		double seen_ns = is_of_shares ? 0 : (double)wait_until(t_ns, running);

		if (i < nr && r->kind <= SL_RECORD_STOP && r->task && r->task <= sim.nr_tasks) {
			if (is_of_shares)
				seen_ns = take_for_shares(r);
			else
				take_for_priority(r, running);
		}
		worst_ns = seen_ns > worst_ns ? seen_ns : worst_ns;
	}
	return nearness(worst_ns, (double)allowed_ns);
}

/* Of the run that has just ended, after check_laws(). Return: of all promises, see nearness(). */
u32 check_promises(const struct sl_record *records, u64 nr)
{
	u32 nearest = 0;

	rivals = calloc(sim.nr_tasks, sizeof(*rivals));
	for (const char *at = sim.options->promises; at;) {
		u32 near = rivals ? look_at_promise(at, records, nr) : ~0U;

		nearest = near > nearest ? near : nearest;
		at = strchr(at, ',');
		at += at ? 1 : 0;
	}
	return nearest;
}
