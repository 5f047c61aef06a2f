# SPDX-License-Identifier: MIT
"""Write a run as Perfetto's protobuf: ftrace events, a counter of waiting tasks, notes.

A protobuf message is a row of fields, each a key (its number and kind) and a value:
an integer in groups of 7 bits, or bytes after their length. That is all a writer needs,
so there is no dependency; the tests read the file back with Perfetto's own package.

        Trace: packet 1 -> TracePacket: ftrace_events 1 -> bundle of one CPU: event 2 ...
                                        track_event 11, track_descriptor 60, system_info 45

Invariant: the numbers of fields are those of Perfetto's protos/perfetto/trace.
Read next: switches.py, where the events come from.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..records.file import Records
from ..records.parquet import varint
from .switches import PRIO, STATE_OF_STOP, Note, Switch, Wakeup, linux_events, task_names

#: The Linux whose bits `prev_state` has.
RELEASE = "7.2.0"
#: Events per packet; Perfetto's reader wants packets below 1 MiB.
BUNDLE_EVENTS = 4000
_SEQUENCE_ID = 1
_RUNNABLE_TRACK, _NOTE_TRACK = 1, 2
_TYPE_INSTANT, _TYPE_COUNTER = 3, 4
#: Field of an ftrace event, by its name in Linux.
_SCHED_SWITCH, _SCHED_WAKING, _SCHED_WAKEUP_NEW = 4, 20, 114


def message(fields: Mapping[int, int | str | bytes]) -> bytes:
    """Encode a protobuf message.

    >>> message({1: 150, 2: "ok"}).hex()
    '08960112026f6b'
    >>> message({1: -1}).hex()
    '08ffffffffffffffffff01'
    """
    parts: list[bytes] = []
    for number, value in fields.items():
        if isinstance(value, int):
            parts += (varint(number << 3), varint(value & 0xFFFF_FFFF_FFFF_FFFF))
        else:
            data = value.encode() if isinstance(value, str) else value
            parts += (varint(number << 3 | 2), varint(len(data)), data)
    return b"".join(parts)


class _Packets:
    """The packets of a trace; ftrace events are collected per CPU."""

    def __init__(self) -> None:
        self._packets: list[list[bytes]] = []
        self._bundles: dict[int, list[bytes]] = {}

    def add(self, fields: Mapping[int, int | str | bytes]) -> None:
        """Add a packet that is whole."""
        self._packets.append([message(fields)])

    def add_event(self, cpu: int, t_ns: int, pid: int, kind: int, event: bytes) -> None:
        """Add an ftrace event to the open packet of its CPU."""
        bundle = self._bundles.get(cpu)
        if bundle is None or len(bundle) > BUNDLE_EVENTS:
            bundle = self._bundles[cpu] = [message({1: cpu})]
            self._packets.append(bundle)
        bundle.append(message({2: message({1: t_ns, 2: pid, kind: event})}))

    def add_track_event(self, kind: int, t_ns: int, uuid: int, more: Mapping[int, int | str]) -> None:
        """Add a value or a note to a track."""
        event = message({9: kind, 11: uuid, **more})
        self.add({8: t_ns, 10: _SEQUENCE_ID, 11: event})

    def encoded(self) -> bytes:
        """The trace."""
        whole = (parts[0] if len(parts) == 1 else message({1: b"".join(parts)}) for parts in self._packets)
        return b"".join(message({1: packet}) for packet in whole)


def _switch(names: Mapping[int, str], event: Switch) -> bytes:
    """The fields of `sched_switch`."""
    return message({
        1: task_names(names, event.prev, event.cpu), 2: event.prev, 3: PRIO,
        4: 0 if event.stop is None else STATE_OF_STOP[event.stop][1],
        5: task_names(names, event.next, event.cpu), 6: event.next, 7: PRIO,
    })  # fmt: skip


def _add_wakeup(packets: _Packets, names: Mapping[int, str], event: Wakeup) -> None:
    # Linux announces a new task by sched_wakeup_new alone, but Perfetto begins
    # "runnable" at sched_waking: without it, the wait of an arrival is not shown.
    fields = message({1: task_names(names, event.pid), 2: event.pid, 3: PRIO, 4: 1, 5: event.cpu})
    for kind in (_SCHED_WAKEUP_NEW, _SCHED_WAKING) if event.is_new else (_SCHED_WAKING,):
        packets.add_event(event.cpu, event.t_ns, event.waker, kind, fields)


def _count_change(event: Switch | Wakeup) -> int:
    """How an event changes the number of tasks that wait for a CPU."""
    if isinstance(event, Wakeup):
        return 1
    back = event.stop is not None and STATE_OF_STOP[event.stop][0].startswith("R")
    return int(back) - int(event.next != 0)


def perfetto_trace(records: Records, names: Mapping[int, str]) -> bytes:
    """Encode a run."""
    packets = _Packets()
    # The bits of `prev_state` have changed over time: without a release they are
    # read as before Linux 4.14, where 0x100 was not "preempted". There is no
    # process tree on purpose: a task would be one click further from its states,
    # and the process with pid 2 always counts as Linux's kthreadd.
    packets.add({45: message({1: message({1: "Linux", 3: RELEASE})})})
    tracks: tuple[dict[int, int | str | bytes], ...] = (
        {1: _RUNNABLE_TRACK, 2: "tasks waiting for a CPU", 8: b""},  # 8: it is a counter
        {1: _NOTE_TRACK, 2: "policy notes"},
    )
    for track in tracks:
        packets.add({10: _SEQUENCE_ID, 60: message(track)})
    waiting = 0
    for event in linux_events(records):
        if isinstance(event, Note):
            packets.add_track_event(
                _TYPE_INSTANT, event.t_ns, _NOTE_TRACK, {23: f"note {event.key} = {event.value}"}
            )
            continue
        if isinstance(event, Switch):
            packets.add_event(event.cpu, event.t_ns, event.prev, _SCHED_SWITCH, _switch(names, event))
        else:
            _add_wakeup(packets, names, event)
        change = _count_change(event)
        if change:
            waiting += change
            packets.add_track_event(_TYPE_COUNTER, event.t_ns, _RUNNABLE_TRACK, {30: waiting})
    return packets.encoded()
