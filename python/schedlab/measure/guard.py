# SPDX-License-Identifier: MIT
"""Guard a policy that is loaded: watch wake-up latencies as they are, and end it when a bound is broken.

    recorder (real-time) --sums (live.py)--> Watch --windows--> Canary --end of input--> schedlab-load

Wake-ups of all tasks are watched, those that wait still as long as they have waited, so a policy that starves them is
seen, too. The guard runs with real-time priority, above all that a policy schedules. Each part is watched by another:
the guard ends the policy when the recorder is silent, the loader when the guard is, and the kernel when the loader dies.

Invariant: whatever dies or stops, the policy is unloaded within a second.
Read next: live.py; hosts/linux/load.py.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import HostError, SchedlabError, UsageError
from ..hosts.linux.load import LoadedPolicy
from ..hosts.linux.recorder import Recorder
from ..units import parse_duration
from .live import Sums, Values, quantile, read_sums

#: How often sums are looked at, and the shortest window that a bound is held against.
ROUND_SECONDS, WINDOW_NS_MIN = 0.05, 200_000_000
#: A quantile of fewer wake-ups is not taken; they are kept for the next window.
WAKEUPS_MIN = 20
#: The recorder answers at once; after this it is dead or starved.
SILENCE_SECONDS = 0.6
#: The loader unloads the policy when the guard has been silent for so long; it speaks each round.
HEARTBEAT_MS = 500
#: Below the recorder's, above all others.
PRIORITY = 98
METRICS = {"wakeup_p50": 0.5, "wakeup_p90": 0.9, "wakeup_p99": 0.99, "wakeup_max": 1.0}


@dataclass(frozen=True)
class Bound:
    """One bound, such as `wakeup_p99 < 5ms`."""

    metric: str
    limit_ns: int

    def __str__(self) -> str:
        """As it was written, in ns."""
        return f"{self.metric} < {self.limit_ns / 1e6:g} ms"


def parse_bound(text: str) -> Bound:
    """Read a bound.

    >>> parse_bound("wakeup_p99 < 5ms")
    Bound(metric='wakeup_p99', limit_ns=5000000)
    """
    metric, sign, limit = (part.strip() for part in text.partition("<"))
    if not sign or metric not in METRICS:
        raise UsageError(f"--guard '{text}': write METRIC < TIME; metrics are {', '.join(METRICS)}")
    limit_ns = parse_duration(limit, place="--guard")
    if limit_ns <= 0:
        raise UsageError(f"--guard '{text}': the time must be longer than 0")
    return Bound(metric, limit_ns)


@dataclass
class Watch:
    """Windows of wake-ups, held against bounds."""

    bounds: Sequence[Bound]
    worst: dict[str, int] = field(default_factory=dict)
    n_wakeups: int = 0
    n_windows: int = 0
    n_lost: int = 0
    _latencies: Values = field(default_factory=Values)
    _since_ns: int = 0

    def feed(self, sums: Sums) -> dict[str, Any] | None:
        """Take sums; the first bound that a window breaks, or None."""
        self.n_lost = sums.n_lost
        self.n_wakeups += sums.latencies.total()
        self._latencies += sums.latencies
        now_ns = sums.seen_ns
        self._since_ns = self._since_ns or now_ns
        values = self._latencies + sums.ages
        # One that has waited for too long is enough.
        is_starving = sums.oldest_ns > max(bound.limit_ns for bound in self.bounds)
        if now_ns - self._since_ns < WINDOW_NS_MIN or (values.total() < WAKEUPS_MIN and not is_starving):
            return None
        window_ns, self._since_ns, self._latencies = now_ns - self._since_ns, now_ns, Values()
        self.n_windows += 1
        broken = None
        for bound in self.bounds:
            value = quantile(values, METRICS[bound.metric])
            self.worst[bound.metric] = max(value, self.worst.get(bound.metric, 0))
            if value >= bound.limit_ns and broken is None:
                broken = {"metric": bound.metric, "value_ns": value, "limit_ns": bound.limit_ns,
                          "window_ns": window_ns, "wakeups": values.total(), "waiting": sums.ages.total()}  # fmt: skip
        return broken


class Canary:
    """A guard of a policy, ready before that is loaded; in a thread of its own.

    `broken` is the bound that was broken, and by what; `reason` why the guard ended the policy, None where
    it did not.
    """

    def __init__(self, bounds: Sequence[Bound]):
        self.loaded: LoadedPolicy | None = None
        self.watch = Watch(bounds)
        self.broken: dict[str, Any] | None = None
        self.reason: str | None = None
        self.ended_ns: int | None = None
        self._is_over = threading.Event()
        self._recorder = Recorder(has_sums=True)
        self._thread = threading.Thread(target=self._run, name="guard")

    def begin(self, loaded: LoadedPolicy) -> None:
        """Watch a policy from now on, which is being loaded."""
        self.loaded = loaded
        loaded.make_realtime(PRIORITY)
        # Where real-time classes are not allowed it is less sure to be in time.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
        self._thread.start()

    def __enter__(self) -> Canary:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self.loaded:
            self._thread.join()
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        self._recorder.close()

    def _run(self) -> None:
        """Watch from the beginning of the recording to the end of the policy."""
        try:
            self._recorder.record_all(Path(os.devnull))
            heard = time.monotonic()
            while not self._is_over.wait(ROUND_SECONDS):
                assert self.loaded
                self.loaded.beat()
                said = self._hear()
                if said:
                    heard = time.monotonic()
                    self.broken = self.watch.feed(read_sums(said))
                if self.broken:
                    self._end(f"{self.broken['metric']} was {self.broken['value_ns'] / 1e6:.3g} ms")
                    return
                if time.monotonic() - heard > SILENCE_SECONDS:
                    self._end("the recorder is silent, so nothing is known of the policy")
                    return
        except (SchedlabError, OSError, ValueError) as error:
            self._end(f"the guard failed: {error}")

    def _hear(self) -> dict[str, Any] | None:
        """Sums, unless the recorder is silent or dead."""
        try:
            return self._recorder.sums(ROUND_SECONDS)
        except HostError:
            return None

    def _end(self, reason: str) -> None:
        self.reason, self.ended_ns = reason, time.monotonic_ns()
        assert self.loaded
        self.loaded.unload()

    def as_json(self) -> dict[str, Any]:
        """What the guard saw."""
        return {"bounds": [str(each) for each in self.watch.bounds], "broken": self.broken, "reason": self.reason,
                "worst_ns": self.watch.worst, "wakeups": self.watch.n_wakeups, "windows": self.watch.n_windows,
                "lost": self.watch.n_lost}  # fmt: skip
