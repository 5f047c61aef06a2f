# SPDX-License-Identifier: MIT
"""Search worlds for one that breaks a policy, on all CPUs, until the time is used up.

Worlds are drawn in batches. Batch b of seed s draws the same worlds each time, whatever else
is found, so that a number of batches can be repeated; within a batch, some of the worlds are
neighbours of the one whose tasks waited longest so far, the nearest to a stall, or of the one nearest
to what the header's `@shares` or `@priority` rules out.

        batch 0, 1, 2 ... -> a process each -> findings -> shrunk here -> Report

Invariant: what is reported has failed again in a new simulator process; a failure that
does not is called a defect of schedlab.
Read next: world.py; cli/check.py, which prints the report.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import cast

from ..errors import SchedlabError
from ..paths import cache_folder
from ..policy.build import BuiltPolicy
from .avoid import DECIDED, Avoidable, avoidable
from .coverage import Coverage, read_coverage
from .races import n_switches, strategy
from .relations import RELATIONS
from .schedules import Bound, Covered, choose_window, every_schedule
from .shrink import Shrunk, shrink
from .trial import Finding, Laboratory, NeverWorse, Trial
from .world import World, change_world, draw_world, interleaved, slice_of

#: Worlds of a batch: a second's worth, so that Ctrl-C and the budget are kept.
BATCH_WORLDS = 100
#: Worlds that are run at once; those after them know which of them came nearest to a stall.
CHUNK_WORLDS = 25
#: So many worlds are neighbours of the nearest. More of them find less: see docs/check.md, "How much it finds".
NEIGHBOURS_SHARE = 1 / 8
#: One world in so many is run twice, to see that both runs are equal, ...
REPEATED_ONE_IN = 50
#: ... and one in so many also alone, with its records judged in full.
ALONE_ONE_IN = 500
#: One in so many of a chunk is run once more, to see which lines of the policy run in it.
COVERED_ONE_IN = 13
#: Batches that a process of the search is sent before its answer.
AHEAD = 2
#: How long schedules that are run when the budget is used up may take, and a process that has ended to be gone.
GRACE_SECONDS, END_SECONDS = 2.0, 10.0
#: How long it is looked for when a failure was decided.
DECIDE_SECONDS = 3.0

#: A world with only the seed of its switches counts as one with so many.
SWITCHES_OF_A_SEED = 200


@dataclass(frozen=True)
class Known:
    """A world that is tried again, and what it was found by that no header says."""

    world: World
    also_held: frozenset[str] = frozenset()
    never_worse: NeverWorse | None = None


@dataclass(frozen=True)
class Task:
    """A policy and what is held against it, as a process of the search gets it."""

    built: BuiltPolicy
    properties: frozenset[str]
    seed: int
    never_worse: NeverWorse | None = None
    given: World | None = None
    are_chosen: bool = False
    #: Held although the header does not say so: the world that is tried again was found by it.
    also_held: frozenset[str] = frozenset()
    races: bool = False
    #: With `races`: each schedule of a window of each world is run, in place of one that is drawn.
    bound: Bound | None = None
    coverage: Path | None = None  #: Folder in which it is noted what has run.
    scratch: Path | None = None  #: Folder for what processes of the search leave behind.
    end_s: float = math.inf  #: When the search is over, by the monotonic clock: a window is not gone on with.

    @property
    def n_batch(self) -> int:
        """Worlds of a batch."""
        return 1 if self.bound else BATCH_WORLDS

    @property
    def held(self) -> frozenset[str]:
        """The properties that are held against the policy: those it declares, unless they were asked for."""
        waived = {*RELATIONS}
        if self.are_chosen:
            return self.properties
        if self.built.policy.starvation_free is False:
            waived.add("stall")
        if not self.built.policy.virtual_time:
            waived.add("vtime")
        # Linux leaves it open: a task is queued while a CPU goes idle, and that is a moment late.
        if not self.built.policy.work_conserving or self.races:
            waived.add("work")
        if self.built.policy.shares is None:
            waived.add("shares")
        if self.built.policy.latency is None:
            waived.add("latency")
        declared = self.built.policy.priority
        if declared is None:
            waived.add("priority")
        if declared is None or not declared.through_locks:
            waived.add("inversion")
        return self.properties - (waived - self.also_held)

    def laboratory(self) -> Laboratory:
        """A new one; to be closed."""
        return Laboratory(
            self.built, properties=self.held, never_worse=self.never_worse, coverage=self.coverage,
            scratch=self.scratch,
        )  # fmt: skip

    @property
    def asked(self) -> frozenset[str]:
        """Of what is held, what is so only because it was asked for."""
        return self.held - replace(self, are_chosen=False, also_held=frozenset()).held

    def again(self, known: Known) -> Task:
        """What is held in a world that is tried again."""
        worse = None if self.bound else known.never_worse
        if self.are_chosen or not (known.also_held or worse):
            return self
        properties = self.properties | ({"worse"} if worse else set())
        never_worse = self.never_worse or worse
        return replace(self, properties=properties, also_held=known.also_held, never_worse=never_worse)


@dataclass
class Batch:
    """What one batch has shown."""

    n_worlds: int = 0
    n_repeated: int = 0
    n_interleaved: int = 0
    failed: list[tuple[World, Finding]] = field(default_factory=list)
    longest_wait_ns: int = 0
    roles: set[str] = field(default_factory=set)
    cpus: set[int] = field(default_factory=set)
    events: set[str] = field(default_factory=set)
    covered: list[Covered] = field(default_factory=list)
    error: str | None = None

    def add(self, world: World, trial: Trial) -> None:
        """Count a world, and keep it where it has failed."""
        self.count(world)
        self.note(world, trial)

    def count(self, world: World) -> None:
        """Count a world, however often it is run."""
        self.n_worlds += 1
        self.n_interleaved += bool(world.interleaving)
        self.roles |= {group.role for group in world.groups}
        self.cpus.add(world.n_cpus)
        self.events |= {event.kind for event in world.events}

    def note(self, world: World, trial: Trial) -> None:
        """Keep a world where it has failed."""
        if trial.finding is not None:
            finding = replace(trial.finding, strategy=strategy(world.interleaving))
            self.failed.append((replace(world, interleaving=trial.interleaving), finding))


@dataclass(frozen=True)
class Found:
    """A broken property, with the first world that broke it and the smallest."""

    first: World
    smallest: Shrunk
    strategy: str = ""
    n_seen: int = 1
    decided: Avoidable | None = None  #: Until when it could be avoided, where that can be told.
    is_asked: bool = False  #: Whether it is held only because it was asked for.
    never_worse: NeverWorse | None = None  #: What it was compared with.


@dataclass
class Report:
    """What a search has done and found."""

    found: list[Found] = field(default_factory=list)  #: One for each kind of failure.
    n_worlds: int = 0  #: Worlds that were tried, without those of shrinking.
    n_repeated: int = 0  #: Of those, how many were run twice, with equal records.
    n_interleaved: int = 0  #: Of those, in how many the CPUs interleaved.
    seconds: float = 0.0  #: On the wall clock.
    longest_wait_ns: int = 0  #: Of all worlds without a failure.
    #: `roles`, `cpus`: Roles of tasks and numbers of CPUs that were tried.
    roles: set[str] = field(default_factory=set)
    cpus: set[int] = field(default_factory=set)
    events: set[str] = field(default_factory=set)  #: Kinds of what happened to machines.
    covered: list[Covered] = field(default_factory=list)  #: Windows of which every schedule is tried.
    coverage: Coverage | None = None  #: Lines of the policy that have run; None: it was not seen.
    is_interrupted: bool = False  #: Whether Ctrl-C has ended it.
    defect: str = ""  #: Of schedlab's, which has ended it after something was found.

    def add(self, batch: Batch) -> None:
        """Count what a batch has done."""
        self.n_worlds += batch.n_worlds
        self.n_repeated += batch.n_repeated
        self.n_interleaved += batch.n_interleaved
        self.longest_wait_ns = max(self.longest_wait_ns, batch.longest_wait_ns)
        self.roles |= batch.roles
        self.cpus |= batch.cpus
        self.events |= batch.events
        self.covered += batch.covered


class _Worker:
    """A process of the search: it tries the batches whose numbers it is sent, and is ended in the middle of one.

    SchedlabError: it has ended by itself.
    """

    def __init__(self, task: Task):
        context = multiprocessing.get_context("spawn")
        # A pipe of its own: what others share, one that is killed may hold or leave half written.
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, task), daemon=True)
        with self._expected():
            self._process.start()
        theirs.close()
        self.numbers: list[int] = []  #: Of its batches, in their order.

    @contextmanager
    def _expected(self) -> Iterator[None]:
        """Something is done with the process."""
        try:
            yield
        except (EOFError, OSError) as error:
            if self._process.pid is not None:
                self._process.join(END_SECONDS)
            raise SchedlabError(
                f"a process of the search has ended by itself, with status {self._process.exitcode}: {error}"
            ) from error

    def send(self, number: int) -> None:
        """Have it try one more batch."""
        with self._expected():
            self.pipe.send(number)
        self.numbers.append(number)

    def receive(self) -> tuple[int, Batch]:
        """Its next answer; waits for that."""
        with self._expected():
            batch: Batch = self.pipe.recv()
        return self.numbers.pop(0), batch

    def kill(self) -> None:
        """End it, whatever it does; its supervisor ends what it has started."""
        self._process.kill()

    def close(self) -> None:
        """Wait for its end."""
        self._process.join()
        self.pipe.close()


def _work(pipe: Connection, task: Task) -> None:
    """In a process of the search, which has one laboratory for all its batches."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    laboratory: Laboratory | None = None
    while True:
        try:
            number = pipe.recv()
        except (EOFError, OSError):
            break  # the search is over
        try:
            laboratory = laboratory or task.laboratory()
            batch = do_batch(task, number, laboratory=laboratory)
        except (SchedlabError, OSError) as error:
            batch = Batch(error=str(error))
        with suppress(OSError):
            pipe.send(batch)
    if laboratory is not None:
        laboratory.close()


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """While processes begin, which is a moment, Ctrl-C waits: it is for us, and what has begun has to be known."""
    # It would let Ctrl-C through as it begins, with the first of them.
    resource_tracker.ensure_running()
    has_come: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    # A library's thread may be told in place of this one, which then has to answer.
    handler = signal.signal(signal.SIGINT, lambda number, _: has_come.append(number)) if is_main else None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    if has_come:
        raise KeyboardInterrupt


def do_batch(
    task: Task, number: int, n_worlds: int = BATCH_WORLDS, laboratory: Laboratory | None = None
) -> Batch:
    """Try the worlds of one batch, in a new laboratory where none is given."""
    if task.bound:
        return _do_batch_of_schedules(task, number, laboratory)
    rng = random.Random(f"{task.seed}/{number}")
    policy, values = task.built.policy, task.built.values
    batch = Batch()
    #: Of stalls, and of what `@shares` and `@priority` rule out.
    nearest: dict[str, tuple[int, World]] = {}
    with nullcontext(laboratory) if laboratory else task.laboratory() as own:
        for begin in range(0, n_worlds, CHUNK_WORLDS):
            worlds = []
            for _ in range(min(CHUNK_WORLDS, n_worlds - begin)):
                if nearest and rng.random() < NEIGHBOURS_SHARE:
                    _, near = rng.choice([*nearest.values()]) if len(nearest) > 1 else nearest["wait"]
                    world = change_world(rng, near, policy, values)
                else:
                    world = draw_world(rng, policy, values, task.given)
                if task.never_worse:
                    # The other policy's machine has none, and it may keep no quotas.
                    world = replace(world, events=(), limits=())
                worlds.append(interleaved(rng, world) if task.races else world)
            try:
                trials = own.try_worlds(worlds)
                _repeat(task, own, worlds, trials, number * BATCH_WORLDS + begin, batch)
                own.cover(worlds[::COVERED_ONE_IN])
            except SchedlabError as error:
                batch.error = str(error)
                break
            for world, trial in zip(worlds, trials, strict=True):
                batch.add(world, trial)
                # A CPU that is a higher class's for long is near to no stall.
                if trial.finding is not None or world.is_disturbed:
                    continue
                if "wait" not in nearest or trial.longest_wait_ns > nearest["wait"][0]:
                    nearest["wait"] = (trial.longest_wait_ns, world)
                    batch.longest_wait_ns = trial.longest_wait_ns
                if trial.near > (nearest["promise"][0] if "promise" in nearest else 0):
                    nearest["promise"] = (trial.near, world)
            if any(trial.is_stuck for trial in trials):
                break  # each such world takes seconds: let what is found be seen
    return batch


def _do_batch_of_schedules(task: Task, number: int, laboratory: Laboratory | None) -> Batch:
    """Draw one world, and try every schedule of a window of it."""
    rng = random.Random(f"{task.seed}/{number}")
    world = draw_world(rng, task.built.policy, task.built.values, task.given)
    with nullcontext(laboratory) if laboratory else task.laboratory() as own:
        return _try_schedules(task, own, interleaved(rng, world), rng, lambda: time.monotonic() >= task.end_s)


def _try_schedules(
    task: Task, laboratory: Laboratory, world: World, rng: random.Random, is_over: Callable[[], bool] = bool
) -> Batch:
    """Try every schedule of a window of a world, or until one fails, or `is_over`."""
    batch = Batch()
    assert task.bound
    try:
        bound = choose_window(laboratory, world, task.bound, rng)
        if bound.from_ns < 0:
            without = replace(world, interleaving="0@0-0:")
            batch.count(replace(world, interleaving=""))  # nothing can come next
            batch.note(without, laboratory.try_world(without))
            return batch
        laboratory.cover([world])
        for covered, tried in every_schedule(
            laboratory, world, bound, lambda: bool(batch.failed) or is_over()
        ):
            if not batch.n_worlds:
                batch.count(world)
            for each, trial in tried:
                batch.note(each, trial)
                batch.longest_wait_ns = max(batch.longest_wait_ns, trial.longest_wait_ns)
            batch.covered = [covered]
            if tried and not laboratory.try_world(tried[-1][0]).is_like(tried[-1][1]):
                raise SchedlabError(f"two runs of one schedule differ ({bound})")
            batch.n_repeated += 1
    except SchedlabError as error:
        batch.error = str(error)
    return batch


def _repeat(
    task: Task, laboratory: Laboratory, worlds: Sequence[World], trials: list[Trial], first: int, batch: Batch
) -> None:
    """Run some worlds again, which may show nothing else; SchedlabError where one does.

    Where a world that is run alone shows more, that is what is taken.
    """
    for at, world in enumerate(worlds):
        if (first + at) % REPEATED_ONE_IN == 0:
            again = laboratory.try_world(world)
            if not again.is_like(trials[at]):
                place = f"seed {task.seed}, world {first + at}"
                raise SchedlabError(
                    f"two runs of one world differ ({place}): {_shown(trials[at])}; then {_shown(again)}"
                )
            batch.n_repeated += 1
        if (first + at) % ALONE_ONE_IN == 0 and trials[at].finding is None:
            alone = laboratory.try_alone(world)
            if alone.is_late or trials[at].is_late:
                continue
            if alone.longest_wait_ns != trials[at].longest_wait_ns:
                raise SchedlabError(
                    f"a world alone differs from one among others (seed {task.seed}, world {first + at})"
                )
            trials[at] = replace(trials[at], finding=alone.finding)


def _shown(trial: Trial) -> str:
    """What a run left, for a message."""
    records = f"records {trial.record_hash[:12]}" if trial.record_hash else "no records"
    return f"{records}, {trial.finding.text if trial.finding else 'nothing found'}"


def search(
    task: Task,
    *,
    budget_seconds: float,
    n_worlds_max: int | None = None,
    n_processes: int | None = None,
    finds_all: bool = False,
    corpus: Sequence[Known] = (),
    only_corpus: bool = False,
    on_progress: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Search until a property is broken, or the budget is used up.

    `budget_seconds` on the wall clock include shrinking; `n_worlds_max` is rounded up to whole batches;
    `finds_all` goes on after the first failure; worlds of the `corpus` are tried first.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-check-", ignore_cleanup_errors=True) as folder:
        coverage, scratch = Path(folder, "coverage"), Path(folder, "scratch")
        coverage.mkdir()
        scratch.mkdir()
        task = replace(task, coverage=coverage, scratch=scratch, end_s=time.monotonic() + budget_seconds)
        report = _search(
            task, budget_seconds, n_worlds_max, n_processes, finds_all, corpus, only_corpus, on_progress
        )
        with suppress(OSError, subprocess.SubprocessError):  # what was found is worth more
            report.coverage = read_coverage(coverage, cache_folder("policies"))
    return report


def _search(
    task: Task,
    budget_seconds: float,
    n_worlds_max: int | None,
    n_processes: int | None,
    finds_all: bool,
    corpus: Sequence[Known],
    only_corpus: bool,
    on_progress: Callable[[Report], None],
) -> Report:
    """The search, without what is read afterwards."""
    begun = time.monotonic()
    report = Report()
    seen: dict[str, Found] = {}
    slice_ns = slice_of(task.built.policy, task.built.values)
    laboratory = task.laboratory()

    def take(world: World, finding: Finding, own: Task = task) -> None:
        with nullcontext(laboratory) if own is task else own.laboratory() as where:
            take_in(world, finding, own, where)

    def take_in(world: World, finding: Finding, own: Task, laboratory: Laboratory) -> None:
        known = seen.get(finding.signature)
        if known is not None:
            seen[finding.signature] = replace(known, n_seen=known.n_seen + 1)
            return
        _confirm(own, world, finding)
        left = begun + budget_seconds - time.monotonic()
        small = shrink(laboratory, world, finding, slice_ns=slice_ns, seconds_max=min(30.0, max(5.0, left)))
        seen[finding.signature] = Found(
            world, small, finding.strategy, is_asked=finding.broken in own.asked, never_worse=own.never_worse
        )
        report.found = [*seen.values()]
        if small.is_interrupted:
            raise KeyboardInterrupt
        if small.finding.broken in DECIDED and not small.world.interleaving:
            instants = laboratory.instants_of(small.world)
            decided = avoidable(laboratory, small.world, small.finding, instants, DECIDE_SECONDS)
            seen[finding.signature] = replace(seen[finding.signature], decided=decided)

    def is_enough() -> bool:
        return bool(seen and not finds_all) or (n_worlds_max is not None and report.n_worlds >= n_worlds_max)

    def is_over() -> bool:
        return is_enough() or time.monotonic() - begun >= budget_seconds

    try:
        for known in corpus:
            own = task.again(known)
            with nullcontext(laboratory) if own is task else own.laboratory() as where:
                tried = _try_again(own, where, known.world, is_over)
            report.add(tried)
            if tried.error is not None:
                raise SchedlabError(tried.error)
            for failed, finding in smallest_first(tried.failed):
                take(failed, finding, own)
        if not (only_corpus or is_over()):
            _search_in_processes(task, n_processes or os.cpu_count() or 1, report, take, is_over, is_enough,
                                 on_progress, n_worlds_max)  # fmt: skip
    except KeyboardInterrupt:
        report.is_interrupted = True
    except SchedlabError as error:
        if not seen:
            raise
        report.defect = str(error)
    finally:
        laboratory.close()
    report.found = [*seen.values()]
    report.seconds = time.monotonic() - begun
    return report


def _try_again(task: Task, laboratory: Laboratory, world: World, is_over: Callable[[], bool]) -> Batch:
    """Try one world that is known, or each schedule of a window of it."""
    if task.bound:
        return _try_schedules(task, laboratory, world, random.Random(task.seed), is_over)
    batch = Batch()
    batch.add(world, laboratory.try_world(world))
    laboratory.cover([world])
    return batch


def smallest_first(failed: Sequence[tuple[World, Finding]]) -> list[tuple[World, Finding]]:
    """Failures in the order in which they are shrunk; of one with too many switches for a list only their seed is known."""

    def size(each: tuple[World, Finding]) -> int:
        interleaving = each[0].interleaving
        is_seed = bool(interleaving) and not n_switches(interleaving)
        return each[0].size + is_seed * SWITCHES_OF_A_SEED

    return sorted(failed, key=size)


def _search_in_processes(
    task: Task,
    n_processes: int,
    report: Report,
    take: Callable[[World, Finding], None],
    is_over: Callable[[], bool],
    is_enough: Callable[[], bool],
    on_progress: Callable[[Report], None],
    n_worlds_max: int | None,
) -> None:
    """Hand out batches in their order, and take in what they find in that order, until it `is_over`.

    That is where it `is_enough`, or the time is used up; then what has come besides is taken in as well.
    """
    begun = time.monotonic()
    next_out = next_in = 0
    answers: dict[int, Batch] = {}
    last = None if n_worlds_max is None else -(-n_worlds_max // task.n_batch)
    workers: list[_Worker] = []

    def receive(seconds: float) -> None:
        busy = {worker.pipe: worker for worker in workers if worker.numbers}
        for pipe in wait([*busy], seconds):
            number, batch = busy[cast(Connection, pipe)].receive()
            answers[number] = batch

    def take_in(batch: Batch) -> None:
        report.add(batch)
        if batch.error is not None:
            raise SchedlabError(batch.error)
        for world, finding in smallest_first(batch.failed):
            take(world, finding)
        report.seconds = time.monotonic() - begun
        on_progress(report)

    try:
        with _ctrl_c_later():
            for _ in range(n_processes if last is None else min(n_processes, last)):
                workers.append(_Worker(task))
        while not is_over() and next_in != last:
            for worker in workers:
                while len(worker.numbers) < AHEAD and (last is None or next_out < last):
                    worker.send(next_out)
                    next_out += 1
            receive(1.0)
            while next_in in answers and not is_over():
                next_in += 1
                take_in(answers.pop(next_in - 1))
        # Of a window whose end has not come it is said how far it was.
        end_s = time.monotonic() + (GRACE_SECONDS if task.bound and not is_enough() else 0)
        while any(worker.numbers for worker in workers) and (left := end_s - time.monotonic()) > 0:
            receive(left)
        for number in sorted(answers):
            if not is_enough():
                take_in(answers[number])
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.close()


def _confirm(task: Task, world: World, finding: Finding) -> None:
    """Have a failure fail again in a new process; raise where it does not."""
    with task.laboratory() as laboratory:
        again = laboratory.try_alone(world).finding
    if again is None or again.signature != finding.signature:
        what = "does not fail" if again is None else f"fails otherwise ({again.text})"
        raise SchedlabError(
            f"a failure does not repeat: {finding.text}; in a new process the same world {what}: "
            "this is a defect of schedlab, please report it"
        )
