# SPDX-License-Identifier: MIT
"""Look at all tasks of a workload together: can it run, and can it end?

Each check refuses what is certain to go wrong on every host: a lock that is
never released, a barrier that never fills, a child that nobody spawns. What
only may go wrong (two locks taken in opposite orders) is left to happen, since
a workload may exist to show it.

Must stay true: a check notes faults and goes on; none raises.
Read next: program/compiler.py, which relies on what is checked here.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from ..errors import did_you_mean
from ..toml_file import Source
from ..units import TIME_MAX_NS
from .model import SyncObject, Task
from .phases import Phase, walk

#: Limits of program.h.
SLOTS_MAX = 16
TASKS_MAX = 1_000_000
OPS_PER_TASK_MAX = 65_536
#: Instances that one `change` changes.
CHANGED_MAX = 64

#: An endless loop must contain one of these, or time would stand still in it.
_TAKES_TIME = ("run", "work", "sleep", "period", "read", "write", "recv", "barrier", "await", "timer")


def check_workload(
    source: Source,
    tasks: list[Task],
    objects: list[SyncObject],
    groups: list[str],
    *,
    horizon_ns: int,
    broken: Set[str] = frozenset(),
) -> None:
    """Check a workload as a whole, and fill in what follows from the rest."""
    for task in tasks:
        if task.name not in broken:
            wrong = _Faults(source, task)
            _check_flow(wrong, horizon_ns)
            _check_slots(wrong)
            _check_locks(wrong)
            _check_waits(wrong)
    if broken:
        return
    by_name = {task.name: task for task in tasks}
    _check_spawns(source, tasks, by_name)
    _check_total(source, tasks)
    for task in tasks:
        wrong = _Faults(source, task)
        _check_names(wrong, objects, groups)
        _check_changes(wrong, by_name)
    for item in objects:
        if item.kind == "barrier":
            _check_barrier(source, item, tasks)
        elif item.kind == "pipe":
            _check_pipe(source, item, tasks)
        elif item.kind == "condition":
            _check_condition(source, item, tasks)


@dataclass(frozen=True)
class _Faults:
    """Notes what is wrong with one task."""

    source: Source
    task: Task

    def key(self, key: str, message: str) -> None:
        """Of the whole task, at the line of a key; empty: of the task itself."""
        at = (*self.task.at, key) if key else self.task.at
        self.source.fault(at, f"task {self.task.name!r}", message)

    def phase(self, phase: Phase, message: str) -> None:
        """Of one of its phases."""
        self.source.fault(phase.at, f"task {self.task.name!r}, phase {phase.number}", message)


# ---- who starts whom, and how many there are ---------------------------------


def _check_spawns(source: Source, tasks: list[Task], by_name: dict[str, Task]) -> None:
    """Find the parent of every spawned class and count its instances."""
    per_parent: dict[str, int] = {}
    for task in tasks:
        wrong = _Faults(source, task)
        for phase, times in walk(task.phases):
            if phase.verb != "spawn":
                continue
            child = by_name.get(phase.name)
            if child is None:
                hint = did_you_mean(phase.name, by_name)
                wrong.phase(phase, f"spawn: unknown task {phase.name!r}{hint}")
            elif not child.arrival.is_spawned:
                wrong.phase(
                    phase, f'spawn: task {phase.name!r} arrives by itself; give it arrival = "spawned"'
                )
            elif child.parent not in ("", task.name):
                wrong.phase(
                    phase,
                    f"spawn: task {phase.name!r} is already spawned by "
                    f"{child.parent!r}; a task has one parent",
                )
            elif times is None:
                wrong.phase(
                    phase,
                    f"spawn: task {phase.name!r} would be spawned without "
                    "end; put it in a loop with a number of rounds",
                )
                child.parent = task.name
            else:
                child.parent = task.name
                per_parent[child.name] = per_parent.get(child.name, 0) + times
    for task in tasks:
        wrong = _Faults(source, task)
        if task.arrival.is_spawned and not task.parent:
            wrong.key("arrival", f"nobody spawns it; add {{spawn = {task.name!r}}} to a task")
        elif task.arrival.is_spawned:
            _count_spawned(wrong, by_name, per_parent)


def _count_spawned(wrong: _Faults, by_name: dict[str, Task], per_parent: dict[str, int]) -> None:
    """Multiply along the chain of parents."""
    total, line = 1, wrong.task
    seen = set()
    while line.arrival.is_spawned:
        if line.name in seen or not line.parent:
            if line.name == wrong.task.name:
                wrong.key("", "it spawns itself, so it can never start")
            return
        seen.add(line.name)
        total *= per_parent.get(line.name, 1)
        line = by_name[line.parent]
    total *= line.count
    if wrong.task.count not in (0, total):
        wrong.key("count", f"count is {wrong.task.count}, but {total} are spawned; leave count out")
    wrong.task.count = total


def _check_total(source: Source, tasks: list[Task]) -> None:
    total = sum(task.count for task in tasks)
    if total > TASKS_MAX:
        source.fault(("task",), "", f"{total} tasks in all; at most {TASKS_MAX} are possible")


# ---- one task by itself ------------------------------------------------------


def _check_flow(wrong: _Faults, horizon_ns: int) -> None:
    """Find endless loops, phases that are never reached, times that overflow."""
    _check_reached(wrong, wrong.task.phases, is_top=True)
    ends = True
    n_ops = 1
    for phase, times in walk(wrong.task.phases):
        n_ops += 2 if phase.verb == "loop" else 1
        if phase.verb == "loop" and not phase.rounds:
            ends = False
            if not any(_takes_time(inside) for inside, _ in walk(phase.body)):
                wrong.phase(
                    phase,
                    "loop: no time passes in this endless loop; "
                    "add a run, sleep or other phase that takes time",
                )
        value = phase.amount.constant if phase.amount else None
        if phase.verb in ("run", "sleep") and value and times and value * times > TIME_MAX_NS:
            wrong.phase(phase, f"{phase.verb}: {value} ns, {times} times, is more than {TIME_MAX_NS} ns")
    if wrong.task.is_burst_from_run and not any(phase.verb == "run" for phase, _ in walk(wrong.task.phases)):
        wrong.key("burst", 'burst: "run" takes the length of the first run, but there is none')
    if not ends and not horizon_ns:
        wrong.key("phases", "it never ends; give [workload] a horizon, or the loop a number of rounds")
    if n_ops > OPS_PER_TASK_MAX:
        wrong.key("phases", f"{n_ops} phases; at most {OPS_PER_TASK_MAX} are possible, so use loops")


def _takes_time(phase: Phase) -> bool:
    is_nothing = phase.amount is not None and phase.amount.constant == 0
    return phase.verb in _TAKES_TIME and not is_nothing


def _check_reached(wrong: _Faults, phases: tuple[Phase, ...], *, is_top: bool) -> None:
    for i, phase in enumerate(phases):
        stops = phase.verb == "exit" or (phase.verb == "loop" and not phase.rounds)
        if stops and i + 1 < len(phases):
            what = "exit" if phase.verb == "exit" else "an endless loop"
            wrong.phase(phases[i + 1], f"never reached: it follows {what}")
        if phase.verb == "exit" and not is_top:
            wrong.phase(phase, "exit: not inside a loop; end the loop instead")
        if phase.verb == "loop":
            _check_reached(wrong, phase.body, is_top=False)


def loop_depth(phases: tuple[Phase, ...]) -> int:
    """Deepest nesting of loops."""
    depths = [1 + loop_depth(phase.body) for phase in phases if phase.verb == "loop"]
    return max(depths, default=0)


def _check_slots(wrong: _Faults) -> None:
    """Count what needs a counter: nested loops, drawn values in loops, spawns."""
    depth = loop_depth(wrong.task.phases)
    tables, children, timers = 0, set(), set()
    for phase, times in walk(wrong.task.phases):
        if phase.verb == "spawn":
            children.add(phase.name)
        elif phase.verb == "timer":
            timers.add(phase.name)
        elif phase.amount and phase.amount.constant is None and times != 1:
            tables += 1
    total = depth + tables + len(children) + len(timers)
    if total > SLOTS_MAX:
        wrong.key(
            "phases",
            f"needs {total} counters, at most {SLOTS_MAX} are possible: loops nest {depth} deep, "
            f"{tables} drawn values stand in loops, {len(children)} tasks are spawned, "
            f"{len(timers)} timers are used",
        )


def _check_locks(wrong: _Faults) -> None:
    held: list[str] = []
    _follow_locks(wrong, wrong.task.phases, held)
    for name in held:
        wrong.key("phases", f"it ends while it holds lock {name!r}; add {{unlock = {name!r}}}")


def _follow_locks(wrong: _Faults, phases: tuple[Phase, ...], held: list[str]) -> None:
    """Keep `held` up to date along the phases."""
    for phase in phases:
        if phase.verb == "lock":
            if phase.name in held:
                wrong.phase(phase, f"lock: {phase.name!r} is held already; it would wait for itself")
            else:
                held.append(phase.name)
        elif phase.verb == "unlock":
            if phase.name in held:
                held.remove(phase.name)
            else:
                hint = did_you_mean(phase.name, held) if held else ""
                wrong.phase(phase, f"unlock: {phase.name!r} is not held here{hint}")
        elif phase.verb == "await" and phase.lock and phase.lock not in held:
            hint = did_you_mean(phase.lock, held) if held else ""
            wrong.phase(phase, f"await: lock {phase.lock!r} is not held here{hint}")
        elif phase.verb == "exit" and held:
            wrong.phase(phase, f"exit: lock {held[-1]!r} is still held")
            held.clear()
        elif phase.verb == "loop":
            before = list(held)
            _follow_locks(wrong, phase.body, held)
            if sorted(before) != sorted(held):
                changed = sorted(set(before) ^ set(held))
                wrong.phase(
                    phase,
                    f"loop: lock {changed[0]!r} is not in the same state "
                    "at the end of a round as at its start",
                )
                held[:] = before


def _check_waits(wrong: _Faults) -> None:
    if any(phase.verb == "spawn" for phase, _ in walk(wrong.task.phases)):
        _follow_waits(wrong, wrong.task.phases, 0)
        return
    for phase, _ in walk(wrong.task.phases):
        if phase.verb == "wait":
            wrong.phase(phase, "wait: this task spawns nothing")


def _follow_waits(wrong: _Faults, phases: tuple[Phase, ...], children: int) -> int:
    """Count the children that may still be waited for; return how many are left."""
    for phase in phases:
        if phase.verb == "spawn":
            children += 1
        elif phase.verb == "wait":
            number = phase.amount.constant if phase.amount else 0
            if number and number > children:
                wrong.phase(
                    phase,
                    f"wait: for {number} children, but only {children} are spawned and not yet waited for",
                )
            children = max(children - number, 0) if number else 0
        elif phase.verb == "loop":
            after = _follow_waits(wrong, phase.body, children)
            # Every later round gains or loses as much as the first one did.
            children = max(children + (after - children) * max(phase.rounds, 1), 0)
    return children


def _check_names(wrong: _Faults, objects: list[SyncObject], groups: list[str]) -> None:
    kind_of = {
        "lock": "lock",
        "unlock": "lock",
        "send": "pipe",
        "recv": "pipe",
        "barrier": "barrier",
        "await": "condition",
        "signal": "condition",
        "join": "group",
    }
    for phase, _ in walk(wrong.task.phases):
        kind = kind_of.get(phase.verb)
        if kind is None:
            continue
        locks = [item.name for item in objects if item.kind == "lock"]
        if phase.lock and phase.lock not in locks:
            hint = did_you_mean(phase.lock, locks) if locks else " (there is no [[lock]])"
            wrong.phase(phase, f"{phase.verb}: unknown lock {phase.lock!r}{hint}")
        names = groups if kind == "group" else [item.name for item in objects if item.kind == kind]
        if phase.name not in names:
            hint = did_you_mean(phase.name, names) if names else f" (there is no [[{kind}]])"
            wrong.phase(phase, f"{phase.verb}: unknown {kind} {phase.name!r}{hint}")


def _check_changes(wrong: _Faults, by_name: dict[str, Task]) -> None:
    """A task that another one changes is there; each of its instances is one op."""
    for phase, _ in walk(wrong.task.phases):
        if phase.verb != "change" or not phase.target:
            continue
        target = by_name.get(phase.target)
        if target is None:
            hint = did_you_mean(phase.target, by_name)
            wrong.phase(phase, f"change: unknown task {phase.target!r}{hint}")
        elif target.count > CHANGED_MAX:
            wrong.phase(
                phase,
                f"change: {target.count} tasks {phase.target!r} are too many: at most {CHANGED_MAX} at once",
            )


# ---- objects that several tasks share ----------------------------------------


def _check_barrier(source: Source, barrier: SyncObject, tasks: list[Task]) -> None:
    """A barrier must fill as often as it is entered."""
    place = f"barrier {barrier.name!r}"
    users: list[tuple[Task, int | None]] = []
    for task in tasks:
        rounds = [
            times
            for phase, times in walk(task.phases)
            if phase.verb == "barrier" and phase.name == barrier.name
        ]
        if rounds:
            users.append((task, None if None in rounds else sum(t or 0 for t in rounds)))
    instances = sum(task.count for task, _ in users)
    if not users:
        source.fault(barrier.at, place, "no task uses it")
        return
    barrier.param = barrier.param or instances
    if barrier.param > instances:
        source.fault(
            (*barrier.at, "parties"),
            place,
            f"{barrier.param} parties can never meet: {instances} tasks use it",
        )
        return
    finite = [(task.count, rounds) for task, rounds in users if rounds is not None]
    if len(finite) < len(users):
        return
    arrivals = sum(count * rounds for count, rounds in finite)
    uneven = barrier.param == instances and len({rounds for _, rounds in finite}) > 1
    if uneven or arrivals % barrier.param:
        source.fault(
            barrier.at,
            place,
            f"the last round never fills: {arrivals} arrivals in all, {barrier.param} parties",
        )


def _check_condition(source: Source, condition: SyncObject, tasks: list[Task]) -> None:
    """Who waits must be woken by somebody; a signal without effect is allowed."""
    place = f"condition {condition.name!r}"
    users = [
        (task.name, phase.verb, task.count)
        for task in tasks
        for phase, _ in walk(task.phases)
        if phase.verb in ("await", "signal") and phase.name == condition.name
    ]
    waiting = {name for name, verb, _ in users if verb == "await"}
    signalling = {name for name, verb, _ in users if verb == "signal"}
    if not users:
        source.fault(condition.at, place, "no task uses it")
    elif waiting and not signalling:
        source.fault(condition.at, place, "tasks wait for it, but none signals it")


def _check_pipe(source: Source, pipe: SyncObject, tasks: list[Task]) -> None:
    """What is received must be sent, and what is sent must fit or be received."""
    place = f"pipe {pipe.name!r}"
    total: dict[str, int | None] = {"send": 0, "recv": 0}
    used: dict[str, bool] = {"send": False, "recv": False}
    for task in tasks:
        for phase, times in walk(task.phases):
            if phase.verb not in total or phase.name != pipe.name:
                continue
            used[phase.verb] = True
            value = phase.amount.constant if phase.amount else None
            before = total[phase.verb]
            if value is None or times is None or before is None:
                total[phase.verb] = None
            else:
                total[phase.verb] = before + value * times * task.count
    sent, received = total["send"], total["recv"]
    if not used["send"] and not used["recv"]:
        source.fault(pipe.at, place, "no task uses it")
    elif not used["send"]:
        source.fault(pipe.at, place, "tasks receive from it, but none sends")
    elif not used["recv"] and (sent is None or sent > pipe.param):
        source.fault(pipe.at, place, f"tasks send more than its {pipe.param} bytes, but none receives")
    elif sent is not None and received is not None and received > sent:
        source.fault(pipe.at, place, f"{received} bytes are to be received, but only {sent} sent")
    elif sent is not None and received is not None and sent - received > pipe.param:
        source.fault(
            pipe.at,
            place,
            f"{sent} bytes are sent, {received} received: the rest does "
            f"not fit its {pipe.param} bytes, so a sender would wait for ever",
        )
