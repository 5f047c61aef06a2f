# SPDX-License-Identifier: MIT
"""Known answers of the real-time classes, sjf, srtf, edf, and lottery's queues.

As in test_known_answers.py: each schedule can be worked out with pencil and paper,
or is held to a bound that was proved. Ticks are 10 ms unless a test says otherwise,
and slices end at ticks; what happens by kicks happens at once.
"""

from __future__ import annotations

import functools
import itertools
import math
import random

import pytest

from schedlab.records.file import Kind, Stop

from .test_known_answers import hog, task, workload

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
        ("low", 0, 3),
        ("high", 3, 14),
        ("higher", 14, 19),
        ("high", 19, 33),
        ("low", 33, 60),
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


def test_rt_rr_an_equal_that_comes_does_not_end_a_turn(play):
    """The turn of `a` is over at 15 ms, and ends at the tick, at 20; `b` comes in between."""
    played = play(
        workload(hog("a"), task("b", 'run = "10ms"', arrival='"17ms"'), horizon="100ms"),
        "rt_rr",
        slice_ns=15_000_000,
    )
    assert turns_of(played)[:2] == [("a", 0, 20), ("b", 20, 30)]


def test_rt_rr_alone_in_its_level_goes_on(play):
    played = play(workload(hog("a", priority=3), hog("b", priority=4), horizon="2s"), "rt_rr")
    assert {turn.name for turn in played.turns} == {"a"}


def test_rt_rr_has_the_rest_of_a_turn_left(play):
    """`a` is preempted for 5 ms after 40: it has 60 left, and then it is the turn of `b`."""
    played = play(
        workload(hog("a"), hog("b"), task("high", 'run = "5ms"', arrival='"40ms"', priority=0), horizon="1s"),
        "rt_rr",
        slice_ns=99_999_999,
    )
    assert turns_of(played)[:4] == [("a", 0, 40), ("high", 40, 45), ("a", 45, 110), ("b", 110, 210)]


def test_rt_rr_sleep_does_not_renew_a_turn(play):
    """Each 30 ms of `a` cost a part of its turn, though it sleeps in between."""
    played = play(
        workload(
            task("a", 'loop = 3, do = [{run = "30ms"}, {sleep = "1us"}]', 'run = "1s"'),
            hog("b"),
            tick="1ms",
            horizon="1s",
        ),
        "rt_rr",
    )
    # 30 ms, then behind `b`; three times; the fourth stay is the last tenth of the turn.
    assert played.ran()[:8] == [
        ("a", 30),
        ("b", 100),
        ("a", 30),
        ("b", 100),
        ("a", 30),
        ("b", 100),
        ("a", 10),
        ("b", 100),
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
@pytest.mark.parametrize(("of", "first", "then", "others"), [("priority", 2, 9, 7), ("weight", 400, 25, 100)])
def test_rt_change_of_an_attribute_acts_at_once(play, policy, of, first, then, others):
    """Priorities are in a map, and the task is queued anew (S17); the scheduler itself changes weights, and tells the policy."""
    played = play(
        workload(
            task("falls", 'run = "7ms"', f"set = {{{of} = {then}}}", 'run = "20ms"', **{of: first}),
            task("waits", 'run = "30ms"', **{of: others}),
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
        policy,
        cpus=2,
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
        policy,
        cpus=2,
    )
    assert [t for t in turns_of(played) if t[0] != "on1"] == [("on0", 0, 5), ("high", 5, 10), ("on0", 10, 25)]
    assert played.finish_ms("on1") == 20


# ---- sjf and srtf ---------------------------------------------------------------

#: Silberschatz et al., section 5.3.2: name, arrival and burst in ms.
TEXTBOOK = [("p1", 0, 8), ("p2", 1, 4), ("p3", 2, 9), ("p4", 3, 5)]


def job(name, arrival, burst, **keys):
    """A task of one declared burst; times in whole milliseconds."""
    return task(name, f'run = "{burst}ms"', arrival=f'"{arrival}ms"', burst='"run"', **keys)


def mean_turnaround_ms(played, jobs):
    return sum(played.finish_ms(name) - arrival for name, arrival, _ in jobs) / len(jobs)


@pytest.mark.parametrize(("policy", "mean_ms"), [("sjf", 14.25), ("srtf", 13), ("fifo", 15.25)])
def test_turnaround_of_the_textbook(play, policy, mean_ms):
    played = play(workload(*(job(*row) for row in TEXTBOOK)), policy)
    assert mean_turnaround_ms(played, TEXTBOOK) == mean_ms


def random_jobs(seed, *, count, arrivals, bursts):
    """Jobs with names, whole arrivals below `arrivals` and bursts from 1 to `bursts`."""
    draw = random.Random(seed)
    return [(f"j{i}", draw.randrange(arrivals), draw.randint(1, bursts)) for i in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_sjf_is_the_best_order_of_jobs_that_are_there(play, seed):
    """A job of 1 ms goes first, so that all others are there when the choice is made."""
    jobs = random_jobs(seed, count=6, arrivals=1, bursts=40)
    played = play(workload(task("gate", 'run = "1ms"', burst='"1us"'), *(job(*row) for row in jobs)), "sjf")

    def mean_ms(order):
        ends = itertools.accumulate((burst for _, _, burst in order), initial=1)
        return sum(itertools.islice(ends, 1, None)) / len(order)

    assert mean_turnaround_ms(played, jobs) == min(map(mean_ms, itertools.permutations(jobs)))
    assert all(turn.why != Stop.PREEMPTED for turn in played.turns)


def least_sum_of_ends(jobs):
    """By trying everything: the least sum of ends on one CPU that may switch each ms."""

    @functools.cache
    def best(now, left):
        there = [i for i, (_, arrival, _) in enumerate(jobs) if left[i] and arrival <= now]
        if not any(left):
            return 0
        if not there:
            return best(now + 1, left)
        sums = []
        for i in there:
            after = (*left[:i], left[i] - 1, *left[i + 1 :])
            sums.append(best(now + 1, after) + (now + 1 if after[i] == 0 else 0))
        return min(sums)

    return best(0, tuple(burst for _, _, burst in jobs))


@pytest.mark.parametrize("seed", range(8))
def test_srtf_is_the_best_of_all_schedules(play, seed):
    jobs = random_jobs(seed, count=5, arrivals=12, bursts=6)
    played = play(workload(*(job(*row) for row in jobs)), "srtf")
    assert sum(played.finish_ms(name) for name, _, _ in jobs) == least_sum_of_ends(jobs)


def test_srtf_preempts_at_once_whoever_has_the_most_left(play):
    """On two CPUs; `c` is longer than what `a` has left, and waits for it."""
    jobs = [("a", 0, 20), ("b", 0, 30), ("c", 12, 10), ("d", 12, 1), ("e", 13, 9)]
    played = play(workload(*(job(*row) for row in jobs)), "srtf", cpus=2)
    # 12: a has 8 left, b 18: c takes the place of b. d takes that of c, for 1 ms.
    # 13: e has 9: c has 10 and waits. 20: a ends, c goes on. 22: e ends, then b.
    ends = {name: played.finish_ms(name) for name, _, _ in jobs}
    assert ends == {"a": 20, "d": 13, "e": 22, "c": 30, "b": 40}


@pytest.mark.parametrize("policy", ["sjf", "srtf"])
def test_bursts_are_predicted_from_the_past(play, policy):
    """Both wake up at 1,600 ms, while the gate runs, and differ only in their past."""
    past = 'loop = 8, do = [{{run = "{0}"}}, {{period = "200ms"}}]'
    played = play(
        workload(
            task("long", past.format("9ms"), 'run = "5ms"'),
            task("short", past.format("4ms"), 'run = "5ms"'),
            task("gate", 'sleep = "1599ms"', 'run = "50ms"'),
        ),
        policy,
    )
    last = [turn.name for turn in played.turns if turn.start_ns >= 1_600_000_000]
    assert last.index("short") < last.index("long")


@pytest.mark.parametrize(("alpha", "first"), [(100, "falls"), (60, "falls"), (55, "steady"), (10, "steady")])
def test_sjf_predicts_by_exponential_averaging(play, alpha, first):
    predicted = {}
    tasks = [task("gate", 'sleep = "599ms"', 'run = "50ms"')]
    for name, bursts in {"falls": (50, 50, 2), "steady": (20, 20, 20)}.items():
        predicted[name] = 22
        phases = []
        for burst in bursts:
            predicted[name] = (burst * alpha + predicted[name] * (100 - alpha)) / 100
            phases += [f'run = "{burst}ms"', 'period = "200ms"']
        tasks.append(task(name, *phases, 'run = "5ms"'))
    assert min(predicted, key=predicted.get) == first
    played = play(workload(*tasks), "sjf", alpha_percent=alpha, initial_ns=22_000_000)
    last = [turn.name for turn in played.turns if turn.start_ns >= 600_000_000]
    assert last[0] == first


def test_srtf_outlived_burst_is_passed_sooner_or_later(play):
    """
    Declared 1 ms, 100 ms long: after 20 ms it has outlived its length by 19, and a
    task of 15 ms that came at 11 ms, when that was more than it seemed to have, runs.
    """
    played = play(
        workload(
            task("liar", 'run = "100ms"', burst='"1ms"'),
            task("honest", 'run = "15ms"', arrival='"11ms"', burst='"run"'),
        ),
        "srtf",
    )
    assert turns_of(played) == [("liar", 0, 20), ("honest", 20, 35), ("liar", 35, 115)]


@pytest.mark.parametrize("policy", ["sjf", "srtf"])
def test_sjf_yield_is_not_to_nobody(play, policy):
    played = play(
        workload(task("polite", 'run = "1ms"', '"yield"', 'run = "1ms"', burst='"2ms"'), job("other", 0, 9)),
        policy,
    )
    assert turns_of(played) == [("polite", 0, 1), ("other", 1, 10), ("polite", 10, 11)]


# ---- lottery ---------------------------------------------------------------------

#: Queues of policies/lottery.bpf.c; pids that are equal modulo it share one.
LOTTERY_QUEUES = 64


@pytest.mark.parametrize("fillers", [0, LOTTERY_QUEUES - 1], ids=["own queues", "one queue"])
def test_lottery_gives_each_ticket_its_chance(play, fillers):
    """One ticket each, so that a winner who is off by one is another task."""
    tasks = [hog("a", tickets=1), hog("b", tickets=1), hog("c", tickets=1)]
    if fillers:
        filler = task("filler", 'run = "1us"', count=fillers)
        tasks = [tasks[0], filler, tasks[1], filler.replace('"filler"', '"more"'), tasks[2]]
    played = play(workload(*tasks, horizon="60s"), "lottery", seed=4)
    names = [name for name in played.order() if name in "abc"]
    for name in "abc":
        assert abs(played.shares(since_ms=3000)[name] - 1 / 3) < 3.5 * math.sqrt(2 / 9 / 5700)
        # Of the two that wait, each is as often the next.
        after = [other for one, other in itertools.pairwise(names) if one == name and other != name]
        assert abs(after.count(min(set("abc") - {name})) / len(after) - 1 / 2) < 3.5 * 0.5 / math.sqrt(
            len(after)
        )


# ---- edf ------------------------------------------------------------------------


def stream(name, run_ms, period_ms, *, until_ms, **keys):
    """Jobs released at each multiple of their period and due at the next; all at 0 first."""
    return task(
        name,
        f'run = "{run_ms}ms"',
        count=until_ms // period_ms,
        arrival=f'{{gap = "{period_ms}ms", start = "{100 - period_ms}ms"}}',
        deadline=f'"{period_ms}ms"',
        **keys,
    )


#: (run, period) in ms; a utilisation of exactly 1, and periods that no other divides.
FULL = {"a": (2, 5), "b": (4, 7), "c": (1, 35)}
FULL_MS = 3500


def missed(played, periods):
    """Names of jobs that ended after their deadline; how many ended in all."""
    arrivals = played.records.events[played.records.events["kind"] == Kind.ARRIVE]
    released_ns = {int(e["task"]): int(e["t_ns"]) for e in arrivals}
    late, ends = [], {turn.pid: turn.end_ns for turn in played.turns if turn.why == Stop.EXITED}
    for pid, end_ns in ends.items():
        name = played.names[pid - 1]
        if end_ns > released_ns[pid] + periods[name][1] * 1_000_000:
            late.append(name)
    return late, len(ends)


def full_load(**keys):
    tasks = (stream(name, *times, until_ms=FULL_MS, **keys.get(name, {})) for name, times in FULL.items())
    return workload(*tasks)


def test_edf_meets_all_deadlines_at_utilisation_1(play):
    played = play(full_load(), "edf")
    late, ended = missed(played, FULL)
    assert late == []
    assert ended == 700 + 500 + 100
    # The CPU was never idle: the load was really 1.
    assert played.end_ns == (100 + FULL_MS) * 1_000_000
    assert sum(played.ran_ms().values()) == FULL_MS


def test_other_policies_miss_deadlines_at_utilisation_1(play):
    """Rate-monotonic priorities too: Liu and Layland's bound is below 1."""
    assert missed(play(full_load(), "rr"), FULL)[0]
    assert missed(play(full_load(), "fifo"), FULL)[0]
    monotonic = full_load(a={"priority": 1}, b={"priority": 2}, c={"priority": 3})
    assert missed(play(monotonic, "rt_fifo"), FULL)[0]


@pytest.mark.parametrize("seed", range(5))
def test_edf_meets_deadlines_of_random_sets(play, seed):
    """Utilisation 1 of random periods; the last task fills what the others leave."""
    draw = random.Random(seed)
    periods = draw.sample([4, 6, 8, 9, 12, 18, 24, 36], 4)
    runs = [draw.randint(1, max(1, period // 4)) for period in periods]
    rest = 72 - sum(run * 72 // period for run, period in zip(runs, periods, strict=True))
    sets = {f"t{i}": pair for i, pair in enumerate(zip([*runs, rest], [*periods, 72], strict=True))}
    assert rest > 0
    tasks = (stream(name, *times, until_ms=720) for name, times in sets.items())
    late, ended = missed(play(workload(*tasks), "edf"), sets)
    assert late == []
    assert ended == sum(720 // period for _, period in sets.values())


def test_edf_deadline_counts_from_each_wake_up(play):
    """At 50 ms both wake up, and the one that is due sooner runs, though it came last."""
    played = play(
        workload(
            task("late", 'run = "5ms"', 'period = "50ms"', 'run = "5ms"', deadline='"40ms"'),
            task("soon", 'run = "5ms"', 'period = "49ms"', 'run = "5ms"', arrival='"1ms"', deadline='"20ms"'),
        ),
        "edf",
    )
    # At 1 ms `soon` is due at 21, `late` at 40: it preempts.
    assert turns_of(played) == [
        ("late", 0, 1),
        ("soon", 1, 6),
        ("late", 6, 10),
        ("soon", 50, 55),
        ("late", 55, 60),
    ]


def test_edf_equals_do_not_preempt(play):
    """Both are due at 50 ms; `b` comes at 10 ms and waits, over three ticks, until `a` has ended."""
    jobs = workload(
        task("a", 'run = "35ms"', deadline='"50ms"'),
        task("b", 'run = "5ms"', arrival='"10ms"', deadline='"40ms"'),
    )
    assert turns_of(play(jobs, "edf")) == [("a", 0, 35), ("b", 35, 40)]


def test_edf_serves_others_in_turns_when_no_job_is_there(play):
    played = play(
        workload(
            hog("x"),
            hog("y"),
            task("job", 'loop = 9, do = [{run = "3ms"}, {period = "25ms"}]', deadline='"25ms"'),
            horizon="200ms",
        ),
        "edf",
    )
    assert played.latencies_ms("job").max() == 0
    ran = played.ran_ms()
    assert ran["job"] == 24
    assert abs(ran["x"] - ran["y"]) <= 20


def test_edf_two_most_urgent_jobs_run_on_two_cpus(play):
    jobs = [("a", 0, 30, 100), ("b", 0, 30, 90), ("c", 5, 10, 40), ("d", 5, 10, 50), ("e", 6, 5, 99)]
    tasks = (
        task(name, f'run = "{run}ms"', arrival=f'"{at}ms"', deadline=f'"{due}ms"')
        for name, at, run, due in jobs
    )
    played = play(workload(*tasks), "edf", cpus=2)
    # 5: c and d (due 45, 55) take both. 15: b (90) and a (100); e is due at 105.
    assert {name: played.finish_ms(name) for name, *_ in jobs} == {
        "c": 15,
        "d": 15,
        "b": 40,
        "a": 40,
        "e": 45,
    }


def test_edf_overload_makes_one_after_the_other_miss(play):
    """Said in its header: a tenth too much, and all are late in the end."""
    sets = {"a": (5, 10), "b": (6, 10)}
    late, _ = missed(play(workload(*(stream(n, *t, until_ms=1000) for n, t in sets.items())), "edf"), sets)
    assert late.count("a") > 80 and late.count("b") > 80


@pytest.mark.parametrize("policy", REAL_TIME)
def test_a_task_that_arrives_does_not_preempt_its_equals(play, policy):
    """On both CPUs tasks of its level run; all have the default one."""
    tasks = [task("a", 'run = "30ms"'), task("b", 'run = "40ms"'), task("c", 'run = "5ms"', arrival='"5ms"')]
    played = play(workload(*tasks), policy, cpus=2)
    assert turns_of(played) == [("a", 0, 30), ("c", 30, 35), ("b", 0, 40)]


def test_lottery_compensates_no_task_that_has_not_run(play):
    """Beside two hogs each of 199 newcomers wins a draw in three: 5 ms until the first, and two that it loses."""
    arrivals = [100 * i + 5 for i in range(1, 200)]
    newcomers = [task(f"n{ms}", 'run = "10ms"', arrival=f'"{ms}ms"') for ms in arrivals]
    played = play(
        workload(hog("a"), hog("b"), *newcomers, horizon="22s"),
        "lottery",
        slice_ns=10_000_000,
        compensation=1,
    )
    waits_ms = [
        next(turn.start_ns for turn in played.turns if turn.name == f"n{ms}") / 1_000_000 - ms
        for ms in arrivals
    ]
    # Four standard deviations: sqrt(6) draws for one, 1.7 ms for the mean.
    assert sum(waits_ms) / len(waits_ms) == pytest.approx(25, abs=7)


# ---- slices that end late ------------------------------------------------------


def test_a_slice_that_is_over_ends_at_the_very_next_tick(play):
    """It was over at 0.5 ms; an op that ends 1 ns before the tick at 1 ms changes nothing."""
    first = task("a", 'run = "999999ns"', 'run = "2ms"')
    played = play(workload(first, hog("b", 1), tick="1ms"), "rr", slice_ns=500_000)
    assert played.turns[0].end_ns == 1_000_000 and played.order()[:2] == ["a", "b"]


def test_a_task_that_shares_a_cpu_for_long_does_not_stall(play):
    """Both are runnable for 40 s, longer than the watchdog's 30 s, but wait 100 ms at a time."""
    played = play(workload(hog("a", 20), hog("b", 20)), "rr", slice_ns=100_000_000)
    assert played.finish_ms("b") == 40_000
