# SPDX-License-Identifier: MIT
"""Known answers of stride, o1 and eevdf, and what holds for all policies.

As in test_known_answers.py: each schedule can be worked out with pencil and paper,
or is held to a bound that was proved. Ticks are 10 ms unless a test says otherwise,
and slices end at ticks.
"""

from __future__ import annotations

import itertools

import pytest

from schedlab.records.file import Kind

from .test_known_answers import hog, sleeper, task, workload
from .test_known_answers_2 import turns_of

# ---- stride ----------------------------------------------------------------------

QUANTUM_MS = 10


def quanta_of(played, *, since_ms=0):
    """Names, one for each quantum, in order."""
    names = []
    for turn in played.turns:
        if turn.end_ns > since_ms * 1_000_000:
            names += [turn.name] * round(turn.ran_ms / QUANTUM_MS)
    return names


def worst_pair_error(names, tickets):
    """
    Greatest distance, in quanta, over all prefixes and all pairs of tasks, between
    what one of the pair had and its part of what the two had.
    """
    had = dict.fromkeys(tickets, 0)
    worst = 0
    for name in names:
        had[name] += 1
        for other in tickets:
            if other != name:
                due = (had[name] + had[other]) * tickets[name] / (tickets[name] + tickets[other])
                worst = max(worst, abs(had[name] - due))
    return worst


@pytest.mark.parametrize(
    "tickets",
    [[300, 200, 100], [7, 3], [1, 1, 1, 1], [1000, 1], [13, 11, 7, 5, 3, 2], [100] * 5 + [1], [400, 399, 1]],
)
def test_stride_pairwise_error_is_one_quantum_at_every_prefix(play, tickets):
    names = {f"h{i}": n for i, n in enumerate(tickets)}
    played = play(workload(*(hog(name, tickets=n) for name, n in names.items()), horizon="60s"), "stride")
    quanta = quanta_of(played)
    assert len(quanta) == 6000
    assert worst_pair_error(quanta, names) <= 1 + 1e-6


def test_lottery_does_not_keep_the_bound_of_stride(play):
    names = {"a": 300, "b": 200, "c": 100}
    jobs = workload(*(hog(name, tickets=n) for name, n in names.items()), horizon="60s")
    assert worst_pair_error(quanta_of(play(jobs, "lottery", seed=1)), names) > 10


def test_stride_follows_weight_where_no_tickets_are_given(play):
    played = play(workload(hog("a", weight=300), hog("b", tickets=100), horizon="8s"), "stride")
    assert played.ran_ms() == {"a": 6000, "b": 2000}


def test_stride_sleep_neither_earns_nor_costs(play):
    """`back` sleeps for 10 s: from then on pairs are as exact as if it had been new."""
    tickets = {"a": 300, "b": 200, "back": 100}
    played = play(
        workload(
            hog("a", tickets=300),
            hog("b", tickets=200),
            task("back", 'run = "10ms"', 'sleep = "10s"', 'run = "100s"', tickets=100),
            horizon="40s",
        ),
        "stride",
    )
    woken_ms = next(e["t_ns"] for e in played.records.events if e["kind"] == Kind.WAKE) / 1e6
    # One quantum for the pair, one for what each was late or early when it came back.
    assert worst_pair_error(quanta_of(played, since_ms=woken_ms), tickets) <= 2
    assert worst_pair_error([n for n in quanta_of(played) if n != "back"], {"a": 300, "b": 200}) <= 2


def test_stride_leaving_does_not_forgive(play):
    """Who sleeps for a moment after each quantum is as early when it is back as before."""
    played = play(
        workload(sleeper("leaves", "10ms", "1us", tickets=100), hog("stays", tickets=300), horizon="60s"),
        "stride",
    )
    assert played.shares()["leaves"] == pytest.approx(0.25, abs=0.001)


def test_stride_new_task_waits_as_if_it_had_just_run(play):
    """100 quanta of the other's are as much as its one; the other is ahead by one of them."""
    played = play(
        workload(
            hog("many", tickets=100), task("one", 'run = "1s"', arrival='"1s"', tickets=1), horizon="3s"
        ),
        "stride",
    )
    assert played.starts_ms("one")[0] == 1000 + 99 * QUANTUM_MS


def test_stride_tickets_change(play):
    """From half to a tenth; a change acts where a slice ends, and is exact from there."""
    played = play(
        workload(
            task("changes", 'run = "5s"', "set = {tickets = 50}", 'run = "50s"', tickets=450),
            hog("stays", tickets=450),
            horizon="60s",
        ),
        "stride",
    )
    assert played.ran_ms(until_ms=9990)["changes"] == pytest.approx(5000, abs=10)
    assert played.shares(since_ms=10_000)["changes"] == pytest.approx(0.1, abs=0.0005)


def test_stride_what_remains_is_worth_less_with_more_tickets(play):
    """What one ticket has used up in 10 ms would be 100 s for a hundred, or 10 ms as before."""
    played = play(
        workload(
            task("changes", 'run = "5ms"', "set = {tickets = 100}", 'run = "50s"', tickets=1),
            hog("stays", tickets=100),
            horizon="20s",
        ),
        "stride",
    )
    start_ms = played.starts_ms("changes")[0]
    assert played.shares(since_ms=start_ms + 50)["changes"] == pytest.approx(0.5, abs=0.005)


def test_stride_joiner_on_two_cpus_does_not_shut_the_others_out(play):
    """`big` cannot use what its tickets are worth; `late` shares with `a` at once."""
    played = play(
        workload(
            hog("big", tickets=900),
            hog("a", tickets=100),
            task("late", 'run = "100s"', arrival='"20s"', tickets=100),
            horizon="40s",
        ),
        "stride",
        cpus=2,
    )
    ran = played.ran_ms(since_ms=20_000)
    assert ran["a"] == pytest.approx(10_000, abs=30)
    assert ran["late"] == pytest.approx(10_000, abs=30)


def test_stride_changes_of_tickets_on_two_cpus_do_not_pile_up(play):
    """What a task is set back by joining behind the furthest must not be multiplied with each change."""
    changes = (
        "loop = 40, do = [{set = {tickets = 500}}, {run = '5ms'}, {sleep = '1ms'}, "
        "{set = {tickets = 5}}, {run = '5ms'}, {sleep = '1ms'}]"
    )
    played = play(
        workload(
            hog("a", tickets=100),
            hog("b", tickets=100),
            task("changes", changes, 'run = "100s"', tickets=100),
            horizon="60s",
        ),
        "stride",
        cpus=2,
    )
    assert played.ran_ms()["changes"] >= 400


# ---- o1 ----------------------------------------------------------------------------


def test_o1_runs_all_active_tasks_before_any_expired_one(play):
    """Priorities say who is first within a round, and nothing else."""
    levels = {"five": 5, "nine": 9, "zero": 0, "none": None, "two": 2}
    tasks = [hog(n, **({} if level is None else {"priority": level})) for n, level in levels.items()]
    played = play(workload(*tasks, horizon="600ms"), "o1")
    assert played.order() == ["zero", "two", "five", "none", "nine"] * 4
    assert {turn.ran_ms for turn in played.turns} == {30}


@pytest.mark.parametrize(("by_number", "once"), [(0, ["b7", "a3", "c1"]), (1, ["c1", "a3", "b7"])])
def test_o1_serves_groups_in_order(play, by_number, once):
    """Group 7 is seen first; two of each, in order of arrival within the group."""
    groups = [("b7", 7), ("a3", 3), ("c1", 1), ("a3", 3), ("c1", 1), ("b7", 7)]
    tasks = [hog(f"{name}-{i}", group=group) for i, (name, group) in enumerate(groups)]
    urgent = hog("urgent", priority=1, group=60)
    played = play(workload(*tasks, urgent, horizon="2s"), "o1", group_order=by_number)
    order = played.order()
    start = order.index("urgent", 8)
    found = [name.split("-") for name in order[start + 1 : start + 7]]
    assert [name for name, _ in found] == [name for name in once for _ in range(2)]


def test_o1_woken_task_is_active_until_its_slice_is_used(play):
    """
    `naps` has 30 ms in each round, in pieces of 10, before the others that are left;
    after the third it has to wait for the next round, as everyone.
    """
    played = play(
        workload(sleeper("naps", "10ms", "1ms", priority=1), hog("h", count=6), tick="1ms", horizon="2s"),
        "o1",
    )
    turns = played.ran()
    nap, hogs = ("naps", 10), [("h", 30)]
    assert turns[:18] == [nap, *hogs, nap, *hogs, nap, *hogs * 4] * 2


def test_o1_without_sleep_bookkeeping_would_be_gamed(play):
    """A task that sleeps just before its slice ends gets no second one in a round."""
    played = play(
        workload(sleeper("gamer", "29ms", "100us"), hog("honest", count=3), tick="1ms", horizon="20s"), "o1"
    )
    assert played.shares()["gamer"] < 0.3


def test_o1_change_of_an_attribute_begins_no_other_slice(play):
    """Found by `schedlab check`: the change came just as the slice was used up, and the last task never ran."""
    changer = task(
        "c", 'loop = "forever", do = [{run = "1ms"}, {set = {priority = 1}}, {sleep = "1ms"}]', count=3
    )
    played = play(workload(changer, tick="1ms", horizon="1s"), "o1")
    first = {turn.pid: turn.start_ns for turn in reversed(played.turns)}
    assert len(first) == 3 and max(first.values()) <= 61_000_000


def test_o1_who_moves_on_and_on_has_had_its_slice_there_too(play):
    """Found by `schedlab check`: two that went to the CPU of a third and away again were active there each time."""
    steps = '{change = {affinity = [0, 1]}}, {run = "1ms"}, {change = {affinity = [0]}}'
    mover = task("m", f'loop = "forever", do = [{steps}]', count=2)
    played = play(workload(hog("h", affinity="[0]"), mover, tick="1ms", horizon="2s"), "o1", cpus=2)
    turns = [turn for turn in played.turns if turn.name == "h"]
    waits_ms = [(b.start_ns - a.end_ns) / 1e6 for a, b in itertools.pairwise(turns)]
    # A round is a slice of 30 ms for each of the others, at most.
    assert len(turns) > 10 and max(waits_ms) <= 60 and played.end_ns - turns[-1].end_ns <= 60_000_000


def test_o1_last_task_goes_on_with_slices_of_its_own(play):
    played = play(
        workload(task("early", 'run = "300ms"'), task("late", 'run = "10ms"', arrival='"95ms"')), "o1"
    )
    assert turns_of(played) == [("early", 0, 120), ("late", 120, 130), ("early", 130, 310)]


def test_o1_deals_new_tasks_in_turn_and_keeps_them_there(play):
    played = play(workload(hog("h", count=12), horizon="2s"), "o1", cpus=4, balance=0)
    assert played.cpus() == {pid: {(pid - 1) % 4} for pid in range(1, 13)}


@pytest.mark.parametrize(("balance", "end_ms"), [(0, 2000), (1, 1000)])
def test_o1_idle_cpu_pulls(play, balance, end_ms):
    """Four long tasks on CPU 0, four that end at once on CPU 1."""
    tasks = [task(f"t{i}", f'run = "{500 if i % 2 == 0 else 1}ms"') for i in range(8)]
    played = play(workload(*tasks), "o1", cpus=2, balance=balance)
    assert played.end_ns / 1e6 == pytest.approx(end_ms, abs=35)


def test_o1_cosched_ends_all_slices_together(play):
    """Without it, CPUs that began at different times stay apart for ever."""
    tasks = [hog(f"h{i}", arrival=f'"{4 * i}ms"', affinity=f"[{i % 2}]") for i in range(4)]

    def ends(**knobs):
        played = play(workload(*tasks, tick="1ms", horizon="2s"), "o1", cpus=2, **knobs)
        found = [set(), set()]
        for turn in played.turns[:-2]:
            found[turn.cpu].add(turn.end_ns // 1_000_000)
        return found

    together, apart = ends(cosched=1), ends()
    assert together[0] == together[1] == set(range(30, 2000, 30))
    assert not apart[0] & apart[1]


def test_o1_is_not_the_credit_scheduler(play):
    """Report 3 compares them: on unequal tasks that never sleep they are both fair ..."""
    jobs = workload(hog("a", credits=100), hog("b", credits=10), horizon="12s")
    assert play(jobs, "o1").shares()["b"] == pytest.approx(1 / 2, abs=0.01)
    # ... until credits run out.
    assert play(jobs, "credit_report").shares()["b"] == pytest.approx(1 / 6, abs=0.01)


# ---- eevdf ---------------------------------------------------------------------------

SLICE_MS = 3


def worst_lag_ms(played, weights):
    """
    Greatest distance, at any switch, between what a task had and its share of all the
    time so far, in ms; for tasks that always want to run, on one CPU.
    """
    had, total, worst = dict.fromkeys(weights, 0.0), sum(weights.values()), 0.0
    for turn in played.turns:
        had[turn.name] += turn.ran_ms
        now_ms = turn.end_ns / 1e6
        worst = max(worst, *(abs(now_ms * w / total - had[n]) for n, w in weights.items()))
    return worst


@pytest.mark.parametrize(
    "weights", [[400, 200, 100], [100] * 7, [1024, 15], [10_000, 1], [700, 300, 150, 80, 40, 20, 10]]
)
def test_eevdf_shares_by_weight_and_lag_below_a_slice(play, weights):
    names = {f"h{i}": w for i, w in enumerate(weights)}
    played = play(workload(*(hog(n, weight=w) for n, w in names.items()), tick="1ms", horizon="30s"), "eevdf")
    assert worst_lag_ms(played, names) <= SLICE_MS
    for name, share in played.shares().items():
        assert share == pytest.approx(names[name] / sum(weights), abs=2e-4)


def test_cfs_lags_more_than_eevdf(play):
    """Its slices are by weight: the heavy one is 5 ms ahead, then the light ones catch up."""
    names = {f"h{i}": w for i, w in enumerate([1000, *[50] * 20])}
    jobs = workload(*(hog(n, weight=w) for n, w in names.items()), tick="1ms", horizon="10s")
    knobs = {"latency_ns": 40_000_000, "min_granularity_ns": 1_000_000}
    assert worst_lag_ms(play(jobs, "cfs", **knobs), names) > 2 * SLICE_MS
    # Whole ticks, and half a slice, too: 20 first requests of 1.5 ms that end after 2 would add up.
    assert worst_lag_ms(play(jobs, "eevdf", slice_ns=4_000_000), names) <= 4


def test_eevdf_lag_is_below_a_slice_whatever_the_slices(play):
    """Slices of 1 to 20 ms beside each other: within the longest, and shares equal."""
    bursts = {"one": 1, "three": 3, "ten": 10, "twenty": 20}
    tasks = [task(n, 'run = "100s"', burst=f'"{ms}ms"') for n, ms in bursts.items()]
    played = play(workload(*tasks, tick="1ms", horizon="30s"), "eevdf", slice_source=1)
    assert worst_lag_ms(played, dict.fromkeys(bursts, 1)) <= 20
    for share in played.shares().values():
        assert share == pytest.approx(0.25, abs=0.001)
    longest = {n: max(t.ran_ms for t in played.turns if t.name == n) for n in bursts}
    assert longest["one"] <= 3 and longest["twenty"] == 20


@pytest.mark.parametrize("knobs", [{"slice_source": 1}, {"slice_source": 2}])
def test_eevdf_short_slices_give_low_latency(play, knobs):
    """The same 2 ms of work every 30 ms, asked for as 1 ms or as 30 ms at a time."""

    def latency_ms(**keys):
        others = hog("hog", count=5, burst='"12ms"', priority=7)
        played = play(
            workload(sleeper("editor", "2ms", "28ms", **keys), others, tick="1ms", horizon="20s"),
            "eevdf",
            **knobs,
        )
        return played.latencies_ms("editor").mean()

    short = latency_ms(burst='"1ms"', priority=3)
    long = latency_ms(burst='"48ms"', priority=9)
    assert short < 1
    assert long > 10 * short + 5


@pytest.mark.parametrize(("preempt", "most_ms"), [(0, 12), (1, 2), (2, 2)])
def test_eevdf_wake_up_preempts_longer_slices(play, preempt, most_ms):
    """At most a hog that has only a moment left before its deadline comes first."""
    played = play(
        workload(
            sleeper("editor", "1ms", "40ms", burst='"1ms"'),
            hog("hog", count=3, burst='"12ms"'),
            tick="1ms",
            horizon="10s",
        ),
        "eevdf",
        slice_source=1,
        preempt=preempt,
    )
    latencies = played.latencies_ms("editor")
    assert latencies.max() <= most_ms
    assert latencies.mean() > 3 if preempt == 0 else latencies.mean() < 0.1


@pytest.mark.parametrize(("preempt", "start_ms"), [(0, 15), (1, 9), (2, 9)])
def test_eevdf_who_is_not_eligible_any_more_makes_way(play, preempt, start_ms):
    """
    The editor leaves at 6 ms, with 1 ms where the hog had 5: it comes back at 9 ms, 2 ms
    behind V, and the hog, 2 ms ahead of it, is in the middle of its slice from 6 to 15 ms.
    """
    jobs = workload(hog("hog"), sleeper("editor", "1ms", "3ms"), tick="1ms", horizon="40s")
    played = play(jobs, "eevdf", slice_ns=9_000_000, preempt=preempt)
    assert played.starts_ms("editor")[:2] == [5, start_ms]


@pytest.mark.parametrize(
    ("preempt", "sleep_ms", "start_ms"),
    [(0, 3, 23), (1, 3, 23), (2, 3, 23), (0, 5, 23), (1, 5, 19), (2, 5, 19)],
)
def test_eevdf_a_task_that_owes_keeps_its_place(play, preempt, sleep_ms, start_ms):
    """
    The debtor leaves at 14 ms, 2 ms ahead of V, which moves half as fast as time. After 3 ms it is ahead still, and the
    hog's slice lasts until 23 ms. After 5 ms it is 0.5 ms behind, and owed when the hog was last charged, 2 ms before at
    most: so it is not moved to V, and the hog, as far ahead of V, makes way.
    """
    jobs = workload(
        task("debtor", 'run = "9ms"', f'sleep = "{sleep_ms}ms"', 'run = "1ms"'),
        hog("hog"),
        tick="1ms",
        horizon="1s",
    )
    played = play(jobs, "eevdf", slice_ns=9_000_000, preempt=preempt)
    assert played.starts_ms("debtor") == [0, 10, start_ms]


@pytest.mark.parametrize(("tick", "turns_ms"), [(0, [2, 2, 4]), (1, [1, 2, 1])])
def test_eevdf_a_tick_of_a_group_ends_the_slice_of_a_task_ahead(play, tick, turns_ms):
    """
    Of a group: at 1 ms a is ahead of V; at 2 ms b is at V, and stays, at 3 ms it is ahead.
    """
    jobs = workload(hog("a"), hog("b"), tick="1ms", horizon="24ms")
    played = play(jobs, "eevdf", slice_ns=4_000_000, tick=tick)
    assert [turn.ran_ms for turn in played.turns][:3] == turns_ms


def test_eevdf_a_new_task_asks_for_half_a_slice_first(play):
    jobs = workload(hog("a"), hog("b"), tick="1ms", horizon="24ms")
    assert [turn.ran_ms for turn in play(jobs, "eevdf", slice_ns=4_000_000).turns] == [2, 2, 4, 4, 4, 4, 4]


@pytest.mark.parametrize(("alone_ms", "preempt", "start_ms"), [(25, 1, 25), (25, 0, 30), (4, 1, 10)])
def test_eevdf_who_has_stayed_longer_than_his_slice_makes_way_for_a_child(play, alone_ms, preempt, start_ms):
    """Its first request was 5 ms: at 4 ms it is let alone, at 25 ms the child's deadline is the earlier one."""
    jobs = workload(
        task("parent", f'run = "{alone_ms}ms"', 'spawn = "child"', 'run = "1s"'),
        task("child", 'run = "1ms"', arrival='"spawned"'),
        horizon="1s",
    )
    played = play(jobs, "eevdf", slice_ns=10_000_000, preempt=preempt)
    assert played.starts_ms("child") == [start_ms]


def test_eevdf_a_wake_up_ends_a_slice_that_is_used(play):
    """Used after 3 ms; the tick would come at 10 ms, and the debtor does at 25 ms."""
    jobs = workload(task("debtor", 'run = "4ms"', 'sleep = "21ms"', 'run = "1ms"'), hog("hog"), horizon="1s")
    starts = [play(jobs, "eevdf", preempt=n).starts_ms("debtor") for n in (0, 1)]
    assert starts == [[0, 30], [0, 25]]


def test_eevdf_who_sleeps_and_owes_counts_in_the_mean(play):
    """
    The debtor sleeps at 15 ms with v = 9, where the editor has 1 since 11 ms, and the hog 5 of 5 to 14. V is 5 with the
    debtor: when the editor comes back at 16 ms the hog, at 6, is not ahead of it, and stays until its slice ends at 24 ms.
    Without the debtor V would be 3, and the hog would make way at once.
    """
    jobs = workload(
        task("debtor", 'run = "9ms"', 'sleep = "1s"'),
        hog("hog"),
        task("editor", 'run = "1ms"', 'sleep = "5ms"', 'run = "1ms"'),
        tick="1ms",
        horizon="80ms",
    )
    played = play(jobs, "eevdf", slice_ns=9_000_000)
    assert [turn.start_ns for turn in played.turns if turn.name == "editor"] == [10_000_000, 24_000_000]


@pytest.mark.parametrize(("others", "turns"), [(0, [0, 4, 30]), (1, [0, 4, 10, 20, 25])])
def test_eevdf_a_batch_task_ends_a_slice_that_is_used_where_another_waits_already(play, others, turns):
    """As above, at 25 ms; but with the hog alone beside it the debtor waits for the tick."""
    jobs = workload(
        task("debtor", 'run = "4ms"', 'sleep = "21ms"', 'run = "1ms"'),
        *(hog(name) for name in ("hog", "other")[: 1 + others]),
        horizon="1s",
    )
    played = play(jobs, "eevdf", preempt=3)
    assert [turn.start_ns / 1e6 for turn in played.turns][: len(turns)] == turns


def test_eevdf_sleep_earns_no_more_than_its_lag(play):
    """Back from 10 s of sleep, from then on it has its half, neither more nor less."""
    played = play(
        workload(
            hog("hog"),
            task("back", 'run = "10ms"', 'sleep = "10s"', 'run = "20s"'),
            tick="1ms",
            horizon="14s",
        ),
        "eevdf",
    )
    ran = played.ran_ms(since_ms=11_000, until_ms=14_000)
    assert ran["back"] == pytest.approx(ran["hog"], abs=2 * SLICE_MS)


def test_eevdf_short_sleep_does_not_forgive(play):
    """
    Whoever sleeps for a moment after each slice owes what it had too much: with 1 part
    of 4 it has that, as if it had not slept.
    """
    played = play(
        workload(sleeper("leaves", "3ms", "1us"), hog("stays", weight=300), tick="1ms", horizon="20s"),
        "eevdf",
    )
    assert played.shares()["leaves"] == pytest.approx(0.25, abs=0.005)


@pytest.mark.parametrize(("weight", "share"), [(100, 0.5), (300, 0.75)])
def test_eevdf_what_was_left_is_whole_after_a_moment_of_sleep(play, weight, share):
    """It leaves after parts of a slice, with time still due to it; V moves as it comes back."""
    jobs = workload(sleeper("leaves", "500us", "1us", weight=weight), hog("stays"), tick="1ms", horizon="10s")
    assert play(jobs, "eevdf").shares()["leaves"] == pytest.approx(share, abs=0.005)


def test_eevdf_polite_task_forgoes_what_it_yields(play):
    """After 2 s of politeness it may not hold the CPU for the second that it let go."""
    played = play(
        workload(
            task("polite", 'loop = 1000, do = [{run = "100us"}, "yield"]', 'run = "20s"'),
            hog("hog"),
            tick="1ms",
            horizon="6s",
        ),
        "eevdf",
    )
    assert played.shares(until_ms=1000)["polite"] < 0.1
    assert played.shares(since_ms=5000)["polite"] == pytest.approx(0.5, abs=0.01)


def test_eevdf_weight_changes_while_it_runs(play):
    played = play(
        workload(
            task("changes", 'run = "1s"', "set = {weight = 300}", 'run = "20s"'),
            hog("stays"),
            tick="1ms",
            horizon="6s",
        ),
        "eevdf",
    )
    assert played.shares(until_ms=1990)["changes"] == pytest.approx(0.5, abs=0.005)
    assert played.shares(since_ms=2010)["changes"] == pytest.approx(0.75, abs=0.005)


def test_eevdf_on_two_cpus_what_one_cannot_use_goes_to_the_others(play):
    """900 of 1,100 would be 1.6 CPUs; who comes late shares at once with the other."""
    played = play(
        workload(
            hog("big", weight=900),
            hog("a"),
            task("late", 'run = "100s"', arrival='"20s"'),
            tick="1ms",
            horizon="40s",
        ),
        "eevdf",
        cpus=2,
    )
    ran = played.ran_ms(since_ms=20_000)
    assert ran["big"] == pytest.approx(20_000, abs=100)
    assert ran["a"] == pytest.approx(10_000, abs=200)
    assert ran["late"] == pytest.approx(10_000, abs=200)
