# SPDX-License-Identifier: MIT
"""Boot argument late_ack: report 1's yield inside the timer interrupt, before it is acknowledged.

Instructions are counted, so a run is the same on every machine. Its true time is what the
board's clock says (`ns`), its reported time what interrupts counted (`ticks`).
"""

from __future__ import annotations

from functools import cache

import pytest

from checkout.reproduce.runs import read_samples
from kernel.machine import Console
from schedlab.hosts.kernel.boot import Machine

pytestmark = pytest.mark.full

TICK_NS = 10_000_000
POLICIES = {
    # The report's mechanisms, as its code of 19 April 2025 has them.
    "priority": {
        "policy": "priority",
        "set": "slice_ns=20000000,high_slice_ns=50000000,fifo_first=1,pid_rule=1",
    },
    "rr": {"policy": "rr"},
}
LATE, ON_TIME = {"late_ack": "1"}, {"late_ack": "0"}


@pytest.fixture(scope="module")
def timings(image):
    """Function: tests 1 and 7 under a policy, late or not. A boot is 3 s of instructions, so each is made once."""

    @cache
    def boot(policy, is_late):
        # Off is the same without the argument and with a 0: one policy each.
        argument = LATE if is_late else {} if policy == "priority" else ON_TIME
        # 3 and 4 are asked for here alone; they come last, and change nothing before them.
        tests = "1 7 3 4" if is_late and policy == "priority" else "1 7"
        run = {"run": f"/timings --raw -n 2 -a priority-code {tests}"}
        with Console(Machine(image, arguments=POLICIES[policy] | argument | run)) as console:
            assert console.wait() == 0, console.text
        return found_in(console.text)

    return boot


def found_in(text):
    """True ticks, reported ticks and switches of each run, by the number of the test."""
    found = {}
    for words in read_samples(text):
        run = round(int(words["ns"]) / TICK_NS), int(words["ticks"]), int(words["switches"])
        found.setdefault(int(words["test"]), []).append(run)
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_without_it_each_tick_is_counted(timings, policy):
    found = timings(policy, False)
    assert {test: len(runs) for test, runs in found.items()} == {1: 2, 7: 2}
    for runs in found.values():
        for true, reported, _ in runs:
            assert abs(true - reported) <= 1


@pytest.mark.parametrize("policy", POLICIES)
def test_with_it_the_clock_stands_still_and_the_work_takes_as_long(timings, policy):
    """What the report published: 87 -> 14 and 43.5 -> 12. Round-robin would have gained as much."""
    late, on_time = timings(policy, True), timings(policy, False)
    for test, most in ((1, 15), (7, 12)):
        assert len(late[test]) == 2
        for (true, reported, switches), (before, _, switches_before) in zip(
            late[test], on_time[test], strict=True
        ):
            assert reported <= most < true / 3
            assert abs(true - before) <= 1
            assert switches < switches_before / 2, "no slice ends while no tick comes"


def test_with_it_a_process_still_sleeps_for_ticks(timings):
    """Ten sleeps of one tick each; and test 4 prints 50 for three times as much."""
    found = timings("priority", True)
    assert len(found[3]) == len(found[4]) == 2
    for true, reported, _ in found[3]:
        assert reported == 10
        assert 9 <= true <= 11
    for true, reported, _ in found[4]:
        assert reported == 50
        assert true > 120


def test_with_it_a_wait_by_the_board_s_clock_ends(image):
    """Of two processes that compute until then; with uptime(), which stood still, the check never ended."""
    arguments = LATE | {"policy": "rr", "run": "/checks too-much-takes-nothing"}
    with Console(Machine(image, arguments=arguments)) as console:
        assert console.wait() == 0, console.text
    assert "checks: 0 of 1 failed" in console.text


def test_it_is_for_one_hart(image):
    with Console(Machine(image, n_cpus=2, arguments=LATE | {"run": "/echo x"}, is_counted=False)) as console:
        console.wait_for("late_ack=1 with 2 harts: .*; use one")
