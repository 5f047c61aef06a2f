# SPDX-License-Identifier: MIT
"""Many worlds in one process: each finds the beginning, and shows what it shows alone."""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from dataclasses import replace

import numpy as np
import pytest

from schedlab.check.encode import encode, program_of
from schedlab.check.quick import Worlds
from schedlab.check.search import do_batch
from schedlab.check.shrink import simpler_worlds
from schedlab.check.trial import RUN_SECONDS, Laboratory
from schedlab.check.world import (
    MS,
    Group,
    Phase,
    World,
    change_world,
    draw_world,
    interleaved,
    slice_of,
    to_toml,
)
from schedlab.hosts.process import timed_out
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.policy.races import compile_for_races
from schedlab.program.compiler import compile_workload
from schedlab.workload.spec import parse_workload

from .test_check import BUGS, FILES, task_of

pytestmark = pytest.mark.full
#: With maps, timers, storage, knobs, queues, and random numbers.
POLICIES = ("cfs", "credit", "eevdf", "lottery", "mlfq", "o1", "rr", "srtf")
PRIME, LOW = 0x9E3779B97F4A7C15, (1 << 64) - 1


def worlds_for(policy, number: int, seed: int = 5) -> list[World]:
    rng = random.Random(seed)
    return [draw_world(rng, policy, build_policy(policy).values) for _ in range(number)]


def hash_of(records) -> str:
    """What hosts/check/laws.c makes of the records, without the last, which counts them."""
    value = 0
    for word in np.frombuffer(records.read_bytes()[64:-24], "<u8").tolist():
        value = (value ^ word) * PRIME & LOW
        value ^= value >> 29
    return f"{value:016x}"


def small(world: World) -> World:
    return replace(world, horizon_ns=100 * MS)


def test_a_world_is_written_as_its_workload_is_compiled(simulator):
    policy = load_policy("mlfq")
    rng = random.Random(1)
    nr = n_long = 0
    for number in range(150):
        world = draw_world(random.Random(number), policy, {})
        others = [change_world(rng, world, policy, {}), *[*simpler_worlds(world, slice_of(policy, {}))][::5]]
        for each in [world, *others]:
            data = encode(each)
            nr, n_long = nr + 1, n_long + (data is None)
            workload = parse_workload(to_toml(each), name="world.toml")
            assert data in (None, compile_workload(workload, seed=each.seed).data), to_toml(each)
    assert n_long < nr / 20


@pytest.mark.parametrize("name", POLICIES)
def test_a_world_leaves_nothing_to_the_next(name, simulator):
    """A, B, A gives A's records; and they are those of schedlab-sim."""
    built = build_policy(load_policy(name))
    worlds = [small(world) for world in worlds_for(built.policy, 30)]
    pool = Worlds(built, timeout_seconds=60)
    first = pool.run(worlds)
    again = pool.run([*reversed(worlds)])
    pool.close()
    assert None not in first and [*reversed(again)] == first
    hashes = [answer.get("hash") for answer in first]
    assert len({*hashes}) > 20 and sum(each is not None for each in hashes) > 20
    with Laboratory(built, properties=("error",)) as laboratory:
        for world, answer in [*zip(worlds, first, strict=True)][:12]:
            outcome, _ = laboratory._run(world, is_judged=False)
            if answer["status"] == "ok":
                assert hash_of(laboratory._folder / "records.slr") == answer["hash"]
            else:
                assert outcome.error == answer["error"]


@pytest.mark.parametrize("name", ["cfs", "lottery", "mlfq", "credit"])
def test_an_interleaved_world_leaves_nothing_to_the_next(name, simulator):
    built = build_policy(load_policy(name))
    rng = random.Random(2)
    worlds = [interleaved(rng, small(world)) for world in worlds_for(built.policy, 30)]
    pool = Worlds(compile_for_races(built), timeout_seconds=60)
    first, again = pool.run(worlds), pool.run([*reversed(worlds)])
    pool.close()
    assert None not in first and [*reversed(again)] == first
    assert len({answer.get("hash") for answer in first}) > 15


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".bpf.c"))
def test_what_is_found_alone_is_found_among_others(path, simulator):
    """The pass over the records may suspect too much, never too little."""
    task = task_of(path)
    rng = random.Random(4)
    worlds = worlds_for(task.built.policy, 40)
    if task.races:
        worlds = [interleaved(rng, small(world)) for world in worlds]
    with task.laboratory() as laboratory:
        among = [trial.finding for trial in laboratory.try_worlds(worlds)]
        assert among == [laboratory.try_alone(world).finding for world in worlds]


def variant(folder, statement: str):
    """A sound policy whose ops.dispatch() does something more, where the machine has four CPUs."""
    for name in ("bug.h", "bug_ops.h"):
        shutil.copy(BUGS / name, folder / name)
    text = (BUGS / "none.bpf.c").read_text()
    own = (
        "static u64 victim[4];\n#define OWN_DISPATCH\n"
        "void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)\n{\n"
        f"\tif (scx_bpf_nr_cpu_ids() == 4)\n\t\t{statement}\n\tscx_bpf_dsq_move_to_local(SHARED, 0);\n}}\n"
    )
    (folder / "variant.bpf.c").write_text(text.replace("/* Nothing of its own. */\n", own))
    return load_policy(str(folder / "variant.bpf.c"))


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("*(volatile char *)8 = 1;", r"invalid memory in ops.dispatch\(\).*variant.bpf.c:\d+"),
        ("for (;;)\n\t\t\t*(volatile u64 *)victim = 1;", r"did not return in ops.dispatch\(\)"),
        ("*(volatile u64 *)(victim - 512) = 1;", None),
    ],
)
def test_a_policy_that_ends_its_process_is_a_finding_and_the_others_go_on(
    statement, text, tmp_path, simulator
):
    built = build_policy(variant(tmp_path, statement))
    worlds = [
        World(n_cpus, "", MS, (Group("hog", (Phase("run", 5 * MS),)),), horizon_ns=20 * MS)
        for n_cpus in (2, 4, 1, 4, 2)
    ]
    with Laboratory(built, properties=("error", "consistency")) as laboratory:
        trials = laboratory.try_worlds(worlds)
        if text is None:  # it may hit something, or nothing; what comes after it is whole
            assert trials[4] == trials[0] and trials[2].finding is None
            return
        assert [trial.finding is not None for trial in trials] == [False, True, False, True, False]
        assert re.search(text, trials[1].finding.text) and trials[1].finding.broken == "error"
        assert trials[4] == trials[0]


@pytest.fixture
def pool(simulator):
    """A process that has run a world, and that world; what the process said is its attribute `said`."""
    pool = Worlds(build_policy(load_policy("rr")), timeout_seconds=60)
    world = World(1, "", MS, (Group("hog", (Phase("run", MS),)),), horizon_ns=5 * MS)
    (pool.said,) = pool.run([world])
    yield pool, world
    pool.close()


def test_a_world_that_is_refused_costs_the_others_nothing(pool):
    pool, world = pool
    refused = pool.run([world, replace(world, topology="smt=nothing"), world])
    assert [answer["status"] for answer in refused] == ["ok", "failed", "ok"]
    assert refused[0] == refused[2] == pool.said and refused[1]["error_kind"] == "usage"


@pytest.mark.parametrize("n_answers", [0, 1])
def test_a_process_that_is_killed_costs_no_world_its_answer(n_answers, pool, monkeypatch):
    """Whether the signal comes before the first answer or between two."""
    pool, world = pool
    process = pool._process
    write = process.write

    def write_and_die(data):
        write(pool._request(world) * n_answers)
        process.read_until(lambda: process.stdout.count(b"\n") == n_answers, time.monotonic() + 60)
        process.end()
        process._process.wait()

    monkeypatch.setattr(process, "write", write_and_die)
    assert pool.run([world, world]) == [pool.said] * 2
    assert pool._process is not process


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the system calls are written for x86-64")
def test_a_world_that_ends_the_process_has_no_answer(tmp_path, simulator):
    call = 'asm volatile("syscall" : "=a"(pid) : "a"(%s), "D"(pid), "S"(9) : "rcx", "r11", "memory");'
    body = f"long pid = 0; {call % 110} {call % 62} for (;;) ;"
    kill_parent = f"({{\n#ifndef __bpf__\n{body}\n#endif\n}});"
    pool = Worlds(build_policy(variant(tmp_path, kill_parent)), timeout_seconds=60)
    worlds = [
        World(n_cpus, "", MS, (Group("hog", (Phase("run", 5 * MS),)),), horizon_ns=20 * MS)
        for n_cpus in (2, 4, 4, 2)
    ]
    answers = pool.run(worlds)
    pool.close()
    assert answers[1] is answers[2] is None and answers[0] == answers[3] is not None


def test_a_constant_that_is_set_for_a_world_is_not_for_the_next(simulator):
    built = build_policy(load_policy("rr"))
    (world,) = worlds_for(built.policy, 1)
    world = replace(
        small(world),
        groups=(Group("hog", (Phase("run", 100 * MS),), count=3),),
        n_cpus=1,
        tick_ns=MS,
        topology="",
        settings=(),
        events=(),
    )
    other = replace(world, settings=(("slice_ns", 2 * MS),))
    pool = Worlds(built, timeout_seconds=60)
    answers = pool.run([world, other, world])
    pool.close()
    assert answers[0] == answers[2] != answers[1]


def test_a_program_too_large_for_a_pipe_is_run(simulator):
    built = build_policy(load_policy("fifo"))
    group = Group("hog", (Phase("run", MS),), count=900)
    world = World(2, "", MS, (group,), horizon_ns=5 * MS)
    assert len(program_of(world)) > 70_000
    pool = Worlds(built, timeout_seconds=60)
    assert [answer["status"] for answer in pool.run([world] * 3)] == ["ok"] * 3
    pool.close()


def test_a_run_whose_answer_did_not_come_is_no_other_run(simulator, monkeypatch):
    """On a busy machine it is run alone, whose records are hashed otherwise; another hash of the same kind is one."""
    run, first = Worlds.run, []

    def without_answer(worlds, wanted, promise=""):
        """None for the first world when it is run once more, by itself."""
        first.append(wanted[0])
        return [None] if len(first) > 1 and wanted == first[:1] else run(worlds, wanted, promise)

    monkeypatch.setattr(Worlds, "run", without_answer)
    batch = do_batch(replace(task_of("rr"), coverage=None), 0, 25)
    assert first.count(first[0]) >= 2 and not batch.error and batch.n_repeated == 1
    monkeypatch.setattr(Worlds, "run", run)
    once = Laboratory.try_worlds

    def wrong(laboratory, worlds):
        return [replace(each, record_hash="0" * 16) for each in once(laboratory, worlds)]

    monkeypatch.setattr(Laboratory, "try_world", lambda laboratory, world: wrong(laboratory, [world])[0])
    assert do_batch(replace(task_of("rr"), coverage=None), 0, 25).error.startswith(
        "two runs of one world differ (seed 1, world 0): records "
    )


def test_a_run_that_had_not_ended_in_time_is_no_other_run(simulator, monkeypatch):
    """As on a busy machine: nothing is known of it."""
    once = Laboratory._run
    monkeypatch.setattr(Worlds, "run", lambda worlds, wanted, promise="": [None] * len(wanted))

    def late(laboratory, world, **how):
        n_runs.append(world)
        if len(n_runs) % 2:
            return once(laboratory, world, **how)
        (laboratory._folder / "records.slr").unlink()
        return timed_out(RUN_SECONDS), {"error": None, "error_kind": None, "metrics": {}}

    n_runs = []
    monkeypatch.setattr(Laboratory, "_run", late)
    batch = do_batch(replace(task_of("rr"), coverage=None), 0, 1)
    assert len(n_runs) >= 2 and not batch.error and batch.n_repeated == 1


def test_a_clock_that_looks_once_while_a_run_begins_ends_no_world(tmp_path, simulator):
    """At instant 0, as ops.init() takes a fifth of what it may: the clock looks every 100 ms of CPU time."""
    policy = variant(tmp_path, ";")
    slow = "#define OWN_INIT\ns32 BPF_STRUCT_OPS_SLEEPABLE(bug_init)\n{\n\tfor (volatile u32 i = 0; i < 30000000; i++) { }\n"
    slow += "\treturn scx_bpf_create_dsq(SHARED, -1);\n}\n"
    policy.path.write_text(policy.path.read_text().replace("static u64 victim", f"{slow}static u64 victim"))
    built = build_policy(load_policy(str(policy.path)))
    world = World(1, "", MS, (Group("hog", (Phase("run", MS),)),), horizon_ns=5 * MS)
    pool = Worlds(built, timeout_seconds=60)
    assert {answer and answer["status"] for answer in pool.run([world] * 25)} == {"ok"}
    pool.close()
