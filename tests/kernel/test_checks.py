# SPDX-License-Identifier: MIT
"""The system calls, by the kernel's own test programs: user/checks.c, user/chaos.c.

Each machine runs one program and goes off with its status. The programs count
pages, blocks, inodes, files and processes before and after; what is looked for
here is that they ran to their end and found nothing.

`./lab soak kernel` does the same for an hour, see test_soak.py.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from kernel.machine import Console
from schedlab.hosts.kernel.boot import Machine, machine_command
from schedlab.hosts.kernel.build import build_kernel

pytestmark = pytest.mark.full

#: Fewer processes than usual, so that a fork bomb takes less of CI's time.
ARGUMENTS = {"procs_max": "300"}


def run(image, program, *, n_cpus, is_counted=False, policy="builtin"):
    """Boot, run a program, and return its status and all that was printed."""
    arguments = {**ARGUMENTS, "policy": policy, "run": program}
    machine = Machine(image, n_cpus=n_cpus, is_counted=is_counted, arguments=arguments)
    with Console(machine, timeout_s=300) as console:
        status = console.wait()
        return status, console.text


#: With two harts, where the core takes a lock with interrupts on the kernel ends.
@pytest.mark.parametrize(("n_cpus", "is_counted"), [(1, True), (2, False), (4, False)], ids=["1", "2", "4"])
def test_every_check_passes(image, n_cpus, is_counted):
    image = build_kernel(checks_locks=True) if n_cpus == 2 else image
    status, text = run(image, "/checks -j 3", n_cpus=n_cpus, is_counted=is_counted)
    end = re.search(r"^checks: (\d+) of (\d+) failed$", text, re.MULTILINE)
    assert end, text
    assert int(end[1]) == 0, text
    assert int(end[2]) >= 90, "checks are missing"
    assert status == 0
    assert "panic" not in text


def test_who_computes_makes_room_under_a_policy_that_never_preempts(image):
    """Or each such check would wait 30 s for the watchdog, when `./lab soak kernel` has chosen fifo."""
    status, text = run(image, "/checks kill-ends-it mutual-kill", n_cpus=1, is_counted=True, policy="fifo")
    assert status == 0, text
    assert "has ended" not in text


def test_an_unknown_check_is_told(image):
    status, text = run(image, "/checks no-such-check", n_cpus=1, is_counted=True)
    assert status == 1
    assert "there is no check no-such-check" in text


@pytest.mark.parametrize(
    ("check", "what"),
    [
        ("self-fails", r"checks_self\.c:\d+: getpid\(\) is \d+, not -1"),
        ("self-crashes", "store page fault"),
        ("self-leaves-a-file", "left files behind"),
        ("self-leaves-a-process", r"leak: processes were \d+ and are \d+"),
    ],
)
def test_the_runner_notices(image, check, what):
    """A check that fails does fail."""
    status, text = run(image, f"/checks {check}", n_cpus=1, is_counted=True)
    assert status == 1
    assert re.search(what, text), text
    assert "checks: 1 of 1 failed" in text


@pytest.mark.parametrize(("n_cpus", "is_counted"), [(1, True), (3, False)], ids=["1", "3"])
def test_random_calls_do_no_harm(image, n_cpus, is_counted):
    status, text = run(image, "/chaos 20261122 300 5", n_cpus=n_cpus, is_counted=is_counted)
    end = re.search(r"^chaos: seed 20261122: (\d+) of 300 sequences, nothing missing$", text, re.MULTILINE)
    assert end, text
    assert int(end[1]) > 250, "most have not even begun"
    assert status == 0


def test_the_same_seed_says_the_same(image, tmp_path):
    """On one hart whose clock counts instructions, to the last byte, how slow this machine's disk may be."""
    texts = []
    for extra in ((), ("-set", "drive.disk0.throttling.iops-total=100")):
        machine = Machine(image, arguments={**ARGUMENTS, "run": "/chaos -v 5 40 3"}, extra=extra)
        with open(tmp_path / "console", "w+b") as console:
            subprocess.run(
                machine_command(machine), stdin=subprocess.DEVNULL, stdout=console, timeout=300, check=True
            )
            console.seek(0)
            texts.append(console.read())
    assert b"40 of 40 sequences, nothing missing" in texts[0]
    assert texts[0] == texts[1]
