/* SPDX-License-Identifier: MIT */
/*
 * above.c - what happens beside the tasks: a real-time task takes a CPU from the policy for
 * a while, a CPU is offline, a cgroup gets another weight or quota.
 *
 * Each is a real-time process of its own, made before time 0, that waits for its time and
 * computes, or asks the kernel. Called by init.c, which says when, and by play.c. Read next: play.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

#define NR_MAX 64
/* Above the threads of the kernel and process 1. */
#define PRIORITY 2

static struct above {
	enum above_kind kind;
	u32 cpu;		 /* or the object of a group */
	u64 start_ns, length_ns; /* since time 0; a group's weight, or quota in ns */
	s32 pid;
} list[NR_MAX];
static u32 nr;

int above_add(enum above_kind kind, u64 cpu, u64 start_ns, u64 length_ns)
{
	if (nr == NR_MAX || !length_ns)
		return -1;
	list[nr++] = (struct above){ kind, (u32)cpu, start_ns, length_ns, 0 };
	return 0;
}

/* Returns when the kernel has done it. */
static void set_online(u32 cpu, bool is_online)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, is_online ? "1" : "0", 1) != 1)
		frame_text("fatal", "CPU %u cannot be made %s", cpu,
			   is_online ? "online" : "offline");
	close(fd);
}

static void change_group(const struct above *a, const void *program)
{
	int failed = a->kind == ABOVE_WEIGHT ?
			     groups_set_weight(program, a->cpu, a->length_ns) :
			     groups_set_quota(program, a->cpu, a->length_ns / 1000);

	if (failed)
		frame_text("fatal", "cgroup %u cannot be changed: %s", a->cpu, strerror(-failed));
	_exit(0);
}

static void be_above(const struct above *a, const void *program, u64 start_ns)
{
	const struct sched_param param = { .sched_priority = PRIORITY };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(a->kind == ABOVE_TASK ? a->cpu : 0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sched_setscheduler(0, SCHED_FIFO, &param);
	sleep_until_ns(start_ns + a->start_ns);
	if (a->kind == ABOVE_WEIGHT || a->kind == ABOVE_QUOTA)
		change_group(a, program);
	if (a->kind == ABOVE_OFFLINE) {
		set_online(a->cpu, false);
		sleep_until_ns(start_ns + a->start_ns + a->length_ns);
		set_online(a->cpu, true);
	}
	while (monotonic_ns() < start_ns + a->start_ns + a->length_ns)
		;
	_exit(0);
}

/*
 * Maps of a policy that was unloaded are freed by a kernel thread that may not leave its
 * CPU meanwhile, nor the CPU the machine.
 */
void above_prepare(void)
{
	for (u32 i = 0; i < nr; i++) {
		if (list[i].kind == ABOVE_OFFLINE) {
			set_online(list[i].cpu, false);
			set_online(list[i].cpu, true);
		}
	}
}

void above_begin(const void *program, u64 start_ns)
{
	for (u32 i = 0; i < nr; i++) {
		list[i].pid = fork();
		if (!list[i].pid)
			be_above(&list[i], program, start_ns);
	}
}

void above_end(void)
{
	for (u32 i = 0; i < nr; i++) {
		if (list[i].pid > 0)
			kill(list[i].pid, SIGKILL);
		if (list[i].kind == ABOVE_OFFLINE)
			set_online(list[i].cpu, true);
	}
	nr = 0;
}
