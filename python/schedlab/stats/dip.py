# SPDX-License-Identifier: MIT
"""Hartigan's dip test: do these values have more than one peak?

The dip is the smallest distance between the empirical distribution function and
any unimodal one. It is compared with the dips of uniform samples, which are the
hardest unimodal ones to tell from bimodal.

Must stay true: `dip` agrees with a linear program over all unimodal functions,
and `CRITICAL` with fresh draws (tests/python/test_warnings.py).
Read next: warnings.py, the caller.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

#: sqrt(n) times the dip that 1 % of uniform samples of size n exceed, from
#: 40,000 draws each (10,000 for the last two); `simulate_critical` in tests/python/test_warnings.py makes them.
CRITICAL = {
    8: 0.4887, 10: 0.5058, 12: 0.5124, 15: 0.5240, 20: 0.5385, 25: 0.5499, 30: 0.5568,
    40: 0.5665, 50: 0.5707, 75: 0.5852, 100: 0.5931, 200: 0.6035, 500: 0.6132,
}  # fmt: skip
LEVEL = 0.01


def _hull(x: Sequence[float], y: Sequence[float], first: int, last: int, sign: int) -> list[int]:
    """Points of the greatest convex minorant (sign 1) or least concave majorant (-1)."""
    kept = [first]
    for i in range(first + 1, last + 1):
        while len(kept) > 1:
            j, k = kept[-1], kept[-2]
            turn = (x[j] - x[k]) * (y[i] - y[k]) - (y[j] - y[k]) * (x[i] - x[k])
            if sign * turn > 0:
                break
            kept.pop()
        kept.append(i)
    return kept


def _along(x: Sequence[float], y: Sequence[float], kept: list[int]) -> list[float]:
    """The hull's height at every point from its first to its last."""
    heights = []
    for k, j in itertools.pairwise(kept):
        slope = (y[j] - y[k]) / (x[j] - x[k])
        heights += [y[k] + slope * (x[i] - x[k]) for i in range(k, j)]
    return [*heights, y[kept[-1]]]


def dip(values: ArrayLike) -> float:
    """Dip of a sample.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        Finite; any unit.

    Returns
    -------
    float
        From 1 / (2n), for a sample that could not be more unimodal, to below
        0.25; 0 for a sample whose values are all equal. No unit.

    Raises
    ------
    ValueError
        If `values` is not 1-D, empty or not finite.

    Notes
    -----
    The modal interval shrinks until the convex and the concave hull inside it
    are no further apart than the hulls outside it are from the sample [1]_.

    References
    ----------
    .. [1] J. A. Hartigan, P. M. Hartigan, "The Dip Test of Unimodality",
       Annals of Statistics 13, 1985.

    Examples
    --------
    >>> dip([1, 2, 3, 4])
    0.125
    >>> round(dip([0, 1, 2, 3, 100, 101, 102, 103]), 3)
    0.242
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise ValueError(f"values must be 1-D, not empty and finite (got shape {array.shape})")
    distinct, counts = np.unique(array, return_counts=True)
    x = distinct.tolist()
    above = (np.cumsum(counts) / len(array)).tolist()
    below = [0.0, *above[:-1]]
    low, high, widest = 0, len(x) - 1, 0.0
    while low < high:
        convex, concave = _hull(x, below, low, high, 1), _hull(x, above, low, high, -1)
        under, over = _along(x, below, convex), _along(x, above, concave)
        at_convex = max((over[i - low] - under[i - low], -i) for i in convex)
        at_concave = max((over[i - low] - under[i - low], i) for i in concave)
        if max(at_convex[0], at_concave[0]) <= widest:
            break
        if at_convex[0] > at_concave[0]:
            new_low = -at_convex[1]
            new_high = min(i for i in concave if i >= new_low)
        else:
            new_high = at_concave[1]
            new_low = max(i for i in convex if i <= new_high)
        # A mode may hold an atom, so the step at the mode itself is free.
        left = max((above[i] - under[i - low] for i in range(low, new_low)), default=0.0)
        right = max((over[i - low] - below[i] for i in range(new_high + 1, high + 1)), default=0.0)
        widest = max(widest, left, right)
        if (new_low, new_high) == (low, high):
            break
        low, high = new_low, new_high
    return widest / 2


def critical_dip(n: int) -> float:
    """Dip that a unimodal sample exceeds with probability 1 % at most.

    `n` is at least the smallest in `CRITICAL`; else a ValueError. Between tabulated sizes, sqrt(n) times
    the dip is taken as straight in log(n); beyond the last, as constant.

    >>> critical_dip(20) < critical_dip(10)
    True
    """
    sizes = sorted(CRITICAL)
    if n < sizes[0]:
        raise ValueError(f"n must be at least {sizes[0]} (got {n})")
    scaled = np.interp(math.log(n), [math.log(s) for s in sizes], [CRITICAL[s] for s in sizes])
    return float(scaled) / math.sqrt(n)
