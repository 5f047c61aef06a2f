# SPDX-License-Identifier: MIT
"""Read, check and write record files: what happened, as include/schedlab/record.h has it.

The raw file is canonical: its hash identifies a run, and every number is
computed from it. Parquet is derived, for people's tools.

Must stay true: a file that `read_records` accepts has known kinds, CPUs in
range, times that never go backward and the count that its END record promises.
Whether the events make *sense* is the business of metrics/consistency.py.
Read next: metrics/timeline.py, which orders the events by task and by CPU.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import RecordError
from .parquet import Column, table

if TYPE_CHECKING:
    import polars as pl

MAGIC = b"SLREC\0\0\1"
VERSION = 1

#: struct sl_record_header, 64 bytes.
HEADER_DTYPE = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("header_bytes", "<u4"),
        ("record_bytes", "<u4"),
        ("nr_cpus", "<u4"),
        ("tick_ns", "<u8"),
        ("reserved", "<u8", (4,)),
    ]
)

#: struct sl_record, 24 bytes.
RECORD_DTYPE = np.dtype(
    [("t_ns", "<u8"), ("task", "<u4"), ("cpu", "<u2"), ("kind", "u1"), ("flags", "u1"), ("arg", "<u8")]
)

#: Records checked at a time, so that checking needs little memory beside the map.
CHUNK = 1 << 20
#: Smaller files are read whole, which takes less time than a map.
MAPPED_BYTES_MIN = 1 << 20


class Kind(IntEnum):
    """Kinds of record (`enum sl_record_kind`)."""

    ARRIVE = 1
    WAKE = 2
    RUN = 3
    STOP = 4
    MIGRATE = 5
    ENQUEUE = 6
    NOTE = 7
    ATTR = 8
    OVERHEAD = 9
    LOST = 10
    CALL = 11
    RETURN = 12
    SPEED = 13
    END = 255


class Call(IntEnum):
    """System calls of Linux by which tasks wait for each other (`enum sl_call`), in the flags of a CALL."""

    READ = 1
    WRITE = 2
    POLL = 3
    CONNECT = 4
    CLOSE = 5
    FUTEX_WAIT = 6
    FUTEX_WAKE = 7


class Stop(IntEnum):
    """Why a task stopped running (`enum sl_stop`), in the flags of a STOP."""

    PREEMPTED = 0
    YIELDED = 1
    BLOCKED = 2
    EXITED = 3
    HORIZON = 4


class Overhead(IntEnum):
    """What the time went to (`enum sl_overhead`), in the flags of an OVERHEAD."""

    SWITCH = 0
    MIGRATE = 1
    TICK = 2
    WAKEUP = 3
    STOLEN = 4
    USER_HALF = 5


def damaged(path: str | os.PathLike[str], offset_bytes: int, problem: str) -> RecordError:
    """Make the error that says what is wrong in a record file, and where."""
    error = RecordError(f"{path}: at byte {int(offset_bytes)}: {problem}")
    error.offset_bytes = int(offset_bytes)
    return error


@dataclass(frozen=True)
class Records:
    """One checked record file."""

    #: RECORD_DTYPE, shape (n_records,): all records but END, in file order; times in nanoseconds. A read-only
    #: memory map when it comes from a file.
    events: np.ndarray = field(repr=False)
    n_cpus: int  #: CPUs of the run.
    tick_ns: int  #: Time between ticks in nanoseconds; 0 means no tick.
    end_ns: int  #: When the run ended, in nanoseconds since it began.
    n_lost: int  #: Records that the host could not write.
    path: str = ""  #: Where it was read from; used in messages only.

    def until(self, t_ns: int) -> Records:
        """The same as if the run had ended at that time: what runs then is stopped, as by a horizon."""
        n = np.searchsorted(self.events["t_ns"], t_ns, side="right")
        events, end_ns = self.events[:n], min(t_ns, self.end_ns)
        stops = []
        for cpu in range(self.n_cpus):
            here = events[events["cpu"] == cpu]
            at = np.flatnonzero((here["kind"] == Kind.RUN) | (here["kind"] == Kind.STOP))
            if len(at) and here["kind"][at[-1]] == Kind.RUN:
                begun, later = here[at[-1]], here[at[-1] :]
                overhead_ns = int(later["arg"][later["kind"] == Kind.OVERHEAD].sum())
                ran_ns = max(0, end_ns - int(begun["t_ns"]) - overhead_ns)
                stops.append((end_ns, begun["task"], cpu, Kind.STOP, Stop.HORIZON, ran_ns))
        return replace(self, events=np.append(events, np.array(stops, RECORD_DTYPE)), end_ns=end_ns)


def read_records(path: str | os.PathLike[str]) -> Records:
    """Open a record file and check its form."""
    path = Path(path)
    header = _read_header(path)
    events = _map_records(path)
    n = len(events) - 1
    for start in range(0, len(events), CHUNK):
        _check_chunk(path, events, start, int(header["nr_cpus"]))
    end = events[n]
    if end["arg"] != n:
        raise damaged(
            path,
            _offset(n),
            f"END promises {int(end['arg'])} records but {n} precede it; the file was "
            "changed after it was written: run again",
        )
    body = events[:n]
    lost = body["arg"][body["kind"] == Kind.LOST]
    return Records(
        events=body,
        n_cpus=int(header["nr_cpus"]),
        tick_ns=int(header["tick_ns"]),
        end_ns=int(end["t_ns"]),
        n_lost=int(lost.sum()),
        path=str(path),
    )


def _read_header(path: Path) -> np.void:
    """Read and check the first 64 bytes."""
    try:
        with open(path, "rb") as file:
            raw = file.read(HEADER_DTYPE.itemsize)
    except OSError as error:
        raise damaged(path, 0, f"cannot be read: {error.strerror}") from error
    if raw[: len(MAGIC)] != MAGIC[: len(raw)] or not raw:
        raise damaged(path, 0, "not a schedlab record file (the magic number is missing)")
    if len(raw) < HEADER_DTYPE.itemsize:
        raise damaged(path, len(raw), f"the header is cut short: {len(raw)} of 64 bytes")
    header: np.void = np.frombuffer(raw, HEADER_DTYPE)[0]
    expected = {
        "version": (8, VERSION),
        "header_bytes": (12, HEADER_DTYPE.itemsize),
        "record_bytes": (16, RECORD_DTYPE.itemsize),
    }
    for name, (offset, value) in expected.items():
        if header[name] != value:
            raise damaged(path, offset, f"{name} is {int(header[name])}, but this schedlab reads {value}")
    if not 1 <= header["nr_cpus"] <= 65536:
        raise damaged(path, 20, f"nr_cpus is {int(header['nr_cpus'])}, not 1 to 65536")
    return header


def _map_records(path: Path) -> np.ndarray:
    """Read or map what follows the header; at least the END record must be whole."""
    body_bytes = path.stat().st_size - HEADER_DTYPE.itemsize
    whole, rest = divmod(body_bytes, RECORD_DTYPE.itemsize)
    if rest:
        raise damaged(
            path,
            _offset(whole),
            f"the last record is cut short: {rest} of {RECORD_DTYPE.itemsize} bytes; the "
            "host was stopped while it wrote: run again",
        )
    if whole == 0:
        raise damaged(path, HEADER_DTYPE.itemsize, "no record follows the header, not even END: run again")
    if body_bytes < MAPPED_BYTES_MIN:
        events = np.fromfile(path, RECORD_DTYPE, whole, offset=HEADER_DTYPE.itemsize)
        events.flags.writeable = False
        return events
    return np.memmap(path, RECORD_DTYPE, mode="r", offset=HEADER_DTYPE.itemsize, shape=(whole,))


def release(events: np.ndarray) -> None:
    """Take the pages of mapped records out of this process; where they are needed again, they are read again."""
    mapped = getattr(events, "_mmap", None)
    if mapped is not None:
        mapped.madvise(mmap.MADV_DONTNEED)


_KNOWN = np.zeros(256, bool)
_KNOWN[[kind.value for kind in Kind]] = True
#: Kinds that speak of a task and so must name one.
_OF_TASK = np.zeros(256, bool)
_OF_TASK[[Kind.ARRIVE, Kind.WAKE, Kind.RUN, Kind.STOP, Kind.MIGRATE, Kind.ENQUEUE]] = True


def _check_chunk(path: Path, events: np.ndarray, start: int, n_cpus: int) -> None:
    """Check the form of up to CHUNK records; the last record of the file must be END."""
    chunk = events[start : start + CHUNK]
    kind = np.ascontiguousarray(chunk["kind"])
    t_ns = np.ascontiguousarray(chunk["t_ns"])
    last = start + len(chunk) == len(events)
    # The record before the chunk takes part in the comparison of times.
    before = events["t_ns"][start - 1 : start] if start else t_ns[:1]
    backward = t_ns < np.concatenate((before, t_ns[:-1]))
    flags = chunk["flags"]
    is_end = kind == Kind.END
    expected_end = np.zeros(len(chunk), bool)
    expected_end[-1] = last
    problems: tuple[tuple[np.ndarray, Callable[[np.void], str]], ...] = (
        (
            ~_KNOWN[kind],
            lambda r: (
                f"unknown kind {r['kind']}; known are " + ", ".join(f"{k.value} {k.name}" for k in Kind)
            ),
        ),
        (is_end & ~expected_end, lambda r: "END, but records follow it"),
        (
            expected_end & ~is_end,
            lambda r: (
                f"the last record is {Kind(int(r['kind'])).name}, "
                "not END: the file is truncated, or the host was stopped: run again"
            ),
        ),
        (t_ns >> np.uint64(63) != 0, lambda r: f"time {int(r['t_ns'])} ns is beyond 2**63"),
        (backward, lambda r: f"time goes backward, to {int(r['t_ns'])} ns"),
        (chunk["cpu"] >= n_cpus, lambda r: f"CPU {r['cpu']} of a run with {n_cpus}"),
        (
            _OF_TASK[kind] & (chunk["task"] == 0),
            lambda r: f"{Kind(int(r['kind'])).name} of task 0, which is no task",
        ),
        ((kind == Kind.STOP) & (flags > max(Stop)), lambda r: f"STOP for unknown reason {r['flags']}"),
        (
            (kind == Kind.OVERHEAD) & (flags > max(Overhead)),
            lambda r: f"OVERHEAD of unknown kind {r['flags']}",
        ),
    )
    first = None
    for bad, describe in problems:
        if bad.any():
            row = int(bad.argmax())
            if first is None or row < first[0]:
                first = (row, describe)
    if first is not None:
        row, describe = first
        raise damaged(path, _offset(start + row), describe(chunk[row]))


def _offset(row: int) -> int:
    """Byte offset of a record in its file."""
    return HEADER_DTYPE.itemsize + row * RECORD_DTYPE.itemsize


def write_records(
    path: str | os.PathLike[str],
    events: np.ndarray | Iterable[Iterable[int]],
    *,
    n_cpus: int,
    tick_ns: int = 0,
    end_ns: int | None = None,
) -> None:
    """Write a record file; what hosts do, for tests and for importers.

    Nothing is checked, so that tests can write files that are wrong.
    """
    if not isinstance(events, np.ndarray):
        events = np.array([tuple(event) for event in events], RECORD_DTYPE)
    if end_ns is None:
        end_ns = int(events["t_ns"][-1]) if len(events) else 0
    header = np.zeros(1, HEADER_DTYPE)
    header["magic"] = MAGIC
    header["version"] = VERSION
    header["header_bytes"] = HEADER_DTYPE.itemsize
    header["record_bytes"] = RECORD_DTYPE.itemsize
    header["nr_cpus"] = n_cpus
    header["tick_ns"] = tick_ns
    end = np.array([(end_ns, 0, 0, Kind.END, 0, len(events))], RECORD_DTYPE)
    with open(path, "wb") as file:
        file.write(header.tobytes())
        file.write(np.ascontiguousarray(events).tobytes())
        file.write(end.tobytes())


def hash_file(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_columns(records: Records) -> dict[str, Column]:
    """The records as columns for people's tools."""
    columns = {name: Column(np.ascontiguousarray(records.events[name])) for name in RECORD_DTYPE.fields or ()}
    return columns | {"kind": Column(_POSITION[records.events["kind"]], names=tuple(Kind.__members__))}


#: Of each kind's number, its place in `Kind`.
_POSITION = np.zeros(256, np.uint8)
_POSITION[[kind.value for kind in Kind]] = np.arange(len(Kind))


def records_table(records: Records) -> pl.DataFrame:
    """The records as a table; see `record_columns`."""
    return table(record_columns(records))
