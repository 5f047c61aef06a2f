# SPDX-License-Identifier: MIT
"""Turn the records of a run into a workload, to be run under other policies.

What a task did between two blocks becomes a `run` of the CPU time that it took;
what ended a block decides what the block becomes:

    woken by a task of the run      recv from a pipe into which that task sends a
                                    byte at that point of its own CPU time
    woken by anything else          sleep, as long as it was blocked
    read what another had written   recv of as many bytes, which that task sends; where
                                    system calls were recorded (causes.py)
    started by a task of the run    spawn, at that point of its CPU time
    sched_yield                     yield
    not ended                       sleep, until the window ends with the recording

So the causes of a schedule are kept, and the schedule itself is left out. What
cannot be known is kept as it was: a task that waited for a lock waits for the same
owner again, and the length of a sleep does not depend on how busy a disk is.

Must stay true: the records of a simulated run, replayed under the same policy on
as many CPUs, give the same schedule (docs/record.md says how exactly); no task gets
CPU time that was not recorded, but for STILL_RUNNABLE_NS.
Read next: recording.py, where records of Linux come from.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RecordError
from ..files import write_json
from ..metrics.conservation import STILL_RUNNABLE_NS
from ..metrics.consistency import check
from ..metrics.timeline import Timeline
from ..program import layout
from ..program.file import Program, StringTable, find_program, program_bytes, read_program
from ..records.file import Call, Kind, Records, Stop, read_records
from ..report.by_task import RECORDED
from ..runs.case import folder_name
from ..runs.folders import find_records
from ..workload.model import Workload
from .causes import Op, find_causes

#: Sleep of a task that had not ended, after all that was recorded of it; the horizon comes before.
PAST_THE_END_NS = 1 << 60
SLOTS_MAX = 16
#: The first object of a program: a condition that is never awaited.
NOBODY_WAITS = 0
_VERB = layout.VERB_NUMBER


@dataclass(frozen=True)
class Added:
    """CPU time that the recorder and the scheduler had, in ns each, and that the recorded tasks have been charged for."""

    call: int = 0  #: Recording a system call.
    other_call: int = 0  #: What one that is not recorded takes longer while others are.
    switch: int = 0
    leave: int = 0  #: A block and the wake-up after it, beyond their switch.

    @classmethod
    def of(cls, recording: Mapping[str, Any]) -> Added:
        """As `run.json` has them."""
        recorder, machine = recording.get("recorder_ns") or {}, recording.get("costs") or {}
        return cls(
            call=recorder.get("call", recording.get("call_ns") or 0),
            other_call=recorder.get("other_call", 0),
            switch=recorder.get("switch", 0) + machine.get("switch_ns", 0),
            leave=recorder.get("wakeup", 0) + machine.get("leave_ns", 0),
        )


NOTHING_ADDED = Added()


@dataclass
class _Task:
    """One task while its records are read."""

    ops: list[Any] = field(default_factory=list)
    arrival_ns: int = layout.ARRIVAL_SPAWNED
    parent: int = 0
    pending_ns: int = 0
    #: While it runs: since when, how much of that is in the ops already, and
    #: what the CPU spent on the scheduler meanwhile.
    since_ns: int | None = None
    used_ns: int = 0
    overhead_ns: int = 0
    blocked_ns: int | None = None
    is_fresh: bool = False  # it was preempted, and has had no CPU time since
    has_ended: bool = False
    added_ns: int = 0  # CPU time so far that it did not ask for, and that is not taken off yet
    added_share: float = 0.0  # and what part of its CPU time that is besides, in calls that were not recorded
    recorded_ns: int = 0  # CPU time, as its stops have it
    children: list[Any] = field(default_factory=list)

    def add(self, verb: str, a: int = 0, b: int = 0) -> None:
        """Append an op, after the CPU time that came before it."""
        self.added_ns += int(self.pending_ns * self.added_share)
        added_ns = min(self.pending_ns, self.added_ns)
        self.pending_ns -= added_ns
        self.added_ns -= added_ns
        self.recorded_ns -= added_ns
        if self.pending_ns:
            self.ops.append([_VERB["run"], 0, 0, self.pending_ns])
            if self.is_fresh:
                # The CPU was taken between the end of a burst and what follows it:
                # there was an op that nobody noticed, and here is one.
                self.ops.append([_VERB["signal"], 0, NOBODY_WAITS, 0])
            self.pending_ns = 0
        self.is_fresh = False
        self.ops.append([_VERB[verb], 0, a, b])

    def catch_up(self, t_ns: int) -> None:
        """Count the CPU time up to now."""
        assert self.since_ns is not None, "it has a CPU"
        self.count(t_ns - self.since_ns - self.overhead_ns)

    def count(self, ran_ns: int) -> None:
        """Count the CPU time of this run, of which some may have been counted."""
        if ran_ns > self.used_ns:
            self.pending_ns += ran_ns - self.used_ns
            self.used_ns = ran_ns
            self.is_fresh = False

    def take_back(self, surplus_ns: int) -> None:
        """Shorten the last bursts of this run: others had the CPU, which is recorded only at its end."""
        less_ns = min(self.pending_ns, surplus_ns)
        self.pending_ns -= less_ns
        surplus_ns -= less_ns
        kept = []
        while surplus_ns:
            op = self.ops.pop()
            if op[0] == _VERB["run"]:
                less_ns = min(op[3], surplus_ns)
                op[3] -= less_ns
                surplus_ns -= less_ns
            if op[0] != _VERB["run"] or op[3]:
                kept.append(op)
        self.ops += reversed(kept)


class _Reader:
    """Walks records in order and writes down what each task did."""

    def __init__(self, records: Records, added: Added, shares: Mapping[int, float]):
        self.records = records
        self.added = added
        self.shares = shares
        self.tasks: dict[int, _Task] = {}
        self.on_cpu: dict[int, _Task] = {}
        self.causes = find_causes(records)
        self.row = 0
        #: Object of the pipe between two tasks, or of an inbox, and the bytes through it.
        self.pipes: dict[Any, int] = {}
        self.n_sent: dict[int, int] = {}

    def read(self) -> None:
        handlers = {Kind.ARRIVE: self.arrive, Kind.WAKE: self.wake, Kind.RUN: self.run, Kind.STOP: self.stop,
                    Kind.ATTR: self.attribute, Kind.OVERHEAD: self.overhead, Kind.CALL: self.call,
                    Kind.RETURN: self.end_call}  # fmt: skip
        for row, (t_ns, task, cpu, kind, flags, arg) in enumerate(self.records.events.tolist()):
            self.row = row
            for op in self.causes.ops.get(row, ()):
                self.act(op, t_ns)
            handler = handlers.get(kind)
            if handler is not None:
                handler(t_ns, task, cpu, flags, arg)
        for task in self.tasks.values():
            self._leave_open(task)

    def _by(self, pid: int, t_ns: int) -> _Task | None:
        """The task that does something to another now, its CPU time counted."""
        by = self.tasks.get(pid)
        if by is None or by.since_ns is None:
            return None
        by.catch_up(t_ns)
        return by

    def act(self, op: Op, t_ns: int) -> None:
        """Send or receive what a system call did."""
        task = self.tasks[op.pid]
        if task.since_ns is not None:
            task.catch_up(t_ns)
        self.pass_bytes(task, op.verb, op.inbox, op.n_bytes)

    def pass_bytes(self, task: _Task, verb: str, pipe: Any, n_bytes: int) -> None:
        """Add a send to, or a recv from, the pipe of that key."""
        number = self.pipes.setdefault(pipe, NOBODY_WAITS + 1 + len(self.pipes))
        if verb == "send":
            self.n_sent[number] = self.n_sent.get(number, 0) + n_bytes
        task.add(verb, number, n_bytes)

    def arrive(self, t_ns: int, pid: int, _cpu: int, _flags: int, by_pid: int) -> None:
        task = self.tasks[pid] = _Task(added_share=self.shares.get(pid, 0.0))
        by = self._by(by_pid, t_ns)
        if by is None:
            task.arrival_ns = t_ns
            return
        task.parent = by_pid
        by.children.append(pid)
        by.add("spawn", pid)

    def wake(self, t_ns: int, pid: int, _cpu: int, _flags: int, by_pid: int) -> None:
        task = self.tasks[pid]
        if task.blocked_ns is None:
            return  # it only completes an arrival
        by = self._by(by_pid, t_ns)
        (by or task).added_ns += self.added.leave
        if self.row in self.causes.absorbed:
            pass
        elif by is None:
            task.add("sleep", 0, t_ns - task.blocked_ns)
        else:
            self.pass_bytes(by, "send", f"{by_pid}-wakes-{pid}", 1)
            self.pass_bytes(task, "recv", f"{by_pid}-wakes-{pid}", 1)
        task.blocked_ns = None

    def run(self, t_ns: int, pid: int, cpu: int, _flags: int, _arg: int) -> None:
        task = self.on_cpu[cpu] = self.tasks[pid]
        task.since_ns, task.used_ns, task.overhead_ns = t_ns, 0, 0
        task.added_ns += self.added.switch

    def stop(self, t_ns: int, pid: int, cpu: int, flags: int, ran_ns: int) -> None:
        task = self.tasks[pid]
        task.count(ran_ns)
        if task.used_ns > ran_ns:
            task.take_back(task.used_ns - ran_ns)
        task.recorded_ns += ran_ns
        task.since_ns = None
        task.is_fresh |= flags == Stop.PREEMPTED
        self.on_cpu.pop(cpu, None)
        if flags == Stop.BLOCKED:
            task.blocked_ns = t_ns
        elif flags == Stop.YIELDED:
            task.add("yield")
        elif flags == Stop.EXITED:
            task.add("exit")
            task.has_ended = True

    def call(self, _t_ns: int, pid: int, _cpu: int, call: int, _arg: int) -> None:
        if call == Call.CLOSE:  # its end is not in the records
            self.tasks[pid].added_ns += self.added.call

    def end_call(self, _t_ns: int, pid: int, *_: int) -> None:
        self.tasks[pid].added_ns += self.added.call

    def attribute(self, t_ns: int, pid: int, _cpu: int, key: int, value: int) -> None:
        task = self._by(pid, t_ns)
        if task is not None:
            task.add("set", key, value)

    def overhead(self, _t_ns: int, _pid: int, cpu: int, _flags: int, spent_ns: int) -> None:
        task = self.on_cpu.get(cpu)
        if task is not None:
            task.overhead_ns += spent_ns

    def _leave_open(self, task: _Task) -> None:
        """A task that had not ended waits for the window's end; what it would have done is not known."""
        if task.has_ended:
            return
        if task.blocked_ns is None:
            # As little as there is: it is preempted where it was preempted, and does not block there.
            task.pending_ns += STILL_RUNNABLE_NS
        task.add("sleep", 0, PAST_THE_END_NS)
        task.add("exit")


def _ranges(children: list[int]) -> list[tuple[int, int]]:
    """Children, in the order in which they are started, as ranges of pids that follow each other.

    A parent may start several kinds of children by turns.
    """
    found: list[list[int]] = []
    for pid in children:
        for each in found:
            if each[1] == pid:
                each[1] += 1
                break
        else:
            found.append([pid, pid + 1])
    return [(first, end) for first, end in found]


def _order(tasks: dict[int, _Task]) -> list[int]:
    """Pids in the order of the program: as they are where that is possible.

    A parent has at most 16 ranges of children, each later than the one before.
    Otherwise the children of each parent are put together.
    """
    pids = sorted(tasks)
    for task in tasks.values():
        ranges = _ranges(task.children)
        firsts = [first for first, _ in ranges]
        if len(ranges) > SLOTS_MAX or firsts != sorted(firsts):
            break
    else:
        if pids == list(range(1, len(pids) + 1)):
            return pids
    order = [pid for pid in pids if not tasks[pid].parent]
    for pid in order:  # grows while it is walked
        order += tasks[pid].children
    return order


def _shares_of_calls(records: Records, tasks: list[Any], call_ns: int) -> dict[int, float]:
    """By task, the part of its CPU time by which its calls that were not recorded took longer."""
    if not call_ns:
        return {}
    kind, task = records.events["kind"], records.events["task"]
    size = len(tasks) + 1
    recorded = np.bincount(task[kind == Kind.CALL], minlength=size)
    is_stop = kind == Kind.STOP
    ran_ns = np.bincount(task[is_stop], weights=records.events["arg"][is_stop], minlength=size)
    others = {pid: known.get("calls", 0) - int(recorded[pid]) for pid, known in enumerate(tasks, 1)}
    return {pid: min(nr * call_ns / ran_ns[pid], 1.0) for pid, nr in others.items() if nr > 0 < ran_ns[pid]}


def program_of(
    records: Records,
    *,
    name: str,
    source: Program | None = None,
    tasks: list[Any] | None = None,
    added: Added = NOTHING_ADDED,
) -> Program:
    """Make a program of records, without the CPU time that was added to what its tasks asked for."""
    reader = _Reader(records, added, _shares_of_calls(records, tasks or [], added.other_call))
    reader.read()
    order = _order(reader.tasks)
    index = {pid: position for position, pid in enumerate(order)}
    strings = StringTable()
    header_name = strings.add(name)
    rows = np.zeros(len(order), layout.TASK_DTYPE)
    ops: list[list[int]] = []
    for row, pid in zip(rows, order, strict=True):
        task = reader.tasks[pid]
        _fill_attributes(row, pid, strings, source, tasks)
        row["arrival_ns"] = task.arrival_ns
        row["parent"] = index[task.parent] if task.parent else layout.NONE
        row["op_first"], row["nr_ops"] = len(ops), len(task.ops)
        ops += _with_spawns(task, index)
    objects = np.zeros(len(reader.pipes) + 1, layout.OBJECT_DTYPE)
    objects[NOBODY_WAITS] = (layout.OBJECT_NUMBER["condition"], strings.add("nobody-waits"), 0)
    for pipe, number in reader.pipes.items():
        label = pipe if isinstance(pipe, str) else f"inbox-{pipe[0]}-{number}"
        capacity = reader.causes.capacity.get(pipe, reader.n_sent[number])
        objects[number] = (layout.OBJECT_NUMBER["pipe"], strings.add(label), capacity)
    have_all_ended = all(task.has_ended for task in reader.tasks.values())
    values = source.values if source is not None else np.zeros(0, "<u8")
    program = read_program(
        _bytes(
            rows,
            ops,
            objects,
            values,
            strings,
            name=header_name,
            horizon_ns=0 if have_all_ended else records.end_ns,
        )
    )
    for pid, declared_ns in zip(order, program.work_ns().tolist(), strict=True):
        task = reader.tasks[pid]
        if not task.recorded_ns <= declared_ns <= task.recorded_ns + STILL_RUNNABLE_NS:
            raise RecordError(
                f"{name}: cannot be replayed: task {pid} had {task.recorded_ns} ns of CPU time, and would "
                f"get {declared_ns} ns"
            )
    return program


def _with_spawns(task: _Task, index: dict[int, int]) -> list[list[int]]:
    """Ops with the children's ranges in place of their pids."""
    ranges = _ranges([index[pid] for pid in task.children])
    for op in task.ops:
        if op[0] != _VERB["spawn"]:
            continue
        child = index[op[2]]
        slot = next(i for i, (first, end) in enumerate(ranges) if first <= child < end)
        first, end = ranges[slot]
        op[1:] = [slot, first, end - first]
    return task.ops


def _fill_attributes(
    row: Any, pid: int, strings: StringTable, source: Program | None, tasks: list[Any] | None
) -> None:
    """Name and attributes of a task, from whoever knows them."""
    row["affinity"], row["weight"], row["class_idx"] = layout.NONE, layout.weight_of_nice(0), pid - 1
    if source is not None and pid <= source.n_tasks:
        given = source.task_rows[pid - 1]
        for name in ("deadline_ns", "burst_ns", "class_idx", "affinity", "affinity_words", "attr_given", "nice",
                     "priority", "tickets", "credits", "cap_percent", "group", "weight"):  # fmt: skip
            row[name] = given[name]
        row["name"] = strings.add(source.string(int(given["name"])))
        return
    known = tasks[pid - 1] if tasks is not None and pid <= len(tasks) else {}
    row["name"] = strings.add(known.get("name") or f"task-{pid}")
    priority = known.get("priority", layout.PRIORITY_FAIR + 20)
    if priority < layout.PRIORITY_FAIR:
        row["priority"] = priority
        row["attr_given"] = 1 << 0
        return
    nice = layout.nice_of(priority)
    row["nice"], row["weight"] = nice, layout.weight_of_nice(nice)
    row["attr_given"] = (1 << 7) * bool(nice)


def _bytes(
    rows: np.ndarray,
    ops: list[list[int]],
    objects: np.ndarray,
    values: np.ndarray,
    strings: StringTable,
    *,
    name: int,
    horizon_ns: int,
) -> bytes:
    """The file."""
    op_rows = np.zeros(len(ops), layout.OP_DTYPE)
    if ops:
        verb, slot, a, b = np.array(ops, np.uint64).T
        op_rows["verb"], op_rows["slot"], op_rows["a"], op_rows["b"] = verb, slot, a, b
    return program_bytes(
        tasks=rows,
        ops=op_rows,
        objects=objects,
        values=np.asarray(values, np.uint64),
        strings=strings,
        horizon_ns=horizon_ns,
        name=name,
    )


# ---- runs --------------------------------------------------------------------


def load_recorded(folder: Path, *, is_recorded: bool = False, has_causes: bool = False) -> Workload:
    """Make a workload of the folder of a run, for a machine that `is_recorded` with `has_causes`, or is not.

    What recording switches costs is charged for each switch of the replay; what recording calls costs, which are those
    of the recording, stays in their tasks.
    """
    folder = Path(folder)
    file = find_records(folder)
    run = read_run(folder / "run.json")
    recording = run.get("recording") or {}
    records = read_records(file)
    broken = check(Timeline(records)) if records.n_lost else "ok"
    if broken != "ok":
        raise RecordError(f"{folder}: cannot be replayed: {broken}")
    if not records.events["task"].any():
        raise RecordError(f"{folder}: cannot be replayed: nobody ran in it")
    name = f"{run.get('workload') or folder.name}-replayed"
    added = Added.of(recording)
    program = program_of(
        records,
        name=name,
        source=find_program(folder, run.get("program_hash")),
        tasks=run.get("tasks"),
        added=replace(added, call=0, other_call=0) if has_causes else added,
    )
    events = records.events
    used = np.unique(events["cpu"][events["kind"] == Kind.RUN])
    is_ours = bool(run.get("program_hash"))
    return Workload(
        name=name,
        title=f"{run.get('title') or name}, replayed",
        question="What would another policy have done?",
        tick_ns=records.tick_ns or 4_000_000,
        jitter_ns=0,
        horizon_ns=program.horizon_ns,
        # A command of Linux may have been kept from some CPUs.
        cpus=records.n_cpus if is_ours else max(len(used), 1),
        cpus_min=int(program.header["nr_cpus_min"]),
        costs=_costs_of(recording, is_recorded=is_recorded),
        program=program.data,
        are_roots_woken=run.get("host") == "linux",
    )


def _costs_of(recording: Mapping[str, Any], *, is_recorded: bool) -> dict[str, int]:
    """What the machine charges, without the calls: plain recordings have none."""
    costs, recorder = dict(recording.get("costs") or {}), recording.get("recorder_ns") or {}
    for name, word in (("switch_ns", "switch"), ("leave_ns", "wakeup")) if is_recorded else ():
        costs[name] = costs.get(name, 0) + recorder.get(word, 0)
    return costs


def keep_recorded(folder: Path, out: Path, workload: Workload) -> None:
    """Leave what was recorded beside its replays, for their page."""
    kept = out / folder_name(workload.name) / RECORDED
    shutil.rmtree(kept, ignore_errors=True)
    run = read_run(Path(folder) / "run.json")
    if not run.get("metrics") or not (Path(folder) / "tasks.parquet").is_file():
        return  # numbers that are withheld are withheld here, too
    try:
        kept.mkdir(parents=True)
        shutil.copyfile(Path(folder) / "tasks.parquet", kept / "tasks.parquet")
        write_json(kept / "recorded.json", run)
    except OSError as error:
        raise RecordError(
            f"{kept}: cannot be written: {error.strerror}; make room and replay again"
        ) from error


def read_run(path: Path) -> dict[str, Any]:
    """What is known of a run besides its records; a file that is missing knows nothing."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return {}
    except ValueError as error:
        raise RecordError(f"{path}: damaged ({error}); record again to replace it") from error
    return content if isinstance(content, dict) else {}
