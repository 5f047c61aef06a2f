# SPDX-License-Identifier: MIT
"""Does Linux's fair class decide as we think? `.venv/bin/python bench/fair_decisions.py RUN...`.

Walks recordings of SCHED_OTHER on one CPU (folders of runs) with the rules of
Linux 6.18, each decision from the state in which Linux was: how long everybody had
run until then is taken from the recording, not foreseen. So one decision that
differs does not make all later ones differ, as it does in a replay, and what is
left is where the rules are wrong, or microseconds decide.

It knows equal weights and slices only. Of a replay's records it says whether the policy
decides by these rules: policies/eevdf.bpf.c does in 97 to 99 of 100 wake-ups.

Read next: policies/eevdf.bpf.c; replay_validation.py, which prints the sum.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from schedlab.records.file import Kind, Stop, read_records

TICK_NS = 4_000_000
#: Linux's on two CPUs.
SLICE_NS = 1_400_000
#: A task that is woken has the CPU this soon if it preempts; a switch to it takes no longer.
SOON_NS = 60_000
#: Between two tasks of ours, a gap of this length was for another program.
GAP_NS = 30_000


@dataclass
class Entity:
    """A task as Linux sees it; virtual times in ns, all weights 1.

    Attributes
    ----------
    v, deadline : float
        Where it is, and the end of its slice.
    lag : float
        While it is not queued: how far it was behind the mean.
    """

    v: float = 0.0
    deadline: float = 0.0
    lag: float = 0.0


class FairQueue:
    """The queue of one CPU.

    Parameters
    ----------
    slice_ns : int
        Slice of every task.
    """

    def __init__(self, slice_ns: int):
        self.slice_ns = slice_ns
        self.entities: dict[int, Entity] = {}
        self.waiting: set[int] = set()
        #: They sleep, but owe, and stay in the queue until they would be chosen.
        self.delayed: set[int] = set()
        self.current: int | None = None
        self.protected_v = 0.0
        self.charged_ns = 0
        self.idle_v = 0.0

    def members(self) -> list[int]:
        """All that count in the mean."""
        return [*self.waiting, *self.delayed, *([] if self.current is None else [self.current])]

    def mean(self) -> float:
        """Where everybody would be who had had just his share."""
        members = self.members()
        return sum(self.entities[each].v for each in members) / len(members) if members else self.idle_v

    def charge(self, now_ns: int) -> bool:
        """Do the accounts of who runs; whether all are asked again."""
        if self.current is None or now_ns <= self.charged_ns:
            return False
        me = self.entities[self.current]
        me.v += now_ns - self.charged_ns
        self.charged_ns = now_ns
        is_used = me.v >= me.deadline
        if is_used:
            me.deadline = me.v + self.slice_ns
        return len(self.members()) > 1 and (is_used or me.v >= self.protected_v)

    def best(self) -> int:
        """Who is first: delayed ones, and who runs, included."""
        members = self.members()
        mean = self.mean() + 1
        eligible = [each for each in members if self.entities[each].v <= mean]
        if self.current in eligible and self.protected_v > self.entities[self.current].v:
            return self.current
        # Who runs needs an earlier deadline, not an equal one.
        return min(eligible, key=lambda each: (self.entities[each].deadline, each == self.current))

    def choose(self) -> int | None:
        """Whom Linux would give the CPU; delayed ones that come before leave the queue."""
        while self.members():
            found = self.best()
            if found not in self.delayed:
                return found
            self.delayed.discard(found)
            self.entities[found].lag = 0.0
            self.idle_v = max(self.idle_v, self.entities[found].v)
        return None

    def wake(self, pid: int, now_ns: int, *, is_new: bool) -> bool:
        """Queue a task that has come; whether who runs has to make way, or is asked again."""
        others = len(self.members())
        was_delayed = pid in self.delayed
        # Linux does the accounts of who runs only after a delayed task has its place (requeue_delayed_entity()).
        is_asked_again = not was_delayed and self.charge(now_ns) and others > 1
        me = self.entities.setdefault(pid, Entity())
        owes = was_delayed and self.mean() <= me.v
        self.delayed.discard(pid)
        if not owes:
            count = len(self.members())
            lag = 0.0 if was_delayed or not count else me.lag * (count + 1) / count
            me.v = self.mean() - lag
            me.deadline = me.v + self.slice_ns / (2 if is_new else 1)
        self.waiting.add(pid)
        if was_delayed:
            is_asked_again = self.charge(now_ns) and others > 1
        return self.current is None or is_asked_again or self.best() == pid

    def run(self, pid: int, now_ns: int) -> None:
        """A task gets the CPU, foreseen or not."""
        self.waiting.discard(pid)
        self.current, self.charged_ns = pid, now_ns
        self.protected_v = self.entities.setdefault(pid, Entity()).deadline

    def stop(self, pid: int, *, why: Stop) -> None:
        """The task that ran does not any more; it is charged."""
        mean, me = self.mean(), self.entities[pid]
        self.current = None
        if why != Stop.BLOCKED and why != Stop.EXITED:
            self.waiting.add(pid)
            return
        most = self.slice_ns + TICK_NS
        me.lag = min(max(mean - me.v, -most), most)
        self.idle_v = mean
        if why == Stop.BLOCKED and me.lag < 0:
            self.delayed.add(pid)


def tick_phase_ns(events: list[tuple]) -> int:
    """When, in each period, ticks come: where most preemptions are that no wake-up explains."""
    phases, woken_ns = [], -SOON_NS
    for t_ns, _, _, kind, flags, _ in events:
        if kind in (Kind.WAKE, Kind.ARRIVE):
            woken_ns = t_ns
        elif kind == Kind.STOP and flags == Stop.PREEMPTED and t_ns - woken_ns >= SOON_NS:
            phases.append(t_ns % TICK_NS)
    return max(
        range(0, TICK_NS, 10_000), key=lambda at: sum((phase - at) % TICK_NS < SOON_NS for phase in phases)
    )


class _Walk:
    """One recording, event by event."""

    def __init__(self, events: list[tuple], slice_ns: int):
        self.events, self.queue, self.found = events, FairQueue(slice_ns), Counter()
        self.tick_ns = self.phase_ns = tick_phase_ns(events)
        self.woken_ns = -SOON_NS

    def walk(self) -> Counter:
        for i, (t_ns, task, _, kind, flags, arg) in enumerate(self.events):
            while self.tick_ns < t_ns:
                if self.queue.charge(self.tick_ns):
                    self.queue.choose()
                self.tick_ns += TICK_NS
            if kind in (Kind.ARRIVE, Kind.WAKE) and task not in self.queue.waiting:
                self._wake(i, t_ns, task, is_new=kind == Kind.ARRIVE and bool(arg))
            elif kind == Kind.RUN:
                self.queue.run(task, t_ns)
            elif kind == Kind.STOP and self.queue.current == task:
                self._stop(i, t_ns, task, Stop(flags))
        return self.found

    def _wake(self, i: int, t_ns: int, task: int, *, is_new: bool) -> None:
        beside = self.queue.current is not None
        foreseen = self.queue.wake(task, t_ns, is_new=is_new)
        self.woken_ns = t_ns
        if not beside:
            return
        real = False
        for later_ns, _, _, kind, flags, _ in self.events[i + 1 : i + 8]:
            if later_ns > t_ns + SOON_NS or kind in (Kind.WAKE, Kind.ARRIVE):
                break
            if kind == Kind.STOP:
                real = flags == Stop.PREEMPTED
                break
        self.found["wake-ups"] += 1
        self.found["wake-ups as foreseen"] += foreseen == real

    def _stop(self, i: int, t_ns: int, task: int, why: Stop) -> None:
        self.queue.charge(t_ns)
        nexts = [event for event in self.events[i + 1 : i + 6] if event[3] == Kind.RUN]
        was_soon = bool(nexts) and nexts[0][0] - t_ns <= GAP_NS
        if why == Stop.PREEMPTED:
            self.found["preemptions"] += 1
            self.found[f"preemptions {self._cause(t_ns, was_soon)}"] += 1
        self.queue.stop(task, why=why)
        if was_soon and self.queue.waiting:
            self.found["choices"] += 1
            self.found["choices as foreseen"] += self.queue.choose() == nexts[0][1]

    def _cause(self, t_ns: int, was_soon: bool) -> str:
        if not was_soon:
            return "for other programs"
        if t_ns - self.woken_ns < SOON_NS:
            return "at wake-ups"
        return "at ticks" if (t_ns - self.phase_ns) % TICK_NS < SOON_NS else "at neither"


def decisions(folder: Path, *, slice_ns: int) -> Counter:
    """Count the decisions of a recording, and those that the rules foresee.

    Parameters
    ----------
    folder : pathlib.Path
        Of a run under SCHED_OTHER on one CPU, with equal weights.
    slice_ns : int
        Of this machine's Linux.

    Returns
    -------
    collections.Counter
        Wake-ups beside a running task, choices of the next one, preemptions by cause.
    """
    return _Walk(read_records(Path(folder) / "records.slr").events.tolist(), slice_ns).walk()


def sentence(found: Counter) -> str:
    """What was counted, for people."""
    part = [
        f"{found[f'preemptions {cause}'] / max(found['preemptions'], 1):.0%} {cause}"
        for cause in ("at ticks", "at wake-ups", "for other programs", "at neither")
    ]
    return (
        f"of {found['wake-ups']} wake-ups beside a running task, who then has the CPU is as the rules say in "
        f"{found['wake-ups as foreseen'] / max(found['wake-ups'], 1):.0%}; of {found['choices']} choices of the next "
        f"task, {found['choices as foreseen'] / max(found['choices'], 1):.0%} are; of {found['preemptions']} "
        f"preemptions, {', '.join(part)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold recorded decisions of SCHED_OTHER against its rules.")
    parser.add_argument("runs", nargs="+", type=Path, help="folders of recordings on one CPU")
    parser.add_argument("--slice-ns", type=int, default=SLICE_NS, help="se.slice in /proc/self/sched")
    options = parser.parse_args()
    total = Counter()
    for folder in options.runs:
        total += decisions(folder, slice_ns=options.slice_ns)
    print(sentence(total))
    return 0


if __name__ == "__main__":
    sys.exit(main())
