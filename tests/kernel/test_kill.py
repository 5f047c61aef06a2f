# SPDX-License-Identifier: MIT
"""A kill reaches a process wherever it is, also between looking and waiting."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel.machine import Console
from schedlab.hosts.kernel_boot import Machine
from schedlab.hosts.kernel_build import build_kernel

pytestmark = pytest.mark.full

PROGRAM = Path(__file__).parent / "programs" / "killsync.c"


@pytest.mark.parametrize(("nr_cpus", "tick_ns"), [(1, 10000), (3, 10_000_000)], ids=["1", "3"])
def test_no_kill_is_lost(image, nr_cpus, tick_ns):
    """On several harts it hung each time before sync.c looked again."""
    assert image, "which can be built, or the test is skipped"
    machine = Machine(
        build_kernel(programs=[PROGRAM]),
        nr_cpus=nr_cpus,
        is_counted=nr_cpus == 1,
        arguments={"policy": "rr", "tick_ns": str(tick_ns), "run": "/killsync"},
    )
    with Console(machine, timeout_s=120) as console:
        assert console.wait() == 0
        assert "nobody was forgotten" in console.text
