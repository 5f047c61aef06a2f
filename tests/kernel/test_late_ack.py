# SPDX-License-Identifier: MIT
"""Boot argument late_ack: report 1's yield inside the timer interrupt, before it is acknowledged.

Instructions are counted, so a run is the same on every machine. Its true time is what the
board's clock says (`ns`), its reported time what interrupts counted (`ticks`).
"""

from __future__ import annotations

import pytest
from kernel.machine import Console
from schedlab.hosts.kernel_boot import Machine
from schedlab.reproduce.runs import read_samples

pytestmark = pytest.mark.full

TICK_NS = 10_000_000
#: The report's mechanisms, as its code of 19 April 2025 has them.
AS_ITS_CODE = {"policy": "priority", "set": "slice_ns=20000000,high_slice_ns=50000000,fifo_first=1,pid_rule=1"}
LATE = {"late_ack": "1"}


def timings(image, arguments, tests):
    """True ticks, reported ticks and switches of each run, by the number of the test."""
    run = {"run": f"/timings --raw -n 2 -a priority-code {tests}"}
    with Console(Machine(image, arguments=arguments | run)) as console:
        assert console.wait() == 0, console.text
    found = {}
    for words in read_samples(console.text):
        run = round(int(words["ns"]) / TICK_NS), int(words["ticks"]), int(words["switches"])
        found.setdefault(int(words["test"]), []).append(run)
    return found


@pytest.mark.parametrize("off", [{}, {"late_ack": "0"}])
def test_without_it_each_tick_is_counted(image, off):
    for runs in timings(image, AS_ITS_CODE | off, "1 7").values():
        for true, reported, _ in runs:
            assert abs(true - reported) <= 1


@pytest.mark.parametrize("policy", [AS_ITS_CODE, {"policy": "rr"}], ids=["priority", "rr"])
def test_with_it_the_clock_stands_still_and_the_work_takes_as_long(image, policy):
    """What the report published: 87 -> 14 and 43.5 -> 12. Round-robin would have gained as much."""
    late, on_time = timings(image, policy | LATE, "1 7"), timings(image, policy, "1 7")
    for test, most in ((1, 15), (7, 12)):
        assert len(late[test]) == 2
        for (true, reported, switches), (before, _, switches_before) in zip(late[test], on_time[test], strict=True):
            assert reported <= most < true / 3
            assert abs(true - before) <= 1
            assert switches < switches_before / 2, "no slice ends while no tick comes"


def test_with_it_a_process_still_sleeps_for_ticks(image):
    """Ten sleeps of one tick each; and test 4 prints 50 for three times as much."""
    found = timings(image, AS_ITS_CODE | LATE, "3 4")
    for true, reported, _ in found[3]:
        assert reported == 10
        assert 9 <= true <= 11
    for true, reported, _ in found[4]:
        assert reported == 50
        assert true > 120


def test_it_is_for_one_hart(image):
    with Console(Machine(image, nr_cpus=2, arguments=LATE | {"run": "/echo x"}, is_counted=False)) as console:
        console.wait_for("late_ack=1 with 2 harts: .*; use one")
