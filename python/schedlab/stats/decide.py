# SPDX-License-Identifier: MIT
"""The one procedure that turns paired values into verdicts: of policies, folders, and commands.

        paired values -> compare_paired() -> entry() per metric -> decide() per family

A family is what a reader asks at once: the headline metrics of one workload, each policy
against the baseline. Holm's adjustment keeps the chance of any wrong verdict among them at
5 %. All other metrics are exploratory: adjusted over everything that was computed, which
decides less, and called so wherever they are shown.

Invariant: the false-alarm rates and the power in docs/statistics.md are those that
tests/python/test_decide.py measures.
Read next: inference.py for intervals and tests; runs/compare.py, which pairs runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .inference import Paired, holm

HEADLINE, EXPLORATORY = "headline", "exploratory"
#: From how many seeds on values may be called apart, and how many times the larger
#: range of the two sides the gap between them must be, both as ratios where all values
#: are positive. Two samples of three from one distribution are so in at most 0.02 % of
#: cases, of four in 0.001 %.
APART_SEEDS_MIN = 3
APART_RANGES_MIN = 5.0
#: And how far, as a share of the larger value: a millionth is no difference to anybody.
APART_SHARE_MIN = 0.05


def entry(
    paired: Paired, *, family: str, direction: str, is_apart: bool = False, is_deterministic: bool = False
) -> dict[str, Any]:
    """One metric of a comparison, before it is decided.

    `paired` is what `compare_paired` found; `family` is `HEADLINE` or `EXPLORATORY`; `direction` `"lower"`
    or `"higher"` is better, or `"none"`; `is_apart` is told by `are_apart`; `is_deterministic`: every seed
    gave the same run on each side, so nothing is random. Returns `mean_a`, `mean_b`, `difference` (b - a),
    `low`, `high`, `ratio` (b / a), `ratio_low`, `ratio_high`, `n`, `method`, `test`, `p_value`,
    `p_adjusted`, `cliffs_delta`, `vargha_delaney`, `standardised`, `family`, `direction`, `is_apart`,
    `is_certain`, `verdict` and `better`. What is not defined is None.
    """

    def known(value: float) -> float | None:
        return None if math.isnan(value) else value

    interval, ratio = paired.difference, paired.ratio
    return {
        "mean_a": paired.mean_a,
        "mean_b": paired.mean_b,
        "difference": interval.estimate,
        "low": known(interval.low),
        "high": known(interval.high),
        "ratio": ratio and known(ratio.estimate),
        "ratio_low": ratio and known(ratio.low),
        "ratio_high": ratio and known(ratio.high),
        "n": paired.n,
        "method": interval.method,
        "test": "none" if is_deterministic else paired.test,
        "p_value": None if is_deterministic else paired.p_value,
        "p_adjusted": None,
        "cliffs_delta": paired.cliffs_delta,
        "vargha_delaney": paired.vargha_delaney,
        "standardised": paired.standardised,
        "family": family,
        "direction": direction,
        "is_apart": is_apart,
        "is_certain": is_deterministic,
        "verdict": "not tested",
        "better": None,
    }


def decide(entries: Iterable[dict[str, Any]], *, confidence: float) -> dict[str, int]:
    """Adjust the p-values of one workload's comparisons, and decide each metric.

    Of `entry`, of all policies against one baseline: `p_adjusted`, `verdict` and `better` (`"a"`, `"b"` or
    None) are filled in. `confidence` is that of the verdicts of the headline family together. Returns
    `n_tests` of the headline family, and `n_explored`: those of all metrics.

    A verdict is `"a is better"`, `"b is better"`, `"differs"` (no direction is better),
    `"no difference"`, `"undecided"` or `"not tested"` (one pair). It needs an adjusted
    p-value of at most 1 - `confidence` and an interval without 0; or values that are far
    apart. Where every seed gave the same run there is nothing random to test: a difference
    is a fact about this work, and is decided without a p-value. "No difference" is that
    every seed gave both sides the same value.
    """
    rows = list(entries)
    tested = [m for m in rows if m["p_value"] is not None]
    headline = [m for m in tested if m["family"] == HEADLINE]
    for family, among in ((EXPLORATORY, tested), (HEADLINE, headline)):
        for m, p in zip(among, holm([m["p_value"] for m in among]), strict=True):
            if m["family"] == family:
                m["p_adjusted"] = p
    for m in rows:
        if m["n"] > 1:
            m["verdict"], m["better"] = _verdict(m, 1 - confidence)
    return {"n_tests": len(headline), "n_explored": len(tested)}


def _verdict(m: dict[str, Any], level: float) -> tuple[str, str | None]:
    """Verdict and better side of one metric."""
    is_clear = m["low"] > 0 or m["high"] < 0
    is_sure = m["is_certain"] or (m["p_adjusted"] is not None and m["p_adjusted"] <= level)
    if not ((is_clear and is_sure) or m["is_apart"]):
        return "no difference" if m["difference"] == m["low"] == m["high"] == 0 else "undecided", None
    if m["direction"] == "none":
        return "differs", None
    better = "a" if (m["difference"] > 0) == (m["direction"] == "lower") else "b"
    return f"{better} is better", better


def are_apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """For each metric, whether no seed leaves a doubt that the sides differ.

    Values of shape (n_metrics, n_pairs) in virtual time, where nothing drifts; False for fewer than three
    pairs.
    """
    if a.shape[1] < APART_SEEDS_MIN:
        return np.zeros(len(a), dtype=bool)
    # Times and counts that differ by orders of magnitude vary by them, too: ratios, where there are any.
    are_positive = np.minimum(a, b).min(axis=1) > 0
    largest = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))
    scale = np.where(are_positive | (largest == 0), 1, largest)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = (np.where(are_positive[:, None], np.log(side), side / scale) for side in (a, b))
    gap = np.maximum(a.min(axis=1) - b.max(axis=1), b.min(axis=1) - a.max(axis=1))
    return (gap >= APART_SHARE_MIN) & (
        gap >= APART_RANGES_MIN * np.maximum(np.ptp(a, axis=1), np.ptp(b, axis=1))
    )
