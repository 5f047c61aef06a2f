# SPDX-License-Identifier: MIT
"""Compile a policy for Linux with delays at chosen instructions, so that another CPU comes in between.

        policy + include/scx/delays.bpf.h -> clang -O2 -> text of LLVM -> calls are put in -> object of BPF
                                                            |
                  `store i64 %7, ptr @nr, !dbg !352`  line 14 of the policy

The code is the one that is loaded without delays: it has been optimised before they are put in, so an update
that is one line of source is held between its read and its write, and messages have the lines of the source.

Invariant: what is put in are calls alone; without them the text is what clang has made.
Read next: check/on_linux.py, which chooses instructions; include/scx/delays.bpf.h, what is called.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .bpf import Changed, Toolchain, compile_changed
from .invariants import LINUX_TEST, TESTED

#: Bits of `sl_delay_places`.
PLACES_MAX = 64
#: What `sl_delay_show()` says, after the kernel's own words.
SEEN = re.compile(r"schedlab delay: kind (\d+) place (\d+) values (\d+) (\d+) (\d+)")
HEADER = "scx/delays.bpf.h"
READ, WRITE, CALL = "read", "write", "call"
#: Begins what is said of a lock that is watched.
LOCK_AT = "the lock at "
_WATCHED_BITS = ("8", "16", "32", "64")
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$", re.MULTILINE)
_LIST = re.compile(r"^!(\d+) = (?:distinct )?!\{(.*)\}$", re.MULTILINE)
_FIELD = re.compile(r'(\w+): ("(?:[^"\\]|\\.)*"|!\d+|[^,]+)')
_DEBUG = re.compile(r"!dbg !(\d+)")
_DEFINE = re.compile(r'^define .*?@"?([\w.$]+)"?\(.*!dbg !(\d+)')
_SECTION = re.compile(r'section "struct_ops')
_LOAD = re.compile(
    r"^  %\S+ = load (?:atomic )?(?:volatile )?\S+, ptr (?P<at>.+?)(?: syncscope\S*)?(?: \w+)?, align "
)
_STORE = re.compile(
    r"^  store (?:atomic )?(?:volatile )?(?:i(?P<bits>\d+) )?(?P<value>.+?), ptr (?P<at>.+?)(?: \w+)?, align "
)
_ATOMIC = re.compile(r"^  %\S+ = (?:atomicrmw|cmpxchg) ")
_CALL = re.compile(
    r"^  (?:(?P<result>%\S+) = )?(?:tail |musttail |notail )?call (?P<type>\S+) (?P<callee>@[\w.$]+|\S+)"
)
_OPS = re.compile(r"^@\S+ = .*global %struct\.sched_ext_ops (?:zeroinitializer|\{(.*))", re.MULTILINE)


@dataclass(frozen=True)
class Point:
    """Where a CPU is to be held: at an instruction, or at both ends of what sched_ext does between two callbacks."""

    file: str = ""  #: Name of the source.
    line: int = 0
    #: `read` or `write` of a variable, or the name of what is called; the delay is before, of a call after it, too.
    does: str = ""
    callback: str = ""  #: Instead: as this operation ends, and ...
    next_callback: str = ""  #: ... as this one begins.


@dataclass
class _Module:
    """What the debug information of a text says."""

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    n_nodes: int = 0  #: Numbers from here on are free.

    def place(self, line: str) -> tuple[str, int] | None:
        """Name of the file, and line of the source that an instruction comes from."""
        found = _DEBUG.search(line)
        location = self.nodes.get(found[1]) if found else None
        if not location or "scope" not in location:
            return None
        scope = self.nodes.get(location["scope"][1:], {})
        file = self.nodes.get(scope.get("file", "!")[1:], {})
        return os.path.basename(file.get("filename", "").strip('"')), int(location.get("line", 0))

    def callbacks(self, text: str) -> dict[str, str]:
        """Functions by the operation that they are."""
        found = _OPS.search(text)
        functions = re.match(r"\s*(?:ptr (?:@[\w.$]+|null),?\s*)+", found[1] or "") if found else None
        if functions is None:
            return {}
        structs = (node for node in self.nodes.values() if node.get("name") == '"sched_ext_ops"')
        elements = next((node["elements"] for node in structs if "elements" in node), "!")
        members = [self.nodes.get(each[1:], {}) for each in self.lists.get(elements[1:], [])]
        names = [member.get("name", "").strip('"') for member in members]
        values = re.findall(r"ptr (?:@([\w.$]+)|null)", functions[0])
        return {name: value for name, value in zip(names, values, strict=False) if value}


def _read(text: str) -> _Module:
    """Read the debug information of a text."""
    nodes = {
        number: {"kind": kind, **dict(_FIELD.findall(inside))} for number, kind, inside in _NODE.findall(text)
    }
    lists = {number: re.findall(r"!\d+", inside) for number, inside in _LIST.findall(text)}
    numbers = map(int, re.findall(r"^!(\d+) = ", text, re.MULTILINE))
    return _Module(nodes, lists, max(numbers, default=-1) + 1)


def _does(line: str) -> str:
    """What an instruction does that another CPU could see: read, write, call; empty for others."""
    if found := _LOAD.match(line) or _STORE.match(line):
        # A variable of this name is where a field is, in the running kernel.
        return "" if found["at"].startswith('@"llvm.') else READ if "= load" in line else WRITE
    if _ATOMIC.match(line):
        return WRITE
    called = _CALL.match(line)
    return CALL if called and not called["callee"].startswith("@llvm.") and " asm " not in line else ""


@dataclass
class _Writer:
    """Collects the lines of a text in which calls are put."""

    module: _Module
    watched: set[tuple[str, int]]
    lines: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)  #: Nodes of debug information.
    numbers: dict[str, int] = field(default_factory=dict)
    n_values: int = 0

    def call(self, function: str, arguments: str, location: str) -> None:
        """Put in a call."""
        self.lines.append(f"  call void @{function}({arguments}), !dbg !{location}")

    def number(self, where: str) -> int:
        """The number of a delay; one that is beyond the bits is never used."""
        return self.numbers.setdefault(where, min(len(self.numbers), PLACES_MAX))

    def delay(self, where: str, line: str) -> None:
        """Put in a delay at an instruction, which is the next line or the last."""
        found, store = _DEBUG.search(line), _STORE.match(line)
        if found is None:
            return
        number = self.number(where)
        is_watched = store and store["bits"] in _WATCHED_BITS and self.module.place(line) in self.watched
        if not store or not is_watched:
            self.call("sl_delay", f"i32 {number}", found[1])
            return
        value = store["value"]
        if store["bits"] != "64":
            self.n_values += 1
            name = f"%sl.delay.{self.n_values}"
            self.lines.append(f"  {name} = zext i{store['bits']} {value} to i64, !dbg !{found[1]}")
            value = name
        arguments = f"i32 {number}, ptr {store['at']}, i64 {value}"
        self.call(f"sl_delay_write{store['bits']}", arguments, found[1])

    def watch_lock(self, where: str, line: str) -> None:
        """Look at what a lock has returned, if that is what a line does."""
        called, found = _CALL.match(line), _DEBUG.search(line)
        if called and called["callee"] == "@bpf_res_spin_lock" and called["result"] and found:
            number = self.number(f"{LOCK_AT}{where}")
            self.call("sl_delay_locked", f"i32 {number}, i32 {called['result']}", found[1])

    def begin_callback(self, function: str, callback: str) -> None:
        """Begin a function, whose debug information is that node; with a delay where it is a callback of this name."""
        node = self.module.nodes.get(function, {})
        location = str(self.module.n_nodes + len(self.added))
        self.added.append(f"!{location} = !DILocation(line: {node.get('line', '1')}, scope: !{function})")
        self.call("sl_delay_show", "", location)
        if callback:
            self.call("sl_delay", f"i32 {self.number(f'at the beginning of ops.{callback}()')}", location)


def compile_with_delays(
    path: Path,
    made: Path,
    points: Sequence[Point],
    *,
    watched: Sequence[tuple[str, int]] = (),
    watches_locks: bool = False,
    tests: str = "",
    toolchain: Callable[[], Toolchain] | None = None,
) -> list[str]:
    """Compile a policy into a file, with delays at points; see `put_in`. `tests` are of `invariants.for_linux`."""
    delays: list[str] = []

    def change(text: str) -> str:
        changed, delays[:] = put_in(
            text, points, watched=watched, watches_locks=watches_locks, tested=TESTED if tests else ()
        )
        return changed

    compile_changed(path, made, Changed(HEADER, change, tests), toolchain=toolchain)
    return delays


def put_in(
    text: str,
    points: Sequence[Point],
    *,
    watched: Sequence[tuple[str, int]] = (),
    watches_locks: bool = False,
    tested: Sequence[str] = (),
) -> tuple[str, list[str]]:
    """Put delays into a text of LLVM; where they are, such as `before mine.bpf.c:14`, by number.

    `watched` are files and lines whose writes are looked at: a change by another CPU before one is lost.
    At the end of callbacks that are `tested`, their number there is given to `invariants.LINUX_TEST`.
    """
    module = _read(text)
    at: dict[tuple[str, int], set[str]] = {}
    for each in points:
        at.setdefault((each.file, each.line), set()).add(each.does if each.does in (READ, WRITE) else CALL)
    there = {(place, _does(line)) for line in text.splitlines() if (place := module.place(line)) in at}
    # What is one line may have become another instruction.
    exact = {place for place, does in there if place and does in at[place]}
    functions = module.callbacks(text)
    ends = {functions[each.callback]: each.callback for each in points if each.callback in functions}
    begins = {
        functions[each.next_callback]: each.next_callback
        for each in points
        if each.next_callback in functions
    }
    tests = {functions[name]: number for number, name in enumerate(tested) if name in functions}
    writer = _Writer(module, {*watched})
    function = ""
    for line in text.splitlines():
        begun = _DEFINE.match(line)
        function = begun[1] if begun else function
        if not function or function.startswith(("sl_delay", LINUX_TEST)):
            writer.lines.append(line)
            continue
        place, does = module.place(line), _does(line)
        wanted = at.get(place, set()) if place and does else set()
        is_here = bool(wanted) and (place not in exact or does in wanted)
        where = f"{place[0]}:{place[1]}" if place else ""
        if is_here:
            writer.delay(f"before {where}", line)
        if line.startswith("  ret ") and function in tests and (location := _DEBUG.search(line)):
            writer.call(LINUX_TEST, f"i32 {tests[function]}", location[1])
        if line.startswith("  ret ") and function in ends:
            writer.delay(f"at the end of ops.{ends[function]}()", line)
        writer.lines.append(line)
        if is_here and does == CALL:
            writer.delay(f"after {where}", line)
        if watches_locks:
            writer.watch_lock(where, line)
        if begun and _SECTION.search(line):
            writer.begin_callback(begun[2], begins.get(function, ""))
        if line == "}":
            function = ""
    return "\n".join([*writer.lines, *writer.added]) + "\n", [*writer.numbers]
