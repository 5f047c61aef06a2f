# SPDX-License-Identifier: MIT
"""Drive `schedlab-sim`, the simulator.

`schedlab-sim --serve` loads a policy once and then answers requests, one line
each, by forking a worker per run. A policy that crashes or spins kills only its
worker; should the server itself die or hang, the run is marked failed, the
server's whole process tree is ended, and the next job starts a new one.

Must stay true: no answer of the simulator, and no silence either, can stop the
caller or harm another run.
Read next: runs/run.py, which hands out the jobs.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from .. import paths
from ..calibration import DEFAULT_CALIBRATION, Calibration
from ..errors import SchedlabError
from ..policy.build import BuiltPolicy
from ..policy.races import Places
from ..records.file import hash_file
from ..tools import source_line
from .host import Job, Outcome
from .kinds import job_arguments
from .process import Supervised, timed_out

#: The simulator stays as it is while we run.
file_hash = lru_cache(maxsize=4)(hash_file)
#: How much of what a policy prints is kept for the message about its failure.
STDERR_LINES_KEPT = 20
#: Costs that stand between a runnable task and an idle CPU.
_LATENCIES = ("ipi_ns", "switch_ns", "leave_ns", "migrate_ns", "migrate_llc_ns", "migrate_node_ns")


class SimHost:
    """The simulator as a host; virtual time, so nothing is ever late."""

    name = "sim"
    options = frozenset(
        {"above", "capacity", "costs", "io", "is_sandboxed", "offline", "tick_ns", "topology"}
    )
    is_deterministic = True
    has_exact_work = True

    def unavailable(self) -> str | None:
        """Why the simulator cannot be used, or None."""
        return paths.why_unusable(paths.simulator())

    def environment(self) -> dict[str, Any]:
        """Hash of the simulator; two runs with equal hashes are equal bit by bit."""
        return {"simulator_hash": file_hash(str(paths.simulator()))}

    def latency_ns(self, job: Job) -> int:
        """Longest time from the moment a task may run on an idle CPU until it runs there."""
        costs = [value.partition("=") for option, value in job.options if option == "--cost"]
        ns = {name: int(value) for name, _, value in costs}
        # A CPU on its way to one task may find a more urgent one that woke later;
        # the first then waits for the CPU that was called for the second.
        return ns.get("ipi_ns", 0) + sum(ns.get(name, 0) for name in _LATENCIES)

    def tolerance_ns(self, job: Job) -> int:
        """None: the clock is virtual."""
        return 0

    def calibration(self, job: Job) -> Calibration | None:
        """What the simulator is told that work costs; see `runs/case.py`."""
        return DEFAULT_CALIBRATION

    def session(self, *, timeout_seconds: float) -> SimSession:
        """Open a connection for one worker."""
        return SimSession(timeout_seconds=timeout_seconds)


def request_line(job: Job) -> str:
    """Write a job as a request to the server."""
    arguments = job_arguments(job)
    for argument in arguments:
        if any(mark in argument for mark in "\t\n\r\0"):
            raise ValueError(f"{argument!r} contains a tab or an end of line; rename the folder")
    return "\t".join(arguments) + "\n"


def program_of(job: Job) -> Path:
    """The simulator of `schedlab check` where more happens than tasks do, or CPUs interleave; else the fast one."""
    is_of_check = any(option in ("--events", "--interleave") for option, _ in job.options)
    return paths.interleaver() if is_of_check else paths.simulator()


class SimSession:
    """One worker's server, restarted when the policy changes or the server dies.

    `timeout_seconds` is the longest time on the wall clock that one run may take.
    """

    def __init__(self, *, timeout_seconds: float):
        self.timeout_seconds = timeout_seconds
        self._server: _Server | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def run(self, job: Job) -> Outcome:
        """What the simulator said, or that it died or took too long."""
        try:
            line = request_line(job)
        except ValueError as error:
            return Outcome(error=str(error), error_kind="usage")
        server = self._server_for(job)
        if server is None:
            return Outcome(error="interrupted", error_kind="host")
        outcome = server.ask(line, self.timeout_seconds)
        if outcome.error_kind in ("host", "timeout"):
            server.kill()
        return _with_places(outcome, job.policy)

    def interrupt(self) -> None:
        """End the server's processes; the job that it is doing comes back as failed.

        From any thread: it leaves pipes alone, which another thread may be reading.
        """
        with self._lock:
            self._is_closed = True
            if self._server is not None:
                self._server.end()

    def close(self) -> None:
        """End the server; by the thread that uses the session."""
        with self._lock:
            self._is_closed = True
            server, self._server = self._server, None
        if server is not None:
            server.kill()

    def _server_for(self, job: Job) -> _Server | None:
        """Keep the server, or start the one that has this policy loaded."""
        what = (program_of(job), job.policy.shared_object)
        with self._lock:
            if self._is_closed:
                return None
            old = self._server
            if old is not None and old.what == what and old.is_alive():
                return old
            if old is not None:
                old.kill()
            self._server = _Server(what, lambda: self._start(*what))
            return self._server

    def _start(self, program: Path, policy: Path) -> Supervised:
        """A server that has this policy; SchedlabError where it cannot be started."""
        return Supervised([str(program), "--serve", "--policy", str(policy)], has_input=True)


class _Server:
    """One process of a simulator that has a policy, with what its workers leave behind."""

    def __init__(self, what: tuple[Path, Path], start: Callable[[], Supervised]):
        self.what = what  #: The simulator's program, and the compiled policy.
        self._failure: str | None = None
        self._process: Supervised | None = None
        try:
            self._process = start()
        except SchedlabError as error:
            self._failure = str(error)

    def is_alive(self) -> bool:
        """Whether it can take another request."""
        return self._process is not None and self._process.is_alive()

    def ask(self, line: str, timeout_seconds: float) -> Outcome:
        """Send one request and wait for its answer."""
        process = self._process
        if process is None:
            return Outcome(error=self._failure, error_kind="host")
        status = None
        try:
            with contextlib.suppress(BrokenPipeError):
                process.write(line.encode())
            status = process.read_until(lambda: b"\n" in process.stdout, time.monotonic() + timeout_seconds)
        except TimeoutError:
            return replace(timed_out(timeout_seconds), log=process.log.take())
        except OSError as error:
            return Outcome(error=f"schedlab-sim: {error}", error_kind="host", log=process.log.take())
        answer, _, rest = process.stdout.partition(b"\n")
        process.stdout[:] = rest
        return _outcome_of(bytes(answer), status, process.log.take())

    def end(self) -> None:
        """Have the server and its workers ended, without waiting; from any thread."""
        # Read once: kill() may take it away meanwhile.
        process = self._process
        if process is not None:
            process.end()

    def kill(self) -> None:
        """End the server and close its pipes."""
        process, self._process = self._process, None
        if process is not None:
            process.close()


def _with_places(outcome: Outcome, policy: BuiltPolicy) -> Outcome:
    """Name addresses, and add the source line at which a policy was stopped, where that can be found."""
    if outcome.error and "<0x" in outcome.error:
        outcome = replace(outcome, error=Places(policy.shared_object).in_text(outcome.error))
    offset = outcome.answer.get("policy_offset")
    place = source_line(policy.shared_object, hex(offset)) if offset else None
    return replace(outcome, error=f"{outcome.error}, at {place}") if place else outcome


def _outcome_of(answer: bytes, status: int | None, log: str) -> Outcome:
    """What the simulator answered, or how it ended without an answer."""
    try:
        if answer:
            return replace(_read_answer(answer), log=log)
        status = status or 0
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"
        error = f"schedlab-sim {how} without an answer"
        last = "\n".join(log.splitlines()[-STDERR_LINES_KEPT:])
        error += f":\n{last}" if last else ""
    except (ValueError, KeyError, TypeError) as fault:
        error = f"schedlab-sim gave an answer that cannot be read ({fault}): {answer[:200]!r}"
    return Outcome(error=error, error_kind="host", log=log)


def _read_answer(line: bytes) -> Outcome:
    """Read the JSON object that the simulator printed."""
    answer = json.loads(line)
    if not isinstance(answer, dict) or answer.get("status") not in ("ok", "failed"):
        raise ValueError("status is neither ok nor failed")
    error = answer.get("error")
    if answer["status"] == "failed" and not error:
        error = "failed without a reason"
    return Outcome(
        error=error if answer["status"] == "failed" else None,
        error_kind=answer.get("error_kind"),
        task=answer.get("task"),
        cpus=answer.get("cpus"),
        answer=answer,
    )
