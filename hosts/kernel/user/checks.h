/* SPDX-License-Identifier: MIT */
/*
 * checks.h - the test program of the system calls: what its files share.
 *
 * A check is a function that runs in a process of its own, in an empty folder,
 * and returns when all was well. Whatever it leaves behind (memory, files,
 * processes) is a failure as well; the runner counts before and after.
 *
 * Read next: checks.c, the runner; checks_memory.c.
 */
#ifndef USER_CHECKS_H
#define USER_CHECKS_H

#include "kernel/types.h"
#include "user/user.h"

/* Uses up what others need (memory, processes, blocks): not beside others. */
#define CHECK_ALONE	1
/* Costs seconds; left out by -q. */
#define CHECK_LONG	2
/* Looks whether a policy stays: no switcher may run meanwhile. */
#define CHECK_STILL	4
/* Fails, to show that the runner notices: runs only when it is named. */
#define CHECK_FAILS	8

struct check {
	const char *name;
	void (*run)(void);
	int flags; /* CHECK_* */
};

/* Each ends with an entry without a name. */
extern const struct check checks_memory[];
extern const struct check checks_faults[];
extern const struct check checks_files[];
extern const struct check checks_limits[];
extern const struct check checks_procs[];
extern const struct check checks_sched[];
extern const struct check checks_calls[];
extern const struct check checks_self[];

/* Goes on if @cond holds, else says where it did not and ends the process. */
#define CHECK(cond)							\
	do {								\
		if (!(cond))						\
			check_failed(__FILE__, __LINE__, #cond);	\
	} while (0)

/* The two are equal as signed numbers; else both are printed. */
#define CHECK_EQUAL(is, shall_be)					\
	check_equal(__FILE__, __LINE__, #is, (long)(is), (long)(shall_be))

void check_failed(const char *file, int line, const char *what) __attribute__((noreturn));
void check_equal(const char *file, int line, const char *what, long is, long shall_be);

/* fork() that must work. */
int check_fork(void);

/* Run @child in a process of its own. Return: its status. */
int check_status(void (*child)(void));

/* Wait for one child, which must be there. Return: its status. */
int check_wait(void);

/* A file of @bytes made of a pattern, which check_content() looks for. */
void check_make_file(const char *path, int bytes);
void check_content(const char *path, int bytes);

/*
 * Addresses that no program may use: kernel memory, devices, holes, and what is
 * not an address at all. The last is 0.
 */
extern const unsigned long check_wild[];

/* A system call by number, with whatever arguments. */
long check_call(long number, long a0, long a1, long a2, long a3, long a4, long a5);

/*
 * Switch to another policy every few ms, from a process of its own, until
 * check_stop_switching() ends it and puts the first policy back. Return: its
 * pid; -1 if there is no process for it. stop: -1 if the policy cannot come back.
 */
int check_start_switching(unsigned long seed);
int check_stop_switching(int pid);

/* A random number; the same for the same @state. */
unsigned int check_random(unsigned long *state);

#endif
