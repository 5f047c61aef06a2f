# SPDX-License-Identifier: MIT
"""What the facts of a submission are worth.

        facts of a test's workloads -> Part per workload -> Outcome of the test

A limit holds for each seed, or for what is computed of all of them: a comparison is decided
by the 95 % interval of the ratio, paired by variant, so that luck earns nothing. Without
`each` a test is worth what its worst workload is.

Invariant: no points for a workload of which a run failed.
Read next: grade.py; outputs.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..metrics.dictionary import DICTIONARY
from ..stats.inference import compare_paired
from ..stats.sentences import show_number, show_time
from ..units import format_duration
from .assignment import RULES, Assignment, Level, Test
from .runs import Fact
from .variants import EXACT


@dataclass(frozen=True)
class Part:
    """What a test found on one workload."""

    workload: str  #: Empty for a rule about the file.
    level: int | None  #: Of the test's levels, the strictest that holds; None: none does.
    text: str  #: What was seen, beside what was asked.
    is_hidden: bool = False  #: Whether students may see it.
    variant: int | None = None  #: The variant on which it was seen, where it is one.


@dataclass(frozen=True)
class Outcome:
    """What a test is worth."""

    test: Test  #: The test.
    points: float  #: Of `test.points`.
    parts: tuple[Part, ...] = field(default_factory=tuple)  #: In the order of the workloads.

    @property
    def is_full(self) -> bool:
        """Whether nothing is missing."""
        return self.points >= self.test.points

    @property
    def is_hidden(self) -> bool:
        """Whether a student may see nothing of it but its points."""
        return self.test.is_hidden or (bool(self.parts) and all(part.is_hidden for part in self.parts))


def decide_all(
    assignment: Assignment,
    facts: Sequence[Fact],
    baselines: Mapping[str, Sequence[Fact]],
    *,
    n_lines: int,
    error: str | None,
) -> list[Outcome]:
    """Decide every test for one submission.

    `facts` are of the submission's runs, `baselines` of other policies' on the same variants at least;
    `error` says why the submission, of `n_lines`, does not compile. Outcomes come in the order of the
    tests.
    """
    found: list[Outcome] = []
    for test in assignment.tests:
        if error is not None:
            hidden = [assignment.is_hidden(name) for name in test.workloads]
            is_hidden = bool(hidden) and all(hidden)
            found.append(Outcome(test, 0.0, (Part("", None, "it does not compile", is_hidden),)))
            continue
        if test.rule == "lines_max":
            parts = [_limited("", n_lines, test, f"{n_lines} lines")]
        else:
            parts = [
                _part(assignment, test, name, [fact for fact in facts if fact.workload == name], baselines)
                for name in test.workloads
            ]
        found.append(Outcome(test, _points(test, parts), tuple(parts)))
    return found


def _points(test: Test, parts: Sequence[Part]) -> float:
    """Of all workloads together."""
    each = [0.0 if part.level is None else test.levels[part.level].points for part in parts]
    return round(sum(each) / len(each), 2) if test.is_split else min(each)


def _part(
    assignment: Assignment,
    test: Test,
    name: str,
    facts: Sequence[Fact],
    baselines: Mapping[str, Sequence[Fact]],
) -> Part:
    """One workload of a test."""
    is_hidden = assignment.is_hidden(name)
    own = [fact for fact in facts if (fact.variant == EXACT) == (test.rule == "finish")]
    failed = next((fact for fact in facts if fact.error is not None), None)
    if failed is not None or not own:
        text = failed.error if failed is not None and failed.error else "no run"
        return Part(name, None, text, is_hidden, failed.variant if failed is not None else None)
    part = apply(test, name, own, baselines)
    return Part(name, part.level, part.text, is_hidden, part.variant)


def apply(test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]) -> Part:
    """Hold good runs of one workload against a test's rule."""
    return _RULES[test.rule](test, name, facts, baselines)


def level_of(levels: Sequence[Level], value: float, *, is_upward: bool = False) -> int | None:
    """Strictest level whose limit a value keeps; upward: is at least."""
    for number, level in enumerate(levels):
        assert level.limit is not None
        if (value >= level.limit) if is_upward else (value <= level.limit):
            return number
    return None


def _limited(name: str, value: float, test: Test, text: str, variant: int | None = None) -> Part:
    """A value that may be at most so much."""
    level = level_of(test.levels, value)
    limit = test.levels[0].limit
    assert limit is not None
    return Part(name, level, f"{text}, at most {limit:,.0f}" if level != 0 else text, variant=variant)


def _runs(test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]) -> Part:
    return Part(name, 0, f"{len(facts)} runs")


def _wait_max(test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]) -> Part:
    worst = max(facts, key=lambda fact: fact.wait[1])
    level = level_of(test.levels, worst.wait[1])
    limit = test.levels[0].limit
    assert limit is not None
    text = f"{worst.wait[0]} waits {show_time(worst.wait[1])} at once"
    asked = "" if level == 0 else f", allowed is {format_duration(int(limit))}"
    return Part(name, level, text + asked, variant=worst.variant)


def _work_conserving(
    test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]
) -> Part:
    idle = next((fact for fact in facts if fact.idle), None)
    if idle is None or idle.idle is None:
        return Part(name, 0, f"no CPU idle beside a task in {len(facts)} runs")
    return Part(name, None, idle.idle.partition(", yet the policy")[0], variant=idle.variant)


def worst_share(test: Test, fact: Fact) -> tuple[float, str]:
    """How far the share of a task is from what it deserves, as a part of that, and in words."""
    rows = [
        row for row in fact.shares[test.shares_by] if row[2] > 0 and (not test.tasks or row[0] in test.tasks)
    ]
    off, name, got, due = max(
        ((abs(got / due - 1), name, got, due) for name, got, due in rows), default=(0.0, "", 0, 0.0)
    )
    return (
        off,
        f"{name} gets {show_time(got)} of CPU time and deserves {show_time(due)}: {100 * off:.1f} % off",
    )


def _shares(test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]) -> Part:
    worst = max(facts, key=lambda fact: worst_share(test, fact)[0])
    off, text = worst_share(test, worst)
    level = level_of(test.levels, off)
    limit = test.levels[0].limit
    assert limit is not None
    return Part(
        name, level, text + ("" if level == 0 else f", allowed is {100 * limit:g} %"), variant=worst.variant
    )


def _finish(test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]) -> Part:
    ends = facts[0].ends_ns
    wrong = [task for task, end_ns in test.finish_ns.items() if ends.get(task) != end_ns]
    if not wrong:
        return Part(name, 0, f"{len(test.finish_ns)} tasks end exactly when they should", variant=EXACT)
    texts = [
        f"{task} ends at {format_duration(ends[task]) if ends.get(task, -1) >= 0 else 'no time'}, "
        f"right is {format_duration(test.finish_ns[task])}"
        for task in wrong[:3]
    ]
    return Part(name, None, "; ".join(texts), variant=EXACT)


def _mean(test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]) -> Part:
    values = [value for fact in facts if (value := fact.metrics[test.metric]) is not None]
    if not values:
        return Part(name, None, f"{test.metric} is not defined in any run")
    is_upward = test.rule == "at_least"
    mean = sum(values) / len(values)
    level = level_of(test.levels, mean, is_upward=is_upward)
    word = "at least" if is_upward else "at most"
    asked = show_number(test.metric, test.levels[0].limit)
    text = f"{test.metric} is {show_number(test.metric, mean)} on average"
    return Part(name, level, text + ("" if level == 0 else f", asked is {word} {asked}"))


def _better_than(
    test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]
) -> Part:
    others = {fact.variant: fact for fact in baselines[test.baseline] if fact.workload == name}
    pairs = []
    for fact in facts:
        own, other = fact.metrics[test.metric], others[fact.variant].metrics.get(test.metric)
        if own is not None and other is not None:
            pairs.append((other, own))
    if len(pairs) < 2:
        return Part(name, None, f"{test.metric}: {len(pairs)} pairs of runs decide nothing")
    (found,) = compare_paired([[a for a, _ in pairs]], [[b for _, b in pairs]])
    ratio, baseline = found.ratio, test.baseline.rpartition("/")[2].removesuffix(".bpf.c")
    if ratio is None:
        return Part(name, None, f"{test.metric} has no ratio to that of {baseline}")
    is_lower = DICTIONARY[test.metric].direction == "lower"
    gains = [1 - ratio.high, 1 - ratio.low] if is_lower else [ratio.low - 1, ratio.high - 1]
    # A limit of 0 % asks for better, not for as good.
    level = level_of(test.levels, gains[0], is_upward=True) if gains[0] > 0 else None
    limit = test.levels[0].limit
    assert limit is not None
    text = (
        f"{test.metric} is {show_number(test.metric, found.mean_b)}, under {baseline} "
        f"{show_number(test.metric, found.mean_a)}: {_gain(gains[0])} to {_gain(gains[1])} "
        f"(95 % interval over {found.n} seeds)"
    )
    return Part(
        name, level, text + ("" if level == 0 else f", asked is {100 * limit:g} % better for certain")
    )


def _gain(gain: float) -> str:
    return f"{100 * abs(gain):.0f} % {'better' if gain >= 0 else 'worse'}"


def _cost_max(test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]) -> Part:
    cost = sum(fact.cost[0] for fact in facts) / sum(fact.cost[1] for fact in facts)
    return _limited(name, cost, test, f"{cost:,.0f} instructions per decision")


def _prints(test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]) -> Part:
    left = iter(facts[0].lines)
    for number, pattern in enumerate(test.prints):
        if not any(re.fullmatch(pattern, line) for line in left):
            after = f" after '{test.prints[number - 1]}'" if number else ""
            last = "; ".join(facts[0].lines[-3:]) or "nothing"
            return Part(name, None, f"prints no line '{pattern}'{after}; it ends with: {last}")
    return Part(name, 0, f"prints {len(test.prints)} lines as asked")


_RULES = {
    "runs": _runs,
    "wait_max": _wait_max,
    "work_conserving": _work_conserving,
    "shares": _shares,
    "finish": _finish,
    "at_most": _mean,
    "at_least": _mean,
    "better_than": _better_than,
    "cost_max": _cost_max,
    "prints": _prints,
}
assert _RULES.keys() | {"lines_max"} == RULES.keys()
