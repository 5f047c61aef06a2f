# SPDX-License-Identifier: MIT
"""Why a task waited: the parts add up, agree with a second way of counting, and give known causes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import schedlab
from conftest import first_is_quick
from python.record_files import timeline_of
from schedlab.cli.app import app
from schedlab.cli.pictures import open_run
from schedlab.metrics.cause import explain_wait, longest_wait, stretch_at
from schedlab.metrics.timeline import Timeline
from schedlab.records.file import Kind, Stop
from schedlab.runs.folders import records_until_failure
from schedlab.stats.explain import Explanation, as_lines

BUGS = Path(__file__).parents[1] / "check" / "bugs"
MS = 1_000_000
THREE_IN_A_ROW = """
[workload]
[[task]]
name = "long"
phases = [{run = "30ms"}]
[[task]]
name = "middle"
arrival = "5ms"
phases = [{run = "10ms"}]
[[task]]
name = "short"
arrival = "6ms"
phases = [{run = "1ms"}]
"""


def run_of(folder, workload, policy, seed=1, **options):
    """The directory of one run, and its timeline; seed 0: no jitter."""
    result = schedlab.run(workload, policy, seeds=[seed], out=folder, **options)
    directory = Path(result.runs["directory"][0])
    return directory, Timeline(open_run(directory)[0])


def file_of(folder, text):
    path = folder / "w.toml"
    path.write_text(text)
    return path


def invoke(*words):
    return CliRunner().invoke(app, ["explain", *map(str, words)], env={"COLUMNS": "80"})


def counted(timeline, wait):
    """The parts of a wait, by going through the records one by one."""
    events = timeline.records.events
    since_row = {}  # of each task that waits: the row at which it began
    relation = {}  # of each task that runs
    on_cpu, until, total = {}, {}, Counter()
    begin_row = None
    for row, event in enumerate(events):
        task, cpu, kind, t_ns = (int(event[key]) for key in ("task", "cpu", "kind", "t_ns"))
        if kind in (Kind.ARRIVE, Kind.WAKE):
            since_row.setdefault(task, row)
        elif kind == Kind.RUN:
            came = since_row.pop(task)
            relation[task] = "ran" if begin_row is None else "waited" if came < begin_row else "later"
            on_cpu[cpu], until[cpu] = task, t_ns
        elif kind == Kind.STOP:
            overlap = min(t_ns, wait.end_ns) - max(until[cpu], wait.begin_ns)
            if overlap > 0:
                total[on_cpu.pop(cpu), relation[task]] += overlap
            if event["flags"] <= Stop.YIELDED:
                since_row[task] = row
        if (
            task == wait.task
            and t_ns == wait.begin_ns
            and begin_row is None
            and kind in (Kind.WAKE, Kind.STOP, Kind.ARRIVE)
        ):
            begin_row = row
    return dict(total)


@pytest.mark.parametrize(("policy", "cpus"), first_is_quick(["rr", "eevdf", "fifo", "mlfq"], [3, 1]))
def test_the_parts_of_every_wait_add_up_and_are_those_counted_record_by_record(tmp_path, policy, cpus):
    _, timeline = run_of(tmp_path, "mixed", policy, cpus=cpus)
    tasks = timeline.by_task
    starts = np.flatnonzero(timeline.is_runnable_after & ~timeline.arrived_awake & (timeline.duration_ns > 0))
    assert len(starts) > 20
    for at in starts[:: 1 + len(starts) // 40]:
        stretch = stretch_at(
            timeline, int(tasks.task[at]), int(tasks.t_ns[at] + timeline.duration_ns[at] - 1)
        )
        wait = explain_wait(timeline, stretch)
        used = sum(part.ns for part in wait.parts)
        assert used + wait.total_ns("idle") == wait.capacity_ns
        assert wait.overhead_ns == 0
        assert {(part.task, part.relation): part.ns for part in wait.parts} == counted(timeline, wait)


def test_costs_of_switches_and_ticks_are_a_part(tmp_path):
    costs = {"switch_ns": "20us", "tick_ns": "3us"}
    _, timeline = run_of(tmp_path, "mixed", "rr", cpus=2, costs=costs)
    wait = explain_wait(timeline, longest_wait(timeline))
    assert wait.overhead_ns > 0
    assert sum(part.ns for part in wait.parts) + wait.total_ns("idle") + wait.overhead_ns == wait.capacity_ns


def test_who_waited_already_and_who_ran_is_known_of_three_in_a_row(tmp_path):
    _, timeline = run_of(tmp_path, file_of(tmp_path, THREE_IN_A_ROW), "fifo", seed=0, cpus=1)
    wait = explain_wait(timeline, longest_wait(timeline))
    assert (wait.task, wait.begin_ns, wait.end_ns, wait.why) == (3, 6 * MS, 40 * MS, "arrived")
    assert [(part.task, part.relation, part.ns) for part in wait.parts] == [
        (1, "ran", 24 * MS),
        (2, "waited", 10 * MS),
    ]
    assert (wait.queue, wait.ended_by, wait.before, wait.main_cause) == ((2,), "exited", 2, "ran")


def test_a_policy_that_prefers_others_is_the_cause(tmp_path):
    _, timeline = run_of(tmp_path, "mixed", "mlfq", cpus=1)
    assert explain_wait(timeline, longest_wait(timeline)).main_cause == "later"


def test_a_forgotten_kick_is_seen_as_an_idle_cpu_beside_the_task(tmp_path):
    text = """
    [workload]
    [[task]]
    name = "a"
    count = 2
    phases = [{loop = 20, do = [{run = "3ms"}, {sleep = "1ms"}]}]
    [[task]]
    name = "b"
    phases = [{run = "100ms"}]
    """
    invoked = CliRunner().invoke(
        app,
        ["run", str(file_of(tmp_path, text)), "-p", str(BUGS / "forgotten_kick.bpf.c"), "--cpus", "2", "--seeds",
         "1", "--out", str(tmp_path / "out")],
    )  # fmt: skip
    assert invoked.exit_code == 1
    directory = next((tmp_path / "out").glob("**/records.slr")).parent
    said = invoke(directory).output
    assert "CPU 1 was idle for" in said
    assert "kicked no idle CPU" in said.replace("\n", " ").replace("  ", " ")


def test_a_cpu_that_was_idle_for_a_moment_is_not_said_to_have_been_idle_all_the_time(tmp_path):
    _, timeline = run_of(tmp_path, "mixed", "mlfq", cpus=1)
    wait = explain_wait(timeline, longest_wait(timeline))
    idle = ((0, wait.ns // 100), (1, wait.ns))
    said = "\n".join(
        as_lines(Explanation(longest_wait(timeline), wait=replace(wait, cpus=(0, 1), idle_ns=idle)), {})
    )
    assert "CPU 1 was idle for" in said and "CPUs 0, 1" not in said


def test_a_task_that_is_kept_from_a_lock_is_followed_to_the_owner_and_who_ran_instead(tmp_path):
    directory, _ = run_of(tmp_path, "classics/inversion-lock", "rt_fifo")
    found = json.loads(invoke(directory, "--task", "high", "--at", "900ms", "--json").output)
    assert (found["state"], found["by"]) == ("blocked", 1)
    assert found["waker"]["waited"] > 100 * MS
    assert found["because"]["task"] == 1
    assert [(part["task"], part["relation"]) for part in found["because"]["wait"]["parts"]] == [(2, "waited")]
    said = invoke(directory, "--task", "high", "--at", "900ms").output
    assert "until low[1] woke it" in said
    assert "middle[2]" in said
    assert max(map(len, said.splitlines())) <= 80


def test_a_task_that_waits_until_the_records_end_is_said_to_have_got_nothing():
    timeline = timeline_of(
        [(0, 1, 0, Kind.ARRIVE, 0, 0), (0, 2, 0, Kind.ARRIVE, 0, 0), (0, 1, 0, Kind.RUN, 0, 0),
         (9 * MS, 1, 0, Kind.STOP, Stop.HORIZON, 9 * MS)],
        end_ns=9 * MS,
    )  # fmt: skip
    wait = explain_wait(timeline, longest_wait(timeline))
    assert (wait.task, wait.cpu, wait.ended_by, wait.ns) == (2, -1, "", 9 * MS)
    assert stretch_at(timeline, 1, 4 * MS).state == "ran"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "edtor"], "--task edtor: no such task (did you mean 'editor'?)"),
        (["--task", "editor"], "--task editor: 2 tasks have that name: 4, 5"),
        (["--task", "999"], "no task 999 in these records; they have 1, 2, 3"),
        (["--at", "5ms"], "--at says when, but not of which task: add --task"),
        (["--task", "1", "--at", "400s"], "--at 400s: then task 1 had not arrived, or had ended"),
        (["--task", "1", "--at", "5 bananas"], "--at"),
    ],
)
def test_a_question_that_has_no_answer_names_what_is_wrong(mixed_run, words, said):
    # What main() prints, with exit code 2.
    assert said in str(invoke(mixed_run, *words).exception)


@pytest.fixture(scope="module")
def mixed_run(tmp_path_factory):
    return run_of(tmp_path_factory.mktemp("explain"), "mixed", "rr")[0]


def test_records_that_contradict_themselves_explain_nothing(mixed_run, tmp_path):
    damaged = bytearray((mixed_run / "records.slr").read_bytes())
    run = tmp_path / "run"
    run.mkdir()
    # The first STOP is another task's.
    for offset in range(64, len(damaged), 24):
        if damaged[offset + 14] == Kind.STOP:
            damaged[offset + 8] ^= 1
            break
    (run / "records.slr").write_bytes(damaged)
    invoked = invoke(run)
    assert "contradict themselves" in invoked.output + str(invoked.exception)


STARVED = """
[workload]
jitter = "0s"
tick = "1ms"
horizon = "50s"
[[lock]]
name = "m"
[[task]]
name = "a"
phases = [{loop = "forever", do = [{run = "100ms"}]}]
[[task]]
name = "b"
count = 2
phases = [{loop = "forever", do = [{lock = "m"}, {run = "1ms"}, {unlock = "m"}]}]
"""


def test_a_run_that_its_horizon_ends_is_explained(tmp_path):
    """Tasks that sleep at its end were not lost."""
    text = STARVED.replace("50s", "100ms") + '[[task]]\nname = "c"\nphases = [{sleep = "1s"}]\n'
    directory, _ = run_of(tmp_path / "out", file_of(tmp_path, text), "rr")
    said = invoke(directory)
    assert said.exit_code == 0 and "Cause: " in said.output, said.output


def test_a_stall_is_explained_until_the_policy_was_ended(tmp_path):
    """The simulator goes on under built-in FIFO, where the task runs."""
    policy = BUGS / "urgent_always_first.bpf.c"
    directory, _ = run_of(tmp_path / "out", file_of(tmp_path, STARVED), str(policy))
    run = json.loads((directory / "run.json").read_text())
    failed_at_ns = run["host_answer"]["failed_at_ns"]
    assert run["error_kind"] == "stall" and 30_000 * MS < failed_at_ns < run["host_answer"]["end_ns"]
    records = records_until_failure(directory)
    assert records.end_ns == failed_at_ns - 1 and int(records.events["t_ns"].max()) < failed_at_ns
    assert not (records.events[records.events["t_ns"] > 1000 * MS]["task"] == 1).any()
    said = " ".join(invoke(directory).output.split())
    assert (
        "a[1] waited for " in said
        and "Cause: the policy preferred tasks that became runnable later: 100 %" in said
    )
    assert "It has not run any more: the records end." in said


def test_a_task_that_runs_until_the_run_fails_has_the_cpu_and_not_idle(tmp_path, simulator):
    """Such a run has no end in the records: its time counted as idle, and the policy was told to kick a CPU."""
    source = tmp_path / "keeps.bpf.c"
    source.write_text(
        (BUGS / "none.bpf.c").read_text().replace("/* Nothing of its own. */", """
#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_INF, enq_flags);
}
""")
    )  # fmt: skip
    for name in ("bug.h", "bug_ops.h"):
        (tmp_path / name).write_text((BUGS / name).read_text())
    text = """
    [workload]
    horizon = "60s"
    [[task]]
    name = "a"
    count = 2
    phases = [{loop = "forever", do = [{run = "100ms"}]}]
    """
    result = schedlab.run(file_of(tmp_path, text), str(source), cpus=1, seeds=[1], out=tmp_path / "out")
    directory = Path(result.runs["directory"][0])
    said = invoke(directory).output
    assert "] waited for 45 s" in said and "idle" not in said
    assert (
        "Cause: what ran already kept the CPU, without being preempted: 100 % of the CPU time."
        in " ".join(said.split())
    )
    records = records_until_failure(directory)
    spans = Timeline(records).spans
    assert spans.is_run.sum() == 1 and spans.end_ns[spans.is_run].tolist() == [records.end_ns]
