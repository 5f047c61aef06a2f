# SPDX-License-Identifier: MIT
"""The kernel without its laboratory: it boots, runs programs, and schedules.

`hosts/kernel/lab/` measures and plays workloads. What is left when nothing of it is
compiled, with nolab/lab.h in place of lab/lab.h, is the kernel that a student reads.

Read next: hosts/kernel/lab/lab.h.
"""

from __future__ import annotations

import pytest

from kernel.machine import Console
from schedlab.hosts.kernel.boot import Machine
from schedlab.hosts.kernel.build import build_kernel

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def bare(image):
    """Kernel and file system as ever, but for the laboratory; skipped as any image."""
    return build_kernel(has_lab=False)


@pytest.mark.parametrize("n_cpus", [1, 2])
def test_it_boots_to_a_shell_and_schedules_with_policies(bare, n_cpus):
    machine = Machine(bare, n_cpus=n_cpus, arguments={"policy": "mlfq"})
    with Console(machine, timeout_s=240) as console:
        console.wait_for(r"^\$ \Z")
        assert "\n* mlfq\n" in console.run("sched")
        for policy in ("rr", "lottery", "builtin"):
            console.run(f"sched {policy}")
            assert f"\n* {policy}\n" in console.run("sched")
            assert console.run("echo one two | wc").split() == ["1", "2", "8"]
        assert "cannot switch" in console.run("sched rr slice_ns=1000000")
        assert "no list of processes" in console.run("ps")
        console.run("mkdir /there; echo words > /there/file")
        assert console.run("cat /there/file") == "words\n"
        console.send("poweroff\n")
        assert console.wait() == 0
        assert "panic" not in console.text
