/* SPDX-License-Identifier: MIT */
/*
 * members.c - which tasks exist when a recording begins, as /proc tells it.
 *
 * Events are on already when this is read, so that no task is born unseen between
 * the two; one that both know is known once.
 *
 * Called by capture.c. Read next: lives.c, where MEMBER events are used.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record.h"

struct process {
	uint32_t pid;
	uint32_t parent;
	int32_t depth;		/* below the root; -1: not below it */
};

/* Parent, state and name of a process or thread; false when it is gone. */
static bool read_stat(const char *path, uint32_t *parent, char *state,
		      char name[NAME_BYTES])
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

static void put_thread(uint32_t pid, uint32_t process, uint32_t parent,
		       int32_t depth, char state, const char name[NAME_BYTES])
{
	struct event named = { .pid = pid, .kind = EVENT_NAME };
	struct event member = {
		.pid = pid,
		.kind = EVENT_MEMBER,
		.flags = (uint8_t)((state == 'R') |
				   (pid == process ? 0 : EVENT_IS_THREAD)),
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
	while ((entry = readdir(folder))) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", p->pid, pid);
		if (pid && pid != (uint32_t)getpid() &&
		    read_stat(path, &parent, &state, name))
			put_thread(pid, p->pid, parent, p->depth, state,
				   name);
	}
	closedir(folder);
}

static size_t read_processes(struct process **all)
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
		if (!read_stat(path, &p.parent, &state, name) ||
		    p.pid >= PIDS_MAX || p.parent >= PIDS_MAX)
			continue;
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

/*
 * Give a generation to all below those that have one, until none is left. The
 * parent of each is found in a table by pid, whose untouched pages cost nothing.
 */
static void find_depths(struct process *list, size_t nr, uint32_t root)
{
	size_t bytes = PIDS_MAX * sizeof(int32_t);
	int32_t *depth_plus_1 = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				     -1, 0);
	bool has_changed = true;

	if (depth_plus_1 == MAP_FAILED)
		refuse("no memory for the tree of processes");
	if (root < PIDS_MAX)
		depth_plus_1[root] = 1;
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
	munmap(depth_plus_1, bytes);
}

void members_put(uint32_t root, bool is_all)
{
	struct process *list;
	size_t nr = read_processes(&list);

	if (!is_all)
		find_depths(list, nr, root);
	for (size_t i = 0; i < nr; i++) {
		if (is_all)
			list[i].depth = 0;
		if (list[i].depth >= 0)
			put_threads(&list[i]);
	}
	free(list);
}
