/* SPDX-License-Identifier: MIT */
/*
 * costs.c - what recording costs the recorded tasks, and what a switch costs without it.
 *
 * Both are CPU time of whichever task runs, so a recording has them in its tasks' times.
 * They are measured when the rings are open and before there is a file: a child on the
 * CPU of this process, at its priority, yields and exchanges bytes with it, and both
 * memory and calls are used as programs use them, since a loop of nothing but calls finds all
 * of the kernel's path in the caches. Of each, the fastest of some batches is taken, once
 * with the events on and once without.
 *
 * Called by capture.c. Read next: measure/replay.py, which takes them off.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"

#define PROBE_STEPS 128
#define PROBE_BATCHES 5
#define PROBE_BYTES 100
/* What a program may touch between two calls: as much as a first cache holds. */
#define TOUCHED_BYTES 32768
#define CACHE_LINE 64

/* What one batch does PROBE_STEPS times, and how many calls or switches that is. */
enum probe {
	PROBE_RECORDED, /* two calls that are recorded, and memory */
	PROBE_OTHER,	/* a call that is not, and memory */
	PROBE_YIELD_ALONE,
	PROBE_YIELD,	/* a switch to the child and one back */
	PROBE_EXCHANGE, /* two switches after a block and a wake-up, four calls */
	PROBE_CALLS,	/* the calls of an exchange, without a block */
	NR_PROBES,
};

struct place {
	int to_child[2], to_parent[2], own[2]; /* socket pairs */
};

static volatile uint8_t touched[TOUCHED_BYTES];

static void touch(void)
{
	for (int i = 0; i < TOUCHED_BYTES; i += CACHE_LINE)
		touched[i]++;
}

/* Return: whether a byte went through. */
static bool pass(int from, int to)
{
	char bytes[PROBE_BYTES] = { 0 };

	return write(to, bytes, sizeof(bytes)) == sizeof(bytes) &&
	       read(from, bytes, sizeof(bytes)) == sizeof(bytes);
}

/* Answers exchanges; of yields it makes as many as the parent, once a byte asks for them. */
static _Noreturn void be_child(const struct place *p)
{
	char word[PROBE_BYTES];

	/* At the end of the parent, however it comes, this one's last end is gone. */
	close(p->to_child[1]);
	while (read(p->to_child[0], word, sizeof(word)) > 0) {
		for (int i = 0; word[0] == 'y' && i < PROBE_STEPS; i++)
			sched_yield();
		if (word[0] != 'y' && write(p->to_parent[1], word, sizeof(word)) < 0)
			break;
	}
	_exit(0);
}

static uint64_t batch_ns(const struct place *p, enum probe probe)
{
	uint64_t from_ns;

	if (probe == PROBE_YIELD && write(p->to_child[1], "y", 1) != 1)
		return 0;
	from_ns = now_ns();
	for (int i = 0; i < PROBE_STEPS; i++) {
		switch (probe) {
		case PROBE_RECORDED:
			pass(p->own[0], p->own[1]);
			touch();
			break;
		case PROBE_OTHER:
			syscall(SYS_getppid);
			touch();
			break;
		case PROBE_EXCHANGE:
			pass(p->to_parent[0], p->to_child[1]);
			break;
		case PROBE_CALLS:
			pass(p->own[0], p->own[1]);
			pass(p->own[0], p->own[1]);
			break;
		default:
			sched_yield();
		}
	}
	return now_ns() - from_ns;
}

static bool open_place(struct place *p)
{
	return !socketpair(AF_UNIX, SOCK_STREAM, 0, p->to_child) &&
	       !socketpair(AF_UNIX, SOCK_STREAM, 0, p->to_parent) &&
	       !socketpair(AF_UNIX, SOCK_STREAM, 0, p->own);
}

static void close_place(const struct place *p)
{
	for (int i = 0; i < 2; i++) {
		close(p->to_child[i]);
		close(p->to_parent[i]);
		close(p->own[i]);
	}
}

/* What one of @nr in each step takes, of that many ns for a batch. */
static int64_t each_ns(int64_t batch_ns, int nr)
{
	return batch_ns / (PROBE_STEPS * nr);
}

static uint32_t at_least_none(int64_t ns)
{
	return ns > 0 ? (uint32_t)ns : 0;
}

/* Of the fastest batches without the events [0], and of what these add to them [1]. */
static void conclude(int64_t ns[2][NR_PROBES], bool with_calls, uint32_t costs[NR_COSTS])
{
	int64_t block[2], change[2];

	for (int i = 0; i < 2; i++) {
		change[i] = each_ns(ns[i][PROBE_YIELD] - 2 * ns[i][PROBE_YIELD_ALONE], 2);
		block[i] = each_ns(ns[i][PROBE_EXCHANGE] - ns[i][PROBE_CALLS], 2) - change[i];
	}
	costs[COST_SWITCH] = at_least_none(change[1]);
	costs[COST_WAKEUP] = at_least_none(block[1]);
	costs[COST_MACHINE_SWITCH] = at_least_none(change[0]);
	costs[COST_MACHINE_LEAVE] = at_least_none(block[0]);
	if (!with_calls)
		return;
	costs[COST_CALL] = at_least_none(each_ns(ns[1][PROBE_RECORDED], 2));
	costs[COST_OTHER_CALL] = at_least_none(each_ns(ns[1][PROBE_OTHER], 1));
}

static void measure(const struct place *p, void (*set_events)(bool on), bool with_calls,
		    uint32_t costs[NR_COSTS])
{
	int64_t fastest[2][NR_PROBES];

	for (int i = 0; i < 2 * PROBE_BATCHES; i++) {
		set_events(i & 1);
		for (int probe = 0; probe < NR_PROBES; probe++) {
			int64_t ns = (int64_t)batch_ns(p, (enum probe)probe);

			if (i < 2 || ns < fastest[i & 1][probe])
				fastest[i & 1][probe] = ns;
		}
	}
	for (int probe = 0; probe < NR_PROBES; probe++)
		fastest[1][probe] -= fastest[0][probe];
	conclude(fastest, with_calls, costs);
}

void costs_measure(void (*set_events)(bool on), bool with_calls, uint32_t costs[NR_COSTS])
{
	int cpu = sched_getcpu();
	cpu_set_t before, one;
	struct place p;
	pid_t child;

	memset(costs, 0, NR_COSTS * sizeof(costs[0]));
	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before) ||
	    !open_place(&p))
		return;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	child = fork();
	if (!child)
		be_child(&p);
	if (child > 0)
		measure(&p, set_events, with_calls, costs);
	/* Without a parent's end the child ends. */
	close_place(&p);
	if (child > 0)
		waitpid(child, NULL, 0);
	sched_setaffinity(0, sizeof(before), &before);
}
