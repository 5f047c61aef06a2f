/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S51: what a policy with a mask for each node finds in them, and where it gets CPUs from. Nodes of two CPUs. */
#include "conform.h"

static u64 nr_claimed, nr_seen_claimed, nr_full;

static void check_mask(const struct cpumask *mask, s32 node)
{
	s32 cpu;

	bpf_for(cpu, 0, 4) {
		if (bpf_cpumask_test_cpu(cpu, mask) && cpu / 2 != node)
			scx_bpf_error("CPU %d is in a mask of node %d", cpu, node);
	}
	scx_bpf_put_idle_cpumask(mask);
}

static bool is_idle(s32 cpu)
{
	const struct cpumask *mask = scx_bpf_get_idle_cpumask_node(cpu / 2);
	bool is_set = bpf_cpumask_test_cpu(cpu, mask);

	scx_bpf_put_idle_cpumask(mask);
	return is_set;
}

static void check_answers(struct task_struct *p)
{
	s32 cpu, node;

	bpf_for(node, -1, 2) {
		check_mask(scx_bpf_get_idle_cpumask_node(node), node);
		check_mask(scx_bpf_get_idle_smtmask_node(node), node);
	}
	bpf_for(cpu, 0, 4) {
		if (scx_bpf_cpu_node(cpu) != cpu / 2)
			scx_bpf_error("CPU %d is of node %d", cpu, scx_bpf_cpu_node(cpu));
	}
	if (scx_bpf_nr_node_ids() != 2)
		scx_bpf_error("%d nodes", scx_bpf_nr_node_ids());
	cpu = scx_bpf_pick_idle_cpu_node(p->cpus_ptr, -1, 0);
	if (cpu != -ENOENT)
		scx_bpf_error("pick_idle of no node is %d", cpu);
	cpu = scx_bpf_pick_any_cpu_node(p->cpus_ptr, -1, 0);
	if (cpu != -ENOENT)
		scx_bpf_error("pick_any of no node is %d", cpu);
}

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 node = scx_bpf_cpu_node(prev_cpu);
	s32 cpu;

	check_answers(p);
	cpu = scx_bpf_select_cpu_and(p, prev_cpu, 0, p->cpus_ptr, SCX_PICK_IDLE_IN_NODE);
	if (cpu < 0)
		cpu = scx_bpf_pick_idle_cpu_node(p->cpus_ptr, node, SCX_PICK_IDLE_IN_NODE);
	if (cpu >= 0) {
		nr_claimed++;
		nr_seen_claimed += is_idle(cpu);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
	} else {
		nr_full++;
		cpu = scx_bpf_pick_any_cpu_node(p->cpus_ptr, node, SCX_PICK_IDLE_IN_NODE);
	}
	/* A task that may run on one CPU only can have been on another one before. */
	if (cpu < 0)
		return prev_cpu;
	if (p->nr_cpus_allowed == 4 && scx_bpf_cpu_node(cpu) != node)
		scx_bpf_error("CPU %d is not of node %d", cpu, node);
	return cpu;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (p->nr_cpus_allowed < 4)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
	else
		scx_bpf_dsq_insert(p, scx_bpf_cpu_node(scx_bpf_task_cpu(p)), SCX_SLICE_DFL,
				   enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(scx_bpf_cpu_node(cpu));
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	s32 err = scx_bpf_create_dsq(0, -1);

	return err ? err : scx_bpf_create_dsq(1, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_claimed);
	TELL(nr_seen_claimed);
	TELL(nr_full);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .init = (void *)t_init,
	       .exit = (void *)t_exit, .flags = SCX_OPS_BUILTIN_IDLE_PER_NODE,
	       .name = "t");
