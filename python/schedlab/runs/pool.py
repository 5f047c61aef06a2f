# SPDX-License-Identifier: MIT
"""Processes of our own that share work, and end with the command.

A terminal's Ctrl-C reaches them all. It is the caller who answers it: they end at
once and say nothing, also while they begin. So what they write lies in a folder
that is the caller's to remove.

Read next: check/search.py and grade/grade.py, the callers.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any


class ProcessPool(ProcessPoolExecutor):
    """`n_processes` spawned processes; `initializer` is called in each."""

    def __init__(
        self, n_processes: int, initializer: Callable[..., object] = bool, initargs: tuple[Any, ...] = ()
    ):
        self._others = {*multiprocessing.active_children()}
        super().__init__(
            n_processes,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(initializer, *initargs),
        )

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have something done; a process that this starts inherits that Ctrl-C waits."""
        if not hasattr(signal, "pthread_sigmask"):
            return super().submit(work, *args, **kwargs)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(work, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def end(self) -> None:
        """End the processes at once, whatever they do, and wait for that."""
        for process in {*multiprocessing.active_children()} - self._others:
            process.kill()
        self.shutdown(cancel_futures=True)


def _begin(initializer: Callable[..., object], *args: Any) -> None:
    """In the process: end at Ctrl-C, also at one that came while it was started."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    initializer(*args)
