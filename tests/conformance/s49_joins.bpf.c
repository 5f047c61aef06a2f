/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S49: what a policy is called for as a task moves between groups of different CPUs, in which
 * order, and in which group it sees the task. Linux does not show what is noted here, so a
 * wrong note is an error.
 */
#include "conform.h"

#define PREP_MOVE 1
#define SET_CPUMASK 2
#define ENQUEUE 3
#define MOVE 4

struct note {
	u64 story; /* a digit for each call, the last one last */
	u64 from;  /* id of the group that it is leaving; 0: none */
	u64 mask;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct note);
} notes SEC(".maps");

static struct note *note_of(struct task_struct *p, u32 call)
{
	struct note *note = bpf_task_storage_get(&notes, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (note && call)
		note->story = note->story * 10 + call;
	return note;
}

/* Until it is told of the move, the policy has the task where it was. */
static void expect_group(struct task_struct *p, u64 id)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);

	if (cgrp->kn->id != id)
		scx_bpf_error("%s is in %llu, not %llu", p->comm, cgrp->kn->id, id);
	bpf_cgroup_release(cgrp);
}

s32 BPF_STRUCT_OPS(t_cgroup_prep_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct note *note = p->comm[1] ? NULL : note_of(p, PREP_MOVE);

	if (note)
		note->from = from->kn->id;
	return 0;
}

void BPF_STRUCT_OPS(t_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	struct note *note = p->comm[1] ? NULL : note_of(p, 0);

	/* Linux calls it, too, of a task that exists when the policy is loaded. */
	if (!note || !note->story)
		return;
	note_of(p, SET_CPUMASK);
	note->mask = bpf_cpumask_test_cpu(0, mask) | bpf_cpumask_test_cpu(1, mask) << 1;
	if (note->from)
		expect_group(p, note->from);
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct note *note = p->comm[1] ? NULL : note_of(p, 0);

	if (note && note->from) {
		note_of(p, ENQUEUE);
		expect_group(p, note->from);
	}
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct note *note = p->comm[1] ? NULL : note_of(p, MOVE);

	if (!note)
		return;
	note->from = 0;
	expect_group(p, to->kn->id);
}

/* Each task ends with a yield. */
bool BPF_STRUCT_OPS(t_yield, struct task_struct *p, struct task_struct *to)
{
	struct note *note = p->comm[1] ? NULL : note_of(p, 0);
	u64 story = 0, mask = 0;

	if (!note)
		return false;
	switch (p->comm[0]) {
	case 'm': /* loses its CPU: goes to another one first */
		story = 1234;
		mask = 2;
		break;
	case 'u': /* gets one more */
		story = 124;
		mask = 3;
		break;
	case 'o': /* gets what it asked for, and then no more than that */
		story = 123414;
		mask = 1;
		break;
	case 's': /* groups of the same CPUs */
		story = 14;
		break;
	}
	if (note->story != story || note->mask != mask)
		scx_bpf_error("%s: %llu, mask 0x%llx", p->comm, note->story, note->mask);
	return false;
}

SCX_OPS_DEFINE(t_ops, .cgroup_prep_move = (void *)t_cgroup_prep_move,
	       .set_cpumask = (void *)t_set_cpumask, .enqueue = (void *)t_enqueue,
	       .cgroup_move = (void *)t_cgroup_move, .yield = (void *)t_yield,
	       .name = "t");
