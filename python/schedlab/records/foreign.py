# SPDX-License-Identifier: MIT
"""Traces of other tools: which tool's a file is, how its events are had, and what it lacks.

        text of ftrace, trace-cmd, perf; systrace's page    read as it is
        perf.data, trace.dat                                printed by their own tool
        Perfetto's protobuf                                 read as it is, or unpacked
        any of them, by gzip                                unpacked
        events.slev of a recorder                           read as it is

hosts/linux/import reads all of them, and writes what a recorder writes.

Must stay true: a file is known by its content, never by its name; what a trace does not
have is said, with what it costs.
Read next: hosts/linux/import/import.h; measure/recording.py.
"""

from __future__ import annotations

import gzip
import io
import shlex
import shutil
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..errors import RecordError, UnavailableError
from .parquet import varint

EVENTS_MAGIC = b"SLEVTS\0\1"
REMEDY = (
    "record with: trace-cmd record -C mono -e sched_switch -e sched_waking -e sched_wakeup -e sched_wakeup_new "
    "-e sched_migrate_task -e sched_process_fork -e sched_process_exec -e sched_process_exit"
)
GZIP_MAGIC = b"\x1f\x8b"
_PERF = ("perf", "script", "-f", "--ns", "--show-lost-events", "-F", "comm,tid,cpu,time,event,trace", "-i")
#: First bytes of a tool's own file; what prints it, and the package of Debian that has it. perf's are the same
#: word, read by a machine of the other byte order.
_TOOLS = {
    b"PERFILE2": (_PERF, "linux-perf"),
    b"2ELIFREP": (_PERF, "linux-perf"),
    b"\x17\x08\x44tracing": (("trace-cmd", "report", "-t", "-i"), "trace-cmd"),
}
#: Packets of a Perfetto trace that are looked at to know whether it is compressed.
_PACKETS_LOOKED_AT = 64
_COMPRESSED, _ZSTD = 50, 133
_CHUNK_BYTES = 1 << 20
#: Of a packet; what claims more is damaged.
_PACKET_BYTES_MAX = 1 << 30


@dataclass(frozen=True)
class Source:
    """A trace, and how to read it."""

    file: Path  #: Where it is.
    form: str  #: "text", "perfetto" or "events": what is read, once a tool has printed it or it is unpacked.
    command: tuple[str, ...] = ()  #: Prints it to standard output; empty: it is read as it is.
    #: `is_gzip`, `is_packed`: The whole file is compressed; packets within it are.
    is_gzip: bool = False
    is_packed: bool = False

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.file} ({' '.join(self.command[:2])})" if self.command else str(self.file)

    def chunks(self) -> Iterator[bytes]:
        """The trace, unpacked."""
        with self.open() as file:
            if self.is_packed:
                yield from _unpacked(file, self.file)
                return
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk

    def open(self) -> IO[bytes]:
        """The file, without what it is wrapped in."""
        return gzip.open(self.file) if self.is_gzip else open(self.file, "rb")  # type: ignore[return-value]


def find_source(file: Path) -> Source:
    """Find out which tool's a file is.

    RecordError: it cannot be read; UnavailableError: the program that prints it is not installed.
    """
    try:
        with open(file, "rb") as raw:
            is_gzip = raw.read(2) == GZIP_MAGIC
        with Source(file, "text", is_gzip=is_gzip).open() as opened:
            head = opened.read(16)
            if head.startswith(EVENTS_MAGIC):
                source = Source(file, "events", is_gzip=is_gzip)
            elif tool := next((tool for mark, tool in _TOOLS.items() if head.startswith(mark)), None):
                source = Source(file, "text", _printer(file, *tool), is_gzip)
            else:
                opened.seek(0)
                kinds = _packet_kinds(opened)
                form = "text" if kinds is None else "perfetto"
                source = Source(file, form, (), is_gzip, bool(kinds and kinds & {_COMPRESSED, _ZSTD}))
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if is_gzip and (source.command or source.form == "events"):
        raise RecordError(
            f"{file}: is compressed; import what `gunzip -k {shlex.quote(str(file))}` makes of it"
        )
    return source


def _printer(file: Path, command: tuple[str, ...], package: str) -> tuple[str, ...]:
    if shutil.which(command[0]) is None:
        raise UnavailableError(
            f"{file}: is {command[0]}'s own file, and {command[0]} is not installed: apt-get install {package}; "
            f"or where it is: {' '.join(command)} {shlex.quote(file.name)} > trace.txt, and import that"
        )
    return (*command, str(file))


def _varint(file: IO[bytes]) -> int | None:
    """A number of protobuf; None at the end of the file, or if it is none."""
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            return None
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    return None


def _packet_kinds(file: IO[bytes]) -> set[int] | None:
    """Which fields the first packets of a Perfetto trace begin with; None: it is no such trace."""
    kinds: set[int] = set()
    for number in range(_PACKETS_LOOKED_AT):
        if (first := file.read(1)) != b"\n":
            # After some packets it is one, if damaged; a text may begin like the first.
            return kinds if kinds and (not first or number > 2) else None
        length = _varint(file)
        if length is None:
            return kinds or None
        start = file.tell()
        key = _varint(file) if length else 0
        if key is None:
            return kinds or None
        if length and (not key >> 3 or key & 7 not in (0, 1, 2, 5)):
            return None
        kinds.add(key >> 3)
        file.seek(start + length)
    return kinds


def _unpacked(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """The packets of a Perfetto trace, those within compressed ones among them."""
    while mark := file.read(1):
        length = _varint(file) if mark == b"\n" else None
        if length is None:  # who reads packets says what is wrong
            yield mark + file.read(_CHUNK_BYTES)
            return
        packet = file.read(min(length, _PACKET_BYTES_MAX))
        if packet.startswith(b"\xaa\x08"):
            raise RecordError(
                f"{path}: its packets are compressed by zstd, which is not read; unpack it first: "
                f"traceconv decompress_packets {shlex.quote(str(path))} trace.pftrace"
            )
        if not packet.startswith(b"\x92\x03") or len(packet) < length:
            yield b"\n" + varint(length) + packet
            continue
        inside = io.BytesIO(packet[2:])
        try:
            if _varint(inside) is None:
                raise zlib.error("a compressed packet without its length")
            yield zlib.decompress(inside.read())
        except zlib.error as error:
            raise RecordError(f"{path}: at byte {file.tell() - length}: {error}; it is damaged") from error


def find_missing(found: Mapping[str, Any]) -> list[str]:
    """Say what a trace does not have, and what that costs.

    A sentence each, from the answer of `schedlab-record import`; none where the trace has all.
    """
    events = found["events"]
    lines = []
    if not events["sched_waking"] + events["sched_wakeup"]:
        lines.append(
            "no sched_waking: when tasks became runnable and by whom is unknown, so there are no wake-up latencies, and "
            "a replay's waits are sleeps of the recorded length"
        )
    elif not events["sched_waking"]:
        lines.append(
            "no sched_waking, only sched_wakeup: a wake-up by another CPU begins late, and its waker is unknown "
            "or is the task that was interrupted"
        )
    if events["sched_waking"] + events["sched_wakeup"] and not found.get("has_flags", True):
        lines.append(
            "no flags of interrupts (perf does not print them): the task that a timer or a device interrupted "
            "counts as the waker, and a replay lets it wake"
        )
    if not events["sched_process_fork"]:
        lines.append(
            "no sched_process_fork: which task started which is unknown; in a replay tasks arrive by themselves"
        )
    if not events["sched_migrate_task"]:
        lines.append("no sched_migrate_task: a migration is seen only when the task runs on the other CPU")
    for cpu, n_chosen in found["silent_cpus"]:
        lines.append(
            f"no sched_switch of CPU {cpu}, for which {n_chosen:,} wake-ups were: what ran there is not in the trace, "
            "and those tasks seem to wait"
        )
    if found["begins_late_ns"]:
        lines.append(
            f"the first {found['begins_late_ns'] / 1e9:.6f} s are left out, since events of a CPU were overwritten until then"
        )
    if found.get("unknown_losses"):
        lines.append(
            f"events lost at {found['unknown_losses']:,} places, each counted as one: how many is not in the trace"
        )
    if found.get("is_cut"):
        lines.append("the trace ends within an event, which is left out")
    return lines
