# SPDX-License-Identifier: MIT
"""Traces printed by other tools: understood, or refused with their line."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from linux import event_files as ev
from schedlab.errors import RecordError, UnavailableError
from schedlab.hosts.host import Job
from schedlab.hosts.linux.recorder import convert_events, import_events
from schedlab.hosts.sim import SimHost
from schedlab.measure.recording import import_trace
from schedlab.metrics import consistency
from schedlab.metrics.timeline import Timeline
from schedlab.plots.trace import write_trace
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Stop, read_records
from schedlab.records.foreign import find_source
from schedlab.show.record import show_recording
from schedlab.workload.find import load_workload

#: Kept as they came: traces/TOOL.txt.
TRACES = ["trace-cmd", "perf"]
FTRACE = """\
# tracer: nop
#                                _-----=> irqs-off/BH-disabled
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0       [001] dNh4.   100.000010: sched_waking: comm=two words pid=812 prio=120 target_cpu=001
          <idle>-0       [001] d..2.   100.000020: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=two words next_pid=812 next_prio=125
       two words-812     [001] .....   100.000030: sys_enter: NR 24 (0, 0)
       two words-812     [001] d..3.   100.000040: sched_waking: comm=x pid=900 prio=120 target_cpu=000
       two words-812     [001] d..2.   100.000050: sched_switch: prev_comm=two words prev_pid=812 prev_prio=125 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0       [000] d..2.   100.000060: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=x next_pid=900 next_prio=120
               x-900     [000] d..2.   100.000090: sched_switch: prev_comm=x prev_pid=900 prev_prio=120 prev_state=Z ==> next_comm=swapper/0 next_pid=0 next_prio=120
"""
TRACE_CMD = """\
cpus=2
          <idle>-0     [001]   100.000010: sched_waking:         comm=two words pid=812 prio=120 target_cpu=001
          <idle>-0     [001]   100.000020: sched_switch:         swapper/1:0 [120] R ==> two words:812 [125]
       two words-812   [001]   100.000040: sched_waking:         comm=x pid=900 prio=120 target_cpu=000
       two words-812   [001]   100.000050: sched_switch:         two words:812 [125] S ==> swapper/1:0 [120]
          <idle>-0     [000]   100.000060: sched_switch:         swapper/0:0 [120] R ==> x:900 [120]
               x-900   [000]   100.000090: sched_switch:         x:900 [120] Z ==> swapper/0:0 [120]
"""
PERF = """\
swapper     0 [001]   100.000010:       sched:sched_waking: comm=two words pid=812 prio=120 target_cpu=001
swapper     0 [001]   100.000020:       sched:sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=two words next_pid=812 next_prio=125
two words   812/812   [001]   100.000040:       sched:sched_waking: comm=x pid=900 prio=120 target_cpu=000
two words   812 [001]   100.000050:       sched:sched_switch: two words:812 [125] S ==> swapper/1:0 [120]
swapper     0 [000]   100.000060:       sched:sched_switch: swapper/0:0 [120] R ==> x:900 [120]
x   900 [000]   100.000090:       sched:sched_switch: x:900 [120] Z ==> swapper/0:0 [120]
"""


@pytest.fixture(scope="module", autouse=True)
def program(build):
    return build / "hosts" / "linux" / "schedlab-record"


def read_trace(text, folder):
    """Make x.slev of a text."""
    (folder / "trace.txt").write_text(text)
    return import_events(find_source(folder / "trace.txt"), folder / "x.slev")


@pytest.fixture
def convert(tmp_path):
    def do(text):
        read_trace(text, tmp_path)
        converted = convert_events(tmp_path / "x.slev", tmp_path / "x.slr")
        return converted, read_records(tmp_path / "x.slr")

    return do


@pytest.mark.parametrize(
    "text",
    [FTRACE, TRACE_CMD, PERF, FTRACE.replace("-812 ", "-812     (    812)")],
    ids=["ftrace", "trace-cmd", "perf", "tgid"],
)
def test_the_faces_of_one_trace_say_the_same(convert, text):
    converted, records = convert(text)
    assert [(t["pid"], t["name"]) for t in converted.tasks] == [(812, "two words"), (900, "x")]
    assert converted.tasks[0]["priority"] == 125
    events = [
        tuple(int(e[name]) for name in ("t_ns", "task", "cpu", "kind", "flags", "arg"))
        for e in records.events
    ]
    assert events == [
        (0, 1, 1, Kind.ARRIVE, 0, 0),
        (10_000, 1, 1, Kind.RUN, 0, 0),
        (30_000, 2, 0, Kind.ARRIVE, 0, 0),
        (40_000, 1, 1, Kind.STOP, Stop.BLOCKED, 30_000),
        (50_000, 2, 0, Kind.RUN, 0, 0),
        (80_000, 2, 0, Kind.STOP, Stop.EXITED, 30_000),
    ]


def test_a_wake_up_from_an_interrupt_has_no_waker(convert):
    again = "\n".join(FTRACE.splitlines()[3:])
    shifted = again.replace("100.000", "100.001").replace("x-900", "x-901").replace("pid=900", "pid=901")
    _, records = convert(again + "\n" + shifted)
    wakes = records.events[records.events["kind"] == Kind.WAKE]
    assert wakes["arg"].tolist() == [0]


@pytest.mark.parametrize("policy", ["rr", "cfs"])
@pytest.mark.parametrize("workload", ["mixed", "classics/requests"])
def test_what_we_export_comes_back(simulator, convert, tmp_path, workload, policy):
    """The known answer: a simulated run, printed as Linux would and read again."""
    loaded = load_workload(workload)
    program = compile_workload(loaded, seed=2)
    (tmp_path / "p").write_bytes(program.data)
    session = SimHost().session(timeout_seconds=60)
    job = Job(
        "a test",
        build_policy(load_policy(policy)),
        tmp_path / "p",
        tmp_path / "r.slr",
        loaded.cpus,
        2,
        loaded.tick_ns,
    )
    assert session.run(job).error is None
    session.close()
    first = read_records(tmp_path / "r.slr")
    write_trace(first, tmp_path / "t.txt", names={}, form="ftrace")
    converted, again = convert((tmp_path / "t.txt").read_text())
    pid = {task["task"]: task["pid"] for task in converted.tasks}
    start_ns = int(first.events["t_ns"][0])

    def decisions(records, number, offset_ns):
        # Which of several things of one instant comes first, a trace does not keep.
        return sorted(
            (t + offset_ns, number(task), cpu, kind, flags, arg)
            for t, task, cpu, kind, flags, arg in records.events.tolist()
            if kind in (Kind.RUN, Kind.STOP) and not (kind == Kind.STOP and arg == 0)
        )

    assert len(pid) == program.n_tasks and converted.n_repairs == 0
    ran = [row for row in decisions(first, int, 0) if row[3] == Kind.STOP]
    assert [row[:5] + row[5:] for row in decisions(again, pid.get, start_ns) if row[3] == Kind.STOP] == ran


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no sched_switch in it"),
        ("hello\nworld\n", "no sched_switch in it.*trace-cmd record .*-e sched_switch"),
        (FTRACE.replace("prev_pid=812", "prev_pid="), "trace.txt:8: sched_switch without its fields"),
        (
            FTRACE.replace("pid=900 prio=120 target", "pid=99999999 prio=120 target"),
            "trace.txt:7: pid 99999999",
        ),
        (FTRACE.replace("[000]", "[99999]"), "trace.txt:9: CPU 99999"),
        (PERF.replace("100.000050", "99999999999999.000050"), "trace.txt:4: the time"),
        (PERF.replace(" S ==>", " Q ==>"), "trace.txt:4: sched_switch with a state that is unknown"),
        (
            PERF.replace("812 [001]   100.000050", "100.000050"),
            "trace.txt:4: an event without task, CPU and time",
        ),
        (
            FTRACE.replace("_pid=812 next", "_pid=99999999999999999999 next"),
            "trace.txt:5: pid 4294967295 is more",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path, text, message):
    (tmp_path / "trace.txt").write_text(text)
    with pytest.raises(RecordError, match=message):
        import_trace(tmp_path / "trace.txt", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_last_line_that_is_cut_off_is_left_out(convert):
    _, whole = convert("\n".join(FTRACE.splitlines()[:-1]) + "\n")
    # Also where it could be read: a number may have lost digits.
    for n_bytes in (1, 2, 40):
        _, cut = convert(FTRACE[:-n_bytes])
        assert cut.events.tolist() == whole.events.tolist()


@pytest.mark.parametrize("line", ["CPU:1 [LOST 12 EVENTS]", "CPU:1 [12 EVENTS DROPPED]"])
def test_lost_events_are_seen(convert, line):
    converted, records = convert(FTRACE + line + "\n")
    assert converted.n_lost == records.n_lost == 12


def test_a_file_becomes_a_run(tmp_path):
    (tmp_path / "build.txt").write_text(TRACE_CMD)
    run = import_trace(tmp_path / "build.txt", tmp_path / "run")
    assert (run["status"], run["workload"], run["metrics"]["tasks"]) == ("ok", "build", 2)
    assert (tmp_path / "run" / "run.json").is_file()
    with pytest.raises(RecordError, match="missing.txt: cannot be read"):
        import_trace(tmp_path / "missing.txt", tmp_path / "other")
    assert not (tmp_path / "other").exists()
    (tmp_path / "bad.txt").write_text("?")
    with pytest.raises(RecordError, match="bad.txt: no sched_switch"):
        import_trace(tmp_path / "bad.txt", tmp_path / "other")
    assert not (tmp_path / "other").exists()


ACCOUNTS = """\
 x-9   [000] d..2.   1.000000: sched_switch: prev_comm=x prev_pid=9 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
 y-8   [001] d..2.   1.000000: sched_switch: prev_comm=y prev_pid=8 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
 a-10  [000] d..2.   1.000050: sched_stat_runtime: comm=b pid=11 runtime=50000 [ns]
 a-10  [000] d..2.   1.000060: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=x next_pid=9 next_prio=120
 b-11  [001] d..2.   1.000070: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=y next_pid=8 next_prio=120
"""


def test_whose_accounts_another_cpu_makes_does_not_run_there(convert):
    converted, records = convert(ACCOUNTS)
    assert (converted.n_repairs, converted.n_inferred) == (0, 0)
    stops = records.events[(records.events["kind"] == Kind.STOP) & (records.events["flags"] == Stop.BLOCKED)]
    assert stops["arg"].tolist() == [60_000, 70_000]


def test_an_import_replaces_what_was_in_its_directory_and_what_cannot_be_read_does_not(tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    for name in ("events.slev", "run.json", "tasks.parquet"):
        (out / name).write_text("of a recording that failed")
    (tmp_path / "bad.txt").write_text("?")
    with pytest.raises(RecordError):
        import_trace(tmp_path / "bad.txt", out)
    assert sorted(path.name for path in out.iterdir()) == ["events.slev", "run.json", "tasks.parquet"]
    (tmp_path / "build.txt").write_text(TRACE_CMD)
    import_trace(tmp_path / "build.txt", out)
    assert {path.name for path in out.iterdir()} == {
        "run.json",
        "records.slr",
        "records.parquet",
        "tasks.parquet",
        "metrics.parquet",
    }
    # Events may be imported where they are.
    (out / "events.slev").write_bytes(ev.header() + ev.event(ev.SWITCH, 1010, 0, 10) + ev.event(ev.END, 1100))
    import_trace(out / "events.slev", out)
    assert (out / "events.slev").exists()


def ping_pong(skew_us):
    """Two tasks that wake each other from their own CPUs, every 400 us; the clock of CPU 1 is wrong by so much."""

    def switch(t_us, cpu, left, state, right):
        return f"x-9 [00{cpu}] d..2. {t_us / 1e6:.6f}: sched_switch: prev_comm={left} prev_pid={PIDS[left]} prev_prio=120 " \
               f"prev_state={state} ==> next_comm={right} next_pid={PIDS[right]} next_prio=120\n"  # fmt: skip

    lines = []
    for turn in range(100):
        cpu, own, other = turn % 2, "ab"[turn % 2], "ba"[turn % 2]
        t_us = 10_000_000 + 400 * turn + cpu * skew_us
        idle = f"swapper/{cpu}"
        lines += [
            (t_us, switch(t_us, cpu, idle, "R", own)),
            (
                t_us + 380,
                f"{own}-{PIDS[own]} [00{cpu}] d..2. {(t_us + 380) / 1e6:.6f}: sched_waking: comm={other} "
                f"pid={PIDS[other]} prio=120 target_cpu=00{1 - cpu}\n",
            ),
            (t_us + 390, switch(t_us + 390, cpu, own, "S", idle)),
        ]
    return "".join(line for _, line in sorted(lines))


PIDS = {"swapper/0": 0, "swapper/1": 0, "a": 10, "b": 11}


@pytest.mark.parametrize("skew_us", [0, 10, 300, -300, 1000, 70_000])
def test_clocks_of_cpus_that_differ_are_said(tmp_path, capsys, skew_us):
    (tmp_path / "t.txt").write_text(ping_pong(skew_us))
    run = import_trace(tmp_path / "t.txt", tmp_path / "run")
    show_recording(run)
    captured = capsys.readouterr()
    said = " ".join((captured.out + captured.err).split())
    is_said = "sleepers run again before they are woken: the clocks of CPUs differ" in said
    assert is_said == (abs(skew_us) > 20), said
    assert run["recording"]["clocks_differ_ns"] <= 1000 * abs(skew_us)


def test_the_line_to_go_on_with_can_be_copied_into_a_shell(tmp_path, capsys):
    (tmp_path / "build.txt").write_text(TRACE_CMD)
    run = import_trace(tmp_path / "build.txt", tmp_path / "a b;c")
    show_recording(run)
    _, _, commands = capsys.readouterr().out.partition("to go on:\n")
    assert len(commands.splitlines()) == 3
    for command in commands.splitlines():
        assert str(tmp_path / "a b;c") in shlex.split(command)


LINES = st.lists(
    st.sampled_from(FTRACE.splitlines() + TRACE_CMD.splitlines() + PERF.splitlines()), max_size=12
)
DAMAGE = st.lists(st.tuples(st.integers(0, 2000), st.characters(codec="utf-8")), max_size=6)


@settings(max_examples=60)
@example(FTRACE.splitlines(), [])
@given(LINES, DAMAGE)
def test_whatever_is_read_is_possible_or_refused(folder, lines, damage):
    text = list("\n".join(lines))
    for at, character in damage:
        if text:
            text[at % len(text)] = character
    try:
        read_trace("".join(text), folder)
    except RecordError as error:
        assert "trace.txt:" in str(error) and len(str(error)) < 900
        return
    convert_events(folder / "x.slev", folder / "x.slr")
    records = read_records(folder / "x.slr")
    expected = consistency.Expectations(horizon_ns=max(records.end_ns, 1))
    assert records.end_ns == 0 or consistency.check(Timeline(records), expected) == "ok"
    assert np.all(records.events["cpu"] < records.n_cpus)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("any")


def test_a_file_that_is_no_text_is_refused_and_not_a_traceback(tmp_path):
    (tmp_path / "x").write_bytes(bytes(range(256)) * 4)
    with pytest.raises(RecordError, match="no sched_switch"):
        import_trace(tmp_path / "x", tmp_path / "y")


@pytest.mark.parametrize(
    ("raw", "tool", "package"),
    [
        (b"PERFILE2\x68\0", "perf", "linux-perf"),
        (b"2ELIFREP\x68\0", "perf", "linux-perf"),
        (b"\x17\x08\x44tracing6\0", "trace-cmd", "trace-cmd"),
    ],
)
def test_a_tools_own_file_needs_the_tool(tmp_path, monkeypatch, raw, tool, package):
    (tmp_path / "my trace").write_bytes(raw + bytes(100))
    monkeypatch.setenv("PATH", str(tmp_path))
    hint = f"{tool} is not installed: apt-get install {package}; .*: {tool} .* 'my trace' > trace.txt"
    with pytest.raises(UnavailableError, match=hint):
        import_trace(tmp_path / "my trace", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("tool", TRACES)
def test_what_the_tools_really_print_becomes_a_run(tmp_path, tool):
    """`sh -c '(seq 300 | sort -r | tail -1) & wait'` on two CPUs of Debian's 7.2, recorded by the tool."""
    run = import_trace(Path(__file__).parent / "traces" / f"{tool}.txt", tmp_path / "run")
    assert (run["status"], run["consistency"], run["cpus"]) == ("ok", "ok", 2)
    names = {task["name"] for task in run["tasks"]}
    assert {"sh", "seq", "sort", "tail"} <= names
    # Each of the pipeline begins and ends in it.
    assert run["metrics"]["tasks_ended"] >= 4 and run["recording"]["lost"] == 0
