/* SPDX-License-Identifier: MIT */
/*
 * groups.c - the cgroups of a workload program, as cgroups of Linux (version 2).
 *
 * Each is a folder called by its object's number below its parent's, with the program's weight,
 * quota and CPUs. A task is put where it begins before the policy is attached; one that a parent will spawn
 * goes where the parent begins, and once more where the parent has moved meanwhile.
 *
 * Read next: verbs.c, where tasks move; Linux's Documentation/admin-guide/cgroup-v2.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"

#define ROOT "/cgroup"
#define PATH_BYTES 512		/* 31 levels, each an object's number */

/* Write the folder of @group, which is 1 + its object or 0. Return: its length. */
static int write_path(const void *program, u64 group, char *path)
{
	int used;

	if (!group)
		return snprintf(path, PATH_BYTES, ROOT);
	used = write_path(program, sl_program_group(program, group - 1)[SL_GROUP_PARENT], path);
	return used + snprintf(path + used, PATH_BYTES - used, "/%llu", group - 1);
}

/* Return: 0, or -errno. */
static int write_file(const char *folder, const char *name, const char *text)
{
	char path[PATH_BYTES + 32];
	int fd;
	int failed;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	failed = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return failed;
}

/* The controller, from the root down to @group, which is 1 + its object or 0. */
static int give_cpusets(const void *program, u64 group)
{
	char path[PATH_BYTES];
	int failed = 0;

	if (group)
		failed = give_cpusets(program,
				      sl_program_group(program, group - 1)[SL_GROUP_PARENT]);
	write_path(program, group, path);
	return failed ? failed : write_file(path, "cgroup.subtree_control", "+cpuset");
}

/* @cpus: where the mask is, as SL_GROUP_CPUS. The lower 64 CPUs are all that a guest has. */
static int write_cpus(const void *program, const char *path, u64 cpus)
{
	u64 mask = sl_program_values(program)[cpus >> 32];
	char text[64 * 4];
	int used = 0;

	for (u32 cpu = 0; cpu < 64; cpu++)
		if (mask >> cpu & 1)
			used += snprintf(text + used, sizeof(text) - used, "%u,", cpu);
	return write_file(path, "cpuset.cpus", text);
}

static int make_group(const void *program, u32 object)
{
	const u64 *values = sl_program_group(program, object);
	u64 cpus = sl_program_group_cpus(program, object);
	char path[PATH_BYTES];
	char text[64];
	int failed;

	write_path(program, values[SL_GROUP_PARENT], path);
	failed = write_file(path, "cgroup.subtree_control", "+cpu");
	if (!failed && cpus)
		failed = give_cpusets(program, values[SL_GROUP_PARENT]);
	write_path(program, object + 1, path);
	if (!failed && mkdir(path, 0755))
		failed = -errno;
	snprintf(text, sizeof(text), "%llu", values[SL_GROUP_WEIGHT]);
	if (!failed)
		failed = write_file(path, "cpu.weight", text);
	snprintf(text, sizeof(text), "%llu %llu", values[SL_GROUP_QUOTA_US],
		 values[SL_GROUP_PERIOD_US]);
	if (!failed && values[SL_GROUP_QUOTA_US] != ~0ULL)
		failed = write_file(path, "cpu.max", text);
	if (!failed && cpus)
		failed = write_cpus(program, path, cpus);
	return failed;
}

int groups_make(const void *program)
{
	u32 nr = sl_program_header(program)->nr_objects;
	int failed = 0;
	u32 i;

	if (!sl_program_has_groups(program))
		return 0;
	mkdir(ROOT, 0755);
	/* Otherwise a task that moves itself sleeps for a grace period of RCU. */
	if (mount("cgroup2", ROOT, "cgroup2", 0, "favordynmods") && errno != EBUSY)
		failed = -errno;
	for (i = 0; i < nr && !failed; i++)
		if (sl_program_objects(program)[i].kind == SL_OBJECT_GROUP)
			failed = make_group(program, i);
	if (failed)
		frame_text("fatal", "cgroups: %s", strerror(-failed));
	return failed;
}

void groups_remove(const void *program)
{
	u32 i = sl_program_has_groups(program) ? sl_program_header(program)->nr_objects : 0;
	char path[PATH_BYTES];

	while (i--) {
		if (sl_program_objects(program)[i].kind != SL_OBJECT_GROUP)
			continue;
		write_path(program, i + 1, path);
		rmdir(path);
	}
	/* The next program may have groups without. */
	if (sl_program_has_groups(program) && sl_program_has_cpusets(program))
		write_file(ROOT, "cgroup.subtree_control", "-cpuset");
}

int groups_set_weight(const void *program, u32 object, u64 weight)
{
	char path[PATH_BYTES];
	char text[32];

	write_path(program, object + 1ULL, path);
	snprintf(text, sizeof(text), "%llu", weight);
	return write_file(path, "cpu.weight", text);
}

int groups_set_quota(const void *program, u32 object, u64 quota_us)
{
	char path[PATH_BYTES];
	char text[64];

	write_path(program, object + 1ULL, path);
	snprintf(text, sizeof(text), "%llu %llu", quota_us,
		 sl_program_group(program, object)[SL_GROUP_PERIOD_US]);
	return write_file(path, "cpu.max", text);
}

u32 groups_first(const void *program, u32 task)
{
	const struct sl_program_task *tasks = sl_program_tasks(program);

	while (!tasks[task].group_object && tasks[task].parent != SL_PROGRAM_NONE)
		task = tasks[task].parent;
	return tasks[task].group_object;
}

int groups_join(const void *program, u32 group, s32 pid)
{
	char path[PATH_BYTES];
	char text[16];

	write_path(program, group, path);
	snprintf(text, sizeof(text), "%d", pid);
	return write_file(path, "cgroup.procs", text);
}
