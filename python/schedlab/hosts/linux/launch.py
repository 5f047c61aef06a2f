# SPDX-License-Identifier: MIT
"""Drive `schedlab-launch`, which runs commands under Linux's classes.

Must stay true: a launcher is always closed, which ends whatever it still runs;
should this process be killed, the launcher sees the end of its input and does
the same.
Read next: measure/bench.py, which asks it for one run after another.
"""

from __future__ import annotations

import errno
import json
import os
import select
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import HostError, UnavailableError, UsageError
from ...paths import launcher, why_unusable
from ...policy.linux_class import LinuxClass
from ..process import LineServer


@dataclass(frozen=True)
class Command:
    """One command to be run."""

    argv: tuple[str, ...]  #: Program and arguments.
    linux_class: LinuxClass  #: What it runs under, and its children after it.
    cpus: tuple[int, ...] = ()  #: CPUs that it may use, each below `CPUS_MAX`; empty: all.
    output: Path | None = None  #: File that gets what it prints, both streams; None: it is dropped.
    errors: Path | None = None  #: File that gets its stderr; None: where its stdout goes.
    input: Path | None = None  #: File that its stdin reads; None: an empty one.
    is_whole: bool = False  #: Whether its tree is ended when it ends itself; else the tree is waited for.


class Launcher(LineServer):
    """One launcher process, for any number of runs one after another.

    Its keepers are its children, the commands theirs; keepers end their trees when they see it go.
    UnavailableError: the program is not built.
    """

    def __init__(self) -> None:
        reason = why_unusable(launcher())
        if reason:
            raise UnavailableError(reason)
        super().__init__([launcher()])

    def run(self, commands: Sequence[Command], *, timeout_ns: int, is_trial: bool = False) -> dict[str, Any]:
        """Run a command, and others beside it."""
        raw = b"".join(os.fsencode(word) + b"\0" for word in _words(commands, timeout_ns, is_trial))
        try:
            self._requests.write(b"run %d\n" % len(raw) + raw)
            self._requests.flush()
            # Polars' handler of Ctrl-C has reads go on, which would wait for the command; poll() never does.
            waiting = select.poll()
            waiting.register(self._answers, select.POLLIN)
            waiting.poll()
            line = self._answers.readline()
        except (BrokenPipeError, ValueError):  # closed by another thread
            line = b""
        if not line:
            raise HostError("schedlab-launch has ended without an answer; was it killed?")
        answer = json.loads(line)
        if "wrong" in answer:
            raise HostError(f"schedlab-launch did not understand a request: {answer['wrong']}")
        for command, report in zip(commands, answer["commands"], strict=True):
            _raise_failure(command, report)
        return answer


def _words(commands: Sequence[Command], timeout_ns: int, is_trial: bool) -> list[str]:
    """A request as the launcher reads it."""
    words = [f"timeout_ns={timeout_ns}"]
    for command in commands:
        settings = command.linux_class.settings
        settings["trial"] = int(is_trial)
        settings["whole"] = int(command.is_whole)
        words += ["command", *(f"{key}={value}" for key, value in settings.items())]
        words += [f"cpu={cpu}" for cpu in command.cpus]
        files = {"input": command.input, "output": command.output, "errors": command.errors}
        words += [f"{key}={file}" for key, file in files.items() if file is not None]
        words += [f"argc={len(command.argv)}", *command.argv]
    return words


def _raise_failure(command: Command, report: dict[str, Any]) -> None:
    """Turn what kept a command from starting into an error with a hint."""
    kind, number = report["failure"], report["error"]
    if kind == "none":
        return
    name, reason = command.linux_class.name, os.strerror(number)
    if kind == "scheduler" and number == errno.EPERM:
        limit = (
            "" if command.linux_class.is_deadline else ", or raise RLIMIT_RTPRIO (ulimit -r) and RLIMIT_NICE"
        )
        raise UnavailableError(
            f"{name} needs CAP_SYS_NICE: start schedlab as root{limit}; SCHED_OTHER, SCHED_BATCH and "
            "SCHED_IDLE need nothing"
        )
    if kind == "watchdog":
        raise UnavailableError(
            f"{name}: the watchdog that ends it must have a higher priority, which RLIMIT_RTPRIO forbids; "
            "ask for a lower priority, or start schedlab with CAP_SYS_NICE (as root)"
        )
    if kind == "scheduler" and number == errno.EBUSY:
        raise UsageError(f"{name}: this machine has no room for so much reserved time; ask for less")
    if kind == "affinity":
        cpus = ",".join(map(str, command.cpus))
        raise UsageError(
            f"--cpus {cpus}: {reason}; this process may use "
            f"{','.join(map(str, sorted(os.sched_getaffinity(0))))}"
        )
    if kind == "exec":
        raise UsageError(f"{command.argv[0]}: cannot be started: {reason}")
    if kind == "output":
        files = " or ".join(str(file) for file in (command.output, command.errors) if file is not None)
        raise UsageError(f"{files}: cannot be written: {reason}")
    if kind == "survivor":
        raise UnavailableError(
            f"{' '.join(command.argv)}: what is left of it runs as another user (sudo?), so it could not be "
            "ended and goes on; that needs CAP_KILL: start schedlab itself as that user"
        )
    if kind == "keeper":
        raise HostError(
            f"{command.argv[0]} under {name}: schedlab-keeper, which watched over it, was killed, so its tree "
            "was ended and nobody has its figures; run it again"
        )
    raise HostError(f"{command.argv[0]} under {name}: {kind}: {reason}")
