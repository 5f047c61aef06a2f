# SPDX-License-Identifier: MIT
"""Switches that the kernel hides, or that were lost: what the recorder makes of the events around them."""

from __future__ import annotations

import pytest

from linux import event_files as ev
from schedlab.records.file import Kind, Stop


def test_switches_that_the_kernel_hides_are_inferred(convert):
    """From idle: the task runs since it was woken, or as long as its CPU time says."""
    events = [
        ev.event(ev.MEMBER, 900, 10, 1, 0),
        ev.event(ev.SWITCH, 1010, 7, 0, ev.BLOCKED),
        ev.event(ev.WAKING, 1100, 10, 0, 0, flags=1),
        ev.event(ev.SWITCH, 1200, 10, 0, ev.BLOCKED),
        ev.event(ev.WAKING, 1300, 10, 0, 0, flags=1),
        ev.event(ev.RUNTIME, 1400, 10, 70, 0),
        ev.event(ev.SWITCH, 1410, 10, 0, ev.DEAD),
        ev.event(ev.END, 1500),
    ]
    converted, records = convert(events)
    assert ev.rows(records, Kind.RUN, Kind.STOP) == [
        ("RUN", 100, 1, 0, 0, 0),
        ("STOP", 200, 1, 0, Stop.BLOCKED, 100),
        ("RUN", 330, 1, 0, 0, 0),
        ("STOP", 410, 1, 0, Stop.EXITED, 80),
    ]
    assert (converted.n_inferred, converted.n_repairs) == (2, 0)


def test_a_hidden_start_is_as_early_as_its_first_account_says_wherever_it_was_made(convert):
    """CPU 1 does the accounts of the task of CPU 0: the task neither moves nor loses that time."""
    events = [
        ev.event(ev.MEMBER, 900, 10, 1, 0, flags=1),
        ev.event(ev.SWITCH, 1005, 8, 9, ev.BLOCKED, cpu=1),
        ev.event(ev.SWITCH, 1010, 9, 7, ev.BLOCKED),
        ev.event(ev.WAKING, 1020, 10, 8, 0),
        ev.event(ev.RUNTIME, 1160, 10, 110, 0, cpu=1, flags=ev.ELSEWHERE),
        ev.event(ev.RUNTIME, 1200, 10, 40, 0),
        ev.event(ev.RUNTIME, 1250, 10, 50, 0, cpu=1, flags=ev.ELSEWHERE),
        ev.event(ev.SWITCH, 1300, 10, 7, ev.BLOCKED),
        # The next start is told of.
        ev.event(ev.WAKING, 1310, 10, 7, 0),
        ev.event(ev.SWITCH, 1320, 7, 10, 0, flags=120),
        ev.event(ev.SWITCH, 1330, 10, 0, ev.DEAD),
        ev.event(ev.END, 1500),
    ]
    converted, records = convert(events)
    assert ev.rows(records, Kind.RUN, Kind.STOP, Kind.OVERHEAD) == [
        ("OVERHEAD", 50, 0, 0, 4, 40),
        ("RUN", 50, 1, 0, 0, 0),
        ("STOP", 300, 1, 0, Stop.BLOCKED, 250),
        ("OVERHEAD", 320, 0, 0, 4, 20),
        ("RUN", 320, 1, 0, 0, 0),
        ("STOP", 330, 1, 0, Stop.EXITED, 10),
        ("OVERHEAD", 500, 0, 1, 4, 495),
    ]
    assert (converted.n_inferred, converted.n_repairs) == (1, 0)


def test_who_left_unseen_ran_until_the_next_began(convert):
    events = [
        ev.event(ev.SWITCH, 1010, 9, 68, ev.BLOCKED, flags=120),
        ev.event(ev.WAKING, 1020, 10, 9, 0),
        ev.event(ev.RUNTIME, 1100, 10, 60, 0),
        ev.event(ev.SWITCH, 1150, 10, 68, ev.BLOCKED, flags=120),
        ev.event(ev.END, 1200),
    ]
    converted, records = convert(events, is_all=True)
    assert ev.rows(records, Kind.RUN, Kind.STOP)[2:] == [
        ("RUN", 10, 2, 0, 0, 0),
        ("STOP", 40, 2, 0, Stop.PREEMPTED, 30),
        ("RUN", 40, 3, 0, 0, 0),
        ("STOP", 150, 3, 0, Stop.BLOCKED, 110),
        ("RUN", 150, 2, 0, 0, 0),
        ("STOP", 200, 2, 0, Stop.HORIZON, 50),
    ]
    assert (converted.n_inferred, converted.n_repairs) == (1, 0)


def test_who_left_unseen_and_is_woken_had_blocked(convert):
    """11 left for the idle task, 10 began from it: of neither a switch tells. 11 waits 30 ns, not 80."""
    events = [
        ev.event(ev.MEMBER, 900, 10, 1, 0),
        ev.event(ev.MEMBER, 900, 11, 1, 0, flags=1),
        ev.event(ev.SWITCH, 1050, 0, 11, 0, flags=120),
        ev.event(ev.WAKING, 1100, 10, 0, 0),
        ev.event(ev.RUNTIME, 1200, 10, 40, 0),
        ev.event(ev.SWITCH, 1200, 10, 0, ev.BLOCKED),
        ev.event(ev.WAKING, 1210, 11, 0, 0),
        ev.event(ev.SWITCH, 1240, 0, 11, 0, flags=120),
        ev.event(ev.SWITCH, 1250, 11, 0, ev.DEAD),
        ev.event(ev.END, 1300),
    ]
    converted, records = convert(events)
    eleven = next(t["task"] for t in converted.tasks if t["pid"] == 11)
    assert [row for row in ev.rows(records, Kind.RUN, Kind.STOP, Kind.WAKE) if row[2] == eleven] == [
        ("RUN", 50, eleven, 0, 0, 0),
        ("STOP", 160, eleven, 0, Stop.BLOCKED, 110),
        ("WAKE", 210, eleven, 0, 0, 0),
        ("RUN", 240, eleven, 0, 0, 0),
        ("STOP", 250, eleven, 0, Stop.EXITED, 10),
    ]


@pytest.mark.parametrize("has_account", [True, False])
def test_a_switch_to_idle_that_is_hidden_is_a_block(convert, has_account):
    """The next switch is from the idle task: the last account says when it left, else the wake-up at the latest."""
    events = [
        ev.event(ev.MEMBER, 900, 10, 1, 0, flags=1),
        ev.event(ev.SWITCH, 1010, 0, 10, 0, flags=120),
        *[ev.event(ev.RUNTIME, 1060, 10, 50, 0)] * has_account,
        ev.event(ev.WAKING, 1200, 10, 0, 0, flags=1),
        ev.event(ev.SWITCH, 1230, 0, 10, 0, flags=120),
        ev.event(ev.SWITCH, 1250, 10, 0, ev.BLOCKED),
        ev.event(ev.SWITCH, 1280, 0, 7, 0),
        ev.event(ev.END, 1300),
    ]
    converted, records = convert(events)
    left = 60 if has_account else 200
    assert ev.rows(records, Kind.RUN, Kind.STOP, Kind.WAKE) == [
        ("RUN", 10, 1, 0, 0, 0),
        ("STOP", left, 1, 0, Stop.BLOCKED, left - 10),
        ("WAKE", 200, 1, 0, 0, 0),
        ("RUN", 230, 1, 0, 0, 0),
        ("STOP", 250, 1, 0, Stop.BLOCKED, 20),
    ]
    assert converted.n_wakeups == 1
