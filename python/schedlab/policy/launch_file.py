# SPDX-License-Identifier: MIT
"""Read a launch file: the constants that a scheduler's own user half sets before it is loaded.

`NAME.launch.toml`, beside the scheduler or in `policies/launch`, has these tables; for a scheduler of version 1.1.x
`NAME-1.1.launch.toml` comes before it, and for version 1.0.10 `NAME-1.0.10.launch.toml`:

    [rodata]
    slice_ns = "20ms"       # a time, in nanoseconds; or an integer, or true
    nr_cpu_ids = "cpus"     # of the machine: cpus, nodes, caches, has_smt, has_nodes, has_one_node
    [ops]
    flags = ["SCX_OPS_ENQ_LAST"]
    flags_on_nodes = ["SCX_OPS_BUILTIN_IDLE_PER_NODE"]  # besides, on several nodes
    "slice_lag?" = "40ms"   # only where the scheduler has it: its versions differ
    [maps]
    pair_ctx = 512          # entries of a map that says none, as the compiler gets it
    [[call]]                # SEC("syscall") programs, before the policy's init, in this order
    program = "enable_primary_cpu"
    input = [0]             # one s32 or two

What that cannot say, as a table of the machine's CPUs, is in `NAME.launch.c`, in a function:

    static int launch(void)     // before the policy's init; 0, or an error

It is compiled as the end of the scheduler's main file, so all of that file's names are known to it,
and constants may be written (`SL_SET(constant, value)`); `#if SL_HAS(name)` asks whether its files have a name. For Linux it runs here, and the kernel's
object gets what it has written (hosts/user_half.py). What it does while tasks run, `SL_USER_THREAD()`, only the
simulator has, and where that is all (`is_thread_only`) the others go without.

Each name is held against the variables of the compiled file (build.py), and a word for the
machine becomes a number when a run's machine is known (`for_machine`).

Read next: build.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import PolicyError, SpecError, UnitError, did_you_mean
from ..paths import policies_folder
from ..toml_file import Source, read_source
from ..units import parse_quantity
from .published import scheduler_version

SUFFIX = ".launch.toml"
CODE_SUFFIX = ".launch.c"
#: What a value may say of the machine.
MACHINE = ("cpus", "nodes", "caches", "has_smt", "has_nodes", "has_one_node")
#: Bits of `sched_ext_ops.flags`. `SCX_OPS_SWITCH_PARTIAL` is the kernel's alone, and refused by the other hosts.
OPS_FLAGS = {
    "SCX_OPS_KEEP_BUILTIN_IDLE": 1 << 0,
    "SCX_OPS_ENQ_LAST": 1 << 1,
    "SCX_OPS_ENQ_EXITING": 1 << 2,
    "SCX_OPS_ENQ_MIGRATION_DISABLED": 1 << 4,
    "SCX_OPS_ALLOW_QUEUED_WAKEUP": 1 << 5,
    "SCX_OPS_SWITCH_PARTIAL": 1 << 3,
    "SCX_OPS_BUILTIN_IDLE_PER_NODE": 1 << 6,
}
#: What hosts call the flags where a variable's name is expected.
FLAGS_NAME = "ops.flags"
#: More of them, on a machine of several nodes; `for_machine` makes one of both.
FLAGS_ON_NODES = "ops.flags_on_nodes"
#: At the end of a name: it may be absent.
OPTIONAL = "?"
#: What they call a call: this, its number, a dot, and the program.
CALL = "call."
#: Asks, in C, whether the scheduler's files have a name.
_ASKED = re.compile(r"\bSL_HAS\((\w+)\)")
#: What of a user half in C is needed for the scheduler to begin, or to decide.
_BEFORE = re.compile(r"\bint\s+launch\s*\(\s*void\s*\)|\bSL_(USER_HALF|LAUNCH_ON_NODES)\s*\(")
_BESIDE = re.compile(r"\bSL_USER_THREAD\s*\(")
_OWN_HEADER = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TABLES = {"rodata": dict, "ops": dict, "maps": dict, "call": list}
_MAP_END = r"\}}(?=\s*{}\s*SEC\(\"\.maps\"\))"


def launch_file(name: str, source: Path) -> Path | None:
    """Find the launch file of a scheduler."""
    return _find(name, SUFFIX, source)


def launch_code(name: str, source: Path) -> Path | None:
    """Find what of a scheduler's user half is written in C."""
    return _find(name, CODE_SUFFIX, source)


def is_thread_only(code: Path) -> bool:
    """Whether a scheduler runs without its user half in C: it has nothing but `SL_USER_THREAD()`."""
    return not any(_BEFORE.search(text) for text in _texts(code))


def has_thread(code: Path) -> bool:
    """Whether a part of its user half in C runs beside the scheduler, which the simulator alone has."""
    return any(_BESIDE.search(text) for text in _texts(code))


def _texts(code: Path) -> Iterator[str]:
    """A user half in C and the headers beside it, without comments."""
    files = [code]
    for file in files:
        text = _COMMENT.sub(" ", file.read_text("utf-8", "replace"))
        yield text
        own = [file.parent / name for name in _OWN_HEADER.findall(text)]
        files += [header for header in own if header.is_file() and header not in files]


def filled_elsewhere(files: Iterable[Path]) -> list[str]:
    """Queues and rings from which a scheduler takes, and into which it puts nothing: its user half would."""
    text = "".join(_COMMENT.sub(" ", file.read_text("utf-8", "replace")) for file in files)
    taken = re.findall(r"\b(?:bpf_map_pop_elem|bpf_map_peek_elem|bpf_user_ringbuf_drain)\s*\(\s*&(\w+)", text)
    return [
        name for name in dict.fromkeys(taken) if not re.search(rf"bpf_map_push_elem\s*\(\s*&{name}\b", text)
    ]


def names_asked_for(code: Path, files: Iterable[Path]) -> list[str]:
    """Definitions, in C, of the names that a user half in C asks for and that the scheduler's files have."""
    beside = [*code.parent.glob("*.h"), code]
    asked = {name for file in beside for name in _ASKED.findall(file.read_text("utf-8", "replace"))}
    words: set[str] = set()
    for file in files if asked else ():
        words |= asked & set(re.findall(r"\w+", _COMMENT.sub(" ", file.read_text("utf-8", "replace"))))
    return [f"#define SL_HAS_{name} 1" for name in sorted(words)]


def _find(name: str, suffix: str, source: Path) -> Path | None:
    folder = policies_folder() / "launch"
    places = [source.parent / (name + suffix), folder / (name + suffix)]
    if name.startswith("scx_") and (version := scheduler_version(source)):
        exact = ".".join(map(str, version))
        places[1:1] = [
            folder / f"{name}-{number}{suffix}" for number in (exact, f"{version[0]}.{version[1]}")
        ]
    return next((place for place in places if place.is_file()), None)


def read_launch_file(path: Path) -> dict[str, int | str]:
    """Read the constants."""
    source = _read_tables(path)
    tables = source.values

    def place(*at: str | int) -> str:
        return f"{path}:{source.line_of(at)}"

    found = {
        name: _read_value(place("rodata", name), name, value)
        for name, value in tables.get("rodata", {}).items()
    }
    for name, value in tables.get("ops", {}).items():
        if (said := f"ops.{name}") not in (FLAGS_NAME, FLAGS_ON_NODES):
            raise PolicyError(
                f"{place('ops', name)}: {said} cannot be set; of [ops] there are flags and flags_on_nodes"
            )
        found[said] = _read_flags(place("ops", name), value)
    for number, call in enumerate(tables.get("call", [])):
        name, value = _read_call(place("call", number), call)
        found[f"{CALL}{number}.{name}"] = value
    return found


def with_map_sizes(path: Path | None, text: str) -> str:
    """Give maps of a source, whose lines keep their numbers, the entries that a launch file has for them."""
    if path is None:
        return text
    source = _read_tables(path)
    for name, size in source.values.get("maps", {}).items():
        place = f"{path}:{source.line_of(('maps', name))}: maps.{name}"
        if type(size) is not int or not 0 < size < 1 << 31:
            raise PolicyError(f"{place}: '{size}' is not a positive integer")
        end = _MAP_END.format(re.escape(name.removesuffix(OPTIONAL)))
        text, n_found = re.subn(end, f"__uint(max_entries, {size}); }}", text)
        if not n_found and not name.endswith(OPTIONAL):
            raise PolicyError(f"{place}: there is no map of that name")
    return text


def _read_tables(path: Path) -> Source:
    """The file with the line of each value; it has no other tables than those that are known."""
    try:
        source = read_source(path)
    except SpecError as error:
        raise PolicyError(str(error)) from error
    for table, value in source.values.items():
        place = f"{path}:{source.line_of((table,))}"
        if table not in _TABLES:
            raise PolicyError(f"{place}: '{table}' is not known{did_you_mean(table, _TABLES)}")
        if not isinstance(value, _TABLES[table]):
            begin = "[[call]]" if table == "call" else f"[{table}]"
            raise PolicyError(f"{place}: {table} must be a table; begin it with {begin}")
    return source


def _read_call(place: str, call: Any) -> tuple[str, int]:
    """The program, and its input as one number."""
    match call:
        case {"program": str(name), "input": [*numbers]} if len(call) == 2 and len(numbers) in (1, 2):
            if all(type(number) is int and -(1 << 31) <= number < 1 << 31 for number in numbers):
                return name, sum((number % 2**32) << 32 * i for i, number in enumerate(numbers))
    raise PolicyError(f"{place}: [[call]] {call}: expected program = 'NAME' and input = [0], one s32 or two")


def _read_flags(place: str, names: object) -> int:
    """Names of flags as one number."""
    known = ", ".join(OPS_FLAGS)
    if not isinstance(names, list):
        raise PolicyError(f"{place}: ops.flags must be a list, of {known}")
    for name in names:
        if name not in OPS_FLAGS:
            raise PolicyError(f"{place}: ops.flags has no '{name}'; there are {known}")
    return sum(OPS_FLAGS[name] for name in {*names})


def _read_value(place: str, name: str, value: object) -> int | str:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str) and value in MACHINE:
        return value
    try:
        quantity = parse_quantity(value)
    except UnitError as error:
        raise PolicyError(
            f"{place}: rodata.{name}: {error}; or one of {', '.join(MACHINE)}, or true or false"
        ) from error
    if quantity.value.denominator != 1:
        raise PolicyError(f"{place}: rodata.{name}: '{value}' is not a whole number of nanoseconds")
    return int(quantity.value)


def for_machine(
    values: Mapping[str, int | str], n_cpus: int, topology: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Put numbers in the place of the words for the machine.

    >>> for_machine({"nr_cpu_ids": "cpus", "nodes": "nodes"}, 8, {"node": 4})
    {'nr_cpu_ids': 8, 'nodes': 2}
    """
    sizes = topology or {}
    n_nodes = -(-n_cpus // sizes.get("node", n_cpus))
    machine = {
        "cpus": n_cpus,
        "nodes": n_nodes,
        "has_nodes": int(n_nodes > 1),
        "has_one_node": int(n_nodes == 1),
        "caches": -(-n_cpus // sizes.get("llc", n_cpus)),
        "has_smt": int(sizes.get("smt", 1) > 1),
    }
    found = {name: machine[value] if isinstance(value, str) else value for name, value in values.items()}
    on_nodes = found.pop(FLAGS_ON_NODES, 0)
    if n_nodes > 1 and on_nodes:
        found[FLAGS_NAME] = found.get(FLAGS_NAME, 0) | on_nodes
    return found
