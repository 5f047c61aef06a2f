# SPDX-License-Identifier: MIT
"""A TOML file that a person edits: its values, the line of each, and its errors.

Workloads, launch files, experiments, claims, summaries and audits are read here.

Python's own TOML reader gives values without positions. The scanner here runs
after it, over text that is known to be valid TOML, and notes on which line each
key and each array element begins; so an error can name its line.

Read next: workload/spec.py, which reads the values.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from .errors import SpecError, SpecFault

Place = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}#\n]*")


class Source:
    """A TOML file, its values, and the faults found in it so far.

    `name` is as the user named the file, and begins every fault; `faults` grows as checks find mistakes.
    `parse_float` makes a number of the text of a decimal fraction. SpecError: the text is not TOML.
    """

    def __init__(self, name: str, text: str, *, parse_float: Callable[[str], Any] = Decimal):
        self.name = name
        self.faults: list[SpecFault] = []
        self.lines: dict[Place, int] = {}
        try:
            self.values = tomllib.loads(text, parse_float=parse_float)
        except tomllib.TOMLDecodeError as error:
            where = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
            line = int(where[1]) if where else None
            message = str(error).split(" (at ")[0]
            raise SpecError([SpecFault(name, line, "", f"not TOML: {message}")]) from None
        except RecursionError:
            message = "values are nested too deeply to be read"
            raise SpecError([SpecFault(name, None, "", message)]) from None
        self.lines = _Scanner(text.replace("\r\n", "\n")).scan()

    def fault(self, at: Sequence[str | int], place: str, message: str) -> None:
        """Note an error and go on; its line is that of the value at the path `at`, or of what is around it."""
        fault = SpecFault(self.name, self.line_of(at), place, message)
        if fault not in self.faults:
            self.faults.append(fault)

    def line_of(self, at: Sequence[str | int]) -> int | None:
        """Line of a value, or of the nearest one around it."""
        path = tuple(at)
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def check(self) -> None:
        """End here if anything was wrong."""
        if self.faults:
            raise SpecError(sorted(self.faults, key=lambda fault: fault.line or 0))


@dataclass
class Spot:
    """A table of a file."""

    source: Source
    at: Place  #: Where it is, such as `("runs", 0)`.
    place: str  #: The same in words.

    def fault(self, problem: str, *key: str | int) -> None:
        """Note an error; its line is that of `key`, by default the word that the text begins with."""
        word = re.match(r"[\w.-]+", problem)
        self.source.fault((*self.at, *(key or (word[0].split(".") if word else ()))), self.place, problem)


def read_source(
    path: Path, *, name: str | None = None, parse_float: Callable[[str], Any] = Decimal, hint: str = ""
) -> Source:
    """Read a TOML file; `hint` is what to do if it cannot be."""
    shown = name or str(path)
    return Source(shown, read_text(path, shown, hint=hint), parse_float=parse_float)


def read_text(path: Path, shown: str, *, hint: str = "") -> str:
    """Read a text that a person edits; `hint` is what to do if it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}" + (f"; {hint}" if hint else "")
        raise SpecError([SpecFault(shown, None, "", message)]) from None
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"
        raise SpecError([SpecFault(shown, None, "", message)]) from None


class _Scanner:
    """Walks valid TOML and notes the line of every key and array element."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.line = 1
        self.counted_to = 0
        self.lines: dict[Place, int] = {}
        self.n_tables: dict[Place, int] = {}

    def scan(self) -> dict[Place, int]:
        """Return path -> line for the whole text."""
        table: Place = ()
        self.skip_blank()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip_blank()
        return self.lines

    def note(self, path: Place) -> None:
        self.line += self.text.count("\n", self.counted_to, self.at)
        self.counted_to = self.at
        self.lines.setdefault(path, self.line)

    def skip_blank(self) -> None:
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def header(self) -> Place:
        """Read ``[a.b]`` or ``[[a.b]]``; return the path of its table."""
        start = self.at
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        keys = self.key()
        self.at = self.text.index("]", self.at) + (2 if is_array else 1)
        path: Place = ()
        for i, key in enumerate(keys):
            path += (key,)
            if is_array and i == len(keys) - 1:
                self.n_tables[path] = self.n_tables.get(path, 0) + 1
            if path in self.n_tables:
                path += (self.n_tables[path] - 1,)
        end, self.at = self.at, start
        self.note(path)
        self.at = end
        return path

    def key(self) -> list[str]:
        """Read a key, dotted or not."""
        parts = []
        while True:
            self.skip_blank()
            if self.text[self.at] in "\"'":
                parts.append(self.string())
            else:
                parts.append(self.matched(_BARE_KEY))
            self.skip_blank()
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def matched(self, pattern: re.Pattern[str]) -> str:
        """Go past what a pattern finds here; it finds something, since the file is TOML."""
        found = pattern.match(self.text, self.at)
        assert found
        self.at = found.end()
        return found[0]

    def pair(self, table: Place) -> None:
        """Read ``key = value``."""
        start = self.at
        path = table + tuple(self.key())
        end, self.at = self.at, start
        self.note(path)
        self.at = end + 1  # past the equals sign
        self.skip_blank()
        self.value(path)

    def value(self, path: Place) -> None:
        """Read one value, noting what lies inside it."""
        first = self.text[self.at]
        if first in "\"'":
            self.string()
        elif first == "[":
            self.at += 1
            self.elements(path, "]")
        elif first == "{":
            self.at += 1
            self.elements(path, "}")
        else:
            self.matched(_SCALAR)

    def elements(self, path: Place, closing: str) -> None:
        """Read the inside of an array or of an inline table."""
        index = 0
        self.skip_blank()
        while self.text[self.at] != closing:
            if closing == "]":
                self.note((*path, index))
                self.value((*path, index))
                index += 1
            else:
                self.pair(path)
            self.skip_blank()
            if self.text[self.at] == ",":
                self.at += 1
                self.skip_blank()
        self.at += 1

    def string(self) -> str:
        """Read any of TOML's four kinds of string; return it between its quotes."""
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        start = self.at = self.at + len(mark)
        while not self.text.startswith(mark, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        inside = self.text[start : self.at]
        self.at += len(mark)
        # Up to two quotes may stand directly before the closing three.
        while len(mark) == 3 and self.text.startswith(quote, self.at):
            self.at += 1
        return inside
