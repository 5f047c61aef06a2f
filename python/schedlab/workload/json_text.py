# SPDX-License-Identifier: MIT
"""Read JSON as people write it: with comments, commas too many, and keys twice.

Files of rt-app list a task's steps as the keys of an object, so that the same
key may stand there several times, each time a step of its own. Python's reader
would keep the last one; this one keeps all, in order, each with its line.

Beyond the standard it takes what json-c takes, which rt-app reads with: comments
and a comma behind the last element; and what workgen, rt-app's own front end,
takes: a key without a value.

Read next: rtapp.py, which gives the values a meaning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import SpecError, SpecFault

#: Objects and arrays inside each other; more than any file has, less than Python's stack.
DEPTH_MAX = 64
#: Digits of a number; no value of rt-app needs more than 32 bits.
DIGITS_MAX = 24

_BLANK = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
#: An escape; what JSON does not have is the group.
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|(.))')
#: Half of a pair is no character, and could not be written again.
_HALF = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"-?\d+(?P<fraction>\.\d+)?(?P<exponent>[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class Node:
    """A value and where it stands."""

    value: Any  #: `Pairs` for an object, list of Node for an array, else str, int, float, bool or None.
    line: int  #: Line of its first character, from 1.
    is_absent: bool = False  #: A key stood there without a value; `value` is None.

    @property
    def kind(self) -> str:
        """What it is, in words for a message."""
        names = {
            Pairs: "an object",
            list: "an array",
            str: "a text",
            bool: "true or false",
            int: "a whole number",
            float: "a number with a fraction",
            type(None): "null",
        }
        return names[type(self.value)]


@dataclass(frozen=True)
class Pair:
    """One key of an object with its value, and the line of the key."""

    key: str
    line: int
    node: Node


class Pairs(tuple[Pair, ...]):
    """The pairs of an object in the order of the file, keys that repeat included."""


def parse_json(text: str, *, name: str) -> Node:
    """Read a whole file.

    >>> node = parse_json('{"run": 10, "sleep": 5, "run": 20,} // twice', name="x.json")
    >>> [(pair.key, pair.node.value) for pair in node.value]
    [('run', 10), ('sleep', 5), ('run', 20)]
    """
    return _Reader(text, name).whole()


class _Reader:
    """Walks the text from its start to its end."""

    def __init__(self, text: str, name: str):
        self.text = text
        self.name = name
        self.at = 0
        self.line = 1
        self.counted_to = 0

    def wrong(self, message: str) -> SpecError:
        """Error at the present place."""
        return SpecError([SpecFault(self.name, self.here(), "", f"not JSON: {message}")])

    def here(self) -> int:
        """Line of the present place; counted on from the last one asked for."""
        self.line += self.text.count("\n", self.counted_to, self.at)
        self.counted_to = self.at
        return self.line

    def skip(self) -> str:
        """Go to the next mark; return it, or nothing at the end of the text."""
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at
        if self.text.startswith("/*", self.at):
            raise self.wrong("a comment does not end")
        return self.text[self.at : self.at + 1]

    def whole(self) -> Node:
        """Read the one value that a file is."""
        if self.text.startswith("\ufeff"):
            self.at = 1
        if not self.skip():
            raise self.wrong("the file is empty")
        node = self.value(0)
        if self.skip():
            raise self.wrong(f"{self.shown()} follows the end of the first value")
        return node

    def shown(self) -> str:
        """What stands here, short enough for a message."""
        rest = self.text[self.at : self.at + 13].split("\n")[0]
        return repr(rest[:12] + "..." * (len(rest) > 12)) if rest else "the end of the file"

    def value(self, depth: int) -> Node:
        """Read any value."""
        first, line = self.skip(), self.here()
        if depth > DEPTH_MAX:
            raise self.wrong(f"values are nested more than {DEPTH_MAX} deep")
        if first == "{":
            return Node(Pairs(self.pairs(depth)), line)
        if first == "[":
            return Node(self.elements(depth), line)
        if first == '"':
            return Node(self.string(), line)
        number = _NUMBER.match(self.text, self.at)
        if number:
            self.at = number.end()
            return Node(self.number(number), line)
        word = _WORD.match(self.text, self.at)
        if word and word[0].lower() in _WORDS:
            self.at = word.end()
            return Node(_WORDS[word[0].lower()], line)
        raise self.wrong(f"a value is needed, not {self.shown()}")

    def number(self, match: re.Match[str]) -> int | float:
        """Turn digits into a number."""
        if len(match[0]) > DIGITS_MAX:
            raise self.wrong(f"a number of {len(match[0])} characters is too long")
        if match["fraction"] or match["exponent"]:
            return float(match[0])
        return int(match[0])

    def string(self) -> str:
        """Read a text in quotes."""
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise self.wrong(f"the text {self.shown()} does not end on its line")
        for escape in _ESCAPE.finditer(match[0]):
            if escape[1]:
                raise self.wrong(f"unknown escape {escape[0]!r} in a text")
        self.at = match.end()
        return _HALF.sub("\ufffd", json.loads(match[0], strict=False))

    def elements(self, depth: int) -> list[Node]:
        """Read the inside of an array."""
        found: list[Node] = []
        self.at += 1
        while self.skip() != "]":
            found.append(self.value(depth + 1))
            self.separator("]")
        self.at += 1
        return found

    def pairs(self, depth: int) -> Iterator[Pair]:
        """Read the inside of an object."""
        self.at += 1
        while (mark := self.skip()) != "}":
            line = self.here()
            if mark != '"':
                raise self.wrong(f"a key in quotes is needed, not {self.shown()}")
            key = self.string()
            mark = self.skip()
            if mark == ":":
                self.at += 1
                node = self.value(depth + 1)
            elif mark in (",", "}"):
                node = Node(None, line, is_absent=True)
            else:
                raise self.wrong(f"':' is needed behind key {key!r}, not {self.shown()}")
            yield Pair(key, line, node)
            self.separator("}")
        self.at += 1

    def separator(self, closing: str) -> None:
        """Go past a comma; only the last element may have none."""
        mark = self.skip()
        if mark == ",":
            self.at += 1
        elif mark != closing:
            raise self.wrong(f"',' or {closing!r} is needed, not {self.shown()}")
