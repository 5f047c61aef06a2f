# SPDX-License-Identifier: MIT
"""Which lines of a policy have run in a sample of the worlds of a search.

        policy -> compiled with -fsanitize-coverage=trace-pc -> hosts/check/coverage.c: a file
        blocks of its code (objdump) -> their lines (addr2line) -> reached, in part, never

Each basic block begins with a call, and ends at the next one. A line of which some block was
not reached is one whose branch was never taken. Lines of schedlab's own headers are left out, and so
are the traps of clang's checks of an index, which are blocks of their own.

Invariant: a line that is said to have been reached has run.
Read next: hosts/check/coverage.c; search.py, the caller.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .. import paths
from ..errors import UnavailableError
from ..policy.build import BuiltPolicy, compile_policy, find_compiler

#: Nothing is put in line, and nothing optimised: a line is in one place, and none is a part of another.
FLAGS = ("-fsanitize-coverage=trace-pc", "-O0", "-fno-inline", "-gdwarf-4")
#: It would leave out blocks that are reached where another one is.
FLAGS_CLANG = ("-fsanitize-coverage=bb,no-prune",)
_CALL = re.compile(r"^\s*([0-9a-f]+):\t.*\bcall\w*\s+[0-9a-f]+ <__sanitizer_cov_trace_pc")
_TRAP = re.compile(r"^\s*[0-9a-f]+:\t(?:ud[12]\w*|brk|ebreak)\b")
_FUNCTION = re.compile(r"^([0-9a-f]+) <\S+>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t")
_LINE = re.compile(r"(.+):([1-9]\d*)(?: \(|$)")


@dataclass(frozen=True)
class Coverage:
    """Lines of a policy, as `FILE:LINE`, in the order of the text."""

    n_lines: int
    in_part: tuple[str, ...]
    never: tuple[str, ...]


def compile_covered(built: BuiltPolicy, flags: Iterable[str]) -> Path | None:
    """Compile a policy with these flags so that its blocks are seen; None where that cannot be."""
    if not (shutil.which("objdump") and shutil.which("addr2line")):
        return None
    try:
        more_flags = FLAGS_CLANG if "clang" in find_compiler()[1] else ()
        return compile_policy(built.policy, more_flags=(*flags, *FLAGS, *more_flags))
    except UnavailableError:
        return None


def map_of(folder: Path, compiled: Path) -> Path:
    """The file in which a compiled policy's blocks are noted; its name says whose."""
    return folder / f"{compiled.name}.coverage"


def read_coverage(folder: Path, compiled_folder: Path) -> Coverage | None:
    """What all processes of a search have noted; None: nothing was."""
    blocks: dict[tuple[str, int], list[float]] = {}
    for noted in sorted(folder.glob("*.coverage")):
        hits = noted.read_bytes()
        found: dict[tuple[str, int], list[bool]] = {}
        for address, places in _blocks(compiled_folder / noted.name.removesuffix(".coverage")).items():
            for place in places:
                found.setdefault(place, []).append(address < len(hits) and bool(hits[address]))
        for place, reached in found.items():
            blocks.setdefault(place, []).append(sum(reached) / len(reached))
    if not blocks:
        return None
    best = {place: max(parts) for place, parts in sorted(blocks.items())}
    name = {place: f"{Path(place[0]).name}:{place[1]}" for place in best}
    return Coverage(
        len(best),
        tuple(name[place] for place, part in best.items() if 0 < part < 1),
        tuple(name[place] for place, part in best.items() if not part),
    )


def _blocks(compiled: Path) -> dict[int, set[tuple[str, int]]]:
    """Where the call of each block returns to, and the lines of the block: those of schedlab's headers are left out."""
    listed = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", compiled], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rows = [(line, match) for line in listed if (match := _INSTRUCTION.match(line) or _FUNCTION.match(line))]
    asked = "".join(f"0x{match[1]}\n" for _, match in rows)
    answered = subprocess.run(
        ["addr2line", "-e", compiled], input=asked, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found: dict[int, set[tuple[str, int]]] = {}
    lines: set[tuple[str, int]] = set()  # of what stands before the first call of a function
    was_call, own = False, ""
    for (line, match), text in zip(rows, answered, strict=True):
        place = _LINE.match(text)
        if _FUNCTION.match(line):
            # An instruction of another file is in line in spite of all, or addr2line is wrong about it.
            own = place[1] if place and _is_of_policy(Path(place[1])) else ""
            lines = set()
            continue
        if was_call:
            lines = set()
            if not _TRAP.match(line):
                found[int(match[1], 16)] = lines
        was_call = _CALL.match(line) is not None
        if place and place[1] == own and not was_call:
            lines.add((own, int(place[2])))
    return found


def _is_of_policy(source: Path) -> bool:
    """Whether a file is the policy's: not a header of schedlab, nor what was written to compile it, and is no more."""
    is_written = source.name in ("main.c", "answers.h") and not source.is_file()
    return not is_written and not source.resolve().is_relative_to(paths.include_folder().resolve())


def ranges(places: Iterable[str]) -> str:
    """Lines as a person writes them: `mine.bpf.c:44, 71-73`."""
    runs: dict[str, list[list[int]]] = {}
    for place in places:
        file, _, line = place.rpartition(":")
        of_file = runs.setdefault(file, [])
        if of_file and int(line) == of_file[-1][1] + 1:
            of_file[-1][1] += 1
        else:
            of_file.append([int(line), int(line)])
    texts = (
        f"{file}:" + ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in rows)
        for file, rows in runs.items()
    )
    return "; ".join(texts)
