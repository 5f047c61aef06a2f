/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S47: no task is lost with its CPU, wherever it was: running, in a queue, held, asleep,
 * bound to that CPU. Linux cannot show what is counted here, so a wrong number is also an
 * error.
 */
#include "conform.h"

#define QUEUE 7
#define SLICE_NS 20000000

static struct held held;
static u64 nr_offline, nr_online, nr_masks, nr_seen, nr_moved;
static bool is_offline;

static bool sees_online(s32 cpu)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	bool is_online = bpf_cpumask_test_cpu(cpu, online);

	scx_bpf_put_cpumask(online);
	return is_online;
}

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

/* l is for CPU 1 alone, whatever that is; h is held. */
void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	nr_seen += is_offline && !sees_online(1);
	if (is_named(p, 'l'))
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | 1, SLICE_NS, 0);
	else if (is_named(p, 'h'))
		hold(&held, p);
	else
		scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, 0);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p = bpf_task_from_pid(let_go(&held));

	if (p) {
		scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, 0);
		bpf_task_release(p);
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	if (!sees_online(scx_bpf_task_cpu(p)))
		scx_bpf_error("%s runs on CPU %d", p->comm, scx_bpf_task_cpu(p));
	/* The last task begins when the others have ended. */
	if (is_named(p, 'z') && (nr_offline != 1 || nr_online != 1 || nr_masks != 2 || !nr_seen))
		scx_bpf_error("%llu offline, %llu online, %llu masks, %llu seen", nr_offline,
			      nr_online, nr_masks, nr_seen);
}

void BPF_STRUCT_OPS(t_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	nr_masks += (is_named(p, 'p') || is_named(p, 'q')) && bpf_cpumask_test_cpu(0, cpumask);
}

/* The mask is of another moment: the CPU goes, or has come. */
void BPF_STRUCT_OPS(t_cpu_offline, s32 cpu)
{
	nr_offline += cpu == 1 && sees_online(cpu);
	is_offline = true;
}

void BPF_STRUCT_OPS(t_cpu_online, s32 cpu)
{
	nr_online += cpu == 1 && sees_online(cpu);
	is_offline = false;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	struct scx_event_stats events = { };

	__COMPAT_scx_bpf_events(&events, sizeof(events));
	nr_moved = events.SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE;
	TELL(nr_offline);
	TELL(nr_online);
	TELL(nr_masks);
	TELL(nr_moved);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .running = (void *)t_running,
	       .set_cpumask = (void *)t_set_cpumask,
	       .cpu_online = (void *)t_cpu_online,
	       .cpu_offline = (void *)t_cpu_offline, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
