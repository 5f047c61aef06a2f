# SPDX-License-Identifier: MIT
"""What the guest and the loader say: rows of frames, and what each means.

A frame is `NAME BYTES\\n`, that many bytes, and `\\n`. The same form brings a job
into the guest (hosts/linux/guest/input.c) and answers out of it and out of
`schedlab-load` (hosts/linux/load/frame.c):

        boot      "TICK_NS UNAME", once
        next      PATH; what follows is about this policy, or this program
        program   "CALLBACK INSTRUCTIONS", then the verifier's text
        refused   why the policy was not loaded, or not attached
        loaded, attached
        attributes    number of the policy's map of attributes in that kernel
        counts    lines "call CALLBACK TIMES NANOSECONDS", "event NAME TIMES"
        ops       name of the scheduler that a program has loaded itself
        early     that program had ended before it was told to
        silent    milliseconds for which a program did not do what was waited for
        ended     "by us" or "by the kernel"
        kernel    its lines about sched_ext meanwhile
        line      "FILE:LINE: TEXT" of the source that these are about
        fatal     what went wrong in the guest itself
        format EVENT, task, played, result, page CPU, stats CPU    a program that was played
        output, status    of a program that was run
        done      the end

Must stay true: a row of frames that was cut short is read up to its last whole
frame.
Read next: policies.py, host.py, linux/load.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...errors import HostError
from ...records.ftrace import Trace

#: How the kernel says which kind of error ended a policy.
ERROR_KINDS = {"runnable task stall": "stall", "runtime error": "policy", "scx_bpf_error": "policy"}


def write_frames(frames: Mapping[str, bytes]) -> bytes:
    """Put frames into a row.

    >>> write_frames({"/job": b"hold 3"})
    b'/job 6\\nhold 3\\n'
    """
    return b"".join(
        b"%s %d\n%s\n" % (name.encode(), len(contents), contents) for name, contents in frames.items()
    )


def read_frames(data: bytes) -> list[tuple[str, bytes]]:
    """Take a row of frames apart.

    >>> read_frames(b"boot 3\\n7.2\\npage 0 100\\ncut")
    [('boot', b'7.2')]
    """
    frames = []
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        head = data[at:end].decode(errors="replace")
        name, _, count = head.rpartition(" ")
        if not name or not count.isdigit():
            raise HostError(f"an answer cannot be read at byte {at}: {head[:80]!r}")
        start = end + 1
        if start + int(count) + 1 > len(data):
            break
        frames.append((name, data[start : start + int(count)]))
        at = start + int(count) + 1
    return frames


@dataclass
class Answer:
    """What is said about one policy."""

    name: str  #: For messages.
    #: `is_loaded`, `is_attached`: Whether the kernel accepted the policy, and gave it the CPUs.
    is_loaded: bool = False
    is_attached: bool = False
    refusal: str = ""  #: Why it did not: the verifier's text with the source line; else empty.
    #: How many instructions the verifier processed, per callback.
    instructions: dict[str, int] = field(default_factory=dict)
    ended_by: str = ""  #: `"by us"`, `"by the kernel"` (it was thrown out), or empty.
    kernel_text: str = ""  #: The kernel's lines about sched_ext while the policy was attached.
    line: str = ""  #: `FILE:LINE: TEXT` of the source that they are about, or empty.
    uname: str = ""  #: The kernel that it was, or empty.
    attributes_map: int = 0  #: Number of the map of attributes, for who runs tasks; 0: the policy has none.
    tick_ns: int = 0  #: Nanoseconds between that kernel's ticks; 0 where it did not say.
    #: Calls and nanoseconds of each callback, as last counted.
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: What sched_ext did beside the policy's wishes, as last counted.
    events: dict[str, int] = field(default_factory=dict)
    trace: Trace | None = None  #: What the scheduler did while a program was played.
    played_ns: int = 0  #: How long the program took, in nanoseconds.
    n_left: int = 0  #: Tasks of the program that had not ended when the horizon came.
    #: Tasks of the program that ended with an error: index to error number.
    results: dict[int, int] = field(default_factory=dict)
    fatal: list[str] = field(default_factory=list)  #: What went wrong in the guest itself.
    output: bytes = b""  #: What a program printed.
    status: int | None = None  #: Its exit status; -1: a signal.
    #: How long no heartbeat had come when the loader ended the policy, or how long was waited in vain for a
    #: program to load a scheduler, or to end; 0: it was not.
    silent_ms: int = 0
    ops: str = ""  #: Name of the scheduler that a program has loaded itself.
    is_early: bool = False  #: Whether that program had ended before it was told to.

    @property
    def disabled_reason(self) -> str:
        """Why the kernel ended the policy, such as `"runnable task stall"`."""
        found = re.search(r"disabled \((.*)\)", self.kernel_text)
        return found[1] if found else ""

    @property
    def error_kind(self) -> str | None:
        """What the kernel held against the policy, in one word; None: nothing."""
        if self.refusal:
            return "policy"
        if self.ended_by != "by the kernel":
            return None
        return ERROR_KINDS.get(self.disabled_reason, "policy")

    @property
    def error(self) -> str | None:
        """The same in a sentence, with the line of the source; None: nothing."""
        if self.refusal:
            return self.refusal.strip()
        if self.ended_by != "by the kernel":
            return None
        # "sched_ext: NAME: what happened", below the line that it was disabled.
        said = re.findall(r"^sched_ext: [^:\n]*: (.*)$", self.kernel_text, re.MULTILINE)
        what = ": ".join([self.disabled_reason or "thrown out", *said[:1]])
        return what + (f"\n{self.line}" if self.line else "")

    def read(self, frames: Iterable[tuple[str, bytes]]) -> None:
        """Add what frames say."""
        for name, contents in frames:
            self._read(name, contents)

    def _read(self, name: str, contents: bytes) -> None:
        kind, _, number = name.partition(" ")
        text = contents.decode(errors="replace") if kind not in ("page", "output") else ""
        if kind == "program":
            head, _, log = text.partition("\n")
            callback, count = head.split()
            self.instructions[callback] = int(count)
            # The verifier stops at the first bad one, so the last log is that one's.
            self.refusal = log
        elif kind == "refused":
            self.refusal += text
        elif kind == "loaded":
            self.is_loaded, self.refusal = True, ""
        elif kind == "attributes":
            self.attributes_map = int(text)
        elif kind == "attached":
            self.is_attached = True
        elif kind == "boot":
            tick_ns, _, self.uname = text.partition(" ")
            self.tick_ns = int(tick_ns)
        elif kind == "counts":
            self._read_counts(text)
        elif kind in ("ended", "kernel", "line"):
            setattr(self, {"ended": "ended_by", "kernel": "kernel_text"}.get(kind, kind), text)
        elif kind == "fatal":
            self.fatal.append(text)
        elif kind == "output":
            self.output = contents
        elif kind == "ops":
            self.ops = text
        elif kind == "early":
            self.is_early = True
        elif kind == "silent":
            self.silent_ms = int(text)
        elif kind == "status":
            self.status = int(text)
        else:
            self._read_played(kind, number, text, contents)

    def _read_counts(self, text: str) -> None:
        for line in text.splitlines():
            kind, name, *numbers = line.split()
            if kind == "call":
                self.counts[name] = (int(numbers[0]), int(numbers[1]))
            else:
                self.events[name] = int(numbers[0])

    def _read_played(self, kind: str, number: str, text: str, contents: bytes) -> None:
        """Add a frame about a program that was played."""
        if kind == "result":
            task, code = text.split()
            self.results[int(task)] = int(code)
            return
        if self.trace is None:
            self.trace = Trace(formats={})
        trace = self.trace
        if kind == "task":
            task, pid = text.split()
            trace.tasks[int(pid)] = int(task) + 1
        elif kind == "played":
            start, played, left, _state = text.split(maxsplit=3)
            trace.start_ns, self.played_ns, self.n_left = int(start), int(played), int(left)
            trace.end_ns = self.played_ns
        elif kind == "page":
            trace.pages.setdefault(int(number), []).append(contents)
        elif kind == "stats":
            found = re.search(r"dropped events: (\d+)", text)
            trace.n_lost += int(found[1]) if found else 0
