# SPDX-License-Identifier: MIT
"""Plans are checked whole, runs do not harm each other, verdicts come before numbers."""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.calibration import DEFAULT_CALIBRATION
from schedlab.errors import SpecError, UsageError
from schedlab.hosts.choose import HOST_NAMES, ON_ALL, host_named
from schedlab.hosts.host import Outcome
from schedlab.model import OPTIONS
from schedlab.paths import policies_folder
from schedlab.program.compiler import compile_workload
from schedlab.records import parquet
from schedlab.records.file import Kind, Stop, read_records, write_records
from schedlab.runs import run as run_module
from schedlab.runs.judge import has_host_work, is_capped, is_limited
from schedlab.runs.run import folder_name, make_plan, run_plan
from schedlab.workload.spec import parse_workload

MS = 1_000_000


class FakeHost:
    """Writes what a test wants instead of simulating."""

    name = "sim"
    is_deterministic = True

    def __init__(self, write):
        self.write = write

    def environment(self):
        return {}

    def latency_ns(self, job):
        return 0

    tolerance_ns = latency_ns
    has_exact_work = True

    def calibration(self, job):
        return DEFAULT_CALIBRATION

    def session(self, *, timeout_seconds):
        return self

    def run(self, job):
        return self.write(job) or Outcome()

    def interrupt(self):
        pass

    close = interrupt


@pytest.fixture
def with_host(monkeypatch):
    """Function that puts a fake in the place of every host."""

    def put(write):
        monkeypatch.setattr("schedlab.runs.plan.open_host", lambda name: FakeHost(write))

    return put


def plan(out, **fields):
    plain = {"workloads": ["textbook/rr"], "policies": ["rr"], "first_seed": 0}
    return make_plan(out=Path(out), **(plain | fields))


def first_in_first_out(job, *, lie_ns=0):
    """Records of textbook/rr, one task after the other."""
    events = [(0, pid, 0, Kind.ARRIVE, 0, 0) for pid in (1, 2, 3, 4)]
    now = 0
    for pid, work in enumerate((5, 3, 1, 4), 1):
        events.append((now, pid, 0, Kind.RUN, 0, 0))
        now += work * MS - lie_ns
        events.append((now, pid, 0, Kind.STOP, Stop.EXITED, work * MS))
    write_records(job.records, events, n_cpus=1, tick_ns=job.tick_ns)


# ---- plans ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"workloads": []}, ["no workload given"]),
        ({"policies": []}, ["no policy given"]),
        ({"cpus": 0}, ["--cpus must be 1 to 1024 (got 0)"]),
        ({"cpus": 1025, "n_seeds": 0}, ["--cpus must be", "--seeds must be 1 to 100000 (got 0)"]),
        ({"first_seed": -1}, ["--seed must be 0 to"]),
        ({"timeout": 0}, ["--timeout must be above 0"]),
        ({"costs": ["swich_ns=1"]}, ["--cost swich_ns=1: unknown name", "did you mean 'switch_ns'"]),
        ({"costs": ["switch_ns=-1"]}, ["--cost switch_ns=-1"]),
        ({"costs": ["switch_ns"]}, ["--cost switch_ns: should read NAME=VALUE"]),
        ({"io": ["latency=1us"]}, ["--io latency=1us: unknown name", "did you mean 'latency_ns'"]),
        ({"io": ["depth=0", "depth=4us"]}, ["depth must be 1 to 1000000 (got 0)", "no whole number"]),
        ({"io": ["call_ns=2s"], "costs": ["x=1"]}, ["call_ns must be 0 to 1 s (got 2s)", "--cost x=1"]),
        ({"topology": "smt=x"}, ["--topology smt=x: should read"]),
        ({"topology": "smt=0,llc=1025"}, ["smt must be 1 to 1024 (got 0)", "llc must be 1 to 1024"]),
        ({"topology": "llc=2,smt=3"}, ["llc=2 is no multiple of smt=3"]),
        ({"tick": 0}, ["--tick must be 1us to 10s (got 0 ns)"]),
        ({"tick": 10**10 + 1}, ["--tick must be 1us to 10s"]),
        ({"costs": ["switch_ns=1000000001"]}, ["switch_ns must be 0 to 1 s (got 1000000001)"]),
        (
            {"host": "uthreads", "costs": ["switch_ns=1"], "io": ["depth=4"]},
            [
                "--cost switch_ns=1: means nothing on --host uthreads; hosts that have it: sim, wasm",
                "--io depth=4: means nothing on --host uthreads; hosts that have it: sim, wasm, kernel, guest",
            ],
        ),
        (
            {"host": "linux", "topology": "smt=2", "tick": 1000000},
            [
                "--topology smt=2: means nothing on --host linux; hosts that have it: sim, wasm, uthreads, kernel, guest",
                "--tick 1ms: means nothing on --host linux; hosts that have it: sim, wasm, uthreads, kernel",
            ],
        ),
        (
            {"host": "guest", "costs": ["switch_ns=1"], "topology": "smt=2,node=2"},
            [
                "--cost switch_ns=1: means",
                "--topology smt=2: means nothing on --host guest, which has node=N alone",
            ],
        ),
        (
            {"host": "guest", "threads": True},
            ["--threads: means nothing on --host guest; hosts that have it: linux"],
        ),
        (
            {"host": "kernel", "costs": ["switch_ns=1"]},
            ["--cost switch_ns=1: means nothing on --host kernel"],
        ),
        ({"parallel": True}, ["--parallel: means nothing on --host sim; hosts that have it: kernel, guest"]),
        ({"policies": ["rrr", "fifoo"]}, ["did you mean 'rr'", "did you mean 'fifo'"]),
        ({"policies": ["rr", "rr"]}, ["policy 'rr' is given twice"]),
        ({"workloads": ["textbook/rr", "textbook/rr"]}, ["workload 'textbook/rr' is given twice"]),
        ({"workloads": ["textbook/rrr"]}, ["unknown workload 'textbook/rrr'"]),
        ({"settings": ["rr.slice_ns=0"]}, ["--set rr.slice_ns=0: 0 is out of range"]),
    ],
)
def test_wrong_plans_are_refused_before_anything_runs(tmp_path, with_host, fields, messages):
    with_host(None)
    with pytest.raises(UsageError) as caught:
        run_plan(plan(tmp_path / "out", **fields))
    for message in messages:
        assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_all_faults_of_all_workloads_are_reported(tmp_path, with_host):
    with_host(None)
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(
            '[workload]\ntitle = "x"\nquestion = "y"\n'
            '[[task]]\nname = "t"\nphases = [{runn = "5ms"}, {run = "5mss"}]\n'
        )
    with pytest.raises(SpecError) as caught:
        run_plan(plan(tmp_path / "out", workloads=[str(tmp_path / "a.toml"), str(tmp_path / "b.toml")]))
    text = str(caught.value)
    assert text.count("runn") == text.count("5mss") == 2


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path, with_host):
    with_host(first_in_first_out)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--out .*file/out: cannot be made"):
        run_plan(plan(tmp_path / "file" / "out"))


@given(st.text(max_size=30))
def test_names_never_leave_the_folder(name):
    path = Path("/base") / folder_name(name)
    assert ".." not in path.parts
    assert path.is_relative_to("/base")
    assert "\0" not in str(path)


@pytest.fixture
def same_stem(tmp_path):
    """Two different files called x.toml, and one of them by another path."""
    text = '[workload]\ntitle = "x"\nquestion = "y"\n[[task]]\nname = "t"\nphases = [{run = "%s"}]\n'
    for folder, length in (("a", "5ms"), ("b", "7ms")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.toml").write_text(text % length)
    return tmp_path


def write_one_task(job):
    """Records of a program with one task that runs as long as its file's folder says."""
    ns = 5 * MS if "/b/" not in str(job.records) else 7 * MS
    events = [(0, 1, 0, Kind.ARRIVE, 0, 0), (0, 1, 0, Kind.RUN, 0, 0), (ns, 1, 0, Kind.STOP, Stop.EXITED, ns)]
    write_records(job.records, events, n_cpus=1, tick_ns=job.tick_ns)


def test_files_of_one_stem_do_not_share_a_program(same_stem, with_host):
    with_host(write_one_task)
    files = [str(same_stem / folder / "x.toml") for folder in "ab"]
    result = run_plan(plan(same_stem / "out", workloads=files))
    assert [run["workload"] for run in result.runs] == ["x", "b/x"]
    assert [run["metrics"]["makespan_ns"] for run in result.runs] == [5 * MS, 7 * MS]
    assert len({run["program_hash"] for run in result.runs}) == 2
    assert len(list((same_stem / "out").glob("**/*.slprog"))) == 2
    again = str(same_stem / "b" / ".." / "a" / "x.toml")
    with pytest.raises(UsageError, match="workload 'x' is given twice"):
        run_plan(plan(same_stem / "again", workloads=[files[0], again]))


def test_two_calls_into_one_folder_do_not_share_a_program(same_stem, with_host):
    with_host(write_one_task)
    for folder in "ab":
        out = same_stem / "out" / folder
        out.parent.mkdir(exist_ok=True)
        run_plan(plan(out, workloads=[str(same_stem / folder / "x.toml")]))
    with_host(lambda job: programs.append(job.program.read_bytes()) or write_one_task(job))
    programs: list[bytes] = []
    for folder in "ab":
        run_plan(plan(same_stem / "one", workloads=[str(same_stem / folder / "x.toml")]))
    assert len(set(programs)) == 2
    assert len(list((same_stem / "one").glob("x/programs/*"))) == 2


def test_a_host_in_real_time_does_one_run_at_a_time_in_a_drawn_order(tmp_path, with_host, monkeypatch):
    under_way, order = [], []

    def write(job):
        under_way.append(job)
        assert len(under_way) == 1
        order.append(job.label)
        first_in_first_out(job)
        under_way.remove(job)

    with_host(write)
    monkeypatch.setattr(FakeHost, "is_deterministic", False)
    result = run_plan(plan(tmp_path / "one", policies=["rr", "fifo"], n_seeds=8, first_seed=1))
    first, order[:] = list(order), []
    run_plan(plan(tmp_path / "two", policies=["rr", "fifo"], n_seeds=8, first_seed=1))
    assert first == order
    assert first != sorted(first)
    # The result keeps the plan's order, and each run says when it began.
    assert [run["seed"] for run in result.runs] == [*range(1, 9)] * 2
    started = {f"{r['workload']}, {r['policy']}, seed {r['seed']}": r["started_ns"] for r in result.runs}
    assert sorted(started, key=started.get) == first


# ---- verdicts ---------------------------------------------------------------


def only_run(tmp_path, write, with_host, **fields):
    with_host(write)
    result = run_plan(plan(tmp_path, **fields))
    assert len(result.runs) == 1
    run = result.runs[0]
    stored = json.loads((Path(run["directory"]) / "run.json").read_text())
    assert {name: stored[name] for name in run} == run
    return run, result


def test_a_good_run_has_numbers_and_tables(tmp_path, with_host):
    run, result = only_run(tmp_path, first_in_first_out, with_host)
    assert run["started_ns"] is None  # virtual time: no run is before another
    assert (run["status"], run["consistency"], run["error"]) == ("ok", "ok", None)
    assert run["metrics"]["turnaround_ns_mean"] == 8.75 * MS
    assert result.is_good
    import polars as pl

    folder = Path(run["directory"])
    assert pl.read_parquet(folder / "tasks.parquet")["name"].to_list() == ["A", "B", "C", "D"]
    assert len(pl.read_parquet(folder / "records.parquet")) == 12
    table = pl.read_parquet(folder / "metrics.parquet")
    assert table.filter(pl.col("metric") == "makespan_ns")["value"].to_list() == [13 * MS]


def test_an_impossible_run_withholds_every_number(tmp_path, with_host):
    run, result = only_run(tmp_path, lambda job: first_in_first_out(job, lie_ns=1000), with_host)
    assert run["status"] == "failed"
    assert "task 1 claims 5000000 ns of CPU time" in run["consistency"]
    assert run["consistency"] in run["error"]
    assert run["metrics"] == {}
    assert not (Path(run["directory"]) / "metrics.parquet").exists()
    assert not result.is_good


def test_work_that_was_not_done_is_seen(tmp_path, with_host):
    def half(job):
        events = [(0, pid, 0, Kind.ARRIVE, 0, 0) for pid in (1, 2, 3, 4)]
        for pid in (1, 2, 3, 4):
            events += [
                ((pid - 1) * MS, pid, 0, Kind.RUN, 0, 0),
                (pid * MS, pid, 0, Kind.STOP, Stop.EXITED, MS),
            ]
        write_records(job.records, events, n_cpus=1)

    run, _ = only_run(tmp_path, half, with_host)
    assert "task 1 received 1000000 ns of CPU time, but its program is 5000000 ns" in run["consistency"]


def test_a_truncated_record_file_fails_its_run(tmp_path, with_host):
    def cut(job):
        first_in_first_out(job)
        job.records.write_bytes(job.records.read_bytes()[:-10])

    run, _ = only_run(tmp_path, cut, with_host)
    assert (run["status"], run["error_kind"]) == ("failed", "records")
    assert "at byte 352" in run["error"]
    assert run["metrics"] == {}


def test_a_host_that_writes_nothing_fails_its_run(tmp_path, with_host):
    run, _ = only_run(tmp_path, lambda job: None, with_host)
    assert "cannot be read: No such file" in run["error"]


def test_a_failed_run_is_named_and_not_judged(tmp_path, with_host):
    def fail(job):
        first_in_first_out(job)
        return Outcome(error="runnable task stall", error_kind="stall", task=3)

    run, _ = only_run(tmp_path, fail, with_host)
    assert run["error"] == "runnable task stall (task 3 is 'C')"
    assert (run["error_kind"], run["consistency"], run["metrics"]) == ("stall", None, {})


def test_a_policy_that_does_not_compile_fails_only_its_own_runs(tmp_path, with_host):
    with_host(first_in_first_out)
    broken = tmp_path / "broken.bpf.c"
    broken.write_text("int main(void) { return }\n")
    damaged = tmp_path / "damaged.bpf.c"
    damaged.write_text("/* @knob x */\n")
    result = run_plan(plan(tmp_path / "out", policies=["rr", str(broken), str(damaged)], n_seeds=2))
    assert [(run["policy"], run["status"]) for run in result.runs] == [
        ("rr", "ok"), ("rr", "ok"), ("broken", "failed"), ("broken", "failed"),
        ("damaged", "failed"), ("damaged", "failed"),
    ]  # fmt: skip
    assert "broken.bpf.c:1:25: error" in result.runs[2]["error"]
    assert "damaged.bpf.c:1: '@knob x' should read" in result.runs[4]["error"]
    assert result.comparisons == []


def test_policies_of_one_name_are_told_apart_by_their_folders(tmp_path, with_host):
    with_host(first_in_first_out)
    good = (run_module.find_policy("rr")).read_text()
    names = []
    for student, text in (("ann", good), ("bob", "/* @knob x */\n"), ("eve", good)):
        (tmp_path / student).mkdir()
        file = tmp_path / student / "mine.bpf.c"
        file.write_text(text)
        names.append(str(file))
    result = run_plan(plan(tmp_path / "out", policies=names, settings=["eve/mine.slice_ns=5ms"]))
    assert [(run["policy"], run["status"]) for run in result.runs] == [
        ("mine", "ok"),
        ("bob/mine", "failed"),
        ("eve/mine", "ok"),
    ]
    assert [run["knobs"] for run in result.runs] == [{"slice_ns": 10_000_000}, {}, {"slice_ns": 5_000_000}]
    assert len({run["directory"] for run in result.runs}) == 3
    with pytest.raises(UsageError, match="is given twice"):
        run_plan(plan(tmp_path / "out", policies=[names[0], str(tmp_path / "bob/../ann/mine.bpf.c")]))


@pytest.mark.parametrize("what", ["program", "tables", "large tables", "run.json"])
def test_a_full_disk_fails_only_the_runs_that_it_meets(tmp_path, with_host, monkeypatch, what):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device", f"the {what}")

    if what == "large tables":

        def polars_full(table, path, **kwargs):
            raise polars.exceptions.ComputeError("parquet: No space left on device")

        monkeypatch.setattr(parquet, "ROWS_MAX", 0)
        write = polars.DataFrame.write_parquet
        monkeypatch.setattr(
            polars.DataFrame,
            "write_parquet",
            lambda table, path, **k: (polars_full if "seed-1" in str(path) else write)(table, path, **k),
        )
    else:
        file = {
            "program": "/programs/seed-1-",
            "tables": "/seed-1/.*parquet",
            "run.json": "/seed-1/run.json",
        }[what]
        write_bytes = Path.write_bytes
        monkeypatch.setattr(
            Path,
            "write_bytes",
            lambda path, data: (full if re.search(file, str(path)) else write_bytes)(path, data),
        )
    with_host(first_in_first_out)
    result = run_plan(plan(tmp_path, n_seeds=3))
    assert [run["status"] for run in result.runs] == ["ok", "failed", "ok"]
    assert "No space left on device" in result.runs[1]["error"]
    assert result.runs[1]["metrics"] == {}
    assert len(json.loads((tmp_path / "runs.json").read_text())["runs"]) == 3
    assert not list(tmp_path.rglob("*.part"))


def test_a_list_that_cannot_be_written_leaves_no_older_one(tmp_path, with_host, monkeypatch):
    with_host(first_in_first_out)
    run_plan(plan(tmp_path))
    replace = run_module.os.replace

    def full_for_the_list(scratch, path):
        if Path(path).name == "runs.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(scratch, path)

    monkeypatch.setattr(run_module.os, "replace", full_for_the_list)
    with pytest.raises(UsageError, match="runs.json: cannot be written: No space left"):
        run_plan(plan(tmp_path))
    assert not (tmp_path / "runs.json").exists()


def test_an_old_run_is_replaced_whole(tmp_path, with_host):
    run, _ = only_run(tmp_path, first_in_first_out, with_host)
    assert (Path(run["directory"]) / "metrics.parquet").exists()
    run, _ = only_run(tmp_path, lambda job: Outcome(error="x", error_kind="crash"), with_host)
    assert not (Path(run["directory"]) / "metrics.parquet").exists()


def test_an_interrupt_keeps_what_is_finished(tmp_path, with_host):
    with_host(first_in_first_out)
    seen = []

    def stop_after_three(run):
        seen.append(run)
        if len(seen) == 3:
            raise KeyboardInterrupt

    result = run_plan(plan(tmp_path, n_seeds=400), on_result=stop_after_three)
    assert result.is_interrupted
    assert not result.is_good
    assert 3 <= len(result.runs) < 400
    for run in result.runs:
        read_records(Path(run["directory"]) / "records.slr")
    stored = json.loads((tmp_path / "runs.json").read_text())
    assert [run["seed"] for run in stored["runs"]] == [run["seed"] for run in result.runs]


def test_a_bug_in_a_worker_is_not_swallowed(tmp_path, with_host):
    def bug(job):
        raise ZeroDivisionError("of schedlab itself")

    with_host(bug)
    with pytest.raises(ZeroDivisionError):
        run_plan(plan(tmp_path))


def test_tasks_are_excused_by_their_own_phases():
    text = """
[workload]
title = "x"
question = "y"
[[task]]
name = "plain"
phases = [{run = "1ms"}]
[[task]]
name = "capped"
cap = 10
phases = [{run = "1ms"}]
[[task]]
name = "capped-later"
phases = [{run = "1ms"}, {set = {cap = 10}}, {run = "1ms"}]
[[task]]
name = "reader"
phases = [{set = {priority = 3}}, {read = "4KiB"}]
"""
    program = compile_workload(parse_workload(text), seed=0)
    assert program.tasks["name"].tolist() == ["plain", "capped", "capped-later", "reader"]
    assert is_capped(program).tolist() == [False, True, True, False]
    assert has_host_work(program).tolist() == [False, False, False, True]


def test_tasks_wait_for_the_budget_of_any_group_that_they_may_be_in():
    text = """
[workload]
title = "x"
question = "y"
[[group]]
name = "a"
quota = "20ms"
[[group]]
name = "in-a"
parent = "a"
[[group]]
name = "b"
[[task]]
name = "free"
phases = [{run = "1ms"}]
[[task]]
name = "below"
group = "in-a"
phases = [{run = "1ms"}]
[[task]]
name = "later"
group = "b"
phases = [{run = "1ms"}]
[[task]]
name = "joins"
phases = [{join = "in-a"}, {spawn = "child"}, {run = "1ms"}]
[[task]]
name = "child"
arrival = "spawned"
phases = [{run = "1ms"}]
"""
    program = compile_workload(parse_workload(text), seed=0)
    assert program.tasks["name"].tolist() == ["free", "below", "later", "joins", "child"]
    assert is_limited(program).tolist() == [False, True, False, True, True]
    b = next(number - 1 for number, group in program.groups.items() if group.name == "b")
    assert is_limited(program, frozenset({b})).tolist() == [False, True, True, True, True]


def test_each_host_declares_options_that_there_are_and_each_option_has_a_host():
    declared = [host_named(name).options for name in HOST_NAMES]
    assert set().union(ON_ALL, *declared) == set(OPTIONS)
    assert not any(ON_ALL & options for options in declared)


def test_a_run_keeps_all_that_repeats_it(tmp_path):
    """Its options, the command, and the policy's own source."""
    (tmp_path / "near.h").write_text("/* near */\n")
    mine = tmp_path / "mine.bpf.c"
    mine.write_text('#include "near.h"\n' + (policies_folder() / "rr.bpf.c").read_text())
    words = "schedlab run textbook/rr -p mine.bpf.c"
    made = run_plan(
        plan(tmp_path / "out", policies=[str(mine)], io=["depth=4"], scale=1.0, command_line=words)
    )
    (run,) = made.runs
    assert (run["io"], run["scale"], run["timeout_seconds"], run["command_line"]) == (
        ["depth=4"],
        1.0,
        300.0,
        words,
    )
    assert (run["is_parallel"], run["are_threads"], run["kernel"]) == (False, False, None)
    assert run["source"]["files"] == ["mine.bpf.c", "near.h"] and len(run["source"]["hash"]) == 64
    folder = Path(run["directory"])
    assert (folder / "mine.bpf.c").read_text() == mine.read_text()
    assert (folder / "near.h").read_text() == "/* near */\n"


def test_a_copied_policy_keeps_the_folders_of_its_headers(tmp_path):
    """Two headers of one name, one of them found from a header: both copies still compile."""
    (tmp_path / "mine" / "lib").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    files = {
        "mine/mine.bpf.c": '#include "lib/turn.h"\n#include "../shared/turn.h"\n'
        + (policies_folder() / "rr.bpf.c").read_text(),
        "mine/lib/turn.h": '#include "near.h"\n',
        "mine/lib/near.h": "/* near lib */\n",
        "shared/turn.h": '#include "near.h"\n',
        "shared/near.h": "/* near shared */\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    mine = tmp_path / "mine" / "mine.bpf.c"
    (run,) = run_plan(plan(tmp_path / "out", policies=[str(mine)])).runs
    folder = Path(run["directory"])
    assert run["source"]["files"][0] == "mine/mine.bpf.c"
    assert {name: (folder / name).read_text() for name in run["source"]["files"]} == files
    (again,) = run_plan(plan(tmp_path / "again", policies=[str(folder / "mine/mine.bpf.c")])).runs
    assert (again["status"], again["record_hash"], again["source"]) == (
        "ok",
        run["record_hash"],
        run["source"],
    )
    (tmp_path / "shared" / "near.h").write_text("/* another */\n")
    (other,) = run_plan(plan(tmp_path / "other", policies=[str(mine)])).runs
    assert other["source"]["hash"] != run["source"]["hash"], (
        "a header of a name that is there already counts, too"
    )
