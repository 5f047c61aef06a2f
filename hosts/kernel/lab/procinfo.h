/* SPDX-License-Identifier: MIT */
/*
 * procinfo.h - what procs(), memstat() and getpinfo() tell about the system.
 *
 * procs() fills an array of struct procinfo, oldest process first, and returns
 * how many there are; ps and top print it. memstat() is for leak checks: what
 * it counts must be the same before and after a test. getpinfo() is the call
 * that operating-systems courses ask for, with their structure.
 *
 * Read next: user/ps.c.
 */
#ifndef KERNEL_PROCINFO_H
#define KERNEL_PROCINFO_H

#include "kernel/param.h"

enum procinfo_state {
	PROC_NEW, /* forked, held back until release() */
	PROC_BLOCKED,
	PROC_RUNNABLE,
	PROC_RUNNING,
	PROC_ZOMBIE, /* ended; its parent has not waited yet */
};

struct procinfo {
	int pid;
	int ppid;		 /* 0: none */
	int state;		 /* enum procinfo_state */
	int cpu;		 /* where it runs, or ran last; -1: nowhere yet */
	int nice;		 /* -20..19 */
	unsigned int weight;	 /* 1..10000; 100 is nice 0 */
	unsigned int attr_given; /* bit 1 << TASK_ATTR_*: set for this process */
	unsigned int reserved;
	long attr[8];		    /* by TASK_ATTR_*, valid where given */
	unsigned long memory_bytes; /* of its address space */
	unsigned long start_ns;	    /* since boot */
	unsigned long cputime_ns;
	unsigned long wait_ns;	      /* runnable, but not running */
	unsigned long nr_voluntary;   /* switches: blocked or yielded */
	unsigned long nr_involuntary; /* switches: preempted */
	unsigned long nr_migrations;
	char name[16];	    /* of its program */
	char waits_for[16]; /* why it is blocked: "pipe", "sleep", "child" */
};

struct memstat {
	unsigned long pages_total;
	unsigned long pages_free;
	unsigned long blocks_free;   /* of the file system, 1 KiB each */
	unsigned long inodes_free;   /* on disk */
	unsigned long inodes_in_use; /* in memory: open, or a process's cwd */
	unsigned long files_open;    /* struct file in use */
	unsigned long procs;	     /* all but those reaped */
};

/* The structure of OSTEP's scheduling projects; slots beyond NPROC are cut. */
struct pstat {
	int inuse[NPROC]; /* 1: this slot describes a process */
	int tickets[NPROC];
	int pid[NPROC];
	int ticks[NPROC]; /* ticks of CPU time it has had */
};

#endif
