# SPDX-License-Identifier: MIT
"""Known answers of stride, sjf, srtf, edf, the real-time classes, o1 and eevdf.

As in test_known_answers.py: each schedule can be worked out with pencil and paper,
or is held to a bound that was proved. Ticks are 10 ms unless a test says otherwise,
and slices end at ticks; what happens by kicks happens at once.
"""

from __future__ import annotations

import pytest

from schedlab.records import Stop

from .test_known_answers import hog, sleeper, task, workload

# ---- rt_fifo and rt_rr ---------------------------------------------------------

REAL_TIME = ["rt_fifo", "rt_rr"]


def turns_of(played):
    """(name, start, end) of each turn, in whole milliseconds, neighbours not merged."""
    return [(t.name, t.start_ns // 1_000_000, t.end_ns // 1_000_000) for t in played.turns]


@pytest.mark.parametrize("policy", REAL_TIME)
def test_rt_runs_levels_in_order(play, policy):
    levels = {"five": 5, "98": 98, "none": None, "zero": 0, "beyond": 120, "below": -3}
    tasks = [
        task(name, 'run = "7ms"', arrival='"1ms"', **({} if level is None else {"priority": level}))
        for name, level in levels.items()
    ]
    played = play(workload(task("first", 'run = "2ms"', priority=-1), *tasks), policy)
    assert played.order() == ["first", "zero", "below", "five", "none", "98", "beyond"]
    assert not any(turn.why == Stop.PREEMPTED for turn in played.turns)


@pytest.mark.parametrize("policy", REAL_TIME)
def test_rt_counts_priorities_as_linux_does(play, policy):
    tasks = [task(f"p{n}", 'run = "7ms"', arrival='"1ms"', priority=n) for n in (1, 50, 99, 0, 100)]
    played = play(workload(task("first", 'run = "2ms"', priority=99), *tasks), policy, rt_priority=1)
    assert played.order() == ["first", "p99", "p100", "p50", "p1", "p0"]


@pytest.mark.parametrize("policy", REAL_TIME)
def test_rt_preempts_at_once_and_the_preempted_goes_on_before_its_equals(play, policy):
    played = play(
        workload(
            task("low", 'run = "30ms"', priority=6),
            task("equal", 'run = "3ms"', arrival='"1ms"', priority=6),
            task("high", 'run = "25ms"', arrival='"3ms"', priority=2),
            task("higher", 'run = "5ms"', arrival='"14ms"', priority=1),
        ),
        policy,
    )
    assert turns_of(played) == [
        ("low", 0, 3), ("high", 3, 14), ("higher", 14, 19), ("high", 19, 33), ("low", 33, 60),
        ("equal", 60, 63),
    ]


@pytest.mark.parametrize(
    ("policy", "order"), [("rt_fifo", ["a", "b", "c"]), ("rt_rr", ["a", "b", "c"] * 2 + ["a"])]
)
def test_rt_within_a_level(play, policy, order):
    jobs = [task("a", 'run = "250ms"'), task("b", 'run = "150ms"'), task("c", 'run = "110ms"')]
    assert play(workload(*jobs), policy).order() == order


def test_rt_rr_turns_are_of_slice_ns(play):
    played = play(workload(hog("a"), hog("b"), horizon="2s"), "rt_rr")
    assert [turn.ran_ms for turn in played.turns] == [100] * 20


def test_rt_rr_alone_in_its_level_goes_on(play):
    played = play(workload(hog("a", priority=3), hog("b", priority=4), horizon="2s"), "rt_rr")
    assert {turn.name for turn in played.turns} == {"a"}


def test_rt_rr_has_the_rest_of_a_turn_left(play):
    """`a` is preempted for 5 ms after 40: it has 60 left, and then it is the turn of `b`."""
    played = play(
        workload(
            hog("a"), hog("b"), task("high", 'run = "5ms"', arrival='"40ms"', priority=0), horizon="1s"
        ),
        "rt_rr", slice_ns=99_999_999,
    )
    assert turns_of(played)[:4] == [("a", 0, 40), ("high", 40, 45), ("a", 45, 110), ("b", 110, 210)]


def test_rt_rr_sleep_does_not_renew_a_turn(play):
    """Each 30 ms of `a` cost a part of its turn, though it sleeps in between."""
    played = play(
        workload(
            task("a", 'loop = 3, do = [{run = "30ms"}, {sleep = "1us"}]', 'run = "1s"'),
            hog("b"), tick="1ms", horizon="1s",
        ),
        "rt_rr",
    )
    ran = [(turn.name, turn.ran_ms) for turn in played.turns]
    # 30 ms, then behind `b`; three times; the fourth stay is the last tenth of the turn.
    assert ran[:8] == [
        ("a", 30), ("b", 100), ("a", 30), ("b", 100), ("a", 30), ("b", 100), ("a", 10), ("b", 100)
    ]


@pytest.mark.parametrize("policy", REAL_TIME)
def test_rt_yield_lets_equals_go_first_but_not_lower_ones(play, policy):
    played = play(
        workload(
            task("a", 'loop = 3, do = [{run = "1ms"}, "yield"]', priority=3),
            task("b", 'run = "9ms"', priority=3),
            task("low", 'run = "1ms"', priority=4),
        ),
        policy,
    )
    assert turns_of(played) == [("a", 0, 1), ("b", 1, 10), ("a", 10, 12), ("low", 12, 13)]


@pytest.mark.parametrize("policy", REAL_TIME)
def test_rt_change_of_priority_acts_at_the_next_tick(play, policy):
    """Attributes are in a map, as on Linux, and nobody tells the policy of a change."""
    played = play(
        workload(
            task("falls", 'run = "7ms"', "set = {priority = 9}", 'run = "20ms"', priority=2),
            task("waits", 'run = "30ms"', priority=7),
        ),
        policy,
    )
    assert turns_of(played) == [("falls", 0, 10), ("waits", 10, 40), ("falls", 40, 57)]


@pytest.mark.parametrize("policy", REAL_TIME)
def test_rt_change_of_weight_acts_at_once(play, policy):
    """The scheduler itself changes weights, and tells the policy."""
    played = play(
        workload(
            task("falls", 'run = "7ms"', "set = {weight = 25}", 'run = "20ms"', weight=400),
            task("waits", 'run = "30ms"'),
        ),
        policy,
    )
    assert turns_of(played) == [("falls", 0, 7), ("waits", 7, 37), ("falls", 37, 57)]


@pytest.mark.parametrize("policy", REAL_TIME)
def test_rt_the_highest_two_run_on_two_cpus(play, policy):
    """Two wake up at once: each preempts another CPU; the lowest of four waits longest."""
    played = play(
        workload(
            task("six", 'run = "30ms"', priority=6),
            task("seven", 'run = "30ms"', priority=7),
            task("two", 'run = "10ms"', arrival='"5ms"', priority=2),
            task("one", 'run = "20ms"', arrival='"5ms"', priority=1),
            task("eight", 'run = "5ms"', arrival='"6ms"', priority=8),
        ),
        policy, cpus=2,
    )
    ends = {name: played.finish_ms(name) for name in ("one", "two", "six", "seven", "eight")}
    # 5: one and two; 15: six; 25: seven; 40: eight, while seven has 25 - 15 left.
    assert ends == {"two": 15, "one": 25, "six": 40, "eight": 45, "seven": 50}


@pytest.mark.parametrize("policy", REAL_TIME)
def test_rt_does_not_preempt_where_it_may_not_run(play, policy):
    played = play(
        workload(
            task("on0", 'run = "20ms"', priority=6, affinity="[0]"),
            task("on1", 'run = "20ms"', priority=9, affinity="[1]"),
            task("high", 'run = "5ms"', arrival='"5ms"', priority=2, affinity="[0]"),
        ),
        policy, cpus=2,
    )
    assert [t for t in turns_of(played) if t[0] != "on1"] == [("on0", 0, 5), ("high", 5, 10), ("on0", 10, 25)]
    assert played.finish_ms("on1") == 20
