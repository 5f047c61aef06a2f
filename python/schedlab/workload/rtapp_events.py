# SPDX-License-Identifier: MIT
"""The tasks of an rt-app file: their attributes, their phases, their events.

rt-app knows a step by how its key begins: `run`, `run1` and `run_late` are all
runs. Here a number or a word behind a mark may follow; a letter may not, since
`runtiem` is more likely a mistake than a run.

Must stay true: a mistake is noted and left out, so that all are shown at once.
Read next: rtapp.py, which reads the file around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import SpecFault, did_you_mean
from .json_text import Node, Pair, Pairs
from .toml_text import clean_name, unique

if TYPE_CHECKING:
    from .rtapp import RtappSource

#: rt-app keeps numbers in a C int.
US_MAX = 2**31 - 1
POLICIES = ("SCHED_OTHER", "SCHED_IDLE", "SCHED_RR", "SCHED_FIFO", "SCHED_DEADLINE")
_REALTIME = ("SCHED_RR", "SCHED_FIFO")
#: rt-app's priority of a real-time task that states none.
_RT_PRIORITY_DEFAULT = 10
#: Levels of POSIX go up to 99, the most urgent; ours down to 0.
_RT_PRIORITY_MAX = 99
#: What memory takes in a microsecond; for `mem`, which writes to it.
_MEMORY = {
    "default": 10_000,
    "min": 1,
    "about": "bytes that a CPU writes to memory in 1 us, for rt-app's mem",
}
_SCHED_KEYS = ("policy", "priority", "dl-runtime", "dl-period", "dl-deadline")
#: Keys of newer versions that no workload can express.
_REFUSED = {
    "util_min": "utilisation clamps steer frequencies, which hosts do not model",
    "util_max": "utilisation clamps steer frequencies, which hosts do not model",
    "taskgroup": "a workload has no control groups; `group` of a task is the policy's",
    "nodes_membind": "hosts do not place memory",
}
_OLD = ("exec", "lock_order", "resources")
TASK_KEYS = ("instance", "loop", "phases", "delay", "cpus", *_SCHED_KEYS)
PHASE_KEYS = ("loop", "cpus", *_SCHED_KEYS)


def is_event(key: str) -> bool:
    """Whether a key names a step rather than a setting."""
    return _EVENT.fullmatch(key) is not None and key not in _OLD


class Lined(dict[str, Any]):
    """A table of the workload, and the JSON line that it comes from."""

    def __init__(self, values: dict[str, Any], line: int):
        super().__init__(values)
        self.line = line


@dataclass
class Context:
    """What is known of the whole file while its tasks are read."""

    source: RtappSource  #: Mistakes and notes go there.
    default_policy: str = "SCHED_OTHER"  #: Of tasks that state none.
    duration: str = ""  #: When the run ends, as a time; empty: when all tasks have ended.
    buffer_bytes: int = 4 * 1024 * 1024  #: The most that one call of `iorun` writes.
    cpus_max: int = 0  #: Highest CPU that a task names.
    task_names: list[str] = field(default_factory=list)  #: Keys of `tasks`.
    params: dict[str, dict[str, Any]] = field(default_factory=dict)  #: `[params]` that the conversion needs.
    #: Locks, barriers and conditions, made at first use.
    objects: dict[str, list[Lined]] = field(
        default_factory=lambda: {"lock": [], "barrier": [], "condition": []}
    )
    known: dict[tuple[str, str], Lined] = field(default_factory=dict)
    forks: dict[str, list[tuple[str, int]]] = field(default_factory=dict)  #: Who forks each task.
    timers: dict[str, dict[str, int]] = field(default_factory=dict)
    realtime: set[str] = field(default_factory=set)

    @property
    def notes(self) -> list[str]:
        """What was left out, and why."""
        return self.source.notes

    def fault(self, line: int | None, place: str, message: str) -> None:
        """Note a mistake."""
        fault = SpecFault(self.source.name, line, place, message)
        if fault not in self.source.faults:
            self.source.faults.append(fault)

    def object_of(self, kind: str, name: str, line: int) -> str:
        """Name of a lock, barrier or condition; made where it is new.

        rt-app has one space of names for each kind, a workload one for all.
        """
        if (kind, name) not in self.known:
            taken = {item["name"] for items in self.objects.values() for item in items}
            own = unique(clean_name(name), taken, kind)
            self.known[kind, name] = Lined({"name": own}, line)
            self.objects[kind].append(self.known[kind, name])
        return self.known[kind, name]["name"]

    def finish(self, tasks: list[Lined]) -> None:
        """Do what needs all tasks: shared timers, forks, levels below real time."""
        _finish_timers(self)
        _finish_forks(self, tasks)
        for task in tasks:
            if self.realtime and "priority" not in task:
                # Below every real-time task; level 98 is the last one.
                task["priority"] = _RT_PRIORITY_MAX - 1
        for name, policies in _by_policy(tasks).items():
            if name != "SCHED_OTHER":
                self.notes.append(
                    f"policy {name} of {', '.join(policies)}: the policy is chosen when "
                    "the workload is run; priorities and deadlines are kept"
                )
        for task in tasks:
            del task["policy"]


def _by_policy(tasks: list[Lined]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for task in tasks:
        found.setdefault(task["policy"], []).append(task["name"])
    return found


def _finish_timers(context: Context) -> None:
    """Refuse timers that several threads advance together."""
    for ref, users in context.timers.items():
        threads = sum(users.values())
        if threads > 1:
            names = ", ".join(users)
            context.fault(
                context.known["timer", ref].line,
                f"timer {ref!r}",
                f"{threads} threads advance it together ({names}), which depends on their "
                "order; give each a timer of its own with a ref that begins with 'unique'",
            )


def _finish_forks(context: Context, tasks: list[Lined]) -> None:
    """A task that is forked is a class of its own for each task that forks it."""
    originals = {task["name"]: task for task in tasks}
    for key, parents in context.forks.items():
        task = originals.get(clean_name(key))
        if task is None:
            continue
        has_delay = "arrival" in task
        for number, (parent, line) in enumerate(dict(reversed(parents)).items(), start=1):
            if parent == task["name"]:
                context.fault(line, f"task {parent!r}", "fork: a task that forks itself has no end")
            if has_delay:
                context.fault(
                    line,
                    f"task {parent!r}",
                    f"fork: task {key!r} has a delay, which counts "
                    "from the start of the run and not from the fork; use a sleep",
                )
            child = task
            if task["instance"] or number > 1:
                child = Lined(dict(task), task.line)
                tasks.insert(tasks.index(task) + 1, child)
            child["name"] = fork_name(context, key, parent)
            child["arrival"] = "spawned"
            child.pop("count", None)
            if any("timer" in phase for phase in _all_phases(child["phases"])):
                context.notes.append(
                    f"timers of {child['name']}: they count from its fork, not from the start of the run"
                )
    for task in [task for task in tasks if not task["instance"] and task.get("arrival") != "spawned"]:
        context.notes.append(f"task {task['name']}: left out, since instance is 0 and nobody forks it")
        tasks.remove(task)
    for task in tasks:
        del task["instance"]
    if not tasks:
        context.fault(None, "tasks", "no task ever starts")


def _all_phases(phases: list[Any]) -> list[Any]:
    return [*phases, *(inner for phase in phases for inner in _all_phases(phase.get("do", [])))]


def fork_name(context: Context, key: str, parent: str) -> str:
    """Name of the class that `parent` forks from task `key`."""
    taken = {clean_name(name) for name in context.task_names}
    return unique(f"{clean_name(key)}-of-{parent}"[:60], taken, "fork")


def read_task(context: Context, pair: Pair) -> Lined | None:
    """Read one task."""
    return _TaskReader(context, pair).read()


class _TaskReader:
    """Reads one task; see `read_task`."""

    def __init__(self, context: Context, pair: Pair):
        self.context = context
        self.pair = pair
        self.name = clean_name(pair.key)
        self.place = f"task {pair.key!r}"
        self.instances = 1
        self.policy = context.default_policy
        self.cpus: list[int] | None = None
        #: Phases of each timer, and the timers that are absolute anywhere.
        self.timers: list[dict[str, Any]] = []
        self.absolute: set[str] = set()

    def fault(self, line: int, message: str) -> None:
        self.context.fault(line, self.place, message)

    def read(self) -> Lined | None:
        pairs = self.pair.node.value
        phases = [pair for pair in pairs if pair.key == "phases"]
        keys = TASK_KEYS if phases else (*TASK_KEYS, *EVENTS)
        settings = self.settings(pairs, keys, takes_events=not phases)
        if clean_name(self.pair.key) in {
            clean_name(n) for n in self.context.task_names if n != self.pair.key
        }:
            self.fault(self.pair.line, "another task has the same name but for special characters")
        table = Lined({"name": self.name}, self.pair.line)
        self.instances = self.number(settings, "instance", 1, 0, 1_000_000)
        table["instance"] = self.instances
        if self.instances != 1:
            table["count"] = self.instances
        delay_us = self.number(settings, "delay", 0, 0, US_MAX)
        if delay_us:
            table["arrival"] = f"{delay_us}us"
        table.update(self.scheduling(settings, is_task=True))
        table["policy"] = self.policy
        self.cpus = self.cpu_list(settings)
        steps = self.phases(phases, pairs, settings)
        for timer in self.timers:
            if timer["name"] in self.absolute:
                timer["late"] = "keep"
        if self.cpus:
            table["affinity"] = self.cpus
            self.context.cpus_max = max(self.context.cpus_max, *self.cpus)
        table["phases"] = steps
        return table

    # ---- keys that are no events ----------------------------------------

    def settings(self, pairs: Pairs, keys: tuple[str, ...], *, takes_events: bool) -> dict[str, Node]:
        """Collect the keys that are no events; complain of unknown ones."""
        found: dict[str, Node] = {}
        for pair in pairs:
            if takes_events and is_event(pair.key):
                continue
            if pair.key in _OLD:
                self.fault(pair.line, self.unknown(pair.key, keys))
                continue
            if pair.key in keys and pair.key not in EVENTS:
                if pair.key in found:
                    self.fault(pair.line, f"key {pair.key!r} stands twice; rt-app would use the last")
                found[pair.key] = Node(pair.node.value, pair.line, pair.node.is_absent)
                continue
            self.fault(pair.line, self.unknown(pair.key, keys))
        return found

    @staticmethod
    def unknown(key: str, keys: tuple[str, ...]) -> str:
        if key in _REFUSED:
            return f"key {key!r}: {_REFUSED[key]}"
        if key in ("period", "deadline"):
            return f"unknown key {key!r}: for SCHED_DEADLINE write 'dl-{key}'; else use a timer"
        if key in _OLD:
            return f"unknown key {key!r}: only old versions of rt-app knew it; describe the task by events"
        if is_event(key):
            return f"event {key!r} beside 'phases' is never executed; move it into a phase"
        return f"unknown key {key!r}{did_you_mean(key.rstrip('0123456789'), keys)}"

    def number(self, settings: dict[str, Node], key: str, default: int, low: int, high: int) -> int:
        node = settings.get(key)
        if node is None:
            return default
        if type(node.value) is not int:
            self.fault(node.line, f"{key} must be a whole number (got {node.kind})")
            return default
        if not low <= node.value <= high:
            self.fault(node.line, f"{key} must be from {low} to {high} (got {node.value})")
            return default
        return node.value

    def loop(self, settings: dict[str, Node], default: int) -> int:
        """Read `loop`: rounds, or -1 for ever."""
        rounds = self.number(settings, "loop", default, -1, US_MAX)
        if not rounds:
            self.fault(settings["loop"].line, "loop must be -1, for ever, or 1 and more (got 0)")
            return 1
        return rounds

    def cpu_list(self, settings: dict[str, Node]) -> list[int] | None:
        node = settings.get("cpus")
        if node is None:
            return None
        good = (
            isinstance(node.value, list)
            and node.value
            and all(type(item.value) is int and 0 <= item.value < 1024 for item in node.value)
        )
        if not good:
            self.fault(node.line, "cpus must be a list of CPUs, at least one, each from 0 to 1023")
            return None
        return sorted({item.value for item in node.value})

    def scheduling(self, settings: dict[str, Node], *, is_task: bool) -> dict[str, Any]:
        """Read policy, priority and the times of SCHED_DEADLINE into attributes."""
        node = settings.get("policy")
        policy = self.policy
        if node is not None and node.value not in POLICIES:
            hint = did_you_mean(str(node.value), POLICIES)
            self.fault(node.line, f"policy: unknown policy {node.value!r}{hint}")
        elif node is not None:
            policy = node.value
        if is_task:
            self.policy = policy
        elif node is not None and policy != self.policy:
            self.fault(node.line, f"policy: a task stays under one policy, here {self.policy}")
        if is_task or "priority" in settings:
            return self.priority(settings) | self.deadline(settings)
        return self.deadline(settings)

    def priority(self, settings: dict[str, Node]) -> dict[str, Any]:
        if self.policy in _REALTIME:
            self.context.realtime.add(self.name)
            level = self.number(settings, "priority", _RT_PRIORITY_DEFAULT, 1, _RT_PRIORITY_MAX)
            return {"priority": _RT_PRIORITY_MAX - level}
        if self.policy == "SCHED_IDLE":
            return {"weight": 1}
        nice = self.number(settings, "priority", 0, -20, 19)
        return {"nice": nice} if "priority" in settings and self.policy == "SCHED_OTHER" else {}

    def deadline(self, settings: dict[str, Node]) -> dict[str, Any]:
        given = [key for key in ("dl-runtime", "dl-period", "dl-deadline") if key in settings]
        if given and self.policy != "SCHED_DEADLINE":
            self.fault(settings[given[0]].line, f"{given[0]}: only for SCHED_DEADLINE, not {self.policy}")
            return {}
        if not given:
            return {}
        runtime = self.number(settings, "dl-runtime", 0, 1, US_MAX)
        period = self.number(settings, "dl-period", runtime, 1, US_MAX)
        deadline = self.number(settings, "dl-deadline", period, 1, US_MAX)
        if period != deadline:
            self.context.notes.append(
                f"dl-period of {self.name}: a task has a deadline, its period is made by its timer"
            )
        return {"deadline": f"{deadline}us"} | ({"burst": f"{runtime}us"} if runtime else {})

    # ---- phases and events ------------------------------------------------

    def phases(self, phases: list[Pair], pairs: Pairs, settings: dict[str, Node]) -> list[Lined]:
        """Read all that the task does, its loops included."""
        if not phases:
            # Without phases the task is one; it loops for ever unless told otherwise.
            if "loop" in settings and settings["loop"].value != -1:
                self.context.notes.append(
                    f"loop of {self.name}, which has no phases: as documented; "
                    "rt-app 1.0 repeats it for ever, later ones do not"
                )
            events = self.events(pairs, self.pair.line)
            return self.repeated(events, self.loop(settings, -1), self.pair.line)
        node = phases[0].node
        if not isinstance(node.value, Pairs):
            self.fault(phases[0].line, f"phases must be an object (got {node.kind})")
            return []
        if not node.value:
            self.fault(phases[0].line, "phases: there is none")
        body: list[Lined] = []
        whole = self.place
        affinities: list[tuple[int, list[int] | None]] = []
        for pair in node.value:
            self.place = f"{whole}, phase {pair.key!r}"
            if not isinstance(pair.node.value, Pairs):
                self.fault(pair.line, f"must be an object (got {pair.node.kind})")
                continue
            body += self.phase(pair, affinities)
        self.place = whole
        self.settle_affinity(affinities)
        return self.repeated(body, self.loop(settings, -1), self.pair.line)

    def phase(self, pair: Pair, affinities: list[Any]) -> list[Lined]:
        settings = self.settings(pair.node.value, (*PHASE_KEYS, *EVENTS), takes_events=True)
        affinities.append((pair.line, self.cpu_list(settings)))
        attributes = self.scheduling(settings, is_task=False)
        start = [Lined({"set": attributes}, pair.line)] if attributes else []
        body = self.events(pair.node.value, pair.line)
        return start + self.repeated(body, self.loop(settings, 1), pair.line)

    def settle_affinity(self, affinities: list[tuple[int, list[int] | None]]) -> None:
        """All phases must allow the same CPUs: no verb changes them."""
        wanted = {tuple(cpus or self.cpus or ()) for _, cpus in affinities}
        if len(wanted) > 1:
            line = next(line for line, cpus in affinities if cpus and cpus != self.cpus)
            self.fault(line, "cpus: a task keeps its CPUs; its phases name different ones")
        elif wanted:
            self.cpus = list(wanted.pop()) or None

    def repeated(self, body: list[Lined], rounds: int, line: int) -> list[Lined]:
        if rounds == 1 or not body:
            return body
        if rounds == -1 and not self.context.duration:
            self.fault(
                line,
                "it loops for ever and the file has no duration: write one in 'global', "
                "in seconds, or add :duration=5s to its name",
            )
        return [Lined({"loop": "forever" if rounds == -1 else rounds, "do": body}, line)]

    def events(self, pairs: Pairs, line: int) -> list[Lined]:
        found: list[Lined] = []
        for pair in pairs:
            match = _EVENT.fullmatch(pair.key)
            if match and is_event(pair.key):
                value = _EVENT_READERS[match[1]](self, pair, match[1])
                found += [Lined(phase, pair.line) for phase in value]
        if not found:
            self.fault(line, "it has no event; rt-app refuses that too")
        return found

    # ---- one method per kind of event; each returns phases of ours --------

    def amount(self, pair: Pair, unit: str) -> int | None:
        value = pair.node.value
        if type(value) is not int or not 0 <= value <= US_MAX:
            shown = value if type(value) is int else pair.node.kind
            self.fault(
                pair.line, f"{pair.key} must be a whole number of {unit}, up to {US_MAX} (got {shown})"
            )
            return None
        return value

    def text(self, pair: Pair) -> str | None:
        if not isinstance(pair.node.value, str):
            got = "nothing" if pair.node.is_absent else pair.node.kind
            self.fault(pair.line, f"{pair.key} must be a text (got {got})")
            return None
        return pair.node.value

    def timed(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        """run, runtime, sleep: microseconds."""
        time_us = self.amount(pair, "microseconds")
        if event == "runtime" and self.policy == "SCHED_DEADLINE":
            self.context.notes.append(f"runtime of {self.name}: read as work, not as dl-runtime")
        elif event == "runtime":
            self.context.notes.append(
                "runtime: counted in CPU time; rt-app counts time on the clock, so "
                "that preemption shortens the work"
            )
        verb = "sleep" if event == "sleep" else "run"
        return [] if time_us is None else [{verb: f"{time_us}us"}]

    def memory(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        """mem: writing to memory is CPU time."""
        size = self.amount(pair, "bytes")
        if size is None:
            return []
        self.context.params["memory_bytes_per_us"] = _MEMORY
        self.context.notes.append("mem: CPU time at memory_bytes_per_us, a param")
        return [{"run": "{" + f"{size} / memory_bytes_per_us * 1us" + "}"}]

    def output(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        """iorun: a write that waits for no device, as rt-app's."""
        size = self.amount(pair, "bytes")
        if size is None:
            return []
        chunk = min(size, self.context.buffer_bytes)
        return [{"write": {"bytes": size, "chunk": chunk}}] if size else [{"run": "0us"}]

    def locking(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        name = self.text(pair)
        return [] if name is None else [{event: self.context.object_of("lock", name, pair.line)}]

    def signalling(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        """signal, broad, resume: the last two wake all."""
        name = self.text(pair)
        if name is None:
            return []
        condition = self.context.object_of("condition", name, pair.line)
        if event == "signal":
            return [{"signal": condition}]
        return [{"signal": {"condition": condition, "all": True}}]

    def suspending(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        """suspend: without a value it is the task's own name, as workgen fills in."""
        name = self.pair.key if pair.node.is_absent else self.text(pair)
        return [] if name is None else [{"await": self.context.object_of("condition", name, pair.line)}]

    def table(self, pair: Pair, types: dict[str, type], required: tuple[str, ...]) -> dict[str, Any] | None:
        """Read the object that an event has for a value."""
        if not isinstance(pair.node.value, Pairs):
            self.fault(
                pair.line, f"{pair.key} must be an object with {', '.join(types)} (got {pair.node.kind})"
            )
            return None
        found: dict[str, object] = {}
        is_good = True
        for inner in pair.node.value:
            if inner.key not in types:
                message = f"{pair.key}: unknown key {inner.key!r}{did_you_mean(inner.key, types)}"
            elif inner.key in found:
                message = f"{pair.key}: key {inner.key!r} stands twice"
            elif type(inner.node.value) is not types[inner.key]:
                word = "a text" if types[inner.key] is str else "a whole number"
                message = f"{pair.key}: {inner.key} must be {word} (got {inner.node.kind})"
            else:
                found[inner.key] = inner.node.value
                continue
            self.fault(inner.line, message)
            is_good = False
        for key in required:
            if is_good and key not in found:
                self.fault(pair.line, f"{pair.key}: key {key!r} is missing")
                is_good = False
        return found if is_good else None

    def waiting(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        """wait, and sync, which signals first."""
        table = self.table(pair, {"ref": str, "mutex": str}, ("ref", "mutex"))
        if table is None:
            return []
        condition = self.context.object_of("condition", table["ref"], pair.line)
        lock = self.context.object_of("lock", table["mutex"], pair.line)
        first = [{"signal": condition}] if event == "sync" else []
        return [*first, {"await": {"condition": condition, "lock": lock}}]

    def barrier(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        """barrier: rt-app counts a party for every place where a thread names it."""
        name = self.text(pair)
        if name is None:
            return []
        own = self.context.object_of("barrier", name, pair.line)
        table = self.context.known["barrier", name]
        table["parties"] = table.get("parties", 0) + self.instances
        if not self.instances:
            self.fault(pair.line, f"barrier: rt-app does not count forked threads as parties of {name!r}")
            table["parties"] = 1
        return [{"barrier": own}]

    def timer(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        table = self.table(pair, {"ref": str, "period": int, "mode": str}, ("ref", "period"))
        if table is None:
            return []
        ref, period_us = table["ref"], table["period"]
        mode = table.get("mode", "relative")
        if mode not in ("relative", "absolute"):
            hint = did_you_mean(mode, ("relative", "absolute"))
            self.fault(pair.line, f"{pair.key}: unknown mode {mode!r}{hint}")
        if not 0 <= period_us <= US_MAX:
            self.fault(pair.line, f"{pair.key}: period must be from 0 to {US_MAX} us (got {period_us})")
            return []
        if not period_us:
            self.context.notes.append(f"timers with a period of 0 in {self.name}: no wait, as in rt-app")
            return [{"run": "0us"}]
        self.context.known.setdefault(("timer", ref), Lined({}, pair.line))
        if not ref.startswith("unique"):
            users = self.context.timers.setdefault(ref, {})
            users[self.name] = max(self.instances, 1)
        value: dict[str, object] = {"period": f"{period_us}us", "name": clean_name(ref)}
        # The mode is the timer's: one use that says absolute decides for all.
        self.timers.append(value)
        if mode == "absolute":
            self.absolute.add(str(value["name"]))
        return [{"timer": value}]

    def yielding(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        return [{"yield": True}]

    def forking(self, pair: Pair, event: str) -> list[dict[str, Any]]:
        name = self.text(pair)
        if name is None:
            return []
        if name not in self.context.task_names:
            hint = did_you_mean(name, self.context.task_names)
            self.fault(pair.line, f"{pair.key}: unknown task {name!r}{hint}")
            return []
        self.context.forks.setdefault(name, []).append((self.name, pair.line))
        return [{"spawn": fork_name(self.context, name, self.name)}]


_EVENT_READERS: dict[str, Callable[[_TaskReader, Pair, str], list[dict[str, Any]]]] = {
    "run": _TaskReader.timed,
    "runtime": _TaskReader.timed,
    "sleep": _TaskReader.timed,
    "mem": _TaskReader.memory,
    "iorun": _TaskReader.output,
    "lock": _TaskReader.locking,
    "unlock": _TaskReader.locking,
    "wait": _TaskReader.waiting,
    "signal": _TaskReader.signalling,
    "broad": _TaskReader.signalling,
    "sync": _TaskReader.waiting,
    "barrier": _TaskReader.barrier,
    "timer": _TaskReader.timer,
    "suspend": _TaskReader.suspending,
    "resume": _TaskReader.signalling,
    "yield": _TaskReader.yielding,
    "fork": _TaskReader.forking,
}
EVENTS = tuple(_EVENT_READERS)
#: The longer of two that begin alike comes first.
_EVENT = re.compile(f"({'|'.join(sorted(EVENTS, key=len, reverse=True))})(?:[^A-Za-z].*)?", re.DOTALL)
