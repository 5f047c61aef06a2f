# SPDX-License-Identifier: MIT
"""Find in recorded system calls which write each read got its bytes from.

A read that found something did not block, so no wake-up tells what it waited for;
but it could not have been earlier than the write of what it read. Calls name
descriptors, and not what these are open on, so that is found out from wake-ups:

    blocked in read(5), woken inside another task's write(3)    3 and 5 are one channel
    blocked in poll, woken inside write(3); then read(5)        so they are, if mostly so

The bytes of a channel are read in the order in which they were written. What a
task reads comes from an inbox of its own: one per channel, or a single one where it
polls, since then it serves what comes first.

Invariant: each send stands before its recv in the records, so a replay cannot
wait forever.
Read next: replay.py, which puts these operations among the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..records.file import Call, Kind, Records, Stop

#: A descriptor of a process, and how often that number was closed before.
Node = tuple[int, int, int]
#: Which part of a reader's wake-ups out of polls has to point at a writer.
SHARE_MIN = 0.2
#: A channel holds a page, as a pipe does at least, and a writer that waits for room waits for as much.
PAGE = 4096


@dataclass
class Op:
    """A send or a recv that a replay does at a record."""

    pid: int
    verb: str
    inbox: Any
    n_bytes: int


@dataclass
class Causes:
    """What recorded system calls add to a replay."""

    ops: dict[int, list[Op]] = field(default_factory=dict)  #: By row of the records.
    #: Rows of wake-ups that end a block which one of these operations has.
    absorbed: set[int] = field(default_factory=set)
    #: Bytes that an inbox holds, where its writers were seen to wait for room.
    capacity: dict[Any, int] = field(default_factory=dict)


@dataclass
class _Made:
    """One read or write."""

    pid: int
    kind: int
    node: Node
    row: int
    #: Where its operation stands: the call, or the first wake-up that it caused or that ended it.
    at: int
    end: int = 0
    result: int = 0
    #: Wake-ups of its task that it explains, and those that it caused.
    wakes: list[int] = field(default_factory=list)
    woken: list[int] = field(default_factory=list)
    is_polled: bool = False
    has_been_empty: bool = False
    left: int = 0
    n_parted: int = 0  #: Of a write: bytes that have their place among the operations.


@dataclass
class _State:
    """What is known of a task while the records are read."""

    call: int = 0
    made: _Made | None = None
    #: The last block in a poll: its wake-up, and the descriptor that the waker wrote to.
    poll_wake: int | None = None
    poll_node: Node | None = None


class _Calls:
    """Reads the records once: all reads and writes, and which descriptors belong together."""

    def __init__(self, records: Records):
        self.states: dict[int, _State] = defaultdict(_State)
        self.closed: Counter[tuple[int, int]] = Counter()
        #: Reads at the row of their return, writes at that of their call, and blocks of readers.
        self.steps: list[tuple[int, _Made]] = []
        self.strong: Counter[tuple[Node, Node]] = Counter()
        self.weak: Counter[tuple[Node, Node]] = Counter()
        handlers = {Kind.CALL: self.call, Kind.RETURN: self.end, Kind.WAKE: self.wake,
                    Kind.STOP: self.stop, Kind.ARRIVE: self.arrive}  # fmt: skip
        for row, (_, pid, _, kind, flags, arg) in enumerate(records.events.tolist()):
            handler = handlers.get(kind)
            if handler is not None:
                handler(row, pid, flags, arg)
        self.steps.sort(key=lambda step: step[0])

    def call(self, row: int, pid: int, call: int, arg: int) -> None:
        state, descriptor = self.states[pid], (arg >> 32, arg & 0xFFFFFFFF)
        if call == Call.CLOSE:
            self.closed[descriptor] += 1
            return
        state.call, state.made = call, None
        if call in (Call.READ, Call.WRITE):
            node = (*descriptor, self.closed[descriptor])
            state.made = _Made(pid, call, node, row, row)

    def end(self, row: int, pid: int, _call: int, arg: int) -> None:
        state = self.states[pid]
        made, state.made, state.call = state.made, None, 0
        if made is None:
            return
        made.end, made.result = row, arg if arg < 1 << 63 else arg - (1 << 64)
        if made.kind == Call.WRITE:
            made.left = max(made.result, 0)
            self.steps += [(made.row, made), (row, made)]
            if made.left:
                state.poll_wake = None
            return
        if made.result > 0 and state.poll_wake is not None:
            made.at, made.is_polled = state.poll_wake, True
            made.wakes.append(state.poll_wake)
            if state.poll_node is not None:
                self.weak[state.poll_node, made.node] += 1
            state.poll_wake = None
        elif made.woken:
            state.poll_wake = None
        self.steps.append((row, made))

    def wake(self, row: int, pid: int, _flags: int, by_pid: int) -> None:
        state, by = self.states[pid], self.states[by_pid] if by_pid else _State()
        if by.made is None or by.made.kind == Call.WRITE:
            by.poll_wake = None  # what it reads from now on may be the answer
        if by.made is not None:
            by.made.woken.append(row)
            if by.made.kind == Call.WRITE:
                by.made.at = by.made.woken[0]
        if state.call == Call.POLL:
            state.poll_wake = row
            state.poll_node = by.made.node if by.made is not None and by.made.kind == Call.WRITE else None
        made = state.made
        if made is None:
            return
        if made.kind == Call.READ and not made.wakes:
            made.at = row
        made.wakes.append(row)
        if made.kind == Call.WRITE:
            self.steps.append((row, made))
        if by.made is not None and by.made.kind != made.kind:
            ends = (by.made.node, made.node) if made.kind == Call.READ else (made.node, by.made.node)
            self.strong[ends] += 1

    def stop(self, row: int, pid: int, flags: int, _ran_ns: int) -> None:
        if flags != Stop.BLOCKED:
            return
        state = self.states[pid]
        state.poll_wake = None
        if state.made is not None and state.made.kind == Call.READ:
            self.steps.append((row, state.made))

    def arrive(self, _row: int, _pid: int, _flags: int, by_pid: int) -> None:
        self.states[by_pid].poll_wake = None

    def channels(self) -> dict[tuple[int, Node], int]:
        """The channel of each end: (WRITE, node) and (READ, node)."""
        votes: Counter[Node] = Counter()
        for (_, reader), number in (*self.strong.items(), *self.weak.items()):
            votes[reader] += number
        edges = set(self.strong)
        edges |= {edge for edge, number in self.weak.items() if number >= SHARE_MIN * votes[edge[1]]}
        # A connection goes both ways; nothing is written to the end of a pipe that is read.
        edges |= {(reader, writer) for writer, reader in edges}
        ends = sorted(
            {(kind, node) for edge in edges for kind, node in zip((Call.WRITE, Call.READ), edge, strict=True)}
        )
        root: dict[tuple[int, Node], int] = {end: number for number, end in enumerate(ends)}
        members: dict[int, list[tuple[int, Node]]] = {number: [end] for number, end in enumerate(ends)}
        for writer, reader in sorted(edges):
            kept, merged = root[Call.WRITE, writer], root[Call.READ, reader]
            if kept != merged:
                for end in members.pop(merged):
                    root[end] = kept
                    members[kept].append(end)
        return root


def find_causes(records: Records) -> Causes:
    """Find what the reads of a recording waited for, or would have."""
    found = Causes()
    if not (records.events["kind"] == Kind.CALL).any():
        return found
    calls = _Calls(records)
    channel_of = calls.channels()
    polls = {made.pid for _, made in calls.steps if made.is_polled}
    matched = _match(calls, channel_of, polls)
    bounded = _bounds(calls, channel_of, matched)
    for made, inbox, pieces in matched:
        found.absorbed.update(made.wakes)
        _put(found, made.at, Op(made.pid, "recv", inbox, sum(n for _, n in pieces)))
        for write, n_bytes in pieces:
            channel = channel_of[Call.WRITE, write.node]
            if channel not in bounded:
                _put(found, write.at, Op(write.pid, "send", inbox, n_bytes))
                continue
            for row, part in _parts(write, n_bytes, made.at, bounded[channel][1]):
                found.ops.setdefault(row, []).insert(0, Op(write.pid, "send", inbox, part))
    found.capacity = {inbox: capacity for inbox, capacity in bounded.values()}
    for _, made in calls.steps:
        if made.kind == Call.WRITE and channel_of.get((Call.WRITE, made.node)) in bounded:
            # Whatever else it woke would wait for the room that it waits for, and found nothing.
            found.absorbed.update(made.wakes, made.woken)
    return found


def _put(found: Causes, row: int, op: Op) -> None:
    """Note an operation; what one call sends to one inbox is one send, and it stands before a recv."""
    ops = found.ops.setdefault(row, [])
    for other in ops:
        if (other.pid, other.verb, other.inbox) == (op.pid, op.verb, op.inbox):
            other.n_bytes += op.n_bytes
            return
    ops.insert(0 if op.verb == "send" else len(ops), op)


def _parts(write: _Made, n_bytes: int, read_at: int, capacity: int) -> Iterator[tuple[int, int]]:
    """Pages of what is read of a write to a channel with a bound, each with the row at which it is written.

    The first fill the channel; the others follow as the writer gets the CPU again, a page of room being enough for that.
    """
    steps = [write.at, *write.wakes]
    n_later = max(write.result - capacity, 1)
    while n_bytes:
        part = min(n_bytes, PAGE)
        beyond = write.n_parted - capacity
        step = 0 if beyond < 0 else 1 + beyond * len(write.wakes) // n_later
        step = min(step, bisect_right(steps, read_at) - 1, len(steps) - 1)
        write.n_parted += part
        n_bytes -= part
        yield steps[max(step, 0)], part


def _match(
    calls: _Calls, channel_of: dict[tuple[int, Node], int], polls: set[int]
) -> list[tuple[_Made, Any, list[tuple[_Made, int]]]]:
    """The reads that got bytes, each with its inbox and the writes that these are of."""
    queues: dict[int, deque[_Made]] = defaultdict(deque)
    matched = []
    for row, made in calls.steps:
        channel = channel_of.get((made.kind, made.node))
        if channel is None:
            continue
        queue = queues[channel]
        if made.kind == Call.WRITE:
            if row == made.row:
                queue.append(made)
            continue
        if row != made.end or made.result <= 0:
            _empty(queue, min(row, made.row if row == made.end else row))
            continue
        pieces, needed = [], made.result
        while queue and needed:
            n_bytes = min(queue[0].left, needed)
            queue[0].left -= n_bytes
            needed -= n_bytes
            if n_bytes:
                pieces.append((queue[0], n_bytes))
            if not queue[0].left:
                queue.popleft()
        if pieces:
            inbox = (made.pid, None) if made.pid in polls else (made.pid, channel)
            matched.append((made, inbox, pieces))
    return matched


def _empty(queue: deque[_Made], row: int) -> None:
    """A reader found nothing: what was written before, and twice not found, is read elsewhere.

    Once is not enough, since a packet may be under way.
    """
    for write in list(queue):
        if write.end >= row:
            continue
        if write.has_been_empty:
            queue.remove(write)
        write.has_been_empty = True


def _bounds(
    calls: _Calls, channel_of: dict[tuple[int, Node], int], matched: list[Any]
) -> dict[int, tuple[Any, int]]:
    """The inbox and the bytes of channels with one reader whose writers waited for room, and then for no more than that.

    A local socket wakes its writers when most of it is empty: each of their waits has that wake-up as its cause.
    """
    inboxes: dict[int, set[Any]] = defaultdict(set)
    channels: dict[Any, set[int]] = defaultdict(set)
    level: Counter[int] = Counter()
    highest: dict[int, int] = defaultdict(lambda: PAGE)
    taken = {id(made): sum(n for _, n in pieces) for made, _, pieces in matched}
    for made, inbox, _ in matched:
        channel = channel_of[made.kind, made.node]
        inboxes[channel].add(inbox)
        channels[inbox].add(channel)
    waited, late = set(), set()
    for row, made in calls.steps:
        channel = channel_of.get((made.kind, made.node), -1)
        if channel < 0:
            continue
        if row != made.end:
            if (
                row in made.wakes
                and made.kind == Call.WRITE
                and made.result + level[channel] < highest[channel] / 2
            ):
                late.add(channel)
            continue
        if made.kind == Call.READ:
            level[channel] -= taken.get(id(made), 0)
            continue
        level[channel] += max(made.result, 0) - made.left
        highest[channel] = max(highest[channel], level[channel])
        if made.wakes:
            waited.add(channel)
    found = {}
    for channel in waited - late:
        inbox = next(iter(inboxes[channel]), None)
        if len(inboxes[channel]) == 1 and len(channels[inbox]) == 1:
            found[channel] = (inbox, highest[channel])
    return found
