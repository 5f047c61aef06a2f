# SPDX-License-Identifier: MIT
"""Grade submissions, with all CPUs, going on where an earlier call has stopped.

        OUT/work/STUDENT.json      facts of a submission, with the key of all that they depend on
        OUT/work/baseline-*.json   facts of other policies
        OUT/work/STUDENT/          the submission alone, so that it can include no other

What tests are worth is not part of the key: points can be changed without a run.

Invariant: no submission's failure changes another's points.
Read next: outputs.py, what is written.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import paths
from ..errors import SchedlabError, UsageError
from ..files import write_text
from ..hosts.choose import unavailable_reason
from ..policy.wasm_build import simulator_module
from . import kernel
from .assignment import Assignment
from .decide import Outcome, decide_all
from .runs import LIMITS, Fact, do_examples, do_work, needs_of, start_worker
from .variants import COMMON, variants_of

if TYPE_CHECKING:
    from .example import Example

SUFFIX = ".bpf.c"
SUBMISSION_BYTES_MAX = 1 << 20
#: Workloads with their variants.
_Unit = Sequence[tuple[str, Sequence[int]]]
#: Counter-examples of one submission: the first failures say most.
EXAMPLES_MAX = 2
#: Variants of a baseline that one process does at a time.
CHUNK = 25


@dataclass(frozen=True)
class Submission:
    """What a student has handed in."""

    student: str  #: The student's id.
    path: Path  #: The file.
    text: bytes = b""  #: What it holds.
    error: str | None = None  #: Why it is no file to be graded.


@dataclass(frozen=True)
class Report:
    """What a submission is worth, and why."""

    submission: Submission  #: What was graded.
    outcomes: tuple[Outcome, ...]  #: In the order of the tests.
    facts: tuple[Fact, ...] = field(repr=False)  #: Of its runs.
    error: str | None  #: Why it does not compile.
    seconds: float  #: How long its runs took.
    examples: tuple[Example, ...] = ()  #: The smallest workloads on which it fails.

    @property
    def student(self) -> str:
        """The student's id."""
        return self.submission.student

    @property
    def points(self) -> float:
        """Of all tests together."""
        return round(sum(outcome.points for outcome in self.outcomes), 2)

    @property
    def n_lines(self) -> int:
        """Lines of the submission."""
        return count_lines(self.submission.text)


@dataclass(frozen=True)
class Grades:
    """Of a class: a report for each submission, and the facts of other policies by their name."""

    reports: list[Report]
    baselines: Mapping[str, Sequence[Fact]]


def read_submissions(
    files: Iterable[Path], student: str | None = None, suffix: str = SUFFIX
) -> list[Submission]:
    """Read what was handed in.

    One C file per student; `student` is the id where there is one file, otherwise the file's name without
    `suffix` is. They come in the order of the ids; none at all, or two of one student, is a UsageError.
    """
    found: dict[str, Submission] = {}
    for path in files:
        name = re.sub(r"(\.bpf)?\.(c|patch|diff)$", "", path.name) if student is None else student
        own = re.sub(r"[^\w.+@-]", "_", name).lstrip(".") or "_"
        if own in found:
            raise UsageError(f"{path}: {found[own].path} is of {own}, too; give each student one file")
        found[own] = _read(own, path)
    if not found:
        raise UsageError(f"no submission given; name the students' files, *{suffix}")
    if student is not None and len(found) > 1:
        raise UsageError("--student names the student of one file; leave it out for several")
    return [found[own] for own in sorted(found)]


def _read(student: str, path: Path) -> Submission:
    """One file; a link, a device or a folder is none."""
    if path.is_symlink() or not path.is_file():
        what = "no such file" if not path.exists() and not path.is_symlink() else "no plain file"
        return Submission(student, path, error=f"{path.name}: {what}")
    with path.open("rb") as file:
        text = file.read(SUBMISSION_BYTES_MAX + 1)
    if len(text) > SUBMISSION_BYTES_MAX:
        return Submission(student, path, error=f"{path.name}: larger than {SUBMISSION_BYTES_MAX} bytes")
    return Submission(student, path, text)


def count_lines(text: bytes) -> int:
    """Lines with code: neither blank nor comment alone; of a patch, those that it adds."""
    if text.startswith((b"diff ", b"--- ")):
        text = b"\n".join(line[1:] for line in text.splitlines() if re.match(rb"\+(?!\+\+ )", line))
    bare = re.sub(rb"/\*.*?\*/|//[^\n]*", lambda found: b"\n" * found[0].count(b"\n"), text, flags=re.DOTALL)
    return sum(bool(line.strip()) for line in bare.splitlines())


def grade(
    assignment: Assignment,
    submissions: Sequence[Submission],
    secret: bytes,
    out: Path,
    *,
    has_examples: bool = True,
    on_done: Callable[[str, int, int], None] | None = None,
) -> Grades:
    """Grade all submissions.

    Facts that `out` has of an earlier call with the same inputs are taken from there. `on_done` is called
    with a student and how many of how many are done. UnavailableError: there is no sandbox here;
    SchedlabError: a policy that submissions are compared with fails.
    """
    from ..errors import UnavailableError

    if reason := unavailable_reason("wasm"):
        raise UnavailableError(f"the sandbox is unavailable here: {reason}")
    if assignment.is_about_kernel and (reason := kernel.unavailable()):
        raise UnavailableError(f"the teaching kernel is unavailable here: {reason}")
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    key = _key(assignment, secret)
    variants = {each.student: variants_of(assignment, secret, each.student) for each in submissions}
    results = {each.student: _known(work / f"{each.student}.json", key, each.text) for each in submissions}
    todo = [each for each in submissions if each.error is None and results[each.student] is None]
    needed = sorted({number for numbers in variants.values() for number in numbers})
    baselines = {
        name: _known(_baseline_file(work, name), key, b"") or {"facts": []} for name in assignment.baselines
    }
    with _Pool(assignment, secret) as pool:
        _run_baselines(pool, assignment, baselines, needed)
        for name, result in baselines.items():
            _keep(_baseline_file(work, name), key, b"", result)
        n_done = len(submissions) - len(todo)
        for student, result in _run_submissions(pool, assignment, todo, variants, work):
            text = next(each.text for each in todo if each.student == student)
            _keep(work / f"{student}.json", key, text, result)
            results[student] = result
            n_done += 1
            if on_done:
                on_done(student, n_done, len(submissions))
        others = {name: [Fact(**fact) for fact in result["facts"]] for name, result in baselines.items()}
        reports = [_report(assignment, each, results[each.student], others) for each in submissions]
        if has_examples:
            reports = _with_examples(pool, assignment, reports, work, key)
    return Grades(reports, others)


def _report(
    assignment: Assignment,
    submission: Submission,
    result: Mapping[str, Any] | None,
    baselines: Mapping[str, Sequence[Fact]],
) -> Report:
    found = result or {"error": submission.error, "facts": [], "seconds": 0.0}
    facts = [Fact(**fact) for fact in found["facts"]]
    outcomes = decide_all(
        assignment, facts, baselines, n_lines=count_lines(submission.text), error=found["error"]
    )
    return Report(submission, tuple(outcomes), tuple(facts), found["error"], found["seconds"])


# ---- facts that are there -------------------------------------------------------


def _key(assignment: Assignment, secret: bytes) -> str:
    """All that a fact depends on, besides the policy."""
    works = [
        (
            graded.name,
            replace(graded.workload, path=None),
            graded.n_cpus,
            graded.is_in_kernel,
            needs_of(assignment, graded.name),
        )
        for graded in assignment.workloads.values()
    ]
    numbers = (assignment.n_seeds, assignment.n_variants, assignment.timeout_seconds, LIMITS)
    version = (paths.resource_root() / "VERSION").read_text(encoding="utf-8").strip()
    headers = sorted(paths.include_folder().rglob("*.h"))
    asked: tuple[object, ...] = (works, numbers, version)
    if assignment.is_about_kernel:
        programs = [
            (replace(each, path=Path(each.name)), each.path.read_text())
            for each in assignment.programs.values()
        ]
        headers += [Path(__file__).with_name("kernel.py"), *kernel.sources()]
        asked += (programs, assignment.patches, assignment.policy)
    digest = hashlib.sha256(repr(asked).encode())
    for part in (secret, simulator_module().read_bytes(), *(path.read_bytes() for path in headers)):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _known(path: Path, key: str, text: bytes) -> dict[str, Any] | None:
    """What an earlier call has found for the same submission; None where it is of others, or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found["result"] if found["key"] == _own_key(key, text) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(path: Path, key: str, text: bytes, result: Mapping[str, Any]) -> None:
    write_text(path, json.dumps({"key": _own_key(key, text), "result": result}) + "\n")


def _own_key(key: str, text: bytes) -> str:
    return hashlib.sha256(key.encode() + text).hexdigest()


def _baseline_file(work: Path, name: str) -> Path:
    """Facts of another policy, by its text: it may be changed between two calls."""
    from ..policy.find import load_policy

    policy = load_policy(name)
    return work / f"baseline-{policy.name}-{policy.content_hash[:16]}.json"


# ---- runs -----------------------------------------------------------------------


class _Pool:
    """Processes that are started when there is something to do."""

    def __init__(self, assignment: Assignment, secret: bytes):
        self.n_workers = os.cpu_count() or 1
        self._given = assignment, secret
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def submit(
        self, policy: str, works: Sequence[tuple[str, Sequence[int]]], *, is_trusted: bool
    ) -> Future[Any]:
        """Have a policy run on variants of workloads."""
        return self._start().submit(do_work, policy, works, is_trusted)

    def restart(self) -> None:
        """Start new processes for what comes."""
        if self._executor is not None:
            self._executor.shutdown()
        self._executor = None

    def submit_examples(self, policy: str, failures: Sequence[tuple[int, str, int]]) -> Future[Any]:
        """Have counter-examples looked for."""
        return self._start().submit(do_examples, policy, failures)

    def _start(self) -> ProcessPoolExecutor:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                self.n_workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=start_worker,
                initargs=self._given,
            )
        return self._executor


def _run_baselines(
    pool: _Pool, assignment: Assignment, baselines: Mapping[str, dict[str, Any]], needed: Sequence[int]
) -> None:
    """Run other policies on the variants that they have not been run on."""
    futures: list[tuple[str, Future[Any]]] = []
    for name, works in assignment.baselines.items():
        there = {(fact["workload"], fact["variant"]) for fact in baselines[name]["facts"]}
        for work in works:
            missing = [number for number in needed if (work, number) not in there]
            for first in range(0, len(missing), CHUNK):
                chunk = [(work, missing[first : first + CHUNK])]
                futures.append((name, pool.submit(name, chunk, is_trusted=True)))
    for name, future in futures:
        result = future.result()
        errors = [result["error"], *(fact["error"] for fact in result["facts"])]
        if error := next((each for each in errors if each), None):
            raise SchedlabError(f"{name}, with which submissions are compared, fails: {error}")
        baselines[name]["facts"] += result["facts"]


def _run_submissions(
    pool: _Pool,
    assignment: Assignment,
    todo: Sequence[Submission],
    variants: Mapping[str, Sequence[int]],
    work: Path,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run all submissions; each student and what was found, as they end."""
    names = [
        test_name
        for test_name in (*assignment.workloads, *assignment.programs)
        if any(test_name in test.workloads for test in assignment.tests)
    ]
    # A process that keeps a submission compiles it once; few submissions are split instead.
    # A kernel takes longer to build than most workloads to run.
    is_split = len(todo) < 2 * pool.n_workers and not assignment.is_about_kernel
    parts: dict[str, list[dict[str, Any]]] = {each.student: [] for each in todo}
    waiting: dict[Future[Any], tuple[Submission, _Unit]] = {}
    for each in todo:
        folder = work / each.student
        folder.mkdir(exist_ok=True)
        alone = folder / f"{each.student}{assignment.suffix}"
        alone.write_bytes(each.text)
        works = [(name, variants[each.student]) for name in names]
        for unit in [[one] for one in works] if is_split else [works]:
            waiting[pool.submit(str(alone), unit, is_trusted=False)] = each, unit
    n_units = len(names) if is_split else 1
    for each, result in _as_they_end(pool, waiting, work, assignment.suffix):
        found = parts[each.student]
        found.append(result)
        if len(found) == n_units:
            yield each.student, _joined(found, work / each.student, names)


def _as_they_end(
    pool: _Pool, waiting: dict[Future[Any], tuple[Submission, _Unit]], work: Path, suffix: str
) -> Iterator[tuple[Submission, dict[str, Any]]]:
    """What `do_work` returns, with the submission that it is of."""
    lost: list[tuple[Submission, _Unit]] = []
    while waiting:
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            each, unit = waiting.pop(future)
            try:
                yield each, future.result()
            except BrokenProcessPool:
                lost.append((each, unit))
    # When a process dies, all that the others had to do is lost, too: alone, each shows whether it was to blame.
    for each, unit in lost:
        pool.restart()
        alone = work / each.student / f"{each.student}{suffix}"
        try:
            yield each, pool.submit(str(alone), unit, is_trusted=False).result()
        except BrokenProcessPool:
            error = "the process that ran it has died, as for want of memory"
            facts = [asdict(Fact(name, COMMON, error, "host")) for name, _ in unit]
            yield each, {"error": None, "facts": facts, "seconds": 0.0}


def _without_paths(text: str, folder: Path) -> str:
    """A message as students may read it: files by their names alone."""
    for path in (folder, folder.resolve(), paths.include_folder()):
        text = text.replace(f"{path}/", "").replace(str(path), "its folder")
    return text.replace("; give more with --timeout", "")


def _with_examples(
    pool: _Pool, assignment: Assignment, reports: Sequence[Report], work: Path, key: str
) -> list[Report]:
    """Add the smallest workloads on which submissions fail, of failures that students may see."""
    from .example import Example

    futures: dict[str, Future[Any]] = {}
    found: dict[str, list[dict[str, Any]]] = {}
    kept: dict[str, tuple[Path, bytes]] = {}
    for report in reports:
        # What is tried there runs in the sandbox, on workloads that it can make smaller.
        failures = [each for each in _failures(report) if not _is_in_kernel(assignment, each[1])]
        if not failures:
            continue
        student = report.student
        text = report.submission.text + repr((failures, assignment.tests)).encode()
        kept[student] = work / f"{student}-examples.json", text
        known = _known(kept[student][0], key, text)
        if known is not None:
            found[student] = known["examples"]
        else:
            futures[student] = pool.submit_examples(str(work / student / f"{student}{SUFFIX}"), failures)
    for student, future in futures.items():
        try:
            found[student] = future.result()
        except BrokenProcessPool:
            continue  # a page without one
        _keep(kept[student][0], key, kept[student][1], {"examples": found[student]})
    return [
        replace(report, examples=tuple(Example(**each) for each in found.get(report.student, ())))
        for report in reports
    ]


def _is_in_kernel(assignment: Assignment, name: str) -> bool:
    return name in assignment.programs or assignment.workloads[name].is_in_kernel


def _failures(report: Report) -> list[tuple[int, str, int]]:
    """Number of the test, workload and variant of the first failures that students may see."""
    from .example import SHOWN

    failed = {fact.workload for fact in report.facts if fact.error is not None}
    found = []
    for number, outcome in enumerate(report.outcomes):
        if outcome.test.rule not in SHOWN or outcome.is_hidden:
            continue
        for part in outcome.parts:
            # A run that fails is shown once, not for each test that it is worth nothing in.
            is_repeated = part.workload in failed and outcome.test.rule != "runs"
            if part.variant is not None and part.level != 0 and not part.is_hidden and not is_repeated:
                found.append((number, part.workload, part.variant))
                break
    return found[:EXAMPLES_MAX]


def _joined(parts: Sequence[Mapping[str, Any]], folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """What the parts of one submission found, with no path of this machine in it."""
    facts = [fact for part in parts for fact in part["facts"]]
    facts.sort(key=lambda fact: (names.index(fact["workload"]), fact["variant"]))
    error = next((part["error"] for part in parts if part["error"]), None)
    for fact in facts:
        fact["error"] = fact["error"] and _without_paths(fact["error"], folder)
    return {
        "error": error and _without_paths(error, folder),
        "facts": facts,
        "seconds": round(sum(part["seconds"] for part in parts), 3),
    }
