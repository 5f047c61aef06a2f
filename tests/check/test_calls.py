# SPDX-License-Identifier: MIT
"""What a policy was called for in a run, and what it did then, agrees with the run's records."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import schedlab
from check.test_check import BUGS, check, task_of
from policies.test_published import CRATE, written
from schedlab.check.avoid import avoidable
from schedlab.check.calls import calls_of
from schedlab.check.otherwise import what_if
from schedlab.check.search import do_batch
from schedlab.check.shrink import shrink
from schedlab.cli.app import app
from schedlab.cli.pictures import open_run
from schedlab.errors import UsageError
from schedlab.metrics.cause import longest_wait
from schedlab.metrics.timeline import Timeline
from schedlab.records.file import Kind
from schedlab.workload.events import Event

pytestmark = pytest.mark.full


def run_of(folder: Path, workload: str, policy: str, **options) -> Path:
    result = schedlab.run(workload, policy, seeds=[1], out=folder, **options)
    return Path(result.runs["directory"][0])


@pytest.mark.parametrize(("policy", "cpus"), [("cfs", 1), ("mlfq", 2), ("srtf", 4)])
def test_each_run_of_a_task_is_a_callback_and_each_insertion_is_by_one_of_its_own(
    policy, cpus, tmp_path, simulator
):
    folder = run_of(tmp_path, "mixed", policy, cpus=cpus)
    records, _ = open_run(folder)
    calls = calls_of(folder, 0, records.end_ns)
    assert [call.t_ns for call in calls] == sorted(call.t_ns for call in calls)
    if running := Counter(call.pid for call in calls if call.name == "running"):
        assert running == Counter(records.events["task"][records.events["kind"] == Kind.RUN].tolist())
    inserts = [(call, deed) for call in calls for deed in call.deeds if deed.word == "insert"]
    assert len(inserts) > 20
    assert all(deed.pid == call.pid for call, deed in inserts if call.name in ("enqueue", "select_cpu"))
    values = [call.value for call in calls if call.name == "select_cpu"]
    assert all(value.isdecimal() for value in values) and bool(values) is (cpus > 1)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("credit", r"timer\(callback=\w+, map=\w+, key=0\) = 0"),
        (str(BUGS / "cas_given_up.bpf.c"), r"timer\(callback=count, map=clocks, key=0\) = 0"),
    ],
)
def test_a_timer_says_which_function_is_called_for_what_and_what_it_returns(
    policy, said, tmp_path, simulator
):
    calls = calls_of(run_of(tmp_path, "mixed", policy, cpus=2), 0, 200_000_000)
    timers = [call for call in calls if call.name == "timer"]
    assert len(timers) >= 5
    assert all(re.search(said, call.as_lines()[0]) for call in timers), timers[0].as_lines()
    if policy == "credit":
        assert any(deed.word == "kick" for call in timers for deed in call.deeds)


def test_a_run_whose_cpus_interleave_is_done_again_switch_by_switch(tmp_path, simulator):
    done = check(BUGS / "torn_counter.bpf.c", "--races", "--worlds", 100, "--json", cwd=tmp_path)
    folder = tmp_path / json.loads(done.stdout)["found"][0]["directory"]
    records, _ = open_run(folder)
    calls = calls_of(folder, 0, records.end_ns)
    assert {call.name for call in calls} >= {"enqueue"} and len({call.cpu for call in calls}) > 1


def test_a_run_that_is_another_by_now_is_not_shown(tmp_path, simulator):
    folder = run_of(tmp_path, "mixed", "rr")
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(run | {"tick_ns": run["tick_ns"] * 3}))
    with pytest.raises(UsageError, match="other records than the folder has"):
        calls_of(folder, 0, 1_000_000)


def test_explain_lists_them_and_the_chart_has_arrows(tmp_path, simulator):
    folder = run_of(tmp_path, "classics/requests", "cfs", cpus=2)
    said = CliRunner().invoke(app, ["explain", str(folder), "--calls"]).output
    assert re.search(r"ms  CPU \d  enqueue\(.*, enq_flags=.*\)\n +insert .*: DSQ 0x", said)
    answer = json.loads(CliRunner().invoke(app, ["explain", str(folder), "--calls", "--json"]).output)
    assert {call["callback"] for call in answer["calls"]} >= {"enqueue", "dispatch"}
    svg = tmp_path / "chart.svg"
    words = ["gantt", str(folder), "--to", "100ms", "--svg", str(svg)]
    assert CliRunner().invoke(app, words).exit_code == 0 and "insertion" not in svg.read_text()
    assert CliRunner().invoke(app, [*words, "--calls"]).exit_code == 0
    text = svg.read_text()
    assert text.count('class="insertion"') > 20 and 'class="kick"' in text and ">CPU 1<" in text
    refused = CliRunner().invoke(app, ["gantt", str(folder), "--calls"]).exception
    assert isinstance(refused, UsageError) and "give a file with --svg" in str(refused)


def test_a_stall_is_shown_with_the_callback_that_queued_the_task(tmp_path, simulator):
    done = check(BUGS / "urgent_always_first.bpf.c", "--worlds", 300, "--budget", "600s", cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert re.search(
        r"It was put into DSQ 0x1: [\d.]+ ms, CPU \d, enqueue\(\w+\[\d\], enq_flags=\w+\)\.", said
    ), said


def test_what_it_would_have_waited_is_what_it_waits_in_such_a_run(tmp_path, simulator):
    folder = run_of(tmp_path / "as it was", "mixed", "mlfq", cpus=2)
    pid = longest_wait(Timeline(open_run(folder)[0])).task
    found = {each.change: each.wait_ns for each in what_if(folder, pid)}
    assert {"quantum_ns=5ms", "quantum_ns=20ms", "allotment=cumulative", "rotate=yes", "1 CPU", "3 CPUs"} <= {
        *found
    }
    for change, options in (
        ("quantum_ns=5ms", {"set": {"mlfq.quantum_ns": "5ms"}, "cpus": 2}),
        ("3 CPUs", {"cpus": 3}),
    ):
        stretch = longest_wait(
            Timeline(open_run(run_of(tmp_path / change, "mixed", "mlfq", **options))[0]), pid
        )
        assert found[change] == stretch.end_ns - stretch.begin_ns, change
    said = CliRunner().invoke(app, ["explain", str(folder), "--what-if"]).output
    assert "With 3 CPUs it would have waited 11 ms at most." in said


@pytest.mark.parametrize(
    ("name", "is_decided_later"), [("released_for_good", True), ("cpu_zero_is_none", False)]
)
def test_until_when_a_failure_could_be_avoided(name, is_decided_later, simulator):
    task = task_of(BUGS / f"{name}.bpf.c")
    world, finding = do_batch(task, 0).failed[0]
    with task.laboratory() as laboratory:
        small = shrink(laboratory, world, finding, slice_ns=20_000_000)
        instants = laboratory.instants_of(small.world)
        found = avoidable(laboratory, small.world, small.finding, instants, 60.0)

        def fails(at_ns: int) -> set[bool]:
            tried = [replace(small.world, events=(*small.world.events, Event("take", 0, at_ns, time_ns)))
                     for time_ns in (small.world.tick_ns // 2, small.world.tick_ns, 30_000_000)]  # fmt: skip
            return {trial.finding is not None for trial in laboratory.try_worlds(tried)}

        assert instants == sorted({*instants}) and found.certain_ns in instants
        assert fails(found.certain_ns) == {True}
        assert (found.event is not None) is is_decided_later
        if is_decided_later:
            assert found.until_ns < found.certain_ns and False in fails(found.until_ns)
            assert re.match(r"When was it decided\? Until [\d.]+ ms it could be avoided", found.sentence)
        else:
            assert "of 3 disturbances at the beginning none avoids it" in found.sentence


def test_a_run_of_a_crate_is_done_again_if_the_crate_is_the_same(tmp_path, simulator):
    """What is copied of a crate is none: its version of scx_cargo is named elsewhere."""
    main = written(tmp_path / "registry", CRATE) / "scx_own-1.1.4/src/bpf/main.bpf.c"
    folder = run_of(tmp_path / "out", "mixed", str(main))
    assert {call.name for call in calls_of(folder, 0, 10_000_000)} >= {"init"}
    main.write_text(main.read_text().replace("is gone", "is gone for good"))
    with pytest.raises(UsageError, match="is not any more what has run there; do the run again"):
        calls_of(folder, 0, 10_000_000)
