# SPDX-License-Identifier: MIT
"""A process that does runs for a thread of ours: what is sent to it, and what it answers.

        here:  WorkerProcess.do --- (RunContext, Case), pickled --->  serve: run_case
               <--- length, then (run, tasks) or an exception, pickled ---

What runs share is sent once: sender and receiver each keep a memo of the objects so far,
as pickle does within one object, and both forget it at the same message. A Python script
needs no `if __name__ == "__main__"` for this, since its own module is not imported.

Must stay true: the process ends with ours, by whatever that ends; Ctrl-C is ours alone.
Read next: workers.py, which starts it; hosts/process.py, how it is ended.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import sys
import threading
import time
from typing import Any

from ..errors import SchedlabError
from ..hosts.process import Supervised
from .case import Case, RunContext, run_case

#: Runs after which both sides forget what they have sent: memory stays bounded.
RUNS_PER_MEMO = 100
#: A run has its own time limit there.
_ANSWER_SECONDS = 1e6
_LENGTH_BYTES = 8
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from schedlab.runs.worker_process import serve; serve()"
)


class WorkerProcess:
    """A process that does runs; used by one thread, interrupted by any."""

    def __init__(self) -> None:
        self._process: Supervised | None = None
        self._n_sent = 0
        self._buffer = io.BytesIO()
        self._pickler = pickle.Pickler(self._buffer, pickle.HIGHEST_PROTOCOL)
        if sys.executable:
            with contextlib.suppress(SchedlabError):  # the thread does the runs itself
                self._process = Supervised(
                    [sys.executable, "-c", _START, json.dumps(sys.path)],
                    has_input=True,
                    stdout_bytes_max=None,
                )

    def do(self, context: RunContext, case: Case) -> tuple[dict[str, Any], dict[str, Any] | None] | None:
        """Have a run done."""
        if self._process is None:
            return None
        try:
            self._process.write(self._message(context, case))
            self._process.read_until(self._is_whole, time.monotonic() + _ANSWER_SECONDS)
        except (OSError, pickle.PicklingError, AttributeError, TypeError):
            return None
        if not self._is_whole():
            return None
        received, end = self._process.stdout, _LENGTH_BYTES + self._length()
        answer = pickle.loads(memoryview(received)[_LENGTH_BYTES:end])
        del received[:end]
        if isinstance(answer, BaseException):
            raise answer
        run, tasks = answer
        if run["environment"] == context.environment:
            run["environment"] = context.environment
        return run, tasks

    def interrupt(self) -> None:
        """End the process and all that it started; from any thread."""
        if self._process is not None:
            self._process.end()

    def close(self) -> None:
        """End the process; by the thread that uses it."""
        if self._process is not None:
            self._process.close()

    def _message(self, context: RunContext, case: Case) -> bytes:
        """What is sent for a run."""
        is_new = self._n_sent % RUNS_PER_MEMO == 0
        if is_new:
            self._pickler.clear_memo()
        self._n_sent += 1
        self._buffer.seek(0)
        self._buffer.truncate()
        self._pickler.dump((context, case))
        return bytes([is_new]) + self._buffer.getvalue()

    def _length(self) -> int:
        """Length of the answer that has begun to arrive."""
        assert self._process is not None
        return int.from_bytes(self._process.stdout[:_LENGTH_BYTES], "little")

    def _is_whole(self) -> bool:
        """Whether the answer is there."""
        assert self._process is not None
        received = self._process.stdout
        return len(received) >= _LENGTH_BYTES and len(received) >= _LENGTH_BYTES + self._length()


def serve() -> None:
    """Do runs until there are no more requests; the process's main function."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    session, stop = None, threading.Event()
    while is_new := requests.read(1):
        if is_new != b"\0":
            unpickler = pickle.Unpickler(requests)
        context, case = unpickler.load()
        try:
            if session is None:
                session = context.host.session(timeout_seconds=context.plan.execution.timeout_seconds)
            tasks: list[dict[str, Any]] = []
            run = run_case(context, case, session, stop, tasks.append)
            answer = pickle.dumps((run, tasks[0] if tasks else None), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            answer = pickle.dumps(_sendable(error))
        answers.write(len(answer).to_bytes(_LENGTH_BYTES, "little") + answer)
        answers.flush()
    if session is not None:
        session.close()


def _sendable(error: Exception) -> Exception:
    """The same, or what can be pickled of it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
