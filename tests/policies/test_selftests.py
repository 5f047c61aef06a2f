# SPDX-License-Identifier: MIT
"""The kernel's own tests of sched_ext: here each policy of theirs ends as their other half expects of Linux 7.2.

Their other half loads the policy, makes tasks and asks how the policy was unloaded; here the tasks are those of
`mixed`, on two CPUs. What it reads from the policy's memory is not read.
"""

from __future__ import annotations

import pytest

import schedlab
from policies.linux_source import linux_source

pytestmark = pytest.mark.full

#: What the policy ends with; "": nothing, it runs to the end.
ENDS = {
    "allowed_cpus": "",
    "create_dsq": "",
    "ddsp_bogus_dsq_fail": "non-existent DSQ 0xcafef00d",
    "ddsp_vtimelocal_fail": "cannot use vtime ordering for built-in DSQs",
    "cyclic_kick_wait": "",
    "dequeue": "",
    "dsp_local_on": "",
    "enq_last_no_enq_fails": "SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented",
    "enq_select_cpu": "",
    "exit": "",
    "init_enable_count": "",
    "maximal": "",
    "maybe_null": "",
    # Linux's verifier refuses it; here the callback is caught when it does what it may not.
    "maybe_null_fail_dsp": "accessed invalid memory in ops.dispatch()",
    "minimal": "",
    "peek_dsq": "",
    "prog_run": "",
    "rt_stall": "",
    "select_cpu_dfl": "",
    "select_cpu_dfl_nodispatch": "",
    "select_cpu_dispatch": "",
    "select_cpu_dispatch_bad_dsq": "non-existent DSQ 0xcafef00d",
    "select_cpu_dispatch_dbl_dsp": "already direct-dispatched",
    "select_cpu_vtime": "",
    # Its hogs have no end of their slice and share one queue: what comes later waits.
    "nohz_tick": "runnable task stall",
}
#: Those that say nothing here, with the reason.
LEFT_OUT = {
    "hotplug": "its C half has a CPU go and come while it looks; tests/conformance/s47_hotplug does that",
    "maybe_null_fail_yld": "the verifier refuses it for what no task of ours does: it yields to nobody",
    "non_scx_kfunc_deny": "it is about a policy of TCP",
    "numa": "there is one set of idle CPUs, not one for each node",
}


def test_every_one_of_them_is_known():
    names = {path.name.removesuffix(".bpf.c") for path in folder().glob("*.bpf.c")}
    assert names == {*ENDS, *LEFT_OUT}


@pytest.mark.parametrize("name", ENDS)
def test_a_policy_of_the_kernels_tests_ends_as_on_linux(name, simulator, tmp_path):
    policy = folder() / f"{name}.bpf.c"
    (run,) = schedlab.run("mixed", str(policy), cpus=2, seeds=1, out=tmp_path / "out").runs.to_dicts()
    if ENDS[name]:
        assert ENDS[name] in (run["error"] or ""), run
    else:
        assert (run["error"], run["consistency"]) == (None, "ok")


def folder():
    return linux_source() / "tools" / "testing" / "selftests" / "sched_ext"
