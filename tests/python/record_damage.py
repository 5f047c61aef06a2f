# SPDX-License-Identifier: MIT
"""Kinds of damage to the records of a run, each as small as it can be and lawful otherwise.

Where an event is told as another, what it entails is told with it: a block that is told
as a preemption loses its wake-up, a changed time moves what is bound to it. So a kind
is seen only by what it is, and not by what it leaves lying about.

Read next: test_consistency_damage.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from schedlab.records.file import Kind, Overhead, Stop


@dataclass
class Run:
    """Records as a list of dicts, in file order, with what is needed to choose from them."""

    events: list[dict]
    n_cpus: int
    end_ns: int
    n_tasks: int
    tick_ns: int

    def rows(self, kind: Kind, *flags: Stop) -> list[int]:
        """Rows of one kind, of some flags."""
        return [
            i for i, e in enumerate(self.events) if e["kind"] == kind and (not flags or e["flags"] in flags)
        ]

    def next_of(self, row: int, *kinds: Kind) -> int | None:
        """The next row of the same task that is one of some kinds."""
        task = self.events[row]["task"]
        for i in range(row + 1, len(self.events)):
            if self.events[i]["task"] == task and self.events[i]["kind"] in kinds:
                return i
        return None

    def last_of(self, row: int, *kinds: Kind) -> int | None:
        """The row before of the same task that is one of some kinds."""
        task = self.events[row]["task"]
        for i in range(row - 1, -1, -1):
            if self.events[i]["task"] == task and self.events[i]["kind"] in kinds:
                return i
        return None

    def occupied(self, cpu: int, t_ns: int) -> bool:
        """Whether a task runs on a CPU at a time."""
        is_busy = False
        for e in self.events:
            if e["t_ns"] > t_ns:
                break
            if e["cpu"] == cpu and e["kind"] in (Kind.RUN, Kind.STOP):
                is_busy = e["kind"] == Kind.RUN
        return is_busy

    def sort(self) -> None:
        """Put the events in order of time again; equal ones stay as they are."""
        self.events.sort(key=lambda e: e["t_ns"])


STATE = (Kind.ARRIVE, Kind.WAKE, Kind.RUN, Kind.STOP)
KINDS = {}


def damage(function):
    """Enter a kind of damage; it returns False where the run has no place for it."""
    KINDS[function.__name__.replace("_", " ")] = function
    return function


def event(t_ns, task, cpu, kind, flags=0, arg=0) -> dict:
    return {"t_ns": t_ns, "task": task, "cpu": cpu, "kind": kind, "flags": flags, "arg": arg}


def choose(rng, rows):
    """One of some rows, None of none."""
    rows = [row for row in rows if row is not None]
    return None if not rows else rows[int(rng.integers(len(rows)))]


# ---- one event, changed by itself -------------------------------------------------


def of(kind: Kind, *flags, where=lambda e: True):
    """Rows of one kind, of some flags, whose event is one of these."""
    return lambda run: [row for row in run.rows(kind, *flags) if where(run.events[row])]


def one(name: str, rows, change) -> None:
    """Enter a kind that changes one of some rows."""

    def changed(run: Run, rng) -> bool:
        row = choose(rng, rows(run))
        if row is not None:
            change(run, row, rng)
        return row is not None

    KINDS[name] = changed


def drop(run: Run, row: int, rng) -> None:
    del run.events[row]


def double(run: Run, row: int, rng) -> None:
    run.events.insert(row, dict(run.events[row]))


def lengthen(run: Run, row: int, rng) -> None:
    run.events[row]["arg"] += int(rng.integers(1, 1000))


def to_another_task(run: Run, row: int, rng) -> None:
    run.events[row]["task"] = run.events[row]["task"] % run.n_tasks + 1


def to_another_cpu(key: str):
    def move(run: Run, row: int, rng) -> None:
        run.events[row][key] = (run.events[row][key] + 1) % run.n_cpus

    return move


def by_another_task(*not_key: str):
    """The argument is another pid, and none of those that the event has under some keys."""

    def exchange(run: Run, row: int, rng) -> None:
        e = run.events[row]
        others = [pid for pid in range(1, run.n_tasks + 1) if pid not in [e[key] for key in not_key]]
        e["arg"] = choose(rng, others)

    return exchange


def put(key: str, value):
    def change(run: Run, row: int, rng) -> None:
        run.events[row][key] = value

    return change


def of_several_cpus(rows):
    return lambda run: rows(run) if run.n_cpus > 1 else []


# ---- one event told as another -------------------------------------------------


def told_as(run: Run, rng, why: Stop, other: Stop) -> bool:
    """A STOP of one kind told as one of another, with or without the wake-up that belongs to it."""
    rows = [r for r in run.rows(Kind.STOP, why) if run.next_of(r, *STATE) is not None]
    row = choose(rng, rows)
    if row is None:
        return False
    following = run.next_of(row, *STATE)
    run.events[row]["flags"] = other
    if why == Stop.BLOCKED:
        del run.events[following]
    elif other == Stop.BLOCKED:
        e = run.events[following]
        run.events.insert(following, event(e["t_ns"], e["task"], e["cpu"], Kind.WAKE))
    return True


_STOPS = {Stop.BLOCKED: "block", Stop.PREEMPTED: "preemption", Stop.YIELDED: "yield"}
for _why, _word in _STOPS.items():
    for _other, _other_word in _STOPS.items():
        if _why != _other:
            KINDS[f"a {_word} told as a {_other_word}"] = partial(told_as, why=_why, other=_other)


def end_at(run: Run, row: int, rng) -> None:
    run.events[row]["flags"] = Stop.EXITED
    task = run.events[row]["task"]
    run.events[row + 1 :] = [e for e in run.events[row + 1 :] if e["task"] != task]


def wake_at_once(run: Run, row: int, rng) -> None:
    """The wait stays as long, but is one of a task that woke."""
    e = run.events[row]
    e["flags"] = Stop.BLOCKED
    run.events.insert(row + 1, event(e["t_ns"], e["task"], e["cpu"], Kind.WAKE))


one("a block told as an end", of(Kind.STOP, Stop.BLOCKED), end_at)
one(
    "a wait told as a block that ends with it",
    lambda run: [r for r in run.rows(Kind.STOP, Stop.PREEMPTED) if run.next_of(r, Kind.RUN) is not None],
    wake_at_once,
)


# ---- wake-ups and arrivals ------------------------------------------------------


def moved_wake(run: Run, rng, *, earlier: bool, waker) -> bool:
    """A WAKE at another time between the block and the run that follows it."""
    rows = [r for r in run.rows(Kind.WAKE) if waker(run.events[r]["arg"])]
    rng.shuffle(rows)
    for row in rows:
        before, after = run.last_of(row, Kind.STOP), run.next_of(row, Kind.RUN)
        if before is None or after is None:
            continue
        t_ns = run.events[row]["t_ns"]
        room = t_ns - run.events[before]["t_ns"] if earlier else run.events[after]["t_ns"] - t_ns
        if room < 2:
            continue
        wake = run.events.pop(row)
        # Behind its block, and before its run, whatever has the same time.
        shift = int(rng.integers(1, room))
        wake["t_ns"] = t_ns - shift if earlier else t_ns + shift
        place = next((i for i, e in enumerate(run.events) if e["t_ns"] > wake["t_ns"]), len(run.events))
        run.events.insert(place, wake)
        return True
    return False


for _is_task, _whose in ((False, "timers"), (True, "tasks")):
    for _earlier, _when in ((True, "earlier"), (False, "later")):
        KINDS[f"a {_whose} wake up {_when}"] = partial(
            moved_wake, earlier=_earlier, waker=lambda pid, is_task=_is_task: (pid != 0) == is_task
        )


def arrive_later(run: Run, row: int, rng) -> None:
    late = run.events[run.next_of(row, Kind.RUN)]["t_ns"]
    arrive = run.events.pop(row)
    arrive["t_ns"] += int(rng.integers(1, late - arrive["t_ns"]))
    insert_at(run, arrive["t_ns"], arrive)


def waits_at_first(rows):
    """Those of some arrivals whose task does not run at once."""

    def chosen(run: Run) -> list[int]:
        return [
            row
            for row in rows(run)
            if (run_at := run.next_of(row, Kind.RUN))
            and run.events[run_at]["t_ns"] > run.events[row]["t_ns"] + 1
        ]

    return chosen


by_task, by_none = (lambda e: e["arg"] != 0), (lambda e: e["arg"] == 0)
one("a wake up by another task", of(Kind.WAKE, where=by_task), by_another_task("arg"))
one("a timers wake up told as a tasks", of(Kind.WAKE, where=by_none), by_another_task())
one("an arrival later", waits_at_first(of(Kind.ARRIVE, where=by_none)), arrive_later)
one("a childs arrival later", waits_at_first(of(Kind.ARRIVE, where=by_task)), arrive_later)
one("a child of another parent", of(Kind.ARRIVE, where=by_task), by_another_task("arg"))
one("a root with a parent", of(Kind.ARRIVE, where=by_none), by_another_task("task"))


def idle_moment(run: Run, rng) -> tuple[int, int] | None:
    """A CPU and a time at which no task runs there."""
    for _ in range(50):
        t_ns, cpu = int(rng.integers(1, run.end_ns)), int(rng.integers(run.n_cpus))
        if not run.occupied(cpu, t_ns):
            return cpu, t_ns
    return None


def insert_at(run: Run, t_ns: int, *events: dict) -> None:
    place = next((i for i, e in enumerate(run.events) if e["t_ns"] > t_ns), len(run.events))
    run.events[place:place] = events


@damage
def an_arrival_that_was_not_planned(run, rng):
    """A task that the program does not have arrives, and ends without having done anything."""
    if not (moment := idle_moment(run, rng)):
        return False
    cpu, t_ns = moment
    pid = run.n_tasks + int(rng.integers(1, 5))
    insert_at(
        run,
        t_ns,
        event(t_ns, pid, cpu, Kind.ARRIVE),
        event(t_ns, pid, cpu, Kind.RUN),
        event(t_ns, pid, cpu, Kind.STOP, Stop.EXITED, 0),
    )
    return True


@damage
def a_task_that_ends_as_it_arrives(run, rng):
    """A task of the program is told to have ended at its arrival; all else of it is gone."""
    rows = [r for r in run.rows(Kind.ARRIVE) if not run.occupied(run.events[r]["cpu"], run.events[r]["t_ns"])]
    row = choose(rng, rows)
    if row is None:
        return False
    e = run.events[row]
    run.events[row + 1 :] = [o for o in run.events[row + 1 :] if o["task"] != e["task"]]
    run.events[row + 1 : row + 1] = [
        event(e["t_ns"], e["task"], e["cpu"], Kind.RUN),
        event(e["t_ns"], e["task"], e["cpu"], Kind.STOP, Stop.EXITED, 0),
    ]
    return True


@damage
def a_task_that_is_gone_altogether(run, rng):
    pid = int(rng.integers(1, run.n_tasks + 1))
    left = [e for e in run.events if e["task"] != pid]
    if len(left) == len(run.events):
        return False
    run.events[:] = left
    return True


# ---- runs -------------------------------------------------------------------------


def zero_run(run: Run, rng, why: Stop, after) -> bool:
    """A run of no length before one that a task begins, on a CPU that is idle then."""
    rows = []
    for row in run.rows(Kind.RUN):
        before = run.last_of(row, *STATE)
        if before is not None and after(run.events[before]) and run.events[row]["t_ns"] % run.tick_ns:
            rows.append(row)
    row = choose(rng, rows)
    if row is None:
        return False
    e = run.events[row]
    new = [
        event(e["t_ns"], e["task"], e["cpu"], Kind.RUN),
        event(e["t_ns"], e["task"], e["cpu"], Kind.STOP, why, 0),
    ]
    if why == Stop.BLOCKED:
        new.append(event(e["t_ns"], e["task"], e["cpu"], Kind.WAKE))
    run.events[row:row] = new
    return True


for _why, _word in ((Stop.BLOCKED, "blocks"), (Stop.YIELDED, "yields"), (Stop.PREEMPTED, "is preempted")):
    KINDS[f"a zero length run that {_word} after a wake up"] = partial(
        zero_run, why=_why, after=lambda e: e["kind"] == Kind.WAKE
    )


def cut_run(run: Run, rng, why: Stop) -> bool:
    rows = [r for r in run.rows(Kind.STOP) if run.events[r]["arg"] > 2]
    row = choose(rng, rows)
    if row is None:
        return False
    e, begin = run.events[row], run.last_of(row, Kind.RUN)
    if any(o["kind"] == Kind.OVERHEAD and o["cpu"] == e["cpu"] for o in run.events[begin:row]):
        return False
    t0 = run.events[begin]["t_ns"]
    cut = int(rng.integers(1, e["arg"]))
    e["arg"] -= cut
    new = [event(t0 + cut, e["task"], e["cpu"], Kind.STOP, why, cut)]
    if why == Stop.BLOCKED:
        new.append(event(t0 + cut, e["task"], e["cpu"], Kind.WAKE))
    new.append(event(t0 + cut, e["task"], e["cpu"], Kind.RUN))
    place = next(i for i, o in enumerate(run.events) if (i > begin and o["t_ns"] > t0 + cut) or i == row)
    run.events[place:place] = new
    return True


for _why, _word in _STOPS.items():
    KINDS[f"a run cut in two by a {_word}"] = partial(cut_run, why=_why)


@damage
def cpu_time_given_to_the_next_task(run, rng):
    """A STOP and the RUN of another task that follows at once are both a little later."""
    for row in rng.permutation(run.rows(Kind.STOP)):
        e = run.events[row]
        if e["flags"] not in (Stop.PREEMPTED, Stop.YIELDED, Stop.BLOCKED) or row + 1 >= len(run.events):
            continue
        later = [
            i
            for i in range(row + 1, len(run.events))
            if run.events[i]["cpu"] == e["cpu"]
            and run.events[i]["kind"] in (Kind.RUN, Kind.STOP, Kind.OVERHEAD)
        ][:2]
        if (
            len(later) < 2
            or run.events[later[0]]["kind"] != Kind.RUN
            or run.events[later[0]]["t_ns"] != e["t_ns"]
        ):
            continue
        begin, end = run.events[later[0]], run.events[later[1]]
        if begin["task"] == e["task"] or end["kind"] != Kind.STOP or end["arg"] < 3:
            continue
        room = end["arg"]
        following = run.next_of(row, *STATE)
        if following is not None:
            room = min(room, run.events[following]["t_ns"] - e["t_ns"])
        if room < 2:
            continue
        by = int(rng.integers(1, room))
        for o in (e, begin):
            o["t_ns"] += by
        e["arg"] += by
        end["arg"] -= by
        run.sort()
        return True
    return False


one("a runs time of another length", of(Kind.STOP), lengthen)


@damage
def a_run_on_another_cpu(run, rng):
    """RUN and STOP both, while the other CPU is idle."""
    for row in rng.permutation(run.rows(Kind.RUN)):
        end = run.next_of(row, Kind.STOP)
        begin_ns, end_ns = run.events[row]["t_ns"], run.events[end]["t_ns"]
        for cpu in range(run.n_cpus):
            busy = any(
                e["cpu"] == cpu and e["kind"] in (Kind.RUN, Kind.STOP) and begin_ns <= e["t_ns"] <= end_ns
                for e in run.events
            )
            if cpu == run.events[row]["cpu"] or busy or run.occupied(cpu, begin_ns):
                continue
            run.events[row]["cpu"] = run.events[end]["cpu"] = cpu
            return True
    return False


# ---- migrations -------------------------------------------------------------------


def migrate(run: Run, row: int, rng) -> None:
    e = run.events[row]
    elsewhere = (e["cpu"] + 1) % run.n_cpus
    run.events.insert(row, event(e["t_ns"], e["task"], e["cpu"], Kind.MIGRATE, 0, elsewhere))


one("a migration dropped", of(Kind.MIGRATE), drop)
one("a migration doubled", of(Kind.MIGRATE), double)
one("a migration of another task", of(Kind.MIGRATE), to_another_task)
one("a migration from another cpu", of(Kind.MIGRATE), to_another_cpu("arg"))
one("a migration to another cpu", of(Kind.MIGRATE), to_another_cpu("cpu"))
one(
    "a migration invented",
    of_several_cpus(lambda run: [r for r in run.rows(Kind.RUN) if run.last_of(r, Kind.RUN) is not None]),
    migrate,
)

# ---- events lost, doubled, exchanged -------------------------------------------------

for _kind in STATE:
    one(f"a {_kind.name} lost", of(_kind), drop)
    one(f"a {_kind.name} doubled", of(_kind), double)
    one(f"a {_kind.name} of another task", of(_kind), to_another_task)


@damage
def the_tail_cut_off(run, rng):
    keep = int(rng.integers(len(run.events) // 2, len(run.events)))
    del run.events[keep:]
    return True


one("an overhead longer", of(Kind.OVERHEAD), lengthen)
one("an overhead lost", of(Kind.OVERHEAD), drop)
one("an overhead told as stolen", of(Kind.OVERHEAD, Overhead.SWITCH), put("flags", Overhead.STOLEN))

# ---- what no metric uses ------------------------------------------------------------


@damage
def the_queue_that_a_run_came_from(run, rng):
    run.events[choose(rng, run.rows(Kind.RUN))]["arg"] ^= 1
    return True


one("the cpu chosen at a wake up", of_several_cpus(of(Kind.WAKE)), to_another_cpu("cpu"))
one("an attribute", of(Kind.ATTR), lengthen)


def as_array(run: Run, dtype) -> np.ndarray:
    """The events as records."""
    return np.array([tuple(e[name] for name in dtype.names) for e in run.events], dtype)
