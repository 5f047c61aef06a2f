# SPDX-License-Identifier: MIT
"""Read a compiled policy: its data, and what it calls.

Only 64-bit little-endian ELF, which is what every machine has that schedlab runs on.

Read next: build.py and check.py, the callers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import PolicyError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB, _NOBITS, _DYNSYM = 2, 8, 11
_OBJECT, _FUNCTION, _GLOBAL = 1, 2, 1


class _Section(NamedTuple):
    """As the file has it: sh_name, sh_type and so on."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


class _Symbol(NamedTuple):
    name: str
    type: int
    binding: int
    section: int
    value: int
    size: int


class ElfFile:
    """One file, read whole. PolicyError, from every method: it is no shared object, or is cut short."""

    def __init__(self, path: str | Path):
        self.path = path
        self._raw = Path(path).read_bytes()
        if self._raw[:6] != b"\x7fELF\x02\x01":
            raise PolicyError(f"{path}: not a 64-bit little-endian ELF file; compile it again")
        try:
            header = _HEADER.unpack_from(self._raw)
            offset, size, count = header[6], header[11], header[12]
            self._sections = [
                _Section(*_SECTION.unpack_from(self._raw, offset + i * size)) for i in range(count)
            ]
            self._symbols = list(self._read_symbols())
        except (struct.error, IndexError, ValueError) as error:
            raise PolicyError(f"{path}: damaged ELF file ({error}); delete it and run again") from error

    def _text(self, at: int) -> str:
        return self._raw[at : self._raw.index(b"\0", at)].decode("utf-8", "replace")

    def _read_symbols(self) -> Iterator[_Symbol]:
        for table in self._sections:
            if table.type not in (_SYMTAB, _DYNSYM):
                continue
            names = self._sections[table.link].offset
            for at in range(table.offset, table.offset + table.size, _SYMBOL.size):
                name, info, _, section, value, size = _SYMBOL.unpack_from(self._raw, at)
                yield _Symbol(self._text(names + name), info & 15, info >> 4, section, value, size)

    def objects(self) -> dict[str, bytes]:
        """Initial contents of each variable that the file defines, by name."""
        found = {}
        for symbol in self._symbols:
            if symbol.type != _OBJECT or not 0 < symbol.section < len(self._sections):
                continue
            home = self._sections[symbol.section]
            start = home.offset + symbol.value - home.address
            is_zero = home.type == _NOBITS
            found[symbol.name] = bytes(symbol.size) if is_zero else self._raw[start : start + symbol.size]
        return found

    def variables(self) -> list[tuple[str, int, int]]:
        """Name, address and size of each variable that the file defines, local ones too."""
        return sorted(
            {
                (symbol.name, symbol.value, symbol.size)
                for symbol in self._symbols
                if symbol.type == _OBJECT and symbol.size and 0 < symbol.section < len(self._sections)
            }
        )

    def object_at(self, address: int) -> str | None:
        """Name of the variable at an address of the file, or None."""
        for symbol in self._symbols:
            if symbol.type == _OBJECT and 0 <= address - symbol.value < symbol.size:
                return symbol.name
        return None

    def function_at(self, address: int) -> str | None:
        """Name of the function that begins at an address of the file, or None."""
        for symbol in self._symbols:
            if symbol.type == _FUNCTION and symbol.section and symbol.value == address:
                return symbol.name
        return None

    def undefined(self) -> list[str]:
        """Names that must be found when it is loaded, without repetition, sorted."""
        # A linker's table for debuggers adds the version: "printf@GLIBC_2.2.5".
        return sorted(
            {
                symbol.name.partition("@")[0]
                for symbol in self._symbols
                if symbol.name and not symbol.section and symbol.binding == _GLOBAL
            }
        )
