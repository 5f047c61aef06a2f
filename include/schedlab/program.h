/* SPDX-License-Identifier: MIT */
/*
 * program.h - what runs: the flat form of a workload.
 *
 * python/schedlab compiles a TOML workload and a seed into this file; every
 * host interprets the same bytes, so every host gets the same work. Nothing in
 * it is random any more, and nothing depends on how fast a machine is.
 * Little-endian, naturally aligned, offsets from the start of the file.
 *
 *	header | tasks | ops | objects | values (u64) | strings (NUL-ended)
 *
 * A reader of a program calls sl_program_check() first: after it, no index
 * in the file leaves its table.
 *
 * Read next: player/program.c for the check, player/player.c for a reader.
 */
#ifndef SCHEDLAB_PROGRAM_H
#define SCHEDLAB_PROGRAM_H

#include <scx/ops.h>

#define SL_PROGRAM_MAGIC "SLPROG\0\1"
#define SL_PROGRAM_VERSION 3
#define SL_PROGRAM_VERSION_MIN 1		/* without groups; 2: of groups none has CPUs */
#define SL_PROGRAM_SLOTS_MAX 16		/* loop counters and cursors per task */
#define SL_PROGRAM_NONE 0xffffffffU
#define SL_PROGRAM_TASKS_MAX 1000000

struct sl_program_header {
	char magic[8];
	u32 version;
	u32 header_bytes;
	u64 total_bytes;
	u64 seed;	/* the seed its random numbers were drawn from */
	u64 horizon_ns; /* end the run here; 0: when all tasks have ended */
	u32 nr_tasks;
	u32 nr_ops;
	u32 nr_objects;
	u32 nr_values;
	u32 strings_bytes;
	u32 nr_cpus_min; /* a run on fewer CPUs is refused; 0: any */
	u64 tasks_off;
	u64 ops_off;
	u64 objects_off;
	u64 values_off;
	u64 strings_off;
	u32 name; /* string: name of the workload */
	u32 flags;
};

/* Task i has pid i + 1 on hosts that choose pids. */
struct sl_program_task {
	u64 arrival_ns; /* ~0: started by a SPAWN of its parent */
	u64 deadline_ns;
	u64 burst_ns;
	u32 name;      /* string: the [[task]] it came from */
	u32 class_idx; /* number of that [[task]], for grouping */
	u32 parent;    /* index of the task that spawns it, or NONE */
	u32 op_first;
	u32 nr_ops;	    /* >= 1; the last is EXIT */
	u32 affinity;	    /* index into values of a mask, or NONE */
	u32 affinity_words; /* u64 words in that mask */
	u32 attr_given;	    /* bit 1 << TASK_ATTR_* */
	s32 nice;	    /* -20..19 */
	s32 priority;
	u32 tickets;
	s32 credits;
	u32 cap_percent;
	u32 group;
	u32 weight;	  /* 1..10000; from nice where not given */
	u32 group_object; /* 1 + that of its cgroup; 0: the root, or its parent's */
};

enum sl_verb {
	SL_VERB_EXIT = 0,
	SL_VERB_RUN,	/* b: ns of CPU time */
	SL_VERB_WORK,	/* a: enum sl_work; b: count of units */
	SL_VERB_SLEEP,	/* b: ns from now */
	SL_VERB_PERIOD, /* b: ns; go on at the next multiple since arrival */
	SL_VERB_READ,	/* b: bytes; a: bytes per call */
	SL_VERB_WRITE,	/* b: bytes; a: bytes per call */
	SL_VERB_YIELD,
	SL_VERB_LOCK,	 /* a: object */
	SL_VERB_UNLOCK,	 /* a: object */
	SL_VERB_SEND,	 /* a: object (pipe); b: bytes */
	SL_VERB_RECV,	 /* a: object (pipe); b: bytes */
	SL_VERB_BARRIER, /* a: object */
	SL_VERB_SPAWN,	 /* a: first task; b: how many, one per execution; */
			 /* SPAWNs of the same children share their slot */
	SL_VERB_WAIT,	 /* a: children to wait for, 0: all spawned so far */
	SL_VERB_SET,	 /* a: enum task_attr_key; b: value */
	SL_VERB_LOOP,	 /* b: rounds, 0: endless; a: index of its END */
	SL_VERB_END,	 /* a: index of its LOOP */
	SL_VERB_AWAIT,	 /* a: object (condition); b: 1 + the lock that is */
			 /* let go meanwhile and taken again, 0: none */
	SL_VERB_SIGNAL,	 /* a: object (condition); b: 0 wakes the first waiter */
			 /* longest, 1 wakes all */
	SL_VERB_TIMER,	 /* b: ns; sleep until that long after the slot's */
			 /* last time, which is then the new one; when it */
			 /* has passed: a 0 takes now instead, a 1 keeps it */
	SL_VERB_JOIN,	 /* a: object (group); the task moves there */
	SL_VERB_CHANGE,	 /* a: a task, NONE: itself; slot: enum task_attr_key, b: value; */
			 /* or SL_CHANGE_AFFINITY, b: first << 32 | words of a mask in values */
	SL_NR_VERBS,
};

enum sl_work {
	SL_WORK_PI,	/* terms of the Leibniz series */
	SL_WORK_MATMUL, /* multiply-adds of a square product */
	SL_WORK_SPIN,	/* rounds of an empty loop */
	SL_NR_WORKS,
};

#define SL_CHANGE_AFFINITY 15U

/* Flags of an op. TABLE: b is first << 32 | count into values, of which it takes the next each time. */
#define SL_OP_TABLE	0x01	/* slot is the cursor, which wraps */
#define SL_OP_SYNC	0x02	/* READ, WRITE: wait for the device on every call */
#define SL_OP_DIRECT	0x04	/* READ, WRITE: past the page cache */

/* Indices in `a` of LOOP and END are relative to the task's op_first. */
struct sl_program_op {
	u8 verb;  /* enum sl_verb */
	u8 flags; /* SL_OP_* */
	u16 slot; /* < SL_PROGRAM_SLOTS_MAX: LOOP, END, SPAWN, TIMER, TABLE */
	u32 a;
	u64 b;
};

enum sl_object_kind {
	SL_OBJECT_LOCK = 1,
	SL_OBJECT_PIPE,	     /* param: capacity in bytes */
	SL_OBJECT_BARRIER,   /* param: number of parties */
	SL_OBJECT_CONDITION, /* a signal without a waiter is lost */
	SL_OBJECT_GROUP,     /* a cgroup; param: the first of its values: */
};

enum sl_group_value {
	SL_GROUP_PARENT, /* 1 + that object, which stands before; 0: the root */
	SL_GROUP_WEIGHT, /* 1..10000 */
	SL_GROUP_PERIOD_US,
	SL_GROUP_QUOTA_US, /* of each period; ~0: no limit */
	SL_GROUP_CPUS, /* from version 3: first << 32 | words of a mask in values; 0: its parent's */
	SL_NR_GROUP_VALUES,
};

struct sl_program_object {
	u32 kind; /* enum sl_object_kind */
	u32 name; /* string */
	u64 param;
};

_Static_assert(sizeof(struct sl_program_header) == 112, "header is fixed");
_Static_assert(sizeof(struct sl_program_task) == 88, "task is fixed");
_Static_assert(sizeof(struct sl_program_op) == 16, "op is fixed");
_Static_assert(sizeof(struct sl_program_object) == 16, "object is fixed");

#endif
