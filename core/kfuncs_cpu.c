/* SPDX-License-Identifier: MIT */
/*
 * kfuncs_cpu.c - sched_ext's functions about CPUs, tasks and time.
 *
 * Thin wrappers with Linux's names; include/scx/native.h lists them. Those that
 * need more than a few lines are in idle.c and kfuncs_dsq.c; BPF's own are in bpf/.
 *
 * Read next: ../bpf/maps.c, the first chapter of bpf/.
 */
#include "core.h"

/* S34: not bpf_ktime_get_ns(), which is one clock for all CPUs. */
u64 scx_bpf_now(void)
{
	return policy_now_ns() + sl_host_clock_ahead_ns();
}

/* ---- tasks ------------------------------------------------------------- */

/* As on Linux until the CPU has switched: also in ops.enqueue() of a preempted task. */
bool scx_bpf_task_running(const struct task_struct *p)
{
	const struct sl_task *t = sl_task_of(p);

	return READ_ONCE(sl_core.cpus[READ_ONCE(t->cpu)].curr) == t;
}

s32 scx_bpf_task_cpu(const struct task_struct *p)
{
	return READ_ONCE(sl_task_of(p)->cpu);
}

/* S39: never NULL for a CPU that is there; an idle one has its idle task. */
struct task_struct *scx_bpf_cpu_curr(s32 cpu)
{
	struct sl_task *curr;

	if (!ops_cpu_valid(cpu))
		return NULL;
	curr = READ_ONCE(sl_core.cpus[cpu].curr);
	return curr ? &curr->p : &sl_core.cpus[cpu].idle.p;
}

bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
	struct sl_task *t = sl_task_of(p);

	sl_set_slice(t, slice);
	if (READ_ONCE(t->state) == SL_TASK_RUNNING)
		sl_host_slice_changed(t);
	return true;
}

bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime)
{
	WRITE_ONCE(p->scx.dsq_vtime, vtime);
	return true;
}

/* ---- CPUs -------------------------------------------------------------- */

u32 scx_bpf_nr_cpu_ids(void)
{
	return sl_core.nr_cpus;
}

u32 scx_bpf_nr_node_ids(void)
{
	return sl_core.nr_nodes;
}

s32 scx_bpf_cpu_node(s32 cpu)
{
	return ops_cpu_valid(cpu) ? sl_core.node[cpu] : -1;
}

const struct cpumask *scx_bpf_get_possible_cpumask(void)
{
	return &sl_core.possible;
}

const struct cpumask *scx_bpf_get_online_cpumask(void)
{
	return &sl_core.online;
}

static const struct cpumask no_cpus;

const struct cpumask *scx_bpf_get_idle_cpumask(void)
{
	return check_one_mask("SCX_OPS_BUILTIN_IDLE_PER_NODE enabled") ? &sl_core.idle.cpus :
									 &no_cpus;
}

const struct cpumask *scx_bpf_get_idle_smtmask(void)
{
	if (!check_one_mask("SCX_OPS_BUILTIN_IDLE_PER_NODE enabled"))
		return &no_cpus;
	return sl_core.has_smt ? &sl_core.idle.smt : &sl_core.idle.cpus;
}

/* S51. Return: an empty mask where there is none. */
const struct cpumask *scx_bpf_get_idle_cpumask_node(int node)
{
	s32 err;

	return check_node(node, &err) ? &sl_core.idle_of_node[node].cpus : &no_cpus;
}

const struct cpumask *scx_bpf_get_idle_smtmask_node(int node)
{
	s32 err;

	if (!check_node(node, &err))
		return &no_cpus;
	return sl_core.has_smt ? &sl_core.idle_of_node[node].smt : &sl_core.idle_of_node[node].cpus;
}

void scx_bpf_put_cpumask(const struct cpumask *mask)
{
	(void)mask;
}

void scx_bpf_put_idle_cpumask(const struct cpumask *mask)
{
	(void)mask;
}

void scx_bpf_events(struct scx_event_stats *events, size_t bytes)
{
	struct scx_event_stats sum = { 0 };
	s64 *word = (s64 *)&sum;

	for_each_cpu(cpu) {
		const s64 *own = (const s64 *)&cpu->events;

		for (u32 i = 0; i < sizeof(sum) / sizeof(*word); i++)
			word[i] += READ_ONCE(own[i]);
	}
	__builtin_memcpy(events, &sum, bytes < sizeof(sum) ? bytes : sizeof(sum));
}

/* For launch files: the lowest CPU of the same core. */
int sl_scx_cpu_core_id(s32 cpu)
{
	return (u32)cpu < sl_core.nr_cpus ? (int)bpf_cpumask_first(&sl_core.smt_mask[cpu]) :
					    -EINVAL;
}

/* For launch files, too. Return: 0 where the host has no such task. */
s32 sl_scx_user_half_pid(void)
{
	return sl_core.user_half_pid;
}

/* For launch files: what CPUs did until now. */
u64 sl_scx_cpu_user_ns(s32 cpu)
{
	return (u32)cpu < sl_core.nr_cpus ? sl_host_user_ns(cpu) : 0;
}

u64 sl_scx_cpu_idle_ns(s32 cpu)
{
	const struct sl_cpu *c = &sl_core.cpus[cpu];
	u64 idle_ns;

	if ((u32)cpu >= sl_core.nr_cpus)
		return 0;
	idle_ns = READ_ONCE(c->idle_ns);
	if (!READ_ONCE(c->curr) && !READ_ONCE(c->is_taken))
		idle_ns += sl_host_now_ns() - READ_ONCE(c->idle_since_ns);
	return idle_ns;
}

/* All other time in which it was online. */
u64 sl_scx_cpu_system_ns(s32 cpu)
{
	const struct sl_cpu *c = &sl_core.cpus[cpu];
	u64 gone_ns;

	if ((u32)cpu >= sl_core.nr_cpus)
		return 0;
	gone_ns = READ_ONCE(c->offline_ns);
	if (READ_ONCE(c->is_offline))
		gone_ns += sl_host_now_ns() - READ_ONCE(c->offline_since_ns);
	return sl_host_now_ns() - gone_ns - sl_scx_cpu_user_ns(cpu) - sl_scx_cpu_idle_ns(cpu);
}

/* As Linux's sd_llc_id: the lowest CPU that shares the cache. */
int sl_scx_cpu_llc_id(s32 cpu)
{
	return (u32)cpu < sl_core.nr_cpus ? (int)bpf_cpumask_first(&sl_core.llc_mask[cpu]) :
					    -EINVAL;
}

int sl_scx_cpu_llc_size(s32 cpu)
{
	return (u32)cpu < sl_core.nr_cpus ? (int)bpf_cpumask_weight(&sl_core.llc_mask[cpu]) :
					    -EINVAL;
}

u32 scx_bpf_cpuperf_cap(s32 cpu)
{
	return ops_cpu_valid(cpu) ? (u32)sl_host_capacity(cpu) : SCX_CPUPERF_ONE;
}

u32 scx_bpf_cpuperf_cur(s32 cpu)
{
	return ops_cpu_valid(cpu) ? (u32)sl_host_frequency(cpu) : SCX_CPUPERF_ONE;
}

void scx_bpf_cpuperf_set(s32 cpu, u32 perf)
{
	if (perf > SCX_CPUPERF_ONE)
		scx_error(NULL, "Invalid cpuperf target %u for CPU %d", perf, cpu);
	else if (ops_cpu_valid(cpu))
		sl_host_set_frequency(cpu, perf);
}
