# SPDX-License-Identifier: MIT
"""A bar on standard error for commands that take long, with an estimate of the time left.

Must stay true: nothing is written where standard error is no terminal, nor to standard output ever.
Read next: cli/app.py, cli/bench.py, which show it.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape

#: Of a workload's name; a command can be longer than a terminal is wide.
NAME_MAX = 24


class Progress:
    """A bar, where standard error is a terminal."""

    def __init__(self, *, is_silent: bool = False) -> None:
        self._bar: Any = None
        self._is_silent = is_silent or not sys.stderr.isatty()
        self._left = self._new = 0
        self._since = self._last = 0.0

    def __enter__(self) -> Progress:
        """Show the bar."""
        if not self._is_silent:
            from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn
            from rich.progress import Progress as Bar
            from rich.table import Column
            from rich.text import Text

            class _TimeLeft(ProgressColumn):
                max_refresh = 0.5

                def render(column, task: Any) -> Text:
                    return Text(self.time_left(time.monotonic()))

            self._bar = Bar(
                TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
                BarColumn(bar_width=20),
                MofNCompleteColumn(table_column=Column(no_wrap=True)),
                _TimeLeft(table_column=Column(no_wrap=True)),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
            )
            self._bar.start()
            self._task = self._bar.add_task("starting", total=None)
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the bar."""
        if self._bar:
            self._bar.stop()

    def expect(self, n_runs: int) -> None:
        """Say how many runs there will be."""
        self._left, self._new, self._since = n_runs, 0, time.monotonic()
        if self._bar:
            self._bar.update(self._task, total=n_runs, completed=0, description="running")

    def advance(self, run: dict[str, Any], *, is_new: bool = True) -> None:
        """Count one run; one that was there already says nothing of how long others take."""
        self._left -= 1
        self._new += is_new
        self._last = time.monotonic()
        if self._bar:
            # A command may have brackets and ends of lines in it.
            name = " ".join(run["workload"].split())
            name = name if len(name) <= NAME_MAX else name[: NAME_MAX - 1] + "…"
            self._bar.update(self._task, advance=1, description=escape(f"{name} {run['policy']}"))

    def time_left(self, now: float) -> str:
        """The mean of the runs so far for each that is left, less what the present one has had; empty where unknown."""
        if not self._new:
            return ""
        seconds = (self._last - self._since) / self._new * self._left - (now - self._last)
        minutes, seconds = divmod(max(0, round(seconds)), 60)
        return (
            f"{minutes // 60}:{minutes % 60:02}:{seconds:02} left"
            if minutes >= 60
            else f"{minutes}:{seconds:02} left"
        )

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Without the bar, so that something can be printed."""
        if self._bar:
            self._bar.stop()
        yield
        if self._bar:
            self._bar.start()
