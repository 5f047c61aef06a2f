# SPDX-License-Identifier: MIT
"""`schedlab record`: commands of Linux become runs like any other."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from linux.linux_settings import settings_of_linux
from schedlab import paths
from schedlab.cli.app import app
from schedlab.errors import NotFoundError, RecordError, UsageError
from schedlab.hosts.linux.machine import find_group
from schedlab.hosts.linux.recorder import Recorder, convert_events, unavailable_reason
from schedlab.measure.recording import EVENTS, import_trace, record_command, record_others
from schedlab.measure.replay import load_recorded
from schedlab.plots.gantt import draw_text
from schedlab.policy.linux_class import parse_class
from schedlab.program.file import read_program
from schedlab.program.layout import VERB_NUMBER
from schedlab.records.file import Call, Kind, read_records
from schedlab.runs.folders import read_run_folder
from schedlab.runs.run import make_plan, run_plan
from schedlab.show.record import show_recording

OTHER = parse_class("SCHED_OTHER")
TIMEOUT_NS = 20 * 10**9
#: Two processes that use the CPU, and one that sleeps.
SCRIPT = """
import os, time
def burn(ms):
    end = time.process_time_ns() + ms * 1_000_000
    while time.process_time_ns() < end:
        pass
for ms in (30, 50):
    if os.fork() == 0:
        burn(ms)
        os._exit(0)
for _ in range(5):
    time.sleep(0.005)
    burn(1)
os.wait(), os.wait()
"""


@pytest.fixture(scope="module", autouse=True)
def may_record(build):
    reason = unavailable_reason()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def recorded(may_record, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "run"
    argv = [sys.executable, "-S", "-c", SCRIPT]
    return folder, record_command(argv, folder, linux_class=OTHER, cpus=(0,), timeout_ns=TIMEOUT_NS)


def test_a_command_becomes_a_run(recorded):
    folder, run = recorded
    assert run["status"] == run["consistency"] == "ok" or run["status"] == "ok", run["error"]
    assert run["metrics"]["tasks"] == len(run["tasks"]) == 3
    assert run["metrics"]["tasks_ended"] == 3
    assert run["metrics"]["busy_ns"] >= 80_000_000
    assert run["command"]["exit_code"] == 0
    assert (run["host"], run["policy"], run["tick_ns"] > 0) == ("linux", "SCHED_OTHER", True)
    assert json.loads((folder / "run.json").read_text()) == run
    assert {path.name for path in folder.iterdir()} == {
        "run.json",
        "records.slr",
        "records.parquet",
        "tasks.parquet",
        "metrics.parquet",
    }


def test_it_can_be_read_and_drawn_like_any_run(recorded):
    folder, run = recorded
    assert read_run_folder(folder)[0]["record_hash"] == run["record_hash"]
    names = {task["task"]: task["name"] for task in run["tasks"]}
    drawn = draw_text(read_records(folder / "records.slr"), names=names, width=80, n_tasks_max=9)
    assert run["tasks"][0]["name"] in drawn


def added_ns_max(run):
    """What switches, and recording them, cost the tasks of a recording without causes."""
    costs = [*run["recording"]["recorder_ns"].values(), *run["recording"]["costs"].values()]
    return sum(costs) * (run["metrics"]["switches"] + run["metrics"]["wakeups"])


def test_it_is_replayed_on_as_many_cpus_as_it_used(recorded, simulator, tmp_path):
    folder, run = recorded
    workload = load_recorded(folder)
    assert workload.cpus == 1 and workload.tick_ns == run["tick_ns"]
    workload_ns = int(read_program(workload.program).work_ns().sum())
    assert 0 <= run["metrics"]["busy_ns"] - workload_ns <= added_ns_max(run)
    result = run_plan(make_plan([workload], ["rr", "fifo"], tmp_path, keep_parquet=False))
    assert result.is_good, [each["error"] for each in result.runs]
    for each in result.runs:
        assert each["metrics"]["busy_ns"] == workload_ns, "the same work"
        assert each["metrics"]["tasks_ended"] == 3
    # With nobody in between, it takes at most as long as it did, and at least its work.
    makespan_ns = result.runs[0]["metrics"]["makespan_ns"]
    assert workload_ns <= makespan_ns <= run["metrics"]["makespan_ns"] + 60_000_000


PIPE = """
import os
out, into = os.pipe()
if os.fork() == 0:
    os.close(into)
    while os.read(out, 1000):
        pass
    os._exit(0)
os.close(out)
for _ in range(200):
    os.write(into, bytes(1000))
os.close(into)
os.wait()
"""


def test_with_causes_a_read_that_did_not_block_is_in_the_replay(simulator, tmp_path):
    """The writer is ahead: most reads find something. Without causes those would be CPU time only."""
    argv = [sys.executable, "-S", "-c", PIPE]
    run = record_command(
        argv, tmp_path / "run", linux_class=OTHER, cpus=(0,), timeout_ns=TIMEOUT_NS, has_causes=True
    )
    assert run["status"] == "ok", run["error"]
    events = read_records(tmp_path / "run" / "records.slr").events
    reads = events[(events["kind"] == Kind.RETURN) & (events["flags"] == Call.READ) & (events["task"] == 2)]
    assert reads["arg"][-1] == 0 and (reads["arg"] == 1000).sum() >= 200
    program = load_recorded(tmp_path / "run").program
    ops = [op for op in read_program(program).ops.tolist() if op[0] == VERB_NUMBER["recv"] and op[4] >= 1000]
    assert sum(op[4] for op in ops) == 200_000, "all that was written is waited for"
    result = run_plan(make_plan([load_recorded(tmp_path / "run")], ["rt_fifo"], tmp_path / "again"))
    assert result.is_good, result.runs[0]["error"]


def test_a_process_that_runs_already_is_recorded(busy_process, tmp_path):
    process = busy_process()
    run = record_others(tmp_path / "run", pid=process.pid, for_ns=100_000_000)
    assert run["status"] == "ok", run["error"]
    assert [task["pid"] for task in run["tasks"]] == [process.pid]
    # It was under way at the beginning and at the end, and others have the CPUs, too.
    assert run["metrics"]["tasks_ended"] == 0 and run["metrics"]["busy_ns"] > 0
    assert run["metrics"]["busy_ns"] + run["metrics"]["wait_ns_mean"] == pytest.approx(
        run["metrics"]["elapsed_ns"]
    )


@pytest.fixture
def named_sleep(tmp_path):
    """A program with a name of 15 bytes that no other process has, and that name."""
    name = f"nap{os.getpid():012d}"
    (tmp_path / name).symlink_to("/bin/sleep")
    return tmp_path / name, name


@contextlib.contextmanager
def running(*argv):
    with subprocess.Popen(argv, stdin=subprocess.PIPE, process_group=0) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_tasks_of_a_name_are_recorded_and_what_they_fork(named_sleep, tmp_path):
    """A shell has the name before, and its children count, too; others get it."""
    path, name = named_sleep
    loop = "while :; do sleep 0.01; done"
    with (
        running("bash", "-c", f"sleep 0.3; while :; do {path} 0.01; done") as later,
        running("bash", "-c", f"echo {name} > /proc/$$/comm; {loop}") as parent,
        running("bash", "-c", loop) as other,
    ):
        wait_until(lambda: process_name(parent.pid) == name, "no name")
        run = record_others(tmp_path / "run", comm=f"{name}+", for_ns=10**9)
    assert run["status"] == "ok", run["error"]
    found = {task["pid"]: task for task in run["tasks"]}
    assert found[parent.pid]["name"] == name
    assert {other.pid, later.pid}.isdisjoint(found)
    assert sum(task["name"] == name for task in run["tasks"]) > 4
    # One of its children may have been there before.
    parents = [task["parent"] for task in run["tasks"] if task["name"] == "sleep"]
    assert len(parents) > 4 and set(parents) <= {0, found[parent.pid]["task"]} and parents.count(0) <= 1


def test_a_cgroup_is_recorded_with_what_comes_into_it_later(tmp_path):
    name = f"schedlab-{os.getpid()}"
    root = find_group("/")
    if root is None or not os.access(root, os.W_OK):
        pytest.skip("no cgroup can be made here; needs root and a writable /sys/fs/cgroup")
    group = root / name / "below"
    group.mkdir(parents=True)
    join, loop = f"echo $$ > {group}/cgroup.procs", "while :; do sleep 0.01; done"
    try:
        with (
            running("bash", "-c", f"{join}; {loop}") as member,
            running("bash", "-c", f"read; sleep 0.2; {join}; {loop}") as late,
            running("bash", "-c", loop) as other,
        ):
            wait_until(lambda: str(member.pid) in (group / "cgroup.procs").read_text().split(), "not in it")
            late.stdin.write(b"now\n"), late.stdin.flush()
            run = record_others(tmp_path / "run", cgroup=f"/{name}", for_ns=10**9)
        assert run["status"] == "ok", run["error"]
        pids = {task["pid"] for task in run["tasks"]}
        assert {member.pid, late.pid} <= pids and other.pid not in pids and len(pids) > 10
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text(), "the group is not empty")
        group.rmdir(), group.parent.rmdir()


def test_a_cgroup_or_a_name_that_cannot_be_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="--cgroup /no/such: there is no such cgroup"):
        record_others(tmp_path / "run", cgroup="/no/such", for_ns=1)
    with pytest.raises(UsageError, match="--comm 'a.tb': a task's name"):
        record_others(tmp_path / "run", comm="a\tb", for_ns=1)
    assert not (tmp_path / "run").exists()


def test_a_group_is_found_in_the_unified_hierarchy_first(tmp_path):
    for place in ("freezer", "cpu", "unified"):
        (tmp_path / place / "x").mkdir(parents=True)
        (tmp_path / place / "x" / "cgroup.procs").write_text("")
    kinds = {"freezer": "cgroup rw,freezer", "cpu": "cgroup rw,cpu", "unified": "cgroup2 rw"}
    mounts = tmp_path / "mounts"
    for place in ("unified", "cpu", "freezer"):
        mounts.write_text("".join(f"x {tmp_path / each} {kind} 0 0\n" for each, kind in kinds.items()))
        assert find_group("/x", mounts=mounts) == tmp_path / place / "x"
        del kinds[place]
    mounts.write_text("")
    assert find_group("/x", mounts=mounts) is None


def test_a_recorder_killed_at_any_moment_leaves_no_setting_changed(tmp_path):
    before = settings_of_linux()
    marker = str(tmp_path / "killed")
    for after_ms in (0, 5, 20, 40, 80, 160):
        recorder = subprocess.Popen(
            [paths.recorder(), "capture", "--calls"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        recorder.stdin.write(f"all {marker}\n".encode()), recorder.stdin.flush()
        time.sleep(after_ms / 1000)
        recorder.kill(), recorder.communicate()
        assert not processes(marker) and settings_of_linux() == before


def test_the_memory_of_a_recorder_does_not_grow_with_what_it_records(busy_process, tmp_path):
    def peak_kib(pid):
        status = Path(f"/proc/{pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))

    with Recorder(buffer_kib=256) as recorder, running("bash", "-c", "yes | cat | cat > /dev/null"):
        recorder.record_all(tmp_path / "events")
        time.sleep(0.2)
        early, size = peak_kib(recorder.pid), (tmp_path / "events").stat().st_size
        wait_until(lambda: (tmp_path / "events").stat().st_size > size + (4 << 20), "nothing was recorded")
        assert peak_kib(recorder.pid) < early + 1024
        recorder.stop()


def test_what_others_had_of_its_cpu_is_measured_and_said(busy_process, tmp_path, capsys):
    cpu = min(os.sched_getaffinity(0))
    busy_process(cpu)
    argv = [sys.executable, "-S", "-c", "import time\nwhile time.process_time() < 0.2: pass"]
    run = record_command(argv, tmp_path / "run", linux_class=OTHER, cpus=(cpu,), timeout_ns=TIMEOUT_NS)
    assert run["status"] == "ok", run["error"]
    found = run["recording"]["disturbance"]
    # Two that compute share a CPU, whoever else does so.
    assert found["lost_ns"] > 20_000_000 and found["share"] > 0.1
    assert found["lost_ns"] <= found["others_ns"] <= run["metrics"]["taken_ns"]
    show_recording(run)
    assert "not compared with a replay's" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["pid", "all"])
def test_what_still_ran_at_the_end_gets_no_more_than_it_had(busy_process, simulator, tmp_path, what):
    """A process that runs without end, beside others or not: its replay has what was recorded."""
    process = busy_process()
    recorded = record_others(tmp_path / "run", pid=process.pid if what == "pid" else None, for_ns=300_000_000)
    assert recorded["status"] == "ok", recorded["error"]
    out = make_plan(
        [load_recorded(tmp_path / "run")], ["eevdf", "cfs", "rr"], tmp_path / "out", keep_parquet=False
    )
    for run in run_plan(out).runs:
        part = run["replay"]
        # Under another policy the work of a full machine may not all fit, which is then an error.
        assert run["status"] == "ok" or run["error"].count("were not replayed"), run["error"]
        added_ns = recorded["metrics"]["busy_ns"] - part["recorded_ns"]
        assert -len(recorded["tasks"]) <= added_ns <= added_ns_max(recorded)
        assert part["replayed_ns"] <= part["recorded_ns"]
        if what == "pid":
            # All that it had; whether the nanosecond fits by which it stays runnable is up to where the recording ended.
            assert part["replayed_ns"] >= part["recorded_ns"] - 1 and part["tasks_started"] == part["tasks"]


def test_a_timeout_ends_the_tree_and_is_told(tmp_path):
    run = record_command(["sleep", "30"], tmp_path / "run", linux_class=OTHER, timeout_ns=200_000_000)
    assert run["status"] == "failed" and "ended after 0.2 s" in run["error"]
    assert run["metrics"] == {} and (tmp_path / "run" / EVENTS).exists()
    again = import_trace(tmp_path / "run" / EVENTS, tmp_path / "again")
    assert again["status"] == "ok" and "sleep" in {task["name"] for task in again["tasks"]}


def test_what_cannot_be_recorded_leaves_nothing(tmp_path):
    with pytest.raises(UsageError, match="cannot be started"):
        record_command(["no-such-command"], tmp_path / "run", linux_class=OTHER, timeout_ns=TIMEOUT_NS)
    assert not (tmp_path / "run").exists()
    with pytest.raises(NotFoundError, match="no such process"):
        record_others(tmp_path / "run", pid=1 << 22, for_ns=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        record_others(tmp_path / "file" / "run", pid=None, for_ns=1)
    with pytest.raises(UnicodeEncodeError):
        record_others(tmp_path / os.fsdecode(b"\xff"), pid=None, for_ns=1)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_thread_is_not_taken_for_a_process(tmp_path):
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    try:
        with pytest.raises(UsageError, match=f"a thread of process {os.getpid()}; give --pid {os.getpid()}"):
            record_others(tmp_path / "run", pid=thread.native_id, for_ns=1)
    finally:
        is_over.set()
        thread.join()
    assert not (tmp_path / "run").exists()


def test_a_table_that_cannot_be_written_is_named_and_the_events_are_kept(tmp_path):
    """As on a full disk; what keeps it from being written is here a directory of its name."""
    (tmp_path / "run" / "tasks.parquet").mkdir(parents=True)
    with pytest.raises(
        RecordError, match=r"tasks.parquet: cannot be written: .*make room, then schedlab import"
    ):
        record_command(["true"], tmp_path / "run", linux_class=OTHER, timeout_ns=TIMEOUT_NS)
    assert import_trace(tmp_path / "run" / EVENTS, tmp_path / "again")["status"] == "ok"


def test_without_capabilities_the_one_that_is_missing_is_named(tmp_path):
    """Recording is refused with it, and the doctor says the same; nothing else is."""
    weak = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-m", "schedlab"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [*weak, "record", "--out", tmp_path / "run", "--json", "--", "true"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["kind"]) == (3, "UnavailableError")
    assert "CAP_SYS_ADMIN" in error["message"] or "CAP_PERFMON" in error["message"]
    assert not (tmp_path / "run").exists()
    done = subprocess.run([*weak, "doctor", "--json"], env=env, capture_output=True, text=True, check=False)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0, "the simulator needs none"
    missing = [
        checks[f"recording: {part}"]["detail"]
        for part in ("tracefs", "perf_event_open")
        if checks[f"recording: {part}"]["status"] == "missing"
    ]
    assert error["message"] in missing


def wait_until(condition, what):
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail(what)


def processes(marker: str) -> list[str]:
    """Processes with this word in their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if marker in path.read_text(errors="replace").split("\0"):
                found.append(path.parent.name)
    return found


def process_name(pid: str) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def test_ctrl_c_while_a_recording_begins_is_no_fault(tmp_path, monkeypatch):
    """Its answer is yet to be read when the recording is stopped."""

    def begin(recorder, order, path):
        recorder._process.stdin.write(f"{order}\n".encode())
        recorder._process.stdin.flush()
        raise KeyboardInterrupt

    monkeypatch.setattr(Recorder, "_begin", begin)
    run = record_others(tmp_path / "run", pid=None, for_ns=10**10)
    assert run["recording"]["events"] > 0 and run["recording"]["recorder_cpu_ns"] is not None, run["error"]


def test_killed_itself_it_leaves_a_file_and_no_process(tmp_path):
    marker = f"30.{os.getpid():06d}"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = [sys.executable, "-m", "schedlab", "record", "--out", tmp_path / "run", "--", "sleep", marker]
    process = subprocess.Popen(argv, env=env, stderr=subprocess.DEVNULL)
    # A child that is yet to become the recorder has our words, too.
    wait_until(
        lambda: any(process_name(pid) == "sleep" for pid in processes(marker)), "the command never began"
    )
    process.kill()
    process.wait()
    wait_until(lambda: not processes(marker), "the command was left behind")
    # The recorder sees the end of its input and finishes the file.
    events = tmp_path / "run" / EVENTS
    wait_until(lambda: _is_whole(events), "the file was never finished")
    run = import_trace(events, tmp_path / "again")
    assert run["status"] == "ok" and {"sleep"} <= {task["name"] for task in run["tasks"]}
    assert not (tmp_path / "run" / "run.json").exists()


def test_ctrl_c_ends_the_command_at_once_and_keeps_what_was_recorded(tmp_path):
    """Also where Polars is at hand, under which reads go on after a signal."""
    marker = f"40.{os.getpid():06d}"
    out = tmp_path / "run"
    argv = [sys.executable, "-c", "import polars; from schedlab.__main__ import main; main()",
            "record", "--json", "--out", out, "--", "sleep", marker]  # fmt: skip
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(
        lambda: any(process_name(pid) == "sleep" for pid in processes(marker)), "the command never began"
    )
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, json.loads(output)["error"]) == (1, "it was interrupted"), errors
    assert not processes(marker) and (out / EVENTS).exists()


def _is_whole(events: Path) -> bool:
    return convert_events(events, events.with_suffix(".slr")).is_whole


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "record what?"),
        (["--system", "1s", "--pid", "1"], "got --pid and --system"),
        (["--comm", "x", "--for", "0s"], "--for 0s: it must be longer than 0"),
        (["--system", "0s"], "--system 0s: it must be longer than 0"),
        (["--policy", "SCHED_FIFO", "--", "true"], "SCHED_FIFO:10"),
        (["--timeout", "0s", "--", "true"], "--timeout 0s"),
    ],
)
def test_a_command_line_that_means_nothing_is_refused(words, message):
    with pytest.raises(UsageError, match=message):
        app(["record", *words], standalone_mode=False)
