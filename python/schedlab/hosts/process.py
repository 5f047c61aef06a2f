# SPDX-License-Identifier: MIT
"""Processes that run policies: supervised, read without blocking, and always ended.

A policy is a program like any other: it may fork a daemon that keeps the run's
pipes open and its CPU busy. So each command is a child of `schedlab-supervise`
(hosts/common/supervise.c), which ends all that descends from it, and no read
waits for the end of a pipe.

Invariant: whatever the processes do, a job comes back within the time limit, and
nothing that it started is left running.
Read next: uthreads.py, the shortest use; sim.py; kernel/host.py.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from .. import paths
from ..errors import HostError, PolicyError, SchedlabError
from .host import Job, Outcome

#: What a command may print as its answer; 1,024 CPUs need a tenth of it.
STDOUT_BYTES_MAX = 4 << 20
#: Of what a policy prints, the beginning and the end are kept.
LOG_HEAD_BYTES = 1 << 20
LOG_TAIL_BYTES = 1 << 16
#: How long a program of ours may take to end a tree, or itself; it takes a millisecond or two.
END_SECONDS = 10.0
_READ_BYTES = 1 << 16
#: Exit status of the supervisor where the command cannot be executed.
NO_EXEC = 127


def timed_out(timeout_seconds: float) -> Outcome:
    """Say that a job took too long."""
    return Outcome(
        error=f"stopped: no result after {timeout_seconds:g} s; give more with --timeout",
        error_kind="timeout",
    )


def not_done(error: SchedlabError | OSError) -> Outcome:
    """Say why a job could not be done."""
    if isinstance(error, OSError):
        return Outcome(error=f"{error.filename}: {error.strerror}", error_kind="host")
    kind = "compile" if isinstance(error, PolicyError) else "host"
    return Outcome(error=str(error), error_kind=kind)


class Log:
    """What a policy prints: all of it up to a megabyte, then the last lines only."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all of it."""
        self._head = bytearray()
        self._tail = bytearray()
        self._n_bytes = 0

    def add(self, piece: bytes) -> None:
        """Keep what was read."""
        self._n_bytes += len(piece)
        room = LOG_HEAD_BYTES - len(self._head)
        self._head += piece[:room]
        self._tail += piece[max(room, 0) :]
        del self._tail[:-LOG_TAIL_BYTES]

    def take(self) -> str:
        """Return the text so far, and begin anew."""
        n_lost = self._n_bytes - len(self._head) - len(self._tail)
        note = b"\n[... %d bytes are left out ...]\n" % n_lost if n_lost else b""
        text = bytes(self._head + note + self._tail).decode("utf-8", "replace")
        self.clear()
        return text


class LineServer:
    """A program of ours that answers each request with a line, until its input ends.

    It is in a session of its own: Ctrl-C comes to us, and we close it.
    """

    def __init__(self, words: Sequence[str | os.PathLike[str]]):
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin and self._process.stdout
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Of the program's process."""
        return self._process.pid

    def close(self) -> None:
        """End the program; what it does meanwhile is ended, too, or finished."""
        with contextlib.suppress(OSError):  # it is gone already
            self._requests.close()
        try:
            self._process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._answers.close()

    def kill(self) -> None:
        """End the program at once; from any thread."""
        self._process.kill()


class Supervised:
    """A command under `schedlab-supervise`; used by one thread, ended by any.

    `has_input`: `write` will be used. Unless `is_supervised`, it starts nothing; otherwise what descends
    from it is found and ended, too. More than `stdout_bytes_max` is an endless answer. HostError: it cannot
    be started.
    """

    def __init__(
        self,
        command: list[str],
        *,
        has_input: bool = False,
        is_supervised: bool = True,
        stdout_bytes_max: int | None = STDOUT_BYTES_MAX,
    ):
        self.stdout = bytearray()
        self._stdout_bytes_max = stdout_bytes_max
        self.log = Log()
        self._lock = threading.Lock()
        self._at_end: set[int] = set()
        supervisor = paths.supervisor()
        reason = paths.why_unusable(supervisor)
        self._is_supervised = is_supervised
        if is_supervised and reason:
            raise HostError(reason)
        self._control: int | None
        read_end, self._control = os.pipe()
        try:
            self._process = subprocess.Popen(
                [
                    *([str(supervisor), str(read_end)] if is_supervised else []),
                    shutil.which(command[0]) or command[0],
                    *command[1:],
                ],
                pass_fds=(read_end,) if is_supervised else (),
                bufsize=0,
                stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C is for us: we end the command in our own order.
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._control)
            raise HostError(f"{command[0]} cannot be started: {error.strerror}") from error
        finally:
            os.close(read_end)
        try:
            self._ended = os.pidfd_open(self._process.pid)
        except ProcessLookupError:
            # It has ended, and the kernel has reaped it, as the caller ignores SIGCHLD.
            self._ended, other_end = os.pipe()
            os.close(other_end)
        except OSError as error:
            # As where all descriptors are used up: the supervisor ends the tree with this pipe.
            with self._process:
                os.close(self._control)
            raise HostError(f"{command[0]} cannot be watched: pidfd_open: {error.strerror}") from error
        assert self._process.stdout and self._process.stderr
        for stream in (self._process.stdout, self._process.stderr):
            os.set_blocking(stream.fileno(), False)

    def write(self, data: bytes) -> None:
        """Send to its standard input; OSError where it has ended."""
        left = memoryview(data)
        while left:
            assert self._process.stdin
            left = left[self._process.stdin.write(left) :]

    def read_until(self, is_done: Callable[[], bool], deadline: float) -> int | None:
        """Read what it prints until that is enough, or it has ended."""
        with selectors.DefaultSelector() as selector:
            assert self._process.stdout and self._process.stderr
            for file in (self._process.stdout.fileno(), self._process.stderr.fileno(), self._ended):
                if file not in self._at_end:
                    selector.register(file, selectors.EVENT_READ)
            while not is_done():
                left = deadline - time.monotonic()
                ready = [key.fd for key, _ in selector.select(left)] if left > 0 else []
                if not ready:
                    raise TimeoutError
                self._read_available()
                for file in self._at_end & selector.get_map().keys():
                    selector.unregister(file)
                if self._ended in ready:
                    return self._process.wait()
        self._read_available()
        return None

    def _read_available(self) -> None:
        """Read both streams as far as they are filled."""
        assert self._process.stdout and self._process.stderr
        for stream, add in (self._process.stdout, self.stdout.extend), (self._process.stderr, self.log.add):
            # As much as a full pipe: a flood must not keep us here.
            for _ in range(16):
                try:
                    piece = os.read(stream.fileno(), _READ_BYTES)
                except BlockingIOError:
                    break
                if not piece:
                    # It is readable from now on, and a select() on it would spin.
                    self._at_end.add(stream.fileno())
                    break
                add(piece)
        if self._stdout_bytes_max is not None and len(self.stdout) > self._stdout_bytes_max:
            raise OSError("the answer never ends")

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """Have the supervisor end the whole tree; does not wait. From any thread."""
        with self._lock:
            control, self._control = self._control, None
        if control is not None:
            os.close(control)
            if not self._is_supervised:
                self._process.kill()

    def close(self) -> None:
        """End the tree, wait for that, and close the pipes."""
        self.end()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._ended)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int  #: Exit status, negative for a signal.
    stdout: bytes  #: All that it printed as its answer.
    stderr: str  #: What it, or a policy in it, printed besides.


class ProcessSession:
    """Does jobs one after the other, each in a process of its own.

    A host's own session says in `_run` what a job is, and calls `_wait_for`; a run may take
    `timeout_seconds` on the wall clock.
    """

    def __init__(self, *, timeout_seconds: float):
        self.timeout_seconds = timeout_seconds
        self._process: Supervised | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def run(self, job: Job) -> Outcome:
        """Do one job and wait for it."""
        try:
            return self._run(job)
        except TimeoutError:
            return timed_out(self.timeout_seconds)
        except (SchedlabError, OSError) as error:
            return not_done(error)

    def _run(self, job: Job) -> Outcome:
        """Do one job; a timeout, and errors of ours, are reported by `run`."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """End the process; the job under way comes back as failed. From any thread."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.end()

    def close(self) -> None:
        """End what is left; no job is done after that."""
        self.interrupt()

    def _wait_for(self, command: list[str]) -> Done:
        """Run a command to its end, within the time limit; TimeoutError beyond it."""
        with self._lock:
            if self._is_closed:
                raise HostError("interrupted")
            process = self._process = Supervised(command)
        try:
            status = process.read_until(lambda: False, time.monotonic() + self.timeout_seconds)
        finally:
            with self._lock:
                self._process = None
            process.close()
        if self._is_closed:
            raise HostError("interrupted")
        said = process.log.take()
        if status == NO_EXEC and not process.stdout:
            raise HostError(said.strip())
        assert status is not None, "its pipes are closed, so it has ended"
        return Done(status=status, stdout=bytes(process.stdout), stderr=said)
