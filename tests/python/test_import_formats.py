# SPDX-License-Identifier: MIT
"""One recording in the formats of other tools: the same events, so the same program."""

from __future__ import annotations

import gzip
import shutil

import pytest

from python import trace_writers as writers
from schedlab.errors import RecordError
from schedlab.hosts.host import Job
from schedlab.hosts.sim import SimHost
from schedlab.measure.recording import import_trace
from schedlab.measure.replay import load_recorded
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import read_records
from schedlab.workload.find import load_workload

FORMATS = {
    "ftrace": writers.ftrace,
    "trace-cmd": writers.trace_cmd,
    "perf": writers.perf_script,
    "systrace": writers.systrace,
    "perfetto": writers.perfetto,
    "perfetto, compressed": lambda events: writers.perfetto(events, is_compressed=True),
    "perfetto, compact": writers.perfetto_compact,
    "gzip": lambda events: gzip.compress(writers.ftrace(events).encode()),
    "gzip of perfetto": lambda events: gzip.compress(writers.perfetto(events)),
}


@pytest.fixture(scope="module")
def events(simulator, tmp_path_factory):
    """A run with pipes, locks and sleeps, on several CPUs, as Linux's tracing sees it."""
    folder = tmp_path_factory.mktemp("run")
    loaded = load_workload("classics/requests")
    program = compile_workload(loaded, seed=2)
    (folder / "p").write_bytes(program.data)
    session = SimHost().session(timeout_seconds=60)
    policy = build_policy(load_policy("rr"))
    job = Job("a test", policy, folder / "p", folder / "r.slr", loaded.cpus, 2, loaded.tick_ns)
    assert session.run(job).error is None
    session.close()
    records = read_records(folder / "r.slr")
    return writers.events_of(records, {}), records.n_cpus


def program_hash(folder, data):
    """Import a trace; what its replay runs, and the hash of its records."""
    folder.mkdir()
    (folder / "trace").write_bytes(data if isinstance(data, bytes) else data.encode())
    run = import_trace(folder / "trace", folder / "run")
    assert (run["status"], run["recording"]["repairs"]) == ("ok", 0)
    return compile_workload(load_recorded(folder / "run"), seed=1).program_hash, run["record_hash"]


@pytest.fixture(scope="module")
def expected(events, tmp_path_factory):
    return program_hash(tmp_path_factory.mktemp("expected") / "x", writers.ftrace(events[0]))


@pytest.mark.parametrize("name", FORMATS)
def test_the_formats_of_one_recording_give_one_program(events, expected, tmp_path, name):
    assert program_hash(tmp_path / "x", FORMATS[name](events[0])) == expected


def test_a_file_of_trace_cmd_gives_the_same(events, expected, tmp_path):
    if shutil.which("trace-cmd") is None:
        pytest.skip("trace-cmd is not installed: apt-get install trace-cmd")
    assert program_hash(tmp_path / "x", writers.trace_dat(*events)) == expected


def test_another_event_gives_another_program(events, expected, tmp_path):
    moved = [(t + 5000 * (i > 40), *rest) for i, (t, *rest) in enumerate(events[0])]
    assert program_hash(tmp_path / "x", writers.ftrace(moved)) != expected


def test_an_anonymous_trace_keeps_the_work_and_loses_names_and_numbers(events, tmp_path):
    shifted = [
        (t, cpu, pid and pid + 3_141_000, name, _shifted(name, fields))
        for t, cpu, pid, name, fields in events[0]
    ]
    (tmp_path / "secret-name.txt").write_text(writers.ftrace(shifted))
    run = import_trace(tmp_path / "secret-name.txt", tmp_path / "run", is_anonymous=True)
    assert run["status"] == "ok"
    for file in (tmp_path / "run").rglob("*"):
        data = file.read_bytes()
        for word in (b"task-3", b"task-17", b"secret-name", b"3141003", b"3141017"):
            assert word not in data, (file, word)
    plain = import_trace(tmp_path / "secret-name.txt", tmp_path / "plain")
    assert run["metrics"] == plain["metrics"]


def _shifted(name, fields):
    """The same, with process numbers that are easily found again."""
    at = (1, 5) if name == writers.SWITCH else (1,)
    return tuple(value + 3_141_000 if i in at and value else value for i, value in enumerate(fields))


@pytest.mark.full
def test_a_trace_whose_lines_stand_in_reverse_is_read_in_time(tmp_path):
    """It was sorted by swapping neighbours: quadratic, minutes for this one."""
    lines = [
        f"x-7 [000] d..2. {t // 10**6}.{t % 10**6:06d}: sched_switch: prev_comm=a prev_pid={1 + t % 2} prev_prio=120 "
        f"prev_state=S ==> next_comm=b next_pid={2 - t % 2} next_prio=120\n"
        for t in range(300_000)
    ]
    straight, reverse = tmp_path / "straight", tmp_path / "reverse"
    straight.write_text("".join(lines))
    reverse.write_text("".join(reversed(lines)))
    hashes = {
        import_trace(file, tmp_path / f"{file.name}-run")["record_hash"] for file in (straight, reverse)
    }
    assert len(hashes) == 1


SHORT = {
    "its length is missing": b"\n\x02\x92\x03",
    "its length does not end": b"\n\x03\x92\x03\x80",
    "nothing to unpack": b"\n\x05\x92\x03\x02ab",
}


@pytest.mark.parametrize("tail", SHORT.values(), ids=SHORT)
def test_a_damaged_compressed_packet_is_refused(events, tmp_path, tail):
    data = writers.perfetto(events[0], is_compressed=True)
    (tmp_path / "trace").write_bytes(data + tail)
    with pytest.raises(RecordError, match=r"trace: at byte \d+: .*; it is damaged"):
        import_trace(tmp_path / "trace", tmp_path / "run")


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_packet_that_is_cut_off_is_left_out_and_said(events, tmp_path, is_compressed):
    data = writers.perfetto(events[0], is_compressed=is_compressed)
    (tmp_path / "trace").write_bytes(data[:-10])
    run = import_trace(tmp_path / "trace", tmp_path / "run")
    assert any("ends within an event" in each for each in run["recording"]["missing"])


def test_a_damaged_length_between_compressed_packets_is_refused(events, tmp_path):
    data = writers.perfetto(events[0], is_compressed=True)
    (tmp_path / "trace").write_bytes(data + b"\x07\x07" + data)
    with pytest.raises(RecordError, match="no packet of Perfetto's"):
        import_trace(tmp_path / "trace", tmp_path / "run")
