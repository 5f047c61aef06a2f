# SPDX-License-Identifier: MIT
"""Warnings about samples, each a class with a hint on what to do.

A mean with its interval is a summary; these checks say when it hides something:
too few runs, few distinct values, two peaks, an outlier, a drift over time.
They look at the values of one metric over the runs of one policy; `survivors`
looks at two policies, and at the tasks that their metrics leave out.

Each check raises a false alarm on at most about 1 % of well-behaved samples;
docs/statistics.md has the measured rates, those on skewed values included.
Read next: inference.py for the numbers that these are about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..units import counted
from .dip import CRITICAL, critical_dip, dip
from .inference import BOOTSTRAP_MIN
from .special import ndtr

#: Largest distance from the median, in MADs scaled to a standard deviation,
#: that 1 % of normal samples of size n exceed; from 20,000 draws each or more.
CRITICAL_DISTANCE = {
    6: 10.16, 8: 7.85, 10: 6.94, 12: 6.29, 15: 5.95, 20: 5.23, 30: 4.80, 50: 4.50,
    100: 4.31, 200: 4.29, 500: 4.36, 1000: 4.47,
}  # fmt: skip
#: A normal distribution's standard deviation over its MAD.
MAD_TO_SD = 1.4826
#: Below this a test for peaks or drift finds nothing and says nothing.
SHAPE_MIN = 8
DRIFT_LEVEL = 0.01
#: Of larger samples so many evenly spaced values are looked at, which is quick
#: and makes the tests more cautious.
SHAPE_MAX = 2000


class SampleWarning(UserWarning):
    """Base of all warnings about a sample.

    `text` is what was seen, with the numbers, `hint` what the user can do; `kind` is one word for JSON.
    """

    kind = "warning"
    hint = ""

    def as_json(self) -> dict[str, Any]:
        """`kind`, `text` and `hint`."""
        return {"kind": self.kind, "text": str(self), "hint": self.hint}


class TooFewSamplesWarning(SampleWarning):
    """So few runs that intervals rest on the assumption of normal values."""

    kind = "too-few"
    hint = f"use --seeds 10 or more; from {BOOTSTRAP_MIN} on intervals are bootstrapped"


class TiesWarning(SampleWarning):
    """Most runs share a few values."""

    kind = "ties"
    hint = "read the values themselves; a mean of few distinct values is a mix of cases"


class BimodalWarning(SampleWarning):
    """The runs form two groups, so that the mean describes none of them."""

    kind = "bimodal"
    hint = "show every run; look for what the groups differ in before comparing means"


class OutlierWarning(SampleWarning):
    """Single runs far from all others."""

    kind = "outliers"
    hint = "look at these runs; keep them unless a cause outside the experiment is found"


class DriftWarning(SampleWarning):
    """Values rise or fall in the order in which the runs were done."""

    kind = "drift"
    hint = "let the machine settle (warm-up, fixed frequency), randomise the order, run again"


class SurvivorsWarning(SampleWarning):
    """Two policies' metrics are of different tasks, since some tasks did not get that far."""

    kind = "survivors"
    hint = (
        "the times of the rest are left out, so a policy that starves tasks looks good; give the "
        "workload a longer horizon, until all get as far, or compare waiting times, which are of "
        "all tasks"
    )


#: What a task has done that counts in a metric: number of them in a run, in
#: words, and how the names of the metrics begin that leave the others out.
SURVIVAL = (
    ("tasks_ended", "ended", ("turnaround_ns_", "slowdown_")),
    ("tasks_started", "ran at all", ("response_ns_",)),
)


def survivors(
    pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], *, label_a: str, label_b: str
) -> tuple[SurvivorsWarning, list[str]] | None:
    """Find metrics that two sides compute over different numbers of tasks.

    Parameters
    ----------
    pairs : sequence of (dict, dict), shape (n_pairs,)
        Metrics of runs of the same work, by name, with `tasks`, and with
        `tasks_ended` and `tasks_started` where they are known.
    label_a, label_b : str
        What the text calls the sides.

    Returns
    -------
    (SurvivorsWarning, list of str) or None
        The warning and the metrics it is about; None where as many tasks got as far
        on both sides of every pair.

    Notes
    -----
    Equal numbers may still be of different tasks: of those a run says nothing.

    Examples
    --------
    >>> a = {"tasks": 9, "tasks_ended": 9, "turnaround_ns_mean": 5.0}
    >>> warning, names = survivors([(a, a | {"tasks_ended": 4})], label_a="rr", label_b="fifo")
    >>> print(warning, names)
    9 of 9 tasks ended under rr, 4 of 9 under fifo ['turnaround_ns_mean']
    """
    texts, names = [], []
    for count, words, starts in SURVIVAL:
        if any(run.get(known) is None for pair in pairs for run in pair for known in (count, "tasks")):
            continue
        if all(a[count] == b[count] for a, b in pairs):
            continue
        totals = [
            f"{sum(run[count] for run in side):,} of {sum(run['tasks'] for run in side):,}"
            for side in zip(*pairs, strict=True)
        ]
        texts.append(f"{totals[0]} tasks {words} under {label_a}, {totals[1]} under {label_b}")
        names += [
            name
            for name in pairs[0][0]
            if name.startswith(starts) and any(run.get(name) is not None for pair in pairs for run in pair)
        ]
    if not names:
        return None
    return SurvivorsWarning("; ".join(texts)), names


def outliers(x: ArrayLike) -> list[int]:
    """Find values too far from the median for their number.

    Parameters
    ----------
    x : array_like of float, shape (n,)
        One value per run; any unit.

    Returns
    -------
    list of int
        Their positions, in order; empty for fewer than six values, or where
        more than half are equal, which leaves no scale.

    Raises
    ------
    ValueError
        If `x` is not 1-D or not finite.

    Notes
    -----
    Distance from the median in median absolute deviations [1]_, with a bound
    that grows as samples shrink, so that 1 % of *samples*, not of values, are
    suspected wrongly where values are normal. Positive values must be far out
    on a logarithmic scale too, since latencies are skewed by nature; exponential
    and lognormal samples are then suspected no more often. Skewed values around
    0 have no logarithm and are suspected far too often. Two outliers in a
    sample of six hide each other.

    References
    ----------
    .. [1] B. Iglewicz, D. Hoaglin, *How to Detect and Handle Outliers*, 1993.

    Examples
    --------
    >>> outliers([10, 11, 10.5, 9.8, 10.2, 30, 9.9, 10.1])
    [5]
    """
    values = _sample(x)
    if len(values) < min(CRITICAL_DISTANCE):
        return []
    far = _far(values)
    if (values > 0).all():
        far &= _far(np.log(values))
    return np.flatnonzero(far).tolist()


def _sample(x: ArrayLike) -> np.ndarray:
    """Values as float64 of shape (n,)."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"x must be 1-D and finite (got shape {values.shape})")
    return values


def _thin(values: np.ndarray) -> np.ndarray:
    """At most SHAPE_MAX values, evenly spaced by position."""
    if len(values) <= SHAPE_MAX:
        return values
    return values[np.linspace(0, len(values) - 1, SHAPE_MAX).astype(int)]


def _far(values: np.ndarray) -> np.ndarray:
    """Which values are further from the median than their number allows."""
    distance = np.abs(values - np.median(values))
    unit = MAD_TO_SD * np.median(distance)
    sizes = list(CRITICAL_DISTANCE)
    bound = np.interp(math.log(len(values)), np.log(sizes), [CRITICAL_DISTANCE[size] for size in sizes])
    return distance > bound * unit if unit > 0 else np.zeros(len(values), bool)


def is_bimodal(x: ArrayLike) -> bool:
    """Whether a sample has more than one peak, by the dip test at 1 %.

    Parameters
    ----------
    x : array_like of float, shape (n,)
        One value per run; any unit.

    Returns
    -------
    bool
        False also for fewer than eight values, and where fewer than three
        quarters of them are distinct.

    Raises
    ------
    ValueError
        If `x` is not 1-D or not finite.

    Notes
    -----
    Calibrated on uniform values, the least favourable case, so that false alarms
    on peaked distributions are far rarer than 1 %. Not valid for counts, whose
    lattice the test takes for peaks: hence the limit on ties. Two normal peaks
    five standard deviations apart are found in a third of samples of 20; eight
    apart, almost always.

    References
    ----------
    .. [1] J. A. Hartigan, P. M. Hartigan, "The Dip Test of Unimodality",
       Annals of Statistics 13, 1985.

    Examples
    --------
    >>> is_bimodal([1.0, 1.1, 1.2, 1.3, 1.4, 9.0, 9.1, 9.2, 9.3, 9.4])
    True
    """
    values = _sample(x)
    n = len(values)
    if n < max(SHAPE_MIN, min(CRITICAL)) or len(np.unique(values)) < 0.75 * n:
        return False
    values = _thin(np.sort(values))
    return dip(values) > critical_dip(len(values))


def drift_p_value(x: ArrayLike) -> float:
    """Test whether values rise or fall in the order given.

    Parameters
    ----------
    x : array_like of float, shape (n,)
        One value per run, in the order in which the runs were done; any unit.

    Returns
    -------
    float
        Two-sided p-value of the Mann-Kendall test; 1 for fewer than eight
        values, or where all are equal.

    Raises
    ------
    ValueError
        If `x` is not 1-D or not finite.

    Notes
    -----
    Normal approximation with corrections for ties and continuity. Sees monotone
    trends only, not a wave. Meaningless in virtual time, where runs have no
    order. Values that depend on their neighbours for other reasons, such as
    blocks of runs of one policy, cause false alarms.

    References
    ----------
    .. [1] H. B. Mann, "Nonparametric Tests Against Trend", Econometrica 13, 1945.
    .. [2] M. G. Kendall, *Rank Correlation Methods*, 4th ed., 1970.

    Examples
    --------
    >>> drift_p_value([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) < 0.001
    True
    """
    values = _thin(_sample(x))
    n = len(values)
    if n < SHAPE_MIN:
        return 1.0
    score = int(np.triu(np.sign(values[None, :] - values[:, None]), 1).sum())
    ties = np.unique(values, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()) / 18
    if variance == 0 or score == 0:
        return 1.0
    return float(2 * ndtr(-(abs(score) - 1) / math.sqrt(variance)))


def examine(
    x: ArrayLike, *, order: ArrayLike | None = None, show: Callable[[float], str] | None = None
) -> list[SampleWarning]:
    """Look for what a summary of a sample hides.

    Parameters
    ----------
    x : array_like of float, shape (n,)
        One value per run; any unit.
    order : array_like of float, shape (n,), optional
        When each run was done, on any scale; given for hosts in real time only.
    show : callable, optional
        Writes a value with its unit; default: six digits without.

    Returns
    -------
    list of SampleWarning
        Ready for `warnings.warn`, or for JSON by `as_json`; empty where all
        values are equal, since that is certain.

    Raises
    ------
    ValueError
        If `x` is not 1-D or not finite, or `order` has another shape.

    Notes
    -----
    Each check alone is wrong on about 1 % of good samples, so among a hundred
    metrics some warnings are to be expected.

    Examples
    --------
    >>> [warning.kind for warning in examine([3, 1, 2])]
    ['too-few']
    """
    values = _sample(x)
    n, distinct = len(values), len(np.unique(values))
    if order is not None and np.shape(order) != values.shape:
        raise ValueError(f"order must have shape {values.shape} (got {np.shape(order)})")
    if distinct == 1 and n > 1:
        return []
    found: list[SampleWarning] = []
    if n < BOOTSTRAP_MIN:
        found.append(TooFewSamplesWarning(f"only {counted(n, 'run')}"))
        return found
    if distinct <= n / 2:
        found.append(TiesWarning(f"only {distinct} distinct values in {n} runs"))
    if is_bimodal(values):
        looked_at = _thin(np.sort(values))
        found.append(
            BimodalWarning(
                f"the {n} runs form two groups (dip {dip(looked_at):.3f}, bound "
                f"{critical_dip(len(looked_at)):.3f})"
            )
        )
    if where := outliers(values):
        show = show or "{:g}".format
        which = ", ".join(show(float(values[i])) for i in where[:5])
        found.append(
            OutlierWarning(
                f"{len(where)} of {n} runs far from the median {show(float(np.median(values)))}: {which}"
            )
        )
    if order is not None:
        p = drift_p_value(values[np.argsort(order, kind="stable")])
        if p <= DRIFT_LEVEL:
            found.append(DriftWarning(f"the values drift with the order of the runs (p = {p:.2g})"))
    return found
