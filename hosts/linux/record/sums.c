/* SPDX-License-Identifier: MIT */
/*
 * sums.c - what the tasks of all CPUs do now, summed up as events come.
 *
 *	event_put() --> batch --SYNC--> merge.c --> a state for each task --> sums_print()
 *
 * For `schedlab top` and guards (the order `sums` of capture.c), and of a file:
 *
 *	schedlab-record sums FILE.slev     a line for each SYNC
 *
 * Must stay true: what is known reaches to the last SYNC; after a loss no wait is
 * made up; nothing grows with the time that is watched.
 * Called by capture.c. Read next: merge.c; python/schedlab/measure/live.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"

#define WAITERS_MAX 10
/*
 * Latencies up to 1 us, and each doubling after it, in as many parts: a value is
 * known to 0.4 %, and is never more than a power of two times 1 us where it was not.
 */
#define PARTS 250
#define DOUBLINGS 32
#define UNIT_NS 1000ULL

enum doing { SLEEPS, WAITS, RUNS };

struct seen {
	uint64_t since_ns;  /* it waits, and that is summed up to then */
	uint64_t woken_ns;  /* and has not run since; 0: it has */
	uint64_t waited_ns; /* in this interval */
	uint16_t cpu;
	uint8_t doing; /* enum doing */
	bool is_listed;
};

static struct {
	struct events_header header;
	struct event *batch; /* after the last SYNC, or later than it */
	size_t nr, room;
	struct seen *tasks; /* by pid */
	uint32_t *listed;   /* tasks that run or wait, or have waited in this interval */
	size_t nr_listed, listed_room;
	struct {
		uint32_t current; /* pid; 0: none that is known */
		uint32_t queue;
		uint64_t waits_ns; /* in this interval, of all its tasks */
	} cpus[RECORD_CPUS_MAX];
	uint32_t latencies[DOUBLINGS * PARTS]; /* of the interval */
	uint32_t ages[DOUBLINGS * PARTS];      /* of those that wait */
	uint64_t sum_ns;		       /* of the latencies */
	uint64_t oldest_ns;
	uint64_t begin_ns, end_ns; /* of the interval */
	uint64_t nr_lost;
	uint64_t blind_ns; /* up to here events are missing */
} sums;

static void *grown(void *memory, size_t nr, size_t *room, size_t bytes)
{
	if (nr < *room)
		return memory;
	*room = *room ? 2 * *room : 4096;
	memory = realloc(memory, *room * bytes);
	if (!memory)
		refuse("no memory to sum up events");
	return memory;
}

void sums_open(uint32_t nr_cpus)
{
	sums.header.nr_cpus = nr_cpus;
	sums.tasks = reserve((size_t)PIDS_MAX * sizeof(*sums.tasks));
}

/* ---- latencies ---------------------------------------------------------------- */

static uint32_t part_of(uint64_t ns)
{
	uint64_t before = ns - !!ns, units = before / UNIT_NS;
	uint32_t doublings;

	if (!units)
		return (uint32_t)(before / 4);
	doublings = 63 - (uint32_t)__builtin_clzll(units);
	if (doublings + 1 >= DOUBLINGS)
		return DOUBLINGS * PARTS - 1;
	before -= UNIT_NS << doublings;
	return PARTS * (doublings + 1) + (uint32_t)(before >> (doublings + 2));
}

/* The largest value that is counted there. */
static uint64_t end_of_part(uint32_t part)
{
	uint32_t doublings = part / PARTS;
	uint64_t parts = part % PARTS + 1;

	return doublings ? (UNIT_NS << (doublings - 1)) + (parts << (doublings + 1)) : 4 * parts;
}

static void print_parts(const char *key, uint32_t *counts)
{
	const char *comma = "";

	printf(",\"%s\":[", key);
	for (uint32_t i = 0; i < DOUBLINGS * PARTS; i++) {
		if (!counts[i])
			continue;
		printf("%s[%llu,%u]", comma, (unsigned long long)end_of_part(i), counts[i]);
		comma = ",";
	}
	putchar(']');
	memset(counts, 0, DOUBLINGS * PARTS * sizeof(*counts));
}

/* ---- what an event says of its tasks ---------------------------------------------- */

static struct seen *task_of(uint32_t pid)
{
	struct seen *task = &sums.tasks[pid];

	if (task->is_listed)
		return task;
	sums.listed = grown(sums.listed, sums.nr_listed, &sums.listed_room, sizeof(*sums.listed));
	sums.listed[sums.nr_listed++] = pid;
	task->is_listed = true;
	return task;
}

static void sum_wait(struct seen *task, uint64_t t_ns)
{
	if (task->doing != WAITS || t_ns <= task->since_ns)
		return;
	task->waited_ns += t_ns - task->since_ns;
	sums.cpus[task->cpu].waits_ns += t_ns - task->since_ns;
	task->since_ns = t_ns;
}

static void set_doing(struct seen *task, enum doing doing, uint64_t t_ns)
{
	sum_wait(task, t_ns);
	task->doing = doing;
	task->since_ns = t_ns;
}

/*
 * The task of a CPU has left, and no switch has said so. If it was woken since, it waits
 * since then; when it slept is not known, and makes up no waiting.
 */
static void leave_unseen(uint16_t cpu)
{
	uint32_t pid = sums.cpus[cpu].current;
	struct seen *task = &sums.tasks[pid];

	sums.cpus[cpu].current = 0;
	if (!pid)
		return;
	task->doing = task->woken_ns ? WAITS : SLEEPS;
	task->since_ns = task->woken_ns > sums.begin_ns ? task->woken_ns : sums.begin_ns;
}

static void runs(uint32_t pid, uint16_t cpu, uint64_t t_ns)
{
	struct seen *task;

	if (sums.cpus[cpu].current == pid)
		return;
	leave_unseen(cpu);
	if (!pid)
		return;
	task = task_of(pid);
	if (task->doing == RUNS)
		leave_unseen(task->cpu);
	if (task->doing == WAITS && task->woken_ns && t_ns >= task->woken_ns) {
		sums.latencies[part_of(t_ns - task->woken_ns)]++;
		sums.sum_ns += t_ns - task->woken_ns;
	}
	set_doing(task, RUNS, t_ns);
	task->woken_ns = 0;
	task->cpu = cpu;
	sums.cpus[cpu].current = pid;
}

static void stops(uint32_t pid, uint16_t cpu, enum doing doing, uint64_t t_ns)
{
	struct seen *task;

	if (!pid)
		return;
	task = task_of(pid);
	if (task->doing == RUNS)
		sums.cpus[task->cpu].current = 0;
	set_doing(task, doing, t_ns);
	task->woken_ns = 0;
	task->cpu = cpu;
}

static void moves(struct seen *task, int32_t cpu, uint64_t t_ns)
{
	sum_wait(task, t_ns);
	if (cpu >= 0 && (uint32_t)cpu < sums.header.nr_cpus)
		task->cpu = (uint16_t)cpu;
}

/* A task that is woken while it runs goes on running, unless it turns out that it did not. */
static void wakes(const struct event *e)
{
	struct seen *task = task_of(e->pid);

	if (task->doing == RUNS && e->kind == EVENT_NEW)
		stops(e->pid, task->cpu, SLEEPS, e->t_ns);
	if (task->doing == SLEEPS)
		set_doing(task, WAITS, e->t_ns);
	if (task->doing == WAITS)
		moves(task, e->value, e->t_ns);
	/* The first counts if several follow each other. */
	if (!task->woken_ns)
		task->woken_ns = e->t_ns;
}

static void handle(const struct event *e)
{
	struct seen *task = &sums.tasks[e->pid];

	if (e->t_ns <= sums.blind_ns)
		return;
	switch (e->kind) {
	case EVENT_SWITCH:
		if (sums.cpus[e->cpu].current != e->pid)
			leave_unseen(e->cpu);
		stops(e->pid, e->cpu, e->value & STATE_BLOCKED ? SLEEPS : WAITS, e->t_ns);
		runs(e->other, e->cpu, e->t_ns);
		break;
	case EVENT_RUNTIME:
		/* It began before this; another CPU does not know where. */
		if (!(e->flags & EVENT_ELSEWHERE))
			runs(e->pid, e->cpu, e->t_ns - e->other);
		else if (task->doing == WAITS)
			runs(e->pid, task->cpu, e->t_ns - e->other);
		break;
	case EVENT_EXIT:
		stops(e->pid, e->cpu, SLEEPS, e->t_ns);
		break;
	case EVENT_NEW:
	case EVENT_WAKING:
		if (e->pid)
			wakes(e);
		break;
	default:
		if (task->doing != RUNS)
			moves(task, e->value, e->t_ns);
	}
}

/* ---- events come ---------------------------------------------------------------- */

static void forget_tasks(void)
{
	for (size_t i = 0; i < sums.nr_listed; i++) {
		sums.tasks[sums.listed[i]].doing = SLEEPS;
		sums.tasks[sums.listed[i]].woken_ns = 0;
	}
	for (uint32_t i = 0; i < sums.header.nr_cpus; i++)
		sums.cpus[i].current = 0;
}

/* All up to @end_ns is in the batch: it is summed up, and the rest waits. */
static void settle(uint64_t end_ns)
{
	struct events events = { .header = &sums.header, .first = sums.batch, .nr = sums.nr };
	size_t nr = 0;
	const char *failed;

	if (sums.blind_ns > sums.end_ns)
		forget_tasks();
	failed = sums.nr ? events_walk(&events, end_ns, handle) : NULL;
	if (failed)
		refuse("%s", failed);
	for (size_t i = 0; i < sums.nr; i++) {
		if (sums.batch[i].t_ns > end_ns)
			sums.batch[nr++] = sums.batch[i];
	}
	sums.nr = nr;
	sums.end_ns = end_ns;
}

void sums_take(const struct event *e)
{
	if (e->pid >= PIDS_MAX || (e->kind == EVENT_SWITCH && e->other >= PIDS_MAX))
		return;
	switch (e->kind) {
	case EVENT_SWITCH:
	case EVENT_WAKING:
	case EVENT_WAKEUP:
	case EVENT_NEW:
	case EVENT_MIGRATE:
	case EVENT_EXIT:
	case EVENT_RUNTIME:
		sums.batch = grown(sums.batch, sums.nr, &sums.room, sizeof(*e));
		sums.batch[sums.nr++] = *e;
		break;
	case EVENT_NAME:
		memcpy(ring_name(e->pid), e->name, NAME_BYTES);
		break;
	case EVENT_LOST:
		sums.nr_lost += e->other;
		if (sums.blind_ns < e->t_ns)
			sums.blind_ns = e->t_ns;
		break;
	case EVENT_SYNC:
		settle(e->t_ns);
		break;
	default:
		break;
	}
}

/* ---- the sums ------------------------------------------------------------------- */

/* What waits and for how long; where no task runs, that which was preempted there last, by this recorder, does. */
static void sum_up(void)
{
	uint32_t preempted[RECORD_CPUS_MAX] = { 0 };

	for (size_t i = 0; i < sums.nr_listed; i++) {
		uint32_t pid = sums.listed[i];
		struct seen *task = &sums.tasks[pid];

		if (task->doing == SLEEPS)
			continue;
		sums.cpus[task->cpu].queue++;
		if (task->doing != WAITS)
			continue;
		if (task->woken_ns && task->woken_ns <= sums.end_ns) {
			uint64_t age_ns = sums.end_ns - task->woken_ns;

			sums.ages[part_of(age_ns)]++;
			if (sums.oldest_ns < age_ns)
				sums.oldest_ns = age_ns;
		} else if (!preempted[task->cpu] ||
			   sums.tasks[preempted[task->cpu]].since_ns < task->since_ns) {
			preempted[task->cpu] = pid;
		}
	}
	for (uint32_t i = 0; i < sums.header.nr_cpus; i++) {
		if (!sums.cpus[i].current)
			sums.cpus[i].current = preempted[i];
	}
}

/* Those of @waiters have waited longest, by time and number. */
static void find_waiters(uint32_t waiters[WAITERS_MAX])
{
	for (size_t i = 0; i < sums.nr_listed; i++) {
		uint32_t pid = sums.listed[i];

		sum_wait(&sums.tasks[pid], sums.end_ns);
		for (int at = 0; at < WAITERS_MAX && sums.tasks[pid].waited_ns; at++) {
			uint32_t other = waiters[at];
			uint64_t ns = sums.tasks[other].waited_ns;

			if (other && (ns > sums.tasks[pid].waited_ns ||
				      (ns == sums.tasks[pid].waited_ns && other < pid)))
				continue;
			waiters[at] = pid;
			pid = other;
		}
	}
}

static void print_name(uint32_t pid)
{
	const char *name = ring_name(pid);

	print_json(name, strnlen(name, NAME_BYTES));
}

static void print_cpus(void)
{
	const char *comma = "";

	printf(",\"cpus\":[");
	for (uint32_t i = 0; i < sums.header.nr_cpus; i++) {
		if (!sums.cpus[i].queue && !sums.cpus[i].waits_ns)
			continue;
		printf("%s[%u,%u,", comma, i, sums.cpus[i].current);
		print_name(sums.cpus[i].current);
		printf(",%u,%llu]", sums.cpus[i].queue, (unsigned long long)sums.cpus[i].waits_ns);
		comma = ",";
	}
	putchar(']');
}

static void print_waiters(const uint32_t waiters[WAITERS_MAX])
{
	printf(",\"waiters\":[");
	for (int i = 0; i < WAITERS_MAX && waiters[i]; i++) {
		printf("%s[%u,", i ? "," : "", waiters[i]);
		print_name(waiters[i]);
		printf(",%llu]", (unsigned long long)sums.tasks[waiters[i]].waited_ns);
	}
	putchar(']');
}

/* A new interval begins; tasks that sleep are forgotten. */
static void begin_interval(void)
{
	size_t nr = 0;

	for (size_t i = 0; i < sums.nr_listed; i++) {
		struct seen *task = &sums.tasks[sums.listed[i]];

		task->waited_ns = 0;
		task->is_listed = task->doing != SLEEPS;
		if (task->is_listed)
			sums.listed[nr++] = sums.listed[i];
	}
	sums.nr_listed = nr;
	for (uint32_t i = 0; i < sums.header.nr_cpus; i++) {
		struct seen *task = &sums.tasks[sums.cpus[i].current];

		/* A preempted task stands there only in print. */
		if (task->doing != RUNS)
			sums.cpus[i].current = 0;
		sums.cpus[i].queue = 0;
		sums.cpus[i].waits_ns = 0;
	}
	sums.sum_ns = sums.oldest_ns = 0;
	sums.begin_ns = sums.end_ns;
}

void sums_print(bool (*is_runnable)(uint32_t pid))
{
	uint32_t waiters[WAITERS_MAX] = { 0 };

	/* Some kernels hide that a task has stopped. */
	for (uint32_t i = 0; is_runnable && i < sums.header.nr_cpus; i++) {
		uint32_t pid = sums.cpus[i].current;

		if (pid && !is_runnable(pid))
			stops(pid, (uint16_t)i, SLEEPS, sums.end_ns);
	}
	sum_up();
	find_waiters(waiters);
	printf("{\"seen_ns\":%llu,\"window_ns\":%llu,\"lost\":%llu,\"sum_ns\":%llu,"
	       "\"oldest_ns\":%llu",
	       (unsigned long long)sums.end_ns,
	       (unsigned long long)(sums.begin_ns ? sums.end_ns - sums.begin_ns : 0),
	       (unsigned long long)sums.nr_lost, (unsigned long long)sums.sum_ns,
	       (unsigned long long)sums.oldest_ns);
	print_cpus();
	print_parts("latencies", sums.latencies);
	print_parts("ages", sums.ages);
	print_waiters(waiters);
	puts("}");
	fflush(stdout);
	begin_interval();
}

int sums_main(int argc, char **argv)
{
	struct events events;
	const char *failed = argc == 1 ? events_open(&events, argv[0]) :
					 "sums: give one file of events";

	if (failed)
		refuse("%s", failed);
	sums_open(events.header->nr_cpus);
	for (uint64_t i = 0; i < events.nr; i++) {
		sums_take(&events.first[i]);
		if (events.first[i].kind == EVENT_SYNC)
			sums_print(NULL);
	}
	return 0;
}
