# SPDX-License-Identifier: MIT
"""Drive `schedlab-record`, which records what this machine's scheduler does.

    with Recorder() as recorder:
        recorder.follow(events, pid=launcher.pid, generation=2)
        answer = launcher.run(...)
        recorder.stop()
    convert_events(events, records, origin_ns=..., end_ns=...)

The tracepoints are opened once for a recorder, which takes the kernel some
milliseconds, and turned on for each recording, which takes it none.

Must stay true: a recorder is always closed; should this process be killed, the
recorder sees the end of its input, finishes its file and ends.
Read next: measure/recording.py, which makes a run folder of it.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import tempfile
import zlib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ...errors import HostError, RecordError, UnavailableError, UsageError
from ...paths import recorder, why_unusable
from ...records.foreign import Source
from ..process import LineServer


@dataclass(frozen=True)
class Captured:
    """What a recorder says about one recording."""

    #: `n_events`, `n_lost`: Events of the kernel that were copied, and that its rings had no room for.
    n_events: int
    n_lost: int
    #: `begin_ns`, `end_ns`: On CLOCK_MONOTONIC, in nanoseconds.
    begin_ns: int
    end_ns: int
    cpu_ns: int  #: CPU time that the recorder took meanwhile, in nanoseconds.
    write_error: str | None  #: Why the rest could not be written, such as a full disk.
    write_error_ns: int  #: When that was, on CLOCK_MONOTONIC, in nanoseconds; 0: it was not.
    is_realtime: bool  #: Whether the recorder could put itself above all that it records.


@dataclass(frozen=True)
class Converted:
    """What became of a file of events."""

    #: In order of their number in the records, from 1: `task`, `pid` (the kernel's), `parent` (a number, 0:
    #: none of them), `root` (which of the commands followed, from 1; 0: none), `priority` (the kernel's: 120
    #: + nice, or below 100 in a real-time class), `name`.
    tasks: list[Any] = field(repr=False)
    #: `n_events`, `n_records`, `n_lost`: Events read, records written, events that the kernel had lost.
    n_events: int
    n_records: int
    n_lost: int
    n_repairs: int  #: Places where events contradicted each other and records were added.
    #: Times a task came onto a CPU and the kernel did not say so: some hide switches from the idle task. When
    #: it was follows from the CPU time that the task had used by its next event, or is when it could run.
    n_inferred: int
    #: `n_wakeups`, `n_unwoken`: Wake-ups of sleepers, and sleepers that ran again without one.
    n_wakeups: int
    n_unwoken: int
    #: By so much at least the clocks of CPUs differ, as wake-ups show that come before their sleeper slept;
    #: 0: nothing speaks for it.
    clocks_differ_ns: int
    #: `origin_ns`, `end_ns`: Time 0 of the records on CLOCK_MONOTONIC; their end since then.
    origin_ns: int
    end_ns: int
    #: `n_cpus`, `tick_ns`: Of the machine.
    n_cpus: int
    tick_ns: int
    #: As `enum cost` of record.h has them, in nanoseconds; 0: not known.
    costs: list[int] = field(repr=False)
    slice_ns: int  #: Of the fair class, in nanoseconds; 0: the machine did not tell.
    is_whole: bool  #: Whether the recording was ended in order.
    have_all_ended: bool  #: Whether every task has ended.

    @property
    def recorder_ns(self) -> dict[str, int]:
        """What recording added to the CPU time of the recorded tasks, where that was measured."""
        names = ("call", "other_call", "switch", "wakeup")
        return {name: ns for name, ns in zip(names, self.costs, strict=False) if ns}

    @property
    def machine_costs(self) -> dict[str, int]:
        """What switches cost without it, as `--cost` names them, where that was measured."""
        return {name: ns for name, ns in zip(("switch_ns", "leave_ns"), self.costs[4:], strict=True) if ns}


def program() -> str:
    """The recorder's path."""
    reason = why_unusable(recorder())
    if reason:
        raise UnavailableError(reason)
    return str(recorder())


class Recorder(LineServer):
    """One recorder process, for any number of recordings one after another.

    Each CPU has a ring of `buffer_kib`, 16 to 1,048,576, a power of two or the next above. `has_yields`
    records `sched_yield`, too, which makes every system call of the machine slower; `has_causes` also the
    calls by which tasks wait for each other; `has_sums` is for `sums`. UnavailableError, with a hint: the program is not built, or
    the kernel refuses.
    """

    def __init__(
        self,
        *,
        buffer_kib: int = 8192,
        has_yields: bool = False,
        has_causes: bool = False,
        has_sums: bool = False,
    ):
        words = [program(), "capture", "--buffer", str(buffer_kib), *["--sums"] * has_sums]
        super().__init__(words + ["--yields"] * has_yields + ["--calls"] * has_causes)
        self._begin_ns = 0
        self._is_asked = False
        try:
            self.is_realtime = self._hear()["is_realtime"]
        except BaseException:
            self.close()
            raise

    def follow(self, path: Path, *, pid: int, generation: int = 0) -> None:
        """Begin to record a process and what it forks."""
        self._begin(f"tree {pid} {generation} {path}", path)

    def record_all(self, path: Path) -> None:
        """Begin to record all tasks."""
        self._begin(f"all {path}", path)

    def follow_name(self, path: Path, *, comm: str) -> None:
        """Begin to record tasks that have a name of 1 to 15 bytes or get it, and what they fork."""
        self._begin(f"comm {comm}\t{path}", path)

    def follow_group(self, path: Path, *, folder: Path) -> None:
        """Begin to record the processes in a cgroup and those below it, and what they fork."""
        self._begin(f"cgroup {folder}\t{path}", path)

    def stop(self) -> Captured:
        """End the recording."""
        said = self._ask("stop")
        if "begin_ns" in said:  # Ctrl-C came while the recording began, before this was heard
            self._begin_ns, said = said["begin_ns"], self._hear()
        if "error" in said:
            raise HostError("nothing was being recorded.")
        return _from_answer(Captured, said, begin_ns=self._begin_ns, is_realtime=self.is_realtime)

    def sums(self, seconds: float | None = None) -> dict[str, Any] | None:
        """What was since the last call (measure/live.py); None where no answer comes in that time."""
        if not self._is_asked:
            self._tell("sums")
        self._is_asked = True
        if not select.select([self._answers], [], [], seconds)[0]:
            return None
        self._is_asked = False
        return self._hear()

    def put_names(self) -> None:
        """Write the name of each task that was seen into the file once more."""
        self._ask("names")

    def _begin(self, order: str, path: Path) -> None:
        if any(mark in str(path) for mark in "\n\0"):
            raise UsageError(f"{path!r}: a file name with an end of line; choose another")
        said = self._ask(order)
        if "error" in said:
            raise UsageError(f"{path}: cannot be written: {said['error']}")
        self._begin_ns = said["begin_ns"]

    def _ask(self, order: str) -> dict[str, Any]:
        self._tell(order)
        return self._hear()

    def _tell(self, order: str) -> None:
        with contextlib.suppress(OSError):  # its silence is told below
            self._requests.write(f"{order}\n".encode())
            self._requests.flush()

    def _hear(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise HostError("schedlab-record has ended without an answer; was it killed?")
        said = json.loads(line)
        if "wrong" in said:
            raise UnavailableError(said["wrong"])
        return said


def convert_events(
    events: Path, records: Path, *, origin_ns: int | None = None, end_ns: int | None = None
) -> Converted:
    """Make records of recorded events."""
    with tempfile.NamedTemporaryFile(prefix="schedlab-tasks-", suffix=".json") as listed:
        words = [program(), "convert", str(events), str(records), listed.name]
        for option, value in (("--origin", origin_ns), ("--end", end_ns)):
            if value is not None:
                words += [option, str(value)]
        done = subprocess.run(words, capture_output=True, check=False)
        said = _answer(
            done.stdout, f"{events}: schedlab-record ended with {done.returncode} while it converted the file"
        )
        tasks = [json.loads(line) for line in Path(listed.name).read_bytes().splitlines()]
    return _from_answer(Converted, said, tasks=tasks)


def _from_answer(kind: Any, said: dict[str, Any], **known: Any) -> Any:
    """Make what a program said, whose keys have no `n_` for numbers, into what we call it."""
    names = [each.name for each in fields(kind) if each.name not in known]
    return kind(**known, **{name: said[name.removeprefix("n_")] for name in names})


def import_events(source: Source, events: Path, *, is_anonymous: bool = False) -> dict[str, Any]:
    """Make events of another tool's trace, as a recorder would have written them.

    What `schedlab-record import` found (hosts/linux/import/main.c), and `complaint`: why the tool that
    printed the trace ended early, or None.
    """
    is_piped = bool(source.command) or source.is_gzip or source.is_packed
    words = [
        program(),
        "import",
        source.form,
        "-" if is_piped else str(source.file),
        str(events),
        source.name,
    ]
    words += ["--anonymise"] * is_anonymous
    with tempfile.TemporaryFile() as stderr, contextlib.ExitStack() as stack:
        tool = None
        if source.command:
            tool = stack.enter_context(
                subprocess.Popen(
                    source.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr
                )
            )
        stdin = tool.stdout if tool else subprocess.PIPE if is_piped else subprocess.DEVNULL
        reader = stack.enter_context(subprocess.Popen(words, stdin=stdin, stdout=subprocess.PIPE))
        if tool:
            assert tool.stdout
            tool.stdout.close()  # the tool is told when the reader ends
        elif is_piped:
            _feed(source, reader)
        assert reader.stdout
        said = reader.stdout.read()
        tool_code = tool.wait() if tool else 0
        stderr.seek(0)
        last = stderr.read().decode(errors="replace").strip().splitlines()[-1:]
    found = _answer(said, f"schedlab-record ended with {reader.returncode} while it read {source.name}")
    found["complaint"] = None
    if tool_code:
        found["complaint"] = f"{source.name} ended with {tool_code}: {''.join(last)}"
    return found


def _feed(source: Source, reader: subprocess.Popen[bytes]) -> None:
    """Write what is unpacked to a reader, as far as it wants it."""
    assert reader.stdin
    try:
        with contextlib.suppress(BrokenPipeError), reader.stdin:
            for chunk in source.chunks():
                reader.stdin.write(chunk)
    except (OSError, EOFError, zlib.error) as error:
        reader.kill()
        raise RecordError(f"{source.file}: cannot be unpacked: {error}; the file is damaged") from error


def _answer(said: bytes, silence: str) -> dict[str, Any]:
    """A line of JSON, unless it says what is wrong."""
    try:
        answer: dict[str, Any] = json.loads(said)
    except ValueError:
        raise RecordError(silence) from None
    if "wrong" in answer:
        raise RecordError(answer["wrong"])
    return answer


def probe() -> dict[str, str | None]:
    """Find out what of recording this machine allows to this user."""
    done = subprocess.run([program(), "probe"], capture_output=True, check=False)
    return json.loads(done.stdout)


def unavailable_reason() -> str | None:
    """Why nothing can be recorded here."""
    try:
        found = probe()
    except UnavailableError as error:
        return str(error)
    return found["tracefs"] or found["perf_event_open"]
