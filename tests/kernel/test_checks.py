# SPDX-License-Identifier: MIT
"""The system calls, by the kernel's own test programs: user/checks.c, user/chaos.c.

Each machine runs one program and goes off with its status. The programs count
pages, blocks, inodes, files and processes before and after; what is looked for
here is that they ran to their end and found nothing.

`./lab soak kernel` does the same for an hour, see test_soak.py.
"""

from __future__ import annotations

import re

import pytest
from kernel.machine import Console
from schedlab.hosts.kernel_boot import Machine

pytestmark = pytest.mark.full

#: Fewer processes than usual, so that a fork bomb takes less of CI's time.
ARGUMENTS = {"procs_max": "300"}


def run(image, program, *, nr_cpus, is_counted=False):
    """Boot, run a program, and return its status and all that was printed."""
    machine = Machine(
        image, nr_cpus=nr_cpus, is_counted=is_counted, arguments={**ARGUMENTS, "run": program}
    )
    with Console(machine, timeout_s=300) as console:
        status = console.wait()
        return status, console.text


@pytest.mark.parametrize(
    ("nr_cpus", "is_counted"), [(1, True), (2, False), (4, False)], ids=["1", "2", "4"]
)
def test_every_check_passes(image, nr_cpus, is_counted):
    status, text = run(image, "/checks -j 3", nr_cpus=nr_cpus, is_counted=is_counted)
    end = re.search(r"^checks: (\d+) of (\d+) failed$", text, re.MULTILINE)
    assert end, text
    assert int(end[1]) == 0, text
    assert int(end[2]) >= 90, "checks are missing"
    assert status == 0
    assert "panic" not in text


def test_an_unknown_check_is_told(image):
    status, text = run(image, "/checks no-such-check", nr_cpus=1, is_counted=True)
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
    status, text = run(image, f"/checks {check}", nr_cpus=1, is_counted=True)
    assert status == 1
    assert re.search(what, text), text
    assert "checks: 1 of 1 failed" in text


@pytest.mark.parametrize(("nr_cpus", "is_counted"), [(1, True), (3, False)], ids=["1", "3"])
def test_random_calls_do_no_harm(image, nr_cpus, is_counted):
    status, text = run(image, "/chaos 20261122 300 5", nr_cpus=nr_cpus, is_counted=is_counted)
    assert "chaos: seed 20261122: 300 sequences, nothing missing" in text, text
    assert status == 0


def test_the_same_seed_says_the_same(image):
    """On one hart whose clock counts instructions, to the last byte."""
    texts = [run(image, "/chaos -v 5 40 3", nr_cpus=1, is_counted=True)[1] for _ in range(2)]
    assert "nothing missing" in texts[0]
    assert texts[0] == texts[1]
