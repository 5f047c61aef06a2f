# SPDX-License-Identifier: MIT
"""What each task deserved, and how evenly tasks got it.

A task deserves, at each moment at which it is runnable, the share of the
machine that its weight has among all runnable tasks, but never more than one
CPU; what a capped task cannot use goes to the others. That is the ideal that
generalised processor sharing defines, taken over the moments that really
happened. Only dictionary.py calls this.

Read next: dictionary.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..records.file import Kind, Stop
from .timeline import Timeline, distinct

DEFAULT_WEIGHT = 100
#: More distinct weights than this are merged with their neighbours.
CLASSES_MAX = 256
#: Changes handled at a time: memory is CHUNK times the number of weights.
CHUNK = 1 << 16


def jain(values: np.ndarray) -> float | None:
    """Jain's index of fairness.

    From 1 / n (one has all) to 1 (all equal), of what each received, not negative; None when there is
    nothing to share out. R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984.

    >>> jain(np.array([1.0, 1.0])), jain(np.array([1.0, 0.0]))
    (1.0, 0.5)
    """
    squares = float(np.square(values).sum())
    if squares == 0:
        return None
    return float(values.sum()) ** 2 / (len(values) * squares)


def deserved_ns(timeline: Timeline, *, weight: ArrayLike | None = None) -> np.ndarray:
    """CPU time that each task's weight entitled it to.

    In nanoseconds, shape (n_tasks,), in the order of `timeline.by_task.keys`; by the fluid model of A.
    Parekh, R. Gallager, "A generalized processor sharing approach to flow control in integrated services
    networks", 1993. `weight`, shape (n_program_tasks,), is that of the task with pid i + 1, positive;
    default: all equal.

    Affinity and caps are not taken into account: a task bound to a crowded CPU counts as treated badly,
    which from the task's side it is. With more than one CPU and more than 256 distinct weights, weights
    within a few percent of each other are treated as equal.
    """
    tasks = timeline.by_task
    n_tasks = len(tasks.keys)
    if n_tasks == 0:
        return np.zeros(0)
    classes, class_weight = _weight_classes(tasks.keys, weight, timeline.records.n_cpus)
    change = _changes_of_demand(timeline)
    # Back to the order of time: by writing each to its row, which sorts for free.
    position: np.ndarray = np.full(len(timeline.kind), -1, np.int32 if len(change) < 1 << 31 else np.int64)
    wanted = np.flatnonzero(change)
    position[tasks.row[wanted]] = wanted
    where = position[position >= 0]
    del position, wanted
    task_of = tasks.group.take(where)
    change = change.take(where)
    service = _service_ns(
        t_ns=tasks.t_ns.take(where),
        change=change,
        class_of=classes.take(task_of),
        class_weight=class_weight,
        n_cpus=timeline.records.n_cpus,
        end_ns=timeline.records.end_ns,
    )
    signed = -change.astype(float) * service.at_change
    result = np.bincount(task_of, weights=signed, minlength=n_tasks)
    still_there = np.bincount(task_of, weights=change, minlength=n_tasks)
    return result + still_there * service.at_end[classes]


def _weight_classes(pids: np.ndarray, weight: ArrayLike | None, n_cpus: int) -> tuple[np.ndarray, np.ndarray]:
    """Number each distinct weight: (class of each task, weight of each class, falling)."""
    weights = np.full(len(pids), float(DEFAULT_WEIGHT))
    if weight is not None:
        given = np.asarray(weight, float)
        known = (pids >= 1) & (pids <= len(given))
        weights[known] = given[pids[known].astype(np.int64) - 1]
    if n_cpus > 1 and len(distinct(weights)) > CLASSES_MAX:
        low, high = np.log(weights.min()), np.log(weights.max())
        step = (high - low) / CLASSES_MAX
        weights = np.exp(low + (np.floor((np.log(weights) - low) / step) + 0.5) * step)
    every = distinct(weights)
    return len(every) - 1 - np.searchsorted(every, weights), every[::-1]


def _changes_of_demand(timeline: Timeline) -> np.ndarray:
    """+1 where a task of `by_task` begins to want a CPU, -1 where it ceases; int8, shape (n,)."""
    tasks = timeline.by_task
    begins = (tasks.kind <= Kind.WAKE) & ~timeline.arrived_awake
    ceases = (tasks.kind == Kind.STOP) & ((tasks.flags == Stop.BLOCKED) | (tasks.flags == Stop.EXITED))
    return begins.astype(np.int8) - ceases.astype(np.int8)


class _Service:
    """CPU time that one task of each class would have received since the start.

    `at_change`, shape (n_changes,): for the class of the task that changes.
    `at_end`, shape (n_classes,): at the end of the run. Nanoseconds.
    """

    def __init__(self, at_change: np.ndarray, at_end: np.ndarray):
        self.at_change = at_change
        self.at_end = at_end


def _service_ns(
    *,
    t_ns: np.ndarray,
    change: np.ndarray,
    class_of: np.ndarray,
    class_weight: np.ndarray,
    n_cpus: int,
    end_ns: int,
) -> _Service:
    """Integrate the ideal rate of every class from change to change."""
    n, n_classes = len(t_ns), len(class_weight)
    if n_cpus == 1:
        # No cap can bind, so one integral per unit of weight serves all classes.
        total = np.cumsum(change * class_weight.take(class_of))
        rate = np.where(total > 0.5 * class_weight[-1], 1 / np.maximum(total, 1e-9), 0)
        growth = rate * np.diff(t_ns, append=end_ns)
        per_weight = np.cumsum(growth)
        before = per_weight - growth
        last = per_weight[-1] if n else 0.0
        return _Service(before * class_weight.take(class_of), last * class_weight)
    at_change = np.empty(n)
    service = np.zeros(n_classes)
    count = np.zeros(n_classes)
    following = np.append(t_ns[1:], end_ns)
    chunk_size = max(1024, (CHUNK * 16) // n_classes)
    for start in range(0, n, chunk_size):
        part = slice(start, min(n, start + chunk_size))
        size = part.stop - part.start
        delta = np.zeros((n_classes, size))
        delta[class_of[part], np.arange(size)] = change[part]
        counts = count[:, None] + np.cumsum(delta, axis=1)
        growth = _ideal_rates(counts, class_weight, n_cpus) * (following[part] - t_ns[part])
        sums = service[:, None] + np.cumsum(growth, axis=1)
        at_change[part] = (sums - growth)[class_of[part], np.arange(size)]
        service, count = sums[:, -1], counts[:, -1]
    return _Service(at_change, service)


def _ideal_rates(counts: np.ndarray, class_weight: np.ndarray, n_cpus: int) -> np.ndarray:
    """Share of one CPU that each class deserves per task, by water-filling.

    `counts` are runnable tasks per class, shape (n_classes, n), heaviest class first; `class_weight` falls.
    Returns rates of the shape of `counts`, from 0 to 1; classes without tasks have a value that is not
    used.
    """
    free = np.full(counts.shape[1], float(n_cpus))
    weight_left = class_weight @ counts
    per_weight = free / np.maximum(weight_left, 1e-9)
    for index, weight in enumerate(class_weight):
        capped = (weight * per_weight > 1) & (counts[index] > 0)
        if not capped.any():
            continue
        free -= np.where(capped, counts[index], 0)
        weight_left -= np.where(capped, weight * counts[index], 0)
        # A capped class keeps a rate of at least 1, which the minimum below cuts.
        refilled = free / np.maximum(weight_left, 1e-9)
        per_weight = np.where(capped, np.maximum(refilled, per_weight), per_weight)
    return np.minimum(1.0, class_weight[:, None] * per_weight)
