# SPDX-License-Identifier: MIT
"""What `schedlab top` shows: CPUs, waiting tasks, wake-up latencies, the loaded policy.

    recorder --sums (live.py) -\
    /proc/stat (busy) ----------+-> Top.look() -> Picture -> show/top.py, or Prometheus
    /sys/kernel/sched_ext -----/

Invariant: the last events are kept for `save_trace` within a fixed number of bytes and of seconds.
Read next: live.py.
"""

from __future__ import annotations

import bisect
import ctypes
import itertools
import os
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..hosts.linux.recorder import Recorder, convert_events
from ..plots.trace import write_trace
from ..records.file import read_records
from .live import Sums, Values, quantile, read_sums

#: Of the wake-ups and events that are kept: how old, and how many bytes.
KEPT_SECONDS, KEPT_BYTES = 10.0, 64 << 20
#: Upper bounds of the histogram's buckets, in ns: powers of two from 1 us to about 1 s.
BUCKETS_NS = [1000 << power for power in range(21)]
#: An event of the recorder's file, and of enum event_kind (hosts/linux/record/record.h).
_EVENT = np.dtype([("pid", "<u4"), ("cpu", "<u2"), ("kind", "u1"), ("flags", "u1"), ("t_ns", "<u8"),
                   ("other", "<u4"), ("value", "<i4")])  # fmt: skip
_HEADER_BYTES, _NAME, _MEMBER, _SYNC = 64, 11, 12, 14
#: fallocate(2): FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE.
_PUNCH = 3
_LIBC = ctypes.CDLL(None, use_errno=True)
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


class KeptEvents:
    """The last events, in memory that is given back."""

    def __init__(self) -> None:
        self._file = os.memfd_create("schedlab-top")
        self._begin = _HEADER_BYTES
        self._ends: deque[tuple[float, int]] = deque()

    @property
    def path(self) -> Path:
        """Where the recorder writes them."""
        return Path(f"/proc/{os.getpid()}/fd/{self._file}")

    def close(self) -> None:
        """Give all of it back."""
        os.close(self._file)

    def drop_old(self) -> None:
        """Keep what is young enough and not too much."""
        now, end = time.monotonic(), os.fstat(self._file).st_size
        self._ends.append((now, end))
        while now - self._ends[0][0] > KEPT_SECONDS or end - self._begin > KEPT_BYTES:
            self._begin = max(self._ends.popleft()[1], self._begin)
            if not self._ends:
                break
        _LIBC.fallocate(
            self._file, _PUNCH, ctypes.c_long(_HEADER_BYTES), ctypes.c_long(self._begin - _HEADER_BYTES)
        )

    def read(self) -> tuple[bytes, np.ndarray]:
        """The file's header, and whole events."""
        size = os.fstat(self._file).st_size - self._begin
        data = os.pread(self._file, size - size % _EVENT.itemsize, self._begin)
        return os.pread(self._file, _HEADER_BYTES, 0), np.frombuffer(data, _EVENT)


class Top:
    """Watches all tasks of this machine.

    `counts` are wake-ups since the start by bucket of latency, the last of what is longer; `sum_ns` is the
    sum of these latencies.
    """

    def __init__(self) -> None:
        self._kept = KeptEvents()
        try:
            self._recorder = Recorder(has_sums=True)
        except BaseException:
            self._kept.close()
            raise
        self._latencies: deque[tuple[float, Values]] = deque()
        self._recent = Values()
        self._stat: dict[int, tuple[int, int]] = {}
        self._cpu_ns = (time.monotonic_ns(), 0)
        self.counts = [0] * (len(BUCKETS_NS) + 1)
        self.sum_ns = 0

    def __enter__(self) -> Top:
        self._recorder.record_all(self._kept.path)
        self._stat = _cpu_times()
        self._cpu_ns = (time.monotonic_ns(), self._used_ns())
        return self

    def __exit__(self, *_: object) -> None:
        self._recorder.close()
        self._kept.close()

    def look(self) -> Picture:
        """What was since the last look."""
        said = self._recorder.sums()
        assert said, "without a limit it waits"
        sums, now = read_sums(said), time.monotonic()
        self._kept.drop_old()
        self.counts = [a + b for a, b in zip(self.counts, _by_bucket(sums.latencies), strict=True)]
        self.sum_ns += sums.sum_ns
        self._latencies.append((now, sums.latencies))
        self._recent.update(sums.latencies)
        while now - self._latencies[0][0] > KEPT_SECONDS:
            self._recent -= self._latencies.popleft()[1]
        p50, p99 = (quantile(self._recent, share) if self._recent else None for share in (0.5, 0.99))
        waiters = [
            (pid, _clean(name), ns / sums.window_ns) for pid, name, ns in sums.waiters if sums.window_ns
        ]
        return Picture(
            self._cpus(sums),
            _by_bucket(self._recent),
            p50,
            p99,
            [each for each in waiters if each[2] > 1 / 2000],
            read_sched_ext(),
            sums.n_lost,
            self._cost(),
        )

    def _cpus(self, sums: Sums) -> list[Cpu]:
        before, self._stat = self._stat, _cpu_times()
        cpus = []
        for number, (busy, whole) in sorted(self._stat.items()):
            old = before.get(number, (busy, whole))
            share = (busy - old[0]) / max(whole - old[1], 1)
            pid, name, queue, waits_ns = sums.cpus.get(number, (0, "", 0, 0))
            waits = waits_ns / sums.window_ns if sums.window_ns else 0.0
            cpus.append(Cpu(number, share, pid, _clean(name), queue, share + waits))
        return cpus

    def _used_ns(self) -> int:
        """CPU time of this process and of the recorder."""
        fields = (_text(Path(f"/proc/{self._recorder.pid}/schedstat")) or "0").split()
        return time.process_time_ns() + int(fields[0])

    def _cost(self) -> float:
        """Share of one CPU that watching took since the last look."""
        then, used = self._cpu_ns
        self._cpu_ns = (time.monotonic_ns(), self._used_ns())
        return (self._cpu_ns[1] - used) / max(self._cpu_ns[0] - then, 1)

    def save_trace(self, path: Path) -> int:
        """Write the events of the last seconds for the Perfetto viewer; the file's bytes."""
        self._recorder.put_names()
        head, events = self._kept.read()
        names = {
            int(event["pid"]): _clean(event.tobytes()[8:].split(b"\0")[0].decode(errors="replace"))
            for event in events[events["kind"] == _NAME]
        }
        timed = events[~np.isin(events["kind"], (_NAME, _MEMBER, _SYNC))]
        header = bytearray(head)
        header[32:40] = (int(timed["t_ns"].min()) if len(timed) else 0).to_bytes(8, "little")
        with tempfile.TemporaryDirectory(prefix="schedlab-top-") as folder:
            kept, records = Path(folder) / "events", Path(folder) / "records.slr"
            kept.write_bytes(bytes(header) + events.tobytes())
            converted = convert_events(kept, records)
            known = {
                number: names.get(task["pid"], task["name"]) for number, task in enumerate(converted.tasks, 1)
            }
            return write_trace(read_records(records), path, names=known, form="perfetto")


def _by_bucket(values: Values) -> list[int]:
    """How many are in each bucket; the recorder keeps to their bounds."""
    counts = [0] * (len(BUCKETS_NS) + 1)
    for value, count in values.items():
        counts[bisect.bisect_left(BUCKETS_NS, value)] += count
    return counts


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
    sums = list(itertools.accumulate(top.counts))
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
