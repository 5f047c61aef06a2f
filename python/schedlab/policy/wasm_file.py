# SPDX-License-Identifier: MIT
"""Read and write WebAssembly modules, as far as a compiled policy has use of it.

`Module` is a linked module: its sections, what it imports and exports, and its data.
`object_symbols` reads from an object file what a linked module does not say any more:
how large each variable is, and what could be exported.

Read next: wasm_meter.py, which rewrites a module; wasm_build.py, the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import PolicyError

MAGIC = b"\0asm\1\0\0\0"
CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, START, ELEMENT, CODE, DATA = range(12)
FUNC_KIND, TABLE_KIND, MEMORY_KIND, GLOBAL_KIND = range(4)
#: Sizes of the policy's variables, which wasm_build.py adds: our own custom section.
SIZES = "schedlab.sizes"
_I32_CONST, _END = 0x41, 0x0B
_SYMBOL_TABLE, _DATA_SYMBOL, _SECTION_SYMBOL = 8, 1, 3
_FUNCTION_NAMES = 1
_LOCAL, _UNDEFINED, _OTHER_NAME = 0x02, 0x10, 0x40


class Reader:
    """Numbers and names from the start of some bytes on."""

    def __init__(self, data: bytes, at: int = 0):
        self.data = data
        self.at = at

    def byte(self) -> int:
        """One byte."""
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        """A LEB128 number without sign."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        """A LEB128 number with sign."""
        start = self.at
        while self.byte() >= 0x80:
            pass
        last = self.data[self.at - 1]
        bits = 7 * (self.at - start)
        value = Reader(self.data, start).unsigned()
        return value - (1 << bits) if last & 0x40 else value

    def take(self, n: int) -> bytes:
        """The next `n` bytes."""
        if self.at + n > len(self.data):
            raise IndexError("cut short")
        self.at += n
        return self.data[self.at - n : self.at]

    def name(self) -> str:
        """A string with its length before it."""
        return self.take(self.unsigned()).decode("utf-8", "replace")

    def limits(self) -> tuple[int, int | None]:
        """Least and most of a memory or table."""
        flags = self.byte()
        return self.unsigned(), self.unsigned() if flags & 1 else None


def unsigned(value: int) -> bytes:
    """A number as LEB128."""
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def signed(value: int) -> bytes:
    """A number with sign as LEB128."""
    made = bytearray()
    while not -0x40 <= value < 0x40:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value & 0x7F])


def name(text: str) -> bytes:
    """A string with its length before it."""
    data = text.encode()
    return unsigned(len(data)) + data


def vector(items: list[bytes]) -> bytes:
    """Items with their number before them."""
    return unsigned(len(items)) + b"".join(items)


def sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each section."""
    if data[:8] != MAGIC:
        raise ValueError("no WebAssembly module")
    reader = Reader(data, 8)
    while reader.at < len(data):
        yield reader.byte(), reader.take(reader.unsigned())


@dataclass
class Module:
    """A linked module, taken apart."""

    sections: list[tuple[int, bytes]]  #: All of them, in order.
    #: Types of parameters and results of each signature.
    types: list[tuple[bytes, bytes]] = field(default_factory=list)
    #: Module, name, kind, and index of the signature or minimum size.
    imports: list[tuple[str, str, int, int]] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)  #: Signature of each function that is defined.
    n_globals: int = 0  #: How many global variables are defined.
    exports: dict[str, tuple[int, int]] = field(default_factory=dict)  #: Kind and index.
    #: Value of each global that begins with a constant of 32 bits.
    constants: list[int | None] = field(default_factory=list)
    segments: list[tuple[int, bytes]] = field(default_factory=list)  #: Address and content of the data.
    sizes: dict[str, int] = field(default_factory=dict)  #: Of variables, as wasm_build.py has added them.
    names: dict[int, str] = field(default_factory=dict)  #: Of functions, also of those that are not exported.

    @property
    def imported_functions(self) -> list[tuple[str, str, int, int]]:
        """Those imports that are functions, in the order of their indices."""
        return [entry for entry in self.imports if entry[2] == FUNC_KIND]

    def undefined(self) -> list[str]:
        """Names of the functions that somebody else must have."""
        return [entry[1] for entry in self.imported_functions]

    def address(self, variable: str) -> int | None:
        """Where a variable is."""
        kind, index = self.exports.get(variable, (-1, 0))
        return self.constants[index] if kind == GLOBAL_KIND else None

    def objects(self) -> dict[str, bytes]:
        """Every global variable with its first value."""
        return {
            variable: self._bytes(address, size)
            for variable, size in self.sizes.items()
            if (address := self.address(variable)) is not None
        }

    def _bytes(self, address: int, size: int) -> bytes:
        for start, data in self.segments:
            if start <= address < start + len(data):
                return data[address - start : address - start + size].ljust(size, b"\0")
        # What is not in the file is zero; of a large array nobody wants the value.
        return bytes(min(size, 4096))


def read_module(path: Path) -> Module:
    """Take a linked module apart."""
    try:
        return parse_module(path.read_bytes())
    except (IndexError, ValueError) as error:
        raise PolicyError(f"{path}: no WebAssembly module that can be read ({error})") from error


def parse_module(data: bytes) -> Module:
    """The same, of bytes; raises IndexError or ValueError."""
    module = Module(list(sections(data)))
    for number, content in module.sections:
        reader = Reader(content)
        if number == CUSTOM:
            what = reader.name()
            if what == SIZES:
                module.sizes = {reader.name(): reader.unsigned() for _ in range(reader.unsigned())}
            elif what == "name":
                module.names = _read_names(reader)
        elif number in _READERS:
            for _ in range(reader.unsigned()):
                _READERS[number](module, reader)
    return module


def _read_names(reader: Reader) -> dict[int, str]:
    names: dict[int, str] = {}
    while reader.at < len(reader.data):
        kind, part = reader.byte(), Reader(reader.take(reader.unsigned()))
        if kind == _FUNCTION_NAMES:
            names = {part.unsigned(): part.name() for _ in range(part.unsigned())}
    return names


def _read_type(module: Module, reader: Reader) -> None:
    if reader.byte() != 0x60:
        raise ValueError("a type that is no function's")
    module.types.append((reader.take(reader.unsigned()), reader.take(reader.unsigned())))


def _read_import(module: Module, reader: Reader) -> None:
    origin, what, kind = reader.name(), reader.name(), reader.byte()
    if kind == FUNC_KIND:
        detail = reader.unsigned()
    elif kind == TABLE_KIND:
        reader.byte()
        detail = reader.limits()[0]
    elif kind == MEMORY_KIND:
        detail = reader.limits()[0]
    else:
        raise ValueError(f"it imports {origin}.{what}, which is neither function, table nor memory")
    module.imports.append((origin, what, kind, detail))


def _read_function(module: Module, reader: Reader) -> None:
    module.functions.append(reader.unsigned())


def _read_global(module: Module, reader: Reader) -> None:
    reader.take(2)
    value = None
    opcode = reader.byte()
    if opcode in (_I32_CONST, 0x42):
        value = reader.signed() & 0xFFFFFFFF
    else:
        raise ValueError("a global that is no constant")
    if reader.byte() != _END:
        raise ValueError("a global that is no constant")
    module.constants.append(value if opcode == _I32_CONST else None)
    module.n_globals += 1


def _read_export(module: Module, reader: Reader) -> None:
    what = reader.name()
    module.exports[what] = (reader.byte(), reader.unsigned())


def _read_segment(module: Module, reader: Reader) -> None:
    if reader.unsigned() != 0 or reader.byte() != _I32_CONST:
        raise ValueError("data without an address")
    address = reader.signed() & 0xFFFFFFFF
    reader.byte()
    module.segments.append((address, reader.take(reader.unsigned())))


_READERS = {
    TYPE: _read_type,
    IMPORT: _read_import,
    FUNCTION: _read_function,
    GLOBAL: _read_global,
    EXPORT: _read_export,
    DATA: _read_segment,
}


def write_module(parts: list[tuple[int, bytes]]) -> bytes:
    """A module of these sections."""
    return MAGIC + b"".join(bytes([number]) + unsigned(len(content)) + content for number, content in parts)


@dataclass(frozen=True)
class Symbols:
    """What an object file defines for others."""

    sizes: dict[str, int]  #: Size of each variable.
    functions: set[str]  #: Names of functions.


def object_symbols(data: bytes) -> Symbols:
    """Read what an object file defines for others; raises as `parse_module`."""
    found = Symbols({}, set())
    for number, content in sections(data):
        reader = Reader(content)
        if number != CUSTOM or reader.name() != "linking":
            continue
        reader.unsigned()
        while reader.at < len(content):
            kind, part = reader.byte(), Reader(reader.take(reader.unsigned()))
            if kind == _SYMBOL_TABLE:
                for _ in range(part.unsigned()):
                    _read_symbol(part, found)
    return found


def _read_symbol(reader: Reader, found: Symbols) -> None:
    kind, flags = reader.byte(), reader.unsigned()
    is_defined = not flags & _UNDEFINED
    if kind == _DATA_SYMBOL:
        what = reader.name()
        if is_defined:
            _segment, _offset, size = reader.unsigned(), reader.unsigned(), reader.unsigned()
            if not flags & _LOCAL:
                found.sizes[what] = size
        return
    reader.unsigned()
    # A section has no name; what is undefined only where it is another one.
    if kind != _SECTION_SYMBOL and (is_defined or flags & _OTHER_NAME):
        what = reader.name()
        if kind == FUNC_KIND and is_defined and not flags & _LOCAL:
            found.functions.add(what)
