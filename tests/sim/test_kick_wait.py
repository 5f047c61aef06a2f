# SPDX-License-Identifier: MIT
"""SCX_KICK_WAIT (S26): the next task of the kicking CPU begins when the kicked one has scheduled."""

from __future__ import annotations

import pytest

from schedlab.records.file import Kind
from sim.simulated import simulated

MS, IPI_NS = 1_000_000, 50_000
POLICY = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
const volatile u64 flags = 0;
static bool was_kicked;

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return p->comm[0] == 'b';
}

/* Task a on CPU 0 and b on CPU 1; c waits until CPU 0 has nothing. */
void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (p->comm[0] == 'c')
		scx_bpf_dsq_insert(p, 1, SCX_SLICE_DFL, enq_flags);
	else
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | (p->comm[0] == 'b'), SCX_SLICE_DFL, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	if (cpu || was_kicked || !scx_bpf_dsq_nr_queued(1))
		return;
	was_kicked = true;
	scx_bpf_kick_cpu(1, flags);
	scx_bpf_dsq_move_to_local(1);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(1, -1);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .init = (void *)t_init, .name = "t");
"""
WORKLOAD = """
[workload]
title = "Three tasks"
question = "When does c begin?"
tick = "1ms"
jitter = "0ms"
[[task]]
name = "a"
phases = [{run = "2ms"}]
[[task]]
name = "b"
phases = [{run = "9ms"}]
[[task]]
name = "c"
phases = [{run = "1ms"}]
"""
PREEMPT, WAIT, IDLE = 2, 4, 1


@pytest.fixture
def run(simulator, tmp_path):
    policy = tmp_path / "t.bpf.c"
    policy.write_text(POLICY)

    def answer(flags):
        cost, knobs = ("--cost", f"ipi_ns={IPI_NS}"), {"flags": flags}
        found = simulated(simulator, tmp_path, WORKLOAD, policy, *cost, cpus=2, knobs=knobs)
        events = found.records.events
        begins = events[(events["kind"] == Kind.RUN) & (events["task"] == 3)]["t_ns"]
        return found.answer["error"], int(begins[0]) if len(begins) else None

    return answer


@pytest.mark.parametrize(
    ("flags", "begin_ns"),
    [(0, 2 * MS), (PREEMPT, 2 * MS), (PREEMPT | WAIT, 2 * MS + IPI_NS), (WAIT, 2 * MS + IPI_NS)],
)
def test_the_next_task_waits_for_the_kicked_cpu(run, flags, begin_ns):
    assert run(flags) == (None, begin_ns)


def test_wait_with_idle_is_an_error(run):
    error, _ = run(WAIT | IDLE)
    assert "PREEMPT/WAIT cannot be used with SCX_KICK_IDLE" in error
