# SPDX-License-Identifier: MIT
"""Two runs have in common what they should: with other pids, longer times, one CPU more."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schedlab.check.limits import Cgroup
from schedlab.check.relations import RELATIONS, Relation, relations_of
from schedlab.check.save import found_in, read_world, save
from schedlab.check.search import Task, do_batch
from schedlab.check.trial import Finding
from schedlab.check.world import Group, Phase, World
from schedlab.errors import UsageError
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.records.file import RECORD_DTYPE, Kind, Records, Stop
from schedlab.workload.events import Event

pytestmark = pytest.mark.full
BUGS = Path(__file__).resolve().parent / "bugs"
MS = 1_000_000
FOUND = [("odd_pids_first", "renamed"), ("slice_in_code", "scaled"), ("cpus_by_power_of_two", "more-cpus")]


def task_of(policy: str, held: str) -> Task:
    return Task(build_policy(load_policy(policy)), frozenset({held}), seed=1, are_chosen=True)


@pytest.mark.parametrize(("name", "held"), FOUND)
def test_a_world_that_was_saved_fails_again(name, held, tmp_path, simulator):
    task = task_of(str(BUGS / f"{name}.bpf.c"), held)
    world, finding = next(failed for number in range(10) for failed in do_batch(task, number).failed)
    assert finding.broken == held
    saved = save(world, finding, task.built, tmp_path)
    assert saved.run_command == saved.replay_command and found_in(saved.world)["property"] == held
    with task.laboratory() as laboratory:
        again = laboratory.try_world(read_world(saved.world)).finding
    assert again is not None and again.text == finding.text
    saved.world.write_text(saved.world.read_text().replace("phases = [", 'phases = [{run = "7ms"}, ', 1))
    with pytest.raises(UsageError, match=r"its tasks are no longer those of its line"):
        read_world(saved.world)


def test_a_saved_world_keeps_its_cgroups(tmp_path, simulator):
    """And what they get in the run, by their names: a program numbers them."""
    mover = Group("mover", (Phase("join", name="left"), Phase("run", MS), Phase("join", name="right")))
    limits = (Cgroup("outer", weight=200), Cgroup("left", "outer", 50, 5 * MS, 20 * MS, (0,)))
    events = (Event("quota", 0, 33 * MS, 7 * MS, "left"),)
    world = World(
        1, "", MS, (Group("hog", (Phase("run", MS),), cgroup="left"), mover), limits=limits, events=events
    )
    task = task_of("cfs", "renamed")
    saved = save(world, Finding("renamed", "so", world.horizon_ns), task.built, tmp_path)
    assert read_world(saved.world) == world
    assert world.machine_events == "quota:1@33000000+7000000"


@pytest.mark.parametrize(
    ("policy", "held"),
    [("fifo", "renamed"), ("rr", "renamed"), ("eevdf", "renamed"), ("rr", "scaled"), ("fifo", "more-cpus")],
)
def test_a_policy_to_which_these_are_all_one_is_not_accused(policy, held, simulator):
    task = task_of(policy, held)
    for number in range(3):
        batch = do_batch(task, number)
        assert (batch.error, batch.failed) == (None, [])


@pytest.mark.parametrize(("bug", "repair", "held"), [
    ("p->pid & 1 ? SHARED : OTHER", "SHARED", "renamed"),
    (" > 5000000 ? slice_ns / nr : 5000000", "", "scaled"),
    ("if ((u32)cpu < (nr & -nr))", "if ((u32)cpu < nr)", "more-cpus"),
])  # fmt: skip
def test_nothing_is_found_once_the_bug_is_mended(bug, repair, held, tmp_path, simulator):
    name = next(name for name, what in FOUND if what == held)
    text = (BUGS / f"{name}.bpf.c").read_text()
    assert text.count(bug) == 1
    path = tmp_path / f"{name}.bpf.c"
    path.write_text(text.replace(bug, repair).replace('#include "bug', f'#include "{BUGS}/bug'))
    batch = do_batch(task_of(str(path), held), 0)
    assert (batch.error, batch.failed) == (None, [])


def test_they_are_held_where_they_are_asked_for(simulator):
    built = build_policy(load_policy("fifo"))
    assert not Task(built, frozenset(RELATIONS), seed=1).held
    assert Task(built, frozenset({"scaled"}), seed=1, are_chosen=True).held == {"scaled"}
    command = [
        sys.executable,
        "-m",
        "schedlab",
        "check",
        "fifo",
        "--property",
        "renamed",
        "--workload",
        "mixed",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "not of a given workload" in done.stderr


def relations(world: World) -> dict[str, Relation]:
    built = build_policy(load_policy("rr"))
    return {each.name: each for each in relations_of(built.policy, built.values, RELATIONS, world)}


def test_what_the_other_run_is(simulator):
    hog = Group("hog", (Phase("run", 5 * MS),), arrival_ns=MS)
    changer = Group("controller", (Phase("change", name="weight", value=10, target=2),), rounds=1)
    found = relations(World(2, "", MS, (changer, hog)))
    assert set(found) == {"renamed", "scaled"}  # a controller is not alone
    assert found["renamed"].second.groups[2] == hog
    assert (
        found["renamed"].second.groups[1].phases[0].target == 1
    )  # the same one, 2 modulo 2, behind the new one
    scaled = found["scaled"].second
    assert scaled.groups[1] == replace(hog, phases=(Phase("run", 10 * MS),), arrival_ns=2 * MS)
    assert (scaled.tick_ns, scaled.settings) == (2 * MS, (("slice_ns", 20 * MS),))
    more = relations(World(2, "", MS, (hog,)))["more-cpus"]
    assert (more.first.n_cpus, more.second.n_cpus, more.first.groups[0].rounds) == (2, 3, 10)
    assert set(relations(World(2, "", MS, (hog,), settings=(("slice_ns", MS),)))) == {"scaled"}
    assert not relations(World(2, "", MS, (hog,), interleaving="1"))
    assert not relations_of(load_policy("rr"), {"slice_ns": 10**10}, {"scaled"}, World(2, "", MS, (hog,)))


def records_of(rows: list[tuple[int, int, int, int]], end_ns: int = 0) -> Records:
    """Rows of time in ns, kind, pid and CPU."""
    events = np.zeros(len(rows), RECORD_DTYPE)
    for at, (t_ns, kind, pid, cpu) in enumerate(rows):
        events[at]["t_ns"], events[at]["kind"], events[at]["task"], events[at]["cpu"] = t_ns, kind, pid, cpu
        events[at]["flags"] = Stop.EXITED if kind == Kind.STOP else 77
    return Records(events, n_cpus=3, tick_ns=MS, end_ns=end_ns, n_lost=0)


def test_rows_are_compared_without_what_was_changed():
    world = World(2, "", MS, ())
    one = records_of([(0, Kind.RUN, 1, 0), (MS, Kind.NOTE, 9, 0), (2 * MS, Kind.STOP, 1, 0)])
    renamed, scaled = Relation("renamed", world, world, n_new=1), Relation("scaled", world, world, scale=2)
    assert renamed.broken(one, records_of([(0, Kind.RUN, 2, 0), (2 * MS, Kind.STOP, 2, 0)]), ["a"]) is None
    assert scaled.broken(one, records_of([(0, Kind.RUN, 1, 0), (4 * MS, Kind.STOP, 1, 0)]), ["a"]) is None
    assert scaled.broken(one, records_of([(0, Kind.RUN, 1, 0)]), ["a"]) == (
        "at 2ms a[1] stops on CPU 0 (exited); with all times twice as long, instead: nothing more happens"
    )
    assert renamed.broken(one, records_of([(0, Kind.RUN, 2, 1)]), ["a"]) == (
        "at 0ns a[1] begins to run on CPU 0; with pids higher by one, instead: at 0ns a[1] begins to run on CPU 1"
    )


SLEEPER = Group("sleeper", (Phase("run", 10 * MS), Phase("sleep", 10 * MS)), rounds=2, arrival_ns=10 * MS)


@pytest.mark.parametrize(("n_cpus", "groups", "first_ms", "second_ms", "is_broken"), [
    (1, (), 100, 101, False),  # a tick is allowed; a second CPU costs nothing
    (1, (), 100, 102, True),
    (2, (), 300, 401, False),  # 2 - 2/3
    (2, (), 300, 402, True),
    (2, (), 300, 70_000, False),  # it does not end
    # Two others on two CPUs can be in its way while it is there and runs, and never while it sleeps: a third of 30 ms.
    (2, (SLEEPER,), 300, 411, False),
    (2, (SLEEPER,), 300, 412, True),
])  # fmt: skip
def test_one_cpu_more_costs_no_more_than_the_bound(n_cpus, groups, first_ms, second_ms, is_broken):
    world = World(n_cpus, "", MS, groups)
    relation = Relation("more-cpus", world, replace(world, n_cpus=n_cpus + 1))
    found = relation.broken(records_of([], first_ms * MS), records_of([], second_ms * MS), [])
    assert (found is not None) is is_broken, found
