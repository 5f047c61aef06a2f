# SPDX-License-Identifier: MIT
"""Warnings are given where a summary misleads, and seldom elsewhere."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import first_is_quick
from schedlab.stats import dip as dip_module
from schedlab.stats.dip import CRITICAL, LEVEL, critical_dip, dip
from schedlab.stats.warnings import (
    BimodalWarning,
    SampleWarning,
    drift_p_value,
    examine,
    is_bimodal,
    outliers,
)

DRAWS = {
    "normal": lambda rng, n: rng.normal(100, 5, n),
    "exponential": lambda rng, n: rng.exponential(5, n),
    "lognormal": lambda rng, n: rng.lognormal(3, 1, n),
    "uniform": lambda rng, n: rng.random(n),
}


def rate(check, make, n, *, nr=1500, seed=1) -> float:
    """Percent of samples on which a check says yes."""
    rng = np.random.default_rng(seed)
    return 100 * np.mean([bool(check(make(rng, n))) for _ in range(nr)])


@pytest.mark.parametrize("check", [outliers, is_bimodal, drift_p_value, dip, examine])
@pytest.mark.parametrize("x", [[[1, 2]], [1, float("nan")], [float("inf")]])
def test_bad_samples_are_refused(check, x):
    with pytest.raises(ValueError, match="must be 1-D"):
        check(x)


def test_an_order_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"order must have shape \(3,\)"):
        examine([1, 2, 3], order=[1, 2])


# ---- the dip ----------------------------------------------------------------


def best_unimodal_distance(x) -> float:
    """The dip by its definition: a linear program for each place of the mode.

    A unimodal distribution function is convex before its mode, where it may
    jump, and concave after it. Variables: its heights at the distinct values up
    to the mode (the last one before the jump), from the mode on, and the distance.
    """
    from scipy.optimize import linprog

    v, counts = np.unique(x, return_counts=True)
    above = np.cumsum(counts) / len(x)
    below = above - counts / len(x)
    best = 1.0
    for mode in range(len(v)):
        nr = len(v) + 2
        rows, limits = [], []

        def add(limit, *terms, nr=nr, rows=rows, limits=limits):
            row = np.zeros(nr)
            for column, factor in terms:
                row[column] += factor
            rows.append(row)
            limits.append(limit)

        def slopes(i, j, k, sign, add=add):
            first, second = v[j[1]] - v[i[1]], v[k[1]] - v[j[1]]
            add(0, (j[0], sign / first), (i[0], -sign / first), (k[0], -sign / second), (j[0], sign / second))

        left = [(i, i) for i in range(mode + 1)]
        right = [(i + 1, i) for i in range(mode, len(v))]
        for column, i in left + right:
            is_left = column == i
            at_mode = i == mode
            heights = ([below[i]] if is_left else [above[i]]) if at_mode else [below[i], above[i]]
            for height in heights:
                add(height, (column, 1), (nr - 1, -1))
                add(-height, (column, -1), (nr - 1, -1))
        for one, other in zip(left + right, (left + right)[1:], strict=False):
            add(0, (one[0], 1), (other[0], -1))
        for k in range(len(left) - 2):
            slopes(*left[k : k + 3], 1)
        for k in range(len(right) - 2):
            slopes(*right[k : k + 3], -1)
        goal = np.zeros(nr)
        goal[-1] = 1
        found = linprog(goal, A_ub=np.array(rows), b_ub=limits, bounds=[(0, 1)] * nr)
        best = min(best, found.fun)
    return best


@pytest.mark.full
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=2, max_size=10)
    | st.lists(st.integers(0, 5), min_size=2, max_size=10)
)
def test_the_dip_is_the_distance_to_the_nearest_unimodal_function(x):
    if len(set(x)) > 1:
        assert dip(x) == pytest.approx(best_unimodal_distance(x), abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_the_dip_keeps_its_bounds(x):
    found = dip(x)
    assert found == 0 if len(set(x)) == 1 else 1 / (2 * len(x)) - 1e-12 <= found < 0.25 + 1e-12


def test_critical_values_fall_with_the_size():
    found = [critical_dip(n) for n in range(8, 600, 7)]
    assert found == sorted(found, reverse=True)
    with pytest.raises(ValueError, match="at least 8"):
        critical_dip(7)


def simulate_critical(n: int, *, n_draws: int, seed: int) -> float:
    """Draw uniform samples and find the entry of `CRITICAL` for their size.

    It is sqrt(n) times the dip that 1 % of `n_draws` samples exceed.
    """
    source = np.random.default_rng(seed)
    dips = [dip(source.random(n)) for _ in range(n_draws)]
    return math.sqrt(n) * float(np.quantile(dips, 1 - LEVEL))


@pytest.mark.parametrize("n", [8, 20])
def test_critical_values_agree_with_fresh_draws(n):
    assert simulate_critical(n, n_draws=4000, seed=99) == pytest.approx(CRITICAL[n], rel=0.04)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [n for n in CRITICAL if n <= 100])
def test_critical_values_agree_with_many_fresh_draws(n):
    assert simulate_critical(n, n_draws=20_000, seed=5) == pytest.approx(CRITICAL[n], rel=0.02)


# ---- false alarms and what is found -----------------------------------------


@pytest.mark.parametrize(
    ("limit", "n"),
    first_is_quick(
        [("uniform", 2.0), ("normal", 0.6), ("exponential", 0.6), ("lognormal", 0.6)], [8, 20, 50]
    ),
)
def test_false_alarms_of_the_dip_test(limit, n):
    name, most = limit
    assert rate(is_bimodal, DRAWS[name], n) <= most


@pytest.mark.parametrize(("n", "apart", "minimum"), [(10, 10, 70), (20, 8, 95), (20, 5, 28), (50, 5, 75)])
def test_two_peaks_are_found(n, apart, minimum):
    def two(rng, n):
        return rng.normal(0, 1, n) + apart * (np.arange(n) % 2)

    assert rate(is_bimodal, two, n, nr=300) >= minimum


def test_the_lattice_of_counts_is_not_taken_for_peaks():
    for n in (10, 20, 50):
        assert rate(is_bimodal, lambda rng, n: rng.poisson(3, n).astype(float), n, nr=400) <= 1


@pytest.mark.parametrize(
    ("limit", "n"),
    first_is_quick([("normal", 1.8), ("exponential", 1), ("lognormal", 1.2)], [6, 7, 10, 20, 50]),
)
def test_false_alarms_of_outliers(limit, n):
    name, most = limit
    assert rate(outliers, DRAWS[name], n) <= most


def test_false_alarms_of_outliers_grow_on_values_around_zero():
    """Without a logarithm to check against, skewed values look like outliers."""
    shifted = rate(outliers, lambda rng, n: rng.lognormal(0, 1, n) - 1, 20)
    assert shifted > 10


@pytest.mark.parametrize("n", [8, 20, 50])
def test_an_outlier_is_found_and_named(n):
    rng = np.random.default_rng(n)
    for _ in range(50):
        x = rng.normal(100, 5, n)
        x[3] = 400
        assert outliers(x) == [3]


@pytest.mark.parametrize(("name", "n"), first_is_quick(DRAWS, [8, 20, 50]))
def test_false_alarms_of_drift(name, n):
    assert rate(lambda x: drift_p_value(x) <= 0.01, DRAWS[name], n) <= 1.9


def test_false_alarms_of_drift_with_ties():
    assert rate(lambda x: drift_p_value(x) <= 0.01, lambda rng, n: rng.poisson(1, n) * 1.0, 20) <= 1.9


def test_a_drift_is_found():
    def rising(rng, n):
        return rng.normal(0, 1, n) + np.linspace(0, 4, n)

    assert rate(lambda x: drift_p_value(x) <= 0.01, rising, 20, nr=300) >= 95


def test_mann_kendall_agrees_with_scipy():
    from scipy.stats import kendalltau

    rng = np.random.default_rng(3)
    for x in (rng.normal(0, 1, 40), rng.poisson(2, 40).astype(float)):
        theirs = kendalltau(np.arange(40), x, method="asymptotic").pvalue
        # Ours has the correction for continuity, which makes it a little larger.
        assert theirs <= drift_p_value(x) <= theirs + 0.02


# ---- warnings ---------------------------------------------------------------


def kinds(x, **fields):
    return [warning.kind for warning in examine(x, **fields)]


def test_each_warning_has_its_class_text_and_hint():
    base = [10.0, 10.1, 10.2, 10.3, 10.4]
    two = [*base, *(v + 50.05 for v in base)]
    assert kinds([1.0, 2.0]) == ["too-few"]
    assert kinds([1.0]) == ["too-few"]
    assert kinds([5.0] * 20) == []
    assert kinds([1.0, 2.0] * 5) == ["ties"]
    assert kinds(two) == ["bimodal"]
    assert kinds([*base, *(v + 0.05 for v in base), 40.0]) == ["outliers"]
    assert kinds([float(i) for i in range(10)]) == []
    assert kinds([float(i) for i in range(10)], order=range(10)) == ["drift"]
    shuffled = np.random.default_rng(3).permutation(10)
    assert kinds([float(i) for i in range(10)], order=shuffled) == []
    (warning,) = examine(two)
    assert isinstance(warning, BimodalWarning)
    assert warning.as_json() == {"kind": "bimodal", "text": str(warning), "hint": warning.hint}
    assert "the 10 runs form two groups" in str(warning)


def test_large_samples_are_thinned_not_refused():
    rng = np.random.default_rng(1)
    x = rng.normal(100, 1, 50_000)
    assert kinds(np.where(np.arange(50_000) % 2, x, x + 20), order=range(50_000)) == ["bimodal"]
    assert kinds(x + np.linspace(0, 3, 50_000), order=range(50_000))[-1] == "drift"


def test_warnings_are_python_warnings():
    with pytest.warns(SampleWarning, match="only 2 runs"):
        warnings.warn(examine([1.0, 2.0])[0], stacklevel=1)
    assert all(c.hint and c.kind for c in SampleWarning.__subclasses__())


def test_values_are_shown_with_their_unit():
    (warning,) = examine([10, 10.5, 9.5, 10.2, 9.8, 10.1, 90], show="{:g} ms".format)
    assert str(warning) == "1 of 7 runs far from the median 10.1 ms: 90 ms"


def test_the_module_of_the_dip_says_its_level():
    assert dip_module.LEVEL == 0.01
