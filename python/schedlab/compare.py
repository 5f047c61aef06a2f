# SPDX-License-Identifier: MIT
"""Compare policies on the same work, paired by seed.

Runs with equal seeds got the same program, so what differs between them is the
policy. The mean of the paired differences gets a Student interval, which is
enough for a first look; it is not shown where it would mean nothing.

Must stay true: two runs of different work are never subtracted.
Read next: cli.py, which prints the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

from .metrics import DICTIONARY

#: Metrics that are compared: those for which one direction is better.
COMPARED = tuple(
    name for name, m in DICTIONARY.items() if m.level == "run" and m.direction != "none"
)
CONFIDENCE = 0.95


@lru_cache(maxsize=256)
def student_quantile(p: float, freedom: int) -> float:
    """Quantile of Student's t distribution.

    Parameters
    ----------
    p : float
        Probability, 0.5 < p < 1.
    freedom : int
        Degrees of freedom, at least 1.

    Returns
    -------
    float
        The value that is not exceeded with probability `p`, to 1e-9.

    Raises
    ------
    ValueError
        If `p` or `freedom` is out of range.

    Notes
    -----
    With the substitution t = sqrt(f) tan(a) the distribution function is the
    integral of cos(a)**(f - 1), which Simpson's rule gives almost exactly; the
    quantile is found by bisection. SciPy has it too, but takes a second to import.

    Examples
    --------
    >>> round(student_quantile(0.975, 9), 4)
    2.2622
    """
    if not 0.5 < p < 1 or freedom < 1:
        raise ValueError(f"p={p} must be in (0.5, 1) and freedom={freedom} at least 1")
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)

    def distribution(angle: float) -> float:
        steps = 2000
        width = angle / steps
        total = sum(
            (1 if i in (0, steps) else 4 if i % 2 else 2) * math.cos(i * width) ** (freedom - 1)
            for i in range(steps + 1)
        )
        return 0.5 + scale * total * width / 3

    low, high = 0.0, math.pi / 2
    for _ in range(48):
        middle = (low + high) / 2
        low, high = (middle, high) if distribution(middle) < p else (low, middle)
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def paired_interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """Mean of paired differences with its 95 % interval.

    Parameters
    ----------
    differences : sequence of float, shape (n_pairs,)
        One per seed.

    Returns
    -------
    tuple of float
        Mean, low and high end. Both ends are NaN with fewer than two pairs.

    Notes
    -----
    Valid when the differences are independent and their mean is roughly
    normal; heavy tails need more seeds than this interval shows. Where all
    differences are equal it has no width: a deterministic host on work that
    does not depend on the seed.

    References
    ----------
    .. [1] R. Jain, *The Art of Computer Systems Performance Analysis*, 1991, ch. 13.
    """
    n = len(differences)
    mean = math.fsum(differences) / n
    if n < 2:
        return mean, math.nan, math.nan
    variance = math.fsum((d - mean) ** 2 for d in differences) / (n - 1)
    half = student_quantile(0.5 + CONFIDENCE / 2, n - 1) * math.sqrt(variance / n)
    return mean, mean - half, mean + half


def compare_runs(runs: Sequence[dict]) -> list[dict]:
    """Compare every two policies on every workload.

    Parameters
    ----------
    runs : sequence of dict
        As `schedlab run --json` lists them.

    Returns
    -------
    list of dict
        One per workload, number of CPUs, host and pair of policies: `workload`,
        `host`, `cpus`, `policy_a`, `policy_b`, `seeds`, `error` and `metrics`, a
        mapping from name to `mean_a`, `mean_b`, `difference` (b - a), `low`,
        `high` and `better` (`"a"`, `"b"` or None where the interval holds 0).
        A pair without two good runs of one seed is left out; a pair whose
        programs differ has `error` and no metrics.
    """
    groups: dict[tuple, dict[str, dict[int, dict]]] = {}
    for run in runs:
        if run["status"] == "ok":
            key = (run["workload"], run["host"], run["cpus"])
            groups.setdefault(key, {}).setdefault(run["policy"], {})[run["seed"]] = run
    result = []
    for (workload, host, cpus), policies in groups.items():
        for name_a, name_b in combinations(policies, 2):
            runs_a, runs_b = policies[name_a], policies[name_b]
            seeds = sorted(runs_a.keys() & runs_b.keys())
            if not seeds:
                continue
            pairs = [(runs_a[seed], runs_b[seed]) for seed in seeds]
            entry = {"workload": workload, "host": host, "cpus": cpus, "policy_a": name_a,
                     "policy_b": name_b, "seeds": seeds, "confidence": CONFIDENCE}
            result.append(entry | _compare_pairs(pairs))
    return result


def _compare_pairs(pairs: list[tuple[dict, dict]]) -> dict:
    """`error` and `metrics` of one pair of policies."""
    for a, b in pairs:
        if a["program_hash"] != b["program_hash"]:
            return {
                "error": f"refused: with seed {a['seed']} the two sides ran different programs "
                f"({a['program_hash'][:12]} and {b['program_hash'][:12]}), so their numbers "
                "do not compare",
                "metrics": {},
            }
    metrics = {}
    for name in COMPARED:
        values = [(a["metrics"].get(name), b["metrics"].get(name)) for a, b in pairs]
        if any(one is None or other is None for one, other in values):
            continue
        n = len(values)
        mean, low, high = paired_interval([other - one for one, other in values])
        metrics[name] = {
            "mean_a": math.fsum(one for one, _ in values) / n,
            "mean_b": math.fsum(other for _, other in values) / n,
            "difference": mean,
            "low": None if math.isnan(low) else low,
            "high": None if math.isnan(high) else high,
            "better": _better(name, low, high),
        }
    return {"error": None, "metrics": metrics}


def _better(name: str, low: float, high: float) -> str | None:
    """Which side is better, where the interval of b - a leaves no doubt."""
    # Written so that NaN, of a single pair, decides nothing.
    if low > 0:
        return "a" if DICTIONARY[name].direction == "lower" else "b"
    if high < 0:
        return "b" if DICTIONARY[name].direction == "lower" else "a"
    return None
