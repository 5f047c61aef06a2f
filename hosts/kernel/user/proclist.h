/* SPDX-License-Identifier: MIT */
/*
 * proclist.h - the list of processes, for the programs that print it.
 *
 * Read next: proclist.c.
 */
#ifndef USER_PROCLIST_H
#define USER_PROCLIST_H

struct procinfo;

/*
 * All processes, oldest first, in memory from malloc(). Return: how many; -1
 * when memory is used up.
 */
int proc_list(struct procinfo **list);

/* "running", "runnable", "blocked", "new", "zombie". */
const char *proc_state(const struct procinfo *p);

/* "priority=3 tickets=10": what was set for it, cut at @max bytes. */
void proc_attributes(const struct procinfo *p, char *to, int max);

#endif
