# SPDX-License-Identifier: MIT
"""How often verdicts are wrong, and how often they miss a difference, measured; `-rP` prints the rates."""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.metrics.dictionary import DICTIONARY, HEADLINES
from schedlab.stats.decide import EXPLORATORY, HEADLINE, are_apart, decide, entry
from schedlab.stats.inference import compare_paired

N_POLICIES, N_EXPLORED = 7, 24


def families(base, others, *, n_headline):
    """Verdicts of one workload, shape (n_policies - 1, n_metrics): the baseline's values and the others'."""
    rows = []
    for other in others:
        # The test decides; the interval is looked at after it, and can only take a verdict away.
        paired = compare_paired(base, other, n_resamples=199)
        apart = are_apart(base, other)
        rows.append([
            entry(each, family=HEADLINE if i < n_headline else EXPLORATORY, direction="lower", is_apart=bool(apart[i]))
            for i, each in enumerate(paired)
        ])  # fmt: skip
    decide((m for row in rows for m in row), confidence=0.95)
    return np.array([[m["better"] is not None for m in row] for row in rows])


DRAWS = {
    "normal": lambda rng, shape: rng.normal(10, 1, shape),
    "exponential": lambda rng, shape: rng.exponential(10, shape),
    "lognormal": lambda rng, shape: rng.lognormal(0, 1, shape),
}


def false_alarms(draw, n_seeds, n_families, seed):
    """Share of families with any verdict where no policy differs: headline, and exploratory."""
    rng = np.random.default_rng(seed)
    found = np.zeros(2)
    n = len(HEADLINES)
    for _ in range(n_families):
        values = DRAWS[draw](rng, (N_POLICIES, n + N_EXPLORED, n_seeds))
        verdicts = families(values[0], values[1:], n_headline=n)
        found += verdicts[:, :n].any(), verdicts[:, n:].any()
    return found / n_families


@pytest.mark.full
def test_decide_false_alarms_of_a_family_are_rare():
    """One distribution in the quick suite; docs/statistics.md has those of the next test."""
    assert max(false_alarms("normal", 10, 60, seed=1)) <= 0.1


@pytest.mark.full
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("n_seeds", [3, 6, 10, 20])
def test_decide_false_alarms_of_each_family_are_at_most_5_percent(draw, n_seeds):
    headline, explored = false_alarms(draw, n_seeds, 300, seed=n_seeds)
    print(f"false alarms, {draw}, {n_seeds} seeds: headline {headline:.1%}, exploratory {explored:.1%}")
    # Three standard errors of 300 families above 5 %.
    assert headline <= 0.088 and explored <= 0.088


def power(n_seeds, spread, n_families, seed):
    """Share of families in which the one headline metric that differs by 5 % is told."""
    rng = np.random.default_rng(seed)
    n = len(HEADLINES)
    found = 0
    for _ in range(n_families):
        work = rng.lognormal(0, 0.3, (1, n, n_seeds))  # the same for all policies
        values = work * rng.lognormal(0, spread / 2**0.5, (N_POLICIES, n, n_seeds))
        values[1, 0] *= 1.05
        found += families(values[0], values[1:], n_headline=n)[0, 0]
    return found / n_families


#: A spread at which no number of these seeds tells it reliably.
NIGHTLY = pytest.param(0.1, 0, marks=pytest.mark.nightly)


def test_decide_finds_a_difference_of_5_percent():
    """Among 60 tests, where the same seed under two policies differs by 3 % by chance."""
    assert power(20, 0.03, 30, seed=1) >= 0.8


@pytest.mark.full
@pytest.mark.parametrize(("spread", "minimum"), [(0.02, 0.97), (0.03, 0.9), (0.05, 0.4), NIGHTLY])
def test_decide_power_for_5_percent_is_what_is_documented(spread, minimum):
    found = {n: power(n, spread, 100, seed=n) for n in (10, 20, 50)}
    print(f"power, spread {spread:.0%}:", *(f"{n} seeds {share:.0%}" for n, share in found.items()))
    assert found[20] >= minimum and found[10] <= found[50]


def test_are_apart_chance_seldom_looks_so():
    """Three seeds of one distribution: at most 0.03 % of metrics, as docs/statistics.md says."""
    rng = np.random.default_rng(7)
    for draw in (rng.normal, rng.exponential, rng.lognormal):
        a, b = (draw(size=(100_000, 3)) for _ in range(2))
        assert are_apart(a, b).mean() <= 0.0006
        assert are_apart(np.exp(a), np.exp(b)).mean() <= 0.0006


def test_decide_direction_none_differs_without_a_winner():
    a = np.array([[10.0, 11.0, 12.0, 10.5, 11.5, 10.2]])
    (each,) = compare_paired(a, a + 5 + a / 100)
    m = entry(each, family=HEADLINE, direction="none")
    assert decide([m], confidence=0.95) == {"n_tests": 1, "n_explored": 1}
    assert (m["verdict"], m["better"]) == ("differs", None)


def test_headlines_are_metrics_of_runs_with_a_direction():
    assert all(DICTIONARY[name].level == "run" and DICTIONARY[name].direction != "none" for name in HEADLINES)
