# SPDX-License-Identifier: MIT
"""Credits and caps are kept, on a machine that others use as well.

programs/shares.c gives CPU time to eight threads per CPU, and says by how much of a CPU
a thread had another part than its credits and its cap are worth. Time that the kernel
gave to other processes is nobody's: it is not charged, and the policy is shown a clock
that stands still meanwhile.

`./lab soak uthreads-shares` does so for 60 s of CPU time on each CPU, with turns of 30 ms.
"""

from __future__ import annotations

import json
import os

import pytest

from uthreads.test_threads import policy
from uthreads.uthreads_programs import RUN_SECONDS_MAX, run_program

SECONDS = float(os.environ.get("SCHEDLAB_UTHREADS_SECONDS", 10))
#: Turns and accountings short enough that a second has hundreds of them.
SHORT_SECONDS, SHORT_KNOBS = 1, ("slice_ns=2000000", "period_ns=5000000")
#: By how much of a CPU a share may be off, in percent.
OFF_PERCENT = 1.0
#: What the test's own competitors may take of the CPU, by their number; beyond it
#: slices of 2 ms are mostly other processes' time, and the run is void.
TAKEN_PERCENT_MAX = (25, 75)


def shares(chain, cpus: int, seconds: float, competitors: int, *knobs: str) -> dict:
    """Run programs/shares.c; others may take nine tenths of each CPU."""
    said = run_program(
        chain.program("shares.c"),
        policy(chain, "credit"),
        cpus,
        seconds,
        competitors,
        *knobs,
        seconds=RUN_SECONDS_MAX + 20 * seconds,
    )
    print(said.stderr)
    return json.loads(said.stdout)


@pytest.mark.parametrize("competitors", [0, 1])
def test_shares_and_caps_hold_whatever_others_take(toolchain, competitors):
    found = shares(toolchain("gcc", "plain"), 1, SHORT_SECONDS, competitors, *SHORT_KNOBS)
    if found["taken_percent"] > TAKEN_PERCENT_MAX[competitors]:
        pytest.skip(
            f"void: other processes had {found['taken_percent']} % of the CPU; repeat it on an idle machine"
        )
    assert found["worst_percent"] <= OFF_PERCENT
    # What the library counts is what the kernel counts.
    assert found["counted_percent"] == pytest.approx(100, abs=2)
    assert found["taken_percent"] > (25 if competitors else -1)


@pytest.mark.nightly
@pytest.mark.parametrize("is_shared", [False, True], ids=["alone", "shared"])
@pytest.mark.parametrize("cpus", [1, 2])
def test_shares_and_caps_hold_for_long(toolchain, cpus, is_shared):
    found = shares(toolchain("gcc", "plain"), cpus, cpus * SECONDS, cpus * is_shared)
    print(found)
    assert found["worst_percent"] <= OFF_PERCENT
    assert found["taken_percent"] > (25 if is_shared else -1)
