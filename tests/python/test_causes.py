# SPDX-License-Identifier: MIT
"""What a read waited for, or would have, is found in the system calls that were recorded."""

from __future__ import annotations

import json
import random

import pytest

from schedlab.hosts.host import Job
from schedlab.hosts.sim import SimHost
from schedlab.measure.replay import Added, load_recorded, program_of
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.file import read_program
from schedlab.records.file import Call, Kind, Stop, read_records, write_records

MS = 1_000_000
ERRNO_EAGAIN = 11


class Story:
    """Records of tasks on one CPU, written down as they happen; processes have the numbers of tasks."""

    def __init__(self, n_tasks):
        self.t, self.rows, self.running, self.since = 0, [], 0, 0
        for pid in range(1, n_tasks + 1):
            self.add(pid, Kind.ARRIVE)

    def add(self, pid, kind, flags=0, arg=0):
        self.rows.append((self.t, pid, 0, kind, flags, arg % (1 << 64)))

    def run(self, pid, ran=0):
        self.running, self.since = pid, self.t
        self.add(pid, Kind.RUN)
        self.t += ran

    def stop(self, why):
        self.add(self.running, Kind.STOP, why, self.t - self.since)

    def call(self, call, fd, ran=1):
        self.add(self.running, Kind.CALL, call, self.running << 32 | fd)
        self.t += ran

    def end(self, call, result, ran=1):
        self.add(self.running, Kind.RETURN, call, result)
        self.t += ran

    def write(self, fd, n_bytes, wakes=0):
        self.call(Call.WRITE, fd)
        if wakes:
            self.add(wakes, Kind.WAKE, 0, self.running)
        self.end(Call.WRITE, n_bytes)

    def read(self, fd, n_bytes):
        self.call(Call.READ, fd)
        self.end(Call.READ, n_bytes)

    def block(self, call, fd):
        self.call(call, fd)
        self.stop(Stop.BLOCKED)

    def records(self, tmp_path):
        write_records(tmp_path / "s.slr", self.rows, n_cpus=1, tick_ns=4 * MS)
        return read_records(tmp_path / "s.slr")


def ops_of(program, pid):
    return [line.split(maxsplit=1)[1] for line in program._op_lines(program.task_rows[pid - 1])]


def passed(program, pid):
    return [
        op.split()[0] + " " + op.split()[-1]
        for op in ops_of(program, pid)
        if op.split()[0] in ("send", "recv")
    ]


def request_and_answer(call):
    """Task 1 waits once for 2, by a read or in a poll, and then finds what 2 has written meanwhile."""
    s = Story(2)
    s.run(1, 10)
    s.block(call, 5 if call == Call.READ else 0)
    s.run(2, 100)
    s.write(3, 40, wakes=1)
    s.t += 100
    s.write(3, 40)
    s.stop(Stop.EXITED)
    s.run(1)
    s.end(call, 40 if call == Call.READ else 1)
    if call == Call.POLL:
        s.read(5, 40)
    s.t += 50
    s.read(5, 40)
    s.t += 50
    s.stop(Stop.EXITED)
    return s


@pytest.mark.parametrize("call", [Call.READ, Call.POLL])
def test_a_read_that_did_not_block_waits_for_what_it_read(tmp_path, call):
    """Without its calls task 1 has one block; with them it cannot be ahead of the second write."""
    s = request_and_answer(call)
    program = program_of(s.records(tmp_path), name="x")
    assert passed(program, 1) == ["recv 40B", "recv 40B"]
    assert passed(program, 2) == ["send 40B", "send 40B"]
    assert ops_of(program, 2)[0] == "run 101ns", "it sends where it woke the reader, within its write"
    s.rows = [row for row in s.rows if row[3] not in (Kind.CALL, Kind.RETURN)]
    program = program_of(s.records(tmp_path), name="x")
    assert passed(program, 1) == ["recv 1B"] and passed(program, 2) == ["send 1B"]


def test_a_connection_answers_on_the_descriptor_on_which_it_was_asked(tmp_path):
    """Only the server blocks; that the client reads what the server writes is known from that."""
    s = Story(2)
    s.run(1)
    s.block(Call.READ, 5)
    s.run(2, 100)
    s.write(3, 7, wakes=1)
    s.stop(Stop.PREEMPTED)
    s.run(1)
    s.end(Call.READ, 7)
    s.write(5, 9)
    s.stop(Stop.EXITED)
    s.run(2)
    s.read(3, 9)
    s.stop(Stop.EXITED)
    program = program_of(s.records(tmp_path), name="x")
    assert passed(program, 1) == ["recv 7B", "send 9B"] and passed(program, 2) == ["send 7B", "recv 9B"]


def test_a_number_that_was_closed_is_another_descriptor(tmp_path):
    s = request_and_answer(Call.READ)
    at = max(i for i, row in enumerate(s.rows) if row[3] == Kind.CALL)
    s.rows.insert(at, (s.rows[at][0], 1, 0, Kind.CALL, Call.CLOSE, 1 << 32 | 5))
    program = program_of(s.records(tmp_path), name="x")
    assert passed(program, 1) == ["recv 40B"] and passed(program, 2) == ["send 40B"]


def test_a_writer_that_waited_for_room_has_as_much_room_in_the_replay(tmp_path):
    """10,000 bytes fit, the third 5,000 did not: in a replay, too, the writer waits for the reader, page by page."""
    s = Story(2)
    s.run(2, 10)
    s.write(3, 5000)
    s.write(3, 5000)
    s.block(Call.WRITE, 3)
    s.run(1, 10)
    s.call(Call.READ, 5)
    s.add(2, Kind.WAKE, 0, 1)
    s.end(Call.READ, 10000)
    s.block(Call.READ, 5)
    s.run(2)
    s.add(1, Kind.WAKE, 0, 2)
    s.end(Call.WRITE, 5000)
    s.stop(Stop.EXITED)
    s.run(1)
    s.end(Call.READ, 5000)
    s.stop(Stop.EXITED)
    program = program_of(s.records(tmp_path), name="x")
    assert passed(program, 1) == ["recv 10000B", "recv 5000B"]
    assert passed(program, 2) == ["send 904B", "send 4KiB"] * 3
    assert program.objects["param"].tolist() == [0, 10000]


def test_what_another_process_reads_is_not_waited_for(tmp_path):
    """An untraced reader takes the first 100 bytes: two reads that find nothing show it."""
    s = request_and_answer(Call.READ)
    s.rows = s.rows[:-1]
    s.write(9, 1)
    for _ in range(2):
        s.read(5, -ERRNO_EAGAIN)
    s.stop(Stop.EXITED)
    assert passed(program_of(s.records(tmp_path), name="x"), 1) == ["recv 40B", "recv 40B"]


def any_story(seed):
    """Tasks that read, write, poll and wake each other as no kernel would: whatever is recorded can end."""
    r = random.Random(seed)
    s = Story(4)
    blocked, pending = {}, {}
    for _ in range(r.randint(5, 120)):
        ready = [pid for pid in range(1, 5) if pid not in blocked]
        if not ready:
            pid = r.choice(list(blocked))
            blocked.pop(pid)
            s.add(pid, Kind.WAKE, 0, 0)
            continue
        pid = r.choice(ready)
        s.run(pid, r.randint(0, 30))
        if pid in pending:
            s.end(pending.pop(pid), r.choice([-11, 0, 1, 50, 3000]))
        for _ in range(r.randint(0, 4)):
            call = r.choice([Call.READ, Call.WRITE, Call.WRITE, Call.POLL, Call.CLOSE])
            s.call(call, r.randint(0, 2), r.randint(0, 9))
            if call == Call.CLOSE:
                continue
            woken = [other for other in blocked if r.random() < 0.5]
            for other in woken:
                blocked.pop(other)
                s.add(other, Kind.WAKE, 0, pid)
            if r.random() < 0.3:
                pending[pid] = call
                blocked[pid] = True
                break
            s.end(call, r.choice([-11, 0, 1, 50, 3000]), r.randint(0, 9))
        s.stop(Stop.BLOCKED if pid in blocked else Stop.PREEMPTED)
    for pid in range(1, 5):
        if pid in blocked:
            s.add(pid, Kind.WAKE, 0, 0)
        s.run(pid, 5)
        s.stop(Stop.EXITED)
    return s


def test_a_replay_ends_whatever_was_recorded(simulator, tmp_path):
    session = SimHost().session(timeout_seconds=60)
    try:
        for seed in (*range(60), 484, 563):
            program = program_of(any_story(seed).records(tmp_path), name="any")
            (tmp_path / "p").write_bytes(program.data)
            for policy in ("fifo", "rr"):
                job = Job(
                    "any",
                    build_policy(load_policy(policy)),
                    tmp_path / "p",
                    tmp_path / "r.slr",
                    1 + seed % 2,
                    1,
                    MS,
                )
                outcome = session.run(job)
                assert outcome.error is None, f"any_story({seed}) under {policy}: {outcome.error}"
    finally:
        session.close()


@pytest.mark.parametrize(
    ("added", "less"),
    [
        # Task 1 makes two calls; task 2 ends 2 ns after its second.
        (Added(call=20), [2 * 20, 20 + 2]),
        (Added(switch=7), [2 * 7, 7]),
        # Task 2 wakes task 1, whose block ends by that.
        (Added(leave=9), [0, 9]),
        (Added(call=1, switch=2, leave=3), [2 + 4, 2 + 2 + 3]),
    ],
)
def test_what_recording_and_switching_cost_is_not_replayed(tmp_path, added, less):
    records = request_and_answer(Call.READ).records(tmp_path)
    work = [program_of(records, name="x", added=each).work_ns() for each in (Added(), added)]
    assert (work[0] - work[1]).tolist() == less


def test_what_was_added_is_at_most_what_there_is(tmp_path):
    records = request_and_answer(Call.READ).records(tmp_path)
    work = program_of(records, name="x", added=Added(call=10**6)).work_ns()
    assert all(0 < ns < 150 for ns in work.tolist()), "no more than there is after the first call"


def test_a_close_and_calls_that_are_not_recorded_cost_too(tmp_path):
    """Of 12 calls one was recorded, a close, whose return is not in the records."""
    s = Story(2)
    s.run(1, 500)
    s.call(Call.CLOSE, 5, ran=500)
    s.stop(Stop.EXITED)
    s.run(2, 300)
    s.stop(Stop.EXITED)
    added = Added(call=20, other_call=10)
    program = program_of(s.records(tmp_path), name="x", tasks=[{"calls": 12}, {}], added=added)
    assert program.work_ns().tolist() == [1000 - 20 - 11 * 10, 300]


def test_a_machine_that_is_recorded_charges_for_it(tmp_path):
    """What a replay is held against decides whether its switches cost what recording them does."""
    request_and_answer(Call.READ).records(tmp_path)
    (tmp_path / "s.slr").rename(tmp_path / "records.slr")
    recording = {
        "recorder_ns": {"call": 20, "switch": 2, "wakeup": 3},
        "costs": {"switch_ns": 5, "leave_ns": 6, "ipi_ns": 9},
    }
    (tmp_path / "run.json").write_text(json.dumps({"recording": recording}))
    plain, recorded = load_recorded(tmp_path), load_recorded(tmp_path, is_recorded=True)
    assert plain.costs == {"switch_ns": 5, "leave_ns": 6, "ipi_ns": 9}
    assert recorded.costs == {"switch_ns": 5 + 2, "leave_ns": 6 + 3, "ipi_ns": 9}
    assert plain.program == recorded.program
    # Two calls and two turns of task 1, 114 ns with them; 204 ns of task 2, which makes two, has one turn and wakes task 1.
    assert read_program(plain.program).work_ns().tolist() == [114 - 2 * 20 - 2 * 7, 204 - (20 + 2) - 7 - 9]
