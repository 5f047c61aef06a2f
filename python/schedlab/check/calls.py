# SPDX-License-Identifier: MIT
"""What a policy was called for in a run, with which arguments, and what it did then.

        records of a run folder -> the run again, by schedlab-sim-check --calls -> lines -> Call

The run is done again from what its folder holds, also one in which CPUs interleaved, and must leave the
folder's records: what is shown is that run, not one like it.

Invariant: nothing is shown of a run that left other records.
Read next: hosts/check/calls.c, which writes the lines; cli/pictures.py.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import paths
from ..errors import UsageError
from ..hosts.host import Job
from ..hosts.kinds import job_arguments
from ..plots.gantt import Mark
from ..policy.races import Places, compile_for_races
from ..units import format_duration
from .debug import SECONDS_MAX, do_again, job_again, read_run

#: Names of flags, by word of the line or name of the argument (include/scx/bpf_types.h).
_ENQUEUE = {0: "WAKEUP", 16: "HEAD", 20: "CPU_SELECTED", 32: "PREEMPT", 33: "IMMED", 40: "REENQ", 41: "LAST"}
_FLAGS = {
    "enq_flags": _ENQUEUE,
    "insert": _ENQUEUE,
    "kick": {0: "IDLE", 1: "PREEMPT", 2: "WAIT"},
    "wake_flags": {2: "FORK", 3: "TTWU", 4: "SYNC"},
    "deq_flags": {0: "SLEEP", 32: "CORE_SCHED_EXEC", 33: "SCHED_CHANGE"},
}
#: Of a switch: the callback is over, and sched_ext goes on by itself.
AFTER = "after it"
_NUMBER = re.compile(r"(\w+)([ =])(0x[0-9a-f]+)")
#: Queues with a name; others have a number of the policy's.
_LOCAL, _GLOBAL, _LOCAL_ON, _LOCAL_CPU = 1 << 63 | 2, 1 << 63 | 1, 0b11 << 62, (1 << 32) - 1


@dataclass(frozen=True)
class Deed:
    """What a policy did within a callback."""

    word: str  #: `insert`, `take`, `move`, `kick` or `idle`; `switch`: another CPU continues, in it or after it.
    pid: int  #: Of the task, 0: none.
    name: str
    text: str  #: What else is known, with names for flags and queues.


@dataclass
class Call:
    """A callback."""

    t_ns: int
    cpu: int
    name: str  #: Of the operation, such as `enqueue`.
    pid: int  #: Of the task that it is about; 0: none.
    task: str
    arguments: str
    value: str = ""  #: What it returned; empty where nothing.
    deeds: list[Deed] = field(default_factory=list)

    def as_lines(self) -> list[str]:
        """Say it: the callback, and below what was done in it."""
        about = f"{self.task}[{self.pid}]" if self.pid and self.name != "dispatch" else ""
        inside = ", ".join(filter(None, [about, self.arguments]))
        value = f" = {self.value}" if self.value else ""
        lines = [f"{ms_text(self.t_ns):>9}  CPU {self.cpu}  {self.name}({inside}){value}"]
        for deed in self.deeds:
            who = f" {deed.name}[{deed.pid}]" if deed.pid else ""
            lines.append(
                f"{'':>9}         {deed.word}{who}{':' if who and deed.word == 'insert' else ''} {deed.text}"
            )
        return lines


def calls_of(folder: Path, begin_ns: int, end_ns: int) -> list[Call]:
    """The callbacks of a run from `begin_ns` to `end_ns`, both included, in their order."""
    if end_ns < begin_ns:
        raise UsageError(f"the window from {begin_ns} ns to {end_ns} ns is empty")
    run = read_run(folder, may_interleave=True)
    with tempfile.TemporaryDirectory(prefix="schedlab-calls-") as scratch:
        records, written = Path(scratch) / "records.slr", Path(scratch) / "calls"
        job = job_again(folder, run, records)
        if run.get("interleave"):
            job = replace(job, policy=compile_for_races(job.policy))
        do_again(folder, run, job, lambda tried: _write_calls(tried, written, begin_ns, end_ns))
        return _read_file(job, written)


def calls_of_job(job: Job, begin_ns: int, end_ns: int) -> list[Call]:
    """The same of a run that is done for it; its records are written."""
    written = job.records.with_name("calls")
    _write_calls(job, written, begin_ns, end_ns)
    return _read_file(job, written)


def _write_calls(job: Job, written: Path, begin_ns: int, end_ns: int) -> None:
    """Do a run, and have its callbacks written into a file."""
    words = [str(paths.interleaver()), "--policy", str(job.policy.shared_object), *job_arguments(job)]
    words += ["--calls", str(written)]
    words += ["--calls-from-ns", str(begin_ns), "--calls-to-ns", str(max(1, end_ns))]
    subprocess.run(words, capture_output=True, check=False, timeout=SECONDS_MAX)


def _read_file(job: Job, written: Path) -> list[Call]:
    """Read what has been written of a run."""
    text = written.read_text(encoding="utf-8", errors="replace")
    return read_calls(Places(job.policy.shared_object).in_text(text))


def read_calls(text: str) -> list[Call]:
    """Read what `schedlab-sim-check --calls` has written.

    >>> text = "5\\t0\\tbegin\\t2\\tb\\tenqueue enq_flags=0x1\\n5\\t0\\tkick\\t0\\t\\tCPU 1, flags 0x1\\n"
    >>> print(*read_calls(text)[0].as_lines(), sep="\\n")
    0.000005 ms  CPU 0  enqueue(b[2], enq_flags=WAKEUP)
                      kick CPU 1, flags IDLE
    """
    calls: list[Call] = []
    open_on: dict[int, list[Call]] = {}  # an operation may be called within another
    last_on: dict[int, Call] = {}
    for line in text.splitlines():
        t_ns, cpu, word, pid, name, rest = line.split("\t", 5)
        within = open_on.setdefault(int(cpu), [])
        if word == "begin":
            operation, _, arguments = rest.partition(" ")
            call = Call(int(t_ns), int(cpu), operation, int(pid), name, _named(arguments, ""))
            calls.append(call)
            within.append(call)
        elif word == "end":
            if within:
                last_on[int(cpu)] = within.pop()
                last_on[int(cpu)].value = rest.partition(" ")[2]
        elif word == "switch" and not within:
            if last := last_on.get(int(cpu)):
                last.deeds.append(Deed(word, 0, "", f"{rest} {AFTER}"))
        elif within:
            within[-1].deeds.append(Deed(word, int(pid), name, _named(rest, word)))
    return calls


def _named(text: str, word: str) -> str:
    """Names in place of numbers: of flags, of queues, of times."""

    def name(found: re.Match[str]) -> str:
        number = int(found[3], 16)
        if found[1] == "DSQ":
            return queue_name(number)
        known = _FLAGS.get(word if found[1] == "flags" else found[1])
        if known is None:
            return found[0]
        names = [known.get(bit, f"bit {bit}") for bit in range(64) if number >> bit & 1]
        return f"{found[1]}{found[2]}{'|'.join(names) or '0'}"

    text = re.sub(
        r"slice (\d+) ns", lambda found: f"slice {slice_text(int(found[1]))}", _NUMBER.sub(name, text)
    )
    return text.removesuffix(", flags 0")


def queued_by(folder: Path, pid: int, at_ns: int) -> str:
    """The callback that last put a task into a queue at an instant, and where; empty where none did."""
    for call in reversed(calls_of(folder, at_ns, at_ns)):
        for deed in reversed(call.deeds):
            if deed.pid == pid and deed.word in ("insert", "move"):
                said, where = call.as_lines()[0].strip(), deed.text.partition(",")[0]
                return f"It was put into {where}: {re.sub('  +', ', ', said)}."
    return ""


def ms_text(ns: int) -> str:
    """An instant in ms, exactly: callbacks of one are in the order in which they began."""
    return f"{ns / 1e6:.6f}".rstrip("0").rstrip(".") + " ms"


def slice_text(ns: int) -> str:
    """A slice as it is read best."""
    return "endless" if ns == 2**64 - 1 else "as it is" if ns == 0 else format_duration(ns)


def queue_name(number: int) -> str:
    """What a queue is called; of one of the policy's its number.

    >>> queue_name(0x4D), queue_name(0xC000000000000003), queue_name(0x8000000000000002)
    ('DSQ 0x4d', 'the local queue of CPU 3', 'the local queue')
    """
    if number == _LOCAL:
        return "the local queue"
    if number == _GLOBAL:
        return "the global queue"
    if number & _LOCAL_ON == _LOCAL_ON:
        return f"the local queue of CPU {number & _LOCAL_CPU}"
    return f"DSQ 0x{number:x}"


def shown(calls: Sequence[Call], n_first: int, n_last: int) -> Iterator[str]:
    """Lines for the first and the last callbacks, with how many are between."""
    if len(calls) <= n_first + n_last:
        n_first, n_last = len(calls), 0
    for call in calls[:n_first]:
        yield from call.as_lines()
    if n_last:
        yield f"{'':>9}  ... {len(calls) - n_first - n_last:,} more"
        for call in calls[-n_last:]:
            yield from call.as_lines()


def marks_of(calls: Sequence[Call]) -> list[Mark]:
    """Marks and arrows of a chart."""
    marks = []
    for call in calls:
        text = "\n".join(line.strip() for line in call.as_lines())
        marks.append(Mark(call.t_ns, call.cpu, text))
        for deed in call.deeds:
            kicked = re.match(r"CPU (\d+)", deed.text) if deed.word == "kick" else None
            if deed.word in ("insert", "move"):
                marks.append(Mark(call.t_ns, call.cpu, text, to_pid=deed.pid))
            elif kicked:
                marks.append(Mark(call.t_ns, call.cpu, text, to_cpu=int(kicked[1])))
    return marks


def as_json(calls: Sequence[Call]) -> list[Mapping[str, object]]:
    """The same for programs."""
    return [
        {
            "t_ns": call.t_ns, "cpu": call.cpu, "callback": call.name, "task": call.pid or None,
            "arguments": call.arguments, "value": int(call.value) if call.value else None,
            "does": [{"what": deed.word, "task": deed.pid or None, "text": deed.text} for deed in call.deeds],
        }
        for call in calls
    ]  # fmt: skip
