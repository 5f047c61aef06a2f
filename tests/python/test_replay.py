# SPDX-License-Identifier: MIT
"""Replays: a run's own records, under its own policy, give its own schedule."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schedlab.errors import NotFoundError, RecordError
from schedlab.hosts.host import Job
from schedlab.hosts.sim import SimHost
from schedlab.measure.machine_costs import costs_of, slice_of_linux
from schedlab.measure.recording import import_trace
from schedlab.measure.replay import load_recorded, program_of
from schedlab.metrics import consistency
from schedlab.metrics.timeline import Timeline
from schedlab.model import Machine
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Stop, read_records, write_records
from schedlab.runs.run import make_plan, run_plan
from schedlab.workload.find import load_workload
from schedlab.workload.spec import parse_workload

MS = 1_000_000
DECISIONS = (Kind.ARRIVE, Kind.WAKE, Kind.RUN, Kind.STOP, Kind.ATTR)


@pytest.fixture(scope="module")
def session(simulator):
    made = SimHost().session(timeout_seconds=60)
    yield made
    made.close()


@pytest.fixture
def simulate(session, tmp_path):
    def run(program, policy, *, n_cpus, tick_ns, seed=3):
        (tmp_path / "p").write_bytes(program.data)
        job = Job(
            "a test",
            build_policy(load_policy(policy)),
            tmp_path / "p",
            tmp_path / "r.slr",
            n_cpus,
            seed,
            tick_ns,
        )
        outcome = session.run(job)
        assert outcome.error is None, outcome.error
        return read_records(tmp_path / "r.slr")

    return run


def schedule(records):
    """Who arrived, woke, ran and stopped, when, where, why and by whom."""
    events = records.events[np.isin(records.events["kind"], DECISIONS)]
    # The queue that a task was taken from is the policy's own affair.
    arg = np.where(events["kind"] == Kind.RUN, 0, events["arg"])
    return [
        *zip(
            *(events[name].tolist() for name in ("t_ns", "task", "cpu", "kind", "flags")),
            arg.tolist(),
            strict=True,
        )
    ]


@pytest.mark.parametrize("policy", ["fifo", "mlfq", "cfs", "lottery"])
@pytest.mark.parametrize(
    "workload",
    # Locks, disk and sleep; priority inversion; children; attributes that change;
    # messages on 4 CPUs; periods; a barrier.
    ["mixed", "classics/inversion-lock", "report-1/creation", "report-5/ticket-change", "classics/requests",
     "classics/gamer", "report-3/matrix"],
)  # fmt: skip
def test_the_same_policy_gives_the_same_schedule(simulate, workload, policy):
    loaded = load_workload(workload)
    program = compile_workload(loaded, seed=3)
    machine = {"n_cpus": max(loaded.cpus, loaded.cpus_min, 1), "tick_ns": loaded.tick_ns}
    first = simulate(program, policy, **machine)
    again = simulate(program_of(first, name="again", source=program), policy, **machine)
    assert schedule(again) == schedule(first)
    assert again.end_ns == first.end_ns


def test_another_policy_does_the_same_work_in_another_order(simulate):
    loaded = load_workload("mixed")
    program = compile_workload(loaded, seed=3)
    first = simulate(program, "fifo", n_cpus=1, tick_ns=loaded.tick_ns)
    replayed = program_of(first, name="again", source=program)
    other = simulate(replayed, "rr", n_cpus=1, tick_ns=loaded.tick_ns)
    assert schedule(other) != schedule(first)
    expected = consistency.Expectations(
        work_ns=replayed.work_ns(), arrival_ns=replayed.task_rows["arrival_ns"]
    )
    assert consistency.check(Timeline(other), expected) == "ok"


def ops_of(program, pid):
    row = program.task_rows[pid - 1]
    return [line.split(maxsplit=1)[1] for line in program._op_lines(row)]


def test_what_a_recording_becomes(tmp_path):
    """Task 2 is woken by 1, then by nobody; 3 is 1's child; 4 goes on for ever."""
    path = tmp_path / "records.slr"
    write_records(path, [
        (0, 1, 0, Kind.ARRIVE, 0, 0), (0, 2, 0, Kind.ARRIVE, 0, 0),
        (0, 2, 0, Kind.RUN, 0, 0), (5, 2, 0, Kind.STOP, Stop.BLOCKED, 5),
        (5, 1, 0, Kind.RUN, 0, 0), (8, 2, 0, Kind.WAKE, 0, 1),
        (15, 3, 0, Kind.ARRIVE, 0, 1), (20, 1, 0, Kind.STOP, Stop.PREEMPTED, 15),
        (20, 2, 0, Kind.RUN, 0, 0), (24, 2, 0, Kind.STOP, Stop.BLOCKED, 4),
        (24, 1, 0, Kind.RUN, 0, 0), (31, 1, 0, Kind.STOP, Stop.EXITED, 7),
        (31, 3, 0, Kind.RUN, 0, 0), (33, 3, 0, Kind.STOP, Stop.YIELDED, 2),
        (33, 3, 0, Kind.RUN, 0, 0), (36, 3, 0, Kind.STOP, Stop.EXITED, 3),
        (40, 2, 0, Kind.WAKE, 0, 0), (40, 2, 0, Kind.RUN, 0, 0), (41, 2, 0, Kind.STOP, Stop.EXITED, 1),
        (42, 4, 0, Kind.ARRIVE, 0, 0), (42, 4, 0, Kind.RUN, 0, 0), (50, 4, 0, Kind.STOP, Stop.HORIZON, 8),
    ], n_cpus=1, tick_ns=4 * MS)  # fmt: skip
    tasks = [
        {"name": "make", "priority": 120},
        {"name": "cc", "priority": 125},
        {"name": "as", "priority": 89},
        {"name": "hog", "priority": 120},
    ]
    program = program_of(read_records(path), name="build", tasks=tasks)
    assert ops_of(program, 1) == ["run 3ns", "send 1-wakes-2 1B", "run 7ns", "spawn the next of pids 3 to 3",
                                  "run 12ns", "exit"]  # fmt: skip
    assert ops_of(program, 2) == ["run 5ns", "recv 1-wakes-2 1B", "run 4ns", "sleep 16ns", "run 1ns", "exit"]
    assert ops_of(program, 3) == ["run 2ns", "yield", "run 3ns", "exit"]
    assert program.task_rows["arrival_ns"][[0, 1, 3]].tolist() == [0, 0, 42]
    assert program.task_rows["parent"][2] == 0
    assert program.tasks["name"].tolist() == ["make", "cc", "as", "hog"]
    assert program.task_rows["nice"].tolist() == [0, 5, 0, 0]
    assert program.task_rows["priority"][2] == 89, "real-time: 0 is the highest level"
    assert program.horizon_ns == 50


def test_children_of_two_parents_by_turns_get_numbers_that_a_program_can_have(simulate):
    """Linux numbers tasks as they come; a program wants each parent's together."""
    rows = [(0, 1, 0, Kind.ARRIVE, 0, 0), (0, 2, 1, Kind.ARRIVE, 0, 0),
            (0, 1, 0, Kind.RUN, 0, 0), (0, 2, 1, Kind.RUN, 0, 0)]  # fmt: skip
    t = 0
    for pid in range(3, 43):
        t += 10 * MS
        parent, cpu = 1 + pid % 2, 2 + pid % 2
        rows += [
            (t, pid, cpu, Kind.ARRIVE, 0, parent),
            (t, pid, cpu, Kind.RUN, 0, 0),
            (t + MS, pid, cpu, Kind.STOP, Stop.EXITED, MS),
        ]
    rows += [(t + 2 * MS, pid, pid - 1, Kind.STOP, Stop.EXITED, t + 2 * MS) for pid in (1, 2)]
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_records(Path(folder) / "r", rows, n_cpus=4)
        program = program_of(read_records(Path(folder) / "r"), name="many")
    again = simulate(program, "fifo", n_cpus=4, tick_ns=MS)
    assert again.end_ns == t + 2 * MS
    arrivals = again.events[again.events["kind"] == Kind.ARRIVE]
    assert arrivals["t_ns"].tolist() == [0, 0, *range(10 * MS, t + 1, 10 * MS)]


def test_a_directory_of_runs_is_replayed(simulator, tmp_path):
    text = (
        '[workload]\ntitle = "a"\nquestion = "b"\n[[task]]\nname = "x"\ncount = 3\nphases = [{run = "3ms"}]\n'
    )
    (tmp_path / "w.toml").write_text(text)
    run_plan(make_plan([str(tmp_path / "w.toml")], ["fifo"], tmp_path / "out", keep_parquet=False))
    folder = tmp_path / "out" / "w" / "fifo" / "seed-1"
    workload = load_recorded(folder)
    assert workload.tick_ns == parse_workload(text).tick_ns and workload.cpus == 1
    result = run_plan(make_plan([workload], ["fifo", "rr"], tmp_path / "again", keep_parquet=False))
    assert result.is_good
    first = json.loads((folder / "run.json").read_text())
    assert result.runs[0]["metrics"] == first["metrics"]
    assert result.runs[0]["workload"] == "w-replayed"


def test_who_was_there_before_a_recording_of_linux_is_woken_in_its_replay(simulator, tmp_path):
    """Under `eevdf` the first slice of a new task is half of one: 8 ms, which end at the tick."""
    text = '[workload]\ntitle = "a"\nquestion = "b"\njitter = "0ms"\n[[task]]\nname = "x"\ncount = 2\nphases = [{run = "40ms"}]\n'
    (tmp_path / "w.toml").write_text(text)
    run_plan(make_plan([str(tmp_path / "w.toml")], ["fifo"], tmp_path / "out", keep_parquet=False))
    folder = tmp_path / "out" / "w" / "fifo" / "seed-1"
    run = json.loads((folder / "run.json").read_text())
    responses = {}
    for host in ("sim", "linux"):
        (folder / "run.json").write_text(json.dumps({**run, "host": host}))
        result = run_plan(
            make_plan(
                [load_recorded(folder)],
                ["eevdf"],
                tmp_path / host,
                keep_parquet=False,
                settings=["eevdf.slice_ns=16ms"],
            )
        )
        assert result.is_good
        responses[host] = result.runs[0]["metrics"]["response_ns_mean"]
    assert responses == {"sim": 5 * MS, "linux": 10 * MS}


def test_what_cannot_be_replayed_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="no records.slr"):
        load_recorded(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    write_records(tmp_path / "a" / "b" / "records.slr", [], n_cpus=1)
    with pytest.raises(NotFoundError, match="runs below it: .*a/b"):
        load_recorded(tmp_path / "a")
    with pytest.raises(RecordError, match="nobody ran in it"):
        load_recorded(tmp_path / "a" / "b")
    (tmp_path / "a" / "b" / "run.json").write_text("{")
    with pytest.raises(RecordError, match="run.json: damaged"):
        load_recorded(tmp_path / "a" / "b")
    write_records(tmp_path / "records.slr", [(5, 0, 0, Kind.LOST, 0, 7)], n_cpus=1)
    with pytest.raises(RecordError, match="7 records were lost"):
        load_recorded(tmp_path)


TRACES = Path(__file__).parent / "traces"


def cpu_times(records):
    """CPU time of each task that ran, largest first; a replay may number tasks anew."""
    stops = records.events[records.events["kind"] == Kind.STOP]
    times = np.bincount(stops["task"], stops["arg"])
    return sorted((int(ns) for ns in times if ns), reverse=True)


def assert_conserved(replayed, recorded):
    """Each task has what was recorded, but for the nanosecond that one asks for which had not ended."""
    before, after = cpu_times(recorded), [ns for ns in cpu_times(replayed) if ns > 1]
    assert len(after) == len(before), "every task that ran runs again"
    assert all(0 <= b - a <= 1 for a, b in zip(before, after, strict=True)), (before, after)


#: A worker with 0.23 ms, runnable at the end; a task that sleeps; two that need the CPU.
OPEN_ENDED = [
    (0, 1, 0, Kind.ARRIVE, 0, 0), (0, 2, 0, Kind.ARRIVE, 0, 0), (0, 3, 0, Kind.ARRIVE, 0, 0),
    (0, 1, 0, Kind.RUN, 0, 0), (230_000, 1, 0, Kind.STOP, Stop.PREEMPTED, 230_000),
    (230_000, 2, 0, Kind.RUN, 0, 0), (20 * MS, 2, 0, Kind.STOP, Stop.BLOCKED, 20 * MS - 230_000),
    (20 * MS, 3, 0, Kind.RUN, 0, 0), (40 * MS, 3, 0, Kind.STOP, Stop.PREEMPTED, 20 * MS),
    (60 * MS, 2, 0, Kind.WAKE, 0, 0), (60 * MS, 2, 0, Kind.RUN, 0, 0), (65 * MS, 2, 0, Kind.STOP, Stop.PREEMPTED, 5 * MS),
    (110 * MS, 3, 0, Kind.RUN, 0, 0), (115 * MS, 3, 0, Kind.STOP, Stop.HORIZON, 5 * MS),
]  # fmt: skip


@pytest.mark.parametrize("policy", ["eevdf", "rr", "cfs"])
def test_a_task_that_was_still_runnable_gets_no_cpu_time_that_was_not_recorded(simulate, tmp_path, policy):
    write_records(tmp_path / "open.slr", OPEN_ENDED, n_cpus=1, tick_ns=4 * MS)
    recorded = read_records(tmp_path / "open.slr")
    program = program_of(recorded, name="open")
    assert ops_of(program, 1)[0] == "run 230.001us" and program.horizon_ns == 115 * MS
    assert_conserved(simulate(program, policy, n_cpus=1, tick_ns=4 * MS), recorded)


@pytest.mark.parametrize("policy", ["eevdf", "rr", "cfs"])
@pytest.mark.parametrize("trace", ["perf.txt", "trace-cmd.txt"])
def test_a_trace_of_another_tool_is_replayed_with_the_cpu_time_it_has(
    simulator, build, tmp_path, trace, policy
):
    import_trace(TRACES / trace, tmp_path / "run")
    result = run_plan(
        make_plan([load_recorded(tmp_path / "run")], [policy], tmp_path / "out", keep_parquet=False)
    )
    assert result.is_good, result.runs[0]["error"]
    part = result.runs[0]["replay"]
    assert part["replayed_ns"] == part["recorded_ns"] and part["tasks_started"] == part["tasks"]
    replayed = read_records(Path(result.runs[0]["directory"]) / "records.slr")
    assert_conserved(replayed, read_records(tmp_path / "run" / "records.slr"))


def wakes_of_a_sleeper(*, delay_ns=20_000, waker_cpu=1, between=False):
    """Task 1 wakes 2 on CPU 0 each 10 ms, and that runs `delay_ns` later; or another program runs between."""
    rows = [(0, 1, waker_cpu, Kind.ARRIVE, 0, 0), (0, 2, 0, Kind.ARRIVE, 0, 0), (0, 2, 0, Kind.RUN, 0, 0),
            (1 * MS, 2, 0, Kind.STOP, Stop.BLOCKED, 1 * MS), (1 * MS, 1, waker_cpu, Kind.RUN, 0, 0)]  # fmt: skip
    for at in range(10 * MS, 310 * MS, 10 * MS):
        rows += [(at, 2, 0, Kind.WAKE, 0, 1)]
        rows += [(at + delay_ns, 0, 0, Kind.OVERHEAD, 4, delay_ns)] * between
        rows += [
            (at + delay_ns, 2, 0, Kind.RUN, 0, 0),
            (at + MS, 2, 0, Kind.STOP, Stop.BLOCKED, MS - delay_ns),
        ]
    return [*rows, (311 * MS, 1, waker_cpu, Kind.STOP, Stop.EXITED, 310 * MS)]


@pytest.mark.parametrize(
    ("given", "costs"),
    [({}, {"ipi_ns": 20_000}), ({"between": True}, {}), ({"delay_ns": 0}, {}), ({"waker_cpu": 0}, {})],
)
def test_what_a_wake_up_of_an_idle_cpu_takes_is_found_in_a_recording(tmp_path, given, costs):
    write_records(tmp_path / "r", wakes_of_a_sleeper(**given), n_cpus=2, tick_ns=4 * MS)
    assert costs_of(read_records(tmp_path / "r")) == costs


def test_a_replay_charges_what_the_recorded_machine_did_unless_it_is_told(simulator, tmp_path):
    write_records(tmp_path / "records.slr", wakes_of_a_sleeper(), n_cpus=2, tick_ns=4 * MS)
    found = {"host": "linux", "recording": {"costs": {"ipi_ns": 20_000}}}
    (tmp_path / "run.json").write_text(json.dumps(found))
    workload = load_recorded(tmp_path)
    for given, latency_ns in (((), 20_000), (("ipi_ns=5us",), 5_000)):
        plan = make_plan([workload], ["fifo"], tmp_path / str(latency_ns), costs=given, keep_parquet=False)
        (run,) = run_plan(plan).runs
        assert run["status"] == "ok", run["error"]
        assert (run["costs"], run["metrics"]["wakeup_ns_p50"]) == ([f"ipi_ns={latency_ns}"], latency_ns)


def test_the_slice_of_linux_is_read_where_it_is_told(tmp_path):
    assert slice_of_linux(proc=tmp_path, debug=tmp_path) is None
    (tmp_path / "sched").mkdir()
    (tmp_path / "sched" / "base_slice_ns").write_text("2800000\n")
    assert slice_of_linux(proc=tmp_path, debug=tmp_path) == 2_800_000
    for pid, slice_ns in (("self", 1_400_000), ("7", 100_000)):
        (tmp_path / pid).mkdir()
        text = f"x (1, #threads: 1)\nse.load.weight  :  1024\nse.slice       :    {slice_ns}\n"
        (tmp_path / pid / "sched").write_text(text)
    assert slice_of_linux(proc=tmp_path, debug=tmp_path) == 1_400_000
    assert slice_of_linux(7, proc=tmp_path, debug=tmp_path) == 100_000


def test_time_that_others_took_within_a_burst_is_not_replayed(tmp_path):
    """Task 1 wakes 2 after 50 ms, of which it has had 1: that others had the rest is recorded later."""
    write_records(tmp_path / "r", [
        (0, 1, 0, Kind.ARRIVE, 0, 0), (0, 2, 1, Kind.ARRIVE, 0, 0), (0, 1, 0, Kind.RUN, 0, 0), (0, 2, 1, Kind.RUN, 0, 0),
        (1 * MS, 2, 1, Kind.STOP, Stop.BLOCKED, 1 * MS), (50 * MS, 2, 1, Kind.WAKE, 0, 1),
        (50 * MS, 2, 1, Kind.RUN, 0, 0), (51 * MS, 2, 1, Kind.STOP, Stop.EXITED, 1 * MS),
        (52 * MS, 0, 0, Kind.OVERHEAD, 1, 49 * MS), (52 * MS, 1, 0, Kind.STOP, Stop.EXITED, 3 * MS),
    ], n_cpus=2, tick_ns=4 * MS)  # fmt: skip
    program = program_of(read_records(tmp_path / "r"), name="taken")
    assert program.work_ns().tolist() == [3 * MS, 2 * MS]


def test_a_replay_that_does_not_do_what_was_recorded_says_so_and_predicts_nothing(simulator, tmp_path):
    """Two tasks used two CPUs for as long as they were recorded, which one CPU cannot give."""
    write_records(tmp_path / "records.slr", [
        (0, 1, 0, Kind.ARRIVE, 0, 0), (0, 2, 1, Kind.ARRIVE, 0, 0), (0, 1, 0, Kind.RUN, 0, 0), (0, 2, 1, Kind.RUN, 0, 0),
        (80 * MS, 1, 0, Kind.STOP, Stop.HORIZON, 80 * MS), (80 * MS, 2, 1, Kind.STOP, Stop.HORIZON, 80 * MS),
    ], n_cpus=2, tick_ns=4 * MS)  # fmt: skip
    plan = make_plan([load_recorded(tmp_path)], ["fifo"], tmp_path / "out", cpus=1, keep_parquet=False)
    run = run_plan(plan).runs[0]
    assert (run["status"], run["error_kind"], run["metrics"]) == ("failed", "consistency", {})
    assert "80000002 ns were not replayed" in run["error"] and "1 of 2 tasks never start" in run["error"]
    assert run_plan(replace(plan, machine=Machine(cpus=2))).is_good
