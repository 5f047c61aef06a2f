# SPDX-License-Identifier: MIT
"""Shares are held against policies that declare them, and no right one is accused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from schedlab.check.search import Task, do_batch
from schedlab.check.shares import broken_share
from schedlab.errors import PolicyError
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.records.file import RECORD_DTYPE, Kind, Records, Stop

pytestmark = pytest.mark.full
HERE = Path(__file__).resolve().parent
MS = 1_000_000


def first_finding(policy: str, n_batches: int):
    """The first failed world of some batches of 100, and what was found; None: nothing."""
    task = Task(build_policy(load_policy(policy)), frozenset({"shares"}), seed=1, are_chosen=True)
    for number in range(n_batches):
        batch = do_batch(task, number)
        assert batch.error is None
        if batch.failed:
            return task, *batch.failed[0]
    return None


def test_a_weight_that_does_not_count_is_found_again_each_time(simulator):
    task, world, finding = first_finding(str(HERE / "weight_in_bounds.bpf.c"), 20)
    assert finding.broken == "shares" and "two tasks wanted the CPU" in finding.text
    with task.laboratory() as laboratory:
        assert laboratory.try_world(world).finding == finding


@pytest.mark.parametrize("policy", ["stride", "eevdf"])
def test_a_policy_that_keeps_what_it_declares_is_not_accused(policy, simulator):
    assert load_policy(policy).shares is not None
    assert first_finding(policy, 15) is None


def records_of(turns: list[tuple[int, int, int]]) -> Records:
    """Two tasks that always want to run have turns: pid, from and to in ms."""
    rows = [(0, Kind.ARRIVE, pid, 0, 0) for pid in (1, 2)]
    for pid, begin, end in turns:
        rows += [
            (begin * MS, Kind.RUN, pid, 0, 0),
            (end * MS, Kind.STOP, pid, Stop.PREEMPTED, (end - begin) * MS),
        ]
    events = np.zeros(len(rows), RECORD_DTYPE)
    for field, values in zip(("t_ns", "kind", "task", "flags", "arg"), zip(*rows, strict=True), strict=True):
        events[field] = values
    events["flags"][-1] = Stop.HORIZON
    return Records(events, n_cpus=1, tick_ns=MS, end_ns=turns[-1][2] * MS, n_lost=0)


@pytest.mark.parametrize(
    ("weights", "turns", "is_broken"),
    [
        # What one gains on the other is half of what it has: 2 (10 + 1) ms are allowed.
        ((100, 100), [(1, 0, 44), (2, 44, 88)], False),
        ((100, 100), [(1, 0, 45), (2, 45, 90)], True),
        ((100, 100), [(1, 0, 20), (2, 20, 64)], False),  # 10 ahead, then 22 down from there
        ((100, 100), [(1, 0, 20), (2, 20, 66)], True),
        ((300, 100), [(1, 0, 88)], False),
        ((300, 100), [(1, 0, 89)], True),
        ((300, 100), [(1, 0, 30), (2, 30, 40)], False),
    ],
)
def test_the_bound_is_twice_the_slice_and_a_tick(weights, turns, is_broken):
    named = dict(zip("ab", weights, strict=True))
    found = broken_share(records_of(turns), {1: "a", 2: "b"}, named, 10 * MS)
    assert (found is not None) is is_broken, found
    if is_broken:
        assert f"a[1] ({weights[0]}) had" in found and "further from their shares than 22ms" in found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tickets", "such as: @shares tickets within slice_ns"),
        ("luck within slice_ns", "must be followed by weight, tickets, credits"),
        ("weight within slise_ns", "slise_ns is no @knob in ns that stands above"),
    ],
)
def test_a_declaration_that_says_nothing_is_refused(words, message, tmp_path):
    text = (HERE / "weight_in_bounds.bpf.c").read_text().replace("weight within slice_ns", words)
    (tmp_path / "mine.bpf.c").write_text(text)
    with pytest.raises(PolicyError, match=rf"mine.bpf.c:6: .*{message}"):
        load_policy(str(tmp_path / "mine.bpf.c"))


def test_what_is_not_declared_cannot_be_asked_for():
    command = [sys.executable, "-m", "schedlab", "check", "rr", "--property", "shares"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "rr declares none; such as, in its header" in done.stderr
