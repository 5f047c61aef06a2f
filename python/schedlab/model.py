# SPDX-License-Identifier: MIT
"""A run as a type: the machine, how the run is carried out, what runs, and what came of it.

        Machine, Execution -> RunSpec -> RunResult (run.json) -> Comparison

The fields of `Machine` and `Execution` are the options of a run, and their only list: command line, Python, replays,
experiments and remote workers read them from here, `run.json` is the dump of `RunResult`, and its JSON Schema is made
from it. A class here reads what a user writes, such as "1ms", and holds what the rest of schedlab computes with.

pydantic checks files and writes the schema; it is imported there, since it takes longer to load than a short run takes.

Invariant: an object of these classes is valid; names and ranges of the machine are those of hosts/sim/options.c.
Read next: runs/plan.py, a set of runs; hosts/choose.py, which host has which option.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from typing_extensions import TypedDict

from .errors import SchedlabError, UnitError, UsageError, did_you_mean
from .units import format_duration, parse_duration

#: Version of `run.json`; files without one are older than the first.
SCHEMA = 1
CPUS_MAX = 1024
#: Length of a tick that every host can keep.
TICK_NS_MIN, TICK_NS_MAX = 1_000, 10_000_000_000
SEED_MAX = 2**63 - 1
_SECOND_NS = 1_000_000_000
#: What can be charged for, in nanoseconds each: smallest and largest value.
COSTS = dict.fromkeys(
    ("switch_ns", "leave_ns", "migrate_ns", "migrate_llc_ns", "migrate_node_ns", "start_ns",
     "exit_ns", "call_ns", "wakeup_ns", "tick_ns", "ipi_ns", "timer_ns", "jitter_ns"), (0, _SECOND_NS),
)  # fmt: skip
#: Those that a task pays with CPU time of its own.
_OF_TASKS = ("start_ns", "exit_ns", "call_ns", "jitter_ns")
#: The device behind `read` and `write`: one request takes latency_ns and ns_per_kib
#: for its size; it works on `depth` of them at once; a call costs call_ns of CPU time.
DEVICE = {
    "latency_ns": (0, 1000 * _SECOND_NS),
    "ns_per_kib": (0, _SECOND_NS),
    "depth": (1, 1_000_000),
    "call_ns": (0, _SECOND_NS),
}
#: CPUs per core, cache and NUMA node, from the inside out.
_PARTS = ("smt", "llc", "node")
#: The fastest CPU, at its highest clock frequency.
CAPACITY_MAX = 1024
_CAPACITY = r"[0-9]{1,4}(-[0-9]{1,4})?=[0-9]{1,4}"
_TOPOLOGY = r"((smt|llc|node)=[0-9]{1,9}(,(smt|llc|node)=[0-9]{1,9})*)?"


# ---- what a user writes ------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """How a user gives a field."""

    #: `word`, `flag`: In Python and experiments, and on the command line.
    word: str
    flag: str
    kind: str  #: Type of the flag's value.
    help: str  #: One line for `--help`.
    #: Takes the flag for messages, and what a user wrote, a file holds or a program gives; returns the value.
    read: Callable[[str, Any], Any]
    default: Any = None  #: As the user would write it.
    metavar: str | None = None  #: What `--help` shows as the value.
    write: Callable[[Any], Any] = lambda value: value  #: The value as `run.json` has it.
    #: What the JSON Schema says of that besides its type.
    limits: Mapping[str, Any] = field(default_factory=dict)
    #: Whether runs that differ in it are runs under different conditions; a time limit is none.
    is_condition: bool = True

    @property
    def json_default(self) -> Any:
        """What `run.json` has where it was not given."""
        return self.write(self.read(self.flag, self.default))

    def field(self) -> Any:
        """A field of a dataclass that this option gives."""
        return field(default_factory=lambda: self.read(self.flag, self.default), metadata={"option": self})


def _in_range(low: int, high: int) -> Callable[[str, Any], int | None]:
    def read(flag: str, value: Any) -> int | None:
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and low <= value <= high):
            return value
        raise UsageError(f"{flag} must be {low} to {high} (got {value!r})")

    return read


def _tick(flag: str, value: Any) -> int | None:
    if value is None:
        return None
    ns = (
        value if isinstance(value, int) and not isinstance(value, bool) else parse_duration(value, place=flag)
    )
    if not TICK_NS_MIN <= ns <= TICK_NS_MAX:
        raise UsageError(f"{flag} must be 1us to 10s (got {ns} ns)")
    return ns


def _timeout(flag: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    seconds = float(value) if is_number else parse_duration(value, place=flag) / _SECOND_NS
    if not 0 < seconds < math.inf:
        raise UsageError(f"{flag} must be above 0 (got {seconds:g} s)")
    return seconds


def _scale(flag: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        shown = f"{value:g}" if isinstance(value, float) else repr(value)
        raise UsageError(f"{flag} must be above 0, such as 0.01 (got {shown})")
    return float(value)


def _yes(flag: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{flag} is given or not: True or False (got {value!r})")
    return value


def _word(flag: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{flag} must be a name (got {value!r})")
    return value


def _path(flag: str, value: Any) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"{flag} must be a file (got {value!r})")
    return Path(value)


def _items(flag: str, given: Any, *, example: str) -> list[tuple[str, str]]:
    """NAME=VALUE, given as a mapping or as a list of such texts."""
    if isinstance(given, Mapping):
        return [(str(name), str(value)) for name, value in given.items()]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"{flag} must be NAME=VALUE, such as {example} (got {given!r})")
    items = []
    for item in given:
        name, equals, text = (part.strip() for part in str(item).partition("="))
        if not equals or not text:
            raise UsageError(f"{flag} {item}: should read NAME=VALUE, such as {example}")
        items.append((name, text))
    return items


def _numbers(known: Mapping[str, tuple[int, int]], example: str) -> Callable[[str, Any], dict[str, int]]:
    """Reader of NAME=VALUE; a name that comes again replaces the first."""

    def read(flag: str, given: Any) -> dict[str, int]:
        found, problems = {}, []
        for name, text in _items(flag, given, example=example):
            try:
                if name not in known:
                    raise UsageError(f"unknown name '{name}'{did_you_mean(name, known)}")
                found[name] = _number(name, text, *known[name])
            except UsageError as error:
                problems.append(f"{flag} {name}={text}: {error}")
        if problems:
            raise UsageError("\n".join(problems))
        return found

    return read


def _number(name: str, text: str, low: int, high: int) -> int:
    """One number; a time has a unit, or is in nanoseconds."""
    is_time = name not in ("depth", "CPU")
    if text.isascii() and text.isdecimal():
        value = int(text)
    elif is_time:
        value = parse_duration(text)
    else:
        raise UnitError(f"'{text}' is no whole number")
    if not low <= value <= high:
        shown = f"{low} to {high // _SECOND_NS} s" if is_time else f"{low} to {high}"
        raise UsageError(f"{name} must be {shown} (got {text})")
    return value


def parse_topology(flag: str, given: Any) -> dict[str, int]:
    """CPUs per core, cache and NUMA node: smt=N,llc=N,node=N; empty: all CPUs alike."""
    text = ",".join(_pairs(given)) if isinstance(given, Mapping) else given
    if not isinstance(text, str) or not re.fullmatch(_TOPOLOGY, text):
        raise UsageError(f"{flag} {text}: should read smt=2,llc=8,node=16, CPUs in each")
    parts = [part.split("=") for part in text.split(",") if part]
    sizes = {name: int(size) for name, size in parts}
    problems = [
        f"{flag} {text}: {name} must be 1 to {CPUS_MAX} (got {size})"
        for name, size in sizes.items()
        if not 1 <= size <= CPUS_MAX
    ]
    if len(sizes) < len(parts):
        problems.append(f"{flag} {text}: a part is given twice; name each once")
    for inner, outer in itertools.pairwise(name for name in _PARTS if name in sizes):
        if not problems and sizes[outer] % sizes[inner]:
            problems.append(
                f"{flag} {text}: {outer}={sizes[outer]} is no multiple of "
                f"{inner}={sizes[inner]}; each holds whole ones of the one before"
            )
    if problems:
        raise UsageError("\n".join(problems))
    return sizes


def parse_capacity(flag: str, given: Any) -> str:
    """Capacities of CPUs, as FIRST-LAST=CAPACITY, separated by commas."""
    text = ",".join(_pairs(given)) if isinstance(given, Mapping) else given
    if not isinstance(text, str) or (text and not re.fullmatch(f"{_CAPACITY}(,{_CAPACITY})*", text)):
        raise UsageError(f"{flag} {text}: should read 0-3=1024,4-7=512, CPUs and what they do of 1024")
    problems, seen = [], set[int]()
    for item in text.split(",") if text else []:
        named, _, value = item.partition("=")
        first, _, end = named.partition("-")
        last = int(end or first)
        cpus = range(int(first), max(int(first), last) + 1)
        if not int(first) <= last < CPUS_MAX:
            problems.append(f"{flag} {item}: CPUs must be 0 to {CPUS_MAX - 1}, the lower one first")
        elif seen.intersection(cpus):
            problems.append(f"{flag} {item}: a CPU is given twice; name each once")
        elif not 1 <= int(value) <= CAPACITY_MAX:
            problems.append(f"{flag} {item}: a capacity must be 1 to {CAPACITY_MAX} (got {int(value)})")
        seen.update(cpus if len(cpus) <= CPUS_MAX else ())
    if problems:
        raise UsageError("\n".join(problems))
    return text


def _spans(flag: str, given: Any, first_cpu: int = 0) -> list[str]:
    """When something has which CPU, each as CPU:START:LENGTH in nanoseconds, in order of time."""
    example = f"such as {first_cpu}:20ms:5ms"
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"{flag} must be CPU:START:LENGTH, {example} (got {given!r})")
    found, problems = [], []
    for item in map(str, given):
        cpu, *times = item.split(":")
        try:
            if len(times) != 2:
                raise UsageError(f"should read CPU:START:LENGTH, {example}")
            start_ns, length_ns = (
                _number(name, text, low, 2**61)
                for name, text, low in zip(("start", "length"), times, (0, 1), strict=True)
            )
            found.append((start_ns, _number("CPU", cpu, first_cpu, CPUS_MAX - 1), length_ns))
        except SchedlabError as error:
            problems.append(f"{flag} {item}: {error}")
    if problems:
        raise UsageError("\n".join(problems))
    return [f"{cpu}:{start_ns}:{length_ns}" for start_ns, cpu, length_ns in sorted(found)]


_SPAN = {"items": {"type": "string", "pattern": "^[0-9]+:[0-9]+:[0-9]+$"}}


def _items_of(names: Iterable[str]) -> dict[str, Any]:
    return {"items": {"type": "string", "pattern": f"^({'|'.join(names)})=[0-9]+$"}}


def _pairs(values: Mapping[str, int]) -> list[str]:
    return [f"{name}={value}" for name, value in values.items()]


# ---- what is asked for -------------------------------------------------------


class _Options:
    """Reads each field that has an option; all errors at once."""

    def __post_init__(self) -> None:
        problems = []
        for name, option in options_of(type(self)).items():
            try:
                object.__setattr__(self, name, option.read(option.flag, getattr(self, name)))
            except SchedlabError as error:
                problems.append(str(error))
        if problems:
            raise UsageError("\n".join(problems))

    def as_json(self) -> dict[str, Any]:
        """Its keys of `run.json`."""
        return {name: option.write(getattr(self, name)) for name, option in options_of(type(self)).items()}

    @classmethod
    def from_json(cls, run: Mapping[str, Any]) -> Self:
        """What `as_json` has written; keys that an older file lacks have their defaults."""
        return cls(**{name: run[name] for name in options_of(cls) if name in run})


@dataclass(frozen=True, kw_only=True)
class Machine(_Options):
    """What the policy finds: CPUs, their clock, what they charge, and the device."""

    #: 1 to 1024; None: what each workload is meant for.
    cpus: int | None = Option(
        "cpus",
        "--cpus",
        "int",
        "CPUs; default: the workload's.",
        _in_range(1, CPUS_MAX),
        limits={"minimum": 1, "maximum": CPUS_MAX},
    ).field()
    #: What the simulator charges, in nanoseconds; names of `COSTS`.
    costs: Mapping[str, int] = Option(
        "costs",
        "--cost",
        "texts",
        "What the machine charges: "
        "switch_ns=2us, leave_ns, migrate_ns, start_ns, exit_ns, call_ns, wakeup_ns, tick_ns, ipi_ns, timer_ns, jitter_ns.",
        _numbers(COSTS, "switch_ns=2us"),
        default=(),
        metavar="NAME=TIME",
        write=_pairs,
        limits=_items_of(COSTS),
    ).field()
    #: Its device; names of `DEVICE`.
    io: Mapping[str, int] = Option(
        "io",
        "--io",
        "texts",
        "Its device: latency_ns=100us, ns_per_kib, depth (requests at once), call_ns (CPU time).",
        _numbers(DEVICE, "latency_ns=100us"),
        default=(),
        metavar="NAME=VALUE",
        write=_pairs,
        limits=_items_of(DEVICE),
    ).field()
    #: CPUs per `smt`, `llc` and `node`.
    topology: Mapping[str, int] = Option(
        "topology",
        "--topology",
        "text",
        "CPUs per core, cache, NUMA node.",
        parse_topology,
        default="",
        metavar="smt=N,llc=N,node=N",
        write=lambda sizes: ",".join(_pairs(sizes)),
        limits={"pattern": f"^({_TOPOLOGY})$"},
    ).field()
    #: What the CPUs that it names do, of the 1024 that the others do in the same time; "": all are alike.
    capacity: str = Option(
        "capacity",
        "--capacity",
        "text",
        "CPUs of other speed, of 1024, and clocks that a policy sets: 0-3=1024,4-7=512.",
        parse_capacity,
        default="",
        metavar="CPUS=N,...",
        limits={"pattern": f"^({_CAPACITY}(,{_CAPACITY})*)?$"},
    ).field()
    #: When real-time tasks have a CPU: CPU:START_NS:LENGTH_NS.
    above: list[str] = Option(  # noqa: RUF009, a field
        "above",
        "--above",
        "texts",
        "A real-time task, which no policy can hold up, has this CPU then: 0:20ms:5ms.",
        _spans,
        default=(),
        metavar="CPU:START:LENGTH",
        limits=_SPAN,
    ).field()
    #: When a CPU is offline, in the same form. The first one cannot be, as on Linux.
    offline: list[str] = Option(  # noqa: RUF009, a field
        "offline",
        "--offline",
        "texts",
        "This CPU, but for CPU 0, goes offline then, and comes back: 1:20ms:50ms.",
        lambda flag, given: _spans(flag, given, first_cpu=1),
        default=(),
        metavar="CPU:START:LENGTH",
        limits=_SPAN,
    ).field()
    #: Time between ticks in nanoseconds, 1,000 to 10**10; None: what each workload says.
    tick_ns: int | None = Option(
        "tick", "--tick", "text", "Time between ticks, such as 1ms; default: the workload's.", _tick
    ).field()

    @property
    def charges_tasks(self) -> bool:
        """Whether a task uses more CPU time than its program declares."""
        return any(name in _OF_TASKS for name in self.costs)


@dataclass(frozen=True, kw_only=True)
class Execution(_Options):
    """Where and how a run is carried out."""

    #: One of `HOST_NAMES` in hosts/choose.py.
    host: str = Option(
        "host", "--host", "text", "sim, wasm, uthreads, kernel, linux or guest.", _word, default="sim"
    ).field()
    #: On a host that emulates CPUs: a thread for each, and real time.
    is_parallel: bool = Option(
        "parallel", "--parallel", "yes", "kernel, guest: real time instead of counted.", _yes, default=False
    ).field()
    #: Simulator and policy as WebAssembly, as on the host `wasm`.
    is_sandboxed: bool = Option(
        "sandbox", "--sandbox", "yes", "sim: for policies that one does not trust.", _yes, default=False
    ).field()
    #: On Linux: tasks are threads of one process, not processes.
    are_threads: bool = Option(
        "threads", "--threads", "yes", "linux: tasks are threads of one process.", _yes, default=False
    ).field()
    #: On the host `guest`: the kernel image to boot; None: Debian's.
    kernel: Path | None = Option(  # noqa: RUF009, a field
        "kernel",
        "--kernel",
        "path",
        "guest: the Linux to boot; default: Debian's.",
        _path,
        metavar="FILE",
        write=lambda path: path and str(path),
    ).field()
    #: How much of each workload's work is to be done, above 0.
    scale: float = Option(
        "scale",
        "--scale",
        "float",
        "How much of the work to do, such as 0.01; the workload says of what.",
        _scale,
        default=1.0,
    ).field()
    #: Longest time on the wall clock for one run, above 0.
    timeout_seconds: float = Option(
        "timeout",
        "--timeout",
        "text",
        "Longest wall-clock time of one run.",
        _timeout,
        default="300s",
        is_condition=False,
    ).field()


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One run before it is done: with equal ones, a deterministic host gives equal records."""

    #: `workload`, `policy`: Their names; of a variant with the knobs that tell it apart.
    workload: str
    policy: str
    knobs: Mapping[str, int] = field(default_factory=dict)  #: Every knob of the policy, in its own unit.
    seed: int  #: 0 to 2**63 - 1; 0: no jitter.
    machine: Machine  #: With CPUs and tick as they are for this workload.
    execution: Execution  #: How.

    def as_json(self) -> dict[str, Any]:
        """Its keys of `run.json`, which are flat."""
        mine = {
            "workload": self.workload,
            "policy": self.policy,
            "knobs": dict(self.knobs),
            "seed": self.seed,
        }
        return mine | self.machine.as_json() | self.execution.as_json()

    @classmethod
    def from_json(cls, run: Mapping[str, Any]) -> RunSpec:
        """What a `run.json` was made from, of this version or an older one."""
        return cls(
            workload=run["workload"],
            policy=run["policy"],
            knobs=run.get("knobs") or {},
            seed=run["seed"],
            machine=Machine.from_json(run),
            execution=Execution.from_json(run),
        )


def options_of(*kinds: type) -> dict[str, Option]:
    """The options of `Machine`, `Execution` or both, by their fields."""
    return {
        each.name: each.metadata["option"]
        for kind in kinds
        for each in dataclasses.fields(kind)
        if "option" in each.metadata
    }


#: Every option of a run, by its field, which is its key in `run.json`.
OPTIONS = options_of(Machine, Execution)


def read_options(words: Mapping[str, Any]) -> tuple[Machine, Execution, list[str]]:
    """Read options by their words; with what is wrong, in whose place the defaults stand."""
    found: list[Any] = []
    problems = [
        f"{word}: there is no such option{did_you_mean(word, [each.word for each in OPTIONS.values()])}"
        for word in words
        if word not in [each.word for each in OPTIONS.values()]
    ]
    for kind in (Machine, Execution):
        mine = {name: words[each.word] for name, each in options_of(kind).items() if each.word in words}
        try:
            found.append(kind(**mine))
        except UsageError as error:
            problems.append(str(error))
            found.append(kind())
    return found[0], found[1], problems


def given_options(machine: Machine, execution: Execution) -> dict[str, str]:
    """Fields that differ from their defaults, with the flag and its value as a user would write them."""
    found = {}
    for part in (machine, execution):
        for name, option in options_of(type(part)).items():
            value = option.write(getattr(part, name))
            if value != option.json_default:
                found[name] = option.flag if value is True else f"{option.flag} {show_value(name, value)}"
    return found


def show_value(name: str, value: Any) -> str:
    """A field's value for people, also as `run.json` has it: `none`, `yes`, `switch_ns=2000,ipi_ns=400`, `4ms`."""
    if isinstance(value, Mapping):
        value = _pairs(value)
    if isinstance(value, list | tuple):
        return ",".join(sorted(value)) or "none"
    if value is True or not value:
        return "yes" if value else "none"
    if name.endswith("_ns"):
        return format_duration(value)
    text = f"{value:g}" if isinstance(value, int | float) else str(value)
    return f"{text} s" if name.endswith("_seconds") else text


def differences(
    pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], *, conditions: bool
) -> list[str]:
    """What differs between the sides besides workload, policy and seed."""
    found = []
    for name, option in OPTIONS.items():
        if option.is_condition != conditions:
            continue
        for a, b in pairs:
            one, other = (show_value(name, run.get(name, option.json_default)) for run in (a, b))
            if one != other:
                found.append(f"{option.flag} differs: {one} and {other}")
                break
    return found


# ---- what came of it ---------------------------------------------------------


class _Named(TypedDict):
    workload: str
    host: str
    cpus: int
    policy: str
    seed: int
    status: str
    program_hash: str
    metrics: dict[str, Any]


class RunResult(_Named, total=False):
    """One run, as `run.json` has it; docs/formats.md says what the keys mean.

    Those of `_Named` are in every file; others may be missing in an older one.
    """

    schema: int
    title: str
    question: str
    error: str | None
    error_kind: str | None
    policy_hash: str | None
    record_hash: str | None
    consistency: str | None
    physics: str | None  # the same; deprecated, removed in 0.2
    environment: dict[str, Any]
    started_ns: int | None
    tick_ns: int | None
    costs: list[str]
    io: list[str]
    topology: str
    capacity: str
    above: list[str]
    offline: list[str]
    events: str  # of the workload, as hosts/check/events.c takes them; missing: none
    interleave: str
    is_parallel: bool
    is_sandboxed: bool
    are_threads: bool
    kernel: str | None
    scale: float
    timeout_seconds: float
    command_line: str
    knobs: dict[str, int]
    source: dict[str, Any] | None
    loader: dict[str, Any]
    directory: str | None
    log: list[str]
    notes: list[str]
    usage: dict[str, Any]
    no_records: str | None
    replay: dict[str, Any]
    tasks: list[dict[str, Any]]
    recording: dict[str, Any]
    command: dict[str, Any]
    host_answer: dict[str, Any]


def check_results(runs: list[Any], place: str) -> list[RunResult]:
    """Hold the runs of a file against `RunResult`."""
    from pydantic import TypeAdapter, ValidationError

    for number, run in enumerate(runs, 1):
        version = run.get("schema", 0) if isinstance(run, dict) else 0
        if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= SCHEMA:
            writer = (run.get("environment") or {}).get("schedlab", "a later version")
            raise UsageError(
                f"{place}: run {number} has schema {version!r}, and schedlab reads up to {SCHEMA}; "
                f"read it with the schedlab that wrote it: {writer}"
            )
    try:
        TypeAdapter(list[RunResult]).validate_python(runs, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        index, *path = first["loc"]
        where = f"'{'.'.join(map(str, path))}': " if path else ""
        what = "is missing" if first["type"] == "missing" else f"{first['msg']} (got {first['input']!r:.60})"
        raise UsageError(
            f"{place}: run {int(index) + 1}: {where}{what}; give what `schedlab run` wrote"
        ) from error
    for number, run in enumerate(runs, 1):
        if "physics" in run:
            run.setdefault("consistency", run["physics"])  # its name until 0.1
        if "schema" in run:
            try:
                RunSpec.from_json(run)
            except UsageError as error:
                raise UsageError(f"{place}: run {number}: {error}") from error
    return runs


class Comparison(TypedDict):
    """Two sides, paired by seed, as `schedlab run --json` and `schedlab compare --json` have it."""

    workload: str
    host: str
    cpus: int
    policy_a: str
    policy_b: str
    label_a: str
    label_b: str
    seeds: list[int]
    confidence: float
    error: str | None
    differs: list[str]
    is_deterministic: bool
    bootstrap: dict[str, int]
    n_tests: int
    n_explored: int
    warnings: list[dict[str, Any]]
    metrics: dict[str, dict[str, Any]]


class RunList(TypedDict):
    """What `schedlab run --json` prints, and `runs.json` holds."""

    runs: list[RunResult]
    comparisons: list[Comparison]


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of `run.json` and `runs.json`, for programs that read them."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(RunResult | RunList).json_schema()
    for kind in schema["$defs"].values():
        for each in kind["properties"].values():
            each.pop("title", None)  # the key again
    properties = schema["$defs"]["RunResult"]["properties"]
    for name, option in OPTIONS.items():
        properties[name] |= {"description": option.help, **option.limits}
    properties["seed"] |= {"minimum": 0, "maximum": SEED_MAX}
    properties["schema"] |= {"minimum": 1, "maximum": SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"run.json of schedlab, schema {SCHEMA}",
    } | schema
