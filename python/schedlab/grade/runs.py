# SPDX-License-Identifier: MIT
"""Run a submission on its variants and note what tests ask about.

        Bench, one per process:  session (sandbox), programs of variants, a scratch folder
        run()  ->  program -> simulator -> records -> metrics, waits, shares, ends: one `Fact`

What is about the teaching kernel has a session of its own there (kernel.py).
A submission gets the sandbox; the other policy of a comparison is the teacher's and runs
natively where that can be, which is faster and gives the same records.

Invariant: what a submission does ends its own runs only; a fact depends on nothing but the
submission, the variant and this version of schedlab.
Read next: decide.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..calibration import DEFAULT_CALIBRATION
from ..check.trial import broken_by
from ..errors import SchedlabError, UnavailableError
from ..hosts.choose import engine_here
from ..hosts.host import Job, Outcome, Session
from ..hosts.kernel.host import KernelHost, KernelSession
from ..hosts.kinds import device_of
from ..hosts.sim import SimHost
from ..hosts.wasm import WasmHost
from ..metrics.fairness import deserved_ns
from ..metrics.timeline import Timeline
from ..policy.build import BuiltPolicy, build_policy
from ..policy.find import Policy, load_policy
from ..program.file import Program
from ..records.file import Kind, read_records
from ..runs.case import work_options
from ..runs.judge import Judge
from .assignment import Assignment, Graded, GradedProgram, Test
from .variants import COMMON, EXACT, make_variant, seed_of

#: Instructions of a submission in one callback and in one run, memory, and records. A policy takes
#: some hundred in a callback; at a limit, a run takes seconds.
LIMITS = (10**8, 2 * 10**9, 1 << 30, 32 << 20)
#: A submission that has used up so much in one run is not tried on other workloads.
ENDLESS = ("spin", "timeout", "host", "skipped")
#: Decisions of a run that are kept for comparison with others'.
MARKS = 256


@dataclass
class Fact:
    """What one run has shown."""

    workload: str  #: Of the assignment.
    variant: int  #: Its number.
    #: `error`, `error_kind`: Why it failed.
    error: str | None = None
    error_kind: str | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)  #: Those that tests ask about.
    #: Name of the task that waited longest for a CPU at once, and how long, in nanoseconds.
    wait: list[Any] = field(default_factory=list)
    idle: str | None = None  #: When a CPU was idle beside a task that might run there.
    #: By attribute: name, CPU time received and deserved of each task, in nanoseconds.
    shares: dict[str, list[Any]] = field(default_factory=dict)
    #: Of a variant with exact answers: when each task ended; -1: it did not.
    ends_ns: dict[str, int] = field(default_factory=dict)
    #: Instructions of the policy, and decisions: times a CPU began with another task.
    cost: list[int] = field(default_factory=list)
    #: Of the common variant: a sample of its decisions, hashed.
    marks: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)  #: What a program in the kernel printed.


@dataclass(frozen=True)
class Needs:
    """What tests ask about a workload's runs."""

    metrics: tuple[str, ...]
    shares: tuple[str, ...]
    has_idle: bool
    has_exact: bool
    has_seeds: bool


def needs_of(assignment: Assignment, name: str) -> Needs:
    """What all tests of an assignment together ask about a workload."""
    return _needs([test for test in assignment.tests if name in test.workloads])


def needs_of_test(test: Test) -> Needs:
    """What one test asks about a run."""
    return _needs([test])


def _needs(tests: Sequence[Test]) -> Needs:
    return Needs(
        metrics=tuple(sorted({test.metric for test in tests if test.metric})),
        shares=tuple(sorted({test.shares_by for test in tests if test.shares_by})),
        has_idle=any(test.rule == "work_conserving" for test in tests),
        has_exact=any(test.rule == "finish" for test in tests),
        has_seeds=any(test.rule != "finish" for test in tests),
    )


class Bench:
    """What one process needs to run policies on variants; to be closed."""

    def __init__(self, assignment: Assignment, secret: bytes):
        self.assignment = assignment
        self._secret = secret
        self._folder = Path(tempfile.mkdtemp(prefix="schedlab-grade-"))
        self._programs: dict[tuple[str, int], tuple[Program, list[str], Path]] = {}
        timeout = assignment.timeout_seconds
        self._sandbox = WasmHost(LIMITS).session(timeout_seconds=timeout)
        self._native = SimHost().session(timeout_seconds=timeout) if engine_here()[0] == "native" else None
        self._kernel: tuple[Path, KernelSession] | None = None

    def close(self) -> None:
        """End the simulators and remove the folder."""
        self._sandbox.close()
        self._close_kernel()
        if self._native is not None:
            self._native.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def folder(self) -> Path:
        """For files that nobody needs later."""
        return self._folder

    def seed(self, name: str, variant: int) -> int:
        """Seed of a variant of a workload."""
        return seed_of(self._secret, self.assignment.workloads[name], variant)

    def build(self, submission: str, *, is_trusted: bool) -> BuiltPolicy:
        """Compile a policy, and the kernel that is asked for; PolicyError where that fails.

        Of a patch, it is the policy that schedules the patched kernel.
        """
        is_native = is_trusted and self._native is not None
        is_patch = not is_trusted and bool(self.assignment.patches)
        with contextlib.redirect_stderr(io.StringIO()):
            policy = self.assignment.policy if is_patch else submission
            loaded = load_policy(policy, is_inside=not is_trusted)
            built = build_policy(loaded, engine="native" if is_native else "wasm")
            if self.assignment.is_about_kernel:
                self._boot(submission, loaded, is_patch=is_patch, is_trusted=is_trusted)
        return built

    def _boot(self, submission: str, policy: Policy, *, is_patch: bool, is_trusted: bool) -> None:
        """Build a kernel, and open a session for it in place of the one before."""
        from . import kernel

        self._close_kernel()
        timeout = self.assignment.timeout_seconds
        if is_trusted:
            self._kernel = self._folder, KernelHost().session(timeout_seconds=timeout)
            return
        folder = Path(tempfile.mkdtemp(prefix="kernel-", dir=self._folder))
        image = kernel.build(
            folder,
            policy=None if is_patch else policy.path,
            patch=Path(submission) if is_patch else None,
            allowed=self.assignment.patches,
            programs=list(self.assignment.programs.values()),
        )
        machines = folder / "machines"
        machines.mkdir()
        self._kernel = folder, kernel.session(image, machines, timeout_seconds=timeout)

    def _close_kernel(self) -> None:
        if self._kernel is not None:
            folder, session = self._kernel
            self._kernel = None
            session.close()
            if folder != self._folder:
                shutil.rmtree(folder, ignore_errors=True)

    def run_all(self, built: BuiltPolicy, name: str, variants: Iterable[int]) -> list[Fact]:
        """Run a policy on variants of a workload; the first one that fails is the last."""
        if name in self.assignment.programs:
            return [self._run_program(self.assignment.programs[name], built)]
        graded = self.assignment.workloads[name]
        needs = needs_of(self.assignment, name)
        wanted = [*([EXACT] if needs.has_exact else []), *(variants if needs.has_seeds else [])]
        facts: list[Fact] = []
        for variant in wanted:
            facts.append(self._run_variant(built, graded, variant, needs))
            if facts[-1].error is not None:
                break
        return facts

    def _run_program(self, program: GradedProgram, built: BuiltPolicy) -> Fact:
        from .kernel import printed_lines

        assert self._kernel is not None
        lines, error, error_kind = printed_lines(self._kernel[1], program, built.policy.name)
        return Fact(program.name, COMMON, error, error_kind or None, lines=lines)

    def _run_variant(self, built: BuiltPolicy, graded: Graded, variant: int, needs: Needs) -> Fact:
        key = (graded.name, variant)
        if key not in self._programs:
            program, names = make_variant(self._secret, graded, variant)
            path = self._folder / f"{len(self._programs)}.slprog"
            path.write_bytes(program.data)
            self._programs[key] = program, names, path
        program, names, path = self._programs[key]
        seed = seed_of(self._secret, graded, variant)
        return self.run(built, graded, program, path, names, needs=needs, variant=variant, seed=seed)

    def run(
        self,
        built: BuiltPolicy,
        graded: Graded,
        program: Program,
        path: Path,
        names: Sequence[str],
        *,
        needs: Needs,
        variant: int,
        seed: int,
        records: Path | None = None,
    ) -> Fact:
        """Run a policy on a program.

        `path` is the program's file, `names` what its tasks are called, by pid - 1; `variant` is for the
        fact, `seed` for what the policy draws. Records are kept where `records` says so.
        """
        workload = graded.workload
        job = Job(
            label=f"{graded.name}, {built.policy.name}",
            policy=built,
            program=path,
            records=records or self._folder / "records.slr",
            n_cpus=graded.n_cpus,
            seed=seed,
            tick_ns=workload.tick_ns,
            options=work_options(are_roots_woken=workload.are_roots_woken),
        )
        job.records.unlink(missing_ok=True)
        is_native = built.shared_object.suffix == ".so"
        session: Session = self._native if is_native and self._native is not None else self._sandbox
        if graded.is_in_kernel:
            assert self._kernel is not None
            session = self._kernel[1]
        outcome = session.run(job)
        fact = Fact(graded.name, variant)
        columns: list[dict[str, Any]] = []
        host = KernelHost() if graded.is_in_kernel else None
        found = self._judged(program, job, outcome, columns, is_idle_held=needs.has_idle, host=host)
        if needs.has_idle and broken_by(found["error_kind"], found["error"] or "") == "work":
            fact.idle = found["error"].partition("withheld: ")[2]
            found = self._judged(program, job, outcome, columns, is_idle_held=False, host=host)
        if found["error"] is not None:
            fact.error, fact.error_kind = found["error"], found["error_kind"]
            return fact
        self._fill(fact, program, job, found["metrics"], columns[-1], names, needs)
        cost = outcome.answer.get("policy_cost", {})
        fact.cost = [sum(each["sum"] for each in cost.values()), max(1, int(found["metrics"]["switches"]))]
        return fact

    @staticmethod
    def _judged(
        program: Program,
        job: Job,
        outcome: Outcome,
        columns: list[dict[str, Any]],
        *,
        is_idle_held: bool,
        host: KernelHost | None,
    ) -> dict[str, Any]:
        judge = Judge(
            latency_ns=host.latency_ns(job) if host else 0,
            work_conserving=is_idle_held,
            tables_folder=None,
            tolerance_ns=host.tolerance_ns(job) if host else 0,
            has_exact_work=host is None,
            calibration=host.calibration(job) if host else DEFAULT_CALIBRATION,
            device=None if host else device_of(job),
            on_tasks=columns.append,
        )
        return judge.verdict(program, job.records, outcome)

    @staticmethod
    def _fill(
        fact: Fact,
        program: Program,
        job: Job,
        metrics: dict[str, Any],
        columns: dict[str, Any],
        names: Sequence[str],
        needs: Needs,
    ) -> None:
        """Note what tests ask of a good run."""
        fact.metrics = {name: metrics.get(name) for name in needs.metrics}
        called = [names[pid - 1] for pid in columns["task"].tolist()]
        waits = columns["wait_ns_max"].tolist()
        longest = max(range(len(waits)), key=waits.__getitem__, default=None)
        fact.wait = ["no task", 0] if longest is None else [called[longest], waits[longest]]
        if needs.has_exact and fact.variant < COMMON:
            fact.ends_ns = dict(zip(called, columns["end_ns"].tolist(), strict=True))
        if needs.shares or fact.variant == COMMON:
            timeline = Timeline(read_records(job.records))
            for by in needs.shares:
                given = program.tasks[by]
                # Without tickets, a task's weight counts, as in policies.
                due = deserved_ns(timeline, weight=np.where(given > 0, given, program.tasks["weight"]))
                rows = zip(called, columns["run_ns"].tolist(), due.tolist(), strict=True)
                fact.shares[by] = [list(row) for row in rows]
            if fact.variant == COMMON:
                fact.marks = _marks(timeline)


def _marks(timeline: Timeline) -> list[int]:
    """A sample of decisions, the same for equal ones: which task began where and when."""
    events = timeline.records.events
    ran = events[events["kind"] == Kind.RUN]
    texts = zip(ran["t_ns"].tolist(), ran["task"].tolist(), ran["cpu"].tolist(), strict=True)
    hashes = {int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=6).digest()) for row in texts}
    return sorted(hashes)[:MARKS]


# ---- in a process of its own ----------------------------------------------------

_bench: Bench | None = None


def start_worker(assignment: Assignment, secret: bytes) -> None:
    """Make the bench of this process."""
    global _bench
    import atexit

    _bench = Bench(assignment, secret)
    atexit.register(_bench.close)


def do_work(policy: str, works: Sequence[tuple[str, Sequence[int]]], is_trusted: bool) -> dict[str, Any]:
    """Compile a policy and run it; what a process of the pool is asked.

    `works` are workloads with their variants; `is_trusted` policies may run outside of the sandbox. Returns
    `facts` as JSON has them, `error`, why it does not compile, and `seconds` on the wall clock.
    """
    assert _bench is not None
    began = time.monotonic()
    try:
        built = _bench.build(policy, is_trusted=is_trusted)
    except UnavailableError:
        raise  # no submission's fault
    except SchedlabError as error:
        return {"error": str(error), "facts": [], "seconds": time.monotonic() - began}
    facts: list[Fact] = []
    for name, variants in works:
        if facts and facts[-1].error_kind in ENDLESS:
            facts.append(Fact(name, COMMON, "not tried, since another workload did not end", "skipped"))
            continue
        facts += _bench.run_all(built, name, variants)
    seconds = time.monotonic() - began
    return {"error": None, "facts": [asdict(fact) for fact in facts], "seconds": seconds}


def do_examples(policy: str, failures: Sequence[tuple[int, str, int]]) -> list[dict[str, Any]]:
    """Find a counter-example for each failed test; what a process of the pool is asked.

    `failures` are number of the test, workload and variant; what was found comes as JSON has it.
    """
    from .example import find_example

    assert _bench is not None
    built = _bench.build(policy, is_trusted=False)
    return [
        asdict(example)
        for test, name, variant in failures
        if (example := find_example(_bench, built, test, name, variant)) is not None
    ]
