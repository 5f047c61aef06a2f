# SPDX-License-Identifier: MIT
"""Intervals, tests and effect sizes for runs that are paired by seed.

One value per run goes in: the run's own mean, p99 or count. Values *within* a
run are correlated and are never pooled here. A deterministic host is replicated
over seeds; to repeat a seed there adds a copy, not a sample.

What is random (the bootstrap) is drawn from a seed that is kept in the result.

Must stay true: the coverage and the false-alarm rates in docs/statistics.md are
those that tests/python/test_stats.py measures.
Read next: warnings.py, which says when not to trust these numbers; runs/compare.py,
which applies them to runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .bootstrap import ROUNDING, bca_of_means, bca_of_ratios
from .special import stdtr, stdtrit

CONFIDENCE = 0.95
#: Resamples of a bootstrap; odd by one, so that quantiles fall on them.
NR_RESAMPLES = 9_999
SEED = 1
#: Fewer samples than this get a Student interval: a bootstrap of five values
#: has 126 distinct resamples, too few for the tails.
BOOTSTRAP_MIN = 6
#: More than this get one too: means of so many are normal, and a table of all
#: resamples would fill the memory.
BOOTSTRAP_MAX = 1000


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval."""

    estimate: float  #: In the unit of the samples, or 1 for a ratio.
    #: `low`, `high`: Ends of the interval, same unit; NaN where `method` is `"single"`.
    low: float
    high: float
    n: int  #: Number of samples (pairs, for a paired interval).
    confidence: float  #: Coverage that was asked for.
    #: `"bca"`, `"student"` (2 to 5 or over 1,000), `"deterministic"` (all samples are equal, so the width is
    #: 0) or `"single"` (one sample, no interval).
    method: str
    #: `seed`, `n_resamples`: Of the bootstrap; None where nothing random was done.
    seed: int | None = None
    n_resamples: int | None = None


@dataclass(frozen=True)
class Paired:
    """What the pairs of one metric say about two policies; see `compare_paired`."""

    n: int  #: Number of pairs.
    #: `mean_a`, `mean_b`: Means of the two sides, in the unit of the metric.
    mean_a: float
    mean_b: float
    difference: Interval  #: Of the mean of b - a, same unit.
    #: Of mean_b / mean_a; None where the values do not allow one: negative ones, or a mean of a so near 0
    #: that resamples reach it.
    ratio: Interval | None
    #: Two-sided, for "the sides are exchangeable within each pair", not yet adjusted for other comparisons.
    #: None: nothing to test, since there is one pair, or the two sides are equal in every pair.
    p_value: float | None
    test: str  #: `"student"`, `"sign-flip"`, `"fisher"` or `"none"`.
    #: Probability that a run of b has a larger value than one of a, plus half that of a tie; 0.5 where
    #: neither is larger.
    vargha_delaney: float
    cliffs_delta: float  #: The same on a scale from -1 to 1.
    #: Mean of the differences over their standard deviation (d_z); None where that is 0.
    standardised: float | None


# ---- checks of arguments ----------------------------------------------------


def _rows(values: ArrayLike, name: str) -> np.ndarray:
    """Samples as float64 of shape (n_rows, n)."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name} must have shape (n_rows, n >= 1) (got {array.shape})")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; leave undefined values out, pair by pair")
    return array


def _row(values: ArrayLike, name: str) -> np.ndarray:
    """Samples as float64 of shape (n,)."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one value per run (got shape {array.shape})")
    return _rows(array[None, :], name)[0]


def _check(confidence: float, n_resamples: int = NR_RESAMPLES) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1 (got {confidence})")
    if n_resamples < 99:
        raise ValueError(f"n_resamples must be at least 99 (got {n_resamples})")


# ---- intervals --------------------------------------------------------------


def _is_constant(rows: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Whether the values of a row differ by no more than rounding."""
    return rows.max(axis=1) - rows.min(axis=1) <= ROUNDING * scale


def _method(n: int, n_resamples: int, seed: int) -> tuple[str, dict[str, Any]]:
    """How samples of a size get their interval, and what is random about it."""
    if BOOTSTRAP_MIN <= n <= BOOTSTRAP_MAX:
        return "bca", {"seed": seed, "n_resamples": n_resamples}
    return "student", {}


def _student_half(rows: np.ndarray, confidence: float) -> np.ndarray:
    """Half widths of Student's intervals of the means."""
    n = rows.shape[1]
    return stdtrit(n - 1, 0.5 + confidence / 2) * rows.std(axis=1, ddof=1) / math.sqrt(n)


def mean_intervals(
    rows: ArrayLike,
    *,
    confidence: float = CONFIDENCE,
    n_resamples: int = NR_RESAMPLES,
    seed: int = SEED,
    scale: ArrayLike | None = None,
    is_expanded: bool = True,
    minimum: float = -math.inf,
) -> list[Interval]:
    """Confidence intervals of the means of many samples of one size.

    Parameters
    ----------
    rows : array_like of float, shape (n_rows, n)
        One row per quantity, one value per independent run; any unit.
    confidence : float, default 0.95
        Coverage, strictly between 0 and 1. No unit.
    n_resamples : int, default 9999
        Of the bootstrap, at least 99.
    seed : int, default 1
        Of the bootstrap's draws; all rows share them.
    scale : array_like of float, shape (n_rows,), optional
        Size of the values from which a row was computed, in its unit: spreads
        below 1e-12 of it are rounding. Default: the largest absolute value.
    is_expanded : bool, default True
        Widen for small samples, as Notes say; False gives the plain BCa.
    minimum : float, default -inf
        The minimum of a mean, such as 0 for a length of time, in the unit
        of the rows. No interval reaches below it.

    Returns
    -------
    list of Interval
        One per row.

    Raises
    ------
    ValueError
        If a shape, `confidence` or `n_resamples` is out of range, or a value
        is not finite.

    Notes
    -----
    From six samples on the method is the bias-corrected and accelerated
    bootstrap [1]_ with the end points moved outward as [2]_ proposes, since
    resampling n values underestimates the spread by n / (n - 1) and knows no
    Student tails. Below six, and above a thousand, it is Student's interval, which trusts
    that means are nearly normal. Not valid where runs depend on each other, or the mean is
    ruled by rare large values that the sample may not hold: for lognormal
    values with sigma 1 the coverage at 95 % is about 89 % with 10 runs.

    Student's interval of two or three durations may reach below 0, where no mean of
    durations is, and the bootstrap's by a rounding. What lies below `minimum` is cut
    off: it covered nothing, so the coverage stays as it is.

    References
    ----------
    .. [1] B. Efron, "Better Bootstrap Confidence Intervals", JASA 82, 1987.
    .. [2] T. Hesterberg, "What Teachers Should Know About the Bootstrap",
       The American Statistician 69, 2015.

    Examples
    --------
    >>> one, = mean_intervals([[5, 5, 5]])
    >>> one.method, one.low, one.high
    ('deterministic', 5.0, 5.0)
    """
    rows = _rows(rows, "rows")
    _check(confidence, n_resamples)
    n = rows.shape[1]
    mean = rows.mean(axis=1)
    if n == 1:
        return [Interval(float(m), math.nan, math.nan, 1, confidence, "single") for m in mean]
    scale = np.abs(rows).max(axis=1) if scale is None else np.asarray(scale, dtype=np.float64)
    constant = _is_constant(rows, scale)
    low, high = rows[:, 0].copy(), rows[:, 0].copy()
    vary = ~constant
    method, drawn = _method(n, n_resamples, seed)
    if vary.any() and method == "student":
        half = _student_half(rows[vary], confidence)
        low[vary], high[vary] = mean[vary] - half, mean[vary] + half
    elif vary.any():
        low[vary], high[vary] = bca_of_means(
            rows[vary], confidence=confidence, is_expanded=is_expanded, **drawn
        )
    low = np.maximum(low, minimum)
    mean = np.where(constant, rows[:, 0], mean)
    return [
        Interval(float(m), float(lo), float(hi), n, confidence, "deterministic")
        if c
        else Interval(float(m), float(lo), float(hi), n, confidence, method, **drawn)
        for m, lo, hi, c in zip(mean, low, high, constant, strict=True)
    ]


def mean_interval(
    x: ArrayLike,
    *,
    confidence: float = CONFIDENCE,
    n_resamples: int = NR_RESAMPLES,
    seed: int = SEED,
    minimum: float = -math.inf,
) -> Interval:
    """Confidence interval of the mean of one sample of shape (n,); see `mean_intervals`, also for when it is not valid.

    >>> it = mean_interval([31, 29, 30, 33, 28, 35, 30, 32])
    >>> it.estimate, it.low < 31 < it.high, it.method, it.seed
    (31.0, True, 'bca', 1)
    """
    return mean_intervals(
        _row(x, "x")[None, :], confidence=confidence, n_resamples=n_resamples, seed=seed, minimum=minimum
    )[0]


# ---- two policies -----------------------------------------------------------


def compare_paired(
    a: ArrayLike,
    b: ArrayLike,
    *,
    confidence: float = CONFIDENCE,
    n_resamples: int = NR_RESAMPLES,
    seed: int = SEED,
) -> list[Paired]:
    """Compare two sides on many metrics, paired by seed.

    Parameters
    ----------
    a, b : array_like of float, shape (n_metrics, n_pairs)
        One row per metric; column i of both is the same work. Any unit.
    confidence : float, default 0.95
        Coverage of the intervals, strictly between 0 and 1. No unit.
    n_resamples : int, default 9999
        Of the bootstrap, at least 99.
    seed : int, default 1
        Of the bootstrap's draws.

    Returns
    -------
    list of Paired
        One per row.

    Raises
    ------
    ValueError
        If the shapes differ or are not 2-D, or a value is not finite.

    Notes
    -----
    The p-value is that of the paired t test. Where it would be 0 / 0: if each
    side is constant, Fisher's exact test of complete separation, 2 / C(2n, n);
    if only the difference is, the sign-flip test, 2**(1 - n). The t test is
    exact for normal differences and cautious for symmetric heavy tails. Where
    the differences themselves are skewed and n is below 20 its rejections of
    "equal means" are too many: 10 % instead of 5 % for exponential ones at
    n = 10. It is not valid where pairs depend on each other: the same seed
    twice on a deterministic host is one pair.

    References
    ----------
    .. [1] R. Jain, *The Art of Computer Systems Performance Analysis*, 1991, ch. 13.
    .. [2] A. Vargha, H. D. Delaney, "A Critique and Improvement of the CL Common
       Language Effect Size Statistics", J. Educ. Behav. Stat. 25, 2000.

    Examples
    --------
    >>> one, = compare_paired([[10, 12, 11, 13, 12, 10]], [[14, 17, 15, 18, 16, 15]])
    >>> one.difference.estimate, one.difference.low > 3, one.cliffs_delta, one.p_value < 1e-4
    (4.5, True, 1.0, True)
    """
    a, b = _rows(a, "a"), _rows(b, "b")
    if a.shape != b.shape:
        raise ValueError(f"a and b must have one shape (got {a.shape} and {b.shape})")
    _check(confidence, n_resamples)
    scale = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))
    difference = b - a
    difference[np.abs(difference) <= ROUNDING * scale[:, None]] = 0
    settings: dict[str, Any] = {"confidence": confidence, "n_resamples": n_resamples, "seed": seed}
    intervals = mean_intervals(difference, scale=scale, **settings)
    ratios = _ratio_intervals(a, b, **settings)
    tests = _tests(a, b, difference, scale)
    result = []
    for i in range(len(a)):
        larger = vargha_delaney(a[i], b[i])
        result.append(
            Paired(
                n=a.shape[1],
                mean_a=float(a[i].mean()),
                mean_b=float(b[i].mean()),
                difference=intervals[i],
                ratio=ratios[i],
                p_value=tests[i][0],
                test=tests[i][1],
                vargha_delaney=larger,
                cliffs_delta=2 * larger - 1,
                standardised=None
                if intervals[i].method in ("single", "deterministic")
                else float(difference[i].mean() / difference[i].std(ddof=1)),
            )
        )
    return result


def _tests(
    a: np.ndarray, b: np.ndarray, difference: np.ndarray, scale: np.ndarray
) -> list[tuple[float | None, str]]:
    """p-value and name of the test of each row."""
    n = difference.shape[1]
    if n == 1:
        return [(None, "none")] * len(difference)
    is_zero = (difference == 0).all(axis=1)
    is_flat = _is_constant(difference, scale)
    is_fixed = _is_constant(a, scale) & _is_constant(b, scale)
    spread = np.where(is_flat, 1, difference.std(axis=1, ddof=1))
    p = 2 * stdtr(n - 1, -np.abs(difference.mean(axis=1)) * math.sqrt(n) / spread)
    result: list[tuple[float | None, str]] = []
    for i in range(len(difference)):
        if is_zero[i]:
            result.append((None, "none"))
        elif is_fixed[i]:
            result.append((2 / math.comb(2 * n, n), "fisher"))
        elif is_flat[i]:
            result.append((2.0 ** (1 - n), "sign-flip"))
        else:
            result.append((float(p[i]), "student"))
    return result


def _ratio_intervals(
    a: np.ndarray, b: np.ndarray, *, confidence: float, n_resamples: int, seed: int
) -> list[Interval | None]:
    """Intervals of mean(b) / mean(a), None where there is no sound one."""
    n = a.shape[1]
    result: list[Interval | None] = [None] * len(a)
    fit = np.flatnonzero((a >= 0).all(axis=1) & (b >= 0).all(axis=1) & (a.sum(axis=1) > 0))
    if not len(fit):
        return result
    a, b = a[fit], b[fit]
    ratio = b.sum(axis=1) / a.sum(axis=1)
    # What is left of b when a explains all that it can; flat where b = ratio a.
    residue = b - ratio[:, None] * a
    flat = _is_constant(residue, np.maximum(b.max(axis=1), ratio * a.max(axis=1)))
    low, high = ratio.copy(), ratio.copy()
    method, drawn = _method(n, n_resamples, seed)
    if n == 1:
        low[:] = high[:] = np.nan
    elif method == "student":
        half = _student_half(residue, confidence) / a.mean(axis=1)
        # Neither side is negative, so no ratio is: see mean_intervals(), `minimum`.
        low, high = np.where(flat, ratio, np.maximum(ratio - half, 0)), np.where(flat, ratio, ratio + half)
    elif not flat.all():
        low[~flat], high[~flat] = bca_of_ratios(a[~flat], b[~flat], confidence=confidence, **drawn)
    for i, row in enumerate(fit):
        common = (float(ratio[i]), float(low[i]), float(high[i]), n, confidence)
        if n == 1:
            result[row] = Interval(*common, "single")
        elif flat[i]:
            result[row] = Interval(*common, "deterministic")
        elif math.isfinite(low[i]):
            result[row] = Interval(*common, method, **drawn)
    return result


def vargha_delaney(a: ArrayLike, b: ArrayLike) -> float:
    """How often a value of b is larger than one of a.

    Parameters
    ----------
    a : array_like of float, shape (n_a,)
        Values of one side; any unit.
    b : array_like of float, shape (n_b,)
        Values of the other side, same unit.

    Returns
    -------
    float
        Probability that a random value of `b` exceeds a random one of `a`, plus
        half the probability of a tie; from 0 to 1. Cliff's delta is twice it
        less one.

    Raises
    ------
    ValueError
        If a side is not 1-D, empty or not finite.

    Notes
    -----
    It says how well the sides are separated, not by how much they differ, and
    takes no notice of pairs.

    References
    ----------
    .. [1] A. Vargha, H. D. Delaney, "A Critique and Improvement of the CL Common
       Language Effect Size Statistics", J. Educ. Behav. Stat. 25, 2000.
    .. [2] N. Cliff, "Dominance Statistics", Psychological Bulletin 114, 1993.

    Examples
    --------
    >>> vargha_delaney([1, 2, 3], [2, 3, 4])
    0.7777777777777778
    """
    ordered, b = np.sort(_row(a, "a")), _row(b, "b")
    below = np.searchsorted(ordered, b, side="left")
    to = np.searchsorted(ordered, b, side="right")
    return float((below.sum() + to.sum()) / (2 * len(ordered) * len(b)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that all of them may be read together.

    Parameters
    ----------
    p_values : sequence of float, shape (n_tests,)
        Each from 0 to 1.

    Returns
    -------
    list of float, shape (n_tests,)
        Rejecting where the adjusted value is at most alpha wrongly rejects any
        true hypothesis with probability alpha at most, however the tests
        depend on each other.

    Raises
    ------
    ValueError
        If a value is not from 0 to 1.

    Notes
    -----
    It guards against one false claim among all; with hundreds of tests on few
    samples it finds little, which is what such data can say. Only as good as
    the p-values: those of a t test on skewed differences are too small in the
    far tail.

    References
    ----------
    .. [1] S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
       Scandinavian Journal of Statistics 6, 1979.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values must be from 0 to 1 (got {list(p_values)})")
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted
