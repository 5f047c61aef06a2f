# SPDX-License-Identifier: MIT
"""Checks and random calls, again and again, while the policy is switched live.

SCHEDLAB_KERNEL_MINUTES says for how long; `./lab soak kernel` sets it to 60. Its
time is divided among machines of 4, 2 and 1 harts, each booted once, which it runs at
the same time: an hour is 20 minutes of three machines. Every round has a seed of its
own, which a failure names. A lost wake-up or a deadlock is a round that does not end; a task that runs twice trips an assertion, and the
machine goes off. A task that is runnable and never runs ends the policy after 30 s,
and the round with it. No round can stall because nobody switches: what computes in
checks and sequences does so for 0.2 s at most, so that the process that switches gets
a CPU also under a policy that takes none from anybody.
"""

from __future__ import annotations

import os
import re
import time

import pytest

from kernel.machine import Console
from schedlab.hosts.kernel.boot import Machine

pytestmark = pytest.mark.full

MINUTES = float(os.environ.get("SCHEDLAB_KERNEL_MINUTES", "0"))
#: Under these some may starve, as their headers say; 500 processes that fork do it under srtf.
MAY_STARVE = {"fifo", "mlfq", "priority", "rt_fifo", "rt_rr", "sjf", "srtf"}
#: No round takes longer than this on a machine that still works.
ROUND_S = 900
ARGUMENTS = {"procs_max": "500", "policy": "rr"}


def fail_if_a_policy_failed(said):
    """A task that waits for 30 s under a policy that starves nobody has been forgotten."""
    ended = re.findall(r"policy '(\w+)' has ended: (.*)$", said, re.MULTILINE)
    bad = [
        f"{name}: {why}"
        for name, why in ended
        if not (name in MAY_STARVE and why.startswith("runnable task stall"))
    ]
    assert not bad, f"{bad}\n{said}"


def one_round(console, seed):
    """Checks and many random calls, policies switched meanwhile."""
    said = console.run(f"chaos -s {seed} 300 6")
    begun = re.search(rf"^chaos: seed {seed}: (\d+) of 300 sequences, nothing missing$", said, re.MULTILINE)
    assert begun and int(begun[1]) > 200, f"seed {seed}:\n{said}"
    fail_if_a_policy_failed(said)
    # The long checks, which use all memory, blocks or processes up, come seldom.
    quick = "" if MINUTES and seed % 8 == 0 else "-q "
    said = console.run(f"checks {quick}-s {seed} -j 4")
    assert re.search(r"^checks: 0 of \d+ failed$", said, re.MULTILINE), f"seed {seed}:\n{said}"
    fail_if_a_policy_failed(said)


@pytest.mark.parametrize(
    "n_cpus", [pytest.param(4, marks=pytest.mark.nightly), 2, pytest.param(1, marks=pytest.mark.nightly)]
)
def test_nothing_is_lost(image, n_cpus):
    machine = Machine(image, n_cpus=n_cpus, arguments=ARGUMENTS, is_counted=False)
    with Console(machine, timeout_s=ROUND_S) as console:
        console.wait_for(r"^\$ \Z")
        end_s = time.monotonic() + MINUTES * 60 / 3
        seed = n_cpus * 1_000_000 + 1
        while True:
            one_round(console, seed)
            seed += 1
            if time.monotonic() >= end_s:
                break
        print(f"{n_cpus} harts: {seed - n_cpus * 1_000_000 - 1} rounds")
        # Init, the shell and ps are all there is.
        assert len(console.run("ps").splitlines()) == 5
        assert console.run("ps").startswith("policy: rr ")
        console.send("poweroff\n")
        assert console.wait() == 0
