/* SPDX-License-Identifier: MIT */
/*
 * user.h - all that a user program can call.
 *
 * The first part has xv6's names and prototypes, so that its programs compile
 * as they are: include "kernel/types.h" and "user/user.h". The second part is
 * new. Every call that fails returns -1 and changes nothing; a pointer that
 * the program may not use is such a failure, never a crash of the kernel.
 *
 * All of the library is weak: a program may have a function of its own with
 * any of these names, as long as it does not need this one.
 *
 * Read next: usys.S, how a call enters the kernel; ulib.c; docs/kernel.md.
 */
#ifndef USER_USER_H
#define USER_USER_H

#include "kernel/types.h"

struct stat;
struct pstat;
struct procinfo;
struct memstat;
struct sl_record;
struct sync_spec;

#define SBRK_ERROR ((char *)-1)

/* ---- xv6's system calls ------------------------------------------------- */

int fork(void);
int exit(int status) __attribute__((noreturn));
int wait(int *status); /* status may be 0 */
int pipe(int *fds);
int write(int fd, const void *from, int bytes);
int read(int fd, void *to, int bytes);
int close(int fd);
int kill(int pid);
int exec(const char *path, char **argv);
int open(const char *path, int flags);
int mknod(const char *path, short major, short minor);
int unlink(const char *path);
int fstat(int fd, struct stat *to);
int link(const char *old, const char *new_path);
int mkdir(const char *path);
int chdir(const char *path);
int dup(int fd);
int getpid(void);
char *sbrk(int bytes); /* the old end; SBRK_ERROR */
int sleep(int ticks);
int uptime(void); /* ticks since boot */

/* What later versions of xv6 call sleep() and sbrk(). */
int pause(int ticks);
char *sbrklazy(int bytes);

/* ---- xv6's library ------------------------------------------------------ */

int stat(const char *path, struct stat *to);
char *strcpy(char *to, const char *from);
void *memmove(void *to, const void *from, int bytes);
char *strchr(const char *text, char c);
int strcmp(const char *a, const char *b);
char *gets(char *to, int max); /* a line with its newline; "" at the end */
uint strlen(const char *text);
void *memset(void *to, int c, uint bytes);
int atoi(const char *digits);
int memcmp(const void *a, const void *b, uint bytes);
void *memcpy(void *to, const void *from, uint bytes);
void *malloc(uint bytes);
void free(void *mem);
/* %d %i %u %x %p %s %c %%, with l or ll, -, 0 and a width; no floating point. */
void fprintf(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
void printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- new system calls: scheduling --------------------------------------- */

int setpriority(int pid, int priority); /* pid 0: the caller, here and below */
int settickets(int tickets);
int setattr(int pid, int key, long value);  /* key: TASK_ATTR_*, scx/attrs.h */
int getattr(int pid, int key, long *value); /* -1 too where it was never set */
int getcontextswitches(void);		    /* of the whole machine since boot */
int waitx(int *wait_ticks, int *run_ticks); /* as wait(); ticks it was */
					    /* runnable, and ran */
int getpinfo(struct pstat *to);
int nice(int increment); /* the new value, -20..19; -1 may be one */
int yield(void);
int setpolicy(const char *name); /* "mlfq", or "mlfq knob=number ..." */
/* @which -1: the one in force; else by number. Its name and "knob=number" each; length. */
int getpolicy(int which, char *to, int max);
int schedlog(struct sl_record *to, int max); /* takes records; how many */
int setaffinity(int pid, const unsigned long *mask, int words);
int print_metrics(void);

/* ---- new system calls: time --------------------------------------------- */

unsigned long cycles(void);
unsigned long clock_ns(void);	/* since boot */
unsigned long cputime_ns(void); /* of the caller */
int sleep_until_ns(unsigned long at_ns);

/* ---- new system calls: for playing workloads ---------------------------- */

int forkheld(const char *name); /* as fork(), but the child bears @name (0: as */
/* its parent) and waits for: */
int release(int pid, unsigned long at_ns); /* this; at_ns 0: now */
int syncs(const struct sync_spec *specs, int nr_specs);
int syncop(int fd, int idx, int op, unsigned long arg);
/* For a machine that is there for one workload; lab/job.h, job_play(). */
int play_at(const char *policy, unsigned long start_ns, unsigned long end_ns);

/* ---- new system calls: the machine -------------------------------------- */

int poweroff(int status);
int procs(struct procinfo *to, int max); /* how many there are, maybe > max */
int memstat(struct memstat *to);
int dump(void);	   /* queues and processes, on the console */
int fsync(int fd); /* all that was done survives a power cut */

/* ---- the library -------------------------------------------------------- */

/* As printf(), into @to with its 0, cut at @max; the length without the cut. */
int snprintf(char *to, int max, const char *format, ...) __attribute__((format(printf, 3, 4)));
int vsnprintf(char *to, int max, const char *format, __builtin_va_list values);
/* A whole number, maybe negative, and nothing after it; false: it is none. */
int parse_number(const char *text, long *to);
/* Print to the standard error, and end with status 1. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
