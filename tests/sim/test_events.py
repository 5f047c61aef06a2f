# SPDX-License-Identifier: MIT
"""Wake-ups come when they are due, and those of one instant in the order they were asked for."""

from __future__ import annotations

import random

import numpy as np

from schedlab.records.file import Kind, Stop
from sim.simulated import simulated

ROUNDS = 3
HEAD = """
[workload]
title = "Many sleep"
question = "Who wakes first?"
jitter = "0ms"
tick = "1ms"
"""
TASK = """
[[task]]
name = "t{number}"
phases = [{{loop = {rounds}, do = [{{run = "1us"}}, {{sleep = "{sleep_us}us"}}]}}]
"""


def sleeps_us() -> list[int]:
    """One late wake-up before many in order, then many in none, equal ones among them."""
    draw = random.Random(1)
    return [9_000_000] + 1_500 * [5_000] + [9_000_000] + [draw.randrange(3_000, 6_000) for _ in range(1_000)]


def test_wake_ups_come_when_due_and_equal_ones_in_order(simulator, tmp_path):
    sleeps = sleeps_us()
    text = HEAD + "".join(TASK.format(number=n, rounds=ROUNDS, sleep_us=us) for n, us in enumerate(sleeps))
    events = simulated(simulator, tmp_path, text, "fifo").records.events
    began = events[(events["kind"] == Kind.STOP) & (events["flags"] == Stop.BLOCKED)]
    woken = events[events["kind"] == Kind.WAKE]
    assert len(woken) == ROUNDS * len(sleeps)
    due_ns = began["t_ns"] + 1_000 * np.asarray(sleeps, np.uint64)[began["task"] - 1]
    order = np.argsort(due_ns, kind="stable")
    assert len(np.unique(due_ns)) < len(due_ns)
    assert np.array_equal(woken["t_ns"], due_ns[order])
    assert np.array_equal(woken["task"], began["task"][order])
