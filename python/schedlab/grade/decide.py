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

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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
            parts = [_lines_max(test, n_lines)]
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
    return replace(apply(test, name, own, baselines), is_hidden=is_hidden)


def apply(test: Test, name: str, facts: Sequence[Fact], baselines: Mapping[str, Sequence[Fact]]) -> Part:
    """Hold good runs of one workload against a test's rule."""
    others = [fact for fact in baselines.get(test.baseline, ()) if fact.workload == name]
    return replace(_RULES[test.rule](test, facts, others), workload=name)


def level_of(levels: Sequence[Level], value: float, *, is_upward: bool = False) -> int | None:
    """Strictest level whose limit a value keeps; upward: is at least."""
    for number, level in enumerate(levels):
        assert level.limit is not None
        if (value >= level.limit) if is_upward else (value <= level.limit):
            return number
    return None


def _limited(test: Test, value: float, text: str, asked: str, **more: Any) -> Part:
    """A value that has a limit, which is told where the strictest is not kept."""
    level = level_of(test.levels, value, **more)
    return Part("", level, text if level == 0 else f"{text}, {asked}")


# ---- rules: of good runs of one workload, and of another policy's ------------------


def _lines_max(test: Test, n_lines: int) -> Part:
    return _limited(test, n_lines, f"{n_lines} lines", f"at most {test.limit:,.0f}")


def _runs(test: Test, facts: Sequence[Fact], others: Sequence[Fact]) -> Part:
    return Part("", 0, f"{len(facts)} runs")


def _wait_max(test: Test, facts: Sequence[Fact], others: Sequence[Fact]) -> Part:
    worst = max(facts, key=lambda fact: fact.wait[1])
    text = f"{worst.wait[0]} waits {show_time(worst.wait[1])} at once"
    part = _limited(test, worst.wait[1], text, f"allowed is {format_duration(int(test.limit))}")
    return replace(part, variant=worst.variant)


def _work_conserving(test: Test, facts: Sequence[Fact], others: Sequence[Fact]) -> Part:
    idle = next((fact for fact in facts if fact.idle), None)
    if idle is None or idle.idle is None:
        return Part("", 0, f"no CPU idle beside a task in {len(facts)} runs")
    return Part(
        "", None, idle.idle.partition(", as under no work-conserving policy")[0], variant=idle.variant
    )


def worst_share(test: Test, fact: Fact) -> tuple[float, str]:
    """How far the share of a task is from what it deserves, as a part of that, and in words."""
    rows = [
        row for row in fact.shares[test.shares_by] if row[2] > 0 and (not test.tasks or row[0] in test.tasks)
    ]
    off, name, got, due = max(
        ((abs(got / due - 1), name, got, due) for name, got, due in rows), default=(0.0, "", 0, 0.0)
    )
    text = f"{name} gets {show_time(got)} of CPU time and deserves {show_time(due)}: {100 * off:.1f} % off"
    return off, text


def _shares(test: Test, facts: Sequence[Fact], others: Sequence[Fact]) -> Part:
    worst = max(facts, key=lambda fact: worst_share(test, fact)[0])
    part = _limited(test, *worst_share(test, worst), f"allowed is {100 * test.limit:g} %")
    return replace(part, variant=worst.variant)


def _finish(test: Test, facts: Sequence[Fact], others: Sequence[Fact]) -> Part:
    ends = facts[0].ends_ns
    wrong = [task for task, end_ns in test.finish_ns.items() if ends.get(task) != end_ns]
    if not wrong:
        return Part("", 0, f"{len(test.finish_ns)} tasks end exactly when they should", variant=EXACT)
    texts = [
        f"{task} ends at {format_duration(ends[task]) if ends.get(task, -1) >= 0 else 'no time'}, "
        f"right is {format_duration(test.finish_ns[task])}"
        for task in wrong[:3]
    ]
    return Part("", None, "; ".join(texts), variant=EXACT)


def _mean(test: Test, facts: Sequence[Fact], others: Sequence[Fact]) -> Part:
    values = [value for fact in facts if (value := fact.metrics[test.metric]) is not None]
    if not values:
        return Part("", None, f"{test.metric} is not defined in any run")
    mean, is_upward = sum(values) / len(values), test.rule == "at_least"
    asked = f"asked is {'at least' if is_upward else 'at most'} {show_number(test.metric, test.limit)}"
    text = f"{test.metric} is {show_number(test.metric, mean)} on average"
    return _limited(test, mean, text, asked, is_upward=is_upward)


def _better_than(test: Test, facts: Sequence[Fact], others: Sequence[Fact]) -> Part:
    by_variant = {fact.variant: fact for fact in others}
    pairs = []
    for fact in facts:
        own, other = fact.metrics[test.metric], by_variant[fact.variant].metrics.get(test.metric)
        if own is not None and other is not None:
            pairs.append((other, own))
    if len(pairs) < 2:
        return Part("", None, f"{test.metric}: {len(pairs)} pairs of runs decide nothing")
    (found,) = compare_paired([[a for a, _ in pairs]], [[b for _, b in pairs]])
    ratio, baseline = found.ratio, test.baseline.rpartition("/")[2].removesuffix(".bpf.c")
    if ratio is None:
        return Part("", None, f"{test.metric} has no ratio to that of {baseline}")
    is_lower = DICTIONARY[test.metric].direction == "lower"
    gains = [1 - ratio.high, 1 - ratio.low] if is_lower else [ratio.low - 1, ratio.high - 1]
    text = (
        f"{test.metric} is {show_number(test.metric, found.mean_b)}, under {baseline} "
        f"{show_number(test.metric, found.mean_a)}: {_gain(gains[0])} to {_gain(gains[1])} "
        f"(95 % interval over {found.n} seeds)"
    )
    # A limit of 0 % asks for better, not for as good.
    certain = gains[0] if gains[0] > 0 else -math.inf
    return _limited(
        test, certain, text, f"asked is {100 * test.limit:g} % better for certain", is_upward=True
    )


def _gain(gain: float) -> str:
    return f"{100 * abs(gain):.0f} % {'better' if gain >= 0 else 'worse'}"


def _cost_max(test: Test, facts: Sequence[Fact], others: Sequence[Fact]) -> Part:
    cost = sum(fact.cost[0] for fact in facts) / sum(fact.cost[1] for fact in facts)
    return _limited(test, cost, f"{cost:,.0f} instructions per decision", f"at most {test.limit:,.0f}")


def _prints(test: Test, facts: Sequence[Fact], others: Sequence[Fact]) -> Part:
    left = iter(facts[0].lines)
    for number, pattern in enumerate(test.prints):
        if not any(re.fullmatch(pattern, line) for line in left):
            after = f" after '{test.prints[number - 1]}'" if number else ""
            last = "; ".join(facts[0].lines[-3:]) or "nothing"
            return Part("", None, f"prints no line '{pattern}'{after}; it ends with: {last}")
    return Part("", 0, f"prints {len(test.prints)} lines as asked")


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
