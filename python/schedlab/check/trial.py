# SPDX-License-Identifier: MIT
"""Run a policy in a world and hold it against what it promises.

        World -> to_toml() -> program -> simulator -> records -> properties
                                             |
                   a wait of half a second: the same world for a minute

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
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import SchedlabError
from ..hosts.host import Job, Outcome
from ..hosts.sim import SimHost
from ..metrics.dictionary import find_metric
from ..policy.build import BuiltPolicy
from ..program.compiler import compile_workload
from ..records.file import hash_file
from ..runs.judge import Judge
from ..workload.spec import parse_workload
from .races import InterleavingSession, compile_for_races
from .world import MS, World, to_toml

#: Properties by name, each with what breaks it.
PROPERTIES = {
    "error": "sched_ext would end the policy, or it crashes or does not return",
    "stall": "a runnable task is not run until the watchdog ends the policy",
    "work": "a CPU is idle beside a task that may run there, although the policy declares otherwise",
    "race": "two CPUs change one variable at once, and one change is lost; with --races",
    "consistency": "records that no scheduler can leave: a defect of schedlab, to be reported",
    "worse": "a metric is worse than under another policy, by more than is allowed",
}
#: A task that waits for longer is looked at for a minute: longer than the watchdog takes,
#: which looks every 15 s for waits of 30 s.
SUSPECT_NS = 400 * MS
STALL_HORIZON_NS = 60_000 * MS
RUN_SECONDS = 20.0
_OF_POLICY = {"policy": "error", "crash": "error", "spin": "error", "stall": "stall", "race": "race"}


def broken_by(kind: str | None, text: str) -> str | None:
    """The property that a failed run breaks, by its `error_kind` and message; None: it is no policy's fault."""
    if kind == "consistency":
        return "work" if "declares itself work-conserving" in text else "consistency"
    return _OF_POLICY.get(kind or "")


@dataclass(frozen=True)
class Finding:
    """A broken property.

    Attributes
    ----------
    broken : str
        Of `PROPERTIES`.
    text : str
        What happened, with names and times.
    horizon_ns : int
        How long the world has to last for it.
    """

    broken: str
    text: str
    horizon_ns: int

    @property
    def signature(self) -> str:
        """What it has in common with others of its kind: the text without tasks, times and numbers."""
        text = re.sub(r"[\w-]+\[\d+\]|'[\w-]+'|\(task \d+[^)]*\)", "T", self.text)
        places = re.findall(r"\w[\w.]*\.c:\d+", text)
        return " ".join([self.broken, re.sub(r"0x[0-9a-f]+|\d[\d.,]*", "N", text), *places])


@dataclass(frozen=True)
class NeverWorse:
    """A metric that may not be worse than under another policy.

    Attributes
    ----------
    policy : BuiltPolicy
        The other one.
    metric : str
        Of the dictionary, a time or a count of which less is better, or one of which more is.
    share : float
        By how much it may be worse, such as 0.2.
    floor : float
        A difference below this is none, in the metric's unit.
    """

    policy: BuiltPolicy
    metric: str
    share: float
    floor: float = 0.0

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
    """What one world has shown.

    Attributes
    ----------
    finding : Finding or None
        The first property that it breaks.
    record_hash : str or None
        Of the run of the policy, where it left records.
    longest_wait_ns : int
        How near it came to a stall.
    interleaving : str
        The switches between CPUs that were made, where it failed and they are not too many.
    """

    finding: Finding | None
    record_hash: str | None
    longest_wait_ns: int
    interleaving: str = ""


class Laboratory:
    """The simulator with one policy, and a folder for what it leaves; to be closed.

    Parameters
    ----------
    built : BuiltPolicy
        The policy.
    properties : iterable of str
        Those that are held against it.
    never_worse : NeverWorse, optional
        For the property `worse`.
    """

    def __init__(
        self, built: BuiltPolicy, *, properties: Iterable[str], never_worse: NeverWorse | None = None
    ):
        self.built = built
        self.properties = frozenset(properties)
        self.never_worse = never_worse
        self._host = SimHost()
        self._folder = Path(tempfile.mkdtemp(prefix="schedlab-check-"))
        self._session = self._host.session(timeout_seconds=RUN_SECONDS)
        self._others = self._host.session(timeout_seconds=RUN_SECONDS)
        self._interleaving = InterleavingSession(timeout_seconds=RUN_SECONDS)

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
        shutil.rmtree(self._folder, ignore_errors=True)

    def try_world(self, world: World) -> Trial:
        """Run the policy in a world.

        Parameters
        ----------
        world : World
            As drawn or shrunk.

        Returns
        -------
        Trial
            What it has shown.

        Raises
        ------
        SpecError
            If it is no valid workload.
        """
        outcome, verdict = self._run(world)
        records = self._folder / "records.slr"
        record_hash = hash_file(records) if records.is_file() else None
        finding = self._of_outcome(outcome, world.horizon_ns) or self._of_verdict(verdict, world.horizon_ns)
        longest_wait_ns = int(verdict["metrics"].get("starvation_ns") or 0)
        if (
            finding is None and longest_wait_ns > SUSPECT_NS and "stall" in self.properties
            and world.horizon_ns not in (0, STALL_HORIZON_NS)
        ):  # fmt: skip
            outcome, _ = self._run(replace(world, horizon_ns=STALL_HORIZON_NS), is_judged=False)
            finding = self._of_outcome(outcome, STALL_HORIZON_NS)
        # With other knobs it is another policy, which may do worse.
        if finding is None and self.never_worse is not None and verdict["metrics"] and not world.settings:
            finding = self._worse(world, verdict["metrics"])
        if finding is not None and finding.broken not in self.properties:
            finding = None
        switches = outcome.answer.get("switches") if finding is not None else None
        return Trial(finding, record_hash, longest_wait_ns, switches or world.interleaving)

    def _run(
        self, world: World, *, is_judged: bool = True, other: BuiltPolicy | None = None
    ) -> tuple[Outcome, dict[str, Any]]:
        """What the simulator said, and what its records say."""
        workload = world.given or parse_workload(to_toml(world), name="world.toml")
        if world.horizon_ns:
            workload = replace(workload, horizon_ns=world.horizon_ns)
        program = compile_workload(workload, seed=world.seed)
        (self._folder / "program").write_bytes(program.data)
        built = other or replace(self.built, values=self.built.values | dict(world.settings))
        job = Job(
            label="check",
            policy=built,
            program=self._folder / "program",
            records=self._folder / "records.slr",
            nr_cpus=world.nr_cpus,
            seed=world.seed,
            tick_ns=world.tick_ns,
            options=tuple(
                (name, value)
                for name, value in (("--topology", world.topology), ("--interleave", world.interleaving))
                if value
            ),
        )
        if world.interleaving and other is None:
            outcome = self._interleaving.run(replace(job, policy=compile_for_races(built)))
        else:
            outcome = (self._session if other is None else self._others).run(job)
        verdict: dict[str, Any] = {"error": None, "error_kind": None, "metrics": {}}
        if is_judged and outcome.error is None:
            judge = Judge(latency_ns=0, work_conserving="work" in self.properties, tables_folder=None)
            verdict = judge.verdict(program, job.records, outcome)
        return outcome, verdict

    def _of_outcome(self, outcome: Outcome, horizon_ns: int) -> Finding | None:
        """What the simulator has found."""
        if outcome.error is None or outcome.error_kind == "timeout":
            return None  # too long to simulate: undecided
        broken = broken_by(outcome.error_kind, outcome.error)
        if broken is None:
            raise SchedlabError(f"the simulator failed ({outcome.error_kind}): {outcome.error}")
        return Finding(broken, outcome.error, horizon_ns)

    def _of_verdict(self, verdict: dict[str, Any], horizon_ns: int) -> Finding | None:
        """What the records show."""
        if verdict["error"] is None:
            return None
        text = verdict["error"].partition("withheld: ")[2] or verdict["error"]
        return Finding(broken_by("consistency", text) or "consistency", text, horizon_ns)

    def _worse(self, world: World, metrics: dict[str, Any]) -> Finding | None:
        """Whether the other policy does better in this world."""
        assert self.never_worse is not None
        name = find_metric(self.never_worse.metric).name
        _, verdict = self._run(replace(world, settings=(), interleaving=""), other=self.never_worse.policy)
        text = self.never_worse.compare(metrics.get(name), verdict["metrics"].get(name))
        return Finding("worse", text, world.horizon_ns) if text else None
