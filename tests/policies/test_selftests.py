# SPDX-License-Identifier: MIT
"""The kernel's own tests of sched_ext: here each policy of theirs ends as their other half expects of Linux 7.2.

Their other half loads the policy, makes tasks and asks how the policy was unloaded; here the tasks are those of
`mixed`, on two CPUs. What it reads from the policy's memory is not read.
"""

from __future__ import annotations

import re
from pathlib import Path

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
    "maybe_null_fail_yld": "the verifier refuses it for what no task of ours does: it yields to nobody",
    "non_scx_kfunc_deny": "it is about a policy of TCP",
}


def test_every_one_of_them_is_known():
    names = {path.name.removesuffix(".bpf.c") for path in folder().glob("*.bpf.c")}
    assert names == {*ENDS, *LEFT_OUT, "numa", "hotplug"}


@pytest.mark.parametrize("name", ENDS)
def test_a_policy_of_the_kernels_tests_ends_as_on_linux(name, simulator, tmp_path):
    policy = folder() / f"{name}.bpf.c"
    (run,) = schedlab.run("mixed", str(policy), cpus=2, seeds=1, out=tmp_path / "out").runs.to_dicts()
    if ENDS[name]:
        assert ENDS[name] in (run["error"] or ""), run
    else:
        assert (run["error"], run["consistency"]) == (None, "ok")


def test_numa_keeps_to_its_nodes(simulator, tmp_path):
    # What its other half sets before it loads it.
    (tmp_path / "numa.launch.toml").write_text(
        '[rodata]\n__COMPAT_SCX_PICK_IDLE_IN_NODE = 2\n[ops]\nflags = ["SCX_OPS_BUILTIN_IDLE_PER_NODE"]\n'
    )
    policy = copy_of("numa", tmp_path)
    (run,) = schedlab.run(
        "mixed", str(policy), cpus=4, topology="node=2", seeds=1, out=tmp_path / "out"
    ).runs.to_dicts()
    assert (run["error"], run["consistency"]) == (None, "ok")


@pytest.mark.parametrize(
    ("ops", "says"),
    [
        # SCX_EXIT_UNREG_BPF, with SCX_ECODE_ACT_RESTART and its own reason.
        ("hotplug_cb_ops", f"exit 65 {1 << 48 | 1}"),
        # SCX_EXIT_UNREG_KERN, with SCX_ECODE_ACT_RESTART and SCX_ECODE_RSN_HOTPLUG.
        ("hotplug_nocb_ops", f"exit 66 {1 << 48 | 1 << 32}"),
    ],
)
def test_hotplug_ends_as_a_cpu_goes(ops, says, simulator, tmp_path):
    policy = copy_of("hotplug", tmp_path)
    (tmp_path / "hotplug_test.h").write_text((folder() / "hotplug_test.h").read_text())
    text = policy.read_text().replace(
        "UEI_RECORD(uei, ei);", 'UEI_RECORD(uei, ei);\n\tbpf_printk("exit %d %lld", ei->kind, ei->exit_code);'
    )
    # One of its two schedulers, as its other half attaches one.
    both = re.findall(
        r'SEC\("\.struct_ops\.link"\)\nstruct sched_ext_ops \w+ = \{.*?\};\n', text, flags=re.DOTALL
    )
    (other,) = [part for part in both if f" {ops} " not in part]
    policy.write_text(text.replace(other, ""))
    (run,) = schedlab.run(
        "mixed", str(policy), cpus=2, offline=["1:20ms:40ms"], seeds=1, out=tmp_path / "out"
    ).runs.to_dicts()
    assert says in Path(run["directory"], "policy.log").read_text()


def copy_of(name, into):
    policy = into / f"{name}.bpf.c"
    policy.write_text((folder() / f"{name}.bpf.c").read_text())
    return policy


def folder():
    return linux_source() / "tools" / "testing" / "selftests" / "sched_ext"
