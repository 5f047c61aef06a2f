# SPDX-License-Identifier: MIT
"""Random calls of the library on random threads: nothing is lost, and nobody waits for ever.

What programs/stress.c does is checked as it goes; a wake-up that is lost ends in a wait
that the program or the library sees. With sanitizers a hundredth of the switches are
done, and one call in eight ends its caller's turn, as a signal would.
`./lab soak uthreads-stress` does a thousand million switches.
"""

from __future__ import annotations

import os
import re

import pytest

from uthreads.test_threads import FORCED, policy
from uthreads.uthreads_programs import run_program

NR_SWITCHES = int(os.environ.get("SCHEDLAB_UTHREADS_SWITCHES", 2_000_000))
#: A machine that others use too does so many a second at the least, with sanitizers a tenth.
SWITCHES_PER_SECOND = 50_000
KNOBS = ("slice_ns=200000",)
NATIVE = [("fifo", 1, ()), ("rr", 2, KNOBS), ("credit", 2, ()), ("cfs", 4, ())]
SANITIZED = [("gcc", "address"), ("clang-19", "thread")]


def stress(chain, name, cpus, switches, *knobs, env=None, pace=SWITCHES_PER_SECOND):
    """Run programs/stress.c and see that it has done what it was asked for."""
    said = run_program(
        chain.program("stress.c"),
        policy(chain, name),
        cpus,
        switches,
        switches + cpus,
        *knobs,
        env=env,
        seconds=60 + switches / pace,
    ).stdout
    assert int(re.match(r"(\d+) switches", said)[1]) >= switches


@pytest.mark.full
@pytest.mark.parametrize(("name", "cpus", "knobs"), NATIVE)
def test_natively(toolchain, name, cpus, knobs):
    stress(toolchain("gcc", "plain"), name, cpus, NR_SWITCHES // len(NATIVE), *knobs)


@pytest.mark.full
@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("build", SANITIZED, ids="-".join)
def test_with_forced_preemption_under_sanitizers(toolchain, build, cpus):
    switches = NR_SWITCHES // 100 // 2
    stress(toolchain(*build), "rr", cpus, switches, *KNOBS, env=FORCED, pace=SWITCHES_PER_SECOND / 10)


@pytest.mark.full
def test_who_sleeps_and_wakes_meanwhile_is_no_deadlock(toolchain):
    chain = toolchain("gcc", "address")
    run_program(chain.program("doze.c"), policy(chain, "rr"), 2, env=FORCED)
