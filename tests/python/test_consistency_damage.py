# SPDX-License-Identifier: MIT
"""Damaged records are refused, each kind of damage every time but one; sound ones never."""

from __future__ import annotations

import numpy as np
import pytest

from python.record_damage import KINDS, Run, as_array
from schedlab.calibration import DEFAULT_CALIBRATION
from schedlab.hosts.choose import open_host
from schedlab.hosts.host import Job
from schedlab.hosts.kinds import cost_ns, device_of
from schedlab.metrics import consistency
from schedlab.metrics.timeline import Timeline
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import RECORD_DTYPE, Records, read_records
from schedlab.runs.judge import Judge
from schedlab.workload.spec import parse_workload

pytestmark = pytest.mark.full

#: How often each kind of damage is done, by suite; so many of them may be missed.
TRIES, MISSED_MAX = {"quick": 8, "full": 30, "nightly": 30}, 1
#: What cannot be seen, and why.
UNSEEN = {
    "the queue that a run came from": "no metric uses it, and the policy alone knows it",
    "the cpu chosen at a wake up": "no metric uses it: the task runs elsewhere, too, when another CPU takes it",
    "an attribute": "metrics use the program's first weight, not the record",
    "an overhead told as stolen": "both are time that no task had; the split of overhead and taken time changes",
    "a zero length run that is preempted after a wake up": "where another CPU does something at that instant, it may "
    "have kicked this one; a CPU that is left and taken again at once is no switch to any metric",
    "a run cut in two by a preemption": "a CPU that is left and taken again at once is no switch to any metric",
}
#: Kicks are late where a switch takes time: there a task may be preempted by what is over.
WITHOUT_COSTS = {"a yield told as a preemption", "a block told as a preemption"}

WORKLOAD = """
[workload]
title = "All kinds of waits"
question = "Does every event have its cause?"
tick = "1ms"
horizon = "70ms"

[[lock]]
name = "m"
[[pipe]]
name = "line"
capacity = "2KiB"
[[barrier]]
name = "gate"
parties = 2
[[condition]]
name = "full"

[[task]]
name = "hog"
phases = [{loop = "forever", do = [{run = "uniform(2ms, 5ms)"}, "yield"]}]
[[task]]
name = "editor"
count = 2
phases = [{loop = "forever", do = [{run = "uniform(200us, 900us)"}, {sleep = "exp(4ms)"}]}]
[[task]]
name = "locker"
count = 3
phases = [{loop = "forever", do = [{run = "exp(300us)"}, {lock = "m"}, {run = "exp(700us)"}, {unlock = "m"}, {sleep = "exp(2ms)"}]}]
[[task]]
name = "writer"
phases = [{loop = "forever", do = [{run = "exp(500us)"}, {write = {bytes = "6KiB", chunk = "2KiB", sync = true}}]}]
[[task]]
name = "reader"
arrival = "3137us"
phases = [{loop = "forever", do = [{run = "exp(500us)"}, {read = {bytes = "3KiB", sync = true}}]}]
[[task]]
name = "producer"
phases = [{loop = "forever", do = [{run = "exp(800us)"}, {send = {pipe = "line", bytes = "1KiB"}}]}]
[[task]]
name = "consumer"
phases = [{loop = "forever", do = [{recv = {pipe = "line", bytes = "1KiB"}}, {run = "exp(300us)"}]}]
[[task]]
name = "party"
count = 2
phases = [{loop = "forever", do = [{run = "exp(1ms)"}, {barrier = "gate"}]}]
[[task]]
name = "periodic"
arrival = "1711us"
phases = [{loop = "forever", do = [{run = "exp(400us)"}, {period = "7ms"}]}]
[[task]]
name = "timed"
phases = [{loop = "forever", do = [{run = "exp(300us)"}, {timer = "5ms"}]}]
[[task]]
name = "waits"
phases = [{loop = "forever", do = [{await = "full"}, {run = "exp(300us)"}]}]
[[task]]
name = "signals"
phases = [{loop = "forever", do = [{sleep = "exp(3ms)"}, {run = "exp(200us)"}, {signal = "full"}]}]
[[task]]
name = "parent"
phases = [{loop = 12, do = [{run = "exp(600us)"}, {spawn = "child"}, {run = "exp(300us)"}, {wait = 1}]}, {set = {tickets = 3}}, {run = "1ms"}]
[[task]]
name = "child"
arrival = "spawned"
phases = [{run = "exp(900us)"}, {sleep = "exp(900us)"}, {run = "200us"}]
[[task]]
name = "late"
count = 8
arrival = "uniform(0ms, 50ms)"
phases = [{run = "exp(2ms)"}]
"""
MACHINES = [
    ("rr", 1, ()), ("rr", 2, ()), ("cfs", 3, ()), ("mlfq", 2, ()), ("fifo", 4, ()), ("eevdf", 6, ()),
    ("rr", 3, (("--cost", "switch_ns=1500"), ("--cost", "migrate_ns=4000"), ("--cost", "wakeup_ns=700"))),
    ("lottery", 2, (("--cost", "tick_ns=2000"),)),
]  # fmt: skip


@pytest.fixture(scope="module")
def runs(build, tmp_path_factory):
    """Sound runs: records and what is expected of them."""
    folder = tmp_path_factory.mktemp("damage")
    sim, found = open_host("sim"), []
    session = sim.session(timeout_seconds=300)
    work = tuple(
        ("--work", f"{n}={getattr(DEFAULT_CALIBRATION, n)}") for n in ("pi_ps", "matmul_ps", "spin_ps")
    )
    for seed, (name, cpus, options) in enumerate(MACHINES):
        policy = load_policy(name)
        workload = parse_workload(WORKLOAD)
        program = compile_workload(workload, seed=seed)
        (folder / "program").write_bytes(program.data)
        job = Job(
            label=name,
            policy=build_policy(policy),
            program=folder / "program",
            records=folder / f"{seed}.slr",
            n_cpus=cpus,
            seed=seed,
            tick_ns=workload.tick_ns,
            options=work + options,
        )
        outcome = session.run(job)
        assert outcome.error is None, outcome.error
        judge = Judge(
            latency_ns=sim.latency_ns(job),
            work_conserving=policy.work_conserving,
            tables_folder=None,
            device=device_of(job),
            wakeup_ns=cost_ns(job, "wakeup_ns"),
        )
        found.append(
            (read_records(job.records), judge._expectations(program, outcome), len(program.task_rows))
        )
    session.close()
    return found


@pytest.fixture(scope="module")
def tries(request) -> int:
    """How often each kind of damage is done."""
    return TRIES[request.config.getoption("--suite")]


def verdict(records: Records, events: np.ndarray, expected) -> str:
    damaged = Records(
        events=events, n_cpus=records.n_cpus, tick_ns=records.tick_ns, end_ns=records.end_ns, n_lost=0
    )
    return consistency.check(Timeline(damaged), expected)


def test_sound_records_are_never_refused(runs):
    assert [verdict(records, records.events, expected) for records, expected, _ in runs] == ["ok"] * len(runs)


def seen_of(kind: str, runs, tries: int) -> tuple[int, int, list]:
    """How often a kind of damage was seen, how often it was done, and what was missed."""
    rng = np.random.default_rng(sum(kind.encode()))
    seen, done, missed = 0, 0, []
    for attempt in range(10 * tries):
        which = attempt % len(runs)
        records, expected, n_tasks = runs[which]
        if kind in WITHOUT_COSTS and MACHINES[which][2]:
            continue
        events = [dict(zip(RECORD_DTYPE.names, e, strict=True)) for e in records.events.tolist()]
        run = Run(events, records.n_cpus, records.end_ns, n_tasks, records.tick_ns)
        before = [dict(e) for e in events]
        if not KINDS[kind](run, rng) or run.events == before:
            continue
        done += 1
        if verdict(records, as_array(run, RECORD_DTYPE), expected) != "ok":
            seen += 1
        else:
            missed.append((MACHINES[which], [e for e in run.events if e not in before][:3]))
        if done == tries:
            break
    return seen, done, missed


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in UNSEEN])
def test_damage_is_seen(runs, tries, kind):
    seen, done, missed = seen_of(kind, runs, tries)
    assert done == tries, f"no place for it but {done}"
    assert seen >= done - MISSED_MAX, f"seen {seen} of {done}: {missed}"


@pytest.mark.full
@pytest.mark.parametrize("kind", UNSEEN)
def test_what_is_said_not_to_be_seen_is_not(runs, tries, kind):
    """Or the list above would be wrong, and could be shorter."""
    seen, done, _ = seen_of(kind, runs, tries)
    assert done == tries
    assert seen < done - MISSED_MAX
