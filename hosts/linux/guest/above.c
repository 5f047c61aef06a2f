/* SPDX-License-Identifier: MIT */
/*
 * above.c - real-time tasks, which are above the policy, have a CPU for a while.
 *
 * Each is a process of its own, made before time 0, that waits for its time and computes.
 * Called by init.c, which says when, and by play.c. Read next: play.c.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "guest.h"

#define NR_MAX 64
/* Above the threads of the kernel and process 1. */
#define PRIORITY 2

static struct above {
	u32 cpu;
	u64 start_ns, length_ns;	/* since time 0 */
	s32 pid;
} list[NR_MAX];
static u32 nr;

int above_add(u64 cpu, u64 start_ns, u64 length_ns)
{
	if (nr == NR_MAX || !length_ns)
		return -1;
	list[nr++] = (struct above){ (u32)cpu, start_ns, length_ns, 0 };
	return 0;
}

static void be_above(const struct above *a, u64 start_ns)
{
	const struct sched_param param = { .sched_priority = PRIORITY };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(a->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sched_setscheduler(0, SCHED_FIFO, &param);
	sleep_until_ns(start_ns + a->start_ns);
	while (monotonic_ns() < start_ns + a->start_ns + a->length_ns)
		;
	_exit(0);
}

void above_begin(u64 start_ns)
{
	for (u32 i = 0; i < nr; i++) {
		list[i].pid = fork();
		if (!list[i].pid)
			be_above(&list[i], start_ns);
	}
}

void above_end(void)
{
	for (u32 i = 0; i < nr; i++)
		if (list[i].pid > 0)
			kill(list[i].pid, SIGKILL);
	nr = 0;
}
