# SPDX-License-Identifier: MIT
"""An arrival is the start of a task or, with `--arrivals wake`, the wake-up of one; `roots`: of those not spawned."""

from __future__ import annotations

import pytest

from schedlab.records.file import Kind
from sim.simulated import simulated

WORKLOAD = """
[workload]
title = "One that runs, one that comes"
question = "Does it wait?"
jitter = "0ms"
tick = "1ms"
[[task]]
name = "hog"
phases = [{run = "20ms"}, {spawn = "child"}, {run = "20ms"}]
[[task]]
name = "guest"
arrival = "5ms"
phases = [{run = "1ms"}]
[[task]]
name = "child"
arrival = "spawned"
phases = [{run = "1ms"}]
"""


@pytest.mark.parametrize(
    ("arrivals", "waits_ms"), [("start", (25, 11)), ("wake", (0, 0)), ("roots", (0, 15))]
)
def test_credit_boosts_who_wakes_and_not_who_starts(simulator, tmp_path, arrivals, waits_ms):
    """Xen's boost is for wake-ups: who starts waits for the end of a turn of 30 ms."""
    found = simulated(simulator, tmp_path, WORKLOAD, "credit", "--arrivals", arrivals)
    assert found.answer["error"] is None
    events = found.records.events
    for pid, wait_ms in zip((2, 3), waits_ms, strict=True):
        mine = events[events["task"] == pid]
        came, ran = (mine[mine["kind"] == kind] for kind in (Kind.ARRIVE, Kind.RUN))
        assert len(came) == 1 and came["arg"][0] == (1 if pid == 3 else 0)
        assert ran["t_ns"][0] - came["t_ns"][0] == wait_ms * 1_000_000


LEAVER = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
static u64 nr_stopped, nr_left, nr_came;
void BPF_STRUCT_OPS(l_stopping, struct task_struct *p, bool runnable)
{
	nr_stopped += !runnable;
}
void BPF_STRUCT_OPS(l_quiescent, struct task_struct *p, u64 deq_flags)
{
	nr_left++;
}
void BPF_STRUCT_OPS(l_runnable, struct task_struct *p, u64 enq_flags)
{
	nr_came++;
}
void BPF_STRUCT_OPS(l_exit, struct scx_exit_info *ei)
{
	bpf_printk("%llu %llu %llu", nr_stopped, nr_left, nr_came);
}
SCX_OPS_DEFINE(l_ops, .stopping = (void *)l_stopping, .quiescent = (void *)l_quiescent,
	       .runnable = (void *)l_runnable, .exit = (void *)l_exit, .name = "leaver");
"""


@pytest.mark.parametrize(("exits", "times"), [("once", 3), ("regroup", 6)])
def test_a_task_that_ends_leaves_its_group_first(simulator, tmp_path, exits, times):
    """As where Linux has autogroups: each of three tasks stops twice, and comes once more."""
    (tmp_path / "leaver.bpf.c").write_text(LEAVER)
    found = simulated(simulator, tmp_path, WORKLOAD, tmp_path / "leaver.bpf.c", "--exits", exits)
    assert found.answer["error"] is None
    assert found.said[-1].split()[-3:] == [str(times)] * 3


WATCHER = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
static bool has_run;
s32 BPF_STRUCT_OPS(w_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (args->fork)
		scx_bpf_error("%s is forked", p->comm);
	return 0;
}
void BPF_STRUCT_OPS(w_enable, struct task_struct *p)
{
	if (has_run)
		scx_bpf_error("%s is enabled late", p->comm);
}
void BPF_STRUCT_OPS(w_running, struct task_struct *p)
{
	has_run = true;
}
SCX_OPS_DEFINE(w_ops, .init_task = (void *)w_init_task, .enable = (void *)w_enable,
	       .running = (void *)w_running, .name = "watcher");
"""


@pytest.mark.parametrize("arrivals", ["start", "wake"])
def test_tasks_that_were_there_are_enabled_as_the_policy_is_loaded(simulator, tmp_path, arrivals):
    """As Linux does it: what a policy keeps of a task dates from then, such as its virtual time."""
    (tmp_path / "watcher.bpf.c").write_text(WATCHER)
    found = simulated(simulator, tmp_path, WORKLOAD, tmp_path / "watcher.bpf.c", "--arrivals", arrivals)
    error = found.answer["error"]
    assert error is None if arrivals == "wake" else "hog is forked" in error
