# SPDX-License-Identifier: MIT
"""Why a task waited for a CPU: what its CPUs did meanwhile, and who came before it.

    became runnable                                          runs
          |----------------------- the wait ------------------|
    CPU 0  ran already | waited already | came later | idle | overhead
    CPU 1  came later           | waited already              |

Each nanosecond of each CPU on which the task may run is one of these five, so the parts
add up to the length of the wait times the number of CPUs.

Must stay true: that sum; nothing but the records is asked, and the program for affinity.
Read next: stats/explain.py, which says it in sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import NotFoundError
from ..records.file import Kind, Stop
from .timeline import Ordered, Spans, Timeline

#: What the CPUs of a waiting task did, in the order in which it is told.
RAN_ALREADY, WAITED_ALREADY, CAME_LATER, IDLE, OVERHEAD = "ran", "waited", "later", "idle", "overhead"
RELATIONS = (RAN_ALREADY, WAITED_ALREADY, CAME_LATER)


@dataclass(frozen=True)
class Part:
    """What one task had of the CPUs while another waited: time in ns, and in how many turns."""

    task: int
    relation: str
    ns: int
    n_turns: int


@dataclass(frozen=True)
class Wait:
    """One wait of a task for a CPU; times in ns."""

    task: int
    begin_ns: int
    end_ns: int
    why: str  #: What made it runnable: `"arrived"`, `"woken"`, `"preempted"` or `"yielded"`.
    by: int  #: Pid of the task that did, 0 for a timer, a device or the start.
    #: What made the CPU free: `"preempted"`, `"yielded"`, `"blocked"` or `"exited"` of the task before;
    #: `"idle"` where none ran; `""`: the run ended first.
    ended_by: str
    before: int  #: Pid of that task, 0 where none ran.
    #: `cpu`, `dsq`: Where it ran then, and of which queue; -1 where the run ended first.
    cpu: int
    dsq: int
    cpus: tuple[int, ...]
    queue: tuple[int, ...]  #: Pids that waited already when it began, in the order in which they ran next.
    parts: tuple[Part, ...]  #: Largest first.
    idle_ns: tuple[tuple[int, int], ...]  #: CPUs that were idle meanwhile, and how long.
    overhead_ns: int  #: Time in the scheduler, or stolen from the machine.

    @property
    def ns(self) -> int:
        """How long it was."""
        return self.end_ns - self.begin_ns

    @property
    def capacity_ns(self) -> int:
        """CPU time that its CPUs had meanwhile."""
        return self.ns * len(self.cpus)

    def total_ns(self, what: str) -> int:
        """CPU time of one relation, of `IDLE` or of `OVERHEAD`."""
        if what == IDLE:
            return sum(ns for _, ns in self.idle_ns)
        return self.overhead_ns if what == OVERHEAD else sum(p.ns for p in self.parts if p.relation == what)

    @property
    def main_cause(self) -> str:
        """The largest of the five; `IDLE` where a CPU was idle for half of the wait, since then it was needless."""
        if any(2 * ns >= self.ns for _, ns in self.idle_ns):
            return IDLE
        return max((*RELATIONS, IDLE, OVERHEAD), key=self.total_ns)


@dataclass(frozen=True)
class Stretch:
    """What a task did at an instant: `"ran"`, `"waited"` or `"blocked"`, from when to when.

    `at` is the position in `Timeline.by_task` of the event that began it, `by` the pid of what
    ended a blocked stretch, 0 for a timer, a device or the end of the run.
    """

    task: int
    state: str
    begin_ns: int
    end_ns: int
    at: int
    by: int = 0


def longest_wait(
    timeline: Timeline,
    task: int | None = None,
    begin_ns: int = 0,
    end_ns: int | None = None,
    *,
    state: str = "waited",
) -> Stretch | None:
    """The stretch of a task, or of all, in which it waited, or was `"blocked"`, longest within a window.

    None where there is none.
    """
    tasks = timeline.by_task
    if state == "waited":
        begin, length = _waits(timeline)
    else:
        begin = np.flatnonzero((tasks.kind == Kind.STOP) & (tasks.flags == Stop.BLOCKED))
        length = timeline.duration_ns[begin]
    since = tasks.t_ns[begin]
    until = since + length
    if end_ns is not None:
        until = np.minimum(until, end_ns)
    length = until - np.maximum(since, begin_ns)
    if task is not None:
        first, last = _bounds(tasks, task)
        length = np.where((begin >= first) & (begin <= last), length, 0)
    if not len(begin) or length.max() <= 0:
        return None
    return _stretch(timeline, int(begin[length.argmax()]))


def stretch_at(timeline: Timeline, task: int, t_ns: int) -> Stretch | None:
    """What a task did at a time; None before it arrived and after it ended."""
    tasks = timeline.by_task
    first, last = _bounds(tasks, task)
    at = first + int(np.searchsorted(tasks.t_ns[first : last + 1], t_ns, side="right")) - 1
    if at < first or (at == last and tasks.kind[at] == Kind.STOP and tasks.flags[at] >= Stop.EXITED):
        return None
    return _stretch(timeline, at)


def states_ns(timeline: Timeline, task: int, begin_ns: int, end_ns: int) -> dict[str, int]:
    """How long a task ran, waited and was blocked within a window, in ns."""
    tasks = timeline.by_task
    first, last = _bounds(tasks, task)
    mine = slice(first, last + 1)
    begin = tasks.t_ns[mine]
    length = np.minimum(begin + timeline.duration_ns[mine], end_ns) - np.maximum(begin, begin_ns)
    length = np.maximum(length, 0)
    kind, waits = tasks.kind[mine], timeline.is_runnable_after[mine]
    blocked = (kind == Kind.STOP) & (tasks.flags[mine] == Stop.BLOCKED)
    chosen = {"ran": kind == Kind.RUN, "waited": waits, "blocked": blocked}
    return {name: int(length[which].sum()) for name, which in chosen.items()}


def explain_wait(timeline: Timeline, stretch: Stretch, cpus: Sequence[int] | None = None) -> Wait:
    """Account for the CPUs of a waiting task.

    Of a run that passes consistency.py, and a stretch in which a task waited; `cpus`: those on which it may
    run, default all. The parts of the Wait add up to its length times its CPUs.
    """
    tasks = timeline.by_task
    at, begin, end = stretch.at, stretch.begin_ns, stretch.end_ns
    mine = tuple(cpus) if cpus is not None else tuple(range(timeline.records.n_cpus))
    spans = timeline.spans
    chosen = np.flatnonzero((spans.begin_ns < end) & (spans.end_ns > begin) & np.isin(spans.cpu, mine))
    inside = np.minimum(spans.end_ns[chosen], end) - np.maximum(spans.begin_ns[chosen], begin)
    overhead = _overhead_within(timeline, spans, chosen, begin, end)
    rest = inside - overhead
    is_run = spans.is_run[chosen]
    free = ~is_run & (rest > 0)
    idle = {cpu: int(rest[free & (spans.cpu[chosen] == cpu)].sum()) for cpu in mine}
    run_at = _run_after(tasks, at)
    before, ended_by = _freed_by(timeline, run_at)
    return Wait(
        task=stretch.task,
        begin_ns=begin,
        end_ns=end,
        why=_why(tasks, at),
        by=int(tasks.arg[at]) if tasks.kind[at] <= Kind.WAKE else 0,
        ended_by=ended_by,
        before=before,
        cpu=-1 if run_at is None else int(tasks.cpu[run_at]),
        dsq=-1 if run_at is None else int(tasks.arg[run_at]),
        cpus=mine,
        queue=_queue(timeline, at),
        parts=_parts(timeline, chosen[is_run], rest[is_run], at),
        idle_ns=tuple((cpu, ns) for cpu, ns in idle.items() if ns),
        overhead_ns=int(overhead.sum()),
    )


def _bounds(tasks: Ordered, task: int) -> tuple[int, int]:
    """First and last event of a task."""
    place = int(np.searchsorted(tasks.keys, task))
    if place == len(tasks.keys) or tasks.keys[place] != task:
        raise NotFoundError(f"no task {task} in these records; they have {_some(tasks.keys)}")
    return int(tasks.first[place]), int(tasks.last[place])


def _some(pids: np.ndarray) -> str:
    return ", ".join(map(str, pids[:8].tolist())) + (f" and {len(pids) - 8} more" if len(pids) > 8 else "")


def _waits(timeline: Timeline) -> tuple[np.ndarray, np.ndarray]:
    """Where waits begin in `by_task`, and how long they are; one that arrives and is woken is one wait."""
    begin = np.flatnonzero(timeline.is_runnable_after & ~timeline.arrived_awake)
    length = timeline.duration_ns[begin]
    joined = np.flatnonzero(timeline.arrived_awake)
    length[np.searchsorted(begin, joined) - 1] += timeline.duration_ns[joined]
    return begin, length


def _stretch(timeline: Timeline, at: int) -> Stretch:
    """The stretch that the event at this position began."""
    tasks = timeline.by_task
    if timeline.arrived_awake[at]:
        at -= 1
    last = at + 1 if at + 1 < len(tasks.row) and timeline.arrived_awake[at + 1] else at
    end = int(tasks.t_ns[last] + timeline.duration_ns[last])
    kind, by = tasks.kind[at], 0
    if kind == Kind.RUN:
        state = "ran"
    elif timeline.is_runnable_after[at]:
        state = "waited"
    else:
        state = "blocked"
        if tasks.has_next[at] and tasks.kind[at + 1] == Kind.WAKE:
            by = int(tasks.arg[at + 1])
    return Stretch(int(tasks.task[at]), state, int(tasks.t_ns[at]), end, at, by)


def _why(tasks: Ordered, at: int) -> str:
    if tasks.kind[at] == Kind.STOP:
        return "yielded" if tasks.flags[at] == Stop.YIELDED else "preempted"
    return "woken" if tasks.kind[at] == Kind.WAKE else "arrived"


def _run_after(tasks: Ordered, at: int) -> int | None:
    """The event in which the task runs at last; None if it does not."""
    while tasks.has_next[at]:
        at += 1
        if tasks.kind[at] == Kind.RUN:
            return at
    return None


def _freed_by(timeline: Timeline, run_at: int | None) -> tuple[int, str]:
    """Which task left the CPU before the task ran there, and why; (0, "idle") if it was idle before."""
    if run_at is None:
        return 0, ""
    cpus, row = timeline.by_cpu, timeline.by_task.row[run_at]
    here = np.flatnonzero(
        (cpus.cpu == timeline.by_task.cpu[run_at]) & (cpus.row < row) & (cpus.kind == Kind.STOP)
    )
    if not len(here):
        return 0, "idle"
    stop = here[-1]
    spent = (cpus.cpu == cpus.cpu[stop]) & (cpus.row > cpus.row[stop]) & (cpus.row < row)
    overhead = int(cpus.arg[spent & (cpus.kind == Kind.OVERHEAD)].sum())
    if timeline.by_task.t_ns[run_at] - cpus.t_ns[stop] > overhead:
        return 0, "idle"
    names = {
        Stop.PREEMPTED: "preempted",
        Stop.YIELDED: "yielded",
        Stop.BLOCKED: "blocked",
        Stop.EXITED: "exited",
    }
    return int(cpus.task[stop]), names[Stop(int(cpus.flags[stop]))]


def _overhead_within(
    timeline: Timeline, spans: Spans, chosen: np.ndarray, begin: int, end: int
) -> np.ndarray:
    """Of each chosen span, the time in the scheduler that lies within a window, in ns."""
    cpus = timeline.by_cpu
    total = np.zeros(len(chosen), np.int64)
    for cpu in np.unique(spans.cpu[chosen][spans.overhead_ns[chosen] > 0]):
        spent = np.flatnonzero((cpus.kind == Kind.OVERHEAD) & (cpus.cpu == cpu))
        until, ns = cpus.t_ns[spent], cpus.arg[spent].astype(np.int64)
        # Overhead of the CPU until then: it grows while there is some, and stands still between.
        times = np.stack((until - ns, until), axis=1).ravel()
        sums = np.stack((np.cumsum(ns) - ns, np.cumsum(ns)), axis=1).ravel()
        here = spans.cpu[chosen] == cpu
        low = np.interp(np.maximum(spans.begin_ns[chosen][here], begin), times, sums)
        high = np.interp(np.minimum(spans.end_ns[chosen][here], end), times, sums)
        total[here] = np.rint(high - low).astype(np.int64)
    return total


def _parts(timeline: Timeline, spans: np.ndarray, ns: np.ndarray, at: int) -> tuple[Part, ...]:
    """What other tasks had of the CPUs, by what they were when the wait began.

    `spans` are those in which tasks ran, `ns` what each had of the window without overhead.
    """
    tasks, every = timeline.by_task, timeline.spans
    # The STOP that ends a span is the task's first at that time on that CPU; its RUN is just before.
    runs = np.flatnonzero(tasks.kind == Kind.RUN)
    order = np.lexsort((tasks.row[runs], tasks.cpu[runs]))
    runs = runs[order]
    # Runs of a CPU are in the order of its spans, and there is a span for each that has ended.
    place = np.searchsorted(every.cpu[every.is_run.nonzero()[0]], np.arange(timeline.records.n_cpus))
    rank = np.cumsum(every.is_run) - 1
    first = np.searchsorted(tasks.cpu[runs], np.arange(timeline.records.n_cpus))
    cpu = every.cpu[spans]
    run = runs[first[cpu] + rank[spans] - place[cpu]]
    row = tasks.row[at]
    since = run - 1
    since = tasks.row[np.where(timeline.arrived_awake[since], since - 1, since)]
    relation = np.where(tasks.row[run] < row, 0, np.where(since < row, 1, 2))
    keys, place = np.unique(np.stack((every.task[spans], relation)), axis=1, return_inverse=True)
    total = np.bincount(place.ravel(), weights=ns, minlength=keys.shape[1]).astype(np.int64)
    n_turns = np.bincount(place.ravel(), minlength=keys.shape[1])
    parts = [
        Part(int(task), RELATIONS[which], int(sum_ns), int(n))
        for (task, which), sum_ns, n in zip(keys.T, total, n_turns, strict=True)
        if sum_ns
    ]
    return tuple(sorted(parts, key=lambda part: (-part.ns, part.task)))


def _queue(timeline: Timeline, at: int) -> tuple[int, ...]:
    """Who waits already when the task at this event becomes runnable, in the order in which they run next."""
    tasks, row = timeline.by_task, timeline.by_task.row[at]
    begin, _ = _waits(timeline)
    begin = begin[(tasks.row[begin] < row) & (tasks.task[begin] != tasks.task[at])]
    follows = np.minimum(begin + 1, len(tasks.row) - 1)
    run = np.where(timeline.arrived_awake[follows], begin + 2, begin + 1)
    runs = tasks.has_next[np.minimum(run - 1, len(tasks.row) - 1)]
    run_row = np.where(runs, tasks.row[np.minimum(run, len(tasks.row) - 1)], len(timeline.kind))
    still = run_row > row
    return tuple(tasks.task[begin[still]][np.argsort(run_row[still], kind="stable")].tolist())
