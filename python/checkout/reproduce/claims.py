# SPDX-License-Identifier: MIT
"""Decide claims: a verdict follows from a published figure and our interval.

        side of null    which way the claim points: what it says, else what its figure says
        holds           our whole interval lies on that side, further from null than what
                        counts as a difference, and wholly within a factor of the figure
        in direction    the whole interval lies on that side, but not wholly within the factor
        does not hold   it lies wholly outside, or reaches no effect and misses the figure
        not decidable   the effect is below the smallest step of the report's instrument
        cannot be tested  the interval covers what is claimed as well as no effect: too few
                        runs; or there are no runs, or one only, or the claim lacks something

A wide interval so never decides anything: it neither refutes a claim nor confirms one.
A point estimate decides nothing either: [0.088, 0.983] does not confirm 0.28.

Invariant: no verdict is written down anywhere; it is made here, from numbers.
Read next: steps.py; docs/statistics.md, for the intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schedlab.stats.inference import Interval, mean_interval

from .formula import HERE, Measure, MissingError, Sample
from .published import Formula, Range, Table, published_range
from .samples import Samples
from .spec import Claim

HOLDS, DIRECTION, FAILS, UNDECIDABLE, UNTESTED = (
    "holds",
    "holds in direction only",
    "does not hold",
    "not decidable by the report",
    "cannot be tested",
)
VERDICTS = (HOLDS, DIRECTION, FAILS, UNDECIDABLE, UNTESTED)


@dataclass(frozen=True)
class Decision:
    """A claim on one set of runs."""

    claim: Claim  #: What was decided.
    on: str  #: The set of runs; empty where the claim lacks what it takes.
    host: str  #: Where these ran.
    verdict: str  #: One of `VERDICTS`.
    reason: str  #: How it follows, in a sentence.
    published: Range | None = None  #: The report's figure, with all that rounding leaves open.
    ours: Interval | None = None  #: Ours, in the same unit.
    sample: Sample | None = None  #: Ours, seed by seed, and where it comes from.
    #: Smallest step of the report's instrument, in the unit of the claim; 0: not stated.
    resolution: float = 0.0

    def as_json(self, report: int) -> dict[str, Any]:
        """One entry of `--json`."""
        folders = list(self.sample.folders) if self.sample else []
        has_interval = self.ours is not None and self.ours.method != "single"
        return {
            "report": report, "claim": self.claim.name, "text": self.claim.text,
            "where": self.claim.where, "part": self.claim.part, "measure": self.claim.measure,
            "unit": self.claim.unit, "on": self.on, "host": self.host,
            "published": self.published.middle if self.published else None,
            "stated": self.claim.stated,
            "ours": self.ours.estimate if self.ours else None,
            "interval": [self.ours.low, self.ours.high] if self.ours and has_interval else None,
            "n": self.ours.n if self.ours else 0, "method": self.ours.method if self.ours else None,
            "values": list(self.sample.values) if self.sample else [],
            "verdict": self.verdict, "reason": self.reason, "test": rule_text(self.claim),
            "resolution": self.resolution or None, "also": [dict(each) for each in self.claim.also],
            "run": folders[0] if folders else None, "runs": folders,
        }  # fmt: skip


def published_value(claim: Claim, tables: Mapping[str, Table]) -> Range | None:
    """What a claim's published figure may have been before it was rounded."""
    if not claim.published:
        return None
    try:
        return published_range(claim.published)
    except ValueError:  # no number: a formula
        return Formula(claim.published).value(tables)


def side_of(claim: Claim, published: Range | None) -> str:
    """Which way a claim points."""
    if claim.null is None:
        return ""
    return claim.says or _figure_side(claim, published)


def _figure_side(claim: Claim, published: Range | None) -> str:
    """Which way the figure points by itself."""
    if published is None or claim.null is None:
        return ""
    if published.low > claim.null:
        return "above"
    return "below" if published.high < claim.null else "equal"


def contradicts_itself(claim: Claim, published: Range | None) -> bool:
    """Whether the report's text says one thing and its own figure another.

    >>> claim = Claim("c", "", "", "", None, (), null=1.0, says="below")
    >>> contradicts_itself(claim, Range(1.29, 1.31)), contradicts_itself(claim, Range(0.8, 0.9))
    (True, False)
    """
    if published is None or claim.null is None or not claim.says:
        return False
    if claim.says == "equal":
        return published.low > claim.null + claim.margin or published.high < claim.null - claim.margin
    return _figure_side(claim, published) != claim.says


def decide(claim: Claim, published: Range | None, ours: Interval, resolution: float = 0.0) -> tuple[str, str]:
    """Decide a claim.

    >>> claim = Claim("c", "", "", "", None, (), null=1.0)
    >>> decide(claim, Range(0.27, 0.28), Interval(0.28, 0.088, 0.983, 10, 0.95, "bca"))[0]
    'holds in direction only'
    >>> decide(claim, Range(0.27, 0.28), Interval(0.9, 0.7, 1.1, 10, 0.95, "bca"))[0]
    'does not hold'
    """
    if ours.method == "single":
        return UNTESTED, "one run has no interval; more seeds decide"
    side = side_of(claim, published)
    if not side:
        assert published is not None, "the claim was read without a test"
        return _decide_figure(claim, published, ours, resolution)
    assert claim.null is not None, "a side is one of null"
    if claim.null and resolution >= abs(claim.null):
        # Of a ratio: the quantity that it divides by is below one step of the clock.
        return (
            UNDECIDABLE,
            "what is compared is below one step of the report's instrument, which reads 0 against 0",
        )
    if side == "equal":
        return _decide_equal(claim, ours, resolution)
    return _decide_side(claim, published, ours, side, resolution)


def _decide_side(
    claim: Claim, published: Range | None, ours: Interval, side: str, resolution: float
) -> tuple[str, str]:
    """A claim of a direction, with or without a figure."""
    null, what = claim.null, f"no effect ({claim.null:g})"
    assert null is not None
    other = {"above": "below", "below": "above"}[side]
    sign = 1 if side == "above" else -1

    def depths(low: float, high: float) -> list[float]:
        """How far both ends lie on the claimed side of null; negative: on the other one."""
        return sorted((sign * (low - null), sign * (high - null)))

    nearest, furthest = depths(ours.low, ours.high)
    is_figure_on_it = _figure_side(claim, published) == side
    step = max(claim.minimum, resolution)
    if nearest > step:
        return _decide_size(claim, published, ours, side, what, is_figure_on_it=is_figure_on_it)
    if furthest < -step:
        return FAILS, f"our interval lies {other} {what}: the other way round"
    is_visible = published is not None and depths(published.low, published.high)[0] > resolution
    if resolution > claim.minimum and nearest >= -step and furthest <= step and not is_visible:
        return (
            UNDECIDABLE,
            f"our interval lies within {resolution:.3g} of {what}, less than one step of the report's instrument",
        )
    if furthest <= (step if is_visible else claim.minimum):
        return (
            FAILS,
            f"our interval does not lie {side} {what} by {step:.3g}: no difference that matters is seen",
        )
    if published is not None and is_figure_on_it and not _reaches(claim, published, ours):
        return FAILS, f"our interval reaches {what}, and does not meet the figure, within {claim.within:.0%}"
    return UNTESTED, f"our interval covers {what} as well as values {side} it: more runs decide"


def _decide_figure(claim: Claim, published: Range, ours: Interval, resolution: float) -> tuple[str, str]:
    """A claim of a number alone."""
    if published.low >= 0 and published.high < resolution and ours.low >= 0 and ours.high < resolution:
        return UNDECIDABLE, "both are below one step of the report's instrument, which reads 0 against 0"
    if _is_within(claim, published, ours):
        return HOLDS, f"our whole interval lies within {claim.within:.0%} of the figure"
    if published.low - resolution <= ours.low and ours.high <= published.high + resolution:
        return (
            UNDECIDABLE,
            "our interval differs from the figure by less than one step of the report's instrument",
        )
    if _reaches(claim, published, ours, resolution):
        return (
            UNTESTED,
            f"our interval reaches within {claim.within:.0%} of the figure, and further away: more runs decide",
        )
    return FAILS, f"our interval does not meet the figure, within {claim.within:.0%}"


def _decide_equal(claim: Claim, ours: Interval, resolution: float) -> tuple[str, str]:
    """A claim that nothing changes, as far as the report's instrument could tell."""
    assert claim.null is not None
    margin, what = max(claim.margin, resolution), f"no effect ({claim.null:g})"
    low, high = claim.null - margin, claim.null + margin
    if low <= ours.low and ours.high <= high:
        return HOLDS, f"our interval lies within {margin:.3g} of {what}"
    if ours.high < low or ours.low > high:
        return FAILS, f"our interval lies further than {margin:.3g} from {what}"
    return (
        UNTESTED,
        f"our interval reaches further than {margin:.3g} from {what}, and nearer: more runs decide",
    )


def _decide_size(
    claim: Claim, published: Range | None, ours: Interval, side: str, what: str, *, is_figure_on_it: bool
) -> tuple[str, str]:
    """A claim whose direction holds."""
    if published is None:
        return HOLDS, f"our interval lies {side} {what}, which is all that is claimed"
    if not is_figure_on_it:
        return (
            DIRECTION,
            f"our interval lies {side} {what}, as the text says; the report's own figure does not",
        )
    if _is_within(claim, published, ours):
        return HOLDS, f"our whole interval lies {side} {what}, and within {claim.within:.0%} of the figure"
    return (
        DIRECTION,
        f"our interval lies {side} {what}, but not wholly within {claim.within:.0%} of the figure",
    )


def _slack(claim: Claim, published: Range) -> tuple[float, float]:
    """What still is the figure: give or take a factor of 1 + within."""
    ends = [
        end * factor
        for end in (published.low, published.high)
        for factor in (1 + claim.within, 1 / (1 + claim.within))
    ]
    return min(ends), max(ends)


def _is_within(claim: Claim, published: Range, ours: Interval) -> bool:
    """Whether our interval meets the figure as a whole."""
    low, high = _slack(claim, published)
    return low <= ours.low and ours.high <= high


def _reaches(claim: Claim, published: Range, ours: Interval, resolution: float = 0.0) -> bool:
    """Whether the figure may still be true: our interval has a part of it."""
    low, high = _slack(claim, published)
    return ours.low <= high + resolution and low - resolution <= ours.high


def rule_text(claim: Claim) -> str:
    """Say what decides a claim, for those who would decide it otherwise."""
    if claim.lacks:
        return ""
    near = f"the whole interval within {claim.within:.0%} of the figure"
    if claim.null is None:
        return near
    side = claim.says or "on the figure's side of"
    if side == "equal":
        return f"the whole interval within {claim.margin:g} of {claim.null:g}"
    rule = f"the whole interval {side} {claim.null:g}, by {claim.minimum:g}"
    return f"{rule}, and within {claim.within:.0%} of the figure" if claim.published else rule


def decide_all(claims: Sequence[Claim], tables: Mapping[str, Table], samples: Samples) -> list[Decision]:
    """Decide every claim on every set of runs that it names."""
    decisions = []
    for claim in claims:
        published = published_value(claim, tables)
        if claim.lacks:
            decisions.append(Decision(claim, "", "", UNTESTED, claim.lacks, published))
        for on in claim.on:
            if on in samples.done:
                decisions.append(_decide_on(claim, on, published, samples))
    return decisions


def _decide_on(claim: Claim, on: str, published: Range | None, samples: Samples) -> Decision:
    """Decide a claim on one set of runs."""
    host = samples.done[on].runs.host
    assert claim.ours is not None
    try:
        sample = measure_on(claim.ours, on, samples)
        resolution = resolution_on(claim, on, samples)
    except MissingError as error:
        return Decision(claim, on, host, UNTESTED, str(error), published)
    ours = mean_interval(sample.values, minimum=sample.minimum)
    verdict, reason = decide(claim, published, ours, resolution)
    if sample.n_left_out:
        reason += f"; {sample.n_left_out} seeds are left out, since runs of theirs failed"
    return Decision(claim, on, host, verdict, reason, published, ours, sample, resolution)


def resolution_on(claim: Claim, on: str, samples: Samples) -> float:
    """Smallest step of the report's instrument, in the unit of a claim."""
    if not isinstance(claim.resolution, Measure):
        return claim.resolution
    return max(measure_on(claim.resolution, on, samples).values)


def measure_on(measure: Measure, on: str, samples: Samples) -> Sample:
    """Compute an expression where `run` stands for a set of runs."""

    def look_up(name: str, keys: tuple[str, ...]) -> Any:
        name = on if name == HERE else name
        if name not in samples.done:
            raise MissingError(f"the set of runs '{name}', which it is compared with, was left out")
        return samples.look_up(name, keys)

    return measure.sample(look_up)
