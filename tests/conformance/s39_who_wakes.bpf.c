/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S39: c is woken by p alone, p and s by timers alone, whoever runs meanwhile.
 * Errors rather than counts, since those are seen on every host.
 */
#include "conform.h"

static u64 nr_by_task, nr_by_timer, nr_idle;
static bool has_run[3];

static int number_of(const struct task_struct *p)
{
	if (is_named(p, 'c'))
		return 0;
	return is_named(p, 'p') ? 1 : is_named(p, 's') ? 2 : -1;
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	int nr = number_of(p);

	if (nr >= 0 && nr < 3)
		has_run[nr] = true;
}

/* A host may let a task arrive by waking it up; that is not asked about. */
void BPF_STRUCT_OPS(t_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_struct *current = bpf_get_current_task_btf();
	int nr = number_of(p);

	if (!(enq_flags & SCX_ENQ_WAKEUP) || nr < 0 || nr >= 3 || !has_run[nr])
		return;
	if (nr == 0) {
		nr_by_task++;
		if (!bpf_in_task() || !is_named(current, 'p'))
			scx_bpf_error("c is not woken by p, but by %d", current->pid);
		return;
	}
	nr_by_timer++;
	nr_idle += current->pid == 0 && (current->flags & PF_IDLE);
	if (bpf_in_task())
		scx_bpf_error("%s is woken by %d, not by a timer", p->comm, current->pid);
}

/* A tick is an interrupt of the task that runs. */
void BPF_STRUCT_OPS(t_tick, struct task_struct *p)
{
	if (bpf_in_task() || bpf_get_current_task_btf()->pid != p->pid)
		scx_bpf_error("a tick of %s is not an interrupt of it", p->comm);
}

/* It blocks of its own will. */
void BPF_STRUCT_OPS(t_quiescent, struct task_struct *p, u64 deq_flags)
{
	if ((deq_flags & SCX_DEQ_SLEEP) && !bpf_in_task())
		scx_bpf_error("%s blocks in an interrupt", p->comm);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_by_task);
	TELL(nr_by_timer);
	TELL(nr_idle);
}

SCX_OPS_DEFINE(t_ops, .running = (void *)t_running,
	       .runnable = (void *)t_runnable, .tick = (void *)t_tick,
	       .quiescent = (void *)t_quiescent, .exit = (void *)t_exit,
	       .name = "t");
