# SPDX-License-Identifier: MIT
"""Intervals hold what they say as often as they say, and tests err as seldom.

Every rate in docs/statistics.md is measured here, on distributions whose truth is
known. Draws are seeded, so a bound that holds once holds always; bounds leave
room for three standard errors of the rate that they are about.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import first_is_quick
from schedlab.stats.inference import compare_paired, holm, mean_interval, mean_intervals, vargha_delaney

#: Distributions by name: how to draw an array, and the true mean and median.
DISTRIBUTIONS = {
    "normal": (lambda rng, shape: rng.normal(3, 2, shape), 3, 3),
    "exponential": (lambda rng, shape: rng.exponential(2, shape), 2, 2 * math.log(2)),
    "lognormal": (lambda rng, shape: rng.lognormal(0, 1, shape), math.exp(0.5), 1),
    "discrete": (lambda rng, shape: rng.poisson(2, shape).astype(float), 2, 2),
    "bimodal": (lambda rng, shape: rng.normal(0, 1, shape) + 10 * (rng.random(shape) < 0.5), 5, 5),
}
#: Lowest coverage, in percent, that a 95 % BCa interval of the mean may have,
#: by n: what docs/statistics.md states.
COVERAGE = {
    "normal": {6: 92, 10: 93, 20: 93, 50: 93},
    "exponential": {6: 87, 10: 89, 20: 92, 50: 93},
    "lognormal": {6: 83, 10: 87, 20: 88, 50: 90},
    "discrete": {6: 92, 10: 94, 20: 94, 50: 94},
    "bimodal": {6: 95, 10: 96, 20: 95, 50: 94},
}
NR_SAMPLES = 2000


def draw(name, n, seed, nr=NR_SAMPLES):
    make, mean, median = DISTRIBUTIONS[name]
    return make(np.random.default_rng(seed), (nr, n)), mean, median


def percent(hits) -> float:
    return 100 * float(np.mean(list(hits)))


# ---- bad input --------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "fields", "message"),
    [
        ([], {}, r"shape \(n_rows, n >= 1\)"),
        ([[1, 2]], {}, "must be 1-D, one value per run"),
        ([1, math.nan], {}, "must be finite"),
        ([1, 2], {"confidence": 1}, "confidence must be between 0 and 1"),
        ([1, 2], {"n_resamples": 98}, "n_resamples must be at least 99"),
    ],
)
def test_mean_interval_refuses(x, fields, message):
    with pytest.raises(ValueError, match=message):
        mean_interval(x, **fields)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([[1, 2]], [[1, 2, 3]], "must have one shape"),
        ([1, 2], [1, 2], r"a must have shape \(n_rows"),
        ([[1.0]], [[math.inf]], "b must be finite"),
    ],
)
def test_compare_paired_refuses(a, b, message):
    with pytest.raises(ValueError, match=message):
        compare_paired(a, b)


@pytest.mark.parametrize("p_values", [[1.1], [-0.1, 0.5], [math.nan]])
def test_holm_refuses(p_values):
    with pytest.raises(ValueError, match="must be from 0 to 1"):
        holm(p_values)


def test_vargha_delaney_refuses():
    with pytest.raises(ValueError, match="a must be 1-D"):
        vargha_delaney([[1]], [1])


# ---- coverage and false alarms ----------------------------------------------


@pytest.mark.parametrize(("name", "n"), first_is_quick(DISTRIBUTIONS, [6, 10, 20, 50]))
def test_coverage_of_the_mean(name, n):
    x, mean, _ = draw(name, n, seed=n)
    found = mean_intervals(x, n_resamples=1999)
    coverage = percent(i.low <= mean <= i.high for i in found)
    assert coverage >= COVERAGE[name][n]
    assert coverage <= 99.6
    assert {i.method for i in found} <= {"bca", "deterministic"}


@pytest.mark.parametrize(("name",), first_is_quick(["normal", "exponential", "lognormal"]))
def test_the_plain_bootstrap_covers_less(name):
    """Why the intervals are widened: at n = 6 the plain BCa misses twice as often."""
    x, mean, _ = draw(name, 6, seed=1)
    plain, wide = (
        percent(i.low <= mean <= i.high for i in mean_intervals(x, n_resamples=999, is_expanded=e))
        for e in (False, True)
    )
    assert plain < wide - 4


@pytest.mark.parametrize("n", [2, 3, 5])
def test_coverage_of_students_interval(n):
    x, mean, _ = draw("normal", n, seed=n)
    found = mean_intervals(x)
    assert {i.method for i in found} == {"student"}
    assert 93.5 <= percent(i.low <= mean <= i.high for i in found) <= 96.5


@pytest.mark.parametrize("n", [2, 3])
def test_an_interval_of_durations_is_not_negative_and_covers_as_often(n):
    x, mean, _ = draw("exponential", n, seed=n)
    free, cut = mean_intervals(x), mean_intervals(x, minimum=0)
    assert any(i.low < 0 for i in free) and min(i.low for i in cut) == 0
    assert [i.high for i in cut] == [i.high for i in free]
    assert [i.low <= mean <= i.high for i in cut] == [i.low <= mean <= i.high for i in free]
    ratios = [pair.ratio for pair in compare_paired(x[:-1], x[1:])]
    assert min(ratio.low for ratio in ratios) == 0


def test_coverage_of_many_lognormal_values():
    x, mean, _ = draw("lognormal", 1001, seed=1, nr=1000)
    found = mean_intervals(x)
    assert {i.method for i in found} == {"student"}
    assert percent(i.low <= mean <= i.high for i in found) >= 92


@pytest.mark.parametrize(("name", "n"), first_is_quick(["exponential", "lognormal"], [6, 20]))
def test_coverage_of_the_ratio(name, n):
    a, _, _ = draw(name, n, seed=n)
    b, _, _ = draw(name, n, seed=n + 1)
    ratios = [p.ratio for p in compare_paired(a, 3 * b, n_resamples=1999)]
    assert percent(r.low <= 3 <= r.high for r in ratios) >= COVERAGE[name][n]


@pytest.mark.parametrize(("name", "n"), first_is_quick(DISTRIBUTIONS, [6, 10, 20, 50]))
def test_false_alarms_between_equal_policies(name, n):
    """Both sides from one distribution: at 5 % at most 7 %, at 0.15 % at most 0.5 %."""
    a, _, _ = draw(name, n, seed=2 * n)
    b, _, _ = draw(name, n, seed=2 * n + 1)
    p = np.array([1 if r.p_value is None else r.p_value for r in compare_paired(a, b, n_resamples=99)])
    assert percent(p <= 0.05) <= 7
    assert percent(p <= 0.0015) <= 0.5


@pytest.mark.parametrize(("values", "n"), first_is_quick([(0, 1), (-1, 0, 1), (0, 0, 0, 1)], [3, 4, 6, 10]))
def test_false_alarms_on_few_values(values, n):
    """Counts that differ by chance: ties must not pass for certainty."""
    rng = np.random.default_rng(n)
    a, b = rng.choice(values, (2, 4000, n)).astype(float)
    p = np.array([1 if r.p_value is None else r.p_value for r in compare_paired(a, b, n_resamples=99)])
    assert percent(p <= 0.05) <= 7
    assert percent(p <= 0.001) <= 0.8


@pytest.mark.parametrize(
    ("name", "n", "most"), [("exponential", 10, 13), ("exponential", 50, 8), ("lognormal", 10, 19)]
)
def test_false_alarms_on_skewed_differences_are_as_stated(name, n, most):
    """The documented weakness: equal means, but the differences are skewed."""
    x, mean, _ = draw(name, n, seed=9)
    p = np.array([r.p_value for r in compare_paired(0 * x, x - mean, n_resamples=99)])
    assert 5 < percent(p <= 0.05) <= most


def test_real_differences_are_found():
    """A shift by one and a half standard deviations of the differences, 10 pairs."""
    rng = np.random.default_rng(11)
    a = rng.exponential(10, (500, 10))
    found = compare_paired(a, a + rng.normal(1.5, 1, a.shape), n_resamples=999)
    assert percent(r.p_value <= 0.05 and r.difference.low > 0 for r in found) >= 95


def test_holm_holds_the_family():
    """Of families of 20 true hypotheses 5 % are wrongly accused, and no more."""
    rng = np.random.default_rng(5)
    wrong = percent(min(holm(p)) <= 0.05 for p in rng.random((3000, 20)).tolist())
    assert 3.5 <= wrong <= 6.2


# ---- against others' implementations ----------------------------------------


@pytest.mark.parametrize("n", [6, 12, 40])
def test_plain_bca_agrees_with_scipy(n):
    from scipy.stats import bootstrap

    x = np.random.default_rng(n).exponential(100, n)
    mine = mean_intervals(x[None, :], n_resamples=49_999, is_expanded=False)[0]
    theirs = bootstrap(
        (x,), np.mean, n_resamples=49_999, method="BCa", batch=2000, random_state=np.random.default_rng(3)
    ).confidence_interval
    assert mine.low == pytest.approx(theirs.low, abs=0.02 * (theirs.high - theirs.low))
    assert mine.high == pytest.approx(theirs.high, abs=0.02 * (theirs.high - theirs.low))


def test_the_ratios_bca_agrees_with_scipy():
    from scipy.stats import bootstrap

    rng = np.random.default_rng(4)
    a, b = rng.exponential(10, 25), rng.exponential(12, 25)
    (mine,) = compare_paired(a[None, :], b[None, :], n_resamples=49_999)
    # Undo the widening: ask for the confidence that gives the same normal levels.
    from scipy.special import ndtr, stdtrit

    level = 1 - 2 * ndtr(-math.sqrt(25 / 24) * stdtrit(24, 0.975))
    theirs = bootstrap(
        (a, b),
        lambda x, y, axis: y.mean(axis) / x.mean(axis),
        paired=True,
        n_resamples=49_999,
        method="BCa",
        confidence_level=level,
        batch=2000,
        random_state=np.random.default_rng(3),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert mine.ratio.low == pytest.approx(theirs.low, abs=0.025 * width)
    assert mine.ratio.high == pytest.approx(theirs.high, abs=0.025 * width)


def test_p_values_and_effects_agree_with_scipy():
    from scipy.stats import fisher_exact, mannwhitneyu, ttest_rel

    rng = np.random.default_rng(6)
    a, b = rng.normal(0, 1, (2, 15, 8))
    b[3] = np.round(b[3])
    for one, other, found in zip(a, b, compare_paired(a, b, n_resamples=99), strict=True):
        assert found.p_value == pytest.approx(ttest_rel(other, one).pvalue)
        u = mannwhitneyu(other, one).statistic
        assert found.vargha_delaney == pytest.approx(u / 64)
        assert found.cliffs_delta == pytest.approx(2 * u / 64 - 1)
        d = other - one
        assert found.standardised == pytest.approx(d.mean() / d.std(ddof=1))
    (fixed,) = compare_paired([[1.0] * 6], [[2.0] * 6])
    assert fixed.p_value == pytest.approx(fisher_exact([[6, 0], [0, 6]]).pvalue)


def test_holm_by_hand():
    assert holm([]) == []
    assert holm([0.2]) == [0.2]
    assert holm([0.01, 0.02, 0.03, 0.9]) == pytest.approx([0.04, 0.06, 0.06, 0.9])
    assert holm([0.6, 0.6]) == [1, 1]


# ---- degenerate samples -----------------------------------------------------


def test_identical_samples_are_deterministic():
    for n in (2, 5, 6, 20):
        (found,) = compare_paired([[7.0] * n], [[7.0] * n])
        assert (found.difference.method, found.difference.low, found.difference.high) == (
            "deterministic",
            0,
            0,
        )
        assert (found.ratio.low, found.ratio.high, found.p_value, found.test) == (1, 1, None, "none")
        assert found.standardised is None
        assert (found.vargha_delaney, found.cliffs_delta) == (0.5, 0)


def test_rounding_is_no_difference():
    a = np.full((1, 10), 0.1) * 3
    b = np.full((1, 10), 0.3)
    assert (a != b).all()
    (found,) = compare_paired(a, b)
    assert (found.difference.estimate, found.p_value) == (0, None)


def test_equal_differences_get_a_cautious_p_value():
    a = np.arange(8.0)[None, :]
    (found,) = compare_paired(a, a + 5)
    assert (found.test, found.p_value) == ("sign-flip", 2.0**-7)
    assert (found.difference.low, found.difference.high) == (5, 5)


def test_one_pair_gives_no_interval():
    (found,) = compare_paired([[1.0]], [[2.0]])
    assert math.isnan(found.difference.low)
    assert math.isnan(found.ratio.high)
    assert (found.difference.method, found.p_value, found.ratio.estimate) == ("single", None, 2)


@pytest.mark.parametrize(
    ("a", "b"),
    [([0] * 8, [1] * 8), ([0, 0, 0, 0, 0, 0, 0, 1], [1] * 8), ([-1, 2, 3, 4, 5, 6, 7, 8], [1] * 8)],
)
def test_a_ratio_that_means_nothing_is_not_given(a, b):
    assert compare_paired([a], [b])[0].ratio is None


def test_proportional_sides_have_an_exact_ratio():
    a = np.array([[3.0, 5, 7, 11, 13, 17, 19]])
    (found,) = compare_paired(a, 2 * a)
    assert (found.ratio.low, found.ratio.estimate, found.ratio.high) == (2, 2, 2)
    assert found.ratio.method == "deterministic"
    assert found.difference.method == "bca"


# ---- properties -------------------------------------------------------------

samples = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(samples, st.integers(1, 5))
def test_intervals_are_ordered_and_repeatable(x, seed):
    one = mean_interval(x, n_resamples=199, seed=seed)
    assert repr(mean_interval(x, n_resamples=199, seed=seed)) == repr(one)
    assert one.n == len(x)
    assert one.seed == (seed if one.method == "bca" else None)
    if one.method == "single":
        assert math.isnan(one.low)
    else:
        slack = 1e-9 * max(map(abs, x))
        assert min(x) - slack <= one.estimate <= max(x) + slack
        assert one.low <= one.high
        if one.method == "bca":
            assert min(x) - slack <= one.low
            assert one.high <= max(x) + slack


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.1, 1e6), min_size=6, max_size=20), st.floats(0.5, 100))
def test_units_do_not_matter(x, unit):
    x = np.array(x)
    y = x[::-1] + 1
    (one,) = compare_paired([x], [y], n_resamples=199)
    (other,) = compare_paired([x * unit], [y * unit], n_resamples=199)
    scale = unit * max(x.max(), 1)
    assert other.difference.low == pytest.approx(unit * one.difference.low, abs=1e-6 * scale)
    assert other.vargha_delaney == one.vargha_delaney


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.lists(st.integers(0, 5), min_size=1))
def test_vargha_delaney_counts_pairs(a, b):
    pairs = [(y > x) + 0.5 * (y == x) for x in a for y in b]
    assert vargha_delaney(a, b) == pytest.approx(sum(pairs) / len(pairs))
    assert vargha_delaney(b, a) == pytest.approx(1 - vargha_delaney(a, b))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=30))
def test_holm_is_monotone_and_never_below(p_values):
    adjusted = holm(p_values)
    assert all(q >= p for p, q in zip(p_values, adjusted, strict=True))
    assert [q for _, q in sorted(zip(p_values, adjusted, strict=True))] == sorted(adjusted)


def test_a_row_does_not_depend_on_its_neighbours():
    rng = np.random.default_rng(2)
    rows = rng.exponential(1, (70, 9))
    together = mean_intervals(rows)
    for i in (0, 33, 69):
        (alone,) = mean_intervals(rows[i : i + 1])
        assert alone.low == pytest.approx(together[i].low)
        assert alone.high == pytest.approx(together[i].high)


# ---- what the page says -----------------------------------------------------


def test_the_page_states_the_bounds_that_are_checked(root: Path):
    page = (root / "docs" / "statistics.md").read_text()
    for name, bounds in COVERAGE.items():
        row = re.search(rf"^\| {name} \|(.+)\|$", page, re.M)
        stated = [int(cell) for cell in row[1].split("|")]
        assert stated == [bounds[n] for n in (6, 10, 20, 50)]
