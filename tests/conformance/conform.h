/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * conform.h - how a conformance policy tells its test what it saw.
 *
 * A policy counts in globals and prints them in ops.exit(), or prints a line per
 * callback. cases.py reads the lines; the properties in the .toml files use them
 * as count("name") and calls("task").
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

/* "count NAME VALUE": what count("NAME") is in a property. */
#define TELL(name) \
	bpf_printk("count %s %lld", #name, (long long)(name))

/* "call NAME TASK": one element of calls("TASK"). */
#define CALLED(name, p) bpf_printk("call %s %s", name, (p)->comm)

/* Does @p belong to the [[task]] of this one-letter name? */
static inline bool is_named(const struct task_struct *p, char letter)
{
	return p->comm[0] == letter && p->comm[1] == 0;
}

/* A handful of tasks that the policy itself holds, first in, first out. */
#define HELD_MAX 64
struct held {
	s32 pids[HELD_MAX];
	u32 first;
	u32 next;
};

static inline void hold(struct held *held, struct task_struct *p)
{
	held->pids[held->next++ % HELD_MAX] = p->pid;
}

/* Return: the pid that was held longest, which is then held no more; 0: none. */
static inline s32 let_go(struct held *held)
{
	if (held->first == held->next)
		return 0;
	return held->pids[held->first++ % HELD_MAX];
}

#endif
