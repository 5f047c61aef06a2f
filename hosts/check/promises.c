/* SPDX-License-Identifier: MIT */
/*
 * promises.c - how near a world came to what the policy's header rules out.
 *
 *	--promise shares:KEY:NS		two tasks that always want to run: how far from their parts
 *	--promise priority:KEY:NS	a task that waits: how long less urgent tasks run on its CPUs;
 *			       NSf	how long it had waited when one of its CPUs took one;
 *			       NSq	of equals the one that was queued first is more urgent
 *	--promise latency:0:NS		a task that woke up: how long it waits
 *	--promise course:SKIP:SCALE	a hash of what tasks did, equal in two runs if times of one are
 *					those of the other by SCALE, and pids are higher by SKIP
 *
 * KEY is enum task_attr_key, or NR_TASK_ATTRS for the time when a task was queued, NS what is
 * allowed. As laws.c it decides nothing: what is beyond is run again and decided by
 * python/schedlab/check/shares.py, priorities.py and latency.py, with the same sums.
 *
 * Read next: worlds.c, the caller.
 */
#include <limits.h>
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
#define SETTLED_NS 100000000	/* as in latency.py */
#define UNKNOWN_RANK LLONG_MIN
#define KEY_QUEUED NR_TASK_ATTRS

struct rival {
	u64 ran_ns, since_ns; /* it runs or waits since then, or it did */
	u64 came_ns;
	u64 queued_ns; /* at a tail; NEVER: that is not known */
	s64 rank;      /* the smaller, the more urgent */
	u64 behind_ns; /* less urgent tasks have run since then; NEVER: none runs */
	u64 allowed;   /* CPUs */
	u64 weight;
	bool wants, runs, waits, was_woken;
	bool has_one_slept; /* another task, before this one came */
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
static bool is_when_free, is_then_queued, has_one_slept;

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

/* Not where they came at different times, and the later one after another task had slept. */
static bool is_pair_held(const struct rival *one, const struct rival *other)
{
	return one->came_ns == other->came_ns ||
	       !(one->came_ns > other->came_ns ? one : other)->has_one_slept;
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

		if (i == task || !rivals[i].wants || !sum ||
		    !is_pair_held(&rivals[task], &rivals[i]))
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
	has_one_slept |= r->kind == SL_RECORD_STOP && r->flags == SL_STOP_BLOCKED;
	if (r->kind == SL_RECORD_ARRIVE) {
		t->wants = true;
		t->came_ns = now_ns;
		t->has_one_slept = has_one_slept;
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

/* Return: whether @t is more urgent than @other, which has run for @ran_ns of its burst since. */
static bool is_before(const struct rival *t, const struct rival *other, s64 ran_ns)
{
	if (!t->is_ranked || !other->is_ranked || t->rank == UNKNOWN_RANK ||
	    other->rank == UNKNOWN_RANK || (ran_ns && ran_ns >= other->rank))
		return false;
	if (t->rank != other->rank - ran_ns || !is_then_queued)
		return t->rank < other->rank - ran_ns;
	return t->queued_ns != NEVER && other->queued_ns != NEVER &&
	       t->queued_ns < other->queued_ns;
}

/* Until @t_ns nothing changes. Return: for how long a task has been behind less urgent ones, at most. */
static u64 wait_until(u64 t_ns, const u32 *running)
{
	u64 longest_ns = 0;

	for (struct rival *t = rivals; t < rivals + sim.nr_tasks && t_ns > now_ns; t++) {
		bool is_behind = false;

		for (u32 cpu = 0; t->waits && t->is_ranked && cpu < sim.options->nr_cpus; cpu++) {
			const struct rival *other = running[cpu] ? &rivals[running[cpu] - 1] : NULL;

			is_behind |= other && t->allowed >> cpu & 1 &&
				     is_before(t, other,
					       key == TASK_ATTR_BURST ?
						       (s64)(now_ns - other->since_ns) :
						       0);
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

static s64 burst_rank(u32 task)
{
	u64 burst_ns = sl_program_tasks(sim.program)[task].burst_ns;

	return burst_ns ? (s64)burst_ns : UNKNOWN_RANK;
}

/* @cpu takes @taken. Return: how long a more urgent one has waited for it, at most. */
static u64 passed_over_ns(const struct rival *taken, u32 cpu)
{
	u64 longest_ns = 0;

	for (const struct rival *t = rivals; t < rivals + sim.nr_tasks; t++) {
		u64 waited_ns = t->waits && t->allowed >> cpu & 1 ? now_ns - t->since_ns : 0;

		if (waited_ns > longest_ns && is_before(t, taken, 0))
			longest_ns = waited_ns;
	}
	return longest_ns;
}

/* A task stops: where it is in the order then. */
static void rank_stopped(struct rival *t, const struct sl_record *r)
{
	/* What a higher one has preempted is before its equals, what has used up its slice behind them. */
	t->queued_ns = r->flags == SL_STOP_PREEMPTED ? NEVER : r->t_ns;
	if (key == KEY_QUEUED)
		t->rank = (s64)r->t_ns;
	else if (key == TASK_ATTR_BURST && t->rank != UNKNOWN_RANK)
		t->rank = r->flags != SL_STOP_YIELDED && (s64)r->arg < t->rank ?
				  t->rank - (s64)r->arg :
				  UNKNOWN_RANK;
}

static void take_for_priority(const struct sl_record *r, u32 *running)
{
	struct rival *t = &rivals[r->task - 1];

	if (r->kind <= SL_RECORD_STOP)
		t->since_ns = r->t_ns;
	if (r->kind == SL_RECORD_ARRIVE || r->kind == SL_RECORD_WAKE) {
		t->waits = true;
		t->queued_ns = r->t_ns;
		if (key == KEY_QUEUED)
			t->rank = (s64)r->t_ns;
		else if (key == TASK_ATTR_BURST)
			t->rank = burst_rank(r->task - 1);
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
		rank_stopped(t, r);
		running[r->cpu] = 0;
	}
}

/* ---- latency ------------------------------------------------------------------------- */

/* Return: how long a task that woke up has waited until @r. */
static u64 take_for_latency(const struct sl_record *r, bool is_at_once)
{
	struct rival *t = &rivals[r->task - 1];
	u64 waited_ns = t->was_woken ? r->t_ns - t->since_ns : 0;

	if (r->kind == SL_RECORD_ARRIVE)
		t->came_ns = r->t_ns;
	if (r->kind == SL_RECORD_WAKE || r->kind == SL_RECORD_RUN) {
		t->was_woken = r->kind == SL_RECORD_WAKE &&
			       (!is_at_once || r->t_ns - t->came_ns >= SETTLED_NS);
		t->since_ns = r->t_ns;
	}
	return waited_ns;
}

/* Return: the longest wait of the tasks that wait at the end. */
static u64 unended_latency_ns(void)
{
	u64 longest_ns = 0;

	for (const struct rival *t = rivals; t < rivals + sim.nr_tasks; t++) {
		u64 waited_ns = t->was_woken ? sim.result->end_ns - t->since_ns : 0;

		longest_ns = waited_ns > longest_ns ? waited_ns : longest_ns;
	}
	return longest_ns;
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
			else if (op->verb == SL_VERB_CHANGE &&
				 (op->slot == key || key == KEY_QUEUED || is_then_queued))
				rivals[op->a == SL_PROGRAM_NONE ? i : op->a].is_ranked = false;
		}
	}
}

static void find_rivals(bool is_of_shares)
{
	const struct sl_program_task *programs = sl_program_tasks(sim.program);

	for (u32 i = 0; i < sim.nr_tasks; i++) {
		const struct sl_program_task *pt = &programs[i];
		bool is_given = key < NR_TASK_ATTRS && pt->attr_given & 1U << key;
		struct rival *t = &rivals[i];

		*t = (struct rival){ .behind_ns = NEVER };
		t->weight = !is_given		     ? pt->weight :
			    key == TASK_ATTR_TICKETS ? pt->tickets :
			    key == TASK_ATTR_CREDITS ? (u64)pt->credits :
						       pt->weight;
		if (is_of_shares)
			continue;
		t->rank = key == TASK_ATTR_BURST ? burst_rank(i) : pt->priority;
		t->is_ranked = check_has_steady_mask(i, &t->allowed) &&
			       (is_given || key == TASK_ATTR_DEADLINE || key == KEY_QUEUED);
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
	bool is_of_latency = !strncmp(text, "latency:", 8);
	char letters[4] = "";
	double worst_ns = 0;

	pairs = calloc(is_of_shares ? (u64)sim.nr_tasks * sim.nr_tasks : 1, sizeof(*pairs));
	if (!pairs || sscanf(text, "%*[a-z]:%u:%llu%3[fq]", &key, &allowed_ns, letters) < 2)
		return ~0U;
	is_when_free = strchr(letters, 'f');
	is_then_queued = strchr(letters, 'q');
	has_one_slept = false;
	find_rivals(is_of_shares);
	now_ns = 0;
	for (u64 i = 0; i <= nr; i++) {
		const struct sl_record *r = &records[i];
		u64 t_ns = i < nr ? r->t_ns : sim.result->end_ns;
		bool is_of_task = i < nr && r->kind <= SL_RECORD_STOP && r->task &&
				  r->task <= sim.nr_tasks;
		double seen_ns = 0;

		if (is_of_latency) {
			seen_ns = (double)(is_of_task ? take_for_latency(r, !allowed_ns) :
					   i == nr    ? unended_latency_ns() :
							0);
		} else if (is_of_shares) {
			seen_ns = is_of_task ? take_for_shares(r) : 0;
		} else {
			if (!is_when_free)
				seen_ns = (double)wait_until(t_ns, running);
			now_ns = t_ns;
			if (is_of_task && is_when_free && r->kind == SL_RECORD_RUN)
				seen_ns = (double)passed_over_ns(&rivals[r->task - 1], r->cpu);
			if (is_of_task)
				take_for_priority(r, running);
		}
		worst_ns = seen_ns > worst_ns ? seen_ns : worst_ns;
	}
	return nearness(worst_ns, (double)allowed_ns);
}

static u64 course_of(const struct sl_record *records, u64 nr, u64 skip, u64 scale)
{
	u64 hash = 0;

	for (const struct sl_record *r = records; scale && r < records + nr; r++) {
		u64 flags = r->kind == SL_RECORD_STOP ? r->flags : 0;

		if (r->kind <= SL_RECORD_STOP)
			hash = check_mix(check_mix(hash, r->t_ns / scale),
					 (r->task - skip) << 32 | (u64)r->cpu << 16 | flags << 8 |
						 r->kind);
	}
	return hash;
}

/* Of the run that has just ended, after check_laws(). Return: of all promises, see nearness(). */
u32 check_promises(const struct sl_record *records, u64 nr, u64 *course)
{
	unsigned long long skip, scale;
	u32 nearest = 0;

	rivals = calloc(sim.nr_tasks, sizeof(*rivals));
	for (const char *at = sim.options->promises; at;) {
		bool is_course = sscanf(at, "course:%llu:%llu", &skip, &scale) == 2;
		u32 near = !rivals ? ~0U : is_course ? 0 : look_at_promise(at, records, nr);

		if (is_course)
			*course = course_of(records, nr, skip, scale);
		nearest = near > nearest ? near : nearest;
		at = strchr(at, ',');
		at += at ? 1 : 0;
	}
	return nearest;
}
