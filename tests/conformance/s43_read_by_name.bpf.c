/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S43: what published schedulers read of the kernel, beside the functions of sched_ext. */
#include "conform.h"
#include <scx/percpu.bpf.h>

#define TASK_DEAD 0x80

extern unsigned long CONFIG_HZ __kconfig;

u64 RESIZABLE_ARRAY(data, started_at);

static u64 nr_dead, nr_asleep, nr_awake, nr_current, nr_jiffies;
static u64 jiffies_first;

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u64 *at = ARRAY_ELEM_PTR(started_at, cpu, scx_bpf_nr_cpu_ids());

	if (at)
		*at = scx_bpf_now();
	bpf_rcu_read_lock();
	if (__COMPAT_scx_bpf_cpu_curr(cpu) == p)
		nr_current++;
	bpf_rcu_read_unlock();
	nr_awake += p->__state == 0;
	if (nr_awake == 1)
		jiffies_first = bpf_jiffies64();
	nr_jiffies = bpf_jiffies64() - jiffies_first;
}

void BPF_STRUCT_OPS(t_stopping, struct task_struct *p, bool runnable)
{
	if (runnable)
		return;
	if (p->__state == TASK_DEAD)
		nr_dead++;
	else
		nr_asleep += p->__state != 0;
}

/* A CPU that only the first of the tasks may run on. */
s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return is_named(p, 'c') ? 0 : prev_cpu;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	char text[8] = "abcd";
	s64 text_equal = bpf_strncmp(text, sizeof(text), "abcd");
	s64 text_less = bpf_strncmp(text, sizeof(text), "abce") < 0;
	s64 text_cut = bpf_strncmp(text, 3, "abc-");
	s64 llc_0 = cpu_llc_id(0), llc_1 = cpu_llc_id(1), llc_2 = cpu_llc_id(2);
	s64 llc_none = cpu_llc_id(4) < 0;
	s64 hz = CONFIG_HZ;
	s64 log_1 = log2_u64(1), log_big = log2_u64(1ULL << 40);

	TELL(text_equal);
	TELL(text_less);
	TELL(text_cut);
	TELL(llc_0);
	TELL(llc_1);
	TELL(llc_2);
	TELL(llc_none);
	TELL(hz);
	TELL(log_1);
	TELL(log_big);
	return 0;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	struct scx_event_stats events = { };

	scx_bpf_events(&events, sizeof(events));
	s64 nr_kept = scx_read_event(&events, SCX_EV_DISPATCH_KEEP_LAST);
	s64 nr_refilled = scx_read_event(&events, SCX_EV_REFILL_SLICE_DFL);
	s64 nr_fallback = scx_read_event(&events, SCX_EV_SELECT_CPU_FALLBACK);

	TELL(nr_kept);
	TELL(nr_refilled);
	TELL(nr_fallback);
	TELL(nr_dead);
	TELL(nr_asleep);
	TELL(nr_awake);
	TELL(nr_current);
	TELL(nr_jiffies);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu, .running = (void *)t_running,
	       .stopping = (void *)t_stopping, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
