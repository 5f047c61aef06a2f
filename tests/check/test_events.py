# SPDX-License-Identifier: MIT
"""Worlds in which a task changes others, or something happens to the machine: what only they find, and that they
accuse no sound policy.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import pytest

from schedlab.check import world as worlds
from schedlab.check.events import DRAWN, HARMLESS
from schedlab.check.limits import Cgroup
from schedlab.check.save import read_world, save
from schedlab.check.search import do_batch
from schedlab.check.shrink import _on_cpus, _without, shrink
from schedlab.check.world import (
    MS,
    ROLES,
    Group,
    Phase,
    World,
    change_world,
    draw_world,
    interleaved,
    to_toml,
)  # fmt: skip
from schedlab.errors import SpecError
from schedlab.policy.find import load_policy
from schedlab.workload.events import OF_CPU, OF_GROUP, Event, read_events

from .test_check import BUGS, FILES, check, task_of

pytestmark = pytest.mark.full
REMEMBERED = BUGS.parent / "mask_remembered.bpf.c"
HOG = Group("hog", (Phase("run", 100 * MS),))


def test_one_world_of_four_has_a_controller_that_ends():
    policy = load_policy("rr")
    drawn = [draw_world(random.Random(seed), policy, {}) for seed in range(400)]
    controllers = [group for world in drawn for group in world.groups if group.role == "controller"]
    assert 70 < len(controllers) < 130
    assert all(group.rounds for group in controllers), "changes without end may starve a task"
    names = {phase.name for group in controllers for phase in group.phases if phase.verb == "change"}
    assert {"affinity", "weight", "priority"} <= names


def test_the_other_worlds_are_those_of_before(monkeypatch):
    """What a seed has found is found by it, however many have a controller."""
    policy = load_policy("rr")
    with_some = [draw_world(random.Random(seed), policy, {}) for seed in range(50)]
    monkeypatch.setattr(worlds, "CONTROLLED_SHARE", 0.0)
    monkeypatch.setattr(worlds, "MOVED_SHARE", 0.0)
    monkeypatch.setattr(worlds, "EVENTS_SHARE", 0.0)
    monkeypatch.setattr(worlds, "SKEWED_SHARE", 0.0)
    monkeypatch.setattr(worlds, "STARTED_SHARE", 0.0)
    for seed, world in enumerate(with_some):
        rest = tuple(group for group in world.groups if group.role in ROLES)
        rest = tuple(replace(group, cgroup="") for group in rest)
        assert draw_world(random.Random(seed), policy, {}) == replace(
            world, groups=rest, events=(), limits=()
        )


def test_a_cgroup_that_is_remembered_is_found_by_a_move_alone(monkeypatch, simulator):
    task = task_of(BUGS / "remembered_cgroup.bpf.c")
    world, finding = next(failed for number in range(10) for failed in do_batch(task, number).failed)
    assert finding.broken == "stall" and any(group.role == "mover" for group in world.groups)
    with task.laboratory() as laboratory:
        small = shrink(laboratory, world, finding, slice_ns=20 * MS).world
    assert small.n_tasks <= 2 and '{join = "' in to_toml(small)
    monkeypatch.setattr(worlds, "MOVED_SHARE", 0.0)
    assert not [failed for number in range(4) for failed in do_batch(task, number).failed]


def test_a_mask_that_is_remembered_is_found_by_cpus_of_cgroups_alone(monkeypatch, simulator):
    task = task_of(BUGS.parent / "mask_remembered.bpf.c")
    monkeypatch.setattr(worlds, "CONTROLLED_SHARE", 0.0)
    monkeypatch.setattr(worlds, "MOVED_SHARE", 0.5)
    world, finding = next(failed for number in range(20) for failed in do_batch(task, number).failed)
    assert finding.broken == "stall" and any(each.cpus for each in world.limits)
    with task.laboratory() as laboratory:
        small = shrink(laboratory, world, finding, slice_ns=20 * MS).world
    assert "cpus = [" in to_toml(small) and small.n_tasks == 1
    # On fewer CPUs a cgroup has those that are left, and what it is in has them, too.
    fewer = _on_cpus(replace(small, n_cpus=4, limits=(Cgroup("left", cpus=(0, 3)),)), 2)
    assert fewer.limits == (Cgroup("left", cpus=(0,)),)
    monkeypatch.setattr(worlds, "CPUSETS_SHARE", 0.0)
    assert not [failed for number in range(4) for failed in do_batch(task, number).failed]


def test_no_neighbour_of_a_world_with_cpus_of_cgroups_changes_masks(monkeypatch):
    """A task would ask for CPUs that its cgroup has not, which is refused, and ends the search."""
    monkeypatch.setattr(worlds, "MOVED_SHARE", 1.0)
    policy, rng = load_policy("rr"), random.Random(1)
    drawn = [
        world
        for world in (draw_world(rng, policy, {}) for _ in range(300))
        if any(each.cpus for each in world.limits)
    ]
    near = [change_world(rng, world, policy, {}) for world in drawn for _ in range(20)]
    changed = [
        world
        for world in near
        if any(phase.verb == "change" for group in world.groups for phase in group.phases)
    ]
    assert changed and not [world for world in changed if any(each.cpus for each in world.limits)]


def test_a_group_that_has_a_budget_again_in_vain_is_found_by_quotas_alone(tmp_path, monkeypatch, simulator):
    """What is left is never more than a quota, without a burst; `credit` declares that tasks may starve."""
    headers = CHECKOUT / "include" / "scx" / "policy"
    right, wrong = "if (g->left_ns > 0)", "if (g->left_ns > (s64)g->quota_ns)"
    quota = (headers / "group_quota.h").read_text()
    assert quota.count(right) == 1
    groups = (headers / "groups.h").read_text()
    groups = groups.replace("#include <scx/policy/group_quota.h>", quota.replace(right, wrong))
    text = (CHECKOUT / "policies" / "credit.bpf.c").read_text()
    path = tmp_path / "credit.bpf.c"
    path.write_text(text.replace("#include <scx/policy/groups.h>", groups))
    monkeypatch.setattr(worlds, "MOVED_SHARE", 0.5)
    task = task_of(path)
    world, finding = next(failed for number in range(20) for failed in do_batch(task, number).failed)
    assert finding.broken == "lost" and world.limits
    with task.laboratory() as laboratory:
        small = shrink(laboratory, world, finding, slice_ns=20 * MS).world
    assert "quota = " in to_toml(small) and small.n_tasks <= 3
    monkeypatch.setattr(worlds, "LIMITED_SHARE", 0.0)
    assert not [failed for number in range(4) for failed in do_batch(task, number).failed]


def test_what_is_changed_stays_where_groups_and_cpus_go():
    change = Phase("change", name="affinity", value=0b1100, target=2)
    world = World(4, "", MS, (HOG, replace(HOG, role="hog"), Group("sleeper", (Phase("run", MS),)),
                              Group("controller", (change, Phase("sleep", MS)), rounds=2)))  # fmt: skip
    assert '{change = {task = "c", affinity = [2, 3]}}' in to_toml(world)
    without = _without(world.groups, 0)
    assert '{change = {task = "b", affinity = [2, 3]}}' in to_toml(replace(world, groups=without))
    assert '{change = {task = "c", affinity = [0, 1]}}' in to_toml(_on_cpus(world, 2))
    own = replace(
        world, groups=(Group("controller", (replace(change, target=-1), Phase("run", MS)), rounds=1),)
    )
    assert "{change = {affinity = [2, 3]}}" in to_toml(own)


def test_a_mask_that_is_remembered_is_found_by_a_change_alone(monkeypatch, simulator):
    task = task_of(REMEMBERED)
    found = [failed for number in range(4) for failed in do_batch(task, number).failed]
    assert {finding.broken for _, finding in found} == {"stall"}
    world, finding = found[0]
    with task.laboratory() as laboratory:
        small = shrink(laboratory, world, finding, slice_ns=20 * MS).world
    assert small.n_tasks <= 3 and "change = " in to_toml(small)
    monkeypatch.setattr(worlds, "CONTROLLED_SHARE", 0.0)
    monkeypatch.setattr(worlds, "CPUSETS_SHARE", 0.0)
    assert not [failed for number in range(4) for failed in do_batch(task, number).failed]


@pytest.mark.parametrize("name", ["none", "rr", "cfs"])
def test_no_sound_policy_is_accused(name, monkeypatch, simulator):
    """Where each world has changes, also where CPUs interleave; `work` is held, too."""
    monkeypatch.setattr(worlds, "CONTROLLED_SHARE", 1.0)
    monkeypatch.setattr(worlds, "MOVED_SHARE", 0.5)
    task = task_of(BUGS / "none.bpf.c" if name == "none" else name)
    for number in range(3):
        batch = do_batch(task, number)
        assert not batch.error and not batch.failed and "controller" in batch.roles
    rng = random.Random(3)
    policy = task.built.policy
    tried = [interleaved(rng, draw_world(rng, policy, {})) for _ in range(60)]
    tried += [interleaved(rng, change_world(rng, world, policy, {})) for world in tried[:20]]
    with replace(task, races=True, properties=task.properties - {"race"}).laboratory() as laboratory:
        assert not [trial.finding for trial in laboratory.try_worlds(tried) if trial.finding]


# ---- what happens to the machine ----------------------------------------------------------

CHECKOUT = BUGS.parents[2]
KINDS_OF_WORLDS = {*DRAWN, *HARMLESS}
SHOWN_BY = {path: found[1] for path in FILES if (found := re.search(r"@shown-by (\w+)", path.read_text()))}


def test_one_world_of_twelve_has_events_of_each_kind():
    policy = load_policy("rr")
    drawn = [draw_world(random.Random(seed), policy, {}) for seed in range(1200)]
    with_some = [world for world in drawn if world.machine_events and not world.limits]
    assert 60 < sum(world.is_disturbed for world in with_some) < 120
    assert 60 < sum(any(event.kind == "start" for event in world.events) for world in with_some) < 140
    assert 30 < sum(any(event.kind == "skew" for event in world.events) for world in with_some) < 100
    kinds = {event.kind for event in read_events(",".join(map(World.machine_events.fget, with_some)))}
    assert kinds == KINDS_OF_WORLDS
    for world in with_some:
        assert all(event.which < world.n_cpus for event in world.events if event.kind in OF_CPU)
        smaller = _on_cpus(world, 1)
        assert all(event.which < 1 for event in smaller.events if event.kind in OF_CPU)
        assert read_events(",".join(map(str, world.events))) == world.events


def test_clocks_begin_when_the_world_says(tmp_path, simulator):
    path = tmp_path / "begins.bpf.c"
    path.write_text(f"""/* begins.bpf.c - three clocks that agree.
 * @invariant !is_wrong
 */
#include "{BUGS}/bug.h"
static bool is_wrong;
void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{{
	u64 now_ns = scx_bpf_now();

	is_wrong |= now_ns != bpf_ktime_get_ns() || now_ns < p->start_time || now_ns - p->start_time > 2000000000;
	is_wrong |= now_ns < (1ULL << 53) || now_ns > (1ULL << 53) + 2000000000;
}}
#define MORE_OPS .running = (void *)bug_running,
#include "{BUGS}/bug_ops.h"
""")
    world = World(1, "", MS, (HOG, Group("sleeper", (Phase("run", MS), Phase("sleep", MS)))))
    late = replace(world, events=(Event("start", 0, 0, 1 << 53),))
    with task_of(path).laboratory() as laboratory:
        assert laboratory.try_world(late).finding is None and laboratory.try_alone(late).finding is None
        assert laboratory.try_world(world).finding.broken == "invariant"
    with task_of(BUGS / "none.bpf.c").laboratory() as laboratory:
        assert laboratory.try_world(late).record_hash == laboratory.try_world(world).record_hash


def test_each_kind_has_a_policy_that_breaks_by_it():
    assert set(SHOWN_BY.values()) == KINDS_OF_WORLDS


@pytest.mark.parametrize("path", SHOWN_BY, ids=lambda path: path.name.removesuffix(".bpf.c"))
def test_a_bug_that_an_event_shows_is_found_by_it_alone(path, monkeypatch, simulator):
    """That it is found is tests/check/test_check.py's."""
    monkeypatch.setattr(worlds, "EVENTS_SHARE", 0.0)
    monkeypatch.setattr(worlds, "SKEWED_SHARE", 0.0)
    monkeypatch.setattr(worlds, "STARTED_SHARE", 0.0)
    assert not [failed for number in range(3) for failed in do_batch(task_of(path), number).failed]


def test_a_world_with_events_is_repeated_by_its_file(tmp_path, simulator):
    bug = BUGS / "unchecked_push.bpf.c"
    task = task_of(bug)
    task = replace(task, properties=task.properties - {"ignored-error"})
    world, finding = next(each for number in range(10) for each in do_batch(task, number).failed)
    world = replace(world, horizon_ns=finding.horizon_ns)
    saved = save(world, finding, task.built, tmp_path)
    assert saved.run and saved.world and saved.run_command.startswith("schedlab run ")
    run = json.loads((saved.run / "run.json").read_text())
    assert (run["status"], run["error"], run["events"]) == ("failed", finding.text, world.machine_events)
    assert read_world(saved.world).events == read_events(world.machine_events)
    done = check(bug, "--replay", saved.world, cwd=tmp_path)
    assert done.returncode == 1 and "Event: from " in done.stdout
    saved.world.write_text(saved.world.read_text().replace('"fail"', '"boil"'))
    with pytest.raises(SpecError, match="unknown event 'boil'"):
        read_world(saved.world)


def test_an_urgent_task_beside_two_that_exit_kicks_no_cpu_without_end(simulator):
    """Both go to the local queue, from which each CPU takes first: rt_rr preempted each for the urgent one."""
    forker = Group("forker", (Phase("sleep", MS),), rounds=1, child_ns=100 * MS)
    urgent = Group("sleeper", (Phase("run", MS), Phase("sleep", 30 * MS)), attributes=(("priority", 1),))
    world = World(1, "", MS, (forker, urgent), events=(Event("exit", 0, 0, 100 * MS),))
    with task_of("rt_rr").laboratory() as laboratory:
        assert laboratory.try_world(world).finding is None
        assert laboratory.try_alone(world).finding is None


def test_a_task_that_has_run_by_another_cpus_clock_has_not_run_for_centuries(simulator):
    """srtf preempted the CPU whose clock is ahead, for each task, beside one that was idle."""
    forker = Group("forker", (Phase("run", MS),), rounds=100, child_ns=20 * MS - 1)
    sleeper = Group("sleeper", (Phase("run", MS), Phase("sleep", MS)), affinity=(0, 1))
    world = World(3, "", MS, (forker, sleeper), events=(Event("skew", 0, 0, 50),))
    with task_of("srtf").laboratory() as laboratory:
        assert laboratory.try_world(world).finding is None


@pytest.mark.parametrize("name", ["edf", "rt_fifo", "srtf"])
def test_who_exits_is_not_left_behind_an_endless_task(name, simulator):
    """Linux puts a task that is preempted in its exit into its CPU's own queue, unless the policy asks for it."""
    urgent = (("deadline", 20 * MS), ("priority", 0), ("burst", MS))
    forker = Group("forker", (Phase("sleep", MS),), rounds=100, child_ns=MS, is_awaited=False)
    hog = Group("hog", (Phase("run", 100 * MS),), attributes=urgent)
    exits = (Event("exit", 0, 0, 10 * MS + 1),)
    tried = [
        World(n_cpus, "", MS, (forker, replace(hog, arrival_ns=at_ns)), events=exits)
        for n_cpus in (2, 3)
        for at_ns in range(5 * MS, 30 * MS, MS)
    ]
    with task_of(name).laboratory() as laboratory:
        assert not [trial.finding for trial in laboratory.try_worlds(tried) if trial.finding]


def test_who_has_disabled_migration_starves_beside_an_idle_cpu(simulator):
    locker = Group("locker", (Phase("locked", 20 * MS), Phase("sleep", MS)))
    hog = replace(HOG, role="hog", affinity=(1,))
    forker = Group("forker", (Phase("sleep", MS),), rounds=1, child_ns=MS, is_awaited=False)
    world = World(2, "", MS, (forker, locker, hog), events=(Event("pin", 1, 20 * MS, 40 * MS),))
    # Here its only CPU is offline for a while: it goes to the other one, and may not go back.
    hogs = tuple(replace(hog, affinity=(cpu,), arrival_ns=(1 - cpu) * 10 * MS) for cpu in (0, 1))
    events = (Event("reload", 0, 200_000, 10 * MS), Event("pin", 0, 20 * MS, 200_000),
              Event("pin", 0, 50 * MS, 200_000), Event("offline", 1, 500_000, 40 * MS))  # fmt: skip
    with task_of("fifo").laboratory() as laboratory:
        for each in (world, World(2, "", 10 * MS, hogs, events=events)):
            assert laboratory.try_world(each).longest_wait_ns > 500 * MS
            assert laboratory.try_world(each).finding is None


def test_a_late_kick_holds_up_no_move_to_a_group_with_other_cpus(simulator):
    """Who joins is kicked off its CPU first; it went on, and into the next group, half in the first (an assertion)."""
    forker = Group("forker", (Phase("run", 20 * MS),), rounds=1, count=3, child_ns=MS)
    controller = Group("controller", (Phase("sleep", MS), Phase("change", 0, "affinity", 1, 2)), rounds=1)
    mover = Group(
        "mover", (Phase("join", 0, "left"), Phase("join", 0, "right"), Phase("run", MS)), is_awaited=True
    )
    late = Event("kick", 1, 20 * MS + 1, 40 * MS)
    world = World(2, "", MS, (forker, controller, mover), horizon_ns=1000 * MS, events=(late,))
    with task_of("sjf").laboratory() as laboratory:
        assert laboratory.try_alone(world).finding is None


@pytest.mark.parametrize("name", ["rr", "eevdf", "edf"])
def test_events_accuse_no_sound_policy(name, monkeypatch, simulator):
    monkeypatch.setattr(worlds, "EVENTS_SHARE", 1.0)
    monkeypatch.setattr(worlds, "SKEWED_SHARE", 1.0)
    batch = do_batch(task_of(name), 3)
    assert (batch.failed, batch.error) == ([], None) and batch.n_repeated == 2
    assert batch.events - {"thread", *OF_GROUP} == KINDS_OF_WORLDS - {"thread"}


def test_a_cpu_that_goes_while_others_interleave_is_no_finding(simulator):
    """A timer of a task whose CPU is offline interrupts CPU 0, which may be at work."""
    task, rng = task_of("cfs"), random.Random(5)
    drawn = [interleaved(rng, draw_world(rng, task.built.policy, {})) for _ in range(150)]
    tried = [
        replace(world, events=tuple(Event("offline", 1, at * MS, 5 * MS) for at in (3, 20, 21, 50)))
        for world in drawn
        if world.n_cpus > 1
    ]
    with replace(task, races=True, properties=task.properties - {"race"}).laboratory() as laboratory:
        assert not [trial.finding for trial in laboratory.try_worlds(tried) if trial.finding]


def test_clocks_differ_between_cpus_and_go_forward_on_each(tmp_path, simulator):
    """Each callback looks at the clock of its CPU, which never goes back, and at the one clock of all."""
    path = tmp_path / "clocks.bpf.c"
    text = (BUGS / "none.bpf.c").read_text().replace('#include "bug', f'#include "{BUGS}/bug')
    path.write_text(
        text.replace("@breaks nothing", "@invariant !is_wrong").replace(
            "/* Nothing of its own. */",
            """#define AHEAD_NS 1000
static u64 seen_ns[2];
static bool is_wrong;

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	u32 cpu = bpf_get_smp_processor_id() & 1;
	u64 now_ns = scx_bpf_now();

	is_wrong |= now_ns < seen_ns[cpu] || now_ns - bpf_ktime_get_ns() != (cpu ? AHEAD_NS : 0);
	seen_ns[cpu] = now_ns;
}

#define MORE_OPS .running = (void *)bug_running,
""",
        )
    )
    world = World(2, "", MS, (HOG, HOG, Group("sleeper", (Phase("run", MS), Phase("sleep", MS)))))
    with task_of(path).laboratory() as laboratory:
        ahead = replace(world, events=(Event("skew", 1, 0, 1000),))
        assert laboratory.try_world(ahead).finding is None
        assert laboratory.try_world(world).finding.broken == "invariant"
        assert laboratory.try_alone(ahead).finding is None
