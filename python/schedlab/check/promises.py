# SPDX-License-Identifier: MIT
"""What a policy's header promises of tasks beside each other: `@shares` and `@priority`.

        header, world -> Promise -> hosts/check/promises.c: how near each world comes
                                 -> shares.py, priorities.py: what is beyond, in words

A world is looked at with no knob but that of the bound. Where CPUs interleave a tick more is allowed.
Read next: shares.py, priorities.py; trial.py, the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..policy.find import Policy
from ..program import layout
from ..program.file import Program
from ..records.file import Records
from ..workload.phases import ATTRIBUTES
from .encode import program_of
from .priorities import broken_priority
from .shares import broken_share
from .world import World

#: Roles of tasks whose shares are looked at.
SHARING = frozenset({"hog", "sleeper", "locker"})
#: With more tasks, each beside each is too many.
N_PAIRED_MAX = 200
_ELSE = ~layout.which_verbs("run", "sleep", "lock", "unlock", "loop", "end", "exit")


@dataclass(frozen=True)
class Promise:
    """One property in one world."""

    kind: str  #: `shares`, `priority` or `inversion`.
    attribute: str  #: Of tasks, by which they are entitled.
    allowed_ns: int

    def broken(self, records: Records, program: Program) -> str | None:
        """What breaks it; None: nothing."""
        if self.kind == "shares":
            return broken_share(records, program, self.attribute, self.allowed_ns)
        through_locks = self.kind == "inversion"
        return broken_priority(records, program, self.attribute, self.allowed_ns, through_locks=through_locks)


def ticks_ns(bound_ns: int, tick_ns: int) -> int:
    """A bound, as far as ticks allow to keep it."""
    return (-(-bound_ns // tick_ns) + 1) * tick_ns


def promises_of(
    policy: Policy, values: Mapping[str, int], properties: Collection[str], world: World
) -> list[Promise]:
    """What is held against a policy in a world, with these knobs."""
    if (world.given is None and world.n_tasks < 2) or world.machine_events:
        return []
    promises = []
    knobs = {name for name, _ in world.settings}
    for kind in ("shares", "priority", "inversion"):
        declared = policy.shares if kind == "shares" else policy.priority
        if declared is None or kind not in properties or knobs - {declared.knob}:
            continue
        bound_ns = ticks_ns(values[declared.knob], world.tick_ns) if declared.knob else 0
        if world.interleaving:
            bound_ns += world.tick_ns
        if _is_apt(kind, declared.attribute, world):
            promises.append(Promise(kind, declared.attribute, bound_ns * (2 if kind == "shares" else 1)))
    return promises


def _is_apt(kind: str, attribute: str, world: World) -> bool:
    """Whether a world can show it."""
    if kind == "shares" and world.n_cpus > 1:
        return False
    if world.given is not None:
        return kind != "shares" or _always_wants(world)
    if kind == "shares":
        return {group.role for group in world.groups} <= SHARING
    values = {dict(group.attributes).get(attribute) for group in world.groups}
    if kind == "inversion" and not any(group.role == "locker" for group in world.groups):
        return False
    return len(values - {None}) > (attribute != "deadline")


def _always_wants(world: World) -> bool:
    """Whether the tasks of a workload compute, sleep and take locks, and do no more."""
    program = Program(program_of(world))
    return program.n_tasks <= N_PAIRED_MAX and not _ELSE[program.ops["verb"]].any()


def words_of(promises: Collection[Promise]) -> str:
    """As hosts/check takes them; an inversion it does not see."""
    return ",".join(
        f"{each.kind}:{ATTRIBUTES[each.attribute][0]}:{each.allowed_ns}"
        for each in promises
        if each.kind != "inversion"
    )
