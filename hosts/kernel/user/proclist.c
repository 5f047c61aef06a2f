/* SPDX-License-Identifier: MIT */
/*
 * proclist.c - the list of processes, for ps and top.
 *
 * Read next: lab/procinfo.h.
 */
#include "kernel/types.h"
#include "lab/procinfo.h"
#include "user/proclist.h"
#include "user/user.h"

int proc_list(struct procinfo **list)
{
	int room = 64, nr;

	for (;;) {
		*list = malloc(room * sizeof(**list));
		if (!*list)
			return -1;
		nr = procs(*list, room);
		if (nr <= room)
			return nr;
		/* There are more; some may come while memory is found for them. */
		free(*list);
		room = nr + 16;
	}
}

const char *proc_state(const struct procinfo *p)
{
	static const char *const names[] = {
		[PROC_NEW] = "new",	      [PROC_BLOCKED] = "blocked",
		[PROC_RUNNABLE] = "runnable", [PROC_RUNNING] = "running",
		[PROC_ZOMBIE] = "zombie",
	};

	return p->state >= 0 && p->state <= PROC_ZOMBIE ? names[p->state] : "?";
}

void proc_attributes(const struct procinfo *p, char *to, int max)
{
	/* In the order of TASK_ATTR_*, scx/attrs.h. */
	static const char *const names[] = {
		"priority", "tickets", "credits", "cap", "group", "deadline", "burst", "weight",
	};
	int length = 0;

	to[0] = 0;
	for (int key = 0; key < 8 && length < max; key++)
		if (p->attr_given & (1U << key))
			length += snprintf(to + length, max - length, "%s%s=%ld", length ? " " : "",
					   names[key], p->attr[key]);
}
