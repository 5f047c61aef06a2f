# SPDX-License-Identifier: MIT
"""The bootstrap behind inference.py: BCa intervals of means and of ratios of means.

All rows of one size share their resamples, so that a comparison of forty
metrics is one product of matrices. Resamples come from raw integers of a seeded
generator; with any version of the libraries equal input gives equal resamples.

Called by inference.py, which has dealt with constant rows and small samples.
Read next: inference.py.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .special import ndtr, ndtri, stdtrit

#: Differences below this part of the values are rounding, not measurement.
ROUNDING = 1e-12
#: Resampled values that are held at a time: 2.5 MB stay in a cache, 30 do not.
_CHUNK = 320_000


@lru_cache(maxsize=4)
def _weights(n: int, n_resamples: int, seed: int) -> np.ndarray:
    """How often each resample holds each sample, over n; shape (n, n_resamples)."""
    raw = np.random.PCG64(seed).random_raw(n * n_resamples)
    # The upper half times n, without a remainder's bias beyond 2**-32 n.
    chosen = ((raw >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)
    cell = chosen.reshape(n_resamples, n) + n * np.arange(n_resamples)[:, None]
    counts = np.bincount(cell.ravel(), minlength=n * n_resamples)
    return np.ascontiguousarray(counts.reshape(n_resamples, n).T) / n


def _normal_levels(n: int, confidence: float, is_expanded: bool) -> tuple[float, float]:
    """Normal quantiles of the two ends, widened for small samples where asked.

    A bootstrap uses the variance with divisor n and normal tails, which makes
    its intervals too narrow; the correction is Hesterberg's (2015).
    """
    if not is_expanded:
        z = float(ndtri(0.5 + confidence / 2))
    else:
        z = math.sqrt(n / (n - 1)) * stdtrit(n - 1, 0.5 + confidence / 2)
    return -z, z


def _bca(
    resampled: np.ndarray, estimate: np.ndarray, jackknife: np.ndarray, levels: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of BCa intervals.

    Parameters: `resampled` of shape (n_rows, n_resamples), which is sorted in
    place; `estimate` (n_rows,); `jackknife` (n_rows, n); `levels`, two normal
    quantiles.
    """
    resampled.sort(axis=1)
    nr = resampled.shape[1]
    # A resample that equals the estimate but for rounding counts half.
    slack = ROUNDING * np.maximum(np.abs(estimate), np.abs(resampled).max(axis=1))
    below = (resampled < (estimate - slack)[:, None]).sum(axis=1)
    to = (resampled <= (estimate + slack)[:, None]).sum(axis=1)
    bias = ndtri(np.clip((below + to) / (2 * nr), 0.5 / nr, 1 - 0.5 / nr))
    lever = jackknife.mean(axis=1, keepdims=True) - jackknife
    squares = (lever**2).sum(axis=1)
    valid = squares > 0
    skew = np.where(valid, (lever**3).sum(axis=1) / (6 * np.where(valid, squares, 1) ** 1.5), 0)
    ends = []
    for z in levels:
        shifted = bias + z
        room = 1 - skew * shifted
        # Where the correction has no room left, the end is the extreme.
        with np.errstate(divide="ignore", invalid="ignore"):
            probability = np.where(room > 0, ndtr(bias + shifted / room), float(z > 0))
        at = probability * (nr - 1)
        lower = np.floor(at).astype(np.int64)
        upper = np.minimum(lower + 1, nr - 1)
        row = np.arange(len(resampled))
        part = at - lower
        ends.append(resampled[row, lower] * (1 - part) + resampled[row, upper] * part)
    return ends[0], ends[1]


def bca_of_means(
    rows: np.ndarray, *, confidence: float, n_resamples: int, seed: int, is_expanded: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of BCa intervals of the means of rows that are not constant.

    Rows, shape (n_rows, n), are finite, n at least 2, `n_resamples` at least 99, `confidence` strictly
    between 0 and 1; `is_expanded` widens for small samples. Low and high ends, shape (n_rows,), in the unit
    of the rows.
    """
    n = rows.shape[1]
    weights = _weights(n, n_resamples, seed)
    levels = _normal_levels(n, confidence, is_expanded)
    low, high = np.empty(len(rows)), np.empty(len(rows))
    step = max(1, _CHUNK // n_resamples)
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        mean = part.mean(axis=1)
        # Centred first: a large mean would eat the digits of a small spread.
        centred = part - mean[:, None]
        jackknife = -centred / (n - 1)
        ends = _bca(centred @ weights, np.zeros(len(part)), jackknife, levels)
        low[first : first + step], high[first : first + step] = mean + ends[0], mean + ends[1]
    return low, high


def bca_of_ratios(
    a: np.ndarray, b: np.ndarray, *, confidence: float, n_resamples: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of BCa intervals of mean(b) / mean(a), resampled by pairs.

    Sides, shape (n_rows, n), are finite, none below 0, n at least 2; the rest is as for `bca_of_means`. Low
    and high ends, shape (n_rows,), without unit; NaN where the mean of some resample of `a` is 0.
    """
    n = a.shape[1]
    weights = _weights(n, n_resamples, seed)
    levels = _normal_levels(n, confidence, True)
    low, high = np.full(len(a), np.nan), np.full(len(a), np.nan)
    left_out = a.sum(axis=1, keepdims=True) - a
    step = max(1, _CHUNK // n_resamples)
    for first in range(0, len(a), step):
        part = slice(first, first + step)
        below = a[part] @ weights
        good = (below > 0).all(axis=1) & (left_out[part] > 0).all(axis=1)
        if not good.any():
            continue
        one, other, rest = a[part][good], b[part][good], left_out[part][good]
        jackknife = (other.sum(axis=1, keepdims=True) - other) / rest
        estimate = other.sum(axis=1) / one.sum(axis=1)
        ends = _bca((other @ weights) / below[good], estimate, jackknife, levels)
        at = first + np.flatnonzero(good)
        low[at], high[at] = ends
    return low, high
