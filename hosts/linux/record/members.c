/* SPDX-License-Identifier: MIT */
/*
 * members.c - which tasks exist when a recording begins, as /proc tells it.
 *
 * Events are on already when this is read, so that no task is born unseen between
 * the two; one that both know is known once. A group is read again while it is
 * recorded, since processes are moved into it.
 *
 * Called by capture.c. Read next: lives.c, where MEMBER events are used.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"

#define GROUP_DEPTH_MAX 16
/* How often a group is read again. */
#define FOLLOW_NS 200000000ULL

struct process {
	uint32_t pid;
	uint32_t parent;
	int32_t depth; /* below a root; -1: not below one */
	bool is_root;
};

/* By pid: below which root, plus 1; 0: below none. Untouched pages cost nothing. */
static int32_t *depth_plus_1;
/* By pid: its MEMBER has been put. */
static bool *is_put;
/* The group that is recorded; empty: none is. */
static char group[4096];
static uint64_t followed_ns;

/* Parent, state and name of a process or thread; false when it is gone. */
static bool read_stat(const char *path, uint32_t *parent, char *state, char name[NAME_BYTES])
{
	char line[512], *open, *close;
	FILE *file = fopen(path, "re");
	bool is_good = false;

	if (!file)
		return false;
	/* The name in parentheses may hold anything, ')' included. */
	if (fgets(line, sizeof(line), file) && (open = strchr(line, '(')) &&
	    (close = strrchr(line, ')'))) {
		is_good = sscanf(close + 1, " %c %u", state, parent) == 2;
		*close = '\0';
		memset(name, 0, NAME_BYTES);
		strncpy(name, open + 1, NAME_BYTES - 1);
	}
	fclose(file);
	return is_good;
}

static void put_thread(uint32_t pid, uint32_t process, uint32_t parent, int32_t depth, char state,
		       const char name[NAME_BYTES])
{
	struct event named = { .pid = pid, .kind = EVENT_NAME };
	struct event member = {
		.pid = pid,
		.kind = EVENT_MEMBER,
		.flags = (uint8_t)((state == 'R') | (pid == process ? 0 : EVENT_IS_THREAD)),
		.t_ns = now_ns(),
		.other = pid == process ? parent : process,
		.value = depth,
	};

	memcpy(named.name, name, NAME_BYTES);
	event_put(&named);
	event_put(&member);
}

static void put_threads(const struct process *p)
{
	char path[64], name[NAME_BYTES], state;
	struct dirent *entry;
	uint32_t parent;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%u/task", p->pid);
	folder = opendir(path);
	if (!folder)
		return;
	is_put[p->pid] = true;
	while ((entry = readdir(folder))) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", p->pid, pid);
		if (pid && pid != (uint32_t)getpid() && read_stat(path, &parent, &state, name))
			put_thread(pid, p->pid, parent, p->depth, state, name);
	}
	closedir(folder);
}

static size_t read_processes(struct process **all, const struct selection *s)
{
	struct process *list = NULL;
	size_t nr = 0, room = 0;
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	char path[300], name[NAME_BYTES], state;

	while (proc && (entry = readdir(proc))) {
		struct process p = { .depth = -1 };

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		p.pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		if (!read_stat(path, &p.parent, &state, name) || p.pid >= PIDS_MAX ||
		    p.parent >= PIDS_MAX)
			continue;
		p.is_root = s->by == EVERY_TASK || (s->by == NAMED && !strcmp(name, s->name));
		if (nr == room) {
			room = room ? 2 * room : 256;
			list = realloc(list, room * sizeof(*list));
			if (!list)
				refuse("no memory for the list of processes");
		}
		list[nr++] = p;
	}
	if (proc)
		closedir(proc);
	*all = list;
	return nr;
}

/* Give a generation to all below those that have one, until none is left. */
static void find_depths(struct process *list, size_t nr)
{
	bool has_changed = true;

	for (size_t i = 0; i < nr; i++) {
		if (list[i].is_root)
			depth_plus_1[list[i].pid] = 1;
	}
	while (has_changed) {
		has_changed = false;
		for (size_t i = 0; i < nr; i++) {
			int32_t *own = &depth_plus_1[list[i].pid];

			if (*own || !depth_plus_1[list[i].parent])
				continue;
			*own = depth_plus_1[list[i].parent] + 1;
			has_changed = true;
		}
	}
	for (size_t i = 0; i < nr; i++)
		list[i].depth = depth_plus_1[list[i].pid] - 1;
}

/* Of visit_group(): nftw() passes nothing on. */
static void (*found_in_group)(uint32_t pid);

static void read_group(const char *folder)
{
	char path[sizeof(group) + 16];
	unsigned int pid;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	file = fopen(path, "re");
	while (file && fscanf(file, "%u", &pid) == 1) {
		if (pid && pid < PIDS_MAX)
			found_in_group(pid);
	}
	if (file)
		fclose(file);
}

static void make_root(uint32_t pid)
{
	depth_plus_1[pid] = 1;
}

static void put_new(uint32_t pid)
{
	const struct process p = { .pid = pid };

	if (!is_put[pid])
		put_threads(&p);
}

static int read_folder(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status;
	(void)at;
	if (type == FTW_D)
		read_group(path);
	return 0;
}

/* Calls @found for each process of the group and those below it. */
static void visit_group(void (*found)(uint32_t pid))
{
	found_in_group = found;
	nftw(group, read_folder, GROUP_DEPTH_MAX, FTW_PHYS);
}

void members_forget(uint32_t pid)
{
	if (is_put && pid < PIDS_MAX)
		is_put[pid] = false;
}

bool members_runs(uint32_t pid)
{
	char path[64], name[NAME_BYTES], state;
	uint32_t parent;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	return pid != (uint32_t)getpid() && read_stat(path, &parent, &state, name) && state == 'R';
}

void members_follow(void)
{
	if (!group[0] || now_ns() - followed_ns < FOLLOW_NS)
		return;
	followed_ns = now_ns();
	visit_group(put_new);
}

void members_put(const struct selection *s)
{
	struct process *list;
	size_t nr;

	free(depth_plus_1);
	depth_plus_1 = calloc(PIDS_MAX, sizeof(*depth_plus_1));
	free(is_put);
	is_put = calloc(PIDS_MAX, sizeof(*is_put));
	if (!depth_plus_1 || !is_put)
		refuse("no memory for the tree of processes");
	group[0] = '\0';
	if (s->by == TREE_OF && s->root < PIDS_MAX)
		depth_plus_1[s->root] = 1;
	if (s->by == IN_GROUP) {
		snprintf(group, sizeof(group), "%s", s->group);
		visit_group(make_root);
	}
	nr = read_processes(&list, s);
	find_depths(list, nr);
	for (size_t i = 0; i < nr; i++) {
		if (list[i].depth >= 0)
			put_threads(&list[i]);
	}
	free(list);
	followed_ns = now_ns();
}
