# SPDX-License-Identifier: MIT
"""Files of recorded events written by hand: what hosts/linux/record/record.h says."""

from __future__ import annotations

import struct

from schedlab.records.file import Kind

HEADER = struct.Struct("<8sIIIIQQQIIII")
EVENT = struct.Struct("<IHBBQIi")
NAME = struct.Struct("<IHBB16s")
MAGIC = b"SLEVTS\0\1"
(SWITCH, WAKING, WAKEUP, NEW, MIGRATE, FORK, EXIT, EXEC, YIELD, RUNTIME, NAMED, MEMBER, LOST, SYNC, END, CALL, RETURN,
 THREAD, SLICE, COST) = range(1, 21)  # fmt: skip
BLOCKED, DEAD = 1, 0x10
ELSEWHERE = 2
IN_INTERRUPT, IN_SOFTIRQ = 1, 4
TICK_NS = 4_000_000


def header(*, n_cpus=2, begin_ns=1000, is_all=False, depth_min=0, version=1, recorder_pid=0):
    return HEADER.pack(
        MAGIC,
        version,
        HEADER.size,
        EVENT.size,
        n_cpus,
        TICK_NS,
        begin_ns,
        0,
        is_all,
        depth_min,
        recorder_pid,
        0,
    )


def event(kind, t_ns, pid=0, other=0, value=0, *, cpu=0, flags=0):
    return EVENT.pack(pid, cpu, kind, flags, t_ns, other, value)


def named(pid, name, *, cpu=0):
    return NAME.pack(pid, cpu, NAMED, 0, name)


def read(path):
    """Events of a file: pid, CPU, kind, flags, time, other, value."""
    return list(EVENT.iter_unpack(path.read_bytes()[HEADER.size :]))


def write(path, events, **options):
    path.write_bytes(header(**options) + b"".join(events))
    return path


def rows(records, *kinds):
    """Records of some kinds, with the name of each."""
    return [
        (
            Kind(int(e["kind"])).name,
            int(e["t_ns"]),
            int(e["task"]),
            int(e["cpu"]),
            int(e["flags"]),
            int(e["arg"]),
        )
        for e in records.events
        if not kinds or e["kind"] in kinds
    ]
