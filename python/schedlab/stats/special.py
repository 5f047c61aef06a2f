# SPDX-License-Identifier: MIT
"""Distribution functions behind intervals and tests: normal, Student's, binomial.

SciPy has them, and 143 MB beside them, which each installation would carry for five
functions. Tests hold each of these against SciPy's.

Called by inference.py, bootstrap.py and warnings.py. Read next: inference.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

_ROOT_2 = math.sqrt(2)
#: Terms of a continued fraction: it needs fewer than about the root of its larger parameter.
_TERMS_MAX = 100_000
_TINY = 1e-300


def _of_each(function: Callable[[float], float], values: ArrayLike) -> np.ndarray:
    """A function of each value, in the shape of the values."""
    each = np.asarray(values, dtype=float)
    return np.array([function(value) for value in each.ravel().tolist()], dtype=float).reshape(each.shape)


def ndtr(z: ArrayLike) -> np.ndarray:
    """P(Z <= z) of a standard normal variable; an array of the shape of `z`."""
    return _of_each(lambda value: 0.5 * math.erfc(-value / _ROOT_2), z)


def ndtri(p: ArrayLike) -> np.ndarray:
    """Give the normal quantile of each probability, strictly between 0 and 1."""
    return _of_each(NormalDist().inv_cdf, p)


def stdtr(df: int, t: ArrayLike) -> np.ndarray:
    """P(T <= t) of Student's t with `df` degrees of freedom, exact in its tails."""
    return _of_each(lambda value: _student(df, value), t)


@lru_cache(maxsize=256)
def stdtrit(df: int, p: float) -> float:
    """Give the quantile of Student's t for `p` strictly between 0 and 1."""
    if p < 0.5:
        return -stdtrit(df, 1 - p)
    low, high = 0.0, 1.0
    while _student(df, high) < p:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _student(df, middle) < p else (low, middle)
    return high


def _student(df: int, t: float) -> float:
    """P(T <= t); a beta function of the square."""
    if math.isnan(t):
        return math.nan
    square = t * t
    # From 3 on beta_part() takes no complement, so that nothing cancels in a tail.
    tail = 0.5 * (
        beta_part(df / 2, 0.5, df / (df + square))
        if square > 3
        else 1 - beta_part(0.5, df / 2, square / (df + square))
    )
    return tail if t < 0 else 1 - tail


def beta_part(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b).

    The continued fraction of DLMF 8.17.22, by Lentz's method; on the far side of the
    mean that of the complement, which converges there.
    """
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_part(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _TERMS_MAX):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return front * fraction / a


def _away(value: float) -> float:
    """Value that may be divided by."""
    return value if abs(value) > _TINY else _TINY
