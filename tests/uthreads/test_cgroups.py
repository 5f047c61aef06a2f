# SPDX-License-Identifier: MIT
"""Groups of threads: a program makes and changes them, and moves threads, while others run and the policy changes."""

from __future__ import annotations

import json
import subprocess

import pytest

from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.workload.spec import parse_workload
from uthreads.test_threads import FORCED, policy
from uthreads.uthreads_programs import run_program

#: Refuses a group of weight 66, and threads for that of weight 77.
REFUSES = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
static u64 closed;

s32 BPF_STRUCT_OPS_SLEEPABLE(t_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	if (args->weight == 77)
		closed = cgrp->kn->id;
	return args->weight == 66 ? -ENOMEM : 0;
}

void BPF_STRUCT_OPS(t_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	if (cgrp->kn->id != closed || period_us != 50000 || quota_us != 20000 || burst_us)
		scx_bpf_error("%llu of %llu", quota_us, period_us);
}

s32 BPF_STRUCT_OPS(t_cgroup_prep_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	return to->kn->id == closed ? -13 : 0;
}

SCX_OPS_DEFINE(t_ops, .cgroup_init = (void *)t_cgroup_init,
	       .cgroup_set_bandwidth = (void *)t_cgroup_set_bandwidth,
	       .cgroup_prep_move = (void *)t_cgroup_prep_move, .name = "t");
"""


@pytest.mark.parametrize("cpus", [1, 2, 4])
@pytest.mark.parametrize(
    ("build", "words"),
    [
        (("gcc", "plain"), ["-"]),
        (("gcc", "plain"), ["cfs", "groups=1"]),
        (("gcc", "address"), ["cfs", "groups=1"]),
        # Policies that divide CPU time read what other CPUs write.
        (("clang-19", "thread"), ["rr"]),
    ],
    ids=str,
)
def test_groups_change_while_threads_run(toolchain, build, words, cpus):
    chain = toolchain(*build)
    name, *knobs = words
    run_program(chain.program("cgroups.c"), policy(chain, name), cpus, *knobs, env=FORCED)


def test_a_policy_may_refuse_a_group_and_a_thread_in_it(toolchain, tmp_path):
    chain = toolchain("gcc", "plain")
    (tmp_path / "refuses.bpf.c").write_text(REFUSES)
    run_program(chain.program("cgroups.c"), chain.policy(tmp_path / "refuses.bpf.c"), 2, "refused")


@pytest.mark.parametrize(
    "events", ["weight:0@1+0", "weight:1@1+5", "take:0@1+5", "quota:0@1+5", "weight:0@1+5;"]
)
def test_events_that_cannot_be_are_refused(events, build, tmp_path):
    workload = """
[workload]
title = "x"
[[group]]
name = "g"
[[task]]
name = "t"
group = "g"
phases = [{run = "1ms"}]
"""
    program = tmp_path / "program"
    program.write_bytes(compile_workload(parse_workload(workload, name="w.toml"), seed=0).data)
    runner = build / "hosts" / "uthreads" / "schedlab-uthreads"
    policy = build_policy(load_policy("fifo")).shared_object
    words = [runner, "--policy", policy, "--program", program, "--events"]
    answer = json.loads(subprocess.run([*words, events], capture_output=True, text=True, check=True).stdout)
    assert answer["error_kind"] == "usage"
    assert f"--events: '{events}' should begin with weight:OBJECT@NS+WEIGHT" in answer["error"]
    answer = json.loads(
        subprocess.run([*words, "weight:0@1+5"], capture_output=True, text=True, check=True).stdout
    )
    assert answer["error"] is None
