# SPDX-License-Identifier: MIT
"""Drive `schedlab-play`, which plays a workload under Linux's own classes, or a policy.

    session -> Launcher -> keeper (watchdog) -> schedlab-play -> tasks
                                     Recorder beside them, where it is allowed

The launcher puts the runner under the class; whatever happens to the runner or to
us, the keeper ends its tree. Nothing of the machine is changed but by being in use.

A run leaves `tasks.jsonl`, each task's own times and what Linux counted of it, a
line per task as it ends: it can be read whatever became of the rest. Where the
kernel may be listened to, there are records as on every host.

Must stay true: without privileges a run still gives those figures.
Read next: metrics/tally.py, what they are worth without records; launch.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import paths
from ...errors import HostError, RecordError, SchedlabError, UnavailableError, UsageError
from ...policy.linux_class import CLASS_FILE, LinuxClass, parse_workload_class
from ...records.file import RECORD_DTYPE, Kind, Stop, read_records, write_records
from ..host import Job, Outcome
from ..kinds import RealTimeHost
from .ext_class import ThrownOutError, class_of, under
from .launch import Command, Launcher
from .recorder import Captured, Recorder, convert_events

TASKS_FILE = "tasks.jsonl"
EVENTS_FILE = "events.slev"
#: CPU time by a task's own clock that its records may lack: that clock begins when a
#: scheduler has begun to choose the task, the record when it has chosen.
MISSING_NS_MAX = 500_000
#: launcher 0, keeper 1, runner 2, and from there on tasks.
TASKS_GENERATION = 3
#: How much of what the runner complained about is kept.
COMPLAINT_BYTES_KEPT = 2000
#: How often a run begins that this machine is too busy for: once in some thousand runs it is.
LATE_TRIES = 3


class LinuxHost(RealTimeHost):
    """Linux's own scheduling classes on this machine, and our policies where its kernel takes them."""

    name = "linux"
    options = frozenset({"are_threads"})

    def unavailable(self) -> str | None:
        """Why the runner cannot be used, or None."""
        return paths.why_unusable(paths.launcher()) or paths.why_unusable(paths.linux_runner())

    def environment(self) -> dict[str, Any]:
        """The machine: kernel, processor, CPUs, and what limits real-time tasks."""
        from .machine import describe_machine

        return {"kernel": platform.release(), "linux": describe_machine()}

    def session(self, *, timeout_seconds: float) -> LinuxSession:
        """Open a connection for one worker."""
        return LinuxSession(timeout_seconds=timeout_seconds)


@dataclass(frozen=True)
class Played:
    """What the runner wrote down."""

    #: A line per task that has ended or was made: `task`, `name`, `tid`, times since time 0, Linux's counts,
    #: and `late_ns`, for how long they go on after the end of the run.
    tasks: list[Any]
    run: Any  #: The last line, about all of them; None: the runner did not live to write it.


def read_played(path: Path) -> Played:
    """Read what a runner wrote down, as far as it came."""
    tasks, run = [], None
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for line in lines:
        try:
            values = json.loads(line)
        except ValueError:
            continue
        if "task" in values:
            tasks.append(values)
        else:
            run = values
    for task in tasks:
        # On a slow machine the runner comes late to end those that go on.
        task["late_ns"] = max(0, (task.get("read_ns") or 0) - run["end_ns"]) if run else 0
    return Played(sorted(tasks, key=lambda task: task["task"]), run)


def run_cpus(n_cpus: int) -> tuple[int, ...]:
    """Choose the CPUs of a run: the first that we may use."""
    allowed = sorted(cpu for cpu in os.sched_getaffinity(0) if cpu < 64)
    if len(allowed) < n_cpus:
        raise UnavailableError(
            f"--cpus {n_cpus}: this process may use {len(allowed)} CPUs of this machine; ask for fewer"
        )
    return tuple(allowed[:n_cpus])


class LinuxSession:
    """Runs jobs one after the other, each a tree of processes of its own.

    `timeout_seconds` is the longest time on the wall clock that one run may take.
    """

    def __init__(self, *, timeout_seconds: float):
        self.timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._is_closed = False
        self._launcher: Launcher | None = None
        self._recorder: Recorder | None = None
        self._why_no_records = ""

    def run(self, job: Job) -> Outcome:
        """What the runner wrote down, or how it ended."""
        try:
            policy = job.policy.policy
            linux_class = (
                parse_workload_class(policy.name) if policy.path == CLASS_FILE else class_of(job.policy)
            )
            refuse_class(linux_class)
            cpus = run_cpus(job.n_cpus)
            self._open()
            for _ in range(LATE_TRIES):
                outcome = self._play(job, linux_class, cpus)
                # Nothing has been measured yet: what kept the tasks from time 0 passes.
                if outcome.error_kind != "late":
                    break
            return outcome
        except ThrownOutError as error:
            return Outcome(error=str(error), error_kind=error.kind)
        except HostError as error:
            # The next job needs a new one.
            self._drop()
            return Outcome(error=str(error), error_kind="host")
        except SchedlabError as error:
            kind = "unavailable" if isinstance(error, UnavailableError) else "usage"
            return Outcome(error=str(error), error_kind=kind)

    def _open(self) -> None:
        """Start launcher and recorder, where they are not there yet."""
        with self._lock:
            if self._is_closed:
                raise HostError("interrupted")
            if self._launcher is None:
                self._launcher = Launcher()
        if self._recorder is None and not self._why_no_records:
            try:
                self._recorder = Recorder()
            except UnavailableError as error:
                self._why_no_records = str(error)

    def _play(self, job: Job, linux_class: LinuxClass, cpus: tuple[int, ...]) -> Outcome:
        """One run, with a recorder beside it."""
        folder = job.records.parent
        complaints = os.memfd_create("schedlab-said")
        argv = [str(paths.linux_runner()), "--program", str(job.program),
                "--result", str(folder / TASKS_FILE), "--folder", str(folder)]  # fmt: skip
        argv += ["--threads"] * (dict(job.options).get("--threads") == "yes")
        argv += ["--weights"] * linux_class.has_weights
        for task, own in linux_class.of_tasks:
            argv += ["--class", f"{task}={own.number}/{own.priority}/{own.nice}"]
        try:
            with under(linux_class) as loaded:
                if loaded is not None and loaded.attributes_map:
                    argv += ["--attributes", str(loaded.attributes_map)]
                command = Command(
                    tuple(argv),
                    linux_class,
                    cpus,
                    Path(f"/proc/{os.getpid()}/fd/{complaints}"),
                    is_whole=True,
                )
                answer, captured = self._launch(command, folder)
            os.lseek(complaints, 0, os.SEEK_SET)
            said = os.read(complaints, COMPLAINT_BYTES_KEPT).decode("utf-8", "replace").strip()
        finally:
            os.close(complaints)
        played = read_played(folder / TASKS_FILE)
        outcome = self._outcome(answer["commands"][0], played, said, job.n_cpus)
        if loaded is not None:
            outcome.environment["verifier_instructions"] = loaded.instructions
        if captured is not None and outcome.error is None:
            try:
                outcome.answer["recording"] = make_records(job, played, cpus, captured)
            except RecordError as error:
                # What the tasks noted is there all the same, and the events stay for `schedlab import`.
                return replace(outcome, no_records=str(error))
        with contextlib.suppress(OSError):
            (folder / EVENTS_FILE).unlink(missing_ok=True)
        return outcome

    def _launch(self, command: Command, folder: Path) -> tuple[dict[str, Any], Captured | None]:
        """The launcher's answer, and what was recorded meanwhile."""
        assert self._launcher is not None, "run() has opened it"
        if self._recorder is not None:
            self._recorder.follow(folder / EVENTS_FILE, pid=self._launcher.pid, generation=TASKS_GENERATION)
        try:
            answer = self._launcher.run([command], timeout_ns=round(self.timeout_seconds * 1e9))
        finally:
            captured = self._recorder.stop() if self._recorder is not None else None
        return answer, captured

    def _outcome(self, report: dict[str, Any], played: Played, said: str, n_cpus: int) -> Outcome:
        """What came of a run, by all that is known about it."""
        answer = {"launcher": report, "run": played.run, "tasks": played.tasks}
        n_ended = sum(task["end_ns"] is not None for task in played.tasks)
        kept = f"; {n_ended} tasks had ended, see {TASKS_FILE}"
        if report["has_timed_out"]:
            return Outcome(
                error=f"stopped: not done after {self.timeout_seconds:g} s; give more with --timeout{kept}",
                error_kind="timeout",
                answer=answer,
            )
        run = played.run
        if run is not None and run["error"] is not None:
            return Outcome(
                error=run["error"], error_kind=run["error_kind"], task=run["fault_task"], answer=answer
            )
        if run is None or report["exit_code"]:
            how = f"signal {report['signal']}" if report["signal"] else f"code {report['exit_code']}"
            return Outcome(
                error=f"the runner was ended by {how}{': ' + said if said else ''}{kept}",
                error_kind="crash",
                answer=answer,
            )
        return Outcome(
            answer=answer,
            usage=usage_of(run, n_cpus),
            tally=played.tasks,
            no_records=self._why_no_records or None,
        )

    def interrupt(self) -> None:
        """End what runs; the job under way comes back as failed. From any thread."""
        with self._lock:
            self._is_closed = True
            if self._launcher is not None:
                self._launcher.kill()

    def close(self) -> None:
        """End what the session started; from the thread that uses it."""
        self.interrupt()
        self._drop()

    def _drop(self) -> None:
        """End launcher and recorder."""
        with self._lock:
            launcher, self._launcher = self._launcher, None
        recorder, self._recorder = self._recorder, None
        for each in (launcher, recorder):
            if each is not None:
                each.close()


def usage_of(run: dict[str, Any], n_cpus: int) -> dict[str, Any]:
    """The reports' six columns, of all tasks of a run."""
    wall_ns, user_ns, system_ns = run["end_ns"], 1000 * run["user_us"], 1000 * run["system_us"]
    return {
        "wall_ns": wall_ns,
        "user_ns": user_ns,
        "system_ns": system_ns,
        "cpu_percent": 100 * (user_ns + system_ns) / max(wall_ns, 1),
        "switches_involuntary": run["involuntary_switches"],
        "switches_voluntary": run["voluntary_switches"],
        "cpus": n_cpus,
        "file_system": run["file_system"],
    }


def refuse_class(linux_class: LinuxClass) -> None:
    """Refuse the class whose tasks may not fork."""
    if linux_class.is_deadline or any(own.is_deadline for _, own in linux_class.of_tasks):
        raise UsageError(
            f"{linux_class.name}: a workload's tasks are forked, which Linux refuses under SCHED_DEADLINE "
            "(EAGAIN); measure a command with schedlab bench"
        )


def make_records(job: Job, played: Played, cpus: tuple[int, ...], captured: Any) -> dict[str, Any]:
    """Convert what was recorded, and name tasks and CPUs as the program does."""
    events = job.records.parent / EVENTS_FILE
    if captured.write_error:
        raise RecordError(f"{events}: cannot be written: {captured.write_error}; make room and run again")
    start_ns = played.run["start_ns"]
    # A thread is forgotten shortly before it leaves its CPU for the last time.
    have_all_ended = played.run["nr_ended"] == played.run["nr_tasks"]
    end_ns = None if have_all_ended else start_ns + played.run["end_ns"]
    try:
        converted = convert_events(events, job.records, origin_ns=start_ns, end_ns=end_ns)
        return _rename_records(job, played, cpus, converted) | {"recorder_cpu_ns": captured.cpu_ns}
    except RecordError:
        # Half a recording is none: what the tasks noted stands in its place.
        job.records.unlink(missing_ok=True)
        raise


def _rename_records(job: Job, played: Played, cpus: tuple[int, ...], converted: Any) -> dict[str, Any]:
    """Put the program's numbers into converted records, and refuse those that are not whole."""
    have_all_ended = played.run["nr_ended"] == played.run["nr_tasks"]
    if converted.n_lost:
        raise RecordError(
            f"the kernel's rings had no room for {converted.n_lost} events; run fewer tasks, or on fewer CPUs"
        )
    number_of = {task["tid"]: task["task"] for task in played.tasks if task["tid"]}
    numbers = np.zeros(len(converted.tasks) + 1, np.uint32)
    for task in converted.tasks:
        numbers[task["task"]] = number_of.get(task["pid"], 0)
    records = read_records(job.records)
    renamed = rename(records.events, numbers, cpus)
    refuse_holes(renamed, played, converted.n_repairs + converted.n_inferred)
    # A run of which all have ended ends with the last of them, on every host.
    ended = renamed["t_ns"][(renamed["kind"] == Kind.STOP) & (renamed["flags"] == Stop.EXITED)]
    end_ns = int(ended.max()) if have_all_ended and len(ended) == len(played.tasks) else records.end_ns
    renamed = renamed[renamed["t_ns"] <= end_ns]
    try:
        write_records(job.records, renamed, n_cpus=len(cpus), tick_ns=converted.tick_ns, end_ns=end_ns)
    except OSError as error:
        raise RecordError(
            f"{job.records}: cannot be written: {error.strerror}; make room and run again"
        ) from error
    return {
        "events": converted.n_events,
        "lost": converted.n_lost,
        "repairs": converted.n_repairs,
        "inferred": converted.n_inferred,
    }


def rename(events: np.ndarray, numbers: np.ndarray, cpus: tuple[int, ...]) -> np.ndarray:
    """Put the program's numbers for those of a recording."""
    made = np.array(events)
    place = np.full(1 << 16, -1, np.int64)
    place[list(cpus)] = np.arange(len(cpus))
    is_whole = made["kind"] == Kind.LOST
    is_task = made["task"] > 0
    made["task"] = numbers[made["task"]]
    has_peer = np.isin(made["kind"], (Kind.ARRIVE, Kind.WAKE))
    made["arg"][has_peer] = numbers[made["arg"][has_peer]]
    moved = made["kind"] == Kind.MIGRATE
    made["arg"][moved] = np.maximum(place[made["arg"][moved]], 0)
    cpu = place[made["cpu"]]
    made["cpu"] = np.where(is_whole, 0, cpu)
    return made[is_whole | ((cpu >= 0) & ((made["task"] > 0) | ~is_task))].astype(RECORD_DTYPE)


def refuse_holes(events: np.ndarray, played: Played, n_mended: int) -> None:
    """Refuse records in which a task has less CPU time than by its own clock."""
    stops = events[events["kind"] == Kind.STOP]
    for task in played.tasks:
        stints = stops["arg"][stops["task"] == task["task"]]
        missing_ns = task["run_ns"] - int(stints.sum())
        # Records end with the run; who had not ended went on until it was read.
        missing_ns -= task.get("late_ns", 0)
        if missing_ns > MISSING_NS_MAX + LinuxHost.TOLERANCE_NS * len(stints):
            raise RecordError(
                f"the records lack {missing_ns / 1e6:.1f} ms of the CPU time of task {task['task']} "
                f"({task['name']}) by its own clock; the kernel left out {n_mended} switches; run again"
            )
