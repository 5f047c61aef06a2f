# SPDX-License-Identifier: MIT
"""Drive `schedlab-sim`, the simulator.

`schedlab-sim --serve` loads a policy once and then answers requests, one line
each, by forking a worker per run. A policy that crashes or spins kills only its
worker; should the server itself die or hang, the run is marked failed, the
server's whole process group is ended, and the next job starts a new one.

Must stay true: no answer of the simulator, and no silence either, can stop the
caller or harm another run.
Read next: runs/run.py, which hands out the jobs.
"""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from functools import lru_cache

from .. import paths
from ..calibration import DEFAULT_CALIBRATION, Calibration
from ..policy.build import BuiltPolicy
from .host import Job, Outcome
from .kinds import job_arguments
from .process import timed_out

#: Longest answer that is read, in bytes; 1,024 CPUs need a tenth of it.
ANSWER_BYTES_MAX = 4 << 20
#: How much of what a policy prints is kept for the message about its failure.
STDERR_LINES_KEPT = 20
#: How long a server may take to end by itself when its input is closed.
CLOSE_SECONDS = 1.0
#: Costs that stand between a runnable task and an idle CPU.
_LATENCIES = ("ipi_ns", "switch_ns", "leave_ns", "migrate_ns", "migrate_llc_ns", "migrate_node_ns")


class SimHost:
    """The simulator as a host; virtual time, so nothing is ever late."""

    name = "sim"
    is_deterministic = True
    has_exact_work = True

    def unavailable(self) -> str | None:
        """Why the simulator cannot be used, or None."""
        return paths.why_unusable(paths.simulator())

    def environment(self) -> dict:
        """Hash of the simulator; two runs with equal hashes are equal bit by bit."""
        return {"simulator_hash": _simulator_hash(str(paths.simulator()))}

    def latency_ns(self, job: Job) -> int:
        """Longest time from the moment a task may run on an idle CPU until it runs there.

        Parameters
        ----------
        job : Job
            Its `--cost` options are all that takes time in this host.

        Returns
        -------
        int
            Nanoseconds: the interrupts that tell two CPUs, and the dearest switch.
        """
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


@lru_cache(maxsize=4)
def _simulator_hash(path: str) -> str:
    """SHA-256 of the simulator's file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def request_line(job: Job) -> str:
    """Write a job as a request to the server.

    Parameters
    ----------
    job : Job
        What to run.

    Returns
    -------
    str
        Arguments separated by tabs, with the end of the line.

    Raises
    ------
    ValueError
        If an argument contains a tab or an end of line.
    """
    arguments = job_arguments(job)
    for argument in arguments:
        if any(mark in argument for mark in "\t\n\r\0"):
            raise ValueError(f"{argument!r} contains a tab or an end of line; rename the folder")
    return "\t".join(arguments) + "\n"


class SimSession:
    """One worker's server, restarted when the policy changes or the server dies.

    Parameters
    ----------
    timeout_seconds : float
        Longest time on the wall clock that one run may take.
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
        server = self._server_for(job.policy)
        if server is None:
            return Outcome(error="interrupted", error_kind="host")
        outcome = server.ask(line, self.timeout_seconds)
        if outcome.error_kind in ("host", "timeout"):
            server.kill()
        return outcome

    def interrupt(self) -> None:
        """End the server's processes; the job that it is doing comes back as failed.

        From any thread: it leaves pipes alone, which another thread may be reading.
        """
        with self._lock:
            self._is_closed = True
            if self._server is not None:
                self._server.signal_group()

    def close(self) -> None:
        """End the server; by the thread that uses the session."""
        with self._lock:
            self._is_closed = True
            server, self._server = self._server, None
        if server is not None:
            server.kill()

    def _server_for(self, policy: BuiltPolicy) -> _Server | None:
        """Keep the server, or start the one that has this policy loaded."""
        with self._lock:
            if self._is_closed:
                return None
            old = self._server
            if old is not None and old.policy == policy.shared_object and old.is_alive():
                return old
            if old is not None:
                old.kill()
            self._server = _Server(policy.shared_object)
            return self._server


class _Server:
    """One `schedlab-sim --serve` process."""

    def __init__(self, policy):
        self.policy = policy
        self._said: deque[str] = deque(maxlen=STDERR_LINES_KEPT)
        self._pending = b""
        self._failure: str | None = None
        try:
            self._process = subprocess.Popen(
                [str(paths.simulator()), "--serve", "--policy", str(policy)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C is for us: we end the server in our own order.
                start_new_session=True,
            )
        except OSError as error:
            self._process = None
            self._failure = f"{paths.simulator()} cannot be started: {error.strerror}"
            return
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        """Keep the last lines that the policy or the server prints."""
        for line in iter(lambda: self._process.stderr.readline(4096), b""):
            self._said.append(line.decode("utf-8", "replace").rstrip())

    def is_alive(self) -> bool:
        """Whether it can take another request."""
        return self._process is not None and self._process.poll() is None

    def ask(self, line: str, timeout_seconds: float) -> Outcome:
        """Send one request and wait for its answer."""
        if self._process is None:
            return Outcome(error=self._failure, error_kind="host")
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
            answer = self._read_line(time.monotonic() + timeout_seconds)
        except TimeoutError:
            return timed_out(timeout_seconds)
        except OSError:
            answer = b""
        if not answer:
            return self._died()
        try:
            return _read_answer(answer)
        except (ValueError, KeyError, TypeError) as error:
            return Outcome(
                error=f"schedlab-sim gave an answer that cannot be read ({error}): {answer[:200]!r}",
                error_kind="host",
            )

    def _read_line(self, deadline: float) -> bytes:
        """Read one line; empty when the server is gone."""
        stream = self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise TimeoutError
                piece = os.read(stream, 1 << 16)
                if not piece:
                    return b""
                self._pending += piece
                if len(self._pending) > ANSWER_BYTES_MAX:
                    raise OSError("the answer never ends")
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _died(self) -> Outcome:
        """Say how the server ended."""
        try:
            code = self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        self._listener.join(CLOSE_SECONDS)
        if code is None:
            how = "closed its output"
        elif code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        else:
            how = f"ended with {code}"
        said = "\n".join(self._said)
        return Outcome(
            error=f"schedlab-sim {how} without an answer" + (f":\n{said}" if said else ""),
            error_kind="host",
        )

    def signal_group(self) -> None:
        """Kill the server and its workers, which are one process group."""
        # While poll() has not seen its end, its number cannot be another's.
        if self._process is not None and self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def kill(self) -> None:
        """End the server and let go of its pipes."""
        if self._process is None:
            return
        self.signal_group()
        self._process.wait()
        self._listener.join(CLOSE_SECONDS)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            try:
                stream.close()
            except OSError:  # what was never sent does not matter any more
                pass


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
