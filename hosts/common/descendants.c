/* SPDX-License-Identifier: MIT */
/*
 * descendants.c - end every process that descends from this one.
 *
 * Called by hosts/linux/launch, by the simulator's server and by supervise.c.
 */
#define _GNU_SOURCE
#include "descendants.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A tree of which all that is left belongs to another user is given up soon. */
#define REFUSALS_MAX 100

/* The parent of @pid, or 0 when it is gone. */
static pid_t parent_of(pid_t pid)
{
	char path[64], line[512], *end;
	FILE *file;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	/* The name in parentheses may hold anything, ')' included. */
	if (fgets(line, sizeof(line), file) && (end = strrchr(line, ')')) &&
	    sscanf(end + 1, " %*c %d", &parent) != 1)
		parent = 0;
	fclose(file);
	return parent;
}

static bool is_descendant(pid_t pid, pid_t of)
{
	while (pid > 1 && pid != of)
		pid = parent_of(pid);
	return pid == of;
}

/*
 * Kill all descendants, not only the children: a child that must wait for the
 * CPU of a real-time child of its own would never come to die, and so never
 * leave that one to this process. Return: how many belong to another user and may not be
 * killed, if there are no others.
 */
static int kill_all_below_us(void)
{
	pid_t self = getpid();
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	int nr_refused = 0, nr_killed = 0;

	if (!proc)
		return 0;
	while ((entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);

		if (pid <= 0 || pid == self || !is_descendant(pid, self))
			continue;
		if (kill(pid, SIGKILL) && errno == EPERM)
			nr_refused++;
		else
			nr_killed++;
	}
	closedir(proc);
	return nr_killed ? 0 : nr_refused;
}

bool sl_kill_descendants(uint32_t *nr_refusals)
{
	struct timespec pause = { .tv_nsec = 1000000 };

	*nr_refusals = kill_all_below_us() ? *nr_refusals + 1 : 0;
	nanosleep(&pause, NULL);
	return *nr_refusals < REFUSALS_MAX;
}

uint32_t sl_end_descendants(void)
{
	uint32_t nr_refusals = 0;
	uint32_t nr_reaped = 0;
	pid_t pid;

	do {
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			nr_reaped++;
	} while (!pid && sl_kill_descendants(&nr_refusals));
	return nr_reaped;
}
