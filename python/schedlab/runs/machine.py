# SPDX-License-Identifier: MIT
"""The machine that the simulator plays: what it charges, its device, its CPUs.

Reads what `--cost`, `--io` and `--topology` say, and refuses what the simulator
would refuse later, run by run.

Must stay true: names and ranges are those of hosts/sim/options.c.
Read next: run.py, which hands the result to the host.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from ..errors import UnitError, UsageError, did_you_mean
from ..units import parse_duration

CPUS_MAX = 1024
_SECOND_NS = 1_000_000_000
#: What can be charged for, in nanoseconds each: smallest and largest value.
COSTS = dict.fromkeys(
    ("switch_ns", "leave_ns", "migrate_ns", "migrate_llc_ns", "migrate_node_ns", "start_ns",
     "exit_ns", "call_ns", "wakeup_ns", "tick_ns", "ipi_ns"), (0, _SECOND_NS),
)  # fmt: skip
#: Those that a task pays with CPU time of its own.
_OF_TASKS = ("start_ns", "exit_ns", "call_ns")
#: The device behind `read` and `write`: one request takes latency_ns and ns_per_kib
#: for its size; it works on `depth` of them at once; a call costs call_ns of CPU time.
DEVICE = {
    "latency_ns": (0, 1000 * _SECOND_NS),
    "ns_per_kib": (0, _SECOND_NS),
    "depth": (1, 1_000_000),
    "call_ns": (0, _SECOND_NS),
}
_PARTS = ("smt", "llc", "node")


def parse_costs(given: Sequence[str]) -> tuple[str, ...]:
    """Read `--cost NAME=TIME`.

    Parameters
    ----------
    given : sequence of str
        Such as `"switch_ns=2us"` or `"switch_ns=2000"`, in nanoseconds.

    Returns
    -------
    tuple of str
        `NAME=NUMBER`, as the simulator takes it, in nanoseconds.

    Raises
    ------
    UsageError
        All mistakes at once, one per line, with the nearest name.

    Examples
    --------
    >>> parse_costs(["switch_ns=2us", "ipi_ns=400"])
    ('switch_ns=2000', 'ipi_ns=400')
    """
    return _parse("--cost", given, COSTS, example="switch_ns=2us")


def charges_tasks(costs: Sequence[str]) -> bool:
    """Whether a task uses more CPU time than its program declares.

    Parameters
    ----------
    costs : sequence of str
        `NAME=NUMBER`, as from `parse_costs`.

    Returns
    -------
    bool
        Whether one of them is part of a task's own CPU time.

    Examples
    --------
    >>> charges_tasks(["switch_ns=2000"]), charges_tasks(["switch_ns=2000", "call_ns=300"])
    (False, True)
    """
    return any(cost.partition("=")[0] in _OF_TASKS for cost in costs)


def parse_device(given: Sequence[str]) -> tuple[str, ...]:
    """Read `--io NAME=VALUE`.

    Parameters
    ----------
    given : sequence of str
        Such as `"latency_ns=100us"` or `"depth=4"`.

    Returns
    -------
    tuple of str
        `NAME=NUMBER`, as the simulator takes it; times in nanoseconds.

    Raises
    ------
    UsageError
        All mistakes at once, one per line, with the nearest name.

    Examples
    --------
    >>> parse_device(["latency_ns=100us", "depth=4"])
    ('latency_ns=100000', 'depth=4')
    """
    return _parse("--io", given, DEVICE, example="latency_ns=100us")


def _parse(option: str, given: Sequence[str], known: Mapping, *, example: str) -> tuple[str, ...]:
    """Read NAME=VALUE items of one option; a name that comes again replaces the first."""
    found, problems = {}, []
    for item in given:
        name, equals, text = (part.strip() for part in item.partition("="))
        try:
            if not equals or not text:
                raise UsageError(f"should read NAME=VALUE, such as {example}")
            if name not in known:
                raise UsageError(f"unknown name '{name}'{did_you_mean(name, known)}")
            found[name] = _value(name, text, *known[name])
        except UsageError as error:
            problems.append(f"{option} {item}: {error}")
    if problems:
        raise UsageError("\n".join(problems))
    return tuple(f"{name}={value}" for name, value in found.items())


def _value(name: str, text: str, low: int, high: int) -> int:
    """One number; a time has a unit, or is in nanoseconds."""
    is_time = name != "depth"
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


def check_topology(topology: str) -> list[str]:
    """Find the faults of `--topology smt=N,llc=N,node=N`.

    Parameters
    ----------
    topology : str
        CPUs per core, cache and NUMA node; empty: all CPUs alike.

    Returns
    -------
    list of str
        What is wrong with it; empty: nothing.
    """
    if not topology:
        return []
    if not re.fullmatch(r"(smt|llc|node)=[0-9]{1,9}(,(smt|llc|node)=[0-9]{1,9})*", topology):
        return [f"--topology {topology}: should read smt=2,llc=8,node=16, CPUs in each"]
    sizes = {name: int(size) for name, size in (part.split("=") for part in topology.split(","))}
    problems = [
        f"--topology {topology}: {name} must be 1 to {CPUS_MAX} (got {size})"
        for name, size in sizes.items()
        if not 1 <= size <= CPUS_MAX
    ]
    given = [name for name in _PARTS if name in sizes]
    for inner, outer in itertools.pairwise(given):
        if not problems and sizes[outer] % sizes[inner]:
            problems.append(
                f"--topology {topology}: {outer}={sizes[outer]} is no multiple of "
                f"{inner}={sizes[inner]}; each holds whole ones of the one before"
            )
    return problems
