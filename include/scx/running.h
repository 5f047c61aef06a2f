/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * running.h - what each CPU runs, for policies that preempt the least urgent task
 * of all CPUs.
 *
 * A policy notes a key per CPU, the smaller the more urgent. It is that of the
 * running task or, after preempt_last(), of the task that will run once the kick
 * has arrived: the next task that wakes up then finds another CPU. Written and read
 * without a lock: should two CPUs cross, ops.tick of the policy corrects it.
 *
 * Where keys are the time that a task has left, they shrink while it runs, and grow
 * again once it has outlived it: such a policy gives the time with each. Where they
 * stay, @now_ns is 0 everywhere.
 *
 * Read next: policies/edf.bpf.c, a small user.
 */
#ifndef SCX_RUNNING_H
#define SCX_RUNNING_H

#include <scx/common.bpf.h>
#include <scx/idle.h>

#define RUNNING_NONE (~0ULL >> 1)	/* the key of an idle CPU: after all others */

struct running {
	u64 key;
	u64 since_ns;
	bool is_busy;
	bool is_claimed; /* a task has preempted it, and it has not chosen since */
};
static struct running running[SCX_CPUS_MAX];

static inline void note_running(s32 cpu, u64 key, u64 now_ns)
{
	struct running *r = ARRAY_ELEM_PTR(running, cpu, SCX_CPUS_MAX);

	if (!r)
		return;
	r->key = key;
	r->since_ns = now_ns;
	r->is_busy = true;
	r->is_claimed = false;
}

static inline void note_idle(s32 cpu)
{
	struct running *r = ARRAY_ELEM_PTR(running, cpu, SCX_CPUS_MAX);

	if (r)
		r->is_busy = false;
}

/* Return: the key of what runs on @cpu, or RUNNING_NONE. */
static inline u64 running_key(s32 cpu, u64 now_ns)
{
	struct running *r = ARRAY_ELEM_PTR(running, cpu, SCX_CPUS_MAX);
	u64 ran_ns, key;

	if (!r)
		return 0;
	if (!r->is_busy)
		return RUNNING_NONE;
	key = r->key;
	/* Of two CPUs' clocks: that of this one may be a little behind. */
	ran_ns = time_after(now_ns, r->since_ns) ? now_ns - r->since_ns : 0;
	return key > ran_ns ? key - ran_ns : ran_ns - key;
}

/*
 * @p was queued with @key: have the CPU choose again whose task has the largest key,
 * if that is larger. An idle CPU has; of equals, that of @p comes first. Return: whether
 * there is one.
 */
static inline bool preempt_last(struct task_struct *p, u64 key, u64 now_ns)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	s32 last_cpu = scx_bpf_task_cpu(p);
	u64 last_key = running_key(last_cpu, now_ns);
	struct running *r;
	s32 cpu;

	bpf_for(cpu, 0, nr_cpus) {
		if (last_key == RUNNING_NONE)
			break;
		if (running_key(cpu, now_ns) <= last_key || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		last_cpu = cpu;
		last_key = running_key(cpu, now_ns);
	}
	if (last_key <= key)
		return false;
	note_running(last_cpu, key, now_ns);
	r = ARRAY_ELEM_PTR(running, last_cpu, SCX_CPUS_MAX);
	if (r)
		r->is_claimed = true;
	scx_bpf_kick_cpu(last_cpu, SCX_KICK_PREEMPT);
	return true;
}

/* The key of a queued task, for queues in the order of keys; see take_and_preempt(). */
static inline u64 queued_key(const struct task_struct *p, u32 shift, u64 key_max)
{
	u64 key = p->scx.dsq_vtime >> shift;

	return key < key_max ? key : key_max;
}

/*
 * Take the first task that may run here, as take_and_pass_on() does. A CPU that was
 * preempted for one task may take another, which is more urgent and was to run
 * elsewhere: what is left behind so preempts the last once more. A task's key
 * is its place in the queue >> @shift, and @key_max at most; @now_ns is as preempt_last() has it.
 * Context: ops.dispatch.
 */
static inline bool take_and_preempt(u64 dsq_id, s32 cpu, u32 shift, u64 key_max, u64 now_ns)
{
	struct running *r = ARRAY_ELEM_PTR(running, cpu, SCX_CPUS_MAX);
	bool was_claimed = r && r->is_claimed;
	struct task_struct *p;

	if (!was_claimed)
		return take_and_pass_on(dsq_id, cpu);
	bpf_for_each(scx_dsq, p, dsq_id, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		note_running(cpu, queued_key(p, shift, key_max), now_ns);
		break;
	}
	if (!take_and_pass_on(dsq_id, cpu))
		return false;
	bpf_for_each(scx_dsq, p, dsq_id, 0) {
		/* Those after one that may run everywhere are not more urgent. */
		if (!preempt_last(p, queued_key(p, shift, key_max), now_ns) &&
		    (u32)p->nr_cpus_allowed >= scx_bpf_nr_cpu_ids())
			break;
	}
	return true;
}

#endif
