# SPDX-License-Identifier: MIT
"""Shares and priorities are held against policies that declare them, and no right one is accused."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schedlab.check.encode import encode
from schedlab.check.latency import broken_latency
from schedlab.check.priorities import Order, broken_priority, rivals_of
from schedlab.check.promises import ticks_ns
from schedlab.check.save import found_in, read_world, save
from schedlab.check.search import Task, do_batch
from schedlab.check.shares import broken_share
from schedlab.check.trial import NEAR_BROKEN
from schedlab.check.world import Group, Phase, World, draw_world
from schedlab.errors import PolicyError
from schedlab.policy.build import build_policy
from schedlab.policy.find import Entitlement, load_policy
from schedlab.program.compiler import compile_workload
from schedlab.program.file import Program
from schedlab.records.file import RECORD_DTYPE, Kind, Records, Stop
from schedlab.workload.spec import parse_workload

pytestmark = pytest.mark.full
HERE = Path(__file__).resolve().parent
MS = 1_000_000


def first_finding(policy: str, n_batches: int, held: str = "shares"):
    """The first failed world of some batches of 100, and what was found; None: nothing."""
    task = Task(build_policy(load_policy(policy)), frozenset({held}), seed=1, are_chosen=True)
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


@pytest.mark.parametrize(
    ("policy", "held"),
    [
        ("stride", "shares"),
        ("eevdf", "shares"),
        ("rt_fifo", "priority"),
        ("rt_rr", "priority"),
        ("edf", "priority"),
        ("rr", "priority"),
        ("sjf", "priority"),
        ("srtf", "priority"),
        ("priority", "priority"),
        ("cfs", "latency"),
        ("mlfq", "latency"),
        ("o1", "latency"),
    ],
)
def test_a_policy_that_keeps_what_it_declares_is_not_accused(policy, held, simulator):
    assert getattr(load_policy(policy), held) is not None
    assert first_finding(policy, 15, held) is None


@pytest.mark.parametrize(
    ("policy", "held", "declared"),
    [
        ("rr", "shares", Entitlement("weight", "slice_ns")),
        ("lottery", "shares", Entitlement("tickets", "slice_ns")),
        ("fifo", "priority", Entitlement("priority", "")),
        ("rr", "priority", Entitlement("deadline", "slice_ns")),
        ("sjf", "priority", Entitlement("queued", "", when_free=True)),
        ("rt_rr", "priority", Entitlement("queued", "")),
        ("fifo", "priority", Entitlement("burst", "")),
        ("rr", "priority", Entitlement("burst", "", when_free=True)),
        ("srtf", "priority", Entitlement("priority", "", then_queued=True)),
        ("rr", "latency", Entitlement("wake-up", "")),
    ],
)
def test_what_the_search_sees_is_what_is_decided(policy, held, declared, simulator):
    """Both sums say the same of each world: that of hosts/check, and that in words."""
    built = build_policy(load_policy(policy))
    built = replace(built, policy=replace(built.policy, **{held: declared}))
    task, rng, seen = Task(built, frozenset({held}), seed=1, are_chosen=True), random.Random(3), []
    with task.laboratory() as laboratory:
        while len(seen) < 40:
            world = draw_world(rng, built.policy, built.values)
            if laboratory.promises(world):
                (trial,) = laboratory.try_worlds([world])
                assert (laboratory.try_alone(world).finding is not None) is (trial.near > NEAR_BROKEN), world
                seen.append(trial.finding is not None)
    assert 0 < sum(seen) < len(seen)


def test_a_lock_that_is_held_by_a_waiting_task_is_found_where_it_is_asked_for(simulator):
    _, world, finding = first_finding("rt_fifo", 10, "inversion")
    assert finding.broken == "inversion" and "priority inversion: " in finding.text
    assert any(group.role == "locker" for group in world.groups)


@pytest.mark.parametrize(
    ("policy", "held", "n_batches"),
    [
        ("bugs/preempts_previous_cpu", "priority", 1),
        ("bugs/knows_no_locks", "inversion", 5),
        ("bugs/passes_over_preempted", "priority", 1),
        ("bugs/wakes_for_next_round", "latency", 5),
        ("weight_in_bounds", "shares", 20),
    ],
)
def test_a_world_that_was_saved_fails_again(policy, held, n_batches, tmp_path, simulator):
    path = HERE / f"{policy}.bpf.c"
    task, world, finding = first_finding(str(path), n_batches, held)
    saved = save(world, finding, task.built, tmp_path)
    assert saved.run_command == saved.replay_command and found_in(saved.world)["property"] == held
    with task.laboratory() as laboratory:
        again = laboratory.try_world(read_world(saved.world)).finding
    assert again is not None and again.text == finding.text


#: Two tasks wake at one instant, and the CPU that one was to preempt takes the other: found by `schedlab check edf`.
TAKEN_BY_ANOTHER = """
[workload]
title = "Left behind"
question = "Is a task that is left behind given another CPU?"
tick = "1ms"
jitter = "0s"
horizon = "100ms"
[[lock]]
name = "m"
[[task]]
name = "a"
{urgent}
phases = [{{run = "10000.001us"}}, {{sleep = "5ms"}}, {{run = "1ms"}}]
[[task]]
name = "b"
affinity = [0]
{last}
phases = [{{lock = "m"}}, {{run = "5ms"}}, {{unlock = "m"}}, {{run = "1ms"}}]
[[task]]
name = "c"
affinity = [1]
{first}
phases = [{{loop = "forever", do = [{{lock = "m"}}, {{run = "1ms"}}, {{unlock = "m"}}, {{sleep = "5ms"}}]}}]
"""


@pytest.mark.parametrize(
    ("policy", "first", "urgent", "last"),
    [
        ("edf", 'deadline = "500us"', 'deadline = "999.999us"', 'deadline = "20ms"'),
        ("rt_fifo", "priority = 0", "priority = 1", "priority = 2"),
        ("srtf", 'burst = "1ms"', 'burst = "10000.001us"', 'burst = "40ms"'),
    ],
)
def test_a_task_whose_cpu_takes_another_preempts_elsewhere(policy, first, urgent, last, simulator):
    text = TAKEN_BY_ANOTHER.format(first=first, urgent=urgent, last=last)
    world = World(2, "", MS, (), horizon_ns=0, given=parse_workload(text, name="left.toml"))
    task = Task(build_policy(load_policy(policy)), frozenset({"priority"}), seed=1)
    with task.laboratory() as laboratory:
        assert laboratory.promises(world) and laboratory.try_alone(world).finding is None


# ---- the sums, by hand ------------------------------------------------------------------


def program_of(attribute: str, *values: int | None, n_cpus: int = 1, **more) -> Program:
    """Tasks a, b ..., with values of an attribute; `more` are members of single groups, by name."""
    groups = tuple(
        replace(
            Group(
                "hog", (Phase("run", 100 * MS),), attributes=() if value is None else ((attribute, value),)
            ),
            **more.get(chr(ord("a") + at), {}),
        )
        for at, value in enumerate(values)
    )
    data = encode(World(n_cpus, "", MS, groups))
    assert data is not None
    return Program(data)


def records_of(rows: list[tuple], *, n_cpus: int = 1) -> Records:
    """Rows of time in ns, kind, pid, flags, argument and CPU."""
    events = np.zeros(len(rows), RECORD_DTYPE)
    for field, values in zip(
        ("t_ns", "kind", "task", "flags", "arg", "cpu"), zip(*rows, strict=True), strict=True
    ):
        events[field] = values
    return Records(events, n_cpus=n_cpus, tick_ns=MS, end_ns=rows[-1][0], n_lost=0)


def turns_of(turns: list[tuple[int, int, int]]) -> Records:
    """Two tasks that always want to run have turns: pid, from and to in ms."""
    rows = [(0, Kind.ARRIVE, pid, 0, 0, 0) for pid in (1, 2)]
    for pid, begin, end in turns:
        rows += [
            (begin * MS, Kind.RUN, pid, 0, 0, 0),
            (end * MS, Kind.STOP, pid, Stop.PREEMPTED, (end - begin) * MS, 0),
        ]
    rows[-1] = (*rows[-1][:3], Stop.HORIZON, *rows[-1][4:])
    return records_of(rows)


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
    allowed_ns = 2 * ticks_ns(10 * MS, MS)
    found = broken_share(turns_of(turns), program_of("weight", *weights), "weight", allowed_ns)
    assert (found is not None) is is_broken, found
    if is_broken:
        assert f"a[1] ({weights[0]}) had" in found and "further from their shares than 22ms" in found


def waiting(until_ms: int) -> Records:
    """b runs on CPU 1 while a, which comes at 5 ms, waits until then; CPU 0 is idle."""
    rows = [
        (0, Kind.ARRIVE, 2, 0, 0, 0),
        (0, Kind.RUN, 2, 0, 0, 1),
        (5 * MS, Kind.ARRIVE, 1, 0, 0, 0),
        (until_ms * MS, Kind.STOP, 2, Stop.EXITED, until_ms * MS, 1),
        (until_ms * MS, Kind.RUN, 1, 0, 0, 1),
        (40 * MS, Kind.STOP, 1, Stop.HORIZON, (40 - until_ms) * MS, 1),
    ]
    return records_of(rows, n_cpus=2)


def changing(name: str, target: int) -> dict:
    """A group that changes something of a group, or of itself (-1)."""
    return {"phases": (Phase("run", MS), Phase("change", name=name, value=1, target=target))}


@pytest.mark.parametrize(
    ("values", "until_ms", "more", "is_broken"),
    [
        ((0, 5), 7, {}, True),
        ((0, 5), 6, {}, False),  # as long as is allowed
        ((5, 5), 30, {}, False),
        ((5, 0), 30, {}, False),
        ((0, None), 30, {}, False),  # how urgent b is, is not known
        ((0, 5), 30, {"a": {"affinity": (0,)}}, False),
        ((0, 5), 30, {"b": {"phases": (Phase("run", MS), Phase("set", name="priority", value=1))}}, False),
        ((0, 5), 30, {"a": changing("priority", 1)}, False),
        ((0, 5), 30, {"b": changing("affinity", 0)}, False),
        ((0, 5), 30, {"b": changing("weight", -1)}, True),
    ],
)
def test_a_task_is_behind_while_a_less_urgent_one_runs_where_it_may(values, until_ms, more, is_broken):
    found = broken_priority(
        waiting(until_ms), program_of("priority", *values, n_cpus=2, **more), Order("priority"), MS
    )
    assert (found is not None) is is_broken, found
    if is_broken:
        assert "a[1] (priority 0) waited from 5ms to " in found
        assert "while b[2] (priority 5) ran on CPU 1, longer than 1ms" in found


def test_a_job_is_as_urgent_as_it_is_due():
    # b came at 0 and is due at 14 ms, a at 15 ms.
    program = program_of("deadline", 10 * MS, 14 * MS, n_cpus=2)
    assert broken_priority(waiting(7), program, Order("deadline"), 0) is None
    program = program_of("deadline", 10 * MS, 0, n_cpus=2)
    found = broken_priority(waiting(7), program, Order("deadline"), 0)
    assert found is not None and "b[2] (no deadline) ran on CPU 1, and not run at once" in found


@pytest.mark.parametrize(("middle", "is_broken"), [(5, True), (0, False)])
def test_a_task_that_waits_for_a_lock_is_behind_where_its_holder_is(middle, is_broken):
    """c takes the lock, a waits for it, and b keeps c from the CPU for 10 ms."""
    locker = {"role": "locker", "phases": (Phase("locked", 4 * MS), Phase("sleep", MS))}
    program = program_of("priority", 0, middle, 9, a=locker, c=locker)
    rows = [
        (0, Kind.ARRIVE, 3, 0, 0, 0),
        (0, Kind.RUN, 3, 0, 0, 0),
        (MS, Kind.ARRIVE, 1, 0, 0, 0),
        (MS, Kind.STOP, 3, Stop.PREEMPTED, MS, 0),
        (MS, Kind.RUN, 1, 0, 0, 0),
        (MS, Kind.STOP, 1, Stop.BLOCKED, 0, 0),
        (MS, Kind.ARRIVE, 2, 0, 0, 0),
        (MS, Kind.RUN, 2, 0, 0, 0),
        (11 * MS, Kind.STOP, 2, Stop.EXITED, 10 * MS, 0),
        (11 * MS, Kind.RUN, 3, 0, 0, 0),
        (14 * MS, Kind.WAKE, 1, 0, 3, 0),
        (14 * MS, Kind.STOP, 3, Stop.BLOCKED, 3 * MS, 0),
        (14 * MS, Kind.RUN, 1, 0, 0, 0),
        (18 * MS, Kind.STOP, 1, Stop.BLOCKED, 4 * MS, 0),
    ]

    def found(allowed_ns: int) -> str | None:
        return broken_priority(records_of(rows), program, Order("priority"), allowed_ns, through_locks=True)

    assert (found(3 * MS) is not None) is is_broken
    if is_broken:
        assert found(3 * MS) == (
            "priority inversion: a[1] (priority 0) waited for a lock from 1ms to 11ms, and its holder "
            "c[3] (priority 9) for a CPU, while b[2] (priority 5) ran on CPU 0, longer than 3ms"
        )
    # Between two rounds a sleeps, and waits for no lock, whatever becomes of the others.
    rows += [
        (19 * MS, Kind.WAKE, 3, 0, 0, 0),
        (19 * MS, Kind.RUN, 3, 0, 0, 0),
        (20 * MS, Kind.WAKE, 2, 0, 0, 0),
        (20 * MS, Kind.STOP, 3, Stop.PREEMPTED, MS, 0),
        (20 * MS, Kind.RUN, 2, 0, 0, 0),
        (60 * MS, Kind.STOP, 2, Stop.HORIZON, 40 * MS, 0),
    ]
    assert found(10 * MS) is None


def test_who_holds_a_lock_is_not_guessed_where_a_task_takes_it_otherwise():
    """Of two locks, one in the other, the holder that was named had the wrong one."""
    head = '[workload]\ntitle = "t"\nquestion = "q"\nhorizon = "1s"\n[[lock]]\nname = "m"\n[[lock]]\nname = "n"\n'
    step = '{{lock = "{0}"}}, {{run = "1ms"}}, {{unlock = "{0}"}}, {{sleep = "5ms"}}'
    inner = '{lock = "m"}, {lock = "n"}, {run = "1ms"}, {unlock = "n"}, {unlock = "m"}, {sleep = "5ms"}'

    def locks_of(*steps: str) -> list[int | None]:
        tasks = [
            f'[[task]]\nname = "t{at}"\npriority = {at}\nphases = [{{loop = "forever", do = [{each}]}}]\n'
            for at, each in enumerate(steps)
        ]
        program = compile_workload(parse_workload(head + "".join(tasks), name="w.toml"), seed=1)
        rivals = rivals_of(program, Order("priority"), 1).values()
        return [rival.place and rival.place.lock for rival in rivals]

    assert locks_of(step.format("m"), step.format("n"), step.format("m")) == [0, 1, 0]
    assert locks_of(step.format("m"), step.format("n"), inner) == [None, None, None]


@pytest.mark.parametrize(
    ("order", "rows", "is_broken"),
    [
        # a was queued at 0, b at 1 ms; what is preempted goes behind both.
        (Order("queued", when_free=True), ["a 0 3 p", "b 3 5 p", "a 5 7 h"], False),
        (Order("queued", when_free=True), ["a 0 3 p", "a 3 5 h"], True),
        # a has 10 ms to go, b 4: a may end once it has less left.
        (Order("burst"), ["a 0 2 p", "b 2 6 b", "a 6 14 h"], True),
        (Order("burst"), ["a 0 1 p", "b 1 5 b", "a 5 14 h"], False),
        (Order("burst", when_free=True), ["a 0 2 p", "b 2 6 b", "a 6 14 h"], False),
        (Order("burst", when_free=True), ["a 0 2 p", "a 2 6 h"], True),
        (
            Order("burst", when_free=True),
            ["a 0 2 y", "a 2 6 h"],
            False,
        ),  # what a yield leaves of it is not known
        (Order("burst", when_free=True), ["a 0 7 p", "a 7 9 h"], False),
        # Equals, of which a was queued first; once a is preempted it is not known to be behind b.
        (Order("weight", then_queued=True), ["b 1 2 h"], True),
        (Order("weight", then_queued=True), ["a 0 2 p", "a 2 3 h"], False),
        (Order("weight"), ["b 1 2 h"], False),
    ],
)
def test_orders_by_hand(order, rows, is_broken):
    group = {"attributes": (("burst", 10 * MS), ("weight", 5))}
    program = program_of(
        "burst", 10 * MS, 4 * MS, a=group, b={"attributes": (("burst", 4 * MS), ("weight", 5))}
    )
    events = [(0, Kind.ARRIVE, 1, 0, 0, 0), (MS, Kind.ARRIVE, 2, 0, 0, 0)]
    ends = {"p": Stop.PREEMPTED, "y": Stop.YIELDED, "b": Stop.BLOCKED, "h": Stop.HORIZON}
    for name, begin, end, why in (row.split() for row in rows):
        pid, times = "ab".index(name) + 1, (int(begin) * MS, int(end) * MS)
        events += [
            (times[0], Kind.RUN, pid, 0, 0, 0),
            (times[1], Kind.STOP, pid, ends[why], times[1] - times[0], 0),
        ]
    events.sort(key=lambda each: each[0])
    found = broken_priority(records_of(events), program, order, 0)
    assert (found is not None) is is_broken, found


@pytest.mark.parametrize(
    ("allowed_ms", "came_ms", "is_broken"), [(2, 0, True), (3, 0, False), (0, 150, False), (0, 0, True)]
)
def test_a_task_that_wakes_up_waits_for_as_long_as_is_allowed(allowed_ms, came_ms, is_broken):
    rows = [
        (came_ms * MS, Kind.ARRIVE, 1, 0, 0, 0),
        (200 * MS, Kind.WAKE, 1, 0, 0, 0),
        (203 * MS, Kind.RUN, 1, 0, 0, 0),
    ]
    found = broken_latency(records_of(rows), program_of("weight", 1, 1), allowed_ms * MS)
    assert (found is not None) is is_broken, found
    if is_broken:
        assert "a[1] woke up at 200ms and waited until 203ms" in found


@pytest.mark.parametrize(("run_ns", "is_held"), [(10 * MS - 1, True), (10 * MS, False)])
def test_who_uses_up_a_quantum_is_promised_no_latency(run_ns, is_held, simulator):
    """`mlfq` demotes such a task at its block, and then it waits for a quantum of 20 ms: the second wake-up."""
    task = Task(build_policy(load_policy("mlfq")), frozenset({"latency"}), seed=1)
    sleeper = Group("sleeper", (Phase("run", run_ns), Phase("sleep", 10 * MS + 1)))
    hog = Group("hog", (Phase("run", 100 * MS),))
    world = World(1, "", MS, (sleeper, hog), horizon_ns=1000 * MS)
    with task.laboratory() as laboratory:
        assert ["latency" in {each.kind for each in laboratory.promises(world)}] == [is_held]
        assert laboratory.try_world(world).finding is None


@pytest.mark.parametrize(("sleeps", "is_broken"), [(False, True), (True, False)])
def test_shares_of_one_that_comes_after_another_has_slept_are_not_held(sleeps, is_broken):
    rows = [(0, Kind.ARRIVE, pid, 0, 0, 0) for pid in (1, 3)]
    rows += [(0, Kind.RUN, 3, 0, 0, 0), (MS, Kind.STOP, 3, Stop.BLOCKED if sleeps else Stop.PREEMPTED, MS, 0)]
    rows += [
        (2 * MS, Kind.ARRIVE, 2, 0, 0, 0),
        (2 * MS, Kind.RUN, 1, 0, 0, 0),
        (99 * MS, Kind.STOP, 1, Stop.HORIZON, 97 * MS, 0),
    ]
    found = broken_share(records_of(rows), program_of("weight", 100, 100, 1), "weight", 22 * MS)
    assert (found is not None) is is_broken, found


# ---- declarations ----------------------------------------------------------------------


def with_declaration(words: str, folder: Path) -> str:
    """A policy whose header has it in line 6."""
    text = (HERE / "weight_in_bounds.bpf.c").read_text().replace("@shares weight within slice_ns", words)
    (folder / "mine.bpf.c").write_text(text)
    return str(folder / "mine.bpf.c")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("@shares tickets", "such as: @shares tickets within slice_ns"),
        ("@shares luck within slice_ns", "must be followed by weight, tickets, credits"),
        ("@shares weight within slise_ns", "slise_ns is no @knob in ns that stands above"),
        ("@priority priority", "such as: @priority priority at once"),
        ("@priority luck at once", "must be followed by priority, deadline, burst, queued"),
        ("@latency slice_ns", "such as: @latency wake-up within slice_ns"),
        ("@priority priority within slise_ns", "slise_ns is no @knob in ns that stands above"),
    ],
)
def test_a_declaration_that_says_nothing_is_refused(words, message, tmp_path):
    path = with_declaration(words, tmp_path)
    with pytest.raises(PolicyError, match=rf"mine.bpf.c:6: .*{message}"):
        load_policy(path)


def test_a_priority_is_read_with_its_bound(tmp_path):
    path = with_declaration("@priority deadline within slice_ns through locks", tmp_path)
    assert load_policy(path).priority == Entitlement("deadline", "slice_ns", through_locks=True)
    assert load_policy("rt_fifo").priority == Entitlement("priority", "", then_queued=True)
    assert load_policy("sjf").priority == Entitlement("burst", "", when_free=True)
    assert load_policy("cfs").latency == Entitlement("wake-up", "")


@pytest.mark.parametrize("name", ["shares", "inversion", "latency"])
def test_what_is_not_declared_cannot_be_asked_for(name):
    command = [sys.executable, "-m", "schedlab", "check", "lottery", "--property", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"--property {name}: lottery declares none; such as, in its header: @" in done.stderr
