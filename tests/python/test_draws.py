# SPDX-License-Identifier: MIT
"""Draws: exact to the stated accuracy, and the distributions they claim to be."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.errors import UnitError
from schedlab.program import draws
from schedlab.units import TIME_MAX_NS, parse_duration
from schedlab.workload.distributions import Distribution, parse_distribution

getcontext().prec = 50
LN2 = Decimal(2).ln()
PI = Decimal("3.14159265358979323846264338327950288419716939937510582")
words = st.integers(0, 2**64 - 1)

GOLDEN_KEY = 5248158107333018566
GOLDEN_EXP = [678841, 56176273, 53855569]
GOLDEN_NORMAL = [21233141, 31722716, 31417576]
GOLDEN_LOGNORMAL = [23768757, 103225146, 98908280]
GOLDEN_PARETO = [20273387, 61513565, 58723714]
GOLDEN_UNIFORM = [8733021, 1482211, 1541540]


def array(*values):
    return np.array(values, dtype=np.uint64)


def sample(text, number=50_000, key=7):
    return draws.draw(parse_distribution(text, read=parse_duration), key, number)[:, 0]


@pytest.mark.parametrize("seed", [0, 15, 16, 1000, 2**64 - 1])
@pytest.mark.parametrize("n_draws", [1, 7, draws.VALUES_AHEAD_MAX])
@pytest.mark.parametrize(
    "text", ["uniform(1ns, 9s)", "exp(5ms, min=4ms, max=6ms)", "choice(1ms, 2ms)", "uniform(3ms, 3ms)"]
)
def test_classes_and_seeds_drawn_at_once_are_those_drawn_alone(text, n_draws, seed):
    distribution = parse_distribution(text, read=parse_duration)
    paths, counts = ((7, 1), (2**64 - 1, 2, 3), (GOLDEN_KEY, 0)), (1, 30, 2)
    alone = [
        row
        for path, count in zip(paths, counts, strict=True)
        for row in draws.draw(distribution, draws.stream_key(seed, *path), count, n_draws).tolist()
    ]
    assert draws.draw_for_seed(distribution, seed, paths, counts, n_draws).tolist() == alone


def test_the_digits_of_a_logarithm_are_those_of_squaring(monkeypatch):
    edges = np.concatenate([draws._powers_of_two(12)[0], draws._powers_of_two(24)[0]])
    edges = np.concatenate([edges[::8], edges[8::8] - np.uint64(1), array(2**63 + 1, 2**64 - 1)])
    word = np.concatenate([edges, np.random.default_rng(1).integers(2**63, 2**64, 20_000, dtype=np.uint64)])
    squared = {}
    by_squaring = draws._log2_by_squaring
    monkeypatch.setattr(draws, "_log2_by_squaring", lambda word: squared.setdefault(word, by_squaring(word)))
    found = draws._log2_digits(word)
    # Squaring is asked where the tables cannot tell, as at the powers themselves, and seldom else.
    assert 2**63 in squared
    assert 0 < sum(each in squared for each in word[len(edges) :].tolist()) < 40
    assert found.tolist() == [by_squaring(each) for each in word.tolist()]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("exq(5ms)", r"unknown distribution 'exq' \(did you mean 'exp'\?\)"),
        ("exp()", r"exp needs 'mean': write exp\(mean\)"),
        ("exp(0ms)", "mean must be above 0"),
        ("exp(5ms, 6ms)", r"exp takes 1 values"),
        ("exp(5ms, mx=6ms)", r"no parameter 'mx' \(did you mean 'max'\?\)"),
        ("exp(5ms, mean=6ms)", "'mean' is given twice"),
        ("uniform(5ms, 4ms)", r"low \(5000000\) is above high"),
        ("normal(5ms, 1ms, max=4ms)", "mean .* outside the range"),
        ("pareto(5ms, 0)", "alpha of pareto must be a number above 0"),
        ("pareto(5ms, 2, max=1ms)", "scale .* above max"),
        ("choice()", "choice needs 1 to"),
        ("exp(5ms, min=3ms, max=2ms)", "min .* above max"),
    ],
)
def test_refuses_bad_distributions(text, why):
    with pytest.raises(UnitError, match=why):
        parse_distribution(text, read=parse_duration)


def test_both_forms_are_the_same():
    table = {"dist": "normal", "mean": "5ms", "sd": "1ms", "max": "9ms"}
    text = "normal(5ms, 1ms, max=9ms)"
    assert parse_distribution(table, read=parse_duration) == parse_distribution(text, read=parse_duration)


@given(words, words, st.integers(1, 64))
def test_multiply_shift_is_exact(a, b, shift):
    exact = min((a * b + (1 << (shift - 1))) >> shift, TIME_MAX_NS)
    found = int(draws.multiply_shift(array(a), array(b), shift)[0])
    assert found == exact or (exact == TIME_MAX_NS and found >= TIME_MAX_NS)


@given(words)
def test_logarithm_within_stated_accuracy(raw):
    exact = -(Decimal(raw | 1) / 2**64).ln()
    found = Decimal(int(draws.minus_ln_q48(array(raw))[0])) / 2**48
    assert abs(found - exact) < Decimal(2) ** -44


def decimal_cosine(x):
    term, total, k = Decimal(1), Decimal(1), 0
    while abs(term) > Decimal(10) ** -40:
        k += 2
        term *= -x * x / (k * (k - 1))
        total += term
    return total


@given(words, words)
def test_normal_deviate_within_stated_accuracy(raw, angle):
    place = Decimal((angle << 1 | 1) & (2**64 - 1)) / 2**64
    radius = (-2 * (Decimal(raw | 1) / 2**64).ln()).sqrt()
    exact = radius * decimal_cosine(place * PI / 2)
    size, negative = draws.normal_q48(array(raw), array(angle))
    bound = Decimal(2) ** (-40 if radius > Decimal(2) ** -7 else -23)
    assert abs(Decimal(int(size[0])) / 2**48 - exact) < bound
    assert bool(negative[0]) == (angle >= 2**63)


@given(st.integers(1, 10**12), st.integers(-(50 << 48), 20 << 48))
def test_powers_of_two_within_stated_accuracy(factor, exponent):
    exact = factor * (Decimal(exponent) / 2**48 * LN2).exp()
    found = int(draws._times_power_of_two(factor, np.array([exponent]))[0])
    if exact >= TIME_MAX_NS:
        assert found == TIME_MAX_NS or found >= exact * (1 - Decimal(2) ** -44) - 1
    else:
        assert abs(found - exact) <= 1 + exact * Decimal(2) ** -44


def test_constants():
    assert int(LN2 * 2**64) == draws.LN2_Q64
    assert round((PI / 2) ** 2 * 2**62) == draws.QUARTER_TURN_SQUARED_Q62


def normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


@pytest.mark.parametrize(
    ("text", "cdf"),
    [
        ("uniform(1s, 3s)", lambda x: (x - 1) / 2),
        ("exp(2s)", lambda x: 1 - math.exp(-x / 2)),
        (
            "exp(2s, min=1s, max=3s)",
            lambda x: (math.exp(-0.5) - math.exp(-x / 2)) / (math.exp(-0.5) - math.exp(-1.5)),
        ),
        ("normal(10s, 1s)", lambda x: normal_cdf(x - 10)),
        (
            "normal(1s, 1s)",  # cut off at 0
            lambda x: (normal_cdf(x - 1) - normal_cdf(-1)) / (1 - normal_cdf(-1)),
        ),
        ("lognormal(1s, 0.5)", lambda x: normal_cdf(math.log(x) / 0.5)),
        ("pareto(1s, 1.5)", lambda x: 1 - x**-1.5),
        ("pareto(1s, 1.5, max=4s)", lambda x: (1 - x**-1.5) / (1 - 4**-1.5)),
    ],
)
def test_distribution_has_its_shape(text, cdf):
    """Kolmogorov-Smirnov by hand; the seed is fixed, so this cannot flicker."""
    number = 50_000
    ordered = np.sort(sample(text, number)) / 1e9
    steps = np.arange(number + 1) / number
    expected = np.array([cdf(x) for x in ordered])
    distance = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    assert distance < 1.95 / math.sqrt(number)  # the 0.1 % point


def test_choice_takes_each_equally_often():
    values, counts = np.unique(sample("choice(1ms, 2ms, 7ms)", 30_000), return_counts=True)
    assert values.tolist() == [1_000_000, 2_000_000, 7_000_000]
    assert abs(counts - 10_000).max() < 4 * math.sqrt(30_000 * 2 / 9)


def test_a_value_depends_on_its_place_only():
    distribution = Distribution("exp", (1_000_000,))
    few = draws.draw(distribution, 5, 3, 2)
    many = draws.draw(distribution, 5, 100, 50)
    assert (many[:3, :2] == few).all()
    assert len(np.unique(many)) > 4_990
    assert (draws.draw(distribution, 6, 3, 2) != few).all()


def test_streams_are_told_apart():
    keys = {
        draws.stream_key(seed, name, purpose, phase)
        for seed in range(8)
        for name in range(8)
        for purpose in range(8)
        for phase in range(8)
    }
    assert len(keys) == 8**4


def test_golden_raw_words():
    """What a seed means may never change; these numbers pin it."""
    key = draws.stream_key(1, draws.name_key("web"), 3, 0)
    assert key == GOLDEN_KEY
    assert sample("exp(20ms)", 3, key).tolist() == GOLDEN_EXP
    assert sample("normal(20ms, 5ms)", 3, key).tolist() == GOLDEN_NORMAL
    assert sample("lognormal(20ms, 0.7)", 3, key).tolist() == GOLDEN_LOGNORMAL
    assert sample("pareto(20ms, 2.5)", 3, key).tolist() == GOLDEN_PARETO
    assert sample("uniform(1ms, 9ms)", 3, key).tolist() == GOLDEN_UNIFORM


def test_hopeless_bounds_are_clamped():
    values = sample("normal(500s, 1000s, min=499s, max=500s)", 2_000)
    assert values.min() >= 499 * 10**9
    assert values.max() <= 500 * 10**9
