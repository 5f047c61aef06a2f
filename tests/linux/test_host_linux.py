# SPDX-License-Identifier: MIT
"""`schedlab run --host linux`: classes, figures, faults, and what needs which privilege."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from schedlab.errors import HostError, RecordError
from schedlab.hosts.host import Outcome
from schedlab.hosts.linux import host as linux
from schedlab.hosts.linux import recorder
from schedlab.metrics import tally
from schedlab.program.compiler import compile_workload
from schedlab.records.file import RECORD_DTYPE, Kind, Stop, read_records
from schedlab.runs.judge import Judge
from schedlab.runs.run import Plan, make_plan, run_plan
from schedlab.show.usage import usage_rows
from schedlab.workload.find import load_workload

ROOT = Path(__file__).resolve().parent.parent.parent
HEAD = '[workload]\ntitle = "t"\nquestion = "q"\njitter = "0ms"\ntick = "4ms"\n'
LIGHT = (
    HEAD
    + """
[[task]]
name = "hog"
count = 2
phases = [{loop = 5, do = [{run = "2ms"}, {sleep = "1ms"}]}]

[[task]]
name = "late"
arrival = "4ms"
phases = [{work = {kernel = "pi", count = 50000}}, {spawn = "child"}, "wait"]

[[task]]
name = "child"
arrival = "spawned"
phases = [{run = "1ms"}]
"""
)
NOBODY = 65534
SPIN = (
    HEAD
    + 'horizon = "300s"\n'
    + '[[task]]\nname = "spin"\ncount = 3\nphases = [{loop = "forever", do = [{run = "1ms"}]}]\n'
)


def may_use_realtime() -> bool:
    return subprocess.run(["chrt", "-f", "1", "true"], capture_output=True, check=False).returncode == 0


needs_realtime = pytest.mark.skipif(not may_use_realtime(), reason="needs CAP_SYS_NICE: run as root")


@pytest.fixture
def plan(build, tmp_path):
    def make(text, *classes, **options):
        file = tmp_path / "w.toml"
        file.write_text(text)
        return make_plan(
            workloads=[str(file)], policies=classes, host="linux", out=tmp_path / "out", **options
        )

    return make


def settings_of_the_machine() -> dict:
    """All that a run might have changed: classes and CPUs of others, and the kernel's knobs."""
    found = {str(path): path.read_text() for path in Path("/proc/sys/kernel").glob("sched_*")}
    found["us"] = (
        os.sched_getscheduler(0),
        sorted(os.sched_getaffinity(0)),
        os.getpriority(os.PRIO_PROCESS, 0),
    )
    return found


@needs_realtime
@pytest.mark.parametrize("are_threads", [False, True])
def test_classes_run_the_same_program_and_are_judged(plan, are_threads):
    before = settings_of_the_machine()
    classes = ("SCHED_OTHER:1", "SCHED_FIFO:10", "SCHED_RR:10", "SCHED_BATCH", "SCHED_IDLE")
    result = run_plan(plan(LIGHT, *classes, cpus=1, threads=are_threads))
    assert settings_of_the_machine() == before
    assert [(run["policy"], run["error"]) for run in result.runs] == [(name, None) for name in classes]
    assert len({run["program_hash"] for run in result.runs}) == 1
    for run in result.runs:
        usage, metrics = run["usage"], run["metrics"]
        # Four tasks, 21 ms by their own clocks, and pi.
        assert usage["user_ns"] + usage["system_ns"] >= 21_000_000
        assert metrics["user_ns"] == usage["user_ns"]
        assert usage["cpu_percent"] <= 101, "on one CPU"
        assert metrics["tasks_ended"] == 4
        assert usage["switches_voluntary"] >= 10, "each sleep is one"
        tasks = linux.read_played(Path(run["directory"]) / linux.TASKS_FILE).tasks
        assert [task["name"] for task in tasks] == ["hog", "hog", "late", "child"]
        assert usage["wall_ns"] >= max(task["end_ns"] for task in tasks)
    fifo = result.runs[1]
    if fifo["no_records"] is None:
        assert fifo["metrics"]["wakeup_ns_p99"] is not None
        events = read_records(Path(fifo["directory"]) / "records.slr").events
        assert set(np.unique(events["task"])) <= {0, 1, 2, 3, 4}
        assert set(np.unique(events["cpu"])) == {0}
    rows = usage_rows(result.runs)
    assert [row["policy"] for row in rows] == list(classes)
    assert rows[1]["wall_ns"] == {"mean": fifo["usage"]["wall_ns"], "low": None, "high": None}


@needs_realtime
def test_a_fifo_task_that_never_sleeps_is_ended_and_its_figures_are_there(plan):
    before = settings_of_the_machine()
    result = run_plan(plan(SPIN, "SCHED_FIFO:98", cpus=os.cpu_count(), timeout=0.5))
    (run,) = result.runs
    assert run["error_kind"] == "timeout"
    assert "not done after 0.5 s" in run["error"]
    assert settings_of_the_machine() == before
    # It may be used after that.
    good = run_plan(plan(SPIN.replace("300s", "50ms"), "SCHED_FIFO:98", cpus=1)).runs[0]
    assert good["error"] is None
    assert good["usage"]["wall_ns"] == 50_000_000
    tasks = linux.read_played(Path(good["directory"]) / linux.TASKS_FILE).tasks
    assert [task["end_ns"] for task in tasks] == [None] * 3
    assert good["metrics"]["tasks_ended"] == 0


def children_of(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == pid:
            found.append(int(path.parent.name))
    return found


def tree_of(pid: int) -> list[int]:
    below = children_of(pid)
    return below + [each for child in below for each in tree_of(child)]


def named(name: str, pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        with suppress(FileNotFoundError):  # it has ended
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                found.append(pid)
    return found


def wait_until(condition, what):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail(what)


def are_gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@contextmanager
def started(plan_: Plan) -> Iterator[tuple[subprocess.Popen, Path]]:
    """A schedlab of its own that runs a plan, until one of its tasks has ended; and where it writes.

    It is killed in the end: a test that fails may leave no real-time task behind, which would take a CPU from all
    the tests after it.
    """
    # Under Polars, reads and waits without a timeout go on after Ctrl-C.
    main = "import polars; from schedlab.__main__ import main; main()"
    words = [sys.executable, "-c", main, "run", *plan_.workloads, "--host", "linux", "--policy", *plan_.policies,
             "--cpus", "1", "--out", str(plan_.out)]  # fmt: skip
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: any(p.read_text() for p in plan_.out.rglob(linux.TASKS_FILE)), "no task ended")
            yield process, plan_.out
        finally:
            process.kill()


FIRST_ENDS = SPIN + '[[task]]\nname = "first"\nnice = 0\nphases = [{run = "1ms"}]\n'


@needs_realtime
def test_a_killed_schedlab_leaves_no_process_and_readable_results(plan):
    with started(plan(FIRST_ENDS, "SCHED_RR:10")) as (process, out):
        wait_until(lambda: len(tree_of(process.pid)) >= 6, "launcher, keeper, runner and three tasks")
        tree = tree_of(process.pid)
        process.kill()
        process.wait()
        wait_until(lambda: are_gone(tree), "something outlived schedlab")
    (file,) = out.rglob(linux.TASKS_FILE)
    assert [task["name"] for task in linux.read_played(file).tasks] == ["first"]
    assert not list(out.rglob("run.json")), "a run that was cut short is not taken for a whole one"


def test_ctrl_c_does_not_wait_for_the_run(plan):
    """It would for 300 s."""
    with started(plan(FIRST_ENDS, "SCHED_OTHER")) as (process, _):
        tree = tree_of(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        wait_until(lambda: are_gone(tree), "something outlived schedlab")


@needs_realtime
def test_a_killed_runner_or_task_fails_its_run_alone(plan):
    for name, kind in (("schedlab-play", "crash"), ("spin", "crash")):
        with started(plan(FIRST_ENDS, "SCHED_RR:10")) as (process, out):
            # A task has its name once it has run, which another may before it.
            wait_until(lambda p=process, name=name: named(name, tree_of(p.pid)), f"no {name}")
            tree = tree_of(process.pid)
            os.kill(named(name, tree)[0], signal.SIGKILL)
            assert process.wait(timeout=120) == 1
            wait_until(lambda tree=tree: are_gone(tree), "something outlived the run")
        (file,) = out.rglob("run.json")
        run = json.loads(file.read_text())
        assert run["error_kind"] == kind, run["error"]
        assert "signal 9" in run["error"]
        assert "first" in [task["name"] for task in run["host_answer"]["tasks"]]
        for path in sorted(out.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


def without_privileges(tmp_path, *words) -> subprocess.CompletedProcess:
    """Run schedlab with no capability at all, though perhaps as root."""
    drop = (
        ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs"]
        if os.geteuid() == 0
        else []
    )
    return subprocess.run(
        [*drop, sys.executable, "-m", "schedlab", "run", *words, "--host", "linux", "--cpus", "1", "--json"],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT / "python")}, cwd=tmp_path,
    )  # fmt: skip


def test_without_privileges_what_needs_none_runs_and_the_rest_says_what_it_needs(build, tmp_path):
    (tmp_path / "w.toml").write_text(LIGHT)
    (tmp_path / "nice.toml").write_text(LIGHT.replace('name = "late"\n', 'name = "late"\nnice = -5\n'))
    done = without_privileges(tmp_path, "w.toml", "nice.toml", "--policy", "SCHED_OTHER,SCHED_FIFO:10")
    assert done.returncode == 1, done.stderr
    runs = {(run["workload"], run["policy"]): run for run in json.loads(done.stdout)["runs"]}
    other = runs["w", "SCHED_OTHER"]
    assert (other["status"], other["consistency"]) == ("ok", "ok")
    assert "tracefs" in other["no_records"] or "perf_event" in other["no_records"]
    assert other["metrics"]["wakeup_ns_p99"] is None, "that takes records"
    assert other["metrics"]["turnaround_ns_mean"] > 10_000_000
    assert other["metrics"]["wait_ns_max"] >= 0
    assert other["usage"]["user_ns"] > 0
    for workload in ("w", "nice"):
        assert "CAP_SYS_NICE" in runs[workload, "SCHED_FIFO:10"]["error"]
    assert "nice value -5, which needs CAP_SYS_NICE" in runs["nice", "SCHED_OTHER"]["error"]


@pytest.fixture
def nobodys_folder():
    """A folder that another user may use as home; pytest's own are closed to all."""
    folder = Path(tempfile.mkdtemp(prefix="schedlab-nobody-"))
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_another_user_with_a_nice_value_gets_all_that_needs_no_privilege(build, nobodys_folder):
    """Root without capabilities still owns root's files; this one owns nothing but a folder."""
    nice = min(os.getpriority(os.PRIO_PROCESS, 0) + 5, 19)
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "nice", "-n", "5"]
    env = {
        "HOME": str(nobodys_folder),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }

    def do(python, *words):
        return subprocess.run(
            [*become, python, *words],
            env=env,
            cwd=nobodys_folder,
            capture_output=True,
            text=True,
            check=False,
        )

    # Ours may lie in root's home.
    python = next(
        (
            each
            for each in (sys.executable, "/usr/bin/python3")
            if do(each, "-c", "import polars, schedlab").returncode == 0
        ),
        None,
    )
    if python is None:
        pytest.skip("no Python that another user may start has schedlab's dependencies")
    (nobodys_folder / "w.toml").write_text(LIGHT)
    done = do(
        python,
        "-m",
        "schedlab",
        "run",
        "w.toml",
        "--host",
        "linux",
        "--cpus",
        "1",
        "--json",
        "--policy",
        f"SCHED_OTHER,SCHED_OTHER:{nice - 1},SCHED_IDLE",
    )
    runs = {run["policy"]: run for run in json.loads(done.stdout)["runs"]}
    assert runs["SCHED_OTHER"]["error"] is None and runs["SCHED_IDLE"]["error"] is None, done.stderr
    assert runs["SCHED_OTHER"]["knobs"]["nice"] == nice
    assert "CAP_SYS_NICE" in runs[f"SCHED_OTHER:{nice - 1}"]["error"]
    assert all(path.stat().st_uid == NOBODY for path in nobodys_folder.rglob("*.json"))
    measured = do(
        python,
        "-m",
        "schedlab",
        "bench",
        "--policy",
        "SCHED_OTHER,SCHED_BATCH",
        "--runs",
        "2",
        "--warmups",
        "0",
        "--json",
        "--",
        "true",
    )
    assert measured.returncode == 0, measured.stderr
    doctor = do(python, "-m", "schedlab", "doctor", "--json")
    assert {check["name"]: check["status"] for check in json.loads(doctor.stdout)["checks"]}[
        "host linux"
    ] == "ok"


def test_a_recording_with_holes_gives_way_to_what_tasks_noted(plan, monkeypatch):
    """As after a ring that was full: the run is good, and says what it lacks."""

    class Deaf:
        def __init__(self):
            self.ended = False

        def follow(self, path, *, pid, generation):
            path.write_bytes(b"")

        def stop(self):
            return recorder.Captured(1, 7, 0, 0, 0, None, 0, True)

        def close(self):
            self.ended = True

    def lossy(events, records, **_):
        records.write_bytes(b"x")
        return SimpleNamespace(tasks=[], n_lost=7, n_repairs=0)

    monkeypatch.setattr(linux, "Recorder", Deaf)
    monkeypatch.setattr(linux, "convert_events", lossy)
    (run,) = run_plan(plan(LIGHT, "SCHED_OTHER", cpus=1)).runs
    assert run["status"] == "ok", run["error"]
    assert "no room for 7 events" in run["no_records"]
    assert run["metrics"]["tasks_ended"] == 4
    assert not (Path(run["directory"]) / "records.slr").exists()


def test_a_launcher_that_dies_is_replaced_for_the_next_run(plan, monkeypatch):
    played = linux.LinuxSession._play
    calls = []

    def once(self, job, *rest):
        calls.append(job.seed)
        if len(calls) == 1:
            self._launcher.kill()
            raise HostError("schedlab-launch has ended without an answer; was it killed?")
        return played(self, job, *rest)

    monkeypatch.setattr(linux.LinuxSession, "_play", once)
    runs = run_plan(plan(LIGHT, "SCHED_OTHER", cpus=1, n_seeds=2)).runs
    assert sorted(run["status"] for run in runs) == ["failed", "ok"]


@pytest.mark.parametrize(("n_late", "status"), [(2, "ok"), (3, "failed")])
def test_a_run_that_could_not_begin_in_time_is_begun_again(plan, monkeypatch, n_late, status):
    played = linux.LinuxSession._play
    calls = []

    def late(self, *rest):
        calls.append(rest)
        if len(calls) <= n_late:
            return Outcome(error="this machine is too busy", error_kind="late")
        return played(self, *rest)

    monkeypatch.setattr(linux.LinuxSession, "_play", late)
    (run,) = run_plan(plan(LIGHT, "SCHED_OTHER", cpus=1, n_seeds=1)).runs
    assert (run["status"], len(calls)) == (status, 3)


# ---- figures that are no run's --------------------------------------------------


def noted(**changed) -> dict:
    task = {"task": 1, "name": "t", "tid": 7, "arrival_ns": 0, "first_run_ns": 10, "end_ns": 5_000_000,
            "run_ns": 3_000_000, "wait_ns": 1_000_000, "voluntary_switches": 1, "involuntary_switches": 2}  # fmt: skip
    return task | changed


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"run_ns": 9_000_000}, "tasks used 9000000 ns of 1 CPUs in 5000000 ns"),
        ({"first_run_ns": 10, "arrival_ns": 20}, "ran before it arrived"),
        ({"end_ns": 5}, "ended before it ran"),
        ({"run_ns": 1_000_000}, "before its work was done"),
    ],
)
def test_impossible_figures_are_refused(changed, problem):
    columns = tally.columns_of([noted(**changed)])
    assert problem in tally.check(columns, n_cpus=1, elapsed_ns=5_000_000, work_ns=np.array([3_000_000]))


BESIDE = (
    HEAD
    + """
[[task]]
name = "shell"
phases = [{loop = 5, do = [{sleep = "5ms"}, {run = "100us"}]}]

[[task]]
name = "hog"
count = 2
phases = [{run = "60ms"}]
"""
)


@needs_realtime
@pytest.mark.parametrize("are_threads", [False, True])
def test_tasks_of_a_name_have_a_class_of_their_own(plan, are_threads):
    """Two of SCHED_FIFO run one after the other, whatever class the rest has."""
    classes = ("SCHED_OTHER", "SCHED_OTHER+hog=SCHED_FIFO:10", "SCHED_OTHER+shell=SCHED_FIFO:10")
    result = run_plan(plan(BESIDE, *classes, cpus=1, threads=are_threads))
    if void := [run["error"] for run in result.runs if run["error_kind"] == "void"]:
        pytest.skip(f"this machine is too busy: {void[0]}")
    assert [(run["policy"], run["error"]) for run in result.runs] == [(name, None) for name in classes]

    def is_serial(run):
        hogs = [
            task
            for task in linux.read_played(Path(run["directory"]) / linux.TASKS_FILE).tasks
            if task["name"] == "hog"
        ]
        return max(hog["first_run_ns"] for hog in hogs) >= min(hog["end_ns"] for hog in hogs)

    assert [is_serial(run) for run in result.runs] == [False, True, False]
    assert len({run["policy_hash"] for run in result.runs}) == 3


@needs_realtime
def test_a_class_for_a_task_that_is_not_there_is_refused(plan):
    (run,) = run_plan(plan(LIGHT, "SCHED_OTHER+child=SCHED_FIFO:10")).runs
    assert (run["error_kind"], "no task 'child' is there at time 0" in run["error"]) == ("usage", True)


@pytest.mark.parametrize(("run_ms", "is_void"), [(29.0, False), (32.5, False), (33.2, True), (40.0, True)])
def test_work_that_is_not_as_long_as_stated_voids_a_run(tmp_path, run_ms, is_void):
    (tmp_path / "w.toml").write_text(HEAD + '[[task]]\nname = "t"\nphases = [{run = "29ms"}]\n')
    program = compile_workload(load_workload(str(tmp_path / "w.toml")), seed=1)
    usage = {"wall_ns": 90_000_000, "cpus": 1, "user_ns": 1, "system_ns": 0}
    outcome = Outcome(tally=[noted(end_ns=80_000_000, run_ns=round(run_ms * 1e6))], usage=usage)
    judge = Judge(latency_ns=0, work_conserving=False, tables_folder=None, calibration=None)
    result = judge.verdict(program, tmp_path / "no-records", outcome)
    assert result["consistency"] == "ok"
    assert (result["error_kind"], result["metrics"] == {}) == (("void", True) if is_void else (None, False))
    if is_void:
        assert (
            f"void: work took {run_ms:.1f} ms of CPU time where the workload says 29.0 ms" in result["error"]
        )


def test_the_length_of_work_with_calls_is_the_machine_s(tmp_path):
    """What a fork or a write costs no program states, and of a task that did not end none is known."""
    text = HEAD + '[[task]]\nname = "t"\nphases = [{run = "2ms"}, {write = "1MiB"}]\n'
    (tmp_path / "w.toml").write_text(text)
    program = compile_workload(load_workload(str(tmp_path / "w.toml")), seed=1)
    columns = tally.columns_of([noted(run_ns=4_500_000)])
    assert not tally.wrong_length(columns, work_ns=program.work_ns(), has_calls=[True])
    assert tally.wrong_length(columns, work_ns=program.work_ns(), has_calls=[False])
    assert not tally.wrong_length(
        tally.columns_of([noted(end_ns=None)]), work_ns=program.work_ns(), has_calls=[False]
    )


def test_what_tasks_noted_gives_the_metrics_that_it_can():
    tasks = [
        noted(),
        noted(task=2, arrival_ns=1_000_000, first_run_ns=2_000_000, end_ns=None, wait_ns=4_000_000),
    ]
    columns = tally.columns_of([*tasks, noted(task=3, arrival_ns=None)])
    assert tally.check(columns, n_cpus=2, elapsed_ns=6_000_000, work_ns=np.full(3, -1)) == "ok"
    run = tally.tally_metrics(columns, n_cpus=2, elapsed_ns=6_000_000).run
    assert (run["tasks"], run["tasks_ended"], run["makespan_ns"]) == (2, 1, 6_000_000)
    assert run["turnaround_ns_mean"] == 5_000_000
    assert run["response_ns_max"] == 1_000_000
    assert run["wait_ns_mean"] == 2_500_000
    assert run["slowdown_mean"] == 1.25
    assert run["cpu_utilisation"] == 0.5
    assert run["wakeup_ns_p99"] is None


def test_who_is_ended_late_at_the_horizon_is_consistent(tmp_path):
    """As on a busy or an emulated machine, whose runner comes late: the task's clock went on."""
    task = noted(end_ns=None, run_ns=8_000_000, read_ns=8_500_000, late_ns=0)
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task) + "\n" + json.dumps({"end_ns": 5_000_000}) + "\n")
    played = linux.read_played(tmp_path / "tasks.jsonl")
    assert played.tasks[0]["late_ns"] == 3_500_000
    columns = tally.columns_of(played.tasks)
    size = {"n_cpus": 1, "elapsed_ns": 5_000_000, "work_ns": np.array([-1])}
    assert tally.check(columns, late_ns=3_500_000, **size) == "ok"
    assert "tasks used 8000000 ns" in tally.check(columns, **size)
    events = records((0, 1, 0, Kind.RUN, 0, 0), (5_000_000, 1, 0, Kind.STOP, Stop.PREEMPTED, 5_000_000))
    linux.refuse_holes(events, played, 0)
    with pytest.raises(RecordError, match="lack 3.0 ms"):
        linux.refuse_holes(events, linux.Played([noted(run_ns=8_000_000)], played.run), 0)


def records(*rows) -> np.ndarray:
    return np.array(list(rows), RECORD_DTYPE)


def test_records_get_the_programs_numbers():
    events = records(
        (0, 5, 3, Kind.ARRIVE, 0, 4),
        (1, 4, 3, Kind.RUN, 0, 0),
        (2, 4, 3, Kind.STOP, Stop.PREEMPTED, 1),
        (2, 5, 3, Kind.RUN, 0, 0),
        (3, 5, 1, Kind.MIGRATE, 0, 3),
        (4, 0, 1, Kind.OVERHEAD, 4, 1),
        (5, 5, 9, Kind.RUN, 0, 0),
    )
    made = linux.rename(events, np.array([0, 0, 0, 0, 0, 2], np.uint32), (1, 3))
    # Task 4 is none of the program's, and CPU 9 not of the run.
    assert made.tolist() == [(0, 2, 1, Kind.ARRIVE, 0, 0), (2, 2, 1, Kind.RUN, 0, 0), (3, 2, 0, Kind.MIGRATE, 0, 1),
                             (4, 0, 0, Kind.OVERHEAD, 4, 1)]  # fmt: skip


def test_records_with_less_cpu_time_than_a_tasks_own_clock_are_refused():
    events = records((0, 1, 0, Kind.RUN, 0, 0), (5_000_000, 1, 0, Kind.STOP, Stop.EXITED, 5_000_000))
    linux.refuse_holes(events, linux.Played([noted(run_ns=5_100_000)], None), 1)
    with pytest.raises(
        RecordError,
        match=r"lack 4.0 ms of the CPU time of task 1 \(t\) by its own clock; .* left out 3 switches",
    ):
        linux.refuse_holes(events, linux.Played([noted(run_ns=9_000_000)], None), 3)
