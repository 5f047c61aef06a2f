# SPDX-License-Identifier: MIT
"""Make a policy's module count its own instructions, and stop where it has no more.

        enqueue:   ...              ->   enqueue:  fuel -= 12; if fuel < 0: trap; ...
        table[1] = enqueue               table[1] = wrapper of enqueue: grants the fuel of a
                                                    callback, and adds up what was used

Only the policy is rewritten: the simulator runs at full speed, and a count does not
depend on engine, processor or version of the simulator. Each straight run of instructions
is paid for at its beginning; `block`, `loop`, `else` and `end` cost nothing, since no
instruction of a processor stands for them. What has no constant cost, or would reach out
of the sandbox, is refused: memory.grow, bulk operations, tables, floating point.

Invariant: every path that can be endless passes a function's entry or a loop's head, and
the fuel is looked at there.
Read next: hosts/wasm_run.py, which grants the fuel and reads the counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import PolicyError
from .wasm_file import (
    CODE,
    ELEMENT,
    EXPORT,
    FUNC_KIND,
    FUNCTION,
    GLOBAL,
    GLOBAL_KIND,
    START,
    TYPE,
    Module,
    Reader,
    name,
    parse_module,
    signed,
    unsigned,
    vector,
    write_module,
)

#: Types of parameters and results.
Signature = tuple[bytes, bytes]
#: Globals that are added: what a run and a callback still have, and what the caller grants.
RUN_LEFT, CALLBACK_LIMIT, FUEL = "schedlab.run_left", "schedlab.callback_limit", "schedlab.fuel"
#: Per callback: `schedlab.calls.NAME`, `schedlab.sum.NAME`, `schedlab.max.NAME`.
COUNTS = ("calls", "sum", "max")
I32, I64 = 0x7F, 0x7E
_MUTABLE_I64 = bytes([I64, 1, 0x42, 0, 0x0B])
_MUTABLE_I32 = bytes([I32, 1, 0x41, 0, 0x0B])

_UNREACHABLE, _BLOCK, _LOOP, _IF, _ELSE, _END = 0x00, 0x02, 0x03, 0x04, 0x05, 0x0B
_BR, _BR_IF, _BR_TABLE, _RETURN, _CALL, _CALL_INDIRECT = 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11
_ENDS_RUN = {_UNREACHABLE, _LOOP, _IF, _ELSE, _END, _BR, _BR_IF, _BR_TABLE, _RETURN}
_FREE = {_BLOCK, _LOOP, _ELSE, _END}
_FLOAT = {
    0x2A, 0x2B, 0x38, 0x39, 0x43, 0x44, *range(0x5B, 0x67), *range(0x8B, 0xA7),
    0xA8, 0xA9, 0xAA, 0xAB, *range(0xAE, 0xC0),
}  # fmt: skip


def _get(index: int) -> bytes:
    return b"\x23" + unsigned(index)


def _set(index: int) -> bytes:
    return b"\x24" + unsigned(index)


def _i64(value: int) -> bytes:
    return b"\x42" + signed(value)


_SUB64, _ADD64, _LT64, _GT64, _SUB32, _ADD32, _EQZ32 = (
    b"\x7d",
    b"\x7c",
    b"\x53",
    b"\x55",
    b"\x6b",
    b"\x6a",
    b"\x45",
)


def _skip_immediates(reader: Reader, opcode: int, n_globals: int) -> None:
    """Go behind what follows an opcode; raises ValueError at what may not be there."""
    if opcode in _FLOAT:
        raise ValueError("floating point")
    if opcode in (_BLOCK, _LOOP, _IF, 0x41, 0x42):
        reader.signed()
    elif opcode in (_BR, _BR_IF, _CALL, 0x20, 0x21, 0x22, 0xD2):
        reader.unsigned()
    elif opcode in (0x23, 0x24):
        # Those that are added here are not the policy's.
        if reader.unsigned() >= n_globals:
            raise ValueError("a global that does not exist")
    elif opcode == _BR_TABLE:
        for _ in range(reader.unsigned() + 1):
            reader.unsigned()
    elif opcode == _CALL_INDIRECT or 0x28 <= opcode <= 0x3E:
        reader.unsigned()
        reader.unsigned()
    elif opcode == 0x3F:
        reader.byte()
    elif not (opcode in (0x00, 0x01, 0x05, 0x0B, 0x0F, 0x1A, 0x1B) or 0x45 <= opcode <= 0xC4):
        raise ValueError(f"instruction {opcode:#04x}")


def _converted(given: int, wanted: int) -> bytes:
    """Make a number of one type one of another, as a register does."""
    return b"" if given == wanted else b"\xa7" if wanted == I32 else b"\xad"


def _converted_result(given: bytes, wanted: bytes) -> bytes:
    if not wanted:
        return b"\x1a" * len(given)
    if not given:
        return b"\x41\x00" if wanted[0] == I32 else _i64(0)
    return _converted(given[0], wanted[0])


class _Meter:
    """The indices of the globals that are added to one module."""

    def __init__(self, module: Module):
        self.module = module
        self.run_left, self.limit, self.fuel, self.granted, self.depth = (
            module.n_globals + i for i in range(5)
        )
        self.n_added = 5

    def charge(self, cost: int, *, is_checked: bool) -> bytes:
        """Pay for a straight run of instructions."""
        made = _get(self.fuel) + _i64(cost) + _SUB64 + _set(self.fuel) if cost else b""
        if is_checked:
            made += _get(self.fuel) + _i64(0) + _LT64 + b"\x04\x40\x00\x0b"
        return made

    def body(self, body: bytes) -> bytes:
        """A function's code with its charges."""
        reader = Reader(body)
        for _ in range(reader.unsigned()):
            reader.unsigned()
            reader.byte()
        made = [body[: reader.at]]
        start, cost, is_checked = reader.at, 0, True
        while reader.at < len(body):
            opcode = reader.byte()
            _skip_immediates(reader, opcode, self.module.n_globals)
            cost += opcode not in _FREE
            if opcode in _ENDS_RUN or reader.at == len(body):
                made += [self.charge(cost, is_checked=is_checked), body[start : reader.at]]
                start, cost, is_checked = reader.at, 0, opcode == _LOOP
        return b"".join(made)

    def wrapper(self, function: int, own: Signature, called_as: Signature, counts: int) -> bytes:
        """A function that the simulator calls in the place of `function`."""
        calls, total, most = counts, counts + 1, counts + 2
        depth, fuel, granted, left = self.depth, self.fuel, self.granted, self.run_left
        used = _get(granted) + _get(fuel) + _SUB64
        return b"".join(
            [
                b"\0",  # no locals
                # The outermost callback gets its fuel: the limit, or what the run has left.
                *(_get(depth), _EQZ32, b"\x04\x40"),
                *(_get(self.limit), _get(left), _get(self.limit), _get(left), _LT64, b"\x1b"),
                *(_set(granted), _get(granted), _set(fuel), b"\x0b"),
                *(_get(depth), b"\x41\x01", _ADD32, _set(depth)),
                *(b"\x20" + unsigned(i) + _converted(called_as[0][i], kind) for i, kind in enumerate(own[0])),
                b"\x10" + unsigned(function),
                _converted_result(own[1], called_as[1]),
                *(_get(depth), b"\x41\x01", _SUB32, _set(depth)),
                *(_get(depth), _EQZ32, b"\x04\x40"),
                *(_get(left), used, _SUB64, _set(left)),
                *(_get(calls), _i64(1), _ADD64, _set(calls)),
                *(_get(total), used, _ADD64, _set(total)),
                *(used, _get(most), _GT64, b"\x04\x40", used, _set(most), b"\x0b"),
                b"\x0b\x0b",
            ]
        )


def _element_functions(content: bytes) -> tuple[list[tuple[bytes, list[int]]], set[int]]:
    """Each segment's beginning with its functions, and all functions."""
    reader = Reader(content)
    segments: list[tuple[bytes, list[int]]] = []
    for _ in range(reader.unsigned()):
        start = reader.at
        if reader.unsigned() != 0 or reader.byte() != 0x41:
            raise ValueError("a table that is no constant")
        reader.signed()
        reader.byte()
        head = content[start : reader.at]
        segments.append((head, [reader.unsigned() for _ in range(reader.unsigned())]))
    return segments, {index for _, indices in segments for index in indices}


def metered(data: bytes, names: Mapping[int, str], called_as: Mapping[int, Signature]) -> bytes:
    """Rewrite a policy's module."""
    try:
        return _metered(parse_module(data), names, called_as)
    except (IndexError, ValueError) as error:
        hint = "; Linux gives a policy none" if "floating" in str(error) else ""
        raise PolicyError(f"the compiled policy has {error}{hint}") from error


def _metered(module: Module, names: Mapping[int, str], called_as: Mapping[int, Signature]) -> bytes:
    meter = _Meter(module)
    parts = dict(module.sections)
    if START in parts:
        raise ValueError("a start function")
    first = len(module.imported_functions)
    elements, wanted = _element_functions(parts[ELEMENT]) if ELEMENT in parts else ([], set())
    wanted |= {index for kind, index in module.exports.values() if kind == FUNC_KIND}
    called = sorted(index for index in wanted if index >= first)
    # Wrapper and first count of each function that the simulator may call.
    wrapper_of = {index: first + len(module.functions) + n for n, index in enumerate(called)}
    counts_of = {index: module.n_globals + meter.n_added + 3 * n for n, index in enumerate(called)}
    added = {RUN_LEFT: meter.run_left, CALLBACK_LIMIT: meter.limit, FUEL: meter.fuel}
    for index in called:
        for offset, what in enumerate(COUNTS):
            added[f"schedlab.{what}.{names.get(index, f'f{index}')}"] = counts_of[index] + offset
    own = {index: module.types[module.functions[index - first]] for index in called}
    outer = {index: called_as.get(index, own[index]) for index in called}
    for index in called:
        if len(outer[index][0]) < len(own[index][0]):
            outer[index] = own[index]
    # Behind those that code refers to by number.
    signatures = module.types + [each for each in dict.fromkeys(outer.values()) if each not in module.types]
    types = [*module.functions, *(signatures.index(outer[index]) for index in called)]
    reader = Reader(parts[CODE])
    bodies = [meter.body(reader.take(reader.unsigned())) for _ in range(reader.unsigned())]
    bodies += [meter.wrapper(index, own[index], outer[index], counts_of[index]) for index in called]
    exports = [
        name(what) + bytes([kind]) + unsigned(wrapper_of.get(index, index) if kind == FUNC_KIND else index)
        for what, (kind, index) in module.exports.items()
    ]
    exports += [name(what) + bytes([GLOBAL_KIND]) + unsigned(index) for what, index in added.items()]
    globals_ = Reader(parts.get(GLOBAL, b"\0"))
    globals_.unsigned()
    n_new = meter.n_added + 3 * len(called)
    rest = globals_.data[globals_.at :]
    new = b"".join(_MUTABLE_I32 if i == 4 else _MUTABLE_I64 for i in range(n_new))
    replaced = {
        TYPE: vector(
            [
                b"\x60" + vector([bytes([kind]) for kind in took]) + vector([bytes([kind]) for kind in gave])
                for took, gave in signatures
            ]
        ),
        FUNCTION: vector([unsigned(index) for index in types]),
        GLOBAL: unsigned(module.n_globals + n_new) + rest + new,
        EXPORT: vector(exports),
        ELEMENT: vector(
            [head + vector([unsigned(wrapper_of.get(i, i)) for i in indices]) for head, indices in elements]
        ),
        CODE: vector([unsigned(len(body)) + body for body in bodies]),
    }
    return write_module(
        [(number, replaced.get(number, content)) for number, content in module.sections if number]
    )
