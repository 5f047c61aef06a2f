# SPDX-License-Identifier: MIT
"""Put the events of a run in order of task and of CPU, once, for all who need it.

Metrics ask "what did this task do next", the consistency check also asks "what did this CPU
do next". Both orders are one stable radix sort each; everything after them is
arithmetic on neighbours, which is why ten million records take seconds.

Must stay true: within a task, and within a CPU, events keep their file order.
Read next: dictionary.py, then consistency.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..records.file import RECORD_DTYPE, Kind, Records, Stop, release

#: Records put in order at a time: few enough for a cache.
GATHERED = 1 << 16


def stable_order(keys: np.ndarray) -> np.ndarray:
    """Indices that sort small whole numbers and keep equal ones in order.

    As `np.argsort(keys, kind="stable")` gives, of unsigned keys below 2**32. NumPy sorts 16-bit keys by
    radix, in linear time, and wider ones by merging, four times slower here; so wider keys are sorted as
    two digits.

    >>> stable_order(np.array([70000, 1, 70000, 0], np.uint32)).tolist()
    [3, 1, 0, 2]
    """
    low = keys.astype(np.uint16)
    order = np.argsort(low, kind="stable")
    if len(keys) == 0 or int(keys.max()) < 1 << 16:
        return order
    high = (keys >> np.array(16, keys.dtype)).astype(np.uint16)
    return order[np.argsort(high[order], kind="stable")]


def distinct(values: np.ndarray) -> np.ndarray:
    """Values without repetition, ascending.

    As `np.unique` gives, which takes ten times as long for some hundred numbers.

    >>> distinct(np.array([7, 1, 7])).tolist()
    [1, 7]
    """
    ordered = np.sort(values)
    is_new = np.ones(len(ordered), bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def is_among(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which values are among others.

    As `np.isin` gives; `others` ascend.

    >>> is_among(np.array([7, 1, 9]), np.array([1, 7])).tolist()
    [True, True, False]
    """
    if len(others) == 0:
        return np.zeros(len(values), bool)
    place = np.searchsorted(others, values)
    place[place == len(others)] = 0
    return others[place] == values


def sum_per_group(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Exact sums of whole numbers over consecutive groups that start at `first`."""
    return np.add.reduceat(values, first) if len(first) else np.zeros(0, np.int64)


def next_in_group(last: np.ndarray, n: int) -> np.ndarray:
    """Whether each of `n` grouped events has a successor in its own group."""
    has_next = np.ones(n, bool)
    has_next[last] = False
    return has_next


@dataclass(frozen=True)
class Ordered:
    """Events sorted by a key (task or CPU), in file order within each."""

    row: np.ndarray = field(repr=False)  #: int64, shape (n,): position of each event in `Records.events`.
    t_ns: np.ndarray = field(repr=False)  #: int64, shape (n,): time in nanoseconds.
    #: `kind`, `flags`: uint8, shape (n,): as in the record.
    kind: np.ndarray = field(repr=False)
    flags: np.ndarray = field(repr=False)
    task: np.ndarray = field(repr=False)  #: uint32, shape (n,): pid.
    cpu: np.ndarray = field(repr=False)  #: uint16, shape (n,): CPU.
    arg: np.ndarray = field(repr=False)  #: uint64, shape (n,): as in the record.
    #: numpy.ndarray, shape (n_groups,): the distinct pids or CPUs, ascending.
    keys: np.ndarray = field(repr=False)
    #: `first`, `last`: int64, shape (n_groups,): position of each group's first and last event in the arrays
    #: above.
    first: np.ndarray = field(repr=False)
    last: np.ndarray = field(repr=False)

    @cached_property
    def has_next(self) -> np.ndarray:
        """Whether an event has a successor in its group; bool, shape (n,)."""
        return next_in_group(self.last, len(self.row))

    @cached_property
    def group(self) -> np.ndarray:
        """Index into `keys` of each event's group; int64, shape (n,)."""
        return np.repeat(np.arange(len(self.keys)), self.last - self.first + 1)


def order_by(events: np.ndarray, rows: np.ndarray, key: str) -> Ordered:
    """Sort some events by `"task"` or `"cpu"`. `rows` are those to take, ascending."""
    keys = np.ascontiguousarray(events[key])
    if len(rows) < len(events):
        keys = keys[rows]
    row = rows.take(stable_order(keys))
    # One gather of whole records touches each cache line once; take() copies
    # structures eight times faster than indexing does. By parts, so that the
    # records themselves are never copied all at once.
    names = RECORD_DTYPE.names or ()
    columns: dict[str, np.ndarray] = {name: np.empty(len(row), RECORD_DTYPE[name]) for name in names}
    for start in range(0, len(row), GATHERED):
        part = slice(start, start + GATHERED)
        chosen = np.asarray(events).take(row[part])
        for name, column in columns.items():
            column[part] = chosen[name]
    release(events)
    columns["t_ns"] = columns["t_ns"].view(np.int64)
    sorted_keys = columns[key]
    n = len(row)
    first = np.flatnonzero(np.diff(sorted_keys, prepend=sorted_keys[:1]) != 0)
    if n:
        first = np.concatenate(([0], first))
    last = np.concatenate((first[1:], [n]))[: len(first)] - 1
    return Ordered(row=row, keys=sorted_keys[first], first=first, last=last, **columns)


@dataclass(frozen=True)
class Spans:
    """Every CPU's time from 0 to the end of the run, cut where tasks start and stop."""

    #: `begin_ns`, `end_ns`: int64, shape (n_spans,): when each begins and ends; those of a CPU follow each
    #: other.
    begin_ns: np.ndarray = field(repr=False)
    end_ns: np.ndarray = field(repr=False)
    cpu: np.ndarray = field(repr=False)  #: int32, shape (n_spans,): where; ascending.
    #: bool, shape (n_spans,): whether a STOP ends it; otherwise no task runs in it.
    is_run: np.ndarray = field(repr=False)
    #: uint32, shape (n_spans,): pid of the event that ends it, 0 for the end of the run.
    task: np.ndarray = field(repr=False)
    #: int64, shape (n_spans,): CPU time of the task as its STOP says, in nanoseconds; of runs only.
    ran_ns: np.ndarray = field(repr=False)
    #: int64, shape (n_spans,): time in the scheduler within the span, in nanoseconds.
    overhead_ns: np.ndarray = field(repr=False)


def cut_spans(cpus: Ordered, *, n_cpus: int, end_ns: int) -> Spans:
    """Cut every CPU's time into runs and gaps.

    `cpus` are RUN, STOP and OVERHEAD by CPU; `n_cpus` counts those where nothing happened, too. Valid only
    when RUN and STOP alternate on each CPU, which consistency.py checks.
    """
    is_overhead = cpus.kind == Kind.OVERHEAD
    within = np.cumsum(np.where(is_overhead, cpus.arg, 0).view(np.int64))
    base = np.where(cpus.first > 0, within[cpus.first - 1], 0)
    total = np.zeros(n_cpus, np.int64)
    total[cpus.keys] = within[cpus.last] - base
    for begin, end, before in zip(cpus.first, cpus.last + 1, base, strict=True):
        within[begin:end] -= before

    chosen = np.flatnonzero(~is_overhead)
    cpu = cpus.cpu[chosen]
    # One event closes each span; the end of the run closes the last of each CPU.
    every = np.arange(n_cpus)
    last = np.searchsorted(cpu, every.astype(cpu.dtype), side="right") + every
    n = len(chosen) + n_cpus
    is_event = np.ones(n, bool)
    is_event[last] = False

    def with_end(values: np.ndarray, at_end: np.ndarray | int, kind: type = np.int64) -> np.ndarray:
        result: np.ndarray = np.empty(n, kind)
        result[is_event] = values
        result[last] = at_end
        return result

    closes_ns = with_end(cpus.t_ns[chosen], end_ns)
    overhead = with_end(within[chosen], total)
    opens_ns, earlier = np.zeros(n, np.int64), np.zeros(n, np.int64)
    opens_ns[1:], earlier[1:] = closes_ns[:-1], overhead[:-1]
    first = np.concatenate(([0], last[:-1] + 1))
    opens_ns[first] = earlier[first] = 0
    return Spans(
        begin_ns=opens_ns,
        end_ns=closes_ns,
        cpu=with_end(cpu, every, np.int32),
        is_run=with_end(cpus.kind[chosen] == Kind.STOP, 0, bool),
        task=with_end(cpus.task[chosen], 0, np.uint32),
        ran_ns=with_end(cpus.arg[chosen].view(np.int64), 0),
        overhead_ns=overhead - earlier,
    )


@dataclass(frozen=True)
class Timeline:
    """A run's events in the two orders."""

    records: Records  #: The run.

    @cached_property
    def kind(self) -> np.ndarray:
        """Kind of every record; uint8, shape (n_records,)."""
        return np.ascontiguousarray(self.records.events["kind"])

    @cached_property
    def by_task(self) -> Ordered:
        """ARRIVE, WAKE, RUN and STOP, by task."""
        rows = np.flatnonzero((self.kind >= Kind.ARRIVE) & (self.kind <= Kind.STOP))
        return order_by(self.records.events, rows, "task")

    @cached_property
    def by_cpu(self) -> Ordered:
        """RUN, STOP and OVERHEAD, by CPU."""
        kind = self.kind
        chosen = (kind == Kind.RUN) | (kind == Kind.STOP) | (kind == Kind.OVERHEAD)
        return order_by(self.records.events, np.flatnonzero(chosen), "cpu")

    @cached_property
    def spans(self) -> Spans:
        """Runs and gaps of every CPU."""
        records = self.records
        return cut_spans(self.by_cpu, n_cpus=records.n_cpus, end_ns=records.end_ns)

    def forget_spans(self) -> None:
        """Free the spans, which need most memory; they are cut again where they are needed."""
        self.__dict__.pop("spans", None)

    @cached_property
    def duration_ns(self) -> np.ndarray:
        """Time from each event of `by_task` to the task's next, or to the end of the run.

        int64, shape (n,), nanoseconds.
        """
        tasks = self.by_task
        duration = np.empty(len(tasks.t_ns), np.int64)
        duration[:-1] = tasks.t_ns[1:] - tasks.t_ns[:-1]
        duration[tasks.last] = self.records.end_ns - tasks.t_ns[tasks.last]
        return duration

    @cached_property
    def arrived_awake(self) -> np.ndarray:
        """Which events of `by_task` are a WAKE that only completes an ARRIVE.

        bool, shape (n,). An arriving task is runnable at once; a host may
        also write a WAKE for it, which is then no wake-up of its own.
        """
        tasks = self.by_task
        result = np.zeros(len(tasks.kind), bool)
        result[1:] = (tasks.kind[1:] == Kind.WAKE) & (tasks.kind[:-1] == Kind.ARRIVE)
        result[tasks.first] = False
        return result

    @cached_property
    def is_runnable_after(self) -> np.ndarray:
        """Whether the task waits for a CPU after each event of `by_task`; bool, shape (n,)."""
        tasks = self.by_task
        waiting_stop = (tasks.kind == Kind.STOP) & (tasks.flags <= Stop.YIELDED)
        return (tasks.kind <= Kind.WAKE) | waiting_stop
