# SPDX-License-Identifier: MIT
"""What a policy's header promises of tasks beside each other: `@shares`, `@priority` and `@latency`.

        header, world -> Promise -> hosts/check/promises.c: how near each world comes
                                 -> shares.py, priorities.py, latency.py: what is beyond, in words

A world is looked at with no knob but that of the bound. Where CPUs interleave a tick more is allowed.
Read next: shares.py, priorities.py, latency.py; trial.py, the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..policy.find import Entitlement, Policy
from ..program import layout
from ..program.file import Program
from ..records.file import Records
from ..workload.phases import ATTRIBUTES
from .encode import program_of
from .latency import broken_latency
from .priorities import Order, broken_priority
from .shares import broken_share
from .world import World

#: Roles of tasks whose shares are looked at.
SHARING = frozenset({"hog", "sleeper", "locker"})
#: With more tasks, each beside each is too many.
N_PAIRED_MAX = 200
#: In place of an attribute's key: when a task was queued.
QUEUED_KEY = max(values[0] for values in ATTRIBUTES.values()) + 1
_ELSE_THAN_RUN = ~layout.which_verbs("run", "sleep", "loop", "end", "exit")
_ELSE = ~layout.which_verbs("run", "sleep", "lock", "unlock", "loop", "end", "exit")


@dataclass(frozen=True)
class Promise:
    """One property in one world."""

    kind: str  #: `shares`, `priority`, `inversion` or `latency`.
    declared: Entitlement
    allowed_ns: int

    def broken(self, records: Records, program: Program) -> str | None:
        """What breaks it; None: nothing."""
        if self.kind == "shares":
            return broken_share(records, program, self.declared.attribute, self.allowed_ns)
        if self.kind == "latency":
            return broken_latency(records, program, self.allowed_ns)
        through_locks = self.kind == "inversion"
        return broken_priority(records, program, self.order, self.allowed_ns, through_locks=through_locks)

    @property
    def order(self) -> Order:
        """In which tasks have the CPU; an inversion is there as long as it lasts."""
        return Order(
            self.declared.attribute,
            when_free=self.declared.when_free and self.kind == "priority",
            then_queued=self.declared.then_queued,
        )

    @property
    def words(self) -> str:
        """As hosts/check takes it: KIND:ATTRIBUTE:NS, and letters."""
        if self.kind == "latency":
            return f"latency:0:{self.allowed_ns}"
        key = QUEUED_KEY if self.declared.attribute == "queued" else ATTRIBUTES[self.declared.attribute][0]
        letters = "f" * self.declared.when_free + "q" * self.declared.then_queued
        return f"{self.kind}:{key}:{self.allowed_ns}{letters}"


def ticks_ns(bound_ns: int, tick_ns: int) -> int:
    """A bound, as far as ticks allow to keep it."""
    return (-(-bound_ns // tick_ns) + 1) * tick_ns


def promises_of(
    policy: Policy, values: Mapping[str, int], properties: Collection[str], world: World
) -> list[Promise]:
    """What is held against a policy in a world, with these knobs."""
    if (world.given is None and world.n_tasks < 2) or world.machine_events:
        return []
    # What a group's weight and quota leave to a task is not its own.
    if world.cgroups or (world.given and world.given.groups):
        return []
    promises = []
    knobs = {name for name, _ in world.settings}
    for kind in ("shares", "priority", "inversion", "latency"):
        declared = {"shares": policy.shares, "latency": policy.latency}.get(kind, policy.priority)
        if declared is None or kind not in properties or knobs - {declared.knob}:
            continue
        # A wake-up that no CPU has seen yet is passed over by the next one, which a CPU sees, as with `work`.
        if world.interleaving and declared.when_free:
            continue
        knob_ns = values[declared.knob] if declared.knob else 0
        bound_ns = ticks_ns(knob_ns, world.tick_ns) if declared.knob else 0
        if world.interleaving:
            bound_ns += world.tick_ns
        n_times = 2 if kind == "shares" else 1
        if kind == "latency":
            demands = _demands(world) if knob_ns or not world.interleaving else []
            n_times, is_apt = len(demands) - 1, _is_light(demands, knob_ns)
        else:
            is_apt = _is_apt(kind, declared.attribute, world)
        if is_apt:
            promises.append(Promise(kind, declared, bound_ns * n_times))
    return promises


def _is_light(demands: Collection[tuple[int, int]], bound_ns: int) -> bool:
    """Whether tasks that run and sleep for so long ask for less than their part, if they sleep at all.

    That is for less at once than the bound, where there is one: who uses up a quantum may be demoted. If there is none, there are two, of which
    one always computes, and the other sleeps three times as long as it runs.
    """
    if not bound_ns and (len(demands) != 2 or all(sleep_ns for _, sleep_ns in demands)):
        return False
    n_times = len(demands) - 1 if bound_ns else 3
    return len(demands) > 1 and all(
        not sleep_ns or (sleep_ns >= n_times * run_ns and (run_ns < bound_ns or not bound_ns))
        for run_ns, sleep_ns in demands
    )


def _demands(world: World) -> list[tuple[int, int]]:
    """For how long each task runs and sleeps in a round; none where there is more to them, or several CPUs."""
    if world.n_cpus > 1:
        return []
    if world.given is not None:
        return _demands_of_program(Program(program_of(world)))
    if any(group.attributes or group.role not in ("hog", "sleeper") for group in world.groups):
        return []
    return [
        (sum(p.time_ns for p in group.phases if p.verb == "run"),
         sum(p.time_ns for p in group.phases if p.verb == "sleep"))
        for group in world.groups
        for _ in range(group.count)
    ]  # fmt: skip


def _demands_of_program(program: Program) -> list[tuple[int, int]]:
    """The same of a workload."""
    ops, rows = program.ops, program.task_rows
    has_more = _ELSE_THAN_RUN[ops["verb"]].any() or ops["flags"].any()
    if has_more or rows["attr_given"].any() or len({*rows["weight"].tolist()}) > 1:
        return []
    demands = []
    for row in rows:
        own = ops[row["op_first"] : row["op_first"] + row["nr_ops"]]
        run_ns, sleep_ns = (
            int(own["b"][own["verb"] == layout.VERB_NUMBER[verb]].sum()) for verb in ("run", "sleep")
        )
        demands.append((run_ns, sleep_ns))
    return demands


def _is_apt(kind: str, attribute: str, world: World) -> bool:
    """Whether a world can show it."""
    if kind == "shares" and world.n_cpus > 1:
        return False
    if world.given is not None:
        return kind != "shares" or _always_wants(world)
    if kind == "shares":
        return {group.role for group in world.groups} <= SHARING
    if attribute == "queued":
        return True
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
    return ",".join(each.words for each in promises if each.kind != "inversion")
