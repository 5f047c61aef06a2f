# SPDX-License-Identifier: MIT
"""A kill reaches a process wherever it is, also between looking and waiting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernel.machine import Console
from schedlab.hosts.kernel.boot import Machine
from schedlab.hosts.kernel.build import build_kernel

pytestmark = pytest.mark.full

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(("n_cpus", "tick_ns"), [(1, 10000), (3, 10_000_000)], ids=["1", "3"])
def test_no_kill_is_lost(image, n_cpus, tick_ns):
    """On several harts it hung each time before sync.c looked again."""
    assert image, "which can be built, or the test is skipped"
    machine = Machine(
        build_kernel(programs=[PROGRAMS / "killsync.c"]),
        n_cpus=n_cpus,
        is_counted=n_cpus == 1,
        arguments={"policy": "rr", "tick_ns": str(tick_ns), "run": "/killsync"},
    )
    with Console(machine, timeout_s=240) as console:
        assert console.wait() == 0
        assert "nobody was forgotten" in console.text


@pytest.mark.parametrize("n_cpus", [1, 2])
def test_ctrl_c_ends_a_child_that_is_being_forked(image, n_cpus):
    """The program spends nearly all of its time in fork(); no child of it survives."""
    assert image, "which can be built, or the test is skipped"
    forking = build_kernel(programs=[PROGRAMS / "forks.c"])
    with Console(Machine(forking, n_cpus=n_cpus, is_counted=n_cpus == 1), timeout_s=240) as console:
        console.wait_for(r"^\$ \Z")
        for _ in range(8):
            console.send("forks\n")
            console.wait_for("^forking$")
            console.send("\x03")
            console.wait_for(r"^\$ \Z")
        # Those that were killed take their time to end; one that was not never ends.
        for _ in range(100):
            left = re.findall(r"^ +\d.* forks", console.run("ps"), re.MULTILINE)
            if not left:
                break
        assert not left, f"{len(left)} processes have escaped"
