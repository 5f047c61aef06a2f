# SPDX-License-Identifier: MIT
"""Read a workload: from the values of a file to a checked `Workload`.

The order: TOML -> params -> tables -> phases -> checks. Each stage notes its
mistakes and the next goes on with what is left, so that the user sees all of
them at once, each with file, line, task, phase, value and the nearest right
word. docs/formats.md is the reference of the format.

Read next: find.py, which opens the file; program/compiler.py, which compiles the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import UnitError, did_you_mean
from ..model import TICK_NS_MAX, TICK_NS_MIN
from ..toml_file import Place, Source, Spot
from ..units import parse_duration
from .checks import check_workload
from .distributions import Distribution, looks_like_distribution, parse_distribution
from .events import EVENTS_MAX, KEYS, OF_CPU, Event
from .model import NO_QUOTA, Arrival, Expected, Group, SyncObject, Task, Workload
from .params import Param, read_params, substitute
from .phases import Phase, PhaseReader, walk
from .tables import (
    BarrierTable,
    ConditionTable,
    EventTable,
    ExpectedTable,
    GroupTable,
    LockTable,
    Model,
    PipeTable,
    Table,
    TaskTable,
    WorkloadTable,
    read_table,
)

_OBJECTS: dict[str, type[Table]] = {
    "lock": LockTable,
    "pipe": PipeTable,
    "barrier": BarrierTable,
    "condition": ConditionTable,
}
TOP_LEVEL = (
    "workload",
    "params",
    "task",
    "lock",
    "pipe",
    "barrier",
    "condition",
    "group",
    "event",
    "expected",
)


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
    file = _File(source, values, params, tick_ns)
    objects = _read_objects(file)
    # A table that could not be read may be what a task refers to.
    broken = {"?"} if source.faults else set()
    tasks = _read_tasks(file, broken)
    groups = _read_groups(file)
    group_names = [group.name for group in groups]
    _check_groups(source, tasks, groups, broken)
    # Without a readable [workload] there may be a horizon nobody knows of.
    horizon_ns = head.horizon if head else 1
    check_workload(source, tasks, objects, group_names, horizon_ns=horizon_ns, broken=broken)
    events = _read_events(file, tasks, {name: len(objects) + i for i, name in enumerate(group_names)})
    expected = _read_expected(file, tasks)
    source.check()
    assert head, "a table that could not be read is a mistake"
    named = [*_masks(tasks, groups), *((event.which,) for event in events if event.kind in OF_CPU)]
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
        cpus_min=max((max(cpus) + 1 for cpus in named if cpus), default=0),
        params=params,
        tasks=tuple(tasks),
        objects=tuple(objects),
        groups=tuple(groups),
        events=events,
        interleaving=head.interleaving,
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


def _masks(tasks: list[Task], groups: list[Group]) -> Iterator[tuple[int, ...]]:
    """The CPUs of each group and task, and those that a task gives itself or others."""
    for group in groups:
        yield group.cpus
    for task in tasks:
        yield task.affinity
        for phase, _ in walk(task.phases):
            yield phase.cpus


def _changed(params: Mapping[str, Param]) -> str:
    """Params that differ from their default, as `load_workload` accepts them."""
    parts = [f"{param.name}={param.text}" for param in params.values() if not param.is_default]
    return ":" + ",".join(parts) if parts else ""


@dataclass
class _File:
    """A file whose params are substituted, while its tables are read."""

    source: Source
    values: Mapping[str, object]
    params: Mapping[str, Param]
    tick_ns: int

    def entries(self, key: str) -> list[tuple[Place, object]]:
        """Elements of ``[[key]]`` with their paths."""
        found = self.values.get(key, [])
        if not isinstance(found, list):
            self.source.fault((key,), "", f"write [[{key}]], with two brackets: there may be several")
            return []
        return [((key, i), value) for i, value in enumerate(found)]

    def wanted(self, key: str) -> Iterator[tuple[Any, Spot]]:
        """Elements of ``[[key]]`` that the params allow, each with its place."""
        for number, (at, value) in enumerate(self.entries(key), start=1):
            name = value.get("name") if isinstance(value, dict) else None
            place = f"{key} {name!r}" if isinstance(name, str) else f"{key} number {number}"
            if self.is_wanted(value, at, place):
                yield value, Spot(self.source, at, place)

    def tables(
        self, key: str, model: type[Model], names: dict[str, Any], what: str
    ) -> Iterator[tuple[Any, Spot]]:
        """Those of them that could be read; `names` are taken already, by such a `what`."""
        for value, spot in self.wanted(key):
            table: Any = self.read(model, value, spot)
            if table is not None:
                if table.name in names:
                    spot.fault(f"there is another {what} of that name", "name")
                yield table, spot

    def read(self, model: type[Model], value: object, spot: Spot) -> Model | None:
        """Read one table."""
        return read_table(model, value, self.source, at=spot.at, place=spot.place, tick_ns=self.tick_ns)

    def is_wanted(self, value: object, at: Place, place: str) -> bool:
        """Does `when` allow this table? ``when = {reading = "code"}``."""
        wanted = value.get("when") if isinstance(value, dict) else None
        if wanted is None:
            return True
        if not isinstance(wanted, dict):
            self.source.fault((*at, "when"), place, f"when: needs a table of params (got {wanted!r})")
            return True
        for name, text in wanted.items():
            if name not in self.params:
                hint = did_you_mean(name, self.params)
                self.source.fault((*at, "when", name), place, f"when: unknown param {name!r}{hint}")
                continue
            choices = self.params[name].choices
            if choices and str(text) not in choices:
                hint = did_you_mean(str(text), choices)
                self.source.fault((*at, "when", name), place, f"when: unknown choice {text!r}{hint}")
            if self.params[name].text != str(text):
                return False
        return True


def _read_tasks(file: _File, broken: set[str]) -> list[Task]:
    """Read every ``[[task]]``; names of those with mistakes go into `broken`."""
    tasks: list[Task] = []
    names: set[str] = set()
    for value, spot in file.wanted("task"):
        name = value.get("name") if isinstance(value, dict) else None
        n_faults = len(file.source.faults)
        table = file.read(TaskTable, value, spot)
        phases: tuple[Phase, ...] = ()
        if isinstance(value, dict) and "phases" in value:
            reader = PhaseReader(file.source, task=str(name), tick_ns=file.tick_ns, is_wanted=file.is_wanted)
            phases = reader.read(value["phases"], (*spot.at, "phases"))
        if table is None:
            broken.add(str(name))
            continue
        if table.name in names:
            spot.fault("there is another task of that name", "name")
        names.add(table.name)
        if table.nice is not None and table.weight is not None:
            spot.fault("nice and weight contradict each other: keep one", "weight")
        arrival = _read_arrival(spot, table, file.tick_ns)
        count = table.count or (0 if arrival.is_spawned else 1)
        if len(arrival.times_ns) > 1 and len(arrival.times_ns) != count:
            spot.fault(f"arrival: {len(arrival.times_ns)} times for {count} tasks")
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
                at=spot.at,
            )
        )
        if len(file.source.faults) > n_faults:
            broken.add(table.name)
    if not tasks and not file.source.faults:
        file.source.fault(("task",), "", "there is no [[task]]")
    return tasks


def _read_arrival(spot: Spot, table: TaskTable, tick_ns: int) -> Arrival:
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
        spot.fault(f"arrival: {error}")
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


def _read_objects(file: _File) -> list[SyncObject]:
    objects: dict[str, SyncObject] = {}
    for kind, model in _OBJECTS.items():
        for table, spot in file.tables(kind, model, objects, "object"):
            param = getattr(table, "capacity", 0) or getattr(table, "parties", 0)
            objects[table.name] = SyncObject(kind, table.name, param, spot.at)
    return [*objects.values()]


def _read_groups(file: _File) -> list[Group]:
    groups: dict[str, Group] = {}
    cpus_of: dict[str, set[int]] = {}  # empty: all
    for table, spot in file.tables("group", GroupTable, groups, "group"):
        if table.parent and table.parent not in groups:
            hint = did_you_mean(table.parent, groups)
            spot.fault(f"parent: no group {table.parent!r} comes before this one{hint}")
        for key, time_ns in (("quota", table.quota), ("period", table.period)):
            if time_ns is not None and (time_ns < 1000 or time_ns % 1000):
                spot.fault(f"{key}: must be microseconds, 1 or more (got {time_ns}ns)")
        quota_us = NO_QUOTA if table.quota is None else table.quota // 1000
        groups[table.name] = Group(
            table.name, table.parent or "", table.weight, table.period // 1000, quota_us, table.cpus
        )
        above, own = cpus_of.get(table.parent or "", set()), set(table.cpus)
        if own and above and not above & own:
            rest = ", ".join(map(str, sorted(above)))
            spot.fault(f"cpus: {table.parent!r}, in which it is, has none of them, only {rest}", "cpus")
        cpus_of[table.name] = above & own if above and own else above or own
    return [*groups.values()]


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


def _read_events(file: _File, tasks: list[Task], groups: dict[str, int]) -> tuple[Event, ...]:
    """What happens to the machine; of tasks that are kernel threads one for each. `groups` have their objects."""
    events: list[Event] = []
    first: dict[str, int] = {}
    n_tasks = 0
    for task in tasks:
        if not task.arrival.is_spawned:
            first[task.name], n_tasks = n_tasks, n_tasks + task.count
    counts = {task.name: task.count for task in tasks}
    for value, spot in file.wanted("event"):
        table = file.read(EventTable, value, spot)
        if table is None:
            continue
        keys = KEYS.get(table.kind)
        if keys is None:
            spot.fault(f"kind: unknown event {table.kind!r}{did_you_mean(table.kind, KEYS)}", "kind")
            continue
        n_faults = len(file.source.faults)
        for key in ("cpu", "task", "calls", "group", "weight", "quota", "at", "time"):
            is_given = getattr(table, key) is not None
            if is_given and key not in keys:
                spot.fault(f"{key}: {table.kind!r} has none; it has {', '.join(keys)}", key)
            elif not is_given and key in keys and key not in ("at", "calls"):
                spot.fault(f"key {key!r} is missing")
        if table.kind == "offline" and table.cpu == 0:
            spot.fault("cpu: the first CPU cannot be offline, as on Linux; name another one", "cpu")
        if table.task and table.task not in first:
            spot.fault(f"task: unknown task {table.task!r}{did_you_mean(table.task, first)}", "task")
        if table.group and table.group not in groups:
            spot.fault(f"group: unknown group {table.group!r}{did_you_mean(table.group, groups)}", "group")
        if table.quota is not None and table.quota < 1_000_000:
            spot.fault("quota: at least 1 ms, as on Linux", "quota")
        if len(file.source.faults) == n_faults and table.group:
            value = table.weight or table.quota or 0
            events.append(Event(table.kind, groups[table.group], table.at or 0, value, table.group))
        elif len(file.source.faults) == n_faults:
            begin = first[table.task] if table.task else table.cpu or table.calls or 0
            for number in range(counts[table.task] if table.task else 1):
                events.append(Event(table.kind, begin + number, table.at or 0, table.time or 0))
    if len(events) > EVENTS_MAX:
        file.source.fault(("event",), "", f"at most {EVENTS_MAX} events (got {len(events)})")
    return tuple(events)


def _read_expected(file: _File, tasks: list[Task]) -> list[Expected]:
    found = []
    known = [task.name for task in tasks]
    for at, value in file.entries("expected"):
        spot = Spot(file.source, at, "expected")
        table = file.read(ExpectedTable, value, spot)
        if table is None:
            continue
        for name in table.finish:
            if name not in known:
                spot.fault(f"unknown task {name!r}{did_you_mean(name, known)}", "finish", name)
        found.append(Expected(table.policy, table.set, table.finish))
    return found
