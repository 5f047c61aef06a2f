# SPDX-License-Identifier: MIT
"""A world: a small machine and a few tasks, drawn at random, as a workload.

Most schedulers that break do so on one or two CPUs with two or three tasks, when things
happen at once. So machines are small, times come from a coarse grid on which they
coincide (nothing, a tick, a slice, a nanosecond more or less), and each world has only
some of the roles that a task can have: with all of them in every world, one would
hide what another provokes (swarm testing; Groce and others, 2012).

        Random -> draw_world() -> World -> to_toml() -> parse_workload()
                                    |
                  shrink.py: simpler worlds

Invariant: every world that is drawn, and every one that it can be shrunk to, is a
valid workload, in which no task waits for another one indefinitely but for a CPU.
Read next: trial.py; events.py, what happens to the machine.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..policy.find import Knob, Policy
from ..units import format_duration
from ..workload.events import OF_GROUP, Event
from ..workload.model import Workload
from .events import EVENTS_SHARE, HARMLESS, SKEWED_SHARE, STARTED_SHARE, draw_events, draw_skews, draw_start
from .limits import CGROUPS, PARENT, Cgroup, draw_limits, draw_of_groups, with_cpus
from .races import draw_interleaving, n_switches

MS = 1_000_000
#: How long a world lasts. Long enough for hundreds of slices, and for a task to be missed.
HORIZON_NS = 1_000 * MS
#: Shorter ones only make a world of a minute long to simulate.
TIME_NS_MIN = 200_000
TICKS_NS = (1 * MS, 4 * MS, 10 * MS)
#: CPUs, and how often each number is drawn.
CPUS = {1: 35, 2: 35, 3: 10, 4: 15, 8: 5}
TOPOLOGIES = ("", "smt=2", "llc=2", "smt=2,llc=4")
#: Those that are drawn for a group; a `controller` comes with one world of four, a `mover` with one of twelve.
ROLES = ("hog", "sleeper", "yielder", "pair", "forker", "locker", "changer")
CONTROLLED_SHARE, MOVED_SHARE = 0.25, 1 / 12
#: Of those with a mover, so many have cgroups with quotas, weights, a parent, and other tasks in them.
LIMITED_SHARE = 0.5
#: Of those with a mover and several CPUs, so many have cgroups with CPUs of their own.
CPUSETS_SHARE = 1 / 3
NR_GROUPS_MAX = 6
#: Of a world: from 1 to below this.
SEEDS = 1 << 16
#: A longer slice keeps tasks waiting because its user wants it so.
KNOB_TIME_NS_MAX = 100 * MS
#: A knob stays at its default so often: a bad value of one is the user's choice.
KNOB_DEFAULT_SHARE = 0.85
_ATTRIBUTES: dict[str, tuple[int, ...]] = {
    # Two orders of magnitude: with more, a long wait may be what its user asks for.
    "weight": (10, 100, 1000),
    "priority": (0, 1, 5, 98),
    "tickets": (10, 100, 1000),
    "credits": (10, 256, 1000),
    "group": (1, 2),
}
_TIMED_ATTRIBUTES = ("deadline", "burst")


@dataclass(frozen=True)
class Phase:
    """One step: `verb` is `run`, `sleep`, `yield`, `locked` (run with the lock held), `set`, `join` or `change`.

    A `change` is of the tasks of another group, `target` modulo the number of groups, or, below 0,
    of itself; the value of `affinity` has a bit for each CPU.
    """

    verb: str
    time_ns: int = 0
    name: str = ""
    value: int = 0
    target: int = -1


@dataclass(frozen=True)
class Group:
    """Tasks of one role."""

    #: One of `ROLES`, or `controller`, which changes other tasks, or `mover`, which goes from cgroup to cgroup, or
    #: `kthread`, a kernel thread that is bound to a CPU. The tasks of a `pair` send bytes to each
    #: other, the first one's run before the second's; a `forker` starts a child each round, which runs
    #: `child_ns`.
    role: str
    phases: tuple[Phase, ...]  #: What the task does, `rounds` times; 0: until the end.
    rounds: int = 0
    count: int = 1
    arrival_ns: int = 0
    affinity: tuple[int, ...] = ()
    attributes: tuple[tuple[str, int], ...] = ()
    child_ns: int = 0
    is_awaited: bool = True
    cgroup: str = ""  #: In which they begin; empty: the root.


@dataclass(frozen=True)
class World:
    """A machine, its tasks, and the policy's knobs that are not at their defaults.

    With `given`, its tasks are those of that workload, and there are no groups. Its CPUs
    interleave as `interleaving` says, see hosts/check/interleave.c; empty: not at all.
    """

    n_cpus: int
    topology: str
    tick_ns: int
    groups: tuple[Group, ...]
    settings: tuple[tuple[str, int], ...] = ()
    seed: int = 1
    horizon_ns: int = HORIZON_NS
    given: Workload | None = None
    n_cpus_min: int = 1
    interleaving: str = ""
    events: tuple[Event, ...] = ()
    limits: tuple[Cgroup, ...] = ()  #: Of cgroups that are not as by default.

    @property
    def targets(self) -> list[str]:
        """Name of the tasks of each group, of a pair the first one's."""
        return [f"{chr(ord('a') + at)}{'-1' * (g.role == 'pair')}" for at, g in enumerate(self.groups)]

    def cpus_of(self, phase: Phase) -> tuple[int, ...]:
        """What a change of `affinity` allows, of the CPUs that are there; all, where those are not."""
        cpus = range(self.n_cpus)
        return tuple(cpu for cpu in cpus if phase.value >> cpu & 1) or tuple(cpus)

    @property
    def cgroups(self) -> tuple[Cgroup, ...]:
        """Those that are there, where a task is in one or joins it: a parent before its children."""
        joined = {phase.name for group in self.groups for phase in group.phases if phase.verb == "join"}
        if not joined and not any(group.cgroup for group in self.groups):
            return ()
        known = {each.name: each for each in self.limits}
        there = [known.get(name) or Cgroup(name) for name in CGROUPS]
        return (
            *([known.get(PARENT) or Cgroup(PARENT)] if any(each.parent for each in there) else []),
            *there,
        )

    @property
    def objects(self) -> list[str]:
        """Names of the lock and of pipes, which a program numbers before the cgroups."""
        names = [f"{chr(ord('a') + at)}-{way}" for at, group in enumerate(self.groups) if group.role == "pair"
                 for way in ("there", "back")]  # fmt: skip
        is_locked = any(phase.verb == "locked" for group in self.groups for phase in group.phases)
        return ["m"] * is_locked + names

    def tidied(self) -> World:
        """The same without what is of cgroups that are not there, and without their CPUs where tasks are changed.

        Who asks for CPUs that a task's cgroup has not is refused.
        """
        names = {each.name for each in self.cgroups}
        is_changed = any(phase.verb == "change" for group in self.groups for phase in group.phases)
        limits = tuple(replace(each, cpus=()) if is_changed else each for each in self.limits)
        limits = tuple(each for each in limits if each.name in names and each.size)
        events = tuple(
            event for event in self.events if self.given or not event.group or event.group in names
        )
        is_same = limits == self.limits and len(events) == len(self.events)
        return self if is_same else replace(self, limits=limits, events=events)

    @property
    def machine_events(self) -> str:
        """What happens to the machine, and which tasks are kernel threads, as hosts/check takes it."""
        texts, first = [str(event) for event in self.numbered_events], 0
        for group in self.groups:
            if group.role == "kthread":
                texts += [f"thread:{first + number}@0+0" for number in range(group.count)]
            first += group.count * (2 if group.role == "pair" else 1)
        return ",".join(texts)

    @property
    def numbered_events(self) -> Sequence[Event]:
        """The events, those of cgroups with their objects, as a program numbers them."""
        if self.given or not any(event.kind in OF_GROUP for event in self.events):
            return self.events
        first, names = len(self.objects), [each.name for each in self.cgroups]
        return [
            replace(event, which=first + names.index(event.group)) if event.kind in OF_GROUP else event
            for event in self.events
        ]

    @property
    def is_disturbed(self) -> bool:
        """Whether tasks wait for a quota, or what happens to the machine, so that not all is the policy's doing."""
        is_bound = any(group.role == "kthread" for group in self.groups)
        has_quota = any(each.quota_ns for each in self.limits)
        return is_bound or has_quota or any(event.kind not in HARMLESS for event in self.events)

    @property
    def n_tasks(self) -> int:
        """Tasks that are there without those that others start."""
        return sum(group.count * (2 if group.role == "pair" else 1) for group in self.groups)

    @property
    def size(self) -> int:
        """How much a person has to read to understand it; what shrinking makes small."""
        phases = sum(len(group.phases) + (group.rounds > 1) for group in self.groups)
        given = sum(
            len(g.attributes) + bool(g.affinity) + bool(g.arrival_ns) + bool(g.cgroup) for g in self.groups
        ) + sum(each.size for each in self.limits)
        machine = self.n_cpus + 2 * bool(self.topology) + len(self.settings)
        happens = 2 * len(self.events) + n_switches(self.interleaving)
        return 4 * self.n_tasks + 2 * phases + given + machine + happens


# ---- drawing ------------------------------------------------------------------


def slice_of(policy: Policy, values: dict[str, int]) -> int:
    """How long a policy lets a task run, in ns, by the name of its knob; else Linux's 20 ms."""
    for name, knob in policy.knobs.items():
        if knob.unit == "ns" and ("slice" in name or "quantum" in name) and values.get(name):
            return values[name]
    return 20 * MS


class _Drawer:
    """Draws the parts of one world."""

    def __init__(self, rng: random.Random, policy: Policy, values: dict[str, int]):
        self.rng = rng
        self.policy = policy
        self.tick_ns = rng.choice(TICKS_NS)
        self.slice_ns = slice_of(policy, values)
        self.n_cpus = rng.choices([*CPUS], [*CPUS.values()])[0]
        is_kept = [rng.random() < 0.5 for _ in ROLES]
        self.roles = [role for role, keep in zip(ROLES, is_kept, strict=True) if keep] or ["hog"]
        #: Whether tasks of this world have attributes, masks, times of arrival of their own.
        self.has = {name: rng.random() < 0.4 for name in ("attributes", "affinity", "arrival")}
        #: What the header's `@shares` and `@priority` are about, in half of the worlds: most tasks have it then.
        self.wanted: list[str] = []
        declared = {each.attribute for each in (policy.shares, policy.priority) if each} - {"queued"}
        if declared and rng.random() < 0.5:
            self.wanted = sorted(declared)
            if policy.priority and rng.random() < 0.5:
                self.roles = ["locker", rng.choice(("hog", "sleeper"))]
        if policy.latency and rng.random() < 0.2:
            self.n_cpus, self.roles, self.wanted = 1, ["hog", "sleeper"], []
            self.has["attributes"] = False

    def time(self) -> int:
        """A length that another task is likely to have, too."""
        grid = (
            TIME_NS_MIN, self.tick_ns, self.slice_ns, self.slice_ns - 1, self.slice_ns + 1, self.tick_ns - 1,
            2 * self.slice_ns, 500_000, 5 * MS, 30 * MS,
        )  # fmt: skip
        return min(max(TIME_NS_MIN, self.rng.choice(grid)), 100 * MS)

    def attributes(self) -> tuple[tuple[str, int], ...]:
        """Values of one or two attributes, and those that are wanted."""
        names: list[str] = []
        if self.has["attributes"] and self.rng.random() < 0.7:
            names = self.rng.sample([*_ATTRIBUTES, *_TIMED_ATTRIBUTES], self.rng.randint(1, 2))
        if self.wanted and self.rng.random() < 0.8:
            names += [name for name in self.wanted if name not in names]
        return tuple((name, self.value(name)) for name in names)

    def value(self, name: str) -> int:
        """A value of an attribute."""
        return self.time() if name in _TIMED_ATTRIBUTES else self.rng.choice(_ATTRIBUTES[name])

    def phases(self, role: str) -> tuple[Phase, ...]:
        """What a task of a role does in a round."""
        run = Phase("run", self.time())
        if role == "hog":
            return (Phase("run", 100 * MS),)
        if role == "sleeper":
            return (run, Phase("sleep", self.time()))
        if role == "yielder":
            return (run, Phase("yield"))
        if role == "locker":
            return (Phase("locked", self.time()), self.rng.choice((run, Phase("sleep", self.time()))))
        if role == "changer":
            name = self.rng.choice([*_ATTRIBUTES])
            changes = [
                Phase("set", name=name, value=value) for value in self.rng.sample(_ATTRIBUTES[name], 2)
            ]
            return (changes[0], run, changes[1], Phase("sleep", self.time()))
        if role == "controller":
            changes = [self.change(), Phase(self.rng.choice(("run", "sleep")), self.time()), self.change()]
            return (Phase("sleep", self.time()), *changes)
        if role == "mover":
            joins = [Phase("join", name=name) for name in CGROUPS]
            return (joins[0], run, joins[1], Phase(self.rng.choice(("run", "sleep")), self.time()))
        return (run, *((Phase("sleep", self.time()),) if role == "forker" else ()))

    def change(self) -> Phase:
        """A change of another group, or of itself."""
        target = self.rng.randrange(-1, NR_GROUPS_MAX)
        if self.rng.random() < 0.6:
            return Phase(
                "change", name="affinity", value=self.rng.randrange(1, 1 << self.n_cpus), target=target
            )
        name = self.rng.choice([*_ATTRIBUTES])
        return Phase("change", name=name, value=self.rng.choice(_ATTRIBUTES[name]), target=target)

    def group(self) -> Group:
        """Tasks of one role."""
        role = self.rng.choice(self.roles)
        rng = self.rng
        mask: tuple[int, ...] = ()
        if self.has["affinity"] and self.n_cpus > 1 and rng.random() < 0.6:
            mask = tuple(sorted(rng.sample(range(self.n_cpus), rng.randint(1, max(1, self.n_cpus - 1)))))
        return Group(
            role=role,
            phases=self.phases(role),
            rounds=0 if role != "forker" and rng.random() < 0.7 else rng.choice((1, 2, 10, 100)),
            count=1 if role == "pair" else rng.choice((1, 1, 1, 2, 3)),
            arrival_ns=rng.choice((0, self.tick_ns, self.slice_ns, 5 * MS)) if self.has["arrival"] else 0,
            affinity=mask,
            attributes=self.attributes(),
            child_ns=self.time() if role == "forker" else 0,
            is_awaited=rng.random() < 0.5,
        )


#: Of each of what few worlds have, and how many, whether the world of a seed is known to have it not.
_LACKING: dict[tuple[str, float], bytearray] = {}


def _drawn_apart(what: str, world: World, share: float) -> random.Random | None:
    """What draws something that few worlds have, apart from all else, so that the rest stays; None: this has it not."""
    lacking = _LACKING.setdefault((what, share), bytearray(SEEDS))
    # To seed a generator takes as long as to draw a task.
    if lacking[world.seed]:
        return None
    rng = random.Random(f"{what} {world.seed}" if what else world.seed)
    lacking[world.seed] = rng.random() >= share
    return None if lacking[world.seed] else rng


def _with_controller(world: World, policy: Policy, values: dict[str, int]) -> World:
    """In one world of four, add a task that changes others."""
    rng = _drawn_apart("", world, CONTROLLED_SHARE)
    if rng is None:
        return world
    drawer = _Drawer(rng, policy, values)
    drawer.n_cpus, drawer.tick_ns = world.n_cpus, world.tick_ns
    # It ends: each change queues a task anew, so changes without end may starve it, and be to blame.
    group = Group("controller", drawer.phases("controller"), rounds=rng.choice((1, 2, 10, 100)))
    return replace(world, groups=(*world.groups, group))


def _with_mover(world: World, policy: Policy, values: dict[str, int]) -> World:
    """In one world of twelve, add a task that goes from cgroup to cgroup."""
    rng = _drawn_apart("mover", world, MOVED_SHARE)
    if rng is None:
        return world
    drawer = _Drawer(rng, policy, values)
    drawer.tick_ns = world.tick_ns
    group = Group(
        "mover", drawer.phases("mover"), rounds=rng.choice((0, 2, 10, 100)), count=rng.choice((1, 2))
    )
    return replace(world, groups=(*world.groups, group))


def _with_limits(world: World, policy: Policy, values: dict[str, int]) -> World:
    """In half of the worlds with a mover, let cgroups be unlike, and have other tasks."""
    rng = _drawn_apart("limits", world, LIMITED_SHARE) if world.cgroups else None
    if rng is None:
        return world
    groups = tuple(
        replace(group, cgroup=rng.choice(("", *CGROUPS)))
        if group.role != "mover" and "group" not in dict(group.attributes)
        else group
        for group in world.groups
    )
    settings, knob = world.settings, policy.quotas
    if knob and knob not in dict(settings) and rng.random() < 0.75:
        # Otherwise few of these worlds would show what the policy makes of groups.
        settings += ((knob, rng.choice([value for value in policy.knobs[knob].names.values() if value])),)
    limits = draw_limits(rng)
    return replace(world, groups=groups, settings=settings, limits=limits, events=draw_of_groups(rng, limits))


def _with_cpusets(world: World) -> World:
    """In a third of the worlds with a mover and several CPUs and no controller, see `tidied`, let cgroups have CPUs of their own."""
    is_apt = world.n_cpus > 1 and world.cgroups and all(group.role != "controller" for group in world.groups)
    rng = _drawn_apart("cpusets", world, CPUSETS_SHARE) if is_apt else None
    return replace(world, limits=with_cpus(rng, world.cgroups, world.n_cpus)) if rng else world


def _with_events(world: World, policy: Policy, values: dict[str, int]) -> World:
    """In one world of twelve, add what happens to the machine, and a kernel thread."""
    rng = _drawn_apart("events", world, EVENTS_SHARE)
    if rng is None:
        return world
    drawer = _Drawer(rng, policy, values)
    drawer.tick_ns = world.tick_ns
    events, has_thread = draw_events(rng, world.n_cpus, drawer.time)
    groups = world.groups
    if has_thread:
        phases = rng.choice((drawer.phases("sleeper"), drawer.phases("hog")))
        groups += (Group("kthread", phases, affinity=(rng.randrange(world.n_cpus),)),)
    return replace(world, groups=groups, events=world.events + events)


def _with_skews(world: World) -> World:
    """In one world of twelve, let the clocks of its CPUs differ."""
    rng = _drawn_apart("skew", world, SKEWED_SHARE) if world.n_cpus > 1 else None
    if rng is None:
        return world
    return replace(world, events=world.events + draw_skews(rng, world.n_cpus))


def _with_start(world: World) -> World:
    """In one world of twelve, let clocks begin at another time than 0."""
    rng = _drawn_apart("start", world, STARTED_SHARE)
    return replace(world, events=world.events + draw_start(rng)) if rng else world


def draw_world(
    rng: random.Random, policy: Policy, values: dict[str, int], given: World | None = None
) -> World:
    """Draw a world: knobs of the policy, times that coincide with its slice; `given` tasks are kept."""
    settings = tuple(
        (name, rng.choice(_bounds(knob)))
        for name, knob in policy.knobs.items()
        if rng.random() >= KNOB_DEFAULT_SHARE
    )
    drawer = _Drawer(rng, policy, values | dict(settings))
    # Small worlds first: most failures need no more than two or three tasks.
    n_groups = rng.choices(range(1, NR_GROUPS_MAX + 1), (15, 30, 25, 15, 10, 5))[0]
    fitting = [
        t for t in TOPOLOGIES if not t or (drawer.n_cpus % 2 == 0 and ("4" not in t or drawer.n_cpus > 2))
    ]
    topology = rng.choice(fitting) if rng.random() < 0.4 else ""
    if given is not None:
        n_cpus = max(drawer.n_cpus, given.n_cpus_min)
        topology = topology if n_cpus == drawer.n_cpus else ""
        return replace(
            given, n_cpus=n_cpus, topology=topology, settings=settings, seed=rng.randrange(1, SEEDS)
        )
    world = World(
        n_cpus=drawer.n_cpus,
        topology=topology,
        tick_ns=drawer.tick_ns,
        groups=tuple(drawer.group() for _ in range(n_groups)),
        settings=settings,
        seed=rng.randrange(1, SEEDS),
    )
    for add in (_with_controller, _with_mover, _with_limits, _with_events):
        world = add(world, policy, values | dict(settings))
    return _with_cpusets(_with_start(_with_skews(world)))


def interleaved(rng: random.Random, world: World) -> World:
    """Draw how the CPUs of a world interleave; a world of one CPU gets two, or more."""
    n_cpus = max(world.n_cpus, rng.choice((2, 2, 2, 3, 4)))
    topology = world.topology if n_cpus == world.n_cpus else ""
    return replace(world, n_cpus=n_cpus, topology=topology, interleaving=draw_interleaving(rng))


def _bounds(knob: Knob) -> list[int]:
    """Values of a knob that are worth a try: each name, or the smallest and the largest."""
    largest = min(knob.maximum, KNOB_TIME_NS_MAX) if knob.unit == "ns" else knob.maximum
    return [*knob.names.values()] if knob.names else [knob.minimum, max(knob.minimum, largest)]


def change_world(rng: random.Random, world: World, policy: Policy, values: dict[str, int]) -> World:
    """Draw a neighbour of a world: one group is drawn anew, joined, or left out."""
    if world.given:
        return draw_world(rng, policy, values, world)
    other = draw_world(rng, policy, values)
    group = rng.choice(other.groups)
    mask = tuple(cpu for cpu in group.affinity if cpu < world.n_cpus)
    group = replace(group, affinity=mask)
    groups = list(world.groups)
    at = rng.randrange(len(groups))
    if rng.random() < 0.5 or len(groups) >= NR_GROUPS_MAX:
        groups[at] = group
    else:
        groups.insert(at, group)
    return replace(world, groups=tuple(groups), seed=other.seed).tidied()


# ---- as a workload --------------------------------------------------------------


def to_toml(
    world: World, *, title: str = "A world drawn by schedlab check", horizon_ns: int | None = None
) -> str:
    """Write a world as a workload; topology and knobs are options of `schedlab run`."""
    lines = [
        "[workload]", f"title = {json.dumps(title, ensure_ascii=False)}", 'question = "Does every task get its turn?"',
        f'tick = "{format_duration(world.tick_ns)}"', f"cpus = {world.n_cpus}", 'jitter = "0s"',
        f'horizon = "{format_duration(horizon_ns or world.horizon_ns)}"',
        *([f'interleaving = "{world.interleaving}"'] if world.interleaving else []),
    ]  # fmt: skip
    objects = [line for each in world.cgroups for line in each.lines()]
    tasks: list[str] = []
    for number, group in enumerate(world.groups):
        name = chr(ord("a") + number)
        if group.role == "pair":
            objects += ["", "[[pipe]]", f'name = "{name}-there"', "", "[[pipe]]", f'name = "{name}-back"']
        tasks += _tasks_of(world, group, name)
    if any(phase.verb == "locked" for group in world.groups for phase in group.phases):
        objects += ["", "[[lock]]", 'name = "m"']
    happens = [line for event in world.events for line in event.lines()]
    for name, group in zip(world.targets, world.groups, strict=True):
        if group.role == "kthread":
            happens += Event("thread", 0, 0, 0).lines(name)
    return "\n".join([*lines, *objects, *tasks, *happens]) + "\n"


def _tasks_of(world: World, group: Group, name: str) -> list[str]:
    """The `[[task]]` tables of a group."""
    steps = [step for phase in group.phases for step in _steps(world, phase)]
    if group.role == "pair":
        there, back = f'"{name}-there"', f'"{name}-back"'
        first = [*steps, f"{{send = {there}}}", f"{{recv = {back}}}"]
        second = [f"{{recv = {there}}}", *steps, f"{{send = {back}}}"]
        return [*_task(group, f"{name}-1", first), *_task(group, f"{name}-2", second)]
    if group.role != "forker":
        return _task(group, name, steps)
    wait = ['"wait"'] if group.is_awaited else []
    child = ["", "[[task]]", f'name = "{name}-child"', 'arrival = "spawned"',
             f'phases = [{{run = "{format_duration(group.child_ns)}"}}]']  # fmt: skip
    return [*_task(group, name, [f'{{spawn = "{name}-child"}}', *steps, *wait]), *child]


def _task(group: Group, name: str, steps: Sequence[str]) -> list[str]:
    """One `[[task]]` table."""
    lines = ["", "[[task]]", f'name = "{name}"']
    if group.count > 1:
        lines.append(f"count = {group.count}")
    if group.arrival_ns:
        lines.append(f'arrival = "{format_duration(group.arrival_ns)}"')
    if group.cgroup:
        lines.append(f'group = "{group.cgroup}"')
    if group.affinity:
        lines.append(f"affinity = {[*group.affinity]}")
    for key, value in group.attributes:
        lines.append(
            f'{key} = "{format_duration(value)}"' if key in _TIMED_ATTRIBUTES else f"{key} = {value}"
        )
    body = ", ".join(steps)
    if group.rounds != 1:
        rounds = group.rounds or '"forever"'
        body = f"{{loop = {rounds}, do = [{body}]}}"
    return [*lines, f"phases = [{body}]"]


def _steps(world: World, phase: Phase) -> list[str]:
    """A phase as TOML."""
    if phase.verb == "change":
        targets = world.targets
        whose = f'task = "{targets[phase.target % len(targets)]}", ' if phase.target >= 0 else ""
        value = [*world.cpus_of(phase)] if phase.name == "affinity" else phase.value
        return [f"{{change = {{{whose}{phase.name} = {value}}}}}"]
    if phase.verb == "yield":
        return ['"yield"']
    if phase.verb == "join":
        return [f'{{join = "{phase.name}"}}']
    if phase.verb == "set":
        return [f"{{set = {{{phase.name} = {phase.value}}}}}"]
    time = f'"{format_duration(phase.time_ns)}"'
    if phase.verb == "locked":
        return ['{lock = "m"}', f"{{run = {time}}}", '{unlock = "m"}']
    return [f"{{{phase.verb} = {time}}}"]
