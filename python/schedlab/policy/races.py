# SPDX-License-Identifier: MIT
"""Compile a policy for CPUs that interleave, and name the places that a run of it tells.

        policy -> compiled with -fsanitize=thread, without its runtime -> hosts/check
                                                                             |
                  "CPU 0 read 3 at <0x11c2>; CPU 1 ..."  -> source lines <---+

Read next: hosts/check/updates.c, the runtime; hosts/sim.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..paths import include_folder
from ..tools import source_line
from .build import BuiltPolicy, compile_policy, find_compiler
from .elf import ElfFile
from .invariants import CHECK_FLAG

#: The runtime that the sanitizer would bring is hosts/check. A call that ends a function has its place, too.
FLAGS = ("-fsanitize=thread", "-nodefaultlibs", "-fno-optimize-sibling-calls")
#: It would leave out the read of `n++`.
FLAGS_CLANG = ("-mllvm", "-tsan-instrument-read-before-write=1")
_ADDRESS = re.compile(r"<(0x[0-9a-f]+)>")


def compile_for_races(built: BuiltPolicy, flags: Iterable[str] = ()) -> BuiltPolicy:
    """Compile a policy so that its accesses to memory are seen, with these flags for what is held."""
    for_compiler = FLAGS_CLANG if "clang" in find_compiler()[1] else ()
    more_flags = dict.fromkeys((CHECK_FLAG, *flags, *FLAGS, *for_compiler))
    return replace(built, shared_object=compile_policy(built.policy, more_flags=(*more_flags,)))


class Places:
    """Names of a compiled policy's addresses; each is looked for once."""

    def __init__(self, shared_object: Path):
        self._file = shared_object
        self._known: dict[str, str] = {}

    def in_text(self, text: str) -> str:
        """A text with names in place of `<0x...>`."""
        return _ADDRESS.sub(lambda found: self._name(found[1]), text)

    def _name(self, address: str) -> str:
        """A variable or function, or the source line of an instruction; the address where neither is known."""
        if address not in self._known:
            self._known[address] = self._find(address)
        return self._known[address]

    def _find(self, address: str) -> str:
        """Ask the file's tables."""
        file = ElfFile(self._file)
        if name := file.object_at(int(address, 16)) or file.function_at(int(address, 16)):
            return name
        return source_line(self._file, address, but_below=include_folder()) or address
