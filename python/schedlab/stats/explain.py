# SPDX-License-Identifier: MIT
"""Say in sentences why a task waited for a CPU, or what it was blocked on.

A blocked task is followed to the task that woke it, and what that one did meanwhile:
where it waited for a CPU itself, that wait is explained next.

Must stay true: each number is one of metrics/cause.py; a cause is what most CPU time went to.
Read next: metrics/cause.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..metrics.cause import (
    CAME_LATER,
    IDLE,
    OVERHEAD,
    RAN_ALREADY,
    RELATIONS,
    WAITED_ALREADY,
    Part,
    Stretch,
    Wait,
    explain_wait,
    longest_wait,
    states_ns,
)
from ..metrics.consistency import Expectations, check
from ..metrics.timeline import Timeline
from ..program.file import Program
from ..records.file import Records
from .sentences import show_time

#: So many tasks that woke one another are followed, and tasks named, at the most.
STEPS_MAX, NAMES_MAX = 5, 6
_WHY = {
    "arrived": "it arrived",
    "woken": "it was woken",
    "preempted": "it was preempted",
    "yielded": "it yielded",
}
_SAID = {
    RAN_ALREADY: "ran already, and went on",
    WAITED_ALREADY: "waited already",
    CAME_LATER: "came later, and ran first",
    IDLE: "idle",
    OVERHEAD: "scheduler, ticks, steal time",
}
_STALLED = re.compile(r"\[(\d+)\] failed to run for ")
_CAUSE = {
    RAN_ALREADY: "what ran already kept the CPU, without being preempted: {share} of the CPU time.",
    WAITED_ALREADY: "the tasks that waited already had their turns first: {share} of the CPU time, {turn} a turn.",
    CAME_LATER: "the policy preferred tasks that became runnable later: {share} of the CPU time, {n} turns.",
    IDLE: "{cpus} idle for {idle} beside it. The policy kicked no idle CPU, keeps the task in a queue at which that "
    "CPU does not look, holds it back (a cap), or has lost it.",
    OVERHEAD: "the scheduler itself took {share} of the CPU time.",
}


@dataclass(frozen=True)
class Explanation:
    """What a task did in one stretch, and why; `because` explains what it waited for."""

    stretch: Stretch  #: What is explained.
    wait: Wait | None = None  #: Where it waited for a CPU: what its CPUs did.
    #: Where another task ended a blocked stretch: how long that one ran, waited, was blocked.
    waker: dict[str, int] | None = None
    because: Explanation | None = field(default=None)  #: The next step: what kept that task.

    def as_json(self) -> dict[str, Any]:
        """The same as JSON has it; `main_cause` and shares besides."""
        wait = None if self.wait is None else asdict(self.wait) | {"main_cause": self.wait.main_cause}
        stretch = {key: value for key, value in asdict(self.stretch).items() if key != "at"}
        because = None if self.because is None else self.because.as_json()
        return stretch | {"wait": wait, "waker": self.waker, "because": because}


def explain(
    timeline: Timeline,
    stretch: Stretch,
    cpus_of: Callable[[int], Sequence[int] | None],
    n_steps: int = STEPS_MAX,
) -> Explanation:
    """Explain a stretch, and what it waited for, step by step."""
    if stretch.state == "waited":
        return Explanation(stretch, wait=explain_wait(timeline, stretch, cpus_of(stretch.task)))
    if stretch.state == "ran" or not stretch.by:
        return Explanation(stretch)
    waker = states_ns(timeline, stretch.by, stretch.begin_ns, stretch.end_ns)
    because = None
    if n_steps > 1 and waker["ran"] < max(waker["waited"], waker["blocked"]):
        state = "waited" if waker["waited"] >= waker["blocked"] else "blocked"
        longest = longest_wait(timeline, stretch.by, stretch.begin_ns, stretch.end_ns, state=state)
        if longest is not None:
            because = explain(timeline, longest, cpus_of, n_steps - 1)
    return Explanation(stretch, waker=waker, because=because)


def stalled_task(error: str) -> int | None:
    """The task that the watchdog named; None: it did not.

    >>> stalled_task("runnable task stall: a[3] failed to run for 44.976s"), stalled_task("")
    (3, None)
    """
    found = _STALLED.search(error)
    return int(found[1]) if found else None


def longest_wait_as_lines(
    records: Records, program: Program | None, error: str = ""
) -> tuple[Stretch | None, list[str]]:
    """The longest wait of the task whose stall has ended the run, or else of all, for a CPU, and what is printed of it; none where records contradict themselves."""
    timeline = Timeline(records)
    is_sound = check(timeline, Expectations(is_cut=True)) == "ok"
    stretch = longest_wait(timeline, stalled_task(error)) if is_sound else None
    if stretch is None:
        return None, []
    affinity = dict(enumerate(program.affinity, 1)) if program else {}
    return stretch, as_lines(explain(timeline, stretch, affinity.get), program.names if program else {})


def as_lines(found: Explanation, names: Mapping[int, str]) -> list[str]:
    """What `schedlab explain` prints of it; one sentence or row of a table per line."""

    def who(task: int) -> str:
        return f"{names.get(task, 'task')}[{task}]"

    lines: list[str] = []
    step: Explanation | None = found
    while step is not None:
        lines += _step_lines(step, who)
        step = step.because
    return lines


def _step_lines(found: Explanation, who: Callable[[int], str]) -> list[str]:
    stretch = found.stretch
    begin, end, length = map(show_time, (stretch.begin_ns, stretch.end_ns, stretch.end_ns - stretch.begin_ns))
    when = f"for {length}, from {begin} to {end}"
    if found.wait is not None:
        return _wait_lines(found.wait, when, who)
    if stretch.state == "ran":
        return [f"{who(stretch.task)} ran {when}."]
    if found.waker is None:
        return [f"{who(stretch.task)} was blocked {when}, until a timer, a device or the end of the run."]
    had = found.waker
    return [
        f"{who(stretch.task)} was blocked {when}, until {who(stretch.by)} woke it. Meanwhile that one ran "
        f"{show_time(had['ran'])}, waited {show_time(had['waited'])} for a CPU and was blocked "
        f"{show_time(had['blocked'])}."
    ]


def _wait_lines(wait: Wait, when: str, who: Callable[[int], str]) -> list[str]:
    by = "" if wait.why != "woken" else (f" by {who(wait.by)}" if wait.by else " by a timer or a device")
    lines = [f"{who(wait.task)} waited {when}: {_WHY[wait.why]}{by}."]
    ran = [part.task for part in wait.parts if part.relation == RAN_ALREADY]
    then = f"{_list(wait.queue, who)} waited already" if wait.queue else "none waited"
    lines.append(f"  Then {then}{f', and {_list(ran, who)} ran' if ran else ''}.")
    lines.append(f"  Cause: {_cause(wait)}")
    lines += ["", *(f"    {row}" for row in _table(wait, who)), ""]
    if wait.cpu < 0:
        lines.append("  It has not run any more: the records end.")
    elif wait.ended_by == "idle":
        lines.append(f"  It ran on CPU {wait.cpu}, which was idle.")
    else:
        left = {"preempted": "was preempted", "yielded": "yielded", "blocked": "blocked", "exited": "ended"}
        lines.append(f"  It ran on CPU {wait.cpu} when {who(wait.before)} {left[wait.ended_by]} there.")
    return lines


def _cause(wait: Wait) -> str:
    main = wait.main_cause
    ns = wait.total_ns(main)
    n = sum(part.n_turns for part in wait.parts if part.relation == main)
    # Those that make the wait needless, or all that were idle.
    idle = dict([each for each in wait.idle_ns if 2 * each[1] >= wait.ns] or wait.idle_ns)
    return _CAUSE[main].format(
        share=f"{100 * ns / wait.capacity_ns:.0f} %",
        idle=show_time(sum(idle.values())) + (" in all" if len(idle) > 1 else ""),
        n=n,
        turn=show_time(ns / n) if n else "0",
        cpus=f"CPU {next(iter(idle))} was" if len(idle) == 1 else f"CPUs {', '.join(map(str, idle))} were",
    )


def _list(tasks: Sequence[int], who: Callable[[int], str]) -> str:
    n_shown = len(tasks) if len(tasks) <= NAMES_MAX + 1 else NAMES_MAX
    shown = [who(task) for task in tasks[:n_shown]]
    if n_shown < len(tasks):
        shown.append(f"{len(tasks) - n_shown} more")
    return " and ".join([*([", ".join(shown[:-1])] if shown[1:] else []), shown[-1]])


def _table(wait: Wait, who: Callable[[int], str]) -> list[str]:
    """Where the CPU time of the wait went, by relation and task."""
    on = f"CPU {wait.cpus[0]}" if len(wait.cpus) == 1 else f"{len(wait.cpus)} CPUs"
    rows = [(f"{on}, {show_time(wait.capacity_ns)} of CPU time", "time", "share", "turns")]

    def add(text: str, ns: int, n_turns: int | None) -> None:
        rows.append(
            (text, show_time(ns), f"{100 * ns / wait.capacity_ns:.0f} %", f"{n_turns}" if n_turns else "")
        )

    for relation in RELATIONS:
        parts = [part for part in wait.parts if part.relation == relation]
        if parts:
            add(_SAID[relation], wait.total_ns(relation), sum(part.n_turns for part in parts))
            _add_parts(add, parts, who)
    for what in (IDLE, OVERHEAD):
        if ns := wait.total_ns(what):
            add(_SAID[what], ns, None)
    width = [max(len(row[i]) for row in rows) for i in range(4)]
    return [
        f"{row[0]:<{width[0]}}  " + "  ".join(f"{row[i]:>{width[i]}}" for i in (1, 2, 3)).rstrip()
        for row in rows
    ]


def _add_parts(
    add: Callable[[str, int, int], None], parts: Sequence[Part], who: Callable[[int], str]
) -> None:
    n_shown = len(parts) if len(parts) <= NAMES_MAX + 1 else NAMES_MAX
    for part in parts[:n_shown]:
        add(f"  {who(part.task)}", part.ns, part.n_turns)
    if rest := parts[n_shown:]:
        add(f"  {len(rest)} more", sum(part.ns for part in rest), sum(part.n_turns for part in rest))
