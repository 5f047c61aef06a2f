# SPDX-License-Identifier: MIT
"""What can go wrong, and whose fault it is.

Every error that a user can cause is a `SchedlabError`. The command line prints
its text after ``error:`` and leaves with its `exit_code`; a program that
imports schedlab catches the class it cares about. The exit codes are those of
the whole project: 0 good, 1 ran but a check failed, 2 usage or spec, 3 backend
unavailable, 130 interrupted.

Read next: workload/spec.py, which collects many faults into one `SpecError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

EXIT_GOOD = 0
EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_UNAVAILABLE = 3
EXIT_INTERRUPTED = 130


class SchedlabError(Exception):
    """Base of all errors that schedlab raises on purpose."""

    exit_code: int = EXIT_CHECK_FAILED  #: What the command line exits with when this error ends it.


class UsageError(SchedlabError, ValueError):
    """An argument or a command-line flag is wrong."""

    exit_code = EXIT_USAGE


class UnitError(UsageError):
    """A duration, size or number cannot be read; the text says what would do."""


class NotFoundError(UsageError):
    """A workload, policy, metric or run of that name does not exist."""


class ProgramError(SchedlabError, ValueError):
    """The bytes of a workload program are damaged; the text names the offset."""

    exit_code = EXIT_USAGE


class RecordError(SchedlabError, ValueError):
    """The bytes of a record file are damaged; the text names the offset."""

    offset_bytes: int


class PolicyError(SchedlabError):
    """A policy does not compile, does not load, or broke a rule while running."""


class HostError(SchedlabError):
    """A host stopped without giving an answer: a fault of schedlab itself."""


class UnavailableError(SchedlabError):
    """A host or tool is missing here; the text gives the reason and the hint."""

    exit_code = EXIT_UNAVAILABLE


@dataclass(frozen=True)
class SpecFault:
    """One mistake in a workload file."""

    file: str  #: The file as the user named it.
    line: int | None  #: Line of the mistake, from 1; None where it has no single line.
    place: str  #: Where in the file, in words: ``task 'web', phase 3``; may be empty.
    message: str  #: What is wrong, the value, and what would be right.

    def __str__(self) -> str:
        """Return the fault as one line: ``file:line: place: message``."""
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        parts = [where, self.place, self.message]
        return ": ".join(part for part in parts if part)


class SpecError(SchedlabError, ValueError):
    """A workload file has one or more mistakes; all of them are reported.

    `faults` are at least one, in the order of the file.
    """

    exit_code = EXIT_USAGE

    def __init__(self, faults: Sequence[SpecFault]):
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Find the right word that a wrong one was probably meant to be.

    None where nothing is close.

    >>> nearest("slep", ["sleep", "spawn"])
    'sleep'
    """
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Write the hint that ends the message about an unknown word.

    It starts with a blank: the nearest word where there is one, otherwise the list of all words when it is
    short, otherwise nothing.

    >>> "unknown verb 'slep'" + did_you_mean("slep", ["sleep", "spawn"])
    "unknown verb 'slep' (did you mean 'sleep'?)"
    >>> "unknown kernel 'x'" + did_you_mean("x", ["pi", "spin"])
    "unknown kernel 'x' (one of: pi, spin)"
    """
    known = list(choices)
    best = nearest(word, known)
    if best is not None:
        return f" (did you mean {best!r}?)"
    if 0 < len(known) <= 24:
        return f" (one of: {', '.join(known)})"
    return ""
