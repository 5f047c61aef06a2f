/* SPDX-License-Identifier: MIT */
/*
 * lives.c - from the kernel's events to the records that every host writes.
 *
 *	schedlab-record convert EVENTS RECORDS TASKS [--origin NS] [--end NS]
 *
 * A task that is meant lives through these states; all others are only "another
 * task", whose time on a CPU is overhead, of kind STOLEN.
 *
 *	NEW --waking--> RUNNABLE <--switch--> RUNNING --switch--> DEAD
 *	                   ^                     |
 *	                   +------waking------ BLOCKED
 *
 * Before the origin, time 0 of the records, states are followed without a
 * record; a task that runs or waits then arrives at 0. Where an event contradicts the
 * states, since the kernel has lost some, records are added that make the run
 * possible again, and counted.
 *
 * Must stay true: RUN and STOP alternate for each task and each CPU, whatever
 * the events say.
 * Read next: states.c.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lives.h"

#define LIVES_MAX (16U << 20)
#define UNKNOWN (~0ULL)

struct converter c;

static void put(u32 task, u16 cpu, u8 kind, u8 flags, u64 arg)
{
	output_put(c.now_ns, task, cpu, kind, flags, arg);
}

/* ---- which task is which ----------------------------------------------------------------- */

static struct life *add_life(u32 pid, s32 depth)
{
	struct life *l = &c.lives[c.nr_lives];

	if (c.nr_lives == LIVES_MAX)
		refuse("more than %u tasks; record a shorter time", LIVES_MAX);
	*l = (struct life){
		.pid = pid,
		.depth = depth,
		.process = c.nr_lives,
		.is_meant = depth >= (s32)c.header->depth_min && pid != c.header->recorder_pid,
		.priority = 120,
	};
	c.life_of[pid] = c.nr_lives++;
	return l;
}

/* The task of a pid if it is meant, else NULL. */
static struct life *meant(u32 pid)
{
	struct life *l = &c.lives[c.life_of[pid]];

	if (!pid)
		return NULL;
	if (c.header->is_all && (!c.life_of[pid] || l->state == DEAD))
		l = add_life(pid, 0);
	return l->is_meant && l->state != DEAD ? l : NULL;
}

static void name(const struct event *e)
{
	struct life *l = &c.lives[c.life_of[e->pid]];

	/* A pid that is used again names a new task. */
	if (!c.life_of[e->pid] || (c.header->is_all && l->state == DEAD))
		l = meant(e->pid);
	if (l)
		memcpy(l->name, e->name, NAME_BYTES);
}

/* ---- events ---------------------------------------------------------------------------- */

static void end_outsider(u16 cpu, u64 t_ns)
{
	struct processor *p = &c.cpus[cpu];

	if (p->outsider && c.has_begun && t_ns > p->since_ns)
		output_put(t_ns, 0, cpu, SL_RECORD_OVERHEAD, SL_OVERHEAD_STOLEN, t_ns - p->since_ns);
	p->outsider = 0;
}

/* Several outsiders one after another are one interval; none of them ends it. */
static void let_in_outsider(u16 cpu, u32 pid)
{
	struct processor *p = &c.cpus[cpu];

	if (!pid)
		end_outsider(cpu, c.now_ns);
	else if (!p->outsider)
		p->since_ns = c.now_ns;
	p->outsider = pid;
}

static void leave(u16 cpu, u32 pid, int32_t state)
{
	struct life *l = meant(pid);
	struct life *believed = &c.lives[c.cpus[cpu].life];

	if (c.cpus[cpu].life && believed != l) {
		count_repair();
		task_left_unseen(believed, pid ? SL_STOP_PREEMPTED : SL_STOP_BLOCKED, c.now_ns);
	}
	if (!l)
		return;
	/* Unless it is known better, the CPU went to it at once from the idle task. */
	if (l->started_ns)
		end_outsider(cpu, l->started_ns);
	c.cpus[cpu].outsider = 0;
	task_ran_unseen(l, cpu, 0);
	task_stops(l, why_it_stops(l, state));
}

static void switch_tasks(const struct event *e)
{
	struct life *next;
	bool is_unwoken;

	leave(e->cpu, e->pid, e->value);
	next = meant(e->other);
	c.cpus[e->cpu].is_known = true;
	c.cpus[e->cpu].switched_ns = c.now_ns;
	if (!next) {
		let_in_outsider(e->cpu, e->other);
		return;
	}
	end_outsider(e->cpu, c.now_ns);
	next->priority = e->flags;
	if (next->state != RUNNABLE && next->state != NEW)
		count_repair();
	if (next->state == RUNNING)
		task_stops(next, SL_STOP_PREEMPTED);
	is_unwoken = next->state == BLOCKED && !next->woken_ns;
	c.nr_unwoken += next->state == BLOCKED;
	if (next->state == BLOCKED && next->woken_ns && next->woken_by_cpu != next->cpu)
		clocks_contradict(next->since_ns - next->woken_ns);
	if (next->state != RUNNABLE || (c.has_begun && !next->number))
		task_wakes(next, c.now_ns, e->cpu, 0);
	task_runs(next, c.now_ns, e->cpu);
	next->is_unwoken = is_unwoken;
}

/* Some task runs here, and has for so long; which, was not said so far. */
static void runtime(const struct event *e)
{
	struct life *l = meant(e->pid);
	struct processor *p = &c.cpus[e->cpu];
	u64 t_ns = e->other < c.now_ns ? c.now_ns - e->other : 0;

	/* Only its first account says since when; on which CPU, a later event. */
	if (e->flags & EVENT_ELSEWHERE) {
		if (l && l->state != RUNNING && !l->started_ns)
			l->started_ns = t_ns;
		return;
	}
	if (p->life && l == &c.lives[p->life])
		return;
	if (l && l->started_ns && l->started_ns < t_ns)
		t_ns = l->started_ns;
	if (t_ns < p->switched_ns)
		t_ns = p->switched_ns;
	/* Of its leaving no switch has told either. */
	if (p->life)
		task_left_unseen(&c.lives[p->life], SL_STOP_PREEMPTED, t_ns);
	if (l) {
		end_outsider(e->cpu, t_ns);
		task_ran_unseen(l, e->cpu, t_ns);
		return;
	}
	if (!p->outsider)
		p->since_ns = t_ns;
	p->outsider = e->pid;
}

static bool is_cpu(int32_t value)
{
	return value >= 0 && value < (int32_t)c.header->nr_cpus;
}

/*
 * An interrupt is the doing of no task, unless it is the soft one in which data
 * that a task sends over loopback arrive before its call returns.
 */
static struct life *waker_of(const struct event *e)
{
	struct life *l = meant(e->other);

	if (!(e->flags & EVENT_IN_INTERRUPT))
		return l;
	return e->flags & EVENT_IN_SOFTIRQ && l && l->call ? l : NULL;
}

static u32 number_of_waker(const struct life *l, const struct event *e)
{
	const struct life *waker = waker_of(e);

	return waker && waker != l && waker->state == RUNNING ? waker->number : 0;
}

/* It is awake already, or the clock of this CPU is not that of the CPU it runs on. */
static void wake_running(struct life *l, const struct event *e)
{
	if (l->is_unwoken && e->cpu != l->cpu)
		clocks_contradict(c.now_ns - l->since_ns);
	l->is_unwoken = false;
	l->woken_ns = c.now_ns;
	l->woken_by = number_of_waker(l, e);
	l->woken_by_cpu = e->cpu;
}

static void waking(const struct event *e)
{
	struct life *l = meant(e->pid);

	if (!l || !is_cpu(e->value))
		return;
	if (l->left_unseen && e->kind == EVENT_WAKING && l->state == RUNNABLE &&
	    output_set_blocked(l->number))
		l->state = BLOCKED;
	if (l->state == RUNNABLE && e->kind != EVENT_WAKING) {
		l->cpu = (u16)e->value;
		output_set_wake_cpu(l->number, l->cpu);
	}
	if (l->state == RUNNING)
		wake_running(l, e);
	if (l->state != NEW && l->state != BLOCKED)
		return;
	c.nr_wakeups += l->state == BLOCKED;
	task_wakes(l, c.now_ns, (u16)e->value,
		   l->state == NEW ? l->parent :
		   l->number	   ? number_of_waker(l, e) :
				     0);
}

static void migrate(const struct event *e)
{
	struct life *l = meant(e->pid);

	if (!l || !l->number || !is_cpu(e->value))
		return;
	put(l->number, (u16)e->value, SL_RECORD_MIGRATE, 0, e->other);
}

static void fork_task(const struct event *e)
{
	u32 parent = c.life_of[e->other < PIDS_MAX ? e->other : 0];
	struct life *l;

	c.life_of[e->pid] = 0;
	if (!parent && !c.header->is_all)
		return;
	l = add_life(e->pid, parent ? c.lives[parent].depth + 1 : 0);
	l->parent = c.lives[parent].number;
	l->root = c.lives[parent].root;
	if (!c.header->is_all && l->depth == (s32)c.header->depth_min) {
		l->root = ++c.nr_roots;
		if (c.origin_ns == UNKNOWN)
			c.origin_ns = e->t_ns;
	}
	if (parent && c.cpus[e->cpu].thread == e->pid)
		l->process = c.lives[parent].process;
	memcpy(l->name, c.lives[parent].name, NAME_BYTES);
}

/* Where a task may wait for others: which calls it makes, and what they return. */
static void call(const struct event *e)
{
	struct life *l = meant(e->pid);

	if (!l)
		return;
	l->call = e->flags == SL_CALL_CLOSE ? 0 : e->flags;
	if (l->number && c.has_begun)
		put(l->number, e->cpu, SL_RECORD_CALL, e->flags, (u64)l->process << 32 | e->other);
}

static void return_from(const struct event *e)
{
	struct life *l = meant(e->pid);

	if (!l)
		return;
	if (l->number && c.has_begun)
		put(l->number, e->cpu, SL_RECORD_RETURN, l->call ? l->call : e->flags,
		    (u64)(s64)e->value);
	l->call = 0;
}

/* A thread that executes a program becomes the first of its process. */
static void exec_task(const struct event *e)
{
	if (e->pid == e->other || e->other >= PIDS_MAX || !c.life_of[e->other])
		return;
	c.life_of[e->pid] = c.life_of[e->other];
	c.life_of[e->other] = 0;
	c.lives[c.life_of[e->pid]].pid = e->pid;
}

static void member(const struct event *e)
{
	struct life *l;

	if (c.life_of[e->pid] || !e->pid)
		return;
	l = add_life(e->pid, e->value);
	l->state = BLOCKED;
	if (e->flags & EVENT_IS_THREAD && e->other < PIDS_MAX && c.life_of[e->other])
		l->process = c.lives[c.life_of[e->other]].process;
	if (!l->is_meant)
		return;
	if (e->flags & 1)
		task_wakes(l, c.now_ns, e->cpu, 0);
	for (u32 cpu = 0; cpu < c.header->nr_cpus; cpu++) {
		if (c.cpus[cpu].outsider != e->pid)
			continue;
		end_outsider((u16)cpu, c.now_ns);
		task_ran_unseen(l, (u16)cpu, c.now_ns);
		return;
	}
}

static void lost(const struct event *e)
{
	if (!c.has_begun)
		return;
	c.nr_lost += e->other;
	put(0, e->cpu, SL_RECORD_LOST, 0, e->other);
}

/* Time 0: a task that runs or waits for a CPU arrives. */
static void begin(void)
{
	c.has_begun = true;
	c.now_ns = 0;
	for (u32 i = 1; i < c.nr_lives; i++) {
		struct life *l = &c.lives[i];
		bool is_running = l->state == RUNNING;

		if (!l->is_meant || (l->state != RUNNABLE && !is_running))
			continue;
		task_wakes(l, 0, l->cpu, 0);
		if (is_running)
			task_runs(l, 0, l->cpu);
	}
}

/* What a task does on a CPU, it does while it runs there. */
static void account(const struct event *e)
{
	struct processor *p = &c.cpus[e->cpu];
	bool is_of_waker = e->kind == EVENT_WAKING || e->kind == EVENT_WAKEUP ||
			   e->kind == EVENT_NEW || e->kind == EVENT_FORK;
	bool is_account = e->kind == EVENT_RUNTIME && !(e->flags & EVENT_ELSEWHERE);

	if (p->life && c.lives[p->life].pid == (is_of_waker ? e->other : e->pid) &&
	    (is_account || (p->accounted_ns && e->kind != EVENT_RUNTIME)))
		p->accounted_ns = c.now_ns;
}

static void handle(const struct event *e)
{
	struct life *l;

	if (e->kind == EVENT_NAME) {
		name(e);
		return;
	}
	if (!c.has_begun && e->t_ns >= c.origin_ns)
		begin();
	c.now_ns = c.has_begun ? e->t_ns - c.origin_ns : 0;
	account(e);
	switch (e->kind) {
	case EVENT_SWITCH:
		switch_tasks(e);
		break;
	case EVENT_WAKING:
	case EVENT_WAKEUP:
	case EVENT_NEW:
		waking(e);
		break;
	case EVENT_MIGRATE:
		migrate(e);
		break;
	case EVENT_FORK:
		fork_task(e);
		break;
	case EVENT_EXEC:
		exec_task(e);
		break;
	case EVENT_MEMBER:
		member(e);
		break;
	case EVENT_LOST:
		lost(e);
		break;
	case EVENT_RUNTIME:
		runtime(e);
		break;
	case EVENT_CALL:
		call(e);
		break;
	case EVENT_RETURN:
		return_from(e);
		break;
	case EVENT_SLICE:
		c.slice_ns = e->other;
		break;
	case EVENT_COST:
		if (e->flags < NR_COSTS)
			c.costs[e->flags] = e->other;
		break;
	case EVENT_CALLS:
		l = meant(e->pid);
		if (l && l->number && c.has_begun)
			l->nr_calls += e->other;
		break;
	case EVENT_THREAD:
		c.cpus[e->cpu].thread = e->pid;
		break;
	case EVENT_EXIT:
	case EVENT_YIELD:
		l = meant(e->pid);
		if (l && e->kind == EVENT_EXIT)
			l->is_exiting = true;
		else if (l)
			l->yielded_ns = c.now_ns;
	}
}

static void end(void)
{
	if (!c.has_begun) {
		if (c.origin_ns > c.end_ns)
			c.origin_ns = c.end_ns;
		begin();
	}
	c.now_ns = c.end_ns - c.origin_ns;
	for (u32 cpu = 0; cpu < c.header->nr_cpus; cpu++) {
		if (c.cpus[cpu].life)
			task_stops(&c.lives[c.cpus[cpu].life], SL_STOP_HORIZON);
		end_outsider((u16)cpu, c.now_ns);
	}
}

/* ---- the program ----------------------------------------------------------------------- */

static u64 origin_of(const struct events *events)
{
	const struct events_header *h = events->header;

	/* Where a command is yet to be started, that is the beginning. */
	return h->is_all || !h->depth_min ? h->begin_ns : UNKNOWN;
}

/* A line of JSON for each task that arrived, in order of number. */
static bool write_tasks(const char *path)
{
	u32 *by_number = calloc(c.nr_tasks + 1, sizeof(*by_number));
	FILE *file = freopen(path, "w", stdout);
	bool have_all_ended = true;

	if (!file || !by_number)
		exit(1);
	for (u32 i = 1; i < c.nr_lives; i++)
		by_number[c.lives[i].number] = i;
	for (u32 i = 1; i <= c.nr_tasks; i++) {
		const struct life *l = &c.lives[by_number[i]];

		have_all_ended &= l->state == DEAD;
		printf("{\"task\":%u,\"pid\":%u,\"parent\":%u,\"root\":%u,"
		       "\"priority\":%u,\"calls\":%llu,\"name\":",
		       i, l->pid, l->parent, l->root, l->priority, (unsigned long long)l->nr_calls);
		print_json(l->name, strnlen(l->name, NAME_BYTES));
		puts("}");
	}
	free(by_number);
	return have_all_ended;
}

static void allocate(void)
{
	c.nr_lives = 1;
	c.lives = reserve(LIVES_MAX * sizeof(*c.lives));
	c.life_of = reserve(PIDS_MAX * sizeof(*c.life_of));
	c.cpus = reserve(c.header->nr_cpus * sizeof(*c.cpus));
}

int convert_main(int argc, char **argv)
{
	struct events events;
	const char *failed;
	bool have_all_ended;
	u64 nr_records;
	int answer_fd;

	if (argc < 3 || (argc - 3) % 2)
		refuse("convert EVENTS RECORDS TASKS [--origin NS] [--end NS]");
	failed = events_open(&events, argv[0]);
	if (failed)
		refuse("%s", failed);
	c.header = events.header;
	c.origin_ns = origin_of(&events);
	c.end_ns = events.end_ns;
	for (int i = 3; i < argc; i += 2) {
		u64 value = strtoull(argv[i + 1], NULL, 10);

		if (!strcmp(argv[i], "--origin"))
			c.origin_ns = value;
		else if (!strcmp(argv[i], "--end") && value < c.end_ns)
			c.end_ns = value;
	}
	allocate();
	output_open(argv[1], c.header->nr_cpus, c.header->tick_ns);
	failed = events_walk(&events, c.end_ns, handle);
	if (failed)
		refuse("%s", failed);
	end();
	nr_records = output_close(c.now_ns);
	answer_fd = dup(STDOUT_FILENO);
	have_all_ended = write_tasks(argv[2]);
	if (fflush(stdout))
		exit(1);
	dprintf(answer_fd,
		"{\"tasks\":%u,\"events\":%llu,\"records\":%llu,\"lost\":%llu,"
		"\"repairs\":%llu,\"inferred\":%llu,\"wakeups\":%llu,\"unwoken\":%llu,\"clocks_differ_ns\":%llu,\"origin_ns\":%llu,\"end_ns\":%llu,"
		"\"cpus\":%u,\"tick_ns\":%llu,\"costs\":[%u,%u,%u,%u,%u,%u],\"slice_ns\":%u,\"is_whole\":%s,"
		"\"have_all_ended\":%s}\n",
		c.nr_tasks, (unsigned long long)events.nr, (unsigned long long)nr_records,
		(unsigned long long)c.nr_lost, (unsigned long long)c.nr_repairs,
		(unsigned long long)c.nr_inferred, (unsigned long long)c.nr_wakeups,
		(unsigned long long)c.nr_unwoken,
		(unsigned long long)clocks_differ_ns(c.nr_wakeups), (unsigned long long)c.origin_ns,
		(unsigned long long)(c.end_ns - c.origin_ns), c.header->nr_cpus,
		(unsigned long long)c.header->tick_ns, c.costs[0], c.costs[1], c.costs[2],
		c.costs[3], c.costs[4], c.costs[5], c.slice_ns, events.is_whole ? "true" : "false",
		have_all_ended ? "true" : "false");
	return 0;
}
