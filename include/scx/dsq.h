/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * dsq.h - dispatch queues: many at once, and the order of one.
 *
 * Read next: policies/edf.bpf.c, a small user.
 */
#ifndef SCX_DSQ_H
#define SCX_DSQ_H

#include <scx/common.bpf.h>

/* Create queues 0 to @nr - 1. Return: 0 or -errno. Context: ops.init. */
static inline s32 create_dsqs(s32 nr)
{
	s32 id, err;

	bpf_for(id, 0, nr) {
		err = scx_bpf_create_dsq(id, -1);
		if (err)
			return err;
	}
	return 0;
}

/* Whether a task is in one of the queues @first to @end - 1. */
static inline bool is_any_queued(s32 first, s32 end)
{
	s32 id;

	bpf_for(id, first, end) {
		if (scx_bpf_dsq_nr_queued(id) > 0)
			return true;
	}
	return false;
}

/* Take a task from the first of queues 0 to @nr - 1 that has one for this CPU. */
static inline bool move_first_to_local(s32 nr)
{
	s32 id;

	bpf_for(id, 0, nr) {
		if (scx_bpf_dsq_move_to_local(id))
			return true;
	}
	return false;
}

/*
 * Whether the first task of a queue that may run on @cpu has a key before @end. Keys
 * wrap; for "before or equal" give the key plus 1.
 */
static inline bool is_queued_before(u64 dsq_id, s32 cpu, u64 end)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_id, 0) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return time_before(p->scx.dsq_vtime, end);
	}
	return false;
}

#endif
