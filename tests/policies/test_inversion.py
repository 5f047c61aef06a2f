# SPDX-License-Identifier: MIT
"""Priority inversion, wait by wait: who ran while the most important task waited.

A wait of the high task for something that the low one has (a lock, an answer)
is explained as far as the low task works for it. It is inverted where the task
in the middle runs meanwhile, which knows nothing of either. Both are read off
the records, so nothing here depends on the sum that test_classics.py looks at.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from schedlab.records import Kind, Stop

MS = 1_000_000
STRICT = ["rt_fifo", "rt_rr", "priority"]
#: What the low task does for a wait at most: its stay in the lock, its answer.
LOCK_MS, ANSWER_MS = 4, 3
LOCKED = '{lock = "bus"},\n        {run = "4ms"},\n        {unlock = "bus"},'
CEILING = """{set = {priority = 0}},
        {lock = "bus"},
        {run = "4ms"},
        {unlock = "bus"},
        {set = {priority = 9}},"""


@dataclass(frozen=True)
class Wait:
    """One wait of a task for another; all in milliseconds.

    Attributes
    ----------
    length_ms : float
        From the block to the run that follows.
    low_ms, middle_ms : float
        CPU time of the other two meanwhile.
    """

    length_ms: float
    low_ms: float
    middle_ms: float


def waits(played, high: str, low: str, middle: str) -> list[Wait]:
    """Every wait of `high` that ended since `low` woke it, on one CPU."""
    pid_of = {name: pid for pid, name in enumerate(played.names, start=1)}
    spans, blocked_ns, is_by_low = [], None, False
    for event in played.records.events:
        if event["task"] != pid_of[high]:
            continue
        t_ns, kind = int(event["t_ns"]), event["kind"]
        if kind == Kind.STOP and event["flags"] == Stop.BLOCKED:
            blocked_ns = t_ns
        elif kind == Kind.WAKE:
            is_by_low = event["arg"] == pid_of[low]
        elif kind == Kind.RUN and blocked_ns is not None:
            if is_by_low:
                spans.append((blocked_ns / MS, t_ns / MS))
            blocked_ns = None
    found = []
    for start, end in spans:
        ran = played.ran_ms(since_ms=start, until_ms=end)
        found.append(Wait(end - start, ran[low], ran[middle]))
    return found


@pytest.fixture
def lock(play, root):
    """Function that plays inversion-lock under a policy, with `change` made to its text."""

    def run(policy: str, change: tuple[str, str] | None = None):
        text = (root / "workloads/classics/inversion-lock.toml").read_text()
        if change:
            assert text.count(change[0]) == 1, change[0]
            text = text.replace(*change)
        return waits(play(text, policy, seed=1), "high", "low", "middle")

    return run


@pytest.fixture
def pipe(play, root):
    """Function that plays inversion-pipe under a policy."""

    def run(policy: str):
        text = (root / "workloads/classics/inversion-pipe.toml").read_text()
        return waits(play(text, policy, seed=1), "client", "server", "other")

    return run


def assert_accounted(found: list[Wait]) -> None:
    """Without costs and with the CPU never idle, the other two explain a wait."""
    assert len(found) > 3
    for wait in found:
        assert wait.length_ms == pytest.approx(wait.low_ms + wait.middle_ms, abs=1e-6)


@pytest.mark.parametrize("policy", STRICT)
def test_the_middle_runs_while_the_high_waits_for_the_lock(lock, policy):
    found = lock(policy)
    assert_accounted(found)
    # The holder never makes it wait for longer than it keeps the lock ...
    assert max(wait.low_ms for wait in found) <= LOCK_MS
    # ... and yet it has waited for a burst of 120 ms that needs no lock.
    assert max(wait.middle_ms for wait in found) > 100
    assert max(wait.length_ms for wait in found) > 20 * LOCK_MS


@pytest.mark.parametrize("policy", STRICT)
def test_a_holder_at_the_ceiling_is_not_kept_from_letting_go(lock, policy):
    """Who takes the lock takes the priority of its most important user: no inversion.

    The immediate ceiling protocol of Sha, Rajkumar and Lehoczky (1990): the
    workload says what the policy cannot know, who holds a lock.
    """
    for wait in lock(policy, (LOCKED, CEILING)):
        assert wait.middle_ms == 0
        assert wait.length_ms <= LOCK_MS


@pytest.mark.parametrize("policy", STRICT)
def test_the_middle_runs_while_the_high_waits_for_an_answer(pipe, policy):
    found = pipe(policy)
    assert_accounted(found)
    assert len(found) == 60
    assert max(wait.low_ms for wait in found) == ANSWER_MS
    assert max(wait.middle_ms for wait in found) > 100
    assert sum(wait.middle_ms for wait in found) > 10 * sum(wait.low_ms for wait in found)


@pytest.mark.parametrize("policy", ["cfs", "eevdf"])
def test_fair_shares_bound_the_wait(lock, pipe, policy):
    """The low task's part of the CPU lets it finish: tens of milliseconds, never a burst."""
    assert max(wait.length_ms for wait in lock(policy)) < 50
    assert max(wait.length_ms for wait in pipe(policy)) < 40
