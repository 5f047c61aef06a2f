# SPDX-License-Identifier: MIT
"""What `schedlab top` shows: CPUs, waiting tasks, wake-up latencies, the loaded policy.

    tracepoints -> LiveTasks -\
    /proc/stat (busy) ---------+-> Top.look() -> Picture -> show/top.py, or Prometheus
    /sys/kernel/sched_ext ----/

Invariant: the last events are kept for `save_trace` within a fixed number of bytes and of seconds.
Read next: live.py.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..hosts.linux.recorder import convert_events
from ..plots.trace import write_trace
from ..records.file import read_records
from .live import EVENT, HEADER_BYTES, MEMBER, NAME, SYNC, EventStream, LiveTasks

#: Of the wake-ups and events that are kept: how old, and how many bytes.
KEPT_SECONDS, KEPT_BYTES = 10.0, 64 << 20
#: Upper bounds of the histogram's buckets, in ns: powers of two from 1 us to about 1 s.
BUCKETS_NS = [1000 << power for power in range(21)]
#: Columns of /proc/stat that are not: idle, iowait; guest times are in user's, stolen time is nobody's.
_BUSY_COLUMNS = (0, 1, 2, 5, 6)


@dataclass(frozen=True)
class Cpu:
    """One CPU in the last interval; `queue` counts its runnable tasks with the running one, `queue_mean` over time."""

    number: int
    busy: float
    pid: int
    name: str
    queue: int
    queue_mean: float


@dataclass(frozen=True)
class SchedExt:
    """What the kernel says of sched_ext; `state` is None where it has none."""

    state: str | None
    name: str = ""
    counters: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Picture:
    """All that is shown; latencies in ns, of the last ten seconds."""

    cpus: list[Cpu]
    counts: list[int]
    p50_ns: int | None
    p99_ns: int | None
    waiters: list[tuple[int, str, float]]
    sched_ext: SchedExt
    n_lost: int
    cost: float


def read_sched_ext(system: Path = Path("/")) -> SchedExt:
    """Name, state and counters of the loaded policy.

    Counters are the kernel's own (`root/events` since Linux 6.15) and those beside the state.
    """
    folder = system / "sys/kernel/sched_ext"
    state = _text(folder / "state")
    if state is None:
        return SchedExt(None)
    found = []
    for name in ("enable_seq", "nr_rejected", "switch_all"):
        text = _text(folder / name)
        if text is not None and text.isdigit():
            found.append((name, int(text)))
    for line in (_text(folder / "root/events") or "").splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdigit():
            found.append((name, int(value)))
    return SchedExt(state, _text(folder / "root/ops") or "", tuple(found))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def _clean(name: str) -> str:
    """A task's name, which may be any bytes, as a terminal may have it."""
    return "".join(each if each.isprintable() else "?" for each in name)


class Top:
    """Watches all tasks of this machine.

    `counts`, shape (n_buckets + 1,), are wake-ups since the start by bucket of latency, the last of what is
    longer; `sum_ns` is the sum of these latencies.
    """

    def __init__(self) -> None:
        self._stream = EventStream()
        self._header = b""
        self._tasks = LiveTasks()
        self._names: dict[int, str] = {}
        self._events: deque[tuple[float, bytes]] = deque()
        self._latencies: deque[tuple[float, np.ndarray]] = deque()
        self._stat: dict[int, tuple[int, int]] = {}
        self._cpu_ns = (time.monotonic_ns(), 0)
        self.counts = np.zeros(len(BUCKETS_NS) + 1, np.int64)
        self.sum_ns = 0

    def __enter__(self) -> Top:
        self._header = self._stream.begin()
        self._stat = _cpu_times()
        self._cpu_ns = (time.monotonic_ns(), self._used_ns())
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.__exit__()

    def look(self) -> Picture:
        """What was since the last look."""
        data, now = self._stream.read(), time.monotonic()
        before_ns = self._tasks.seen_ns
        self._learn_names(data)
        found = self._tasks.feed(data)
        self.counts += np.bincount(np.searchsorted(BUCKETS_NS, found), minlength=len(self.counts))
        self.sum_ns += int(found.sum())
        self._events.append((now, data))
        self._latencies.append((now, found))
        while now - self._latencies[0][0] > KEPT_SECONDS:
            self._latencies.popleft()
        while (
            now - self._events[0][0] > KEPT_SECONDS or sum(len(each) for _, each in self._events) > KEPT_BYTES
        ):
            self._events.popleft()
        tasks = self._tasks
        # The recorder runs whenever it says how far it has come.
        own = self._stream.recorder.pid
        tasks.drop_stopped([pid for pid in tasks.current.values() if pid == own or not _runs(pid)])
        values = np.concatenate([each for _, each in self._latencies])
        window_ns = max(tasks.seen_ns - before_ns, 1) if before_ns else 0
        p50, p99 = (int(each) for each in np.quantile(values, [0.5, 0.99], method="higher")) if len(values) else (None, None)  # fmt: skip
        waiters = (
            sorted(tasks.waited_ns.items(), key=lambda pair: (-pair[1], pair[0]))[:10] if window_ns else []
        )
        return Picture(
            self._cpus(window_ns),
            np.bincount(np.searchsorted(BUCKETS_NS, values), minlength=len(self.counts)).tolist(),
            p50,
            p99,
            [(pid, self._name(pid), ns / window_ns) for pid, ns in waiters if ns > window_ns / 2000],
            read_sched_ext(),
            tasks.n_lost,
            self._cost(),
        )

    def _cpus(self, window_ns: int) -> list[Cpu]:
        before, self._stat = self._stat, _cpu_times()
        cpus = []
        for number, (busy, whole) in sorted(self._stat.items()):
            old = before.get(number, (busy, whole))
            share = (busy - old[0]) / max(whole - old[1], 1)
            waits = self._tasks.waits_ns.get(number, 0) / window_ns if window_ns else 0.0
            pid = self._tasks.current.get(number, 0)
            queue = self._tasks.queue.get(number, 0)
            cpus.append(Cpu(number, share, pid, self._name(pid) if pid else "", queue, share + waits))
        return cpus

    def _learn_names(self, data: bytes) -> None:
        """Names come as events of their own; of a number that is used again the last counts."""
        events = np.frombuffer(data, EVENT)
        for event in events[events["kind"] == NAME]:
            self._names[int(event["pid"])] = _clean(
                event.tobytes()[8:].split(b"\0")[0].decode(errors="replace")
            )

    def _name(self, pid: int) -> str:
        return self._names.get(pid) or _clean(_text(Path(f"/proc/{pid}/comm")) or "?")

    def _used_ns(self) -> int:
        """CPU time of this process and of the recorder."""
        fields = (_text(Path(f"/proc/{self._stream.recorder.pid}/schedstat")) or "0").split()
        return time.process_time_ns() + int(fields[0])

    def _cost(self) -> float:
        """Share of one CPU that watching took since the last look."""
        then, used = self._cpu_ns
        self._cpu_ns = (time.monotonic_ns(), self._used_ns())
        return (self._cpu_ns[1] - used) / max(self._cpu_ns[0] - then, 1)

    def save_trace(self, path: Path) -> int:
        """Write the events of the last seconds for the Perfetto viewer; the file's bytes."""
        parts = [np.frombuffer(data, EVENT) for _, data in self._events]
        events = np.concatenate([part for part in parts if len(part)] or [np.zeros(0, EVENT)])
        timed = events[(events["kind"] != NAME) & (events["kind"] != MEMBER) & (events["kind"] != SYNC)]
        begin_ns = int(timed["t_ns"].min()) if len(timed) else 0
        names = b"".join(
            pid.to_bytes(4, "little") + bytes([0, 0, NAME, 0]) + name.encode()[:15].ljust(16, b"\0")
            for pid, name in self._names.items()
        )
        header = bytearray(self._header)
        header[32:40] = begin_ns.to_bytes(8, "little")
        with tempfile.TemporaryDirectory(prefix="schedlab-top-") as folder:
            kept, records = Path(folder) / "events", Path(folder) / "records.slr"
            kept.write_bytes(bytes(header[:HEADER_BYTES]) + names + events.tobytes())
            converted = convert_events(kept, records)
            known = {
                number: self._names.get(task["pid"], task["name"])
                for number, task in enumerate(converted.tasks, 1)
            }
            return write_trace(read_records(records), path, names=known, form="perfetto")


def _runs(pid: int) -> bool:
    """Whether a task is runnable now; threads are there, too."""
    return (_text(Path(f"/proc/{pid}/stat")) or "").rpartition(")")[2].strip().startswith("R")


def _cpu_times() -> dict[int, tuple[int, int]]:
    """Of each CPU: busy and all clock ticks."""
    found = {}
    for line in (_text(Path("/proc/stat")) or "").splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            ticks = [int(each) for each in fields[:8]]
            found[int(name[3:])] = (sum(ticks[each] for each in _BUSY_COLUMNS), sum(ticks))
    return found


def prometheus_text(top: Top, picture: Picture) -> str:
    """What a Prometheus server scrapes, in its text format (version 0.0.4)."""
    lines: list[str] = []

    def add(name: str, kind: str, help_text: str, samples: list[tuple[str, float | int]]) -> None:
        lines.extend([f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"])
        lines.extend(f"{name}{labels} {value!r}" for labels, value in samples)

    cpus = picture.cpus
    add("schedlab_cpu_busy_ratio", "gauge", "Share of the last interval in which the CPU was busy.",
        [(f'{{cpu="{each.number}"}}', round(each.busy, 6)) for each in cpus])  # fmt: skip
    add("schedlab_run_queue_length", "gauge", "Runnable tasks of the CPU, the running one among them.",
        [(f'{{cpu="{each.number}"}}', each.queue) for each in cpus])  # fmt: skip
    add("schedlab_run_queue_length_mean", "gauge", "Mean of it over the last interval.",
        [(f'{{cpu="{each.number}"}}', round(each.queue_mean, 6)) for each in cpus])  # fmt: skip
    name = "schedlab_wakeup_latency_seconds"
    lines.extend([f"# HELP {name} From the wake-up of a task to its run.", f"# TYPE {name} histogram"])
    sums = np.cumsum(top.counts).tolist()
    bounds = [*(repr(bound / 1e9) for bound in BUCKETS_NS), "+Inf"]
    lines.extend(f'{name}_bucket{{le="{le}"}} {count}' for le, count in zip(bounds, sums, strict=True))
    lines.extend([f"{name}_sum {top.sum_ns / 1e9!r}", f"{name}_count {sums[-1]}"])
    add("schedlab_events_lost_total", "counter", "Events that the kernel had no room for.",
        [("", picture.n_lost)])  # fmt: skip
    ext = picture.sched_ext
    if ext.state is not None:
        policy = ext.name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        add("schedlab_sched_ext_info", "gauge", "The loaded policy and its state.",
            [(f'{{policy="{policy}",state="{ext.state}"}}', 1)])  # fmt: skip
        add("schedlab_sched_ext_events", "gauge", "Counters of sched_ext.",
            [(f'{{event="{event}"}}', value) for event, value in ext.counters])  # fmt: skip
    return "\n".join(lines) + "\n"
