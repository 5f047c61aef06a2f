# SPDX-License-Identifier: MIT
"""The recorder: what it sees of real commands, and what it makes of any events."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from linux import event_files as ev
from schedlab.errors import HostError, RecordError, UnavailableError, UsageError
from schedlab.hosts.guest import policies as guest
from schedlab.hosts.linux.launch import Command, Launcher
from schedlab.hosts.linux.recorder import Recorder, convert_events, probe, unavailable_reason
from schedlab.measure.machine_costs import slice_of_linux
from schedlab.measure.recording import import_trace
from schedlab.metrics import consistency
from schedlab.metrics.dictionary import compute_metrics
from schedlab.metrics.timeline import Timeline
from schedlab.policy.linux_class import parse_class
from schedlab.records.file import Call, Kind, Stop, read_records

TIMEOUT_NS = 30 * 10**9
#: Two processes that wake each other by turns: at least 4,000 switches.
PING_PONG = """
import os
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    for _ in range(2000):
        os.write(back[1], os.read(there[0], 1))
    os._exit(0)
for _ in range(2000):
    os.write(there[1], b"x")
    os.read(back[0], 1)
os.wait()
"""


@pytest.fixture(scope="module", autouse=True)
def program(build):
    return build / "hosts" / "linux" / "schedlab-record"


@pytest.fixture
def may_record(program):
    reason = unavailable_reason()
    if reason:
        pytest.skip(reason)


# ---- conversion -------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "not a file of recorded events"),
        (b"x" * 200, "not a file of recorded events"),
        (ev.header(version=7), "version 7"),
        (ev.header(n_cpus=0), "0 CPUs"),
        (ev.header() + ev.event(99, 1) + ev.event(ev.END, 2), "at byte 64: no event .kind 99"),
        (
            ev.header() + ev.event(ev.WAKING, 1, 5, 1 << 30) + ev.event(ev.END, 2),
            "at byte 64: no event .kind 2",
        ),
        (ev.header() + ev.event(ev.SWITCH, 1, cpu=9) + ev.event(ev.END, 2), "CPU 9"),
        (ev.header() + ev.event(ev.SWITCH, 1, 1 << 30) + ev.event(ev.END, 2), "at byte 64"),
    ],
)
def test_what_is_no_file_of_events_is_refused(tmp_path, raw, message):
    path = tmp_path / "x.slev"
    path.write_bytes(raw)
    with pytest.raises(RecordError, match=message):
        convert_events(path, tmp_path / "x.slr")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RecordError, match="x.slev: No such file"):
        convert_events(tmp_path / "x.slev", tmp_path / "x.slr")


#: Pid 10 forks 11, which sleeps; outsider 7 comes between.
STORY = [
    ev.event(ev.SWITCH, 900, 0, 10, 0, flags=120),
    ev.named(10, b"first"),
    ev.event(ev.MEMBER, 950, 10, 1, 0, flags=1),
    ev.event(ev.FORK, 1100, 11, 10),
    ev.event(ev.NEW, 1110, 11, 10, 1),
    ev.named(11, b"child", cpu=1),
    ev.event(ev.SWITCH, 1120, 0, 11, 0, cpu=1, flags=110),
    ev.event(ev.SWITCH, 1200, 11, 0, ev.BLOCKED, cpu=1),
    ev.event(ev.SWITCH, 1300, 10, 7, 0),
    ev.event(ev.WAKING, 1350, 11, 7, 1),
    ev.event(ev.MIGRATE, 1351, 11, 1, 0),
    ev.event(ev.WAKEUP, 1352, 11, 7, 0),
    ev.event(ev.SWITCH, 1400, 7, 11, ev.BLOCKED, flags=110),
    ev.event(ev.WAKING, 1450, 10, 11, 0, flags=1),
    ev.event(ev.SWITCH, 1500, 11, 10, ev.DEAD, flags=120),
    ev.event(ev.SWITCH, 1600, 10, 0, ev.DEAD),
    ev.event(ev.END, 2000),
]


def test_a_story_of_two_tasks(convert):
    converted, records = convert(STORY)
    assert ev.rows(records) == [
        ("ARRIVE", 0, 1, 0, 0, 0),
        ("RUN", 0, 1, 0, 0, 0),
        ("ARRIVE", 110, 2, 1, 0, 1),
        ("RUN", 120, 2, 1, 0, 0),
        ("STOP", 200, 2, 1, Stop.BLOCKED, 80),
        ("STOP", 300, 1, 0, Stop.PREEMPTED, 300),
        ("WAKE", 350, 2, 0, 0, 0),
        ("MIGRATE", 351, 2, 0, 0, 1),
        ("OVERHEAD", 400, 0, 0, 4, 100),
        ("RUN", 400, 2, 0, 0, 0),
        ("STOP", 500, 2, 0, Stop.EXITED, 100),
        ("RUN", 500, 1, 0, 0, 0),
        ("STOP", 600, 1, 0, Stop.EXITED, 100),
    ]
    assert consistency.check(Timeline(records)) == "ok"
    assert [(t["pid"], t["parent"], t["priority"]) for t in converted.tasks] == [(10, 0, 120), (11, 1, 110)]
    assert [task["name"] for task in converted.tasks] == ["first", "child"]
    assert converted.have_all_ended and converted.is_whole and records.tick_ns == ev.TICK_NS
    assert (converted.n_repairs, converted.n_inferred) == (0, 0)


def test_a_file_that_was_cut_off_counts_up_to_its_last_sync(convert):
    whole = [*STORY[:8], ev.event(ev.SYNC, 1250), *STORY[8:10]]
    converted, records = convert([*whole, STORY[10][:10]])
    assert not converted.is_whole and not converted.have_all_ended
    assert records.end_ns == 250
    assert ev.rows(records, Kind.STOP)[-1] == ("STOP", 250, 1, 0, Stop.HORIZON, 250)


def test_a_window_of_a_recording(convert):
    converted, records = convert(STORY, origin_ns=1150, end_ns=1450)
    assert ev.rows(records, Kind.ARRIVE, Kind.RUN)[:4] == [
        ("ARRIVE", 0, 1, 0, 0, 0),
        ("RUN", 0, 1, 0, 0, 0),
        ("ARRIVE", 0, 2, 1, 0, 0),
        ("RUN", 0, 2, 1, 0, 0),
    ]
    assert converted.end_ns == 300
    assert consistency.check(Timeline(records), consistency.Expectations(horizon_ns=300)) == "ok"


def test_only_a_generation_is_meant_and_each_command_is_a_tree_of_its_own(convert):
    events = [
        ev.event(ev.MEMBER, 900, 5, 1, 0),
        ev.event(ev.FORK, 1100, 6, 5),  # the keeper
        ev.event(ev.FORK, 1200, 20, 6),
        ev.event(ev.FORK, 1201, 30, 6),
        ev.event(ev.NEW, 1210, 20, 6, 0),
        ev.event(ev.FORK, 1220, 21, 20),
        ev.event(ev.NEW, 1230, 21, 20, 0),
        ev.event(ev.NEW, 1240, 30, 6, 1),
        ev.event(ev.END, 2000),
    ]
    converted, records = convert(events, depth_min=2)
    assert [(t["pid"], t["root"]) for t in converted.tasks] == [(20, 1), (21, 1), (30, 2)]
    assert converted.origin_ns == 1200, "time 0 is when the first command was made"
    assert records.end_ns == 800


def test_a_thread_that_executes_takes_the_pid_of_the_first(convert):
    events = [
        ev.event(ev.MEMBER, 900, 10, 1, 0, flags=1),
        ev.event(ev.SWITCH, 1010, 0, 10, 0, flags=120),
        ev.event(ev.FORK, 1020, 11, 10),
        ev.event(ev.NEW, 1021, 11, 10, 0),
        ev.event(ev.SWITCH, 1030, 10, 11, ev.DEAD, flags=120),
        ev.event(ev.EXEC, 1040, 10, 11),
        ev.event(ev.SWITCH, 1050, 10, 0, ev.BLOCKED),
        ev.event(ev.END, 1100),
    ]
    converted, records = convert(events)
    assert ev.rows(records, Kind.STOP)[-1] == ("STOP", 50, 2, 0, Stop.BLOCKED, 20)
    assert converted.n_repairs == converted.n_inferred == 0


def test_a_yield_is_told_from_a_preemption(convert):
    events = [
        ev.event(ev.MEMBER, 900, 10, 1, 0, flags=1),
        ev.event(ev.SWITCH, 1010, 0, 10, 0, flags=120),
        ev.event(ev.YIELD, 1020, 10),
        ev.event(ev.SWITCH, 1030, 10, 7, 0),
        ev.event(ev.SWITCH, 1040, 7, 10, ev.BLOCKED, flags=120),
        ev.event(ev.SWITCH, 1050, 10, 7, 0x100),
        ev.event(ev.END, 1100),
    ]
    _, records = convert(events)
    assert [row[4] for row in ev.rows(records, Kind.STOP)] == [Stop.YIELDED, Stop.PREEMPTED]


def test_calls_are_recorded_and_tell_whose_doing_a_soft_interrupt_was(convert):
    """11 is a thread of 10; it waits in a read, and 10 wakes it over loopback, in a soft interrupt of its write."""
    events = [
        ev.event(ev.MEMBER, 900, 10, 1, 0, flags=1),
        ev.event(ev.SWITCH, 1010, 0, 10, 0, flags=120),
        ev.event(ev.THREAD, 1020, 11),
        ev.event(ev.FORK, 1021, 11, 10),
        ev.event(ev.NEW, 1022, 11, 10, 1),
        ev.event(ev.SWITCH, 1030, 0, 11, 0, cpu=1, flags=120),
        ev.event(ev.CALL, 1040, 11, 5, flags=Call.READ, cpu=1),
        ev.event(ev.SWITCH, 1050, 11, 0, ev.BLOCKED, cpu=1),
        ev.event(ev.CALL, 1100, 10, 3, flags=Call.WRITE),
        ev.event(ev.WAKING, 1110, 11, 10, 1, flags=ev.IN_INTERRUPT | ev.IN_SOFTIRQ),
        ev.event(ev.RETURN, 1120, 10, 0, 40, flags=Call.WRITE),
        ev.event(ev.SWITCH, 1130, 0, 11, 0, cpu=1, flags=120),
        ev.event(ev.RETURN, 1140, 11, 0, -11, flags=Call.READ, cpu=1),
        ev.event(ev.SWITCH, 1150, 11, 0, ev.BLOCKED, cpu=1),
        ev.event(ev.WAKING, 1160, 11, 10, 1, flags=ev.IN_INTERRUPT | ev.IN_SOFTIRQ),
        ev.event(ev.END, 1200),
    ]
    _, records = convert(events)
    process = 1 << 32
    assert ev.rows(records, Kind.CALL, Kind.RETURN) == [
        ("CALL", 40, 2, 1, Call.READ, process | 5),
        ("CALL", 100, 1, 0, Call.WRITE, process | 3),
        ("RETURN", 120, 1, 0, Call.WRITE, 40),
        ("RETURN", 140, 2, 1, Call.READ, (1 << 64) - 11),
    ]
    assert [row[5] for row in ev.rows(records, Kind.WAKE)] == [1, 0], "outside of a call it may be any packet"
    assert consistency.check(Timeline(records), consistency.Expectations(horizon_ns=records.end_ns)) == "ok"


def test_everybody_but_the_recorder(convert):
    events = [
        ev.event(ev.SWITCH, 1010, 99, 10, ev.BLOCKED, flags=120),
        ev.event(ev.SWITCH, 1020, 10, 11, 0, flags=120),
        ev.event(ev.END, 1100),
    ]
    converted, records = convert(events, is_all=True, recorder_pid=99)
    assert [task["pid"] for task in converted.tasks] == [10, 11]
    assert ev.rows(records, Kind.STOP)[-1] == ("STOP", 100, 2, 0, Stop.HORIZON, 80)


def test_lost_events_are_counted_and_spoil_the_numbers(convert):
    converted, records = convert([*STORY[:7], ev.event(ev.LOST, 1200, 0, 12), *STORY[9:]])
    assert converted.n_lost == records.n_lost == 12
    assert "12 records were lost" in consistency.check(Timeline(records))


EVENTS = st.builds(
    lambda kind, gap, pid, other, value, cpu, flags: (kind, gap, pid, other, value, cpu, flags),
    st.sampled_from([ev.SWITCH] * 6 + [ev.WAKING, ev.WAKEUP, ev.NEW, ev.MIGRATE, ev.FORK, ev.EXIT,
                     ev.EXEC, ev.YIELD, ev.RUNTIME, ev.MEMBER, ev.CALL, ev.RETURN, ev.THREAD]),
    st.integers(-3, 40), st.integers(0, 6), st.integers(0, 6),
    st.sampled_from([0, 0, 1, 1, ev.DEAD, 0x100, -1, 77]), st.integers(0, 2), st.integers(0, 255),
)  # fmt: skip


@settings(max_examples=40)
@example([(ev.SWITCH, 1, 1, 2, 0, 0, 0), (ev.SWITCH, 1, 1, 2, 0, 1, 0)], True, 0)
@given(st.lists(EVENTS, max_size=60), st.booleans(), st.integers(-50, 300))
def test_any_events_make_a_possible_run(convert_any, events, is_all, origin):
    t_ns, raw = 1000, []
    for kind, gap, pid, other, value, cpu, flags in events:
        t_ns += gap
        raw.append(ev.event(kind, t_ns, pid, other, value, cpu=cpu, flags=flags))
    raw.append(ev.event(ev.END, max(t_ns, 1000) + 301))
    converted, records = convert_any(raw, is_all, 1000 + origin)
    expected = consistency.Expectations(horizon_ns=records.end_ns)
    assert consistency.check(Timeline(records), expected) == "ok"
    assert len(converted.tasks) == len(np.unique(records.events["task"][records.events["task"] > 0]))
    compute_metrics(Timeline(records))


@pytest.fixture(scope="module")
def convert_any(tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")

    def do(raw, is_all, origin_ns):
        ev.write(folder / "x.slev", raw, n_cpus=3, is_all=is_all)
        converted = convert_events(folder / "x.slev", folder / "x.slr", origin_ns=origin_ns)
        return converted, read_records(folder / "x.slr")

    return do


# ---- real commands ------------------------------------------------------------


def record_command(recorder, launcher, folder, argv):
    """Records from the command's fork on, not from its start, since Linux counts from there, too."""
    events, records = folder / "x.slev", folder / "x.slr"
    command = Command(tuple(argv), parse_class("SCHED_OTHER"), ())
    # Where a disk keeps the recorder waiting, events are lost, and that is said.
    for _ in range(5):
        recorder.follow(events, pid=launcher.pid, generation=2)
        answer = launcher.run([command], timeout_ns=TIMEOUT_NS)
        captured = recorder.stop()
        if not captured.n_lost:
            break
    assert captured.n_lost == 0 and captured.write_error is None
    report = answer["commands"][0]
    converted = convert_events(events, records, end_ns=report["tree_end_ns"])
    assert converted.origin_ns < report["start_ns"]
    return report, converted, read_records(records)


TREE = ["sh", "-c", "for i in 1 2 3; do (sleep 0.02; seq 2000 | sort | tail -1) & done; wait"]


def test_a_tree_of_processes_is_seen_as_the_kernel_counts_it(may_record, tmp_path):
    with Recorder() as recorder, Launcher() as launcher:
        report, converted, records = record_command(recorder, launcher, tmp_path, TREE)
    assert consistency.check(Timeline(records)) == "ok"
    # The shell, three subshells, and in each a sleep and a pipeline of three;
    # a shell may become the last of its pipeline instead of forking it.
    assert 13 <= len(converted.tasks) <= 16 and converted.have_all_ended
    assert {task["name"] for task in converted.tasks} >= {"sh", "sleep", "seq", "sort"}
    usage = {key: report["own"][key] + report["orphans"][key] for key in report["own"]}
    metrics = compute_metrics(Timeline(records)).run
    assert metrics["switches_involuntary"] == usage["involuntary_switches"]
    # Linux counts a task's last switch of all, too, unless its parent asked before that.
    ends = usage["voluntary_switches"] - metrics["switches_voluntary"]
    assert 0 <= ends <= len(converted.tasks)


def test_a_tree_is_busy_as_long_as_the_kernel_counts(may_record, tmp_path):
    """Within 1.5 % in each of 50 on a busy machine; what a hypervisor takes may be in one figure only."""
    found = []
    for _ in range(5):
        # Each with a recorder that knows nothing yet of what this kernel hides.
        with Recorder() as recorder, Launcher() as launcher:
            report, converted, records = record_command(recorder, launcher, tmp_path, TREE)
        busy_ns = compute_metrics(Timeline(records)).run["busy_ns"]
        cpu_ns = sum(
            1000 * report[who][key] for who in ("own", "orphans") for key in ("user_us", "system_us")
        )
        found.append((busy_ns / cpu_ns, busy_ns, cpu_ns, converted.n_inferred, converted.n_repairs))
    assert min(found)[0] >= 0.7, found
    assert sorted(found)[2][0] == pytest.approx(1, abs=0.2), found


def test_whoever_runs_is_recorded_and_a_second_recording_is_independent(may_record, tmp_path):
    with Recorder() as recorder:
        for name in ("a", "b"):
            recorder.record_all(tmp_path / name)
            subprocess.run(["sh", "-c", f"exec sleep 0.0{ord(name) % 7}"], check=True)
            recorder.stop()
            converted = convert_events(tmp_path / name, tmp_path / "x.slr")
            assert "sleep" in {task["name"] for task in converted.tasks}
            assert recorder.pid not in {task["pid"] for task in converted.tasks}
        with pytest.raises(UsageError, match="cannot be written"):
            recorder.record_all(tmp_path / "missing" / "x")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_each_account_that_another_cpu_makes_is_recorded_once(may_record, busy_process, tmp_path):
    """The kernel offers a sample for each nanosecond of them, until it has had enough."""
    path = tmp_path / "x.slev"
    here, there = sorted(os.sched_getaffinity(0))[:2]
    child = busy_process(there)
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, [here])
        with Recorder() as recorder:
            recorder.record_all(path)
            # A new nice value has the accounts done of whoever runs there.
            for i in range(400):
                os.setpriority(os.PRIO_PROCESS, child.pid, 1 + i % 2)
                time.sleep(0.0005)
            recorder.stop()
    finally:
        os.sched_setaffinity(0, before)
    found = [event for event in ev.read(path) if (event[2], event[3]) == (ev.RUNTIME, ev.ELSEWHERE)]
    assert len(set(found)) == len(found) >= 20


def test_a_recorder_that_is_killed_leaves_what_it_had(may_record, tmp_path):
    path = tmp_path / "x.slev"
    with Recorder() as recorder:
        recorder.record_all(path)
        enough_bytes, deadline = path.stat().st_size + 24 * 100, time.monotonic() + 20
        while path.stat().st_size < enough_bytes and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(recorder.pid, signal.SIGKILL)
        with pytest.raises(HostError, match="was it killed"):
            recorder.stop()
    converted = convert_events(path, tmp_path / "x.slr")
    assert not converted.is_whole and converted.tasks
    read_records(tmp_path / "x.slr")


def test_a_full_disk_is_told_and_what_was_written_can_be_read(may_record, tmp_path, program):
    """A limit on the size of files stands for the disk; both are a failed write."""
    path = tmp_path / "x.slev"
    script = f"ulimit -f 64; exec {program} capture"
    process = subprocess.Popen(
        ["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    process.stdin.write(f"all {path}\n")
    process.stdin.flush()
    process.stdout.readline()
    # A round of the recorder that fits, before the one that does not.
    size = path.stat().st_size
    while path.stat().st_size == size:
        time.sleep(0.01)
    subprocess.run([sys.executable, "-S", "-c", PING_PONG], check=True)
    answer, _ = process.communicate("stop\n", timeout=30)
    assert "File too large" in answer
    assert path.stat().st_size <= 64 * 1024
    converted = convert_events(path, tmp_path / "x.slr")
    assert not converted.is_whole and converted.tasks


def test_a_ring_that_is_too_small_says_how_much_was_lost(may_record, tmp_path):
    with Recorder(buffer_kib=16) as recorder:
        recorder.record_all(tmp_path / "x.slev")
        # While it is stopped, nobody empties the rings.
        os.kill(recorder.pid, signal.SIGSTOP)
        subprocess.run([sys.executable, "-S", "-c", PING_PONG], check=True)
        os.kill(recorder.pid, signal.SIGCONT)
        captured = recorder.stop()
    assert captured.n_lost > 100
    converted = convert_events(tmp_path / "x.slev", tmp_path / "x.slr")
    assert converted.n_lost == captured.n_lost == read_records(tmp_path / "x.slr").n_lost


def test_the_end_of_the_input_ends_recorder_and_file(may_record, tmp_path, program):
    path = tmp_path / "x.slev"
    done = subprocess.run(
        [program, "capture"], input=f"all {path}\n", text=True, capture_output=True, timeout=30
    )
    assert done.returncode == 0
    assert convert_events(path, tmp_path / "x.slr").is_whole


def test_without_privileges_the_reason_names_what_is_needed(program):
    if os.getuid() != 0 or not Path("/bin/su").exists():
        pytest.skip("needs root to become nobody")
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "probe"],
        capture_output=True,
        text=True,
    )
    if "Permission denied" in done.stderr:
        pytest.skip("nobody may not read this folder")
    assert "CAP_SYS_ADMIN" in done.stdout or "CAP_PERFMON" in done.stdout


def test_what_is_allowed_is_found_out_without_changing_anything(program):
    mounts = Path("/proc/self/mounts").read_text()
    assert set(probe()) == {"tracefs", "perf_event_open"}
    assert Path("/proc/self/mounts").read_text() == mounts


def test_an_unknown_word_is_refused(program):
    with pytest.raises(UnavailableError, match="16 to 1048576 KiB"):
        Recorder(buffer_kib=1)


def test_the_benchmark_converts_what_it_says(root, tmp_path):
    spec = importlib.util.spec_from_file_location("record_bench", root / "bench" / "record_bench.py")
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    bench.write_synthetic(tmp_path / "x.slev", 3000)
    converted = convert_events(tmp_path / "x.slev", tmp_path / "x.slr")
    records = read_records(tmp_path / "x.slr")
    assert converted.n_events == 3000 + bench.NR_TASKS + 1
    assert (len(converted.tasks), converted.n_repairs, converted.n_inferred) == (bench.NR_TASKS, 0, 0)
    assert consistency.check(Timeline(records), consistency.Expectations(horizon_ns=records.end_ns)) == "ok"
    assert int((records.events["kind"] == Kind.RUN).sum()) == 1000


# ---- a copy on a machine without schedlab --------------------------------------


def imported(events, folder):
    """The run that a file of events becomes, as its user sees it."""
    run = import_trace(events, folder)
    assert (run["status"], run["consistency"]) == ("ok", "ok"), run["error"]
    assert run["recording"]["lost"] == 0
    return run


def test_the_recorder_needs_no_other_file(program):
    said = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    assert "LOAD" in said
    assert "INTERP" not in said and "DYNAMIC" not in said


def test_a_copy_records_where_there_is_nothing_else(may_record, program, tmp_path):
    """An empty folder as the root, with nothing mounted but what the kernel itself has."""
    root = tmp_path / "root"
    for place in ("proc", "sys/kernel/tracing"):
        (root / place).mkdir(parents=True)
    shutil.copy(program, root / "schedlab-record")
    script = (
        f"mount -t proc proc {root}/proc && mount -t tracefs nodev {root}/sys/kernel/tracing && "
        f"exec chroot {root} /schedlab-record record --causes --out /x.slev -- /schedlab-record probe"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    run = imported(root / "x.slev", tmp_path / "run")
    assert [task["name"] for task in run["tasks"]] == ["schedlab-record"]
    # What a call costs was measured there, as the slice was read, and both are known here.
    costs = run["recording"]["recorder_ns"]
    assert set(costs) == {"call", "other_call", "switch", "wakeup"} and all(
        0 < ns < 10**6 for ns in costs.values()
    )
    assert all(0 < run["recording"]["costs"][name] < 10**6 for name in ("switch_ns", "leave_ns"))
    assert run["recording"]["slice_ns"] == slice_of_linux()


@pytest.mark.parametrize("ends_by", ["time", "Ctrl-C", "the process"])
def test_a_copy_records_a_process_until(may_record, program, busy_process, tmp_path, ends_by):
    length = "300ms" if ends_by == "time" else "1h"
    process = busy_process()
    words = [program, "record", "--pid", str(process.pid), "--for", length, "--out", tmp_path / "x.slev"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as recorder:
        while not (tmp_path / "x.slev").exists():
            time.sleep(0.01)
        time.sleep(0.3)
        if ends_by == "Ctrl-C":
            recorder.send_signal(signal.SIGINT)
        elif ends_by == "the process":
            process.kill()
        assert "0 lost" in recorder.communicate(timeout=20)[1]
    assert recorder.returncode == 0
    assert imported(tmp_path / "x.slev", tmp_path / "run")["tasks"][0]["pid"] == process.pid


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "record what?"),
        (["--system", "1s", "--pid", "1"], "record what?"),
        (["--"], "record what?"),
        (["--system", "1"], "a number and one of ms, s, min, h"),
        (["--system", "1s", "--out", "/nonesuch/x"], "/nonesuch/x: cannot be written: No such file"),
        (["--pid", str(2**22 - 1)], "No such process"),
        (["--cgroup", "/none/such"], "there is no such cgroup"),
        (["--colour", "red"], "unknown option --colour"),
        (["--out"], "its value is missing"),
    ],
)
def test_a_copy_refuses_what_it_cannot_do(may_record, program, words, message):
    done = subprocess.run([program, "record", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr


@pytest.mark.full
def test_a_copy_records_in_another_kernel(guest_parts, program, tmp_path):
    """The guest's, whose only other file is its first process."""
    place = "/proc/self/fd/1"
    words = ("/recorder", "record", "--system", "200ms", "--out", place)
    task = guest.GuestTask("recorder", b"", command=words, hold_ms=2000)
    (answer,) = guest.run_guest([task], files={"/recorder": program.read_bytes()})
    assert (answer.fatal, answer.status) == ([], 0), answer.output
    events, mark, said = answer.output.partition(f"{place}: ".encode())
    assert mark and b" 0 lost" in said
    (tmp_path / "x.slev").write_bytes(events)
    run = imported(tmp_path / "x.slev", tmp_path / "run")
    assert run["cpus"] == 1 and run["tasks"]  # threads of the kernel
    assert 190e6 < run["metrics"]["makespan_ns"] < 300e6
