# SPDX-License-Identifier: MIT
"""Read a workload: from the values of a file to a checked `Workload`.

The order: TOML -> params -> tables -> phases -> checks. Each stage notes its
mistakes and the next goes on with what is left, so that the user sees all of
them at once, each with file, line, task, phase, value and the nearest right
word. docs/formats.md is the reference of the format.

Read next: find.py, which opens the file; program/compiler.py, which compiles the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import UnitError, did_you_mean
from ..model import TICK_NS_MAX, TICK_NS_MIN
from ..toml_file import Place, Source
from ..units import parse_duration
from .checks import check_workload
from .distributions import Distribution, looks_like_distribution, parse_distribution
from .model import NO_QUOTA, Arrival, Expected, Group, SyncObject, Task, Workload
from .params import Param, read_params, substitute
from .phases import Phase, PhaseReader, walk
from .tables import (
    BarrierTable,
    ConditionTable,
    ExpectedTable,
    GroupTable,
    LockTable,
    PipeTable,
    TaskTable,
    WorkloadTable,
    read_table,
)

_ObjectTable = LockTable | PipeTable | BarrierTable | ConditionTable
TOP_LEVEL = ("workload", "params", "task", "lock", "pipe", "barrier", "condition", "group", "expected")


def parse_workload(
    text: str, *, name: str = "workload.toml", params: Mapping[str, object] | None = None
) -> Workload:
    """Read a workload from text."""
    return read_workload(Source(name, text), params or {}, name=Path(name).stem, path=None)


def read_workload(
    source: Source, overrides: Mapping[str, object], *, name: str, path: Path | None
) -> Workload:
    """Read a whole file from its values; the order matters, each step uses the one before."""
    for key in source.values:
        if key not in TOP_LEVEL:
            source.fault((key,), "", f"unknown table {key!r}{did_you_mean(key, TOP_LEVEL)}")
    tick_ns = _tick_of(source)
    params = read_params(source, overrides, tick_ns=tick_ns)
    source.check()  # what follows would only repeat a broken param
    values = {
        key: substitute(value, params, source, (key,))
        for key, value in source.values.items()
        if key != "params"
    }
    head = read_table(
        WorkloadTable, values.get("workload", {}), source, at=("workload",), place="workload", tick_ns=tick_ns
    )
    objects = _read_objects(source, values, params, tick_ns)
    # A table that could not be read may be what a task refers to.
    broken = {"?"} if source.faults else set()
    tasks = _read_tasks(source, values, params, tick_ns, broken)
    groups = _read_groups(source, values, params, tick_ns)
    group_names = [group.name for group in groups]
    _check_groups(source, tasks, groups, broken)
    # Without a readable [workload] there may be a horizon nobody knows of.
    horizon_ns = head.horizon if head else 1
    check_workload(source, tasks, objects, group_names, horizon_ns=horizon_ns, broken=broken)
    expected = _read_expected(source, values, tasks, tick_ns)
    source.check()
    assert head, "a table that could not be read is a mistake"
    workload = Workload(
        name=head.name or name,
        title=head.title or head.name or name,
        question=head.question or "",
        description=head.description or "",
        path=path,
        tick_ns=tick_ns,
        jitter_ns=tick_ns if head.jitter is None else head.jitter,
        horizon_ns=head.horizon,
        cpus=head.cpus,
        cpus_min=max((max(cpus) + 1 for task in tasks for cpus in _masks(task) if cpus), default=0),
        params=params,
        tasks=tuple(tasks),
        objects=tuple(objects),
        groups=tuple(groups),
        expected=tuple(expected),
    )
    return replace(workload, name=workload.name + _changed(params))


def _tick_of(source: Source) -> int:
    """Length of a tick; needed before anything else, since values may use it."""
    table = source.values.get("workload")
    value = table.get("tick", "10ms") if isinstance(table, dict) else "10ms"
    try:
        tick_ns = parse_duration(value)
        if TICK_NS_MIN <= tick_ns <= TICK_NS_MAX:
            return tick_ns
        source.fault(("workload", "tick"), "workload", f"tick: must be from 1us to 10s (got {value})")
    except UnitError as error:
        source.fault(("workload", "tick"), "workload", f"tick: {error}")
    return 10_000_000


def _masks(task: Task) -> list[tuple[int, ...]]:
    """The CPUs that it may use, and those that it gives itself or others."""
    return [task.affinity, *(phase.cpus for phase, _ in walk(task.phases))]


def _changed(params: Mapping[str, Param]) -> str:
    """Params that differ from their default, as `load_workload` accepts them."""
    parts = [f"{param.name}={param.text}" for param in params.values() if not param.is_default]
    return ":" + ",".join(parts) if parts else ""


def _entries(source: Source, values: Mapping[str, object], key: str) -> list[tuple[Place, object]]:
    """Elements of ``[[key]]`` with their paths."""
    found = values.get(key, [])
    if not isinstance(found, list):
        source.fault((key,), "", f"write [[{key}]], with two brackets: there may be several")
        return []
    return [((key, i), value) for i, value in enumerate(found)]


def _is_wanted(source: Source, value: object, at: Place, place: str, params: Mapping[str, Param]) -> bool:
    """Does `when` allow this table? ``when = {reading = "code"}``."""
    wanted = value.get("when") if isinstance(value, dict) else None
    if wanted is None:
        return True
    if not isinstance(wanted, dict):
        source.fault((*at, "when"), place, f"when: needs a table of params (got {wanted!r})")
        return True
    for name, text in wanted.items():
        if name not in params:
            hint = did_you_mean(name, params)
            source.fault((*at, "when", name), place, f"when: unknown param {name!r}{hint}")
            continue
        choices = params[name].choices
        if choices and str(text) not in choices:
            hint = did_you_mean(str(text), choices)
            source.fault((*at, "when", name), place, f"when: unknown choice {text!r}{hint}")
        if params[name].text != str(text):
            return False
    return True


def _read_tasks(
    source: Source, values: Mapping[str, object], params: Mapping[str, Param], tick_ns: int, broken: set[str]
) -> list[Task]:
    """Read every ``[[task]]``; names of those with mistakes go into `broken`."""
    tasks: list[Task] = []
    names: set[str] = set()
    entries = _entries(source, values, "task")
    for number, (at, value) in enumerate(entries, start=1):
        name = value.get("name") if isinstance(value, dict) else None
        place = f"task {name!r}" if isinstance(name, str) else f"task number {number}"
        n_faults = len(source.faults)
        if not _is_wanted(source, value, at, place, params):
            continue
        table = read_table(TaskTable, value, source, at=at, place=place, tick_ns=tick_ns)
        phases: tuple[Phase, ...] = ()
        if isinstance(value, dict) and "phases" in value:
            reader = PhaseReader(
                source,
                task=str(name),
                tick_ns=tick_ns,
                is_wanted=lambda value, at, place: _is_wanted(source, value, at, place, params),
            )
            phases = reader.read(value["phases"], (*at, "phases"))
        if table is None:
            broken.add(str(name))
            continue
        if table.name in names:
            source.fault((*at, "name"), place, "there is another task of that name")
        names.add(table.name)
        if table.nice is not None and table.weight is not None:
            source.fault((*at, "weight"), place, "nice and weight contradict each other: keep one")
        arrival = _read_arrival(source, table, at, place, tick_ns)
        count = table.count or (0 if arrival.is_spawned else 1)
        if len(arrival.times_ns) > 1 and len(arrival.times_ns) != count:
            source.fault((*at, "arrival"), place, f"arrival: {len(arrival.times_ns)} times for {count} tasks")
        tasks.append(
            Task(
                name=table.name,
                class_idx=len(tasks),
                count=count,
                arrival=arrival,
                attributes=table.attributes(),
                is_burst_from_run=table.burst == "run",
                affinity=table.affinity,
                phases=phases,
                group=table.group if isinstance(table.group, str) else "",
                at=at,
            )
        )
        if len(source.faults) > n_faults:
            broken.add(table.name)
    if not tasks and not source.faults:
        source.fault(("task",), "", "there is no [[task]]")
    return tasks


def _read_arrival(source: Source, table: TaskTable, at: Place, place: str, tick_ns: int) -> Arrival:
    """Read `arrival`: a time, a list, a distribution, a stream, or "spawned"."""

    def time(value: object) -> int:
        return parse_duration(value, tick_ns=tick_ns)

    value = table.arrival
    try:
        if value == "spawned":
            return Arrival(is_spawned=True)
        if isinstance(value, list):
            return Arrival(times_ns=tuple(time(item) for item in value))
        if isinstance(value, dict) and "dist" not in value:
            return _read_stream(value, time)
        if isinstance(value, str) and value.replace(" ", "").startswith("poisson("):
            gap = "exp" + value.strip().removeprefix("poisson")
            return Arrival(gap=parse_distribution(gap, read=time))
        if looks_like_distribution(value):
            return Arrival(spread=parse_distribution(value, read=time))
        if isinstance(value, str) and value.strip().isalpha():
            raise UnitError(f"unknown word {value!r}{did_you_mean(value, ['spawned'])}")
        return Arrival(times_ns=(time(value),))
    except UnitError as error:
        source.fault((*at, "arrival"), place, f"arrival: {error}")
        return Arrival(times_ns=(0,))


def _read_stream(value: dict[str, Any], time: Callable[[object], int]) -> Arrival:
    """Read ``{gap = "exp(5ms)", start = "1s"}``."""
    for key in value:
        if key not in ("gap", "start"):
            raise UnitError(f"unknown key {key!r}{did_you_mean(key, ('gap', 'start'))}")
    if "gap" not in value:
        raise UnitError("key 'gap' is missing")
    gap = value["gap"]
    if looks_like_distribution(gap):
        distribution = parse_distribution(gap, read=time)
    else:
        distribution = Distribution("constant", (time(gap),))
    return Arrival(gap=distribution, start_ns=time(value.get("start", 0)))


def _read_objects(
    source: Source, values: Mapping[str, object], params: Mapping[str, Param], tick_ns: int
) -> list[SyncObject]:
    objects: list[SyncObject] = []
    models: dict[str, type[_ObjectTable]] = {
        "lock": LockTable,
        "pipe": PipeTable,
        "barrier": BarrierTable,
        "condition": ConditionTable,
    }
    for kind, model in models.items():
        for number, (at, value) in enumerate(_entries(source, values, kind), start=1):
            name = value.get("name") if isinstance(value, dict) else None
            place = f"{kind} {name!r}" if isinstance(name, str) else f"{kind} number {number}"
            if not _is_wanted(source, value, at, place, params):
                continue
            table = read_table(model, value, source, at=at, place=place, tick_ns=tick_ns)
            if table is None:
                continue
            if table.name in [item.name for item in objects]:
                source.fault((*at, "name"), place, "there is another object of that name")
            param = getattr(table, "capacity", 0) or getattr(table, "parties", 0)
            objects.append(SyncObject(kind, table.name, param, at))
    return objects


def _read_groups(
    source: Source, values: Mapping[str, object], params: Mapping[str, Param], tick_ns: int
) -> list[Group]:
    groups: list[Group] = []
    for number, (at, value) in enumerate(_entries(source, values, "group"), start=1):
        name = value.get("name") if isinstance(value, dict) else None
        place = f"group {name!r}" if isinstance(name, str) else f"group number {number}"
        if not _is_wanted(source, value, at, place, params):
            continue
        table = read_table(GroupTable, value, source, at=at, place=place, tick_ns=tick_ns)
        if table is None:
            continue
        names = [group.name for group in groups]
        if table.name in names:
            source.fault((*at, "name"), place, "there is another group of that name")
        if table.parent and table.parent not in names:
            hint = did_you_mean(table.parent, names)
            source.fault(
                (*at, "parent"), place, f"parent: no group {table.parent!r} comes before this one{hint}"
            )
        for key, time_ns in (("quota", table.quota), ("period", table.period)):
            if time_ns is not None and (time_ns < 1000 or time_ns % 1000):
                source.fault((*at, key), place, f"{key}: must be microseconds, 1 or more (got {time_ns}ns)")
        quota_us = NO_QUOTA if table.quota is None else table.quota // 1000
        groups.append(Group(table.name, table.parent or "", table.weight, table.period // 1000, quota_us))
    return groups


def _check_groups(source: Source, tasks: list[Task], groups: list[Group], broken: set[str]) -> None:
    """A task is in a group that exists; a child, as on Linux, in its parent's."""
    names, parents = [group.name for group in groups], {group.parent for group in groups}
    rule = "has groups in it, and Linux has tasks in the innermost alone"
    for task in tasks:
        if task.name in broken:
            continue
        for phase, _ in walk(task.phases):
            if phase.verb == "join" and phase.name in parents:
                place = f"task {task.name!r}, phase {phase.number}"
                source.fault(phase.at, place, f"join: {phase.name!r} {rule}")
        if not task.group:
            continue
        place = f"task {task.name!r}"
        if task.group in parents:
            source.fault((*task.at, "group"), place, f"group: {task.group!r} {rule}")
        elif task.group not in names:
            hint = did_you_mean(task.group, names)
            source.fault((*task.at, "group"), place, f"group: unknown group {task.group!r}{hint}")
        elif task.arrival.is_spawned:
            source.fault((*task.at, "group"), place, "group: a spawned task is in its parent's; leave it out")


def _read_expected(
    source: Source, values: Mapping[str, object], tasks: list[Task], tick_ns: int
) -> list[Expected]:
    found = []
    known = [task.name for task in tasks]
    for at, value in _entries(source, values, "expected"):
        place = "expected"
        table = read_table(ExpectedTable, value, source, at=at, place=place, tick_ns=tick_ns)
        if table is None:
            continue
        for name in table.finish:
            if name not in known:
                hint = did_you_mean(name, known)
                source.fault((*at, "finish", name), place, f"unknown task {name!r}{hint}")
        found.append(Expected(table.policy, table.set, table.finish))
    return found
