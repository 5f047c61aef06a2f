# SPDX-License-Identifier: MIT
"""Run a policy in a world and hold it against what it promises.

        World -> quick.py: one process for all   -> nothing, or an error of the policy's
                    | what its records show is to be looked at
                    v
                 program -> simulator -> records -> properties

A property is decided, not guessed: a task that waits for long is only a suspect, and the
same world goes on until Linux's watchdog would end the policy, or would not.

Invariant: equal worlds give equal records; where they do not, it is a defect of schedlab,
and said to be one.
Read next: shrink.py; search.py, the caller.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ..errors import SchedlabError
from ..hosts.host import Job, Outcome
from ..hosts.sim import SimHost
from ..metrics.dictionary import find_metric
from ..policy.answers import ANSWERS_FLAG, IGNORED
from ..policy.build import BuiltPolicy, came_compiled, compile_policy
from ..policy.invariants import BROKEN, CHECK_FLAG, LEAPS, has_tests
from ..policy.quotas import keeps_quotas
from ..policy.races import compile_for_races
from ..program.file import read_program
from ..records.file import hash_file, read_records
from ..runs.judge import Judge, is_limited
from ..workload.events import are_cpus_steady, has_exact_work
from .coverage import compile_covered, map_of
from .encode import program_of
from .lost import is_lost
from .promises import Promise, promises_of, words_of
from .quick import Answer, Worlds
from .relations import RELATIONS, Relation, relations_of
from .world import MS, World

#: Properties by name, each with what breaks it.
PROPERTIES = {
    "error": "sched_ext would end the policy, or it crashes or does not return",
    "stall": "a runnable task is not run until the watchdog ends the policy",
    "lost": "the same beside a CPU that is idle meanwhile, whatever the policy declares of starvation",
    "invariant": "an expression that the policy's header declares as @invariant is false after a callback",
    "ignored-error": "a helper fails in a call whose answer the policy does not look at",
    "vtime": "a virtual time leaps, by 2^56 or more from that of the task queued before; if declared",
    "work": "a CPU is idle beside a task that may run there",
    "shares": "of two tasks on one CPU, one has had more than its share by more than the header declares",
    "priority": "a task waits beside a less urgent one that runs, or is taken, longer than the header declares",
    "latency": "a task that wakes up waits for longer than the header declares",
    "inversion": "a task waits for a lock whose holder waits beside a less urgent task that runs",
    "deadlock": "CPUs wait for each other's locks, or a lock is not dropped; with --races",
    "race": "two CPUs change one variable at once, and one change is lost; with --races",
    "exit": "a callback accesses a task whose ops.exit_task() has been called; with --races",
    "renamed": "with other pids, the same tasks are scheduled otherwise; if asked for",
    "scaled": "with all times twice as long, the same tasks are scheduled otherwise; if asked for",
    "more-cpus": "with one CPU more, tasks need longer than a bound; if asked for",
    "consistency": "records that no scheduler can leave, or a failed assertion: a defect of schedlab, to be reported",
    "worse": "a metric is worse than under another policy, by more than is allowed",
}
#: A task that waits for longer is looked at for a minute: longer than the watchdog takes,
#: which looks every 15 s for waits of 30 s.
SUSPECT_NS = 400 * MS
STALL_HORIZON_NS = 60_000 * MS
RUN_SECONDS = 20.0
#: As hosts/sim/worker.c begins what it says of one.
ASSERTION = "an assertion of schedlab fails"
#: What is nearer is beyond what is allowed, in permille.
NEAR_BROKEN = 1000
_OF_POLICY = {
    "policy": "error", "crash": "error", "spin": "error", "stall": "stall", "race": "race", "locks": "deadlock",
    "use": "exit",
}  # fmt: skip


def broken_by(kind: str | None, text: str) -> str | None:
    """The property that a failed run breaks, by its `error_kind` and message; None: it is no policy's fault."""
    if kind == "policy" and text.startswith(BROKEN):
        return "invariant"
    if kind == "policy" and text.startswith(LEAPS):
        return "vtime"
    if kind == "policy" and text.startswith(IGNORED):
        return "ignored-error"
    if kind == "crash" and text.startswith(ASSERTION):
        return "consistency"
    if kind == "consistency":
        return "work" if "as under no work-conserving policy" in text else "consistency"
    return _OF_POLICY.get(kind or "")


@dataclass(frozen=True)
class Finding:
    """A broken property."""

    broken: str  #: Of `PROPERTIES`.
    text: str  #: What happened, with names and times.
    horizon_ns: int  #: How long the world has to last for it.
    strategy: str = field(default="", compare=False)  #: By which its switches were drawn, in the search.

    @property
    def signature(self) -> str:
        """What it has in common with others of its kind: the text without tasks, times and numbers."""
        if self.broken in RELATIONS:
            return self.broken  # where two runs differ first is of no kind
        text = re.sub(r"[\w-]+\[\d+\]|'[\w-]+'|\(task \d+[^)]*\)", "T", self.text)
        places = re.findall(r"\w[\w.]*\.c:\d+", text)
        return " ".join([self.broken, re.sub(r"0x[0-9a-f]+|\d[\d.,]*(?:[num]?s\b)?", "N", text), *places])


@dataclass(frozen=True)
class NeverWorse:
    """A metric that may not be worse than under another policy."""

    policy: BuiltPolicy  #: The other one.
    metric: str  #: Of the dictionary, a time or a count of which less is better, or one of which more is.
    share: float  #: By how much it may be worse, such as 0.2.
    floor: float = 0.0  #: A difference below this is none, in the metric's unit.

    def compare(self, own: float | None, other: float | None) -> str | None:
        """What is worse, or None."""
        if own is None or other is None:
            return None
        metric = find_metric(self.metric)
        worse = own - other if metric.direction == "lower" else other - own
        if worse <= max(self.share * abs(other), self.floor):
            return None
        return (
            f"{self.metric} is {own:g} {metric.unit}, under {self.policy.policy.name} {other:g} {metric.unit}"
        )


@dataclass(frozen=True)
class Trial:
    """What one world has shown."""

    finding: Finding | None  #: The first property that it breaks.
    #: Of the run of the policy, where it left records: SHA-256 of the file where it was alone (`try_alone`), else 16
    #: digits of the process's own.
    record_hash: str | None
    longest_wait_ns: int  #: How near it came to a stall, ...
    #: The switches between CPUs that were made, where it failed and they are not too many.
    interleaving: str = ""
    #: Those that could follow, or the first 4,096 of them, see schedules.py; None: it was not asked, or has
    #: failed.
    nexts: str | None = None
    n_next: int = 0  #: How many they are.
    near: int = 0  #: ... and to what `@shares` and `@priority` rule out, in permille.
    is_stuck: bool = False  #: A callback had to be ended, which takes as long as a thousand worlds.
    is_late: bool = False  #: It had not ended in time, as on a busy machine, so that nothing is known.

    def is_like(self, other: Trial) -> bool:
        """Whether two runs of a world left the same records, as far as they can be compared.

        One whose answer did not come, as on a busy machine, was run alone, where records are hashed otherwise.
        """
        one, two = self.record_hash, other.record_hash
        if self.is_late or other.is_late:
            return True
        return one == two or (one is not None and two is not None and len(one) != len(two))


def seen_as(broken: str) -> str:
    """What a host calls it that a property is broken: the watchdog knows no difference."""
    return "stall" if broken == "lost" else broken


def _quota_objects(world: World) -> frozenset[int]:
    """Cgroups that get a quota in the run, by their objects."""
    return frozenset(event.which for event in world.numbered_events if event.kind == "quota")


class Laboratory:
    """The simulator with one policy, and a folder for what it leaves; to be closed.

    `coverage` is the folder in which to note which blocks of the policy have run; `never_worse` is for the
    property `worse`; its own folder is in `scratch`, or where temporary files are.
    """

    def __init__(
        self,
        built: BuiltPolicy,
        *,
        properties: Iterable[str],
        never_worse: NeverWorse | None = None,
        coverage: Path | None = None,
        scratch: Path | None = None,
    ):
        self._coverage = coverage
        self._covered: Worlds | None = None
        self.built = built
        self.properties = frozenset(properties)
        self._flags = self._held_flags()
        if self._flags:
            held = compile_policy(built.policy, more_flags=self._flags)
            self.built = replace(built, shared_object=held)
        self._has_promises = any((built.policy.shares, built.policy.priority, built.policy.latency))
        self.never_worse = never_worse
        self._host = SimHost()
        self._folder = Path(tempfile.mkdtemp(prefix="schedlab-check-", dir=scratch))
        self._session = self._host.session(timeout_seconds=RUN_SECONDS)
        self._others = self._host.session(timeout_seconds=RUN_SECONDS)
        self._interleaving = self._host.session(timeout_seconds=RUN_SECONDS)
        self._quick: dict[bool, Worlds] = {}
        self._compiled_for_races: Path | None = None
        #: The source line of a callback that does not return, by the signature of what is said of it without that.
        self._stuck_at: dict[str, str] = {}

    def _held_flags(self) -> tuple[str, ...]:
        """What a policy is compiled with for what is tested in it; one that a wheel brought looks at its answers."""
        flags = (CHECK_FLAG,) if has_tests(self.built.policy) else ()
        is_held = "ignored-error" in self.properties and not came_compiled(self.built.policy)
        return (*flags, ANSWERS_FLAG) if is_held else flags

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the simulator and remove the folder."""
        self._session.close()
        self._others.close()
        self._interleaving.close()
        for each in (*self._quick.values(), *([self._covered] if self._covered else [])):
            each.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def try_world(self, world: World) -> Trial:
        """Run the policy in a world; see `try_worlds`."""
        return self.try_worlds([world])[0]

    def try_worlds(self, worlds: Sequence[World]) -> list[Trial]:
        """Run the policy in worlds; SpecError if one is no valid workload."""
        if self.never_worse is not None:
            return [self.try_alone(world) for world in worlds]
        trials: list[Trial | None] = [None] * len(worlds)
        for is_interleaved in (False, True):
            chosen = [at for at, world in enumerate(worlds) if bool(world.interleaving) is is_interleaved]
            if chosen:
                answers = self._worlds(is_interleaved).run([worlds[at] for at in chosen])
                for at, answer in zip(chosen, answers, strict=True):
                    trial = self._of_answer(worlds[at], answer) or self._alone_after(worlds[at], answer)
                    trials[at] = (
                        replace(
                            trial,
                            nexts=answer.get("next"),
                            n_next=answer.get("nr_next", 0),
                            near=answer.get("near", 0),
                        )
                        if answer
                        else trial
                    )
        if self.properties & {*RELATIONS}:
            for at, one in enumerate(trials):
                if one and one.finding is None and self._may_differ(worlds[at]):
                    trials[at] = self.try_alone(worlds[at])
        return [trial for trial in trials if trial]

    def _alone_after(self, world: World, answer: Answer | None) -> Trial:
        """Run a world alone, since this answer decides nothing; of endless callbacks only the first of a kind.

        The others do not return from the same callback, and each would take seconds: they get its source line.
        """
        if not answer or answer.get("error_kind") != "spin":
            return self.try_alone(world)
        finding = Finding("error", answer["error"], world.horizon_ns)
        place = self._stuck_at.get(finding.signature)
        if place is not None and "error" in self.properties:
            finding = replace(finding, text=finding.text + place)
            return Trial(finding, None, 0, world.interleaving, is_stuck=True)
        trial = self.try_alone(world)
        if trial.finding is not None and trial.finding.text.startswith(finding.text):
            self._stuck_at[finding.signature] = trial.finding.text.removeprefix(finding.text)
        return replace(trial, record_hash=None if trial.finding else trial.record_hash, is_stuck=True)

    def _relations(self, world: World) -> list[Relation]:
        """What this run has in common with another one, as far as it is held."""
        values = self.built.values | dict(world.settings)
        return relations_of(self.built.policy, values, self.properties, world)

    def _may_differ(self, world: World) -> bool:
        """Whether another run may not have in common with this one what it should."""
        for relation in self._relations(world):
            pairs = zip((relation.first, relation.second), relation.promises, strict=True)
            one, other = (self._worlds(False).run([each], promise)[0] for each, promise in pairs)
            if not one or not other or "course" not in one or "course" not in other:
                return True
            if relation.name != "more-cpus" and one["course"] != other["course"]:
                return True
            if relation.name == "more-cpus" and relation.is_too_long(one["end_ns"], other["end_ns"]):
                return True
        return False

    def _of_relations(self, world: World) -> Finding | None:
        """Whether another run has not in common with this one what it should; both are run alone."""
        for relation in self._relations(world):
            records = []
            for each in (relation.first, relation.second):
                outcome, _ = self._run(each, is_judged=False)
                if outcome.error is None:
                    records.append(read_records(self._folder / "records.slr"))
            names = read_program(program_of(world)).names
            named = [names[pid] for pid in sorted(names)]
            text = relation.broken(records[0], records[1], named) if len(records) == 2 else None
            if text is not None:
                return Finding(relation.name, text, world.horizon_ns)
        return None

    def cover(self, worlds: Iterable[World]) -> None:
        """Run worlds once more, to note which lines of the policy run in them; without interleaving.

        With the calls for that, a policy is another program: how its CPUs interleave would differ.
        """
        if self._coverage is None:
            return
        if self._covered is None:
            compiled = compile_covered(self.built, self._flags)
            if compiled is None:
                self._coverage = None
                return
            built, noted = replace(self.built, shared_object=compiled), map_of(self._coverage, compiled)
            self._covered = Worlds(built, timeout_seconds=RUN_SECONDS, coverage=noted)
        self._covered.run([replace(world, interleaving="") for world in worlds])

    def _worlds(self, is_interleaved: bool) -> Worlds:
        """The process for many worlds, with the policy compiled as it needs it."""
        if is_interleaved not in self._quick:
            built = self.built
            if is_interleaved:
                built = replace(built, shared_object=self._for_races())
            self._quick[is_interleaved] = Worlds(
                built, timeout_seconds=RUN_SECONDS, promises=lambda world: words_of(self.promises(world))
            )
        return self._quick[is_interleaved]

    def _of_answer(self, world: World, answer: Answer | None) -> Trial | None:
        """What an answer shows; None: the world is to be run alone."""
        if answer is None:
            return None
        if answer["status"] != "ok":
            return self._of_failure(world, answer)
        if answer["is_suspect"] or (answer["is_wasteful"] and self._holds_work(world)):
            return None
        holds_inversion = "inversion" in self.properties and any(
            each.kind == "inversion" for each in self.promises(world)
        )
        if answer["near"] > NEAR_BROKEN or holds_inversion:
            return None
        if self._is_long(world, answer["longest_wait_ns"], has_idle=answer["is_wasteful"]):
            longer = replace(world, horizon_ns=STALL_HORIZON_NS)
            (answer_long,) = self._worlds(bool(world.interleaving)).run([longer])
            if answer_long is None:
                return None
            if answer_long["status"] != "ok":
                trial = self._of_failure(longer, answer_long)
                return trial and replace(
                    trial, record_hash=answer["hash"], longest_wait_ns=answer["longest_wait_ns"]
                )
        return Trial(None, answer["hash"], answer["longest_wait_ns"], world.interleaving)

    def _of_failure(self, world: World, answer: Answer) -> Trial | None:
        """What a failed run shows; None: its source line, or who is at fault, is still to be found."""
        if answer["error_kind"] not in _OF_POLICY or answer["error_kind"] in ("crash", "spin"):
            return None
        broken = broken_by(answer["error_kind"], answer["error"])
        if broken == "stall" and "stall" not in self.properties and "lost" in self.properties:
            return None
        finding = Finding(broken or "error", answer["error"], world.horizon_ns)
        if finding.broken not in self.properties:
            return Trial(None, None, 0, world.interleaving)
        return Trial(finding, None, 0, answer.get("switches") or world.interleaving)

    def _holds_work(self, world: World) -> bool:
        """Whether no CPU may be idle beside a task; one that a higher class has looks so in the records."""
        return "work" in self.properties and not world.is_disturbed

    def _is_long(self, world: World, wait_ns: int, *, has_idle: bool) -> bool:
        """Whether a task has waited for so long, or so beside an idle CPU, that the world is to go on for a minute."""
        is_held = "stall" in self.properties or (has_idle and "lost" in self.properties)
        return wait_ns > SUSPECT_NS and is_held and world.horizon_ns not in (0, STALL_HORIZON_NS)

    def try_alone(self, world: World) -> Trial:
        """Run the policy in a world in a process of its own, and judge its records."""
        outcome, verdict = self._run(world)
        records = self._folder / "records.slr"
        record_hash = hash_file(records) if records.is_file() else None
        finding = self._of_outcome(outcome, world) or self._of_verdict(verdict, world.horizon_ns)
        if finding is None and outcome.error is None:
            finding = self._of_promises(world, records)
        longest_wait_ns = int(verdict["metrics"].get("starvation_ns") or 0)
        if finding is None and outcome.error is None:
            finding = self._of_relations(world)
        if finding is None and self._is_long(world, longest_wait_ns, has_idle=True):
            longer = replace(world, horizon_ns=STALL_HORIZON_NS)
            outcome, _ = self._run(longer, is_judged=False)
            finding = self._of_outcome(outcome, longer)
        # With other knobs it is another policy, which may do worse.
        if finding is None and self.never_worse is not None and verdict["metrics"] and not world.settings:
            finding = self._worse(world, verdict["metrics"])
        if finding is not None and finding.broken not in self.properties:
            finding = None
        switches = outcome.answer.get("switches") if finding is not None else None
        return Trial(
            finding,
            record_hash,
            longest_wait_ns,
            switches or world.interleaving,
            is_late=outcome.error_kind == "timeout",
        )

    def instants_of(self, world: World) -> list[int]:
        """When something happened in a world that fails, until then; in ns, in order."""
        outcome, _ = self._run(world, is_judged=False)
        file = self._folder / "records.slr"
        failed_ns = outcome.answer.get("failed_at_ns") or 0
        if not file.is_file():
            return []
        times = np.unique(read_records(file).events["t_ns"]).tolist()
        return [t_ns for t_ns in times if not failed_ns or t_ns <= failed_ns]

    def _run(
        self, world: World, *, is_judged: bool = True, other: BuiltPolicy | None = None
    ) -> tuple[Outcome, dict[str, Any]]:
        """What the simulator said, and what its records say."""
        program = read_program(program_of(world))
        (self._folder / "program").write_bytes(program.data)
        built = other or replace(self.built, values=self.built.values | dict(world.settings))
        events = "" if other else world.machine_events
        job = Job(
            label="check",
            policy=built,
            program=self._folder / "program",
            records=self._folder / "records.slr",
            n_cpus=world.n_cpus,
            seed=world.seed,
            tick_ns=world.tick_ns,
            options=tuple(
                (name, value)
                for name, value in (
                    ("--topology", world.topology),
                    ("--interleave", world.interleaving),
                    ("--events", events),
                )
                if value
            ),
        )
        if world.interleaving and other is None:
            job = replace(job, policy=replace(built, shared_object=self._for_races()))
        own = self._interleaving if world.interleaving or events else self._session
        outcome = (own if other is None else self._others).run(job)
        verdict: dict[str, Any] = {"error": None, "error_kind": None, "metrics": {}}
        if is_judged and outcome.error is None:
            judge = Judge(
                latency_ns=0, work_conserving=self._holds_work(world), tables_folder=None,
                are_cpus_steady=are_cpus_steady(world.events), has_exact_work=has_exact_work(world.events),
                keeps_quotas=bool(program.groups) and keeps_quotas(built) is not False,
                quota_objects=_quota_objects(world),
            )  # fmt: skip
            verdict = judge.verdict(program, job.records, outcome)
        return outcome, verdict

    def _for_races(self) -> Path:
        """The policy, compiled so that its accesses are seen."""
        if self._compiled_for_races is None:
            self._compiled_for_races = compile_for_races(self.built, self._flags).shared_object
        return self._compiled_for_races

    def _of_outcome(self, outcome: Outcome, world: World) -> Finding | None:
        """What the simulator has found."""
        if outcome.error is None or outcome.error_kind == "timeout":
            return None  # too long to simulate: undecided
        broken = broken_by(outcome.error_kind, outcome.error)
        if broken is None:
            raise SchedlabError(f"the simulator failed ({outcome.error_kind}): {outcome.error}")
        if broken == "stall" and "stall" not in self.properties and self._is_lost(outcome, world):
            broken = "lost"
        return Finding(broken, outcome.error, world.horizon_ns)

    def _is_lost(self, outcome: Outcome, world: World) -> bool:
        """Whether the task that failed to run had an idle CPU beside it."""
        program = read_program(self._folder / "program")
        until_ns = outcome.answer.get("failed_at_ns", 0) - 1
        records = read_records(self._folder / "records.slr").until(until_ns)
        # Where CPUs interleave, one that was idle for a task may have taken another, and keep it: as with `work`.
        may_leave_idle = self.built.policy.work_conserving is False or bool(world.interleaving)
        return is_lost(
            outcome.error or "",
            records,
            program,
            limited=is_limited(program, _quota_objects(world)),
            may_leave_idle=may_leave_idle,
            # One that has disabled migration waits for its CPU, and one whose CPUs went offline may use all.
            may_be_elsewhere=any(event.kind in ("pin", "offline") for event in world.events),
        )

    def _of_verdict(self, verdict: dict[str, Any], horizon_ns: int) -> Finding | None:
        """What the records show."""
        if verdict["error"] is None:
            return None
        text = verdict["error"].partition("withheld: ")[2] or verdict["error"]
        return Finding(broken_by("consistency", text) or "consistency", text, horizon_ns)

    def promises(self, world: World) -> list[Promise]:
        """What the header promises of tasks in this world, as far as it is held."""
        if not self._has_promises:
            return []
        values = self.built.values | dict(world.settings)
        return promises_of(self.built.policy, values, self.properties, world)

    def _of_promises(self, world: World, records: Path) -> Finding | None:
        """Whether its records show that one is broken."""
        for promise in self.promises(world):
            text = promise.broken(read_records(records), read_program(self._folder / "program"))
            if text is not None:
                return Finding(promise.kind, text, world.horizon_ns)
        return None

    def _worse(self, world: World, metrics: dict[str, Any]) -> Finding | None:
        """Whether the other policy does better in this world."""
        assert self.never_worse is not None
        name = find_metric(self.never_worse.metric).name
        _, verdict = self._run(replace(world, settings=(), interleaving=""), other=self.never_worse.policy)
        text = self.never_worse.compare(metrics.get(name), verdict["metrics"].get(name))
        return Finding("worse", text, world.horizon_ns) if text else None
