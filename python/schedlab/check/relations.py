# SPDX-License-Identifier: MIT
"""What two runs have in common, whatever the policy: properties that need no declaration.

        world -> Relation: two worlds -> both run -> their records compared

`renamed`: with one more task, which comes after the end, before all others, pids are higher by one, and each
task does what it did. `scaled`: with all times twice as long, knobs in ns and the tick included, each task
does what it did, twice as late. `more-cpus`: with one CPU more, tasks that do not wait for each other have all ended
in less than 2 - 2/n of the time and 1/n of what a task sleeps, n being the larger number: at each instant all CPUs are
busy with others, or the task that ends last runs, or it sleeps, so what n CPUs need is at most their part of the work,
the rest of 1/n of what the longest task runs, and all that it sleeps. (Graham 1969, with the optimum in place of n - 1
CPUs.)

A policy may have its reasons: these are held where they are asked for.
Read next: trial.py, the caller; hosts/check/laws.c, the hash by which most pairs are found alike.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ..policy.find import Policy
from ..records.file import Kind, Records, Stop
from ..units import format_duration
from .world import Group, Phase, World

#: Names of these properties.
RELATIONS = ("renamed", "scaled", "more-cpus")
SCALE = 2
#: Rounds in place of those without end, and the time by which they are over.
N_ROUNDS, ROUNDS_HORIZON_NS = 10, 60_000_000_000
#: Tasks that neither wait for each other nor start others.
_ALONE = frozenset({"hog", "sleeper", "yielder"})


@dataclass(frozen=True)
class Relation:
    """Two worlds, of which one says what the other does."""

    name: str  #: Of `RELATIONS`.
    first: World
    second: World
    n_new: int = 0  #: Tasks that only the second has, before all others.
    scale: int = 1  #: How much longer times of the second are.

    @property
    def promises(self) -> tuple[str, str]:
        """What hosts/check is told of the first and of the second run, so that their hashes are equal."""
        return "course:0:1", f"course:{self.n_new}:{self.scale}"

    def is_too_long(self, first_ns: int, second_ns: int) -> bool:
        """Whether one CPU more costs more than can be, of runs that end."""
        n_cpus = self.second.n_cpus
        late_ns = second_ns - self.first.tick_ns
        is_over = max(first_ns, second_ns) < ROUNDS_HORIZON_NS
        return is_over and late_ns * n_cpus > 2 * (n_cpus - 1) * first_ns + self._longest_sleep_ns

    @property
    def _longest_sleep_ns(self) -> int:
        """For how long a task sleeps in all, or is not there yet: of the one for which that is longest."""
        return max(
            (
                group.arrival_ns
                + group.rounds * sum(phase.time_ns for phase in group.phases if phase.verb == "sleep")
                for group in self.second.groups
            ),
            default=0,
        )

    def broken(self, first: Records, second: Records, names: Collection[str]) -> str | None:
        """What differs that should not; None: nothing."""
        if self.name == "more-cpus":
            if not self.is_too_long(first.end_ns, second.end_ns):
                return None
            few, many = format_duration(first.end_ns), format_duration(second.end_ns)
            return f"on {self.first.n_cpus} CPUs all ends within {few}, on {self.second.n_cpus} within {many}"
        other = "with pids higher by one" if self.name == "renamed" else "with all times twice as long"
        rows, others = _course(first, 1, 0), _course(second, self.scale, self.n_new)
        for number in range(max(len(rows), len(others))):
            one, two = (each[number] if number < len(each) else None for each in (rows, others))
            if one != two:
                return f"{_words(one, [*names])}; {other}, instead: {_words(two, [*names])}"
        return None


_Row = tuple[int, int, int, int, int]


def _course(records: Records, scale: int, n_new: int) -> list[_Row]:
    """What tasks did, with times divided and pids as they were."""
    rows = records.events[["t_ns", "kind", "task", "cpu", "flags"]].tolist()
    return [
        (t_ns // scale, kind, pid - n_new, cpu, flags if kind == Kind.STOP else 0)
        for t_ns, kind, pid, cpu, flags in rows
        if kind <= Kind.STOP
    ]


def _words(row: _Row | None, names: list[str]) -> str:
    """One row, for a person."""
    if row is None:
        return "nothing more happens"
    t_ns, kind, pid, cpu, flags = row
    does = {Kind.ARRIVE: "arrives", Kind.WAKE: "wakes up", Kind.RUN: f"begins to run on CPU {cpu}"}
    what = does.get(Kind(kind)) or f"stops on CPU {cpu} ({Stop(flags).name.lower()})"
    name = names[pid - 1] if 0 < pid <= len(names) else "a task"
    return f"at {format_duration(t_ns)} {name}[{pid}] {what}"


def relations_of(
    policy: Policy, values: Mapping[str, int], properties: Collection[str], world: World
) -> list[Relation]:
    """Those that are held in a world."""
    if world.given is not None or world.interleaving or not world.groups:
        return []
    found = []
    if "renamed" in properties and not world.settings:
        found.append(Relation("renamed", world, _with_one_before(world), n_new=1))
    is_timed = "scaled" in properties and not (world.events or world.limits)
    scaled = _scaled(policy, values, world) if is_timed else None
    if scaled is not None:
        found.append(Relation("scaled", world, scaled, scale=SCALE))
    if "more-cpus" in properties and _is_plain(world):
        ends = replace(
            world,
            groups=tuple(replace(group, rounds=group.rounds or N_ROUNDS) for group in world.groups),
            horizon_ns=ROUNDS_HORIZON_NS,
        )
        found.append(Relation("more-cpus", ends, replace(ends, n_cpus=world.n_cpus + 1)))
    return found


def _with_one_before(world: World) -> World:
    """The same world, whose tasks have higher pids."""
    never = Group("sleeper", (Phase("run", 1_000_000),), rounds=1, arrival_ns=10 * world.horizon_ns)

    def moved(phase: Phase) -> Phase:
        is_of_other = phase.verb == "change" and phase.target >= 0
        return replace(phase, target=phase.target % len(world.groups) + 1) if is_of_other else phase

    groups = tuple(replace(group, phases=tuple(map(moved, group.phases))) for group in world.groups)
    return replace(world, groups=(never, *groups))


def _scaled(policy: Policy, values: Mapping[str, int], world: World) -> World | None:
    """The same world with longer times; None: a knob cannot be as large."""
    settings = dict(world.settings)
    for name, knob in policy.knobs.items():
        if knob.unit == "ns":
            settings[name] = SCALE * settings.get(name, values[name])
            if settings[name] > knob.maximum:
                return None
    timed = ("deadline", "burst")
    groups = tuple(
        replace(
            group,
            phases=tuple(
                replace(
                    phase,
                    time_ns=SCALE * phase.time_ns,
                    value=phase.value * (SCALE if phase.name in timed else 1),
                )
                for phase in group.phases
            ),
            arrival_ns=SCALE * group.arrival_ns,
            child_ns=SCALE * group.child_ns,
            attributes=tuple(
                (name, value * (SCALE if name in timed else 1)) for name, value in group.attributes
            ),
        )
        for group in world.groups
    )
    return replace(
        world, tick_ns=SCALE * world.tick_ns, groups=groups, settings=tuple(settings.items()),
        horizon_ns=SCALE * world.horizon_ns,
    )  # fmt: skip


def _is_plain(world: World) -> bool:
    """Whether tasks may run on each CPU, and none waits for another one."""
    is_alone = all(group.role in _ALONE and not group.affinity for group in world.groups)
    return is_alone and not (world.events or world.topology or world.settings or world.cgroups)
