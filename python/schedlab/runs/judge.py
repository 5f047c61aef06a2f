# SPDX-License-Identifier: MIT
"""Turn what a host left of one run into a verdict and, if it is good, numbers.

The order is the point: records are checked for form, then for consistency, and only
a run that passes both gets metrics.

Must stay true: nothing is computed from a run that failed.
Read next: metrics/consistency.py, metrics/dictionary.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration import DEFAULT_CALIBRATION, Calibration
from ..errors import SchedlabError
from ..hosts.host import Outcome
from ..metrics import conservation, consistency, tally
from ..metrics.course import Course
from ..metrics.dictionary import RunMetrics, compute_metrics
from ..metrics.tables import as_columns, metric_columns, task_columns
from ..metrics.timeline import Timeline
from ..program import layout
from ..records import parquet
from ..records.file import hash_file, read_records, record_columns
from ..workload.phases import ATTRIBUTES

if TYPE_CHECKING:
    from ..program.file import Program

#: Verbs whose CPU time is the host's to say.
_ARE_HOSTS = layout.which_verbs("read", "write")
#: Of a task with no other verbs all CPU time is what its program states.
_COMPUTE = layout.which_verbs("run", "work", "loop", "end", "exit")
#: Metrics that Linux counts for us.
_FROM_USAGE = ("user_ns", "system_ns")


@dataclass(frozen=True)
class Judge:
    """How one run is to be judged."""

    latency_ns: int  #: How long the host says a CPU may take to notice work, on a machine of its own.
    work_conserving: bool  #: What the policy declares.
    tables_folder: Path | None  #: Where to write the derived tables; None: nowhere.
    tolerance_ns: int = 0  #: Error of the host's clock on one interval.
    #: Whether each CPU is there all the time. Else a task may run where its affinity forbids it, and one
    #: that is offline looks idle.
    are_cpus_steady: bool = True
    has_exact_work: bool = True  #: Whether system calls cost a task nothing that its program does not name.
    #: What a unit of `work` costs there; None: nobody knows.
    calibration: Calibration | None = DEFAULT_CALIBRATION
    is_replay: bool = False  #: Whether the program is made of records, so that it has to be done whole.
    #: What `read` and `write` wait for, as `hosts.kinds.device_of` gives it, where the host executes programs
    #: exactly; None: it does not.
    device: tuple[int, ...] | None = None
    #: Whether the policy keeps the quotas of cgroups, so that tasks wait beside an idle CPU.
    keeps_quotas: bool = False
    quota_objects: frozenset[int] = frozenset()  #: Cgroups that get a quota in the course of the run.
    wakeup_ns: int = 0  #: What a timer or a device takes longer there to wake a task.
    exit_ns: int = 0  #: What its exit takes a task there.
    #: Called with the task-level metrics of a good run, as `tables.task_columns` gives them.
    on_tasks: Callable[[dict[str, Any]], None] | None = None

    def verdict(self, program: Program, records_path: Path, outcome: Outcome) -> dict[str, Any]:
        """Judge a run."""
        result: dict[str, Any] = {
            "error": None,
            "error_kind": None,
            "record_hash": None,
            "consistency": None,
            "metrics": {},
        }
        if outcome.error is not None:
            # What a failed run left may be cut short; it is kept, not judged.
            result["error"] = _with_task_name(outcome, program)
            result["error_kind"] = outcome.error_kind or "host"
            return result
        try:
            self._fill(result, program, records_path, outcome)
            self._refuse_wrong_length(result, program, outcome)
        except SchedlabError as error:
            result["error"], result["error_kind"] = str(error), "records"
        except OSError as error:
            result["error"], result["error_kind"] = f"{error}", "host"
        return result

    def _fill(self, result: dict[str, Any], program: Program, records_path: Path, outcome: Outcome) -> None:
        """Read, check, compute."""
        if outcome.tally is not None and not records_path.is_file():
            self._fill_tally(result, program, outcome)
            return
        records = read_records(records_path)
        result["record_hash"] = hash_file(records_path)
        timeline = Timeline(records)
        result["consistency"] = consistency.check(timeline, self._expectations(program, outcome))
        if outcome.clock is not None and result["consistency"] == "ok":
            result["consistency"] = conservation.check_clock(timeline, outcome.clock)
        if self.is_replay and result["consistency"] == "ok":
            result["replay"] = conservation.replayed_part(
                timeline, self._work_ns(program), program.tasks["name"]
            )
            result["consistency"] = conservation.check_replay(result["replay"])
        if self.tables_folder is not None:
            parquet.write(self.tables_folder / "records.parquet", record_columns(records), compression="lz4")
        void = conservation.taken_from(outcome.clock) if outcome.clock is not None else None
        if _is_possible(result) and void:
            result["error"], result["error_kind"] = void, "void"
        elif result["error"] is None:
            self._tell(result, program, compute_metrics(timeline, weight=program.tasks["weight"]), outcome)

    def _refuse_wrong_length(self, result: dict[str, Any], program: Program, outcome: Outcome) -> None:
        """Void a run on Linux whose work was not as long as its program states."""
        if outcome.tally is None or result["error"] is not None:
            return
        problem = tally.wrong_length(
            tally.columns_of(outcome.tally),
            work_ns=self._work_ns(program),
            has_calls=_have_any(program, ~_COMPUTE[program.ops["verb"]]),
        )
        if problem:
            result |= {
                "metrics": {},
                "error_kind": "void",
                "error": f"void: {problem}; run again when the machine is quieter",
            }

    def _fill_tally(self, result: dict[str, Any], program: Program, outcome: Outcome) -> None:
        """The same of a run that could not be recorded."""
        assert outcome.usage is not None and outcome.tally is not None
        size = {"n_cpus": outcome.usage["cpus"], "elapsed_ns": outcome.usage["wall_ns"]}
        columns = tally.columns_of(outcome.tally)
        late_ns = max((task.get("late_ns", 0) for task in outcome.tally), default=0)
        result["consistency"] = tally.check(columns, work_ns=self._work_ns(program), late_ns=late_ns, **size)
        if _is_possible(result):
            self._tell(result, program, tally.tally_metrics(columns, **size), outcome)

    def _tell(self, result: dict[str, Any], program: Program, metrics: RunMetrics, outcome: Outcome) -> None:
        """Write down the metrics of a good run."""
        tasks = program.tasks
        metrics.run.update(
            {name: value for name, value in (outcome.usage or {}).items() if name in _FROM_USAGE}
        )
        cost = outcome.answer.get("policy_cost")
        if cost and metrics.run.get("switches"):
            metrics.run["policy_cost"] = sum(each["sum"] for each in cost.values()) / metrics.run["switches"]
        if self.tables_folder is not None or self.on_tasks:
            columns = task_columns(metrics, names=tasks["name"].tolist(), classes=tasks["class_idx"].tolist())
        if self.tables_folder is not None:
            parquet.write(self.tables_folder / "tasks.parquet", as_columns(columns))
            parquet.write(self.tables_folder / "metrics.parquet", metric_columns(metrics))
        if self.on_tasks:
            self.on_tasks(columns)
        result["metrics"] = metrics.run

    def _expectations(self, program: Program, outcome: Outcome) -> consistency.Expectations:
        """What the program and the host say about the run beforehand."""
        rows = program.task_rows
        return consistency.Expectations(
            work_ns=self._work_ns(program),
            has_host_work=has_host_work(program) | (not self.has_exact_work),
            clock_ns=None if outcome.tally is None else _clock_ns(outcome.tally, len(rows)),
            arrival_ns=rows["arrival_ns"],
            affinity=program.affinity if self.are_cpus_steady else None,
            is_capped=is_capped(program)
            | program.has_mask_changed
            | (self.keeps_quotas and is_limited(program, self.quota_objects)),
            horizon_ns=program.horizon_ns,
            work_conserving=self.work_conserving and self.are_cpus_steady,
            # Two may be late one after the other: who has work for a CPU, and that CPU.
            latency_ns=self.latency_ns + 2 * max(outcome.away_ns, outcome.timer_late_ns),
            exit_ns=self.exit_ns,
            tolerance_ns=self.tolerance_ns,
            host_cpus=outcome.cpus,
            course=self._course(program),
        )

    def _course(self, program: Program) -> Course | None:
        """The program as a course, where the host follows it to the nanosecond."""
        if self.device is None or not self.has_exact_work or self.tolerance_ns or self.calibration is None:
            return None
        return Course(program, self.calibration, self.device, self.wakeup_ns, is_prompt=self.latency_ns == 0)

    def _work_ns(self, program: Program) -> np.ndarray:
        """CPU time that each task declares; -1 where it takes a calibration to know it."""
        if self.calibration is not None:
            return program.work_ns(self.calibration)
        does_work = _have_any(program, program.ops["verb"] == layout.VERB_NUMBER["work"])
        return np.where(does_work, -1, program.work_ns())


def _is_possible(result: dict[str, Any]) -> bool:
    """Whether a run may have numbers; where not, its error says so."""
    if result["consistency"] == "ok":
        return True
    result["error"] = f"the run is impossible, so its numbers are withheld: {result['consistency']}"
    result["error_kind"] = "consistency"
    return False


def _with_task_name(outcome: Outcome, program: Program) -> str:
    """The host's message, with the name that the workload gives the task."""
    names, error = program.tasks["name"], outcome.error or ""
    if outcome.task and 1 <= outcome.task <= len(names):
        name = names[outcome.task - 1]
        if name not in error:
            return f"{error} (task {outcome.task} is '{name}')"
    return error


def _have_any(program: Program, chosen: np.ndarray) -> np.ndarray:
    """Which tasks have one of the chosen ops; bool, per task."""
    rows = program.task_rows
    before = np.concatenate(([0], np.cumsum(chosen)))
    first = rows["op_first"].astype(np.int64)
    return before[first + rows["nr_ops"]] > before[first]


def _clock_ns(noted: list[Any], n_tasks: int) -> np.ndarray:
    """CPU time of each task of the program by its own clock; 0 where it noted none."""
    found = np.zeros(n_tasks, np.int64)
    for task in noted:
        found[task["task"] - 1] = task["run_ns"]
    return found


def has_host_work(program: Program) -> np.ndarray:
    """Find the tasks with a phase whose CPU time is the host's to say."""
    return _have_any(program, _ARE_HOSTS[program.ops["verb"]])


def is_capped(program: Program) -> np.ndarray:
    """Find the tasks that a policy may keep waiting beside an idle CPU."""
    ops = program.ops
    sets_cap = (ops["verb"] == layout.VERB_NUMBER["set"]) & (ops["a"] == ATTRIBUTES["cap"][0])
    return (program.task_rows["cap_percent"] > 0) | _have_any(program, sets_cap)


def is_limited(program: Program, later: frozenset[int] = frozenset()) -> np.ndarray:
    """Find the tasks that may be in a cgroup with a quota, their own or one above; `later` get one, by object."""
    limited: set[int] = set()
    for number, group in program.groups.items():  # a parent stands before its children
        if group.limit_us or number - 1 in later or group.parent in limited:
            limited.add(number)
    ops = program.ops
    joins = (ops["verb"] == layout.VERB_NUMBER["join"]) & np.isin(ops["a"] + 1, [*limited])
    found = np.isin(program.group_of, [*limited]) | _have_any(program, joins)
    for row in np.flatnonzero(program.task_rows["parent"] != layout.NONE).tolist():
        found[row] |= found[program.task_rows["parent"][row]]  # it begins where its parent is
    return found
