# SPDX-License-Identifier: MIT
"""Follow each task through its program: it waits, yields, wakes and ends where that says so.

A host that executes programs exactly gives every task, after so many nanoseconds of
CPU time, one definite op. The CPU time that a task had at a STOP is therefore a
position in its program, and at each position the program says how often the task
must block, may block, may yield, and whether it ends:

    run 5 ms   sleep 2 ms   lock a   run 1 ms   yield   exit
    |----------|------------|--------|----------|-------|
    0          5 ms: blocks once (sleep), may block once more (lock)
                                     6 ms: may yield, then ends

Where that says which op a task blocked in, it says also when the task wakes: from a
sleep after its time, from the device when that is through with the requests before it,
from a lock, a pipe, a barrier, a condition or children when another task is at an op
that wakes.

What cannot be seen: which of several ops at one position a task blocked in, where not
all blocked; which of two lock holders woke a task, where both are at an UNLOCK; and a
task that was preempted at a tick just where it would have waited.

Invariant: everything is sorted once; no step loops over records in Python.
Read next: program/unroll.py; consistency.py, whose checks come first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..calibration import Calibration
from ..program import layout
from ..program.file import Program
from ..program.unroll import Unrolled, unroll
from ..records.file import Kind, Overhead, Stop
from .timeline import Ordered, Timeline, distinct, is_among
from .violation import Violation, at, earliest, first_of

_VERB = layout.VERB_NUMBER
#: Executions of a group of tasks that are unrolled at a time; tasks with more are not followed.
CELLS_MAX = 1 << 23
_CELLS_JOINED = 1 << 16


_TRANSFERS = layout.which_verbs("read", "write")
_ALWAYS_BLOCKS = layout.which_verbs("sleep", "await", "read", "write")
_MAY_BLOCK = layout.which_verbs("period", "timer", "lock", "send", "recv", "barrier", "wait")
_EVENTS = _ALWAYS_BLOCKS | _MAY_BLOCK | layout.which_verbs("yield", "exit", "spawn", "unlock", "signal")
#: Ops that can end a wait in an op of this verb.
_WAKERS = {
    "lock": layout.which_verbs("unlock", "await", "signal"),
    "await": layout.which_verbs("unlock", "await", "signal"),
    "send": layout.which_verbs("send", "recv"),
    "recv": layout.which_verbs("send", "recv"),
    "barrier": layout.which_verbs("barrier"),
    "wait": layout.which_verbs("exit"),
}


@dataclass(frozen=True)
class Course:
    """A program, and what takes time where it is executed exactly."""

    program: Program = field(repr=False)  #: What every task does.
    calibration: Calibration = field(repr=False)  #: Cost of a unit of `work`.
    #: `latency_ns`, `ns_per_kib`, `call_ns` and `depth` of what READ and WRITE wait for.
    device: tuple[int, ...]
    wakeup_ns: int = 0  #: What a timer or a device takes longer to wake a task.
    is_prompt: bool = True  #: Whether nothing else takes time: a CPU that is kicked schedules at once.


@dataclass(frozen=True)
class _Points:
    """What the program has for its tasks, in the order of task and position.

    `key` is the task's place on a line on which all tasks' CPU time is laid end to end.
    """

    key: np.ndarray
    verb: np.ndarray
    operand: np.ndarray
    slot: np.ndarray
    blocks: np.ndarray


@dataclass(frozen=True)
class _Actual:
    """Where in its program each event of `by_task` found its task."""

    key: np.ndarray
    known: np.ndarray
    first_key: np.ndarray
    last_key: np.ndarray
    has_ended: np.ndarray


def follow(timeline: Timeline, course: Course) -> Violation | None:
    """Hold the records of a run against what its program says of each task.

    Returns the first event, of those that are wrong, that is found. The run passes consistency.py. Only
    valid of a host that executes programs exactly, as the simulator does without costs that tasks are
    charged with.
    """
    tasks = timeline.by_task
    if len(tasks.row) == 0:
        return None
    if found := _unplanned(timeline, course) or _migrations(timeline):
        return found
    actual, points = _lay_out(timeline, course)
    counts = _Counts(actual, points, tasks)
    if len(counts.keys) == 0:
        # No task has run that is short enough to be followed.
        return _order_of_children(timeline, course)
    if found := earliest([_stops(tasks, actual, counts), _missing(tasks, actual, points, counts)]):
        return found
    point = _pair(tasks, actual, points, counts)
    checks = [_timed(timeline, course, points, point), _device(timeline, course, actual, points, point)]
    checks += [_woken(timeline, actual, points, point), _spawned(timeline, actual, points)]
    checks.append(_order_of_children(timeline, course))
    if course.is_prompt:
        checks.append(_groundless(timeline, actual, points, counts))
    return earliest(checks)


def _who(tasks: Ordered, i: int) -> str:
    return f"{at(tasks.t_ns[i])}, CPU {tasks.cpu[i]}: task {tasks.task[i]}"


def _unplanned(timeline: Timeline, course: Course) -> Violation | None:
    """No task but the program's arrives, and none that is there from the start comes late."""
    tasks, rows = timeline.by_task, course.program.task_rows
    begins = tasks.t_ns[tasks.first]
    pids = tasks.keys.astype(np.int64)
    is_none = (pids < 1) | (pids > len(rows))
    planned = rows["arrival_ns"][np.where(is_none, 0, pids - 1)]
    is_root = ~is_none & (planned != layout.ARRIVAL_SPAWNED)
    parent = tasks.arg[tasks.first]
    is_late = is_root & (planned == 0) & (begins > 0)
    is_child = is_root & (parent != 0)

    def describe(i: int) -> str:
        who = _who(tasks, tasks.first[i])
        if is_none[i]:
            return f"{who} arrives, but its program has {len(rows)} tasks"
        if is_late[i]:
            return f"{who} arrives, but its program says 0 ns"
        return f"{who} arrives as a child of task {parent[i]}, but its program has no parent for it"

    return first_of(begins, is_none | is_late | is_child, describe)


def _migrations(timeline: Timeline) -> Violation | None:
    """One MIGRATE for each RUN elsewhere than the last one, just before it, and no other."""
    tasks, events = timeline.by_task, timeline.records.events
    runs = np.flatnonzero(tasks.kind == Kind.RUN)
    moved = np.zeros(len(runs), bool)
    same_task = tasks.group[runs[1:]] == tasks.group[runs[:-1]]
    moved[1:] = same_task & (tasks.cpu[runs[1:]] != tasks.cpu[runs[:-1]])
    due = runs[moved]
    origin = tasks.cpu[runs[np.flatnonzero(moved) - 1]]
    found = np.flatnonzero(timeline.kind == Kind.MIGRATE)
    order = np.argsort(tasks.row[due])
    due, origin = due[order], origin[order]
    expected = tasks.row[due] - 1
    if len(found) == len(due) and (found == expected).all():
        wrong = (events["task"][found] != tasks.task[due]) | (events["cpu"][found] != tasks.cpu[due])
        wrong |= events["arg"][found] != origin
        return first_of(
            tasks.t_ns[due],
            wrong,
            lambda i: (
                f"{_who(tasks, due[i])} runs after CPU {origin[i]}, "
                f"but its migration is of task {events['task'][found[i]]} from CPU {events['arg'][found[i]]}"
            ),
        )
    missing = first_of(
        tasks.t_ns[due],
        ~np.isin(expected, found),
        lambda i: f"{_who(tasks, due[i])} runs after CPU {origin[i]} without a migration",
    )
    t_ns = events["t_ns"][found].astype(np.int64)
    extra = first_of(
        t_ns,
        ~np.isin(found, expected),
        lambda i: (
            f"{at(t_ns[i])}, CPU {events['cpu'][found[i]]}: task {events['task'][found[i]]} migrates, but it "
            "does not run there next"
        ),
    )
    return earliest([missing, extra])


# ---- both on one line ---------------------------------------------------------


def _lay_out(timeline: Timeline, course: Course) -> tuple[_Actual, _Points]:
    """Give every event and every op of the program its place."""
    tasks, n_tasks = timeline.by_task, len(course.program.task_rows)
    is_stop = tasks.kind == Kind.STOP
    had = np.cumsum(np.where(is_stop, tasks.arg, 0).astype(np.int64))
    base = np.concatenate(([0], had))[tasks.first]
    total = had[tasks.last] - base
    index = tasks.keys.astype(np.int64) - 1
    received, stops = np.full(n_tasks, -1, np.int64), np.zeros(n_tasks, np.int64)
    received[index] = total
    stops[index] = np.add.reduceat(is_stop.astype(np.int64), tasks.first)
    # One more for each, so that the end of a task is not the beginning of the next.
    start = np.concatenate(([0], np.cumsum(received + 1)[:-1]))
    pieces, known, joined = [], np.zeros(n_tasks, bool), []
    for unrolled in unroll(
        course.program, course.calibration, received_ns=received, n_stops=stops, cells_max=CELLS_MAX
    ):
        known[unrolled.tasks] = True
        joined.append(_executions_of(unrolled))
        # Small groups are laid out together, which takes no longer than one of them.
        if sum(len(columns[0]) for columns in joined) >= _CELLS_JOINED:
            pieces.append(_points_of(joined, course.device[2], received, start))
            joined = []
    if joined:
        pieces.append(_points_of(joined, course.device[2], received, start))
    columns = (
        [np.concatenate(column) for column in zip(*pieces, strict=True)] if pieces else [np.zeros(0, int)] * 5
    )
    order = np.argsort(columns[0], kind="stable")
    points = _Points(*(column[order] for column in columns))
    last = tasks.last
    actual = _Actual(
        key=had - np.repeat(base - start[index], last - tasks.first + 1),
        known=known[index][tasks.group],
        first_key=start[index],
        last_key=start[index] + total,
        has_ended=(tasks.kind[last] == Kind.STOP) & (tasks.flags[last] == Stop.EXITED),
    )
    return actual, points


def _executions_of(unrolled: Unrolled) -> list[np.ndarray]:
    """All executions of a group of tasks, one after the other, as the columns that `_points_of` takes."""
    shape = unrolled.operand.shape
    columns = [np.tile(unrolled.ops[name], shape[0]) for name in ("verb", "flags", "slot", "a")]
    return [*columns, unrolled.operand.ravel(), unrolled.cpu_ns.ravel(), np.repeat(unrolled.tasks, shape[1])]


def _points_of(
    joined: list[list[np.ndarray]], call_ns: int, received: np.ndarray, start: np.ndarray
) -> list[np.ndarray]:
    """The columns of `_Points` for groups of tasks, up to where each task has got."""
    verb, flags, slot, chunk, operand, cpu_ns, task = (
        np.concatenate(column) for column in zip(*joined, strict=True)
    )
    is_transfer = _TRANSFERS[verb]
    if is_transfer.any():
        # A transfer is as many calls; each takes its time, then waits for its bytes.
        chunk = np.where((chunk > 0) & (chunk < operand), chunk, operand)
        calls = np.where(is_transfer, -(-operand // np.maximum(chunk, 1)), 1)
        which = np.repeat(np.arange(len(calls)), calls)
        number = np.arange(len(which)) - np.repeat(np.cumsum(calls) - calls, calls)
        rest = operand[which] - number * chunk[which]
        is_transfer = is_transfer[which]
        operand = np.where(is_transfer, np.minimum(chunk[which], rest), operand[which])
        cpu_ns = np.where(is_transfer, call_ns, cpu_ns[which])
        verb, flags, slot, task = verb[which], flags[which], slot[which], task[which]
    to_device = (flags & (layout.OP_SYNC | layout.OP_DIRECT)) != 0
    # What a task declares beyond what it had only has to be more.
    cpu_ns = np.minimum(cpu_ns, received[task] + 1)
    position = np.cumsum(cpu_ns)
    edge = np.flatnonzero(np.diff(task, prepend=-1) != 0)
    before = (position - cpu_ns)[edge]
    position = position - np.repeat(before, np.diff(np.append(edge, len(task))))
    chosen = np.flatnonzero(_EVENTS[verb] & (~is_transfer | to_device) & (position <= received[task]))
    columns = (position + start[task], verb, operand, slot, _ALWAYS_BLOCKS[verb])
    return [column[chosen] for column in columns]


class _Counts:
    """How often, at each key where anything is due or happened, tasks do what they do.

    `keys`, shape (n,), ascending; the counts of `of_points` and `of_stops` are as long.
    """

    def __init__(self, actual: _Actual, points: _Points, tasks: Ordered):
        self.is_stop = (tasks.kind == Kind.STOP) & actual.known
        self.keys = distinct(np.concatenate((points.key, actual.key[self.is_stop])))
        self._point_at = np.searchsorted(self.keys, points.key)
        self.event_at = np.searchsorted(self.keys, actual.key)
        blocked = self.of_stops(tasks, Stop.BLOCKED)
        self.blocked = blocked
        self.must_block = self.of_points(points.blocks)
        self.may_block = self.of_points(_MAY_BLOCK[points.verb])
        self.yielded = self.of_stops(tasks, Stop.YIELDED)
        self.may_yield = self.of_points(points.verb == _VERB["yield"])
        self.is_end = self.of_points(points.verb == _VERB["exit"]) > 0
        self.point_at = self._point_at
        # What a task that has not ended was about to do is open.
        open_keys = actual.last_key[~actual.has_ended]
        self.is_open = is_among(self.keys, open_keys)

    def of_points(self, chosen: np.ndarray) -> np.ndarray:
        """Number of the chosen points at each key."""
        return np.bincount(self._point_at[chosen], minlength=len(self.keys))

    def of_stops(self, tasks: Ordered, why: Stop) -> np.ndarray:
        """Number of the stops of one kind at each key."""
        chosen = self.is_stop & (tasks.flags == why)
        return np.bincount(self.event_at[chosen], minlength=len(self.keys))


# ---- where tasks stop -----------------------------------------------------------


def _stops(tasks: Ordered, actual: _Actual, counts: _Counts) -> Violation | None:
    """A task blocks, yields or ends where its program does, and not more often."""
    where = counts.event_at.clip(max=len(counts.keys) - 1)
    had = actual.key - actual.first_key[tasks.group]
    blocks_more = (counts.blocked > counts.must_block + counts.may_block)[where]
    yields_more = (counts.yielded > counts.may_yield)[where]
    no_end = ~counts.is_end[where]
    flags = tasks.flags
    bad = counts.is_stop & (
        ((flags == Stop.BLOCKED) & blocks_more)
        | ((flags == Stop.YIELDED) & yields_more)
        | ((flags == Stop.EXITED) & no_end)
    )
    words = {Stop.BLOCKED: "blocks", Stop.YIELDED: "yields", Stop.EXITED: "ends"}
    return first_of(
        tasks.t_ns,
        bad,
        lambda i: (
            f"{_who(tasks, i)} {words[Stop(int(flags[i]))]} after {had[i]} ns of CPU time, where its program "
            "does not"
        ),
    )


def _missing(tasks: Ordered, actual: _Actual, points: _Points, counts: _Counts) -> Violation | None:
    """A task that has got beyond a sleep, a transfer or a wait for a condition has blocked there."""
    bad = (counts.blocked < counts.must_block) & ~counts.is_open
    if not bad.any():
        return None
    key = int(counts.keys[np.flatnonzero(bad)[0]])
    group = int(np.searchsorted(actual.first_key, key, side="right")) - 1
    events = np.arange(tasks.first[group], tasks.last[group] + 1)
    i = int(events[min(int(np.searchsorted(actual.key[events], key)), len(events) - 1)])
    verb = layout.VERBS[int(points.verb[(points.key == key) & points.blocks][0])]
    return Violation(
        int(tasks.t_ns[i]),
        f"{_who(tasks, i)} goes on after {key - int(actual.first_key[group])} ns of CPU time, where its program "
        f"blocks ('{verb}')",
    )


def _pair(tasks: Ordered, actual: _Actual, points: _Points, counts: _Counts) -> np.ndarray:
    """Index of the point in which each event of `by_task` blocked, -1 where that is not known."""
    every = counts.must_block + counts.may_block
    is_all = counts.blocked == every
    # Where none may but need not, the first of them; otherwise those that must.
    is_must = ((counts.blocked == counts.must_block) & ~counts.is_open) | (counts.may_block == 0)
    blocks = counts.is_stop & (tasks.flags == Stop.BLOCKED)
    events = np.flatnonzero(blocks & (is_all | is_must)[counts.event_at.clip(max=len(counts.keys) - 1)])
    can = points.blocks | (_MAY_BLOCK[points.verb] & is_all[counts.point_at])
    chosen = np.flatnonzero(can & (is_all | is_must)[counts.point_at])
    at_key = counts.point_at[chosen]
    number = np.arange(len(chosen)) - np.searchsorted(at_key, at_key, side="left")
    chosen = chosen[number < counts.blocked[at_key]]
    # Both are in the order of task, then of time, and equally many at each key.
    point = np.full(len(tasks.row), -1)
    point[events] = chosen
    return point


def _groundless(timeline: Timeline, actual: _Actual, points: _Points, counts: _Counts) -> Violation | None:
    """No task is preempted off the tick, by nothing, just where it would wait or yield, or at once.

    A CPU schedules at ticks, and when it is kicked; a kick comes with an arrival, a
    wake-up or a new attribute, with another task that yields and is enqueued, or from another
    CPU that schedules.
    """
    tasks, records = timeline.by_task, timeline.records
    left = (counts.may_yield > counts.yielded) | (counts.must_block + counts.may_block > counts.blocked)
    stops = counts.is_stop & (tasks.flags == Stop.PREEMPTED)
    stops &= (tasks.arg == 0) | left[counts.event_at.clip(max=len(counts.keys) - 1)]
    if records.tick_ns:
        stops &= tasks.t_ns % records.tick_ns != 0
    i = np.flatnonzero(stops)
    if len(i) == 0:
        return None
    t_ns = records.events["t_ns"].astype(np.int64)
    is_yield = (timeline.kind == Kind.STOP) & (records.events["flags"] == Stop.YIELDED)
    is_cause = (timeline.kind <= Kind.WAKE) | (timeline.kind == Kind.ATTR) | is_yield
    causes = t_ns[is_cause]
    n_causes = np.searchsorted(causes, tasks.t_ns[i], side="right") - np.searchsorted(causes, tasks.t_ns[i])
    # It may have been woken, or have yielded, at this very instant, which is no cause.
    came = i - 2
    is_own = (tasks.kind[came] <= Kind.WAKE) | (
        (tasks.kind[came] == Kind.STOP) & (tasks.flags[came] == Stop.YIELDED)
    )
    n_causes -= (tasks.arg[i] == 0) & is_own & (tasks.t_ns[came] == tasks.t_ns[i])
    is_run = np.flatnonzero((timeline.kind == Kind.RUN) | (timeline.kind == Kind.STOP))
    moments, cpu = t_ns[is_run], records.events["cpu"][is_run].astype(np.int64)
    low = np.searchsorted(moments, tasks.t_ns[i], side="left")
    high = np.searchsorted(moments, tasks.t_ns[i], side="right")
    changes = np.concatenate(([0], np.cumsum(np.diff(cpu, prepend=-1) != 0)))
    is_alone = changes[high] == changes[low + 1]
    return first_of(
        tasks.t_ns[i],
        (n_causes == 0) & is_alone,
        lambda k: (
            f"{_who(tasks, i[k])} is preempted by nothing, and off the tick, after "
            f"{actual.key[i[k]] - actual.first_key[tasks.group[i[k]]]} ns of CPU time, where its program waits or yields "
            "or has just begun"
        ),
    )


# ---- when tasks wake ------------------------------------------------------------


def _timed(timeline: Timeline, course: Course, points: _Points, point: np.ndarray) -> Violation | None:
    """A sleep lasts as long as it says; periods and timers wake at their times."""
    tasks = timeline.by_task
    i = np.flatnonzero(point >= 0)
    if len(i) == 0:
        return None
    verb, ns = points.verb[point[i]], points.operand[point[i]]
    slept = timeline.duration_ns[i] - course.wakeup_ns
    is_over = tasks.has_next[i]
    is_sleep, is_period, is_timer = (verb == _VERB[name] for name in ("sleep", "period", "timer"))
    arrival = tasks.t_ns[tasks.first][tasks.group[i]]
    since = tasks.t_ns[i] + slept - arrival
    bad = is_sleep & (slept != ns)
    bad |= (is_period | is_timer) & ((slept <= 0) | (slept > ns))
    bad |= is_period & (since % np.maximum(ns, 1) != 0)
    bad[_out_of_rhythm(tasks, points, point, i, is_timer, since)] = True
    # What the run cut off may have had to last longer, not shorter.
    bad = np.where(is_over, bad, is_sleep & (slept > ns))
    by_task = np.zeros(len(i), bool)
    by_task[is_over] = tasks.arg[i[is_over] + 1] != 0
    bad |= (is_sleep | is_period | is_timer) & by_task
    return first_of(
        tasks.t_ns[i],
        bad,
        lambda k: (
            f"{_who(tasks, i[k])} blocks in '{layout.VERBS[verb[k]]}' of {ns[k]} ns, and is woken "
            f"{slept[k]} ns later" + (f" by task {tasks.arg[i[k] + 1]}" if by_task[k] else "")
        ),
    )


def _out_of_rhythm(
    tasks: Ordered, points: _Points, point: np.ndarray, i: np.ndarray, is_timer: np.ndarray, since: np.ndarray
) -> np.ndarray:
    """Positions in `i` of waits for a timer that end not one period after the wait before."""
    mine = np.flatnonzero(is_timer)
    slot = tasks.group[i[mine]] * layout.NONE + points.slot[point[i[mine]]]
    mine = mine[np.argsort(slot, kind="stable")]
    slot = np.sort(slot)
    # Every execution of each timer in turn: one that did not wait may have begun anew.
    timers = np.flatnonzero(points.verb == _VERB["timer"])
    turn = np.zeros(len(points.verb), np.int64)
    turn[timers[np.argsort(points.slot[timers], kind="stable")]] = np.arange(len(timers))
    one, other = mine[:-1], mine[1:]
    follows = (slot[1:] == slot[:-1]) & (turn[point[i[other]]] - turn[point[i[one]]] == 1)
    return other[follows & (since[other] - since[one] != points.operand[point[i[other]]])]


def _device(
    timeline: Timeline, course: Course, actual: _Actual, points: _Points, point: np.ndarray
) -> Violation | None:
    """The device does one request after the other, each in its time."""
    tasks = timeline.by_task
    is_transfer = np.zeros(len(tasks.row), bool)
    paired = point >= 0
    is_transfer[paired] = _TRANSFERS[points.verb[point[paired]]]
    i = np.flatnonzero(is_transfer)
    if len(i) == 0:
        return None
    i = i[np.argsort(tasks.row[i])]
    latency_ns, ns_per_kib, _, depth = course.device
    took = latency_ns + -(-points.operand[point[i]] * ns_per_kib // 1024) + course.wakeup_ns
    asked = tasks.t_ns[i]
    done = asked + timeline.duration_ns[i]
    stray = (tasks.kind == Kind.STOP) & (tasks.flags == Stop.BLOCKED) & ~paired
    if (
        depth == 1
        and actual.known.all()
        and not is_among(actual.key[stray], points.key[_TRANSFERS[points.verb]]).any()
    ):
        sums = np.cumsum(took)
        due = sums + np.maximum.accumulate(asked - (sums - took))
        bad = done != due
    else:
        due = asked + took
        bad = done < due
    is_over = tasks.has_next[i]
    bad = np.where(is_over, bad, (done > due) & (depth == 1))
    by_task = np.zeros(len(i), bool)
    by_task[is_over] = tasks.arg[i[is_over] + 1] != 0
    return first_of(
        asked,
        bad | by_task,
        lambda k: (
            f"{_who(tasks, i[k])} waits for the device, which is through with it {due[k] - asked[k]} ns later, "
            f"but it is woken after {done[k] - asked[k]} ns"
        ),
    )


def _position_of(
    timeline: Timeline, actual: _Actual, pid: np.ndarray, row: np.ndarray, t_ns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys of tasks at some rows of the records, whether they run there, and whether they are followed."""
    tasks = timeline.by_task
    group = np.searchsorted(tasks.keys, pid).clip(max=len(tasks.keys) - 1)
    is_there = tasks.keys[group] == pid
    n_rows = len(timeline.kind) + 1
    place = tasks.group * n_rows + tasks.row
    event = np.searchsorted(place, group * n_rows + row, side="left") - 1
    event = event.clip(min=0)
    is_there &= (tasks.group[event] == group) & (tasks.kind[event] == Kind.RUN)
    ran_ns = t_ns - tasks.t_ns[event] - _stolen_ns(timeline, tasks.cpu[event], tasks.row[event], row)
    # Of a task that is not followed nothing can be said.
    return actual.key[event] + ran_ns, is_there, actual.known[event]


def _stolen_ns(timeline: Timeline, cpu: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """What ticks took of CPUs between two rows of the records, in nanoseconds."""
    cpus, n_rows = timeline.by_cpu, len(timeline.kind) + 1
    ticks = np.flatnonzero((cpus.kind == Kind.OVERHEAD) & (cpus.flags == Overhead.TICK))
    if len(ticks) == 0:
        return np.zeros(len(cpu), np.int64)
    place = cpus.cpu[ticks].astype(np.int64) * n_rows + cpus.row[ticks]
    taken = np.concatenate(([0], np.cumsum(cpus.arg[ticks].astype(np.int64))))
    base = cpu.astype(np.int64) * n_rows
    return taken[np.searchsorted(place, base + end)] - taken[np.searchsorted(place, base + begin)]


def _woken(timeline: Timeline, actual: _Actual, points: _Points, point: np.ndarray) -> Violation | None:
    """Who waits for another task is woken by one that is at an op which does that."""
    tasks = timeline.by_task
    found = []
    i = np.flatnonzero((point >= 0) & tasks.has_next)
    verb = points.verb[point[i]]
    for name, wakers in _WAKERS.items():
        mine = i[verb == _VERB[name]]
        if len(mine) == 0:
            continue
        wake = mine + 1
        key, runs, known = _position_of(
            timeline, actual, tasks.arg[wake].astype(np.int64), tasks.row[wake], tasks.t_ns[wake]
        )
        bad = known & (~runs | ~is_among(key, points.key[wakers[points.verb]]))

        def describe(k: int, wake: np.ndarray = wake, name: str = name) -> str:
            woken = f"{_who(tasks, wake[k])}, blocked in '{name}', is woken by task"
            return f"{woken} {tasks.arg[wake[k]]}, which is at no op that wakes it"

        found.append(first_of(tasks.t_ns[wake], bad, describe))
    return earliest(found)


def _spawned(timeline: Timeline, actual: _Actual, points: _Points) -> Violation | None:
    """A child arrives while its parent is at a SPAWN, one for each."""
    tasks = timeline.by_task
    child = tasks.first[tasks.arg[tasks.first] != 0]
    is_spawn = points.verb == _VERB["spawn"]
    if len(child) == 0 and not is_spawn.any():
        return None
    parent = tasks.arg[child].astype(np.int64)
    key, runs, known = _position_of(timeline, actual, parent, tasks.row[child], tasks.t_ns[child])
    spawn_keys = points.key[is_spawn]
    due = np.searchsorted(spawn_keys, key, side="right") - np.searchsorted(spawn_keys, key, side="left")
    keys, inverse, number = np.unique(key, return_inverse=True, return_counts=True)
    wrong = known & (~runs | (number[inverse] > due)) if len(keys) else np.zeros(0, bool)
    if found := first_of(
        tasks.t_ns[child],
        wrong,
        lambda k: f"{_who(tasks, child[k])} arrives as a child of task {parent[k]}, which is at no 'spawn'",
    ):
        return found
    # Every spawn that its task has got beyond has its child.
    open_keys = actual.last_key[~actual.has_ended]
    passed = spawn_keys[~is_among(spawn_keys, open_keys)]
    n_due, n_come = len(passed), int((known & ~is_among(key, open_keys)).sum())
    if n_come == n_due:
        return None
    end_ns = timeline.records.end_ns
    return Violation(
        end_ns, f"at {end_ns} ns (the end): {n_due} children were spawned, but {n_come} have arrived"
    )


def _order_of_children(timeline: Timeline, course: Course) -> Violation | None:
    """The children of one parent and kind arrive in the order of their pids, from the first on."""
    tasks, rows = timeline.by_task, course.program.task_rows
    children = np.flatnonzero(rows["arrival_ns"] == layout.ARRIVAL_SPAWNED)
    if len(children) == 0:
        return None
    family = rows["parent"].astype(np.int64) << 32 | rows["class_idx"]

    def number_in(families: np.ndarray) -> np.ndarray:
        order = np.argsort(families, kind="stable")
        ordered = families[order]
        result = np.empty(len(order), np.int64)
        result[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        return result

    planned = np.full(len(rows), -1, np.int64)
    planned[children] = number_in(family[children])
    come = tasks.first[planned[tasks.keys.astype(np.int64) - 1] >= 0]
    come = come[np.argsort(tasks.row[come])]
    index = tasks.task[come].astype(np.int64) - 1
    parent = rows["parent"][index].astype(np.int64) + 1
    bad = (number_in(family[index]) != planned[index]) | (parent != tasks.arg[come])
    return first_of(
        tasks.t_ns[come],
        bad,
        lambda k: (
            f"{_who(tasks, come[k])} arrives as a child of task {tasks.arg[come[k]]}, but it is not the next "
            f"that its program has of task {parent[k]}"
        ),
    )
