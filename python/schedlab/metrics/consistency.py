# SPDX-License-Identifier: MIT
"""Decide whether a run obeys the laws that no scheduler can break.

Published comparisons have claimed speed-ups that one CPU cannot give. So every
run is held against these laws before any of its numbers is shown: each task
lives a lawful life, each CPU runs one task at a time, every nanosecond of every
CPU is busy, idle or overhead, the work done is the work declared, no task is
lost, and a policy that says it wastes no CPU wastes none.

Must stay true: nothing here trusts a total that a host computed; totals are
added up from the events, and the host's own are held against them.
Read next: course.py, each task against its program; then dictionary.py, whose
numbers these checks license.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..records.file import Kind, Stop
from .course import Course, follow
from .speed import work_received_ns
from .timeline import Ordered, Spans, Timeline, is_among, sum_per_group
from .violation import Violation, at, earliest, first_of

#: Arrival of a task that its parent starts (`~0` in program.h).
SPAWNED = (1 << 64) - 1


@dataclass(frozen=True)
class Expectations:
    """What is known about a run besides its records.

    Arrays are indexed by task of the program: entry i is about pid i + 1.
    """

    #: array_like of int, shape (n_program_tasks,): CPU time that each task's program declares; -1 where it is
    #: not known.
    work_ns: ArrayLike | None = None
    #: array_like of bool, shape (n_program_tasks,): tasks that take more than they declare, by what their
    #: system calls cost on the host; their declared work is only the minimum that they receive.
    has_host_work: ArrayLike | None = None
    #: array_like of int, shape (n_program_tasks,): CPU time of each task by its own clock, 0 where it is not
    #: known, of a host that has bounded how far it is from the records: work measured by that clock may be
    #: done where the records have a little less.
    clock_ns: ArrayLike | None = None
    #: array_like of uint64, shape (n_program_tasks,): when each task arrives; 2**64 - 1 for those that a
    #: parent starts.
    arrival_ns: ArrayLike | None = None
    #: shape (n_program_tasks,): CPUs that each task may run on, as a collection of int; None: all.
    affinity: Sequence[Collection[int] | None] | None = None
    #: array_like of bool, shape (n_program_tasks,): tasks that a policy may keep waiting beside an idle CPU.
    is_capped: ArrayLike | None = None
    is_cut: bool = False  #: Whether the records end somewhere, as those of a run that failed.
    horizon_ns: int = 0  #: When the run was to be cut off; 0: when all tasks have ended.
    #: Whether the policy declares that it leaves no CPU idle beside a task that may run there.
    work_conserving: bool = False
    latency_ns: int = 0  #: How long, by the host's own statement, a CPU may take to notice work.
    #: What its exit takes a task at most. Until it is over the kernel places it, unless the policy asks to.
    exit_ns: int = 0
    tolerance_ns: int = 0  #: Error of the host's clock on one interval; 0 in virtual time.
    #: sequence of dict, shape (n_cpus,): `busy_ns`, `idle_ns` and `overhead_ns` as the host itself counted
    #: them.
    host_cpus: Sequence[Mapping[str, int]] | None = None
    #: The program, where the host executes it exactly, and what takes time there.
    course: Course | None = None


def check(timeline: Timeline, expectations: Expectations | None = None) -> str:
    """Compare a run with what is possible.

    `"ok"`, or the earliest violation in words, with time, task and CPU. A law that needs what is not known
    is not checked. The form of single records (known kinds, rising times) is checked when they are read. A
    declared work is not compared when a task was cut off by the horizon, except that it may not have been
    exceeded.
    """
    expected = expectations or Expectations()
    if timeline.records.n_lost:
        return _lost(timeline).text
    # Later laws are stated in terms of earlier ones, so they wait for them.
    for laws in (
        (_lives, _cpu_alternation),
        (_run_times, _gaps, _placement, _arrivals),
        (_ends, _declared_work, _host_accounts, _work_conservation),
    ):
        if found := earliest([law(timeline, expected) for law in laws]):
            return found.text
    # Last, since it is about what a task does when, and not about whether it can.
    if expected.course is not None and (strayed := follow(timeline, expected.course)):
        return strayed.text
    return "ok"


def _per_task(values: ArrayLike, pids: np.ndarray, *, default: int | bool) -> np.ndarray:
    """Values of the program's tasks for given pids; `default` beyond the program."""
    values = np.asarray(values)
    result = np.full(len(pids), default, values.dtype)
    index = pids.astype(np.int64) - 1
    known = (index >= 0) & (index < len(values))
    result[known] = values[index[known]]
    return result


def _lost(timeline: Timeline) -> Violation:
    """Say that a host could not write all records."""
    events = timeline.records.events
    row = int((timeline.kind == Kind.LOST).argmax())
    t_ns = int(events["t_ns"][row])
    return Violation(
        t_ns,
        f"{at(t_ns)}, CPU {int(events['cpu'][row])}: {timeline.records.n_lost} records were "
        "lost in this run, so nothing can be computed from it; record fewer kinds or use a "
        "larger ring",
    )


# ---- lives of tasks ---------------------------------------------------------

# States of a task, as its last event left it.
_ABSENT, _ARRIVED, _WOKEN, _RUNNING, _WAITING, _BLOCKED, _ENDED, _CUT = range(8)
_STATE_NAMES = (
    "had not arrived",
    "had only arrived",
    "was already awake",
    "was running",
    "was already waiting for a CPU",
    "was blocked",
    "had ended",
    "was cut off by the horizon",
)
_STATE_AFTER_STOP = np.array([_WAITING, _WAITING, _BLOCKED, _ENDED, _CUT], np.uint8)
_VERBS = {Kind.ARRIVE: "arrives", Kind.WAKE: "wakes", Kind.RUN: "runs", Kind.STOP: "stops"}

# Which event may follow which state.
_LAWFUL = np.zeros((8, 5), bool)
_LAWFUL[_ABSENT, Kind.ARRIVE] = True
_LAWFUL[_ARRIVED, [Kind.WAKE, Kind.RUN]] = True
_LAWFUL[_WOKEN, Kind.RUN] = True
_LAWFUL[_RUNNING, Kind.STOP] = True
_LAWFUL[_WAITING, Kind.RUN] = True
_LAWFUL[_BLOCKED, Kind.WAKE] = True


def _states(tasks: Ordered) -> np.ndarray:
    """State of its task after each event of `by_task`; uint8, shape (n,)."""
    after = np.array([_ABSENT, _ARRIVED, _WOKEN, _RUNNING, _WAITING], np.uint8)[tasks.kind]
    is_stop = tasks.kind == Kind.STOP
    after[is_stop] = _STATE_AFTER_STOP[tasks.flags[is_stop]]
    return after


def _lives(timeline: Timeline, expected: Expectations) -> Violation | None:
    """Arrive, then run and stop in turn, wake only from a block, end once."""
    tasks = timeline.by_task
    after = _states(tasks)
    before = np.empty_like(after)
    before[1:] = after[:-1]
    before[tasks.first] = _ABSENT
    bad = ~_LAWFUL[before, tasks.kind]
    if len(bad) == 0:
        return None
    # A task that runs on must run on where it is: a STOP elsewhere is another's.
    moved = np.zeros_like(bad)
    moved[1:] = (tasks.kind[1:] == Kind.STOP) & (tasks.cpu[1:] != tasks.cpu[:-1])
    moved &= before == _RUNNING

    def describe(i: int) -> str:
        who = f"{at(tasks.t_ns[i])}, CPU {tasks.cpu[i]}: task {tasks.task[i]}"
        if moved[i]:
            return f"{who} stops, but it was running on CPU {tasks.cpu[i - 1]}"
        if before[i] == _RUNNING and tasks.kind[i] == Kind.RUN:
            return f"{who} runs while it also runs on CPU {tasks.cpu[i - 1]}"
        return f"{who} {_VERBS[Kind(int(tasks.kind[i]))]}, but it {_STATE_NAMES[before[i]]}"

    return first_of(tasks.t_ns, bad | moved, describe)


def _cpu_alternation(timeline: Timeline, expected: Expectations) -> Violation | None:
    """Each CPU runs one task, stops that task, and only then runs another."""
    cpus = timeline.by_cpu
    chosen = np.flatnonzero(cpus.kind != Kind.OVERHEAD)
    kind, task, cpu, t_ns = (a[chosen] for a in (cpus.kind, cpus.task, cpus.cpu, cpus.t_ns))
    if len(chosen) == 0:
        return None
    is_same_cpu = np.zeros(len(chosen), bool)
    is_same_cpu[1:] = cpu[1:] == cpu[:-1]
    occupied = np.zeros(len(chosen), bool)
    occupied[1:] = is_same_cpu[1:] & (kind[:-1] == Kind.RUN)
    occupant = np.where(occupied, np.concatenate((task[:1], task[:-1])), 0)
    bad = ((kind == Kind.RUN) & occupied) | ((kind == Kind.STOP) & (occupant != task))

    def describe(i: int) -> str:
        where = f"{at(t_ns[i])}, CPU {cpu[i]}: task {task[i]}"
        if kind[i] == Kind.RUN:
            return f"{where} runs while task {occupant[i]} runs there"
        if occupied[i]:
            return f"{where} stops, but task {occupant[i]} was running there"
        return f"{where} stops, but no task was running there"

    return first_of(t_ns, bad, describe)


# ---- where the time of a CPU went -------------------------------------------


def _run_times(timeline: Timeline, expected: Expectations) -> Violation | None:
    """What a STOP says the task ran, plus overhead meanwhile, is the time that passed."""
    spans = timeline.spans
    passed = spans.end_ns - spans.begin_ns
    claimed = spans.ran_ns + spans.overhead_ns
    wrong = np.abs(claimed - passed) > expected.tolerance_ns
    # A gap is nobody's run; a run without STOP ends the file, and _lives sees it.
    return first_of(
        spans.end_ns,
        spans.is_run & (wrong | (spans.ran_ns < 0)),
        lambda i: (
            f"{at(spans.end_ns[i])}, CPU {spans.cpu[i]}: task {spans.task[i]} claims "
            f"{spans.ran_ns[i]} ns of CPU time and {spans.overhead_ns[i]} ns of overhead in a run "
            f"of {passed[i]} ns"
        ),
    )


def _gaps(timeline: Timeline, expected: Expectations) -> Violation | None:
    """Between two runs a CPU cannot spend more time in the scheduler than passed."""
    spans = timeline.spans
    passed = spans.end_ns - spans.begin_ns
    too_much = spans.overhead_ns - passed > expected.tolerance_ns
    return first_of(
        spans.end_ns,
        ~spans.is_run & (too_much | (spans.overhead_ns < 0)),
        lambda i: (
            f"{at(spans.end_ns[i])}, CPU {spans.cpu[i]}: {spans.overhead_ns[i]} ns of "
            f"overhead between two runs that are {passed[i]} ns apart"
        ),
    )


def _host_accounts(timeline: Timeline, expected: Expectations) -> Violation | None:
    """Busy, idle and overhead as the host counted them are those of its records."""
    if expected.host_cpus is None:
        return None
    spans, records = timeline.spans, timeline.records
    busy = np.bincount(spans.cpu, np.where(spans.is_run, spans.ran_ns, 0), records.n_cpus)
    overhead = np.bincount(spans.cpu, spans.overhead_ns, records.n_cpus)
    counted = {"busy_ns": busy, "overhead_ns": overhead, "idle_ns": records.end_ns - busy - overhead}
    end = f"at {records.end_ns} ns (the end)"
    if len(expected.host_cpus) != records.n_cpus:
        return Violation(
            records.end_ns,
            f"{end}: the host accounts for {len(expected.host_cpus)} CPUs, its records for {records.n_cpus}",
        )
    slack = expected.tolerance_ns * (1 + len(records.events) // records.n_cpus)
    for cpu, account in enumerate(expected.host_cpus):
        for name, values in counted.items():
            if abs(account[name] - int(values[cpu])) > slack:
                return Violation(
                    records.end_ns,
                    f"{end}, CPU {cpu}: the host counted {name} = {account[name]}, its records "
                    f"add up to {int(values[cpu])}; busy + idle + overhead must be the "
                    f"{records.end_ns} ns that passed",
                )
    return None


# ---- tasks against what was expected of them --------------------------------


def _arrivals(timeline: Timeline, expected: Expectations) -> Violation | None:
    """Every task of the program arrives, and not before its time."""
    if expected.arrival_ns is None:
        return None
    tasks, records = timeline.by_task, timeline.records
    planned = np.asarray(expected.arrival_ns, np.uint64)
    pids = np.arange(len(planned)) + 1
    # A child has no time of its own, but must have come when nothing cut the run off.
    was_cut = expected.horizon_ns and records.end_ns >= expected.horizon_ns
    due = np.where(planned == SPAWNED, np.uint64(records.end_ns), planned)
    is_due = (planned < records.end_ns) | ((planned == SPAWNED) & (not was_cut))
    absent = ~is_among(pids, tasks.keys) & is_due
    missing = first_of(
        due, absent, lambda i: f"{at(due[i])}: task {pids[i]} should have arrived but never did: it was lost"
    )
    plan = _per_task(planned, tasks.keys, default=0)
    actual = tasks.t_ns[tasks.first]
    is_own = plan != SPAWNED
    gap = actual - np.where(is_own, plan, 0).astype(np.int64)
    slack = expected.tolerance_ns + expected.latency_ns
    wrong = first_of(
        actual,
        is_own & ((gap < -expected.tolerance_ns) | ((gap > slack) & (plan > 0))),
        lambda i: (
            f"{at(actual[i])}, CPU {tasks.cpu[tasks.first[i]]}: task {tasks.keys[i]} "
            f"arrives, but its program says {plan[i]} ns"
        ),
    )
    return earliest([missing, wrong])


def _placement(timeline: Timeline, expected: Expectations) -> Violation | None:
    """No task runs on a CPU that its affinity forbids."""
    if expected.affinity is None:
        return None
    tasks = timeline.by_task
    allowed, mask_of = _masks(timeline, expected)
    runs = np.flatnonzero(tasks.kind == Kind.RUN)
    cpu = tasks.cpu[runs]
    bad = ~allowed[mask_of[tasks.group[runs]], cpu]
    return first_of(
        tasks.t_ns[runs],
        bad,
        lambda i: (
            f"{at(tasks.t_ns[runs[i]])}, CPU {cpu[i]}: task {tasks.task[runs[i]]} runs "
            "where its affinity forbids it"
        ),
    )


def _masks(timeline: Timeline, expected: Expectations) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct CPU sets as bool, shape (n_masks, n_cpus), and each task's mask."""
    n_cpus = timeline.records.n_cpus
    pids = timeline.by_task.keys
    everywhere = frozenset(range(n_cpus))
    number = {everywhere: 0}
    mask_of = np.zeros(len(pids), np.int64)
    given = expected.affinity if expected.affinity is not None else ()
    for position, pid in enumerate(pids.tolist()):
        cpus = given[pid - 1] if 1 <= pid <= len(given) else None
        if cpus is not None:
            mask_of[position] = number.setdefault(frozenset(cpus), len(number))
    allowed = np.zeros((len(number), n_cpus), bool)
    for cpus, index in number.items():
        allowed[index, [cpu for cpu in cpus if cpu < n_cpus]] = True
    return allowed, mask_of


def _ends(timeline: Timeline, expected: Expectations) -> Violation | None:
    """Every task that arrived ended, unless the horizon cut the run off."""
    tasks, records = timeline.by_task, timeline.records
    if expected.is_cut:
        return None
    state = _states(tasks)[tasks.last]
    if expected.horizon_ns and records.end_ns >= expected.horizon_ns:
        bad = state == _RUNNING
        reason = "when the run was cut off, but no STOP says so"
    else:
        bad = state != _ENDED
        reason = "and never ended: it was lost"
    last = tasks.last
    return first_of(
        tasks.t_ns[last],
        bad,
        lambda i: (
            f"{at(tasks.t_ns[last[i]])}, CPU {tasks.cpu[last[i]]}: task {tasks.keys[i]} "
            f"{_STATE_NAMES[state[i]]} {reason}"
        ),
    )


def _declared_work(timeline: Timeline, expected: Expectations) -> Violation | None:
    """CPU time received is the work declared; one CPU cannot do it in less time."""
    if expected.work_ns is None:
        return None
    tasks, records = timeline.by_task, timeline.records
    is_stop = tasks.kind == Kind.STOP
    received, speed_slack_ns = work_received_ns(timeline)
    has_ended = _states(tasks)[tasks.last] == _ENDED
    work = _per_task(np.asarray(expected.work_ns, np.int64), tasks.keys, default=-1)
    stops = sum_per_group(is_stop.astype(np.int64), tasks.first)
    slack = expected.tolerance_ns * np.maximum(stops, 1) + speed_slack_ns
    more = received > work + slack
    if expected.has_host_work is not None:
        more &= ~_per_task(np.asarray(expected.has_host_work, bool), tasks.keys, default=True)
    most = received
    if expected.clock_ns is not None:
        clock = _per_task(np.asarray(expected.clock_ns, np.int64), tasks.keys, default=0)
        most = np.maximum(received, clock)
    less = has_ended & (most < work - slack)
    last = tasks.last
    wrong = first_of(
        tasks.t_ns[last],
        (work >= 0) & (more | less),
        lambda i: (
            f"{at(tasks.t_ns[last[i]])}, CPU {tasks.cpu[last[i]]}: task {tasks.keys[i]} "
            f"received {received[i]} ns of CPU time, but its program is {work[i]} ns of work"
        ),
    )
    if wrong:
        return wrong
    done = int(work[has_ended & (work >= 0)].sum())
    begin = int(tasks.t_ns[tasks.first].min()) if len(tasks.first) else 0
    makespan = records.end_ns - begin
    if done > makespan * records.n_cpus + int(np.sum(slack)):
        return Violation(
            records.end_ns,
            f"at {records.end_ns} ns (the end): {done} ns of work were done in {makespan} ns on "
            f"{records.n_cpus} CPU(s), which cannot be",
        )
    return None


# ---- work conservation ------------------------------------------------------


def _work_conservation(timeline: Timeline, expected: Expectations) -> Violation | None:
    """No CPU stays idle beside a task that waits and may run there.

    A wait and an idle gap overlap when one begins before the other ends; with
    the begins and the ends sorted, counting is two binary searches per gap.
    """
    if not expected.work_conserving:
        return None
    tasks, spans = timeline.by_task, timeline.spans
    latency_ns = expected.latency_ns + expected.tolerance_ns
    # The scheduler's own time comes last in a gap, just before the next run.
    idle_end = spans.end_ns - spans.overhead_ns
    idle_begin = spans.begin_ns + latency_ns
    idle = np.flatnonzero(~spans.is_run & (idle_end > idle_begin))
    wait_begin = tasks.t_ns + latency_ns
    wait_end = tasks.t_ns + timeline.duration_ns
    waits = timeline.is_runnable_after & (wait_end > wait_begin)
    if expected.is_capped is not None:
        capped = _per_task(np.asarray(expected.is_capped, bool), tasks.keys, default=False)
        waits &= ~capped[tasks.group]
    if expected.exit_ns:
        waits &= ~_is_exiting(timeline, expected.exit_ns)
    if len(idle) == 0 or not waits.any():
        return None
    allowed, mask_of = _masks(timeline, expected)
    found: list[Violation | None] = []
    for index, cpus in enumerate(allowed):
        # With one set of CPUs, as nearly always, nothing needs to be selected.
        mine = np.flatnonzero(waits & (mask_of[tasks.group] == index) if len(allowed) > 1 else waits)
        gaps = idle[cpus[spans.cpu[idle]]]
        if len(mine) == 0 or len(gaps) == 0:
            continue
        begins, ends = np.sort(wait_begin[mine]), np.sort(wait_end[mine])
        begun = np.searchsorted(begins, idle_end[gaps], side="left")
        over = np.searchsorted(ends, idle_begin[gaps], side="right")
        bad = gaps[begun > over]
        if len(bad):
            gap = bad[idle_begin[bad].argmin()]
            found.append(
                _describe_waste(
                    timeline, spans, gap, mine, (idle_begin, idle_end), (wait_begin, wait_end), latency_ns
                )
            )
    return earliest(found)


def _is_exiting(timeline: Timeline, exit_ns: int) -> np.ndarray:
    """Whether a task has nothing left but its exit after each event of `by_task`; bool, shape (n,)."""
    tasks = timeline.by_task
    ran_ns = np.cumsum(np.where(tasks.kind == Kind.RUN, timeline.duration_ns, 0))
    has_ended = (tasks.kind[tasks.last] == Kind.STOP) & (tasks.flags[tasks.last] == Stop.EXITED)
    return has_ended[tasks.group] & (ran_ns[tasks.last][tasks.group] - ran_ns <= exit_ns)


def _describe_waste(
    timeline: Timeline,
    spans: Spans,
    gap: int,
    mine: np.ndarray,
    idle: tuple[np.ndarray, np.ndarray],
    wait: tuple[np.ndarray, np.ndarray],
    latency_ns: int,
) -> Violation:
    """Name the task that waited first during one idle gap."""
    tasks = timeline.by_task
    overlap_begin = np.maximum(wait[0][mine], idle[0][gap])
    overlap_end = np.minimum(wait[1][mine], idle[1][gap])
    meets = np.flatnonzero(overlap_end > overlap_begin)
    first = meets[overlap_begin[meets].argmin()]
    t_ns = int(overlap_begin[first])
    return Violation(
        t_ns,
        f"{at(t_ns)}, CPU {spans.cpu[gap]}: idle for {int(overlap_end[first]) - t_ns} ns while "
        f"task {tasks.task[mine[first]]} waited and could have run there, as under no "
        "work-conserving policy"
        + (f" (after {latency_ns} ns in which it may go unnoticed here)" if latency_ns else ""),
    )
