# SPDX-License-Identifier: MIT
"""Refuse in a policy what Linux refuses, with the line, before it runs anywhere.

A policy that is compiled for this machine could call the C library, use floating
point, or take arguments that its callback does not have; Linux would not load it.
So the same is an error here:

        check_callbacks   arguments and result of each callback, by the text of the file
        check_object      what it calls, by the compiled file, and its licence

Floating point is refused by the compiler (build.py, FLAGS).

Invariant: what Linux accepts is accepted. A callback may leave out its last
arguments; a callback that the text does not show, as behind a macro, is not judged.
Read next: build.py, the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from .. import paths
from ..errors import PolicyError
from .find import source_files


class Compiled(Protocol):
    """A compiled policy: an ElfFile, or a Module of WebAssembly."""

    def undefined(self) -> Iterable[str]:
        """Names of what others must have."""

    def objects(self) -> Mapping[str, bytes]:
        """Every global variable with its first value."""


#: What compilers call by themselves, as for an assignment of a large structure.
COMPILER_CALLS = {
    "memcpy",
    "memset",
    "memmove",
    "memcmp",
    "bcmp",
    "__stack_chk_fail",
    "_GLOBAL_OFFSET_TABLE_",
}
#: What `__kconfig` names: of the kernel's configuration, the rate of its tick.
KCONFIG = {"CONFIG_HZ"}
#: Of struct_ops programs: Linux's license_is_gpl_compatible().
LICENCES = {"GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"}

_COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_OPERATION = re.compile(r"^\s*([\w ]+?)\s*\(\*(\w+)\)\(([^)]*)\);", re.MULTILINE)
_CALLBACK = re.compile(
    r"^[ \t]*(?:static\s+)?(\w+)\s+BPF_STRUCT_OPS(?:_SLEEPABLE)?\(\s*(\w+)\s*(?:,([^)]*))?\)", re.MULTILINE
)
_LICENCE = re.compile(r'SEC\("license"\)\s*=\s*"([^"]*)"')
_MEMBER = re.compile(r"\.(\w+)\s*=\s*(?:\(\s*void\s*\*\s*\)\s*)?(\w+)")


@dataclass(frozen=True)
class Prototype:
    """What a callback takes and gives."""

    result: str  #: Type of its result.
    arguments: tuple[str, ...]  #: Type and name of each, as written.
    line: int = 0  #: Where it begins, from 1.

    def __str__(self) -> str:
        return f"({', '.join(self.arguments) or 'void'})"


def _plain(text: str) -> str:
    """The text without comments and strings; lines and places stay."""
    return _COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _arguments(text: str | None) -> tuple[str, ...]:
    words = [" ".join(part.split()) for part in (text or "").split(",")]
    return tuple(word for word in words if word not in ("", "void"))


@lru_cache(maxsize=1)
def operations() -> dict[str, Prototype]:
    """Every callback of `struct sched_ext_ops`, by name."""
    text = _plain((paths.include_folder() / "scx" / "ops.h").read_text())
    body = text[text.index("struct sched_ext_ops {") :]
    return {
        name: Prototype(result.split()[-1], _arguments(given))
        for result, name, given in _OPERATION.findall(body)
    }


def _kind(argument: str) -> tuple[str, str]:
    """Whether a pointer or a number, and the structure that is pointed to, where it is named."""
    if "*" not in argument:
        return "number", ""
    named = re.search(r"\bstruct\s+(\w+)", argument)
    return "pointer", named[1] if named else ""


def _difference(is_given: Prototype, wanted: Prototype) -> str | None:
    """What Linux would refuse about a callback; None: nothing."""
    if len(is_given.arguments) > len(wanted.arguments):
        return f"takes {len(is_given.arguments)} arguments {is_given}, of which there are {len(wanted.arguments)}"
    for given, expected in zip(is_given.arguments, wanted.arguments, strict=False):
        (kind, name), (expected_kind, expected_name) = _kind(given), _kind(expected)
        if kind != expected_kind or (name and expected_name and name != expected_name):
            return f"takes '{given}', where Linux passes '{expected}'"
    if wanted.result != "void" and is_given.result == "void":
        return f"returns nothing, where Linux reads a result of type {wanted.result}"
    return None


def callback_names(text: str) -> dict[str, str]:
    """Operation that each function of a policy is given to, by the text of the file."""
    return {name: member for member, name in _MEMBER.findall(_plain(text)) if member in operations()}


def check_callbacks(path: Path, text: str) -> None:
    """Hold the callbacks of a policy against `struct sched_ext_ops`."""
    plain = _plain(text)
    defined = {
        name: Prototype(result, _arguments(given), plain.count("\n", 0, match.start(2)) + 1)
        for match in _CALLBACK.finditer(plain)
        for result, name, given in [match.groups()]
    }
    for member, name in _MEMBER.findall(plain):
        wanted, is_given = operations().get(member), defined.get(name)
        if wanted is None or is_given is None:
            continue
        difference = _difference(is_given, wanted)
        if difference:
            raise PolicyError(
                f"{path}:{is_given.line}: {name}() {difference}; ops.{member} is "
                f"{wanted.result} {member}{wanted}"
            )


@lru_cache(maxsize=1)
def _offered() -> frozenset[str]:
    """Every word that the headers of a policy declare, or use, as a function or macro."""
    folders = (paths.include_folder() / name for name in ("scx", "published"))
    texts = (header.read_text() for folder in folders for header in sorted(folder.glob("*.h")))
    return frozenset(word for text in texts for word in re.findall(r"(\w+)\s*\(", _plain(text)))


def _licence(path: Path) -> str:
    """What the policy, or a header of its own, says; empty: nothing."""
    texts = (file.read_text("utf-8", errors="replace") for file in source_files(path).values())
    return next((match[1] for text in texts if (match := _LICENCE.search(text))), "")


def check_object(path: Path, text: str, compiled: Compiled) -> None:
    """Hold what a policy calls, and its licence, against what Linux accepts."""
    plain = _plain(text)
    for name in compiled.undefined():
        if name in _offered() or name in COMPILER_CALLS | KCONFIG:
            continue
        # Within a function, so indented: at the margin stands what declares it.
        called = re.search(rf"^[ \t].*?\b{re.escape(name)}\s*\(", plain, re.MULTILINE)
        line = f":{plain.count(chr(10), 0, called.end()) + 1}" if called else ""
        what = "floating point" if re.fullmatch(r"__\w+[sdt]f\w*", name) else f"{name}()"
        hint = "; use bpf_printk()" if "print" in name or name in ("puts", "putchar") else ""
        raise PolicyError(
            f"{path}{line}: {what} is not there: Linux gives a policy what include/scx "
            f"declares, and no C library{hint}"
        )
    licence = _licence(path)
    # A file without operations is no policy at all, which build.py says.
    if licence not in LICENCES and "sl_policy" in compiled.objects():
        has = f"its licence is {licence!r}" if licence else "it has no licence"
        raise PolicyError(
            f"{path}: {has}, and Linux loads only policies compatible with the GPL; add "
            'char _license[] SEC("license") = "GPL";'
        )
