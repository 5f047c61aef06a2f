/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * attrs.h - struct task_attr, as policies read it and hosts fill it.
 *
 * Needs u32 and friends, from common.bpf.h or types.h. The order of the keys is
 * part of the program and record formats.
 *
 * Read next: task_attr.h, the map it is found in.
 */
#ifndef SCX_ATTRS_H
#define SCX_ATTRS_H

/* Which members of struct task_attr were given; the order is the file format. */
enum task_attr_key {
	TASK_ATTR_PRIORITY,
	TASK_ATTR_TICKETS,
	TASK_ATTR_CREDITS,
	TASK_ATTR_CAP,
	TASK_ATTR_GROUP,
	TASK_ATTR_DEADLINE,
	TASK_ATTR_BURST,
	TASK_ATTR_WEIGHT, /* not stored here: goes to p->scx.weight */
	NR_TASK_ATTRS,
};

struct task_attr {
	u64 deadline_ns; /* relative to each wake-up; 0: none */
	u64 burst_ns;	 /* declared length of the next CPU burst; 0: unknown */
	s32 priority;	 /* meaning is the policy's; report 1: 0 (highest) to 10 */
	u32 tickets;	 /* >= 1 */
	s32 credits;	 /* initial credits */
	u32 cap_percent; /* of one CPU; 0: no cap */
	u32 group;
	u32 given; /* bit 1 << TASK_ATTR_* for each member that was given */
};

#endif
