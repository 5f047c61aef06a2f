# SPDX-License-Identifier: MIT
"""Draw questions about small task sets; the simulator has the answers, and a reason for each step.

        seed, kind -> jobs -> a run of the policy -> stretches of CPU time -> answer, reasons

A set is drawn again where textbooks would not agree: two jobs with equally much left, or
one that arrives just when another stops.

Must stay true: an answer is read from the records of a run, never computed from the rule.
Read next: quiz_formats.py, which writes them; tests/grade/test_quiz.py, which holds them
against the rules, written down anew.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ..errors import SchedlabError, UsageError, did_you_mean

#: By kind of question: policies that it is asked of.
KINDS = {
    "turnaround": ("fifo", "sjf", "srtf", "rr"),
    "response": ("fifo", "sjf", "srtf", "rr"),
    "gantt": ("rr", "srtf"),
    "level": ("mlfq",),
}
QUESTIONS_MAX = 200
RULES = {
    "fifo": "first come, first served",
    "sjf": "shortest job first, without preemption",
    "srtf": "shortest remaining time first, with preemption",
    "rr": "round robin",
    "mlfq": "a multi-level feedback queue",
}
_CHOICE = {
    "fifo": "it arrived first",
    "sjf": "it is the shortest",
    "srtf": "it has the least left",
    "rr": "it is at the head of the queue",
    "mlfq": "it is at the head of the highest level that has a job",
}
_TOP_LEVEL = 3
_DRAWS_MAX = 1000
_MS = 1_000_000


@dataclass(frozen=True)
class Work:
    """A job: a name, when it arrives, and how much CPU time it needs; in ms."""

    name: str
    arrival_ms: int
    burst_ms: int


@dataclass(frozen=True)
class Stretch:
    """A job has the CPU from one moment to another; in ms."""

    name: str
    begin_ms: int
    end_ms: int


@dataclass(frozen=True)
class Question:
    """One question with its answer."""

    #: `kind`, `policy`: What is asked, and of which policy.
    kind: str
    policy: str
    slice_ms: int  #: Slice of round robin, or the allotment of the highest level; 0: none.
    jobs: tuple[Work, ...]  #: The task set.
    text: str  #: The question.
    answer: str  #: A number without its unit, or names with blanks between.
    unit: str  #: Of the answer; empty for names and levels.
    reasons: tuple[str, ...]  #: How one comes to it, step by step.


def draw_quiz(*, n_questions: int, seed: int, kinds: Sequence[str] = ()) -> list[Question]:
    """Draw questions, the kinds in turn.

    `n_questions` is 1 to 200, `kinds` are of `KINDS`, empty for all; equal seeds give equal questions.
    UsageError: one of them is out of range; UnavailableError: the simulator cannot be used.
    """
    if not 1 <= n_questions <= QUESTIONS_MAX:
        raise UsageError(f"--questions must be from 1 to {QUESTIONS_MAX} (got {n_questions})")
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(
                f"--kind {kind}: unknown{did_you_mean(kind, KINDS)}; known are {', '.join(KINDS)}"
            )
    chosen = list(kinds) or list(KINDS)
    with tempfile.TemporaryDirectory(prefix="schedlab-quiz-") as scratch:
        return [
            _draw(chosen[i % len(chosen)], random.Random(f"{seed}/{i}"), Path(scratch))
            for i in range(n_questions)
        ]


def _draw(kind: str, rng: random.Random, scratch: Path) -> Question:
    """One question about a set that has one answer."""
    policy = rng.choice(KINDS[kind])
    for _ in range(_DRAWS_MAX):
        slice_ms = {"rr": rng.randint(2, 4), "mlfq": rng.choice((5, 10))}.get(policy, 0)
        jobs = _level_jobs(rng, slice_ms) if kind == "level" else _jobs(rng)
        stretches = run_jobs(jobs, policy, slice_ms, scratch)
        if _is_ambiguous(jobs, policy, stretches):
            continue
        if kind == "level":
            return _ask_level(rng, policy, slice_ms, jobs, stretches)
        return _ask(kind, policy, slice_ms, jobs, stretches)
    raise SchedlabError(f"no set of jobs for a question about {policy} in {_DRAWS_MAX} draws")


def _jobs(rng: random.Random) -> tuple[Work, ...]:
    """Four jobs, so that a mean has two decimals at most."""
    arrivals = [0, *sorted(rng.sample(range(1, 10), 3))]
    bursts = rng.sample(range(2, 10), 4)
    return tuple(Work(name, *each) for name, *each in zip("ABCD", arrivals, bursts, strict=True))


def _level_jobs(rng: random.Random, quantum_ms: int) -> tuple[Work, ...]:
    """Jobs that are there from the start and compute for long."""
    return tuple(Work(name, 0, rng.randint(4, 12) * quantum_ms) for name in "ABC"[: rng.randint(2, 3)])


def run_jobs(jobs: Sequence[Work], policy: str, slice_ms: int, scratch: Path) -> list[Stretch]:
    """Run jobs in the simulator, on one CPU: who has it when, in order of time."""
    from ..metrics.timeline import Timeline
    from ..plots.gantt import RAN, slices_of
    from ..records.file import read_records
    from ..runs.run import make_plan, run_plan

    tasks = "".join(
        f'[[task]]\nname = "{job.name}"\narrival = "{job.arrival_ms}ms"\nburst = "run"\n'
        f'phases = [{{run = "{job.burst_ms}ms"}}]\n'
        for job in jobs
    )
    workload = scratch / "jobs.toml"
    workload.write_text(f'[workload]\ntick = "1ms"\njitter = "0ms"\n{tasks}', encoding="utf-8")
    knob = {"rr": "slice_ns", "mlfq": "quantum_ns"}.get(policy)
    settings = [f"{policy}.{knob}={slice_ms}ms"] if knob else []
    plan = make_plan([str(workload)], [policy], scratch / "runs", n_seeds=1, cpus=1, settings=settings)
    (run,) = run_plan(plan).runs
    if run["status"] != "ok":
        raise SchedlabError(f"the simulator's run for a question failed: {run['error']}")
    found = slices_of(Timeline(read_records(Path(run["directory"]) / "records.slr")))
    ran = sorted(
        (int(begin), int(end), int(pid))
        for pid, begin, end, state in zip(found.pid, found.begin_ns, found.end_ns, found.state, strict=True)
        if state == RAN
    )
    return [Stretch(jobs[pid - 1].name, begin // _MS, end // _MS) for begin, end, pid in ran]


def left_of(jobs: Sequence[Work], stretches: Sequence[Stretch], at_ms: int) -> dict[str, int]:
    """CPU time that each job still needs at a moment; in ms."""
    had = dict.fromkeys((job.name for job in jobs), 0)
    for each in stretches:
        had[each.name] += max(0, min(each.end_ms, at_ms) - each.begin_ms)
    return {job.name: job.burst_ms - had[job.name] for job in jobs}


def _waiting(jobs: Sequence[Work], stretches: Sequence[Stretch], at_ms: int) -> dict[str, int]:
    """Those that have arrived and are not done, with what they need."""
    left = left_of(jobs, stretches, at_ms)
    return {job.name: left[job.name] for job in jobs if job.arrival_ms <= at_ms and left[job.name]}


def _is_ambiguous(jobs: Sequence[Work], policy: str, stretches: Sequence[Stretch]) -> bool:
    """Whether two readings of the rule give two answers."""
    stops = {each.end_ms for each in stretches}
    if any(job.arrival_ms in stops for job in jobs if job.arrival_ms):
        return True
    if policy not in ("sjf", "srtf"):
        return False
    moments = {each.begin_ms for each in stretches}
    moments |= {job.arrival_ms for job in jobs} if policy == "srtf" else set()
    waiting = [list(_waiting(jobs, stretches, at_ms).values()) for at_ms in moments]
    return any(len(set(left)) < len(left) for left in waiting)


# ---- questions ------------------------------------------------------------------


def _setting(policy: str, slice_ms: int, jobs: Sequence[Work]) -> str:
    """The task set in words."""
    if all(job.arrival_ms == 0 for job in jobs):
        which = ", ".join(f"{job.name} ({job.burst_ms} ms)" for job in jobs)
        text = f"At 0 ms these jobs arrive, in this order: {which}. "
    else:
        which = "; ".join(f"{job.name} at {job.arrival_ms} ms, {job.burst_ms} ms" for job in jobs)
        text = f"Jobs arrive and need CPU time as follows: {which}. "
    text += f"One CPU schedules them by {RULES[policy]}"
    if policy == "rr":
        text += f" with a slice of {slice_ms} ms; a job that arrives goes to the tail of the queue"
    if policy == "mlfq":
        text += (
            f" with the levels 3 (the highest) to 0. A job begins at level 3. It may use {slice_ms} ms there, {2 * slice_ms} ms "
            f"at level 2 and {4 * slice_ms} ms at level 1; then it goes one level down, to the tail. At level 0 "
            "a slice is 10 ms. Nothing raises it again"
        )
    return f"{text}. A switch costs nothing. "


def _ask(kind: str, policy: str, slice_ms: int, jobs: tuple[Work, ...], stretches: list[Stretch]) -> Question:
    """A question about the whole run."""
    steps = tuple(_steps(policy, slice_ms, jobs, stretches))
    setting = _setting(policy, slice_ms, jobs)
    if kind == "gantt":
        order = [each.name for i, each in enumerate(stretches) if not i or each.name != stretches[i - 1].name]
        text = setting + (
            "In which order do jobs have the CPU? Write a name for each stretch, with blanks between, such as A B A; "
            "a job that goes on at once is one stretch."
        )
        return Question(kind, policy, slice_ms, jobs, text, " ".join(order), "", steps)
    first = {each.name: each.begin_ms for each in reversed(stretches)}
    last = {each.name: each.end_ms for each in stretches}
    moment, word = (last, "ends at") if kind == "turnaround" else (first, "first runs at")
    values = [moment[job.name] - job.arrival_ms for job in jobs]
    mean = Fraction(sum(values), len(values))
    sums = "; ".join(
        f"{job.name} {word} {moment[job.name]} ms and arrived at {job.arrival_ms} ms: {value} ms"
        for job, value in zip(jobs, values, strict=True)
    )
    answer = f"{float(mean):g}"
    of = "arrival to end" if kind == "turnaround" else "arrival to first run"
    text = f"{setting}What is the mean {kind} time ({of}), in ms?"
    total = f"{sums}. Mean: ({' + '.join(map(str, values))}) / {len(values)} = {answer} ms."
    return Question(kind, policy, slice_ms, jobs, text, answer, "ms", (*steps, total))


def _ask_level(
    rng: random.Random, policy: str, slice_ms: int, jobs: tuple[Work, ...], stretches: list[Stretch]
) -> Question:
    """A question about one moment, within an allotment and not at its end."""
    end = stretches[-1].end_ms
    asked = [
        (at_ms, job)
        for at_ms in range(1, end)
        for job in jobs
        if 0 < (had := job.burst_ms - left_of(jobs, stretches, at_ms)[job.name]) < job.burst_ms
        and had % slice_ms
    ]
    at_ms, job = rng.choice(asked)
    had = job.burst_ms - left_of(jobs, stretches, at_ms)[job.name]
    level = level_of(had, slice_ms)
    text = f"{_setting(policy, slice_ms, jobs)}At which level (0 to 3) is job {job.name} at {at_ms} ms?"
    until = [each for each in stretches if each.begin_ms < at_ms]
    total = f"At {at_ms} ms, {job.name} has had {had} ms of CPU time, which is within level {level}."
    reasons = (*_steps(policy, slice_ms, jobs, until), total)
    return Question("level", policy, slice_ms, jobs, text, str(level), "", reasons)


def level_of(had_ms: int, quantum_ms: int) -> int:
    """The level of a job that has had so much CPU time and never blocked.

    >>> [level_of(had, 10) for had in (9, 10, 29, 30, 69, 70, 500)]
    [3, 2, 2, 1, 1, 0, 0]
    """
    level, bound = _TOP_LEVEL, quantum_ms
    while level and had_ms >= bound:
        level -= 1
        bound += quantum_ms << (_TOP_LEVEL - level)
    return level


def _steps(policy: str, slice_ms: int, jobs: Sequence[Work], stretches: Sequence[Stretch]) -> Iterator[str]:
    """Each stretch in words: who could run, who does and why, and how it ends."""
    burst = {job.name: job.burst_ms for job in jobs}
    for each in stretches:
        waiting = _waiting(jobs, stretches, each.begin_ms)
        left = waiting[each.name] - (each.end_ms - each.begin_ms)
        others = [
            f"{name} (level {level_of(burst[name] - ms, slice_ms)})"
            if policy == "mlfq"
            else f"{name} ({ms} ms left)"
            for name, ms in waiting.items()
            if name != each.name
        ]
        why = f"{_CHOICE[policy]}, before {', '.join(others)}" if others else "no other job is there"
        end = "It ends"
        if left and policy == "rr":
            end = f"Its slice of {slice_ms} ms is over, {left} ms left"
        elif left and policy == "mlfq":
            end = f"It is now at level {level_of(burst[each.name] - left, slice_ms)}, {left} ms left"
        elif left:
            end = f"It is preempted by a job that has less than its {left} ms left"
        yield f"{each.begin_ms} to {each.end_ms} ms: {each.name} runs, since {why}. {end}."
