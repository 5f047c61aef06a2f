# SPDX-License-Identifier: MIT
"""Do runs with all CPUs of this machine: by threads, and by processes where much is left to do.

        thread 0 --------------------------- session with the host
        thread 1 ------ worker process ----- session with the host
        ...

Python computes in one thread of a process at a time. So once the runs that are left
would take longer than a process takes to start, every thread but the first has a process
do its runs; what starts sooner than that, does not wait for one.

Must stay true: the result of a run does not depend on the worker that did it; a worker
process that dies loses no run.
Read next: case.py, one run; worker_process.py.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .case import Case, RunContext, folder_of, run_case
from .worker_process import WorkerProcess

#: With less than this left to do, on the wall clock, no worker process is started.
PROCESS_SECONDS = 1.0
#: Runs per worker before the first guess of what is left; the very first runs import modules.
_RUNS_TIMED = 4
_JOIN_SECONDS = 10


@dataclass(frozen=True)
class Finished:
    """A run that is done."""

    key: Any  #: What the caller knows it by.
    run: dict[str, Any]  #: As `--json` lists it.
    #: Its task-level metrics, as `metrics.tables.task_columns` gives them; None: it is not good.
    tasks: dict[str, Any] | None
    seconds: float  #: How long it took on the wall clock.


def do_runs(
    work: Iterable[tuple[Any, RunContext, Case]],
    on_done: Callable[[Finished], None],
    *,
    n_runs: int,
    n_workers: int,
) -> list[Finished] | None:
    """Do runs and wait for them."""
    feed = _Feed(work, n_runs, n_workers)
    workers = [_Worker(feed, may_have_process=i > 0) for i in range(max(1, min(n_workers, n_runs)))]
    is_interrupted = False
    try:
        for worker in workers:
            worker.thread.start()
        n_working = len(workers)
        while n_working:
            # Once Polars is there, Ctrl-C ends only waits that have a timeout.
            found = feed.done.get(timeout=threading.TIMEOUT_MAX / 2)
            if isinstance(found, BaseException):
                raise found
            if found is None:
                n_working -= 1
            else:
                on_done(found)
    except KeyboardInterrupt:
        is_interrupted = True
    finally:
        feed.stop.set()
        for worker in workers:
            worker.interrupt()
        for worker in workers:
            if worker.thread.ident is not None:
                worker.thread.join(_JOIN_SECONDS)
    late = []
    with contextlib.suppress(queue.Empty):
        while True:
            late.append(feed.done.get_nowait())
    return [found for found in late if isinstance(found, Finished)] if is_interrupted else None


class _Feed:
    """What workers share: the runs that are left, and what has become of the others.

    `done` gets a `Finished` for each run, an exception that is the caller's to see, and
    None from each worker that ends.
    """

    def __init__(self, work: Iterable[Any], n_runs: int, n_workers: int):
        self.stop = threading.Event()
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._work = iter(work)
        self._lock = threading.Lock()
        self._n_left = n_runs
        self._n_untimed = n_workers * _RUNS_TIMED
        self._timed: tuple[float, int] | None = None

    def take(self) -> tuple[Any, RunContext, Case] | None:
        """The next run; None if there is none."""
        with self._lock:
            item = None if self.stop.is_set() else next(self._work, None)
            if item is not None:
                self._n_left -= 1
                self._n_untimed -= 1
                if self._n_untimed <= 0 and self._timed is None:
                    self._timed = time.monotonic(), self._n_left
            return item

    def is_much_left(self) -> bool:
        """Whether what is left will take so long that a process for it pays."""
        with self._lock:
            if self._timed is None:
                return False
            began, n_left = self._timed
            n_begun = n_left - self._n_left
            seconds = time.monotonic() - began
            return n_begun >= _RUNS_TIMED and seconds * self._n_left > PROCESS_SECONDS * n_begun


class _Worker:
    """A thread that does runs, itself or by a process of its own."""

    def __init__(self, feed: _Feed, *, may_have_process: bool):
        self.thread = threading.Thread(target=self._work, daemon=True)
        self._feed = feed
        self._may_have_process = may_have_process
        self._lock = threading.Lock()
        self._session: Any = None
        self._process: WorkerProcess | None = None

    def interrupt(self) -> None:
        """End the run under way, once `stop` is set; from any thread."""
        with self._lock:
            for each in (self._session, self._process):
                if each is not None:
                    each.interrupt()

    def _work(self) -> None:
        """Take runs until there are none."""
        try:
            while item := self._feed.take():
                began = time.monotonic()
                found = self._do(*item[1:])
                if found is not None:
                    self._feed.done.put(Finished(item[0], *found, time.monotonic() - began))
        except BaseException as error:  # carried to the caller's thread
            self._feed.done.put(error)
        finally:
            for each in (self._session, self._process):
                if each is not None:
                    each.close()
            self._feed.done.put(None)

    def _do(self, context: RunContext, case: Case) -> tuple[dict[str, Any], dict[str, Any] | None] | None:
        """One run and its tasks; None where an interrupt cut it short."""
        if (
            self._may_have_process
            and self._process is None
            and context.host.is_deterministic
            and self._feed.is_much_left()
        ):
            self._open("_process", WorkerProcess)
        if self._process is not None:
            found = self._process.do(context, case)
            if found is not None:
                return found
            self._may_have_process = False
            self._process.close()
            self._process = None
            if self._feed.stop.is_set():
                shutil.rmtree(folder_of(context.plan, case), ignore_errors=True)
                return None
        if self._session is None:
            self._open(
                "_session",
                lambda: context.host.session(timeout_seconds=context.plan.execution.timeout_seconds),
            )
        if self._feed.stop.is_set():
            return None
        tasks: list[dict[str, Any]] = []
        run = run_case(context, case, self._session, self._feed.stop, tasks.append)
        return None if run is None else (run, tasks[0] if tasks else None)

    def _open(self, name: str, make: Callable[[], Any]) -> None:
        """Make what an interrupt has to end, unless there has been one."""
        with self._lock:
            if not self._feed.stop.is_set():
                setattr(self, name, make())


def n_workers_of(host: Any) -> int:
    """How many runs a host may have under way here at a time."""
    return (os.cpu_count() or 1) if host.is_deterministic else 1
