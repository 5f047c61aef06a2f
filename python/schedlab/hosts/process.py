# SPDX-License-Identifier: MIT
"""Sessions whose jobs are one process each, and what becomes of a job that fails.

Must stay true: whatever the process does, or does not do, the job comes back
within the time limit, and its process group is gone.
Read next: uthreads.py, the shortest use; kernel.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading

from ..errors import HostError, PolicyError, SchedlabError
from .host import Job, Outcome


def timed_out(timeout_seconds: float) -> Outcome:
    """Say that a job took too long.

    Parameters
    ----------
    timeout_seconds : float
        How long it was given.

    Returns
    -------
    Outcome
        Of kind `timeout`.
    """
    return Outcome(
        error=f"stopped: no result after {timeout_seconds:g} s; give more with --timeout",
        error_kind="timeout",
    )


def not_done(error: SchedlabError | OSError) -> Outcome:
    """Say why a job could not be done.

    Parameters
    ----------
    error : SchedlabError or OSError
        What stood in its way.

    Returns
    -------
    Outcome
        Of kind `compile` where it was the policy, else `host`.
    """
    if isinstance(error, OSError):
        return Outcome(error=f"{error.filename}: {error.strerror}", error_kind="host")
    kind = "compile" if isinstance(error, PolicyError) else "host"
    return Outcome(error=str(error), error_kind=kind)


class ProcessSession:
    """Does jobs one after the other, each in a process of its own.

    A host's own session says in `_run` what a job is, and calls `_wait_for`.

    Parameters
    ----------
    timeout_seconds : float
        Longest time on the wall clock that one run may take.
    """

    def __init__(self, *, timeout_seconds: float):
        self.timeout_seconds = timeout_seconds
        self._process: subprocess.Popen | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def run(self, job: Job) -> Outcome:
        """Do one job and wait for it."""
        try:
            return self._run(job)
        except subprocess.TimeoutExpired:
            return timed_out(self.timeout_seconds)
        except (SchedlabError, OSError) as error:
            return not_done(error)

    def _run(self, job: Job) -> Outcome:
        """Do one job; a timeout, and errors of ours, are told by `run`."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """End the process; the job under way comes back as failed. From any thread."""
        with self._lock:
            self._is_closed = True
            self._end_process()

    def close(self) -> None:
        """End what is left; no job is done after that."""
        self.interrupt()

    def _wait_for(self, command: list[str]) -> subprocess.CompletedProcess:
        """Have a command done; how it ended, and what it said."""
        with self._lock:
            if self._is_closed:
                raise HostError("interrupted")
            try:
                # Ctrl-C is for us: we end the process in our own order.
                process = self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise HostError(f"{command[0]} cannot be started: {error.strerror}") from error
        try:
            said, complaints = process.communicate(timeout=self.timeout_seconds)
        finally:
            with self._lock:
                self._end_process()
                process.wait()
                self._process = None
            process.stdout.close()
            process.stderr.close()
        if self._is_closed:
            raise HostError("interrupted")
        return subprocess.CompletedProcess(command, process.returncode, said, complaints)

    def _end_process(self) -> None:
        """Context: the lock is held, so the number is still this process's."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
