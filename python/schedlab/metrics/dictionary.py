# SPDX-License-Identifier: MIT
"""The metric dictionary, and the one piece of code that computes it from records.

Every number that schedlab prints about a run comes from here, whichever host
made the records. Times stay whole nanoseconds; percentiles are values that were
observed (nearest rank), so that equal records give equal numbers everywhere.

Must stay true: every name in the result is in `DICTIONARY`, with its unit and
formula. Ten million records take less than five seconds.
Read next: fairness.py for the one metric that needs more than arithmetic, then
tables.py; consistency.py, which decides whether the numbers may be believed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import NotFoundError, did_you_mean
from ..records.file import Kind, Overhead, Stop
from .fairness import deserved_ns, jain
from .speed import energy_j
from .timeline import Ordered, Timeline, sum_per_group


@dataclass(frozen=True)
class Metric:
    """One entry of the dictionary."""

    name: str  #: Key in tables and JSON; ends in unit and statistic.
    unit: str  #: Unit of the value; `"1"` for a ratio or a count.
    formula: str  #: How it is computed, in words.
    direction: str  #: `"lower"` or `"higher"` is better; `"none"` where neither is.
    level: str  #: `"run"`, `"task"` or `"cpu"`: what there is one value for.
    reference: str  #: Where the definition comes from.


_TEXTBOOK = "Silberschatz, Galvin, Gagne, Operating System Concepts, ch. 5"
_JAIN = "Jain, Chiu, Hawe, DEC-TR-301, 1984"
_GPS = "Parekh, Gallager, IEEE/ACM Trans. Networking 1(3), 1993"
_FEITELSON = "Feitelson, Workload Modeling, ch. 10"
_SCHBENCH = "latency from wake-up to CPU, as schbench and perf sched latency have it"

#: Statistics over tasks or wake-ups that several run-level metrics share.
_STATISTICS = {
    "mean": "mean",
    "p50": "median (nearest rank)",
    "p95": "95th percentile (nearest rank)",
    "p99": "99th percentile (nearest rank)",
    "max": "largest value",
}


def _metric(level: str, name: str, direction: str, formula: str, reference: str = "this project") -> Metric:
    """An entry; the name says the unit."""
    unit = (
        "ns" if "_ns" in name else "1/s" if name.endswith("_per_s") else "J" if name.endswith("_j") else "1"
    )
    return Metric(name, unit, formula, direction, level, reference)


_run, _task, _cpu = (partial(_metric, level) for level in ("run", "task", "cpu"))


def _spread(base: str, of: str, statistics: str, reference: str) -> list[Metric]:
    """One run-level entry per statistic of a quantity in nanoseconds."""
    return [_run(f"{base}_{s}", "lower", f"{_STATISTICS[s]} of {of}", reference) for s in statistics.split()]


_ENTRIES = [
    # ---- one value per run
    *_spread("turnaround_ns", "turnaround over the tasks that ended", "mean p50 p95 p99 max", _TEXTBOOK),
    *_spread("response_ns", "response over the tasks that ran", "mean p50 p95 p99 max", _TEXTBOOK),
    _run(
        "response_ns_iqr",
        "lower",
        "75th minus 25th percentile of response over the tasks that ran: predictability",
        "report 5, section 4.2.6",
    ),
    *_spread("wait_ns", "waiting over all tasks", "mean p50 p95 p99 max", _TEXTBOOK),
    _run(
        "starvation_ns",
        "lower",
        "longest single wait of any task, from runnable to running or to the end of the run",
    ),
    *_spread("wakeup_ns", "wake-up latency over all wake-ups", "mean p50 p95 p99 max", _SCHBENCH),
    _run("slowdown_mean", "lower", "mean of slowdown over the tasks that ended", _FEITELSON),
    _run("slowdown_max", "lower", "largest slowdown of the tasks that ended", _FEITELSON),
    _run("throughput_per_s", "higher", "tasks that ended / makespan", _TEXTBOOK),
    _run(
        "makespan_ns",
        "lower",
        "first arrival to last end of a task; to the end of the run when some did not end",
        "Graham, Bell Syst. Tech. J. 45, 1966",
    ),
    _run("cpu_utilisation", "higher", "busy time / (CPUs x length of the run)", _TEXTBOOK),
    _run(
        "overhead_share",
        "lower",
        "time in the scheduler / (CPUs x length of the run); idle time is not overhead",
        "report 5, section 4.2.5, without its idle time",
    ),
    _run(
        "fairness_jain",
        "higher",
        "(sum x)^2 / (n sum x^2), x = CPU time received / CPU time deserved by weight while runnable; "
        "tasks that ended without CPU time left out",
        f"{_JAIN}; {_GPS}",
    ),
    _run(
        "fairness_turnaround_jain",
        "none",
        "(sum x)^2 / (n sum x^2), x = turnaround: what report 5 calls fairness",
        "report 5, section 4.2.4",
    ),
    _run("switches", "lower", "times a CPU began a task other than the one it ran last without a gap"),
    _run(
        "switches_voluntary",
        "none",
        "times a task left its CPU because it blocked or yielded",
        "getrusage(2), ru_nvcsw",
    ),
    _run(
        "switches_involuntary", "lower", "times a task was preempted for another", "getrusage(2), ru_nivcsw"
    ),
    _run("migrations", "lower", "times a task moved to another CPU"),
    _run("tasks", "none", "tasks that arrived"),
    _run("tasks_started", "none", "tasks that ran at all"),
    _run("tasks_ended", "higher", "tasks that ran to their end"),
    _run("wakeups", "none", "wake-ups, arrivals not counted"),
    _run("elapsed_ns", "none", "length of the run"),
    _run("busy_ns", "none", "CPU time that tasks received, over all CPUs"),
    _run("idle_ns", "none", "CPUs x length of the run - busy - overhead - taken"),
    _run(
        "overhead_ns",
        "lower",
        "time in the scheduler, over all CPUs; on user threads and on Linux a task is charged for it, "
        "and it is 0",
    ),
    _run("taken_ns", "none", "time that others than the run's tasks had its CPUs, over all CPUs"),
    _run(
        "energy_j",
        "lower",
        "sum over CPUs of 0.05 W x length of the run + integral, while not idle, of 1 W x s (0.5 + 0.5 s)^2, "
        "s = speed of the CPU / 1024; only where the machine says how fast its CPUs are",
        "Chandrakasan, Sheng, Brodersen, IEEE J. Solid-State Circuits 27(4), 1992; "
        "Linux, Documentation/power/energy-model.rst",
    ),
    _run(
        "user_ns",
        "lower",
        "CPU time outside the kernel, of all tasks, as Linux splits it; on Linux only",
        "getrusage(2), ru_utime",
    ),
    _run(
        "system_ns",
        "lower",
        "CPU time in the kernel, of all tasks, as Linux splits it; on Linux only",
        "getrusage(2), ru_stime",
    ),
    _run(
        "policy_cost",
        "lower",
        "instructions of the policy's own code / switches: exact, and the same on each machine; in the "
        "sandbox only",
    ),
    # ---- one value per task
    _task("task_arrival_ns", "none", "when the task arrived"),
    _task("task_first_run_ns", "none", "when it first ran"),
    _task("task_end_ns", "none", "when it ended"),
    _task("task_turnaround_ns", "lower", "end - arrival", _TEXTBOOK),
    _task("task_response_ns", "lower", "first run - arrival", _TEXTBOOK),
    _task("task_wait_ns", "lower", "total time runnable but not running", _TEXTBOOK),
    _task("task_wait_ns_max", "lower", "longest single wait"),
    _task("task_run_ns", "none", "CPU time received"),
    _task("task_blocked_ns", "none", "time neither runnable nor running, while alive"),
    _task(
        "task_deserved_ns",
        "none",
        "integral, while runnable, of the CPU share its weight gives it among all runnable tasks, at "
        "most one CPU",
        _GPS,
    ),
    _task("task_share", "none", "CPU time received / CPU time deserved", _GPS),
    _task(
        "task_slowdown",
        "lower",
        "turnaround / (turnaround - waiting): how much longer than with no rival for the CPU",
        _FEITELSON,
    ),
    _task("task_wakeups", "none", "wake-ups that led to a run, arrival not counted"),
    _task("task_wakeup_ns_mean", "lower", "mean wake-up latency", _SCHBENCH),
    _task("task_wakeup_ns_max", "lower", "largest wake-up latency", _SCHBENCH),
    _task("task_switches_voluntary", "none", "times it blocked or yielded"),
    _task("task_switches_involuntary", "lower", "times it was preempted for another"),
    _task("task_migrations", "lower", "times it moved to another CPU"),
    # ---- one value per CPU
    _cpu("cpu_busy_ns", "none", "CPU time that tasks received here"),
    _cpu("cpu_idle_ns", "none", "length of the run - busy - overhead - taken"),
    _cpu("cpu_overhead_ns", "lower", "time in the scheduler here"),
    _cpu("cpu_taken_ns", "none", "time that others than the run's tasks had the CPU"),
    _cpu("cpu_switches", "none", "times it began a task other than the one it ran last without a gap"),
]

#: All metrics by name, in the order in which they are shown.
DICTIONARY: dict[str, Metric] = {metric.name: metric for metric in _ENTRIES}
#: What a reader asks of a workload, in the order of tables; verdicts about these are one family.
HEADLINES = (
    "turnaround_ns_mean", "response_ns_mean", "wakeup_ns_p99", "starvation_ns", "slowdown_mean",
    "throughput_per_s", "fairness_jain", "switches", "migrations", "cpu_utilisation",
)  # fmt: skip


def find_metric(name: str) -> Metric:
    """Look a metric up by its name, with or without its unit.

    NotFoundError, with the nearest name: there is none.

    >>> find_metric("wakeup_p99").name
    'wakeup_ns_p99'
    >>> find_metric("throughput").name
    'throughput_per_s'
    """
    if name in DICTIONARY:
        return DICTIONARY[name]
    for metric in DICTIONARY.values():
        if name in (metric.name.replace("_ns", "", 1), metric.name.removesuffix("_per_s")):
            return metric
    raise NotFoundError(
        f"unknown metric '{name}'{did_you_mean(name, DICTIONARY)}; `schedlab metrics` lists them"
    )


@dataclass(frozen=True)
class RunMetrics:
    """All metrics of one run."""

    #: Run-level metrics by name; None where a value is not defined, such as wake-up latency in a run without
    #: wake-ups.
    run: dict[str, Any]
    #: arrays of shape (n_tasks,): task-level metrics by name without `task_`, and `task`, the pid. Times that
    #: did not come to pass are -1, ratios not defined are NaN.
    tasks: dict[str, Any] = field(repr=False)
    #: arrays of shape (n_cpus,): CPU-level metrics by name without `cpu_`, and `cpu`.
    cpus: dict[str, Any] = field(repr=False)


def compute_metrics(timeline: Timeline, *, weight: ArrayLike | None = None) -> RunMetrics:
    """Compute every metric of a run.

    `weight`, shape (n_program_tasks,), is that of the task with pid i + 1, 1 to 10000; default: all equal.
    Tasks beyond it count as 100, and a weight that changes during the run counts with its first value.

    Not valid when records were lost, or when consistency.check finds a violation: check first. Waits and
    latencies still open when the run ends count in `wait_ns` and `starvation_ns` up to that moment, but not
    as wake-ups.
    """
    tasks = _task_level(timeline, weight)
    cpus = _cpu_level(timeline)
    return RunMetrics(run=_run_level(timeline, tasks, cpus), tasks=tasks, cpus=cpus)


def _max_per_group(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Maxima of consecutive groups that start at `first`."""
    return np.maximum.reduceat(values, first) if len(first) else np.zeros(0, np.int64)


def _first_time(ordered: Ordered, chosen: np.ndarray) -> np.ndarray:
    """Time of each group's first chosen event, -1 where there is none; int64 ns."""
    times = np.full(len(ordered.keys), -1, np.int64)
    where = np.flatnonzero(chosen)[::-1]
    # Written from last to first, so that the first one stays.
    times[ordered.group[where]] = ordered.t_ns[where]
    return times


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Quotient, NaN where the denominator is not positive."""
    valid = denominator > 0
    return np.where(valid, numerator / np.where(valid, denominator, 1), np.nan)


def _stays(timeline: Timeline) -> np.ndarray:
    """Rows of STOPs after which the CPU at once goes on with the same task.

    Linux does not call that a switch either; bool, shape (n_records,).
    """
    cpus = timeline.by_cpu
    is_stay = np.zeros(len(timeline.kind), bool)
    same = (
        (cpus.kind[:-1] == Kind.STOP)
        & (cpus.flags[:-1] <= Stop.YIELDED)
        & (cpus.kind[1:] == Kind.RUN)
        & (cpus.task[:-1] == cpus.task[1:])
        & (cpus.t_ns[:-1] == cpus.t_ns[1:])
        & (cpus.cpu[:-1] == cpus.cpu[1:])
    )
    is_stay[cpus.row[:-1][same]] = True
    return is_stay


def _task_level(timeline: Timeline, weight: ArrayLike | None) -> dict[str, Any]:
    """Compute the task-level metrics; see `RunMetrics.tasks`."""
    tasks = timeline.by_task
    first, kind = tasks.first, tasks.kind
    # First, since it needs most memory beside what is kept.
    deserved = deserved_ns(timeline, weight=weight)
    duration = timeline.duration_ns
    is_stop = kind == Kind.STOP
    left = is_stop & ~_stays(timeline)[tasks.row]
    runnable = timeline.is_runnable_after
    wait = np.where(runnable, duration, 0)
    wait_sum, wait_max = sum_per_group(wait, first), _max_per_group(wait, first)
    del wait

    runs_next = np.zeros(len(kind), bool)
    runs_next[:-1] = kind[1:] == Kind.RUN
    runs_next[tasks.last] = False
    woken = (kind == Kind.WAKE) & runs_next & ~timeline.arrived_awake
    latency = np.where(woken, duration, 0)

    arrival = _first_time(tasks, kind == Kind.ARRIVE)
    first_run = _first_time(tasks, kind == Kind.RUN)
    end = _first_time(tasks, is_stop & (tasks.flags == Stop.EXITED))
    turnaround = np.where(end >= 0, end - arrival, -1)
    run = sum_per_group(np.where(is_stop, tasks.arg, 0).view(np.int64), first)
    wakeups = _count(woken, first)
    moved = np.bincount(np.searchsorted(tasks.keys, _tasks_of(timeline, Kind.MIGRATE)), minlength=len(first))
    return {
        "task": tasks.keys,
        "arrival_ns": arrival,
        "first_run_ns": first_run,
        "end_ns": end,
        "turnaround_ns": turnaround,
        "response_ns": np.where(first_run >= 0, first_run - arrival, -1),
        "wait_ns": wait_sum,
        "wait_ns_max": wait_max,
        "run_ns": run,
        "blocked_ns": sum_per_group(np.where(is_stop & (tasks.flags == Stop.BLOCKED), duration, 0), first),
        "deserved_ns": deserved,
        # A task that ended without ever wanting CPU time got all that it wanted.
        "share": np.where((run == 0) & (end >= 0), np.nan, _ratio(run, deserved)),
        "slowdown": np.where(end >= 0, _ratio(turnaround, turnaround - wait_sum), np.nan),
        "wakeups": wakeups,
        "wakeup_ns_mean": _ratio(sum_per_group(latency, first), wakeups),
        "wakeup_ns_max": np.where(wakeups > 0, _max_per_group(latency, first), -1),
        "switches_voluntary": _count(
            left & ((tasks.flags == Stop.BLOCKED) | (tasks.flags == Stop.YIELDED)), first
        ),
        "switches_involuntary": _count(left & (tasks.flags == Stop.PREEMPTED), first),
        "migrations": moved[: len(first)],
    }


def _count(chosen: np.ndarray, first: np.ndarray) -> np.ndarray:
    """How many events of each group are chosen."""
    return sum_per_group(chosen.astype(np.int64), first)


def _tasks_of(timeline: Timeline, kind: Kind) -> np.ndarray:
    """Pids of all records of one kind that belong to a task with state events."""
    pids = timeline.records.events["task"][timeline.kind == kind]
    return pids[np.isin(pids, timeline.by_task.keys)]


def _cpu_level(timeline: Timeline) -> dict[str, Any]:
    """Compute the CPU-level metrics; see `RunMetrics.cpus`."""
    records = timeline.records
    cpus = timeline.by_cpu
    n = records.n_cpus
    group = cpus.keys.astype(np.int64)
    busy, overhead, taken, switches = (np.zeros(n, np.int64) for _ in range(4))
    arg = cpus.arg.astype(np.int64)
    busy[group] = sum_per_group(np.where(cpus.kind == Kind.STOP, arg, 0), cpus.first)
    # What the machine below gave to others is no time in the scheduler.
    lost = np.where(cpus.kind == Kind.OVERHEAD, arg, 0)
    is_taken = cpus.flags == Overhead.STOLEN
    overhead[group] = sum_per_group(np.where(is_taken, 0, lost), cpus.first)
    taken[group] = sum_per_group(np.where(is_taken, lost, 0), cpus.first)
    stays = _stays(timeline)[cpus.row]
    begins = cpus.kind == Kind.RUN
    begins[1:] &= ~stays[:-1]
    switches[group] = _count(begins, cpus.first)
    return {
        "cpu": np.arange(n),
        "busy_ns": busy,
        "idle_ns": records.end_ns - busy - overhead - taken,
        "overhead_ns": overhead,
        "taken_ns": taken,
        "switches": switches,
    }


def _ranked(values: np.ndarray, fractions: list[float]) -> list[int]:
    """Nearest-rank quantiles of whole numbers, by one partial sort.

    The value of rank ceil(q n), which is one that was observed; report it as
    such, not as an estimate between two of them.
    """
    n = len(values)
    ranks = [max(0, int(np.ceil(q * n)) - 1) for q in fractions]
    parted = np.partition(values, sorted(set(ranks)))
    return [int(parted[rank]) for rank in ranks]


def statistics(base: str, values: np.ndarray) -> dict[str, Any]:
    """Mean and percentiles of one quantity under the names of the dictionary.

    `base` is such as `"turnaround_ns"`, `values` of shape (n,) in its unit; `BASE_mean` and so on are None
    of nothing.
    """
    names = [f"{base}_{s}" for s in ("mean", "p50", "p95", "p99", "max")]
    if len(values) == 0:
        return dict.fromkeys(names)
    p50, p95, p99 = _ranked(values, [0.50, 0.95, 0.99])
    # Exact: the sum is a whole number, divided once.
    mean = int(values.sum()) / len(values)
    return dict(zip(names, (mean, p50, p95, p99, int(values.max())), strict=True))


def of_tasks(tasks: dict[str, Any], *, n_cpus: int, end_ns: int) -> dict[str, Any]:
    """Run-level metrics that follow from what is known of each task, as `RunMetrics.tasks` has it."""
    ended, ran = tasks["end_ns"] >= 0, tasks["first_run_ns"] >= 0
    turnaround = tasks["turnaround_ns"][ended]
    n_tasks, n_ended = len(ended), int(ended.sum())
    stop_ns = int(tasks["end_ns"].max()) if n_tasks and n_ended == n_tasks else end_ns
    makespan = stop_ns - int(tasks["arrival_ns"].min()) if n_tasks else 0
    slowdown = tasks["slowdown"][ended & ~np.isnan(tasks["slowdown"])]
    busy, capacity = int(tasks["run_ns"].sum()), n_cpus * end_ns
    return {
        **statistics("turnaround_ns", turnaround),
        **statistics("response_ns", tasks["response_ns"][ran]),
        **statistics("wait_ns", tasks["wait_ns"]),
        "slowdown_mean": float(slowdown.mean()) if len(slowdown) else None,
        "slowdown_max": float(slowdown.max()) if len(slowdown) else None,
        "throughput_per_s": n_ended / makespan * 1e9 if makespan > 0 else None,
        "makespan_ns": makespan,
        "cpu_utilisation": busy / capacity if capacity else None,
        "fairness_turnaround_jain": jain(turnaround.astype(float)),
        "switches_voluntary": int(tasks["switches_voluntary"].sum()),
        "switches_involuntary": int(tasks["switches_involuntary"].sum()),
        "tasks": n_tasks,
        "tasks_started": int(ran.sum()),
        "tasks_ended": n_ended,
        "elapsed_ns": end_ns,
        "busy_ns": busy,
    }


def _run_level(timeline: Timeline, tasks: dict[str, Any], cpus: dict[str, Any]) -> dict[str, Any]:
    """Compute the run-level metrics from the two finer levels."""
    records, ordered = timeline.records, timeline.by_task
    response = tasks["response_ns"][tasks["first_run_ns"] >= 0]
    woken = (ordered.kind == Kind.WAKE) & ~timeline.arrived_awake
    is_served = woken.copy()
    is_served[:-1] &= ordered.kind[1:] == Kind.RUN
    is_served[ordered.last] = False
    capacity, overhead = records.n_cpus * records.end_ns, int(cpus["overhead_ns"].sum())
    quartiles = _ranked(response, [0.25, 0.75]) if len(response) else None
    values = of_tasks(tasks, n_cpus=records.n_cpus, end_ns=records.end_ns) | {
        "response_ns_iqr": quartiles[1] - quartiles[0] if quartiles else None,
        "starvation_ns": int(tasks["wait_ns_max"].max()) if len(tasks["wait_ns_max"]) else None,
        **statistics("wakeup_ns", timeline.duration_ns[is_served]),
        "overhead_share": overhead / capacity if capacity else None,
        "fairness_jain": jain(tasks["share"][~np.isnan(tasks["share"])]),
        "switches": int(cpus["switches"].sum()),
        "migrations": int((timeline.kind == Kind.MIGRATE).sum()),
        "wakeups": int(woken.sum()),
        "idle_ns": int(cpus["idle_ns"].sum()),
        "overhead_ns": overhead,
        "taken_ns": int(cpus["taken_ns"].sum()),
        "energy_j": energy_j(timeline),
    }
    return {name: values.get(name) for name, m in DICTIONARY.items() if m.level == "run"}
