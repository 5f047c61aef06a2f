# SPDX-License-Identifier: MIT
"""Conditions, timers, children and costs in the simulator: schedules worked out by hand."""

from __future__ import annotations

import pytest

from schedlab.records.file import Kind, Stop
from sim.simulated import simulated

HEAD = '[workload]\ntitle = "T"\nquestion = "Q?"\njitter = "0ms"\ntick = "1ms"\n'
MS = 1_000_000


@pytest.fixture
def play(simulator, tmp_path):
    """Function that runs a workload under fifo without costs; answer and records."""

    def run(text, cpus=1, *options):
        found = simulated(simulator, tmp_path, HEAD + text, "fifo", *options, cpus=cpus)
        return found.answer, Bursts(found.program, found.records.events)

    return run


class Bursts:
    """When each task ran, in ms: by name, [(start, end), ...]."""

    def __init__(self, program, events):
        self.events = events
        self.of = {str(name): [] for name in program.tasks["name"]}
        self.end = {}
        for event in events[events["kind"] == Kind.STOP]:
            name = str(program.tasks["name"][event["task"] - 1])
            end, ran = int(event["t_ns"]), int(event["arg"])
            if ran:
                self.of[name].append(((end - ran) / MS, end / MS))
            if event["flags"] == Stop.EXITED:
                self.end.setdefault(name, []).append(end / MS)


def test_a_signal_that_nobody_waits_for_is_lost(play):
    """Two threads that drive each other in turn: the first signal finds nobody."""
    answer, bursts = play(
        """
        horizon = "65ms"
        [[condition]]
        name = "a"
        [[condition]]
        name = "b"
        [[task]]
        name = "a"
        phases = [{loop = "forever", do = [{run = "10ms"}, {signal = "b"}, {await = "a"}]}]
        [[task]]
        name = "b"
        phases = [{loop = "forever", do = [{run = "15ms"}, {signal = "a"}, {await = "b"}]}]
        """,
        cpus=2,
    )
    assert answer["status"] == "ok"
    assert bursts.of == {"a": [(0, 10), (15, 25), (40, 50)], "b": [(0, 15), (25, 40), (50, 65)]}


def test_waiting_for_a_lost_signal_is_a_deadlock(play):
    answer, _ = play(
        """
        [[condition]]
        name = "c"
        [[task]]
        name = "early"
        phases = [{signal = "c"}]
        [[task]]
        name = "late"
        phases = [{run = "1ms"}, {await = "c"}]
        """
    )
    assert (answer["status"], answer["error_kind"]) == ("failed", "deadlock")
    assert "late[2] for condition" in answer["error"]


def test_a_waiter_that_was_signalled_waits_for_its_lock(play):
    """`b` keeps the lock while it waits for a signal that came too early."""
    answer, _ = play(
        """
        [[lock]]
        name = "m"
        [[condition]]
        name = "c"
        [[condition]]
        name = "d"
        [[task]]
        name = "a"
        phases = [{signal = "d"}, {lock = "m"}, {await = {condition = "c", lock = "m"}}, {unlock = "m"}]
        [[task]]
        name = "b"
        arrival = "1ms"
        phases = [{run = "1ms"}, {lock = "m"}, {signal = "c"}, {await = "d"}, {unlock = "m"}]
        """
    )
    assert answer["error_kind"] == "deadlock"
    assert "a[1] for lock, b[2] for condition" in answer["error"]


def test_a_call_may_take_a_nanosecond(play):
    """Lock, unlock and exit take one each, and a run absorbs what comes before it and the first after it."""
    head, calls = '[[lock]]\nname = "m"\n[[task]]\nname = "a"\nphases = ', '{lock = "m"}, {unlock = "m"}'
    before, after = (
        play(f"{head}[{steps}]\n", 1, "--cost", "call_ns=1")[1].end
        for steps in (f'{calls}, {{run = "1ms"}}', f'{{run = "1ms"}}, {calls}')
    )
    assert (before, after) == ({"a": [1.0]}, {"a": [1.000002]})


@pytest.mark.parametrize(("all_", "ends"), [("false", [4, 7, 10]), ("true", [4, 5, 6])])
def test_a_signal_wakes_the_longest_waiter_or_all(play, all_, ends):
    answer, bursts = play(
        f"""
        [[condition]]
        name = "c"
        [[task]]
        name = "waiter"
        count = 3
        phases = [{{await = "c"}}, {{run = "1ms"}}]
        [[task]]
        name = "waker"
        phases = [{{loop = 3, do = [{{sleep = "3ms"}}, {{signal = {{condition = "c", all = {all_}}}}}]}}]
        """
    )
    assert answer["status"] == "ok"
    assert bursts.end["waiter"] == ends


def test_await_lets_go_of_its_lock_and_has_it_again(play):
    """The waiter is signalled at 2 ms but gets its lock at 7, when the other lets go."""
    answer, bursts = play(
        """
        [[lock]]
        name = "m"
        [[condition]]
        name = "c"
        [[task]]
        name = "waiter"
        phases = [{lock = "m"}, {await = {condition = "c", lock = "m"}}, {run = "1ms"}, {unlock = "m"}]
        [[task]]
        name = "waker"
        phases = [{sleep = "2ms"}, {lock = "m"}, {signal = "c"}, {run = "5ms"}, {unlock = "m"}, {sleep = "100us"},
            {lock = "m"}, {run = "1ms"}, {unlock = "m"}]
        """,
        cpus=2,
    )
    assert answer["status"] == "ok"
    assert bursts.of == {"waiter": [(7, 8)], "waker": [(2, 7), (8, 9)]}


def test_periods_lose_no_job_that_ends_just_in_time(play):
    """As the player does on hosts that run real code: see tests/player."""
    answer, bursts = play(
        """
        [[task]]
        name = "full"
        arrival = "3ms"
        phases = [{period = "10ms"}, {loop = 4, do = [{run = "10ms"}, {period = "10ms"}]}]
        [[task]]
        name = "late"
        phases = [{run = "23ms"}, {period = "10ms"}, {run = "1ms"}, {period = "10ms"}, {period = "10ms"}, {run = "1ms"}]
        """,
        cpus=2,
    )
    assert answer["status"] == "ok"
    # Utilisation 1: a job ends as the next one is due, and none is skipped.
    assert bursts.of["full"] == [(13, 53)]
    assert bursts.of["late"] == [(0, 23), (30, 31), (50, 51)]


def test_timers_wait_for_their_rhythm_and_differ_when_late(play):
    answer, bursts = play(
        """
        [[task]]
        name = "restart"
        phases = [{run = "25ms"}, {timer = "10ms"}, {run = "1ms"}, {timer = "10ms"}, {run = "1ms"}, {timer = "20ms"}]
        [[task]]
        name = "keep"
        phases = [{run = "25ms"}, {timer = {period = "10ms", late = "keep"}}, {run = "1ms"},
            {timer = {period = "10ms", late = "keep"}}, {run = "1ms"}, {timer = {period = "10ms", late = "keep"}}]
        [[task]]
        name = "early"
        arrival = "3ms"
        phases = [{loop = 3, do = [{run = "2ms"}, {timer = {name = "x", period = "5ms"}}, {timer = {name = "y", period = "7ms"}}]}]
        """,
        cpus=3,
    )
    assert answer["status"] == "ok"
    # Late by 15 ms: from now on, 25, or caught up at 10, 20 and 30.
    assert bursts.of["restart"] == [(0, 26), (35, 36)]
    assert bursts.end["restart"] == [55]
    assert bursts.of["keep"] == [(0, 27)]
    assert bursts.end["keep"] == [30]
    # x is due at 5, 10, 15 and y at 7, 14, 21 after arrival.
    assert bursts.of["early"] == [(3, 5), (10, 12), (17, 19)]
    assert bursts.end["early"] == [24]


def children(*runs: str) -> str:
    """Tasks `child0` and so on, each with one run; all are spawned by their parent."""
    return "\n".join(
        f'[[task]]\nname = "child{i}"\narrival = "spawned"\nphases = [{{run = "{run}"}}]'
        for i, run in enumerate(runs)
    )


def spawns(number: int) -> str:
    """Phases that spawn `children`."""
    return ", ".join(f'{{spawn = "child{i}"}}' for i in range(number))


def test_a_wait_takes_as_many_children_as_it_says(play):
    """Three have ended by 4 ms: the first wait takes one, the second the other two, the third waits for the last."""
    answer, bursts = play(
        f"""
        [[task]]
        name = "parent"
        phases = [{spawns(4)}, {{run = "4ms"}}, {{wait = 1}}, {{run = "1ms"}}, {{wait = 2}}, {{run = "1ms"}},
            {{wait = 1}}, {{run = "1ms"}}]
        {children("1ms", "2ms", "3ms", "9ms")}
        """,
        5,
    )
    assert (answer["status"], answer.get("error")) == ("ok", None)
    assert bursts.of["parent"] == [(0, 6), (9, 10)]


def test_a_wait_in_advance_takes_as_many_children_as_it_says(play):
    """The first child to end wakes it; of the next wait, the second is counted and the third wakes it."""
    answer, bursts = play(
        f"""
        [[task]]
        name = "parent"
        phases = [{spawns(3)}, {{wait = 1}}, {{run = "500us"}}, {{wait = 2}}, {{run = "1ms"}}]
        {children("1ms", "2ms", "3ms")}
        """,
        4,
    )
    assert (answer["status"], answer.get("error")) == ("ok", None)
    assert bursts.of["parent"] == [(1, 1.5), (3, 4)]


@pytest.mark.parametrize("bytes_", [1, 1023, 1024, 1025, 5120])
def test_the_device_rounds_up(play, bytes_):
    """At 1,000 ns a KiB each byte takes 0.98 ns; what is begun is paid."""
    _, bursts = play(
        f"""
        [[task]]
        name = "writer"
        phases = [{{write = {{bytes = {bytes_}, sync = true}}}}]
        """,
        1,
        "--io",
        "latency_ns=0,ns_per_kib=1000,call_ns=0",
    )
    assert bursts.end["writer"] == [-(-bytes_ * 1000 // 1024) / MS]


def test_the_device_serves_requests_in_the_order_in_which_they_came(play):
    """One at a time, for 1 ms each: a, b and c, then the second of a and the second of b; c sleeps from 3 ms on."""
    answer, bursts = play(
        "\n".join(
            f"""
            [[task]]
            name = "{name}"
            phases = [{read}, {then}]
            """
            for read in ["{read = {bytes = 1, direct = true}}"]
            for name, then in (("a", read), ("b", read), ("c", '{sleep = "5ms"}'))
        ),
        3,
        "--io",
        "latency_ns=1000000,ns_per_kib=0,call_ns=0,depth=1",
    )
    assert answer["status"] == "ok"
    assert bursts.end == {"a": [4], "b": [5], "c": [8]}


@pytest.mark.parametrize("kernel", ["pi", "matmul", "spin"])
def test_a_unit_of_work_takes_a_nanosecond_unless_told_otherwise(play, kernel):
    text = f'[[task]]\nname = "a"\nphases = [{{work = {{kernel = "{kernel}", count = 1000000}}}}]\n'
    assert play(text)[1].end == {"a": [1]}
    assert play(text, 1, "--work", f"{kernel}_ps=3000")[1].end == {"a": [3]}


@pytest.mark.parametrize(
    ("cpu", "cost_ms"), [(1, 1), (2, 3), (4, 7)], ids=["same cache", "other cache", "other node"]
)
def test_a_migration_costs_by_how_far_it_goes(play, cpu, cost_ms):
    """Two CPUs share a cache, four a node; `moves` leaves CPU 0 to `stays` for the only one that is free."""
    others = "\n".join(
        f"""
        [[task]]
        name = "stays{other}"
        affinity = [{other}]
        arrival = "1ms"
        phases = [{{run = "100ms"}}]
        """
        for other in range(8)
        if other != cpu
    )
    _, bursts = play(
        f"""
        [[task]]
        name = "moves"
        phases = [{{run = "1ms"}}, {{sleep = "9ms"}}, {{run = "1ms"}}]
        {others}
        """,
        8,
        "--cost",
        "migrate_ns=1000000,migrate_llc_ns=2000000,migrate_node_ns=4000000",
        "--topology",
        "llc=2,node=4",
    )
    start_ms = 10 + cost_ms
    assert bursts.of["moves"] == [(0, 1), (start_ms, start_ms + 1)]


def test_a_tick_costs_no_more_than_is_left_of_the_run(play):
    """The last tick is 0.1 ms before the end, and would take 0.3 ms."""
    _, bursts = play(
        """
        horizon = "2100us"
        [[task]]
        name = "hog"
        phases = [{run = "1s"}]
        [[task]]
        name = "other"
        phases = [{run = "1s"}]
        """,
        1,
        "--cost",
        "tick_ns=300000",
    )
    overhead = bursts.events[bursts.events["kind"] == Kind.OVERHEAD]
    assert overhead[["task", "arg"]].tolist() == [(0, 300_000), (0, 100_000)]
    assert bursts.events["arg"][bursts.events["kind"] == Kind.STOP].tolist() == [1_700_000]


def test_what_is_due_at_one_instant_happens_in_the_order_in_which_it_was_asked_for(play):
    """All sleep until 10 ms, the first since 1 ms and the last since 7 ms."""
    names = "abcdefg"
    _, bursts = play(
        "\n".join(
            f"""
        [[task]]
        name = "{name}"
        phases = [{{run = "1ms"}}, {{sleep = "{9 - i}ms"}}, {{run = "1ms"}}]
        """
            for i, name in enumerate(names)
        )
    )
    assert [bursts.of[name][1] for name in names] == [(10 + i, 11 + i) for i in range(7)]


def test_await_has_its_free_lock_again_at_once(play):
    """Signalled at 1 ms by a task without the lock: whoever locks next waits until it is let go of."""
    answer, bursts = play(
        """
        [[lock]]
        name = "m"
        [[condition]]
        name = "c"
        [[task]]
        name = "waiter"
        phases = [{lock = "m"}, {await = {condition = "c", lock = "m"}}, {run = "3ms"}, {unlock = "m"}]
        [[task]]
        name = "waker"
        phases = [{run = "1ms"}, {signal = "c"}, {lock = "m"}, {run = "1ms"}, {unlock = "m"}]
        """,
        cpus=2,
    )
    assert answer["status"] == "ok"
    assert bursts.of == {"waiter": [(1, 4)], "waker": [(0, 1), (4, 5)]}


def test_a_switch_that_the_run_cuts_off_took_what_was_left(play):
    _, bursts = play(
        """
        horizon = "100us"
        [[task]]
        name = "a"
        phases = [{run = "1ms"}]
        """,
        1,
        "--cost",
        "switch_ns=300000",
    )
    overhead = bursts.events[bursts.events["kind"] == Kind.OVERHEAD]
    assert overhead[["task", "arg"]].tolist() == [(0, 100_000)]


def test_more_records_than_are_kept_in_memory_are_all_written(play):
    """32,768 are kept; each round has a RUN, a STOP and a WAKE at least."""
    _, bursts = play(
        """
        [[task]]
        name = "a"
        phases = [{loop = 20000, do = [{run = "1us"}, {sleep = "1us"}]}]
        """
    )
    kinds = bursts.events["kind"]
    assert [(kinds == kind).sum() for kind in (Kind.RUN, Kind.STOP, Kind.WAKE)] == [20001, 20001, 20000]
