# SPDX-License-Identifier: MIT
"""Compare policies on the same work, paired by seed.

Runs with equal seeds got the same program, so what differs between them is the
policy. Every policy is compared with one of them, the baseline; stats/decide.py gives
the verdicts.

Must stay true: two runs of different work are never subtracted; what two policies did under different
conditions is no verdict about policies; a run counts once, however often it was repeated on a deterministic host.
Read next: stats/decide.py for the verdicts, gate.py for `schedlab compare`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..metrics.dictionary import DICTIONARY, HEADLINES
from ..model import differences
from ..stats.decide import EXPLORATORY, HEADLINE, are_apart, decide, entry
from ..stats.inference import CONFIDENCE, NR_RESAMPLES, SEED, compare_paired
from ..stats.sentences import show_number
from ..stats.warnings import examine, survivors

#: Runs as `run.json` has them, and those of two sides with one seed each.
Run = Mapping[str, Any]
Pairs = Sequence[tuple[Run, Run]]
#: Metrics that are compared: those for which one direction is better.
COMPARED = tuple(name for name, m in DICTIONARY.items() if m.level == "run" and m.direction != "none")


def compare_runs(
    runs: Sequence[dict[str, Any]],
    *,
    baseline: str | None = None,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> list[dict[str, Any]]:
    """Compare each policy with the baseline, on every workload.

    The baseline is the first policy that has a good run, unless one is given. A pair without two good runs of
    one seed is left out; one whose programs differ has `error` and no metrics. `compare_pairs` has the keys;
    docs/statistics.md says what is computed and when it is not valid.
    """
    groups: dict[tuple[Any, ...], dict[str, dict[int, dict[str, Any]]]] = {}
    for run in runs:
        if run["status"] == "ok":
            key = (run["workload"], run["host"], run["cpus"])
            groups.setdefault(key, {}).setdefault(run["policy"], {})[run["seed"]] = run
    result = []
    for policies in groups.values():
        warnings: dict[str, Any] = {}
        first = baseline if baseline in policies else next(iter(policies))
        for name in policies:
            seeds = sorted(policies[first].keys() & policies[name].keys())
            if name != first and seeds:
                pairs = [(policies[first][s], policies[name][s]) for s in seeds]
                result.append(compare_pairs(pairs, confidence=confidence, seed=seed, known=warnings))
    return decide_together(result)


def compare_pairs(
    pairs: Pairs,
    *,
    label_a: str | None = None,
    label_b: str | None = None,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    known: dict[Any, Any] | None = None,
) -> dict[str, Any]:
    """Compare two sets of good runs, pair by pair of one seed, workload, host and number of CPUs.

    Labels are what sentences call the sides; `known`, kept between calls, has a policy that takes part in
    many pairs examined once. `decide_together` fills in what is decided of `metrics`, each of which is as
    `stats.decide.entry` says.
    """
    first, second = pairs[0]
    found = {
        "workload": first["workload"], "host": first["host"], "cpus": first["cpus"],
        "policy_a": first["policy"], "policy_b": second["policy"],
        "label_a": label_a or first["policy"], "label_b": label_b or second["policy"],
        "seeds": [a["seed"] for a, _ in pairs], "confidence": confidence,
        "error": different_work(pairs), "differs": differences(pairs, conditions=True), "is_deterministic": False,
        "bootstrap": {"seed": seed, "n_resamples": NR_RESAMPLES}, "n_tests": 0, "n_explored": 0,
        "warnings": [], "metrics": {},
    }  # fmt: skip
    if found["error"]:
        return found
    found["warnings"] = [*_confounded(found, pairs), *_survivors(found, pairs)]
    names = [
        name
        for name in COMPARED
        if all(run["metrics"].get(name) is not None for pair in pairs for run in pair)
    ]
    if not names:
        return found
    sides = [[[pair[side]["metrics"][name] for pair in pairs] for name in names] for side in (0, 1)]
    values_a, values_b = np.array(sides, dtype=np.float64)
    is_deterministic = found["is_deterministic"] = len(pairs) > 1 and _is_repeated(pairs)
    # In real time the machine may have changed between the sides.
    is_real_time = any(run.get("started_ns") is not None for pair in pairs for run in pair)
    found["metrics"] = compare_values(
        values_a,
        values_b,
        names,
        confidence=confidence,
        seed=seed,
        is_real_time=is_real_time,
        is_deterministic=is_deterministic,
    )
    found["warnings"] += _warnings(found, pairs, names, (values_a, values_b), known)
    return found


def compare_values(
    values_a: np.ndarray,
    values_b: np.ndarray,
    names: Sequence[str],
    *,
    headlines: Container[str] = HEADLINES,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    is_real_time: bool = False,
    is_deterministic: bool = False,
) -> dict[str, Any]:
    """What `stats.decide.entry` says of each metric; values have the shape (n_metrics, n_pairs), undecided as yet."""
    paired = compare_paired(values_a, values_b, confidence=confidence, seed=seed)
    return {
        name: entry(
            each,
            family=HEADLINE if name in headlines else EXPLORATORY,
            direction=DICTIONARY[name].direction,
            is_apart=bool(is_apart) and not is_real_time,
            is_deterministic=is_deterministic,
        )
        for name, each, is_apart in zip(names, paired, are_apart(values_a, values_b), strict=True)
    }


def decide_together(comparisons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Decide the comparisons of each workload together, in place; see `stats.decide.decide`."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for each in comparisons:
        if all(warning["kind"] != "confounded" for warning in each["warnings"]):
            groups.setdefault((each["workload"], each["host"], each["cpus"]), []).append(each)
    for group in groups.values():
        counts = decide(
            (m for each in group for m in each["metrics"].values()), confidence=group[0]["confidence"]
        )
        for each in group:
            each |= counts
    return comparisons


def different_work(pairs: Pairs) -> str | None:
    """Say which pair did not do the same work."""
    for a, b in pairs:
        if a["program_hash"] != b["program_hash"]:
            return (
                f"refused: with seed {a['seed']} the two sides ran different programs "
                f"({a['program_hash'][:12]} and {b['program_hash'][:12]}), so their numbers "
                "do not compare"
            )
    return None


def is_confounded(pairs: Pairs) -> bool:
    """Whether policy and conditions differ at once, so that a difference has two possible causes."""
    is_same_policy = all(a.get("policy_hash") == b.get("policy_hash") is not None for a, b in pairs)
    return bool(differences(pairs, conditions=True)) and not is_same_policy


def _confounded(comparison: dict[str, Any], pairs: Pairs) -> list[dict[str, Any]]:
    """The warning that this is no comparison of policies, where it is none."""
    if not is_confounded(pairs):
        return []
    return [{
        "policy": f"{comparison['label_a']} and {comparison['label_b']}", "kind": "confounded", "metrics": list(COMPARED),
        "text": f"no comparison of policies, since {'; '.join(comparison['differs'])}",
        "hint": "run both sides with the same options",
    }]  # fmt: skip


def _is_repeated(pairs: Pairs) -> bool:
    """Whether all seeds gave one and the same run, on each side."""
    hashes = [{pair[side].get("record_hash") for pair in pairs} for side in (0, 1)]
    return all(len(found) == 1 and None not in found for found in hashes)


def _survivors(comparison: dict[str, Any], pairs: Pairs) -> list[dict[str, Any]]:
    """The warning that not both sides' metrics are of the same tasks, under the side that has fewer."""
    metrics = [(a["metrics"], b["metrics"]) for a, b in pairs]
    labels = (comparison["label_a"], comparison["label_b"])
    found = survivors(metrics, label_a=labels[0], label_b=labels[1])
    if found is None:
        return []
    warning, names = found
    ended = [sum(pair[side].get("tasks_ended", 0) for pair in metrics) for side in (0, 1)]
    return [{"policy": labels[ended[1] < ended[0]], "metrics": names} | warning.as_json()]


def _warnings(
    comparison: dict[str, Any],
    pairs: Pairs,
    names: list[str],
    values: Sequence[np.ndarray],
    known: dict[Any, Any] | None,
) -> list[dict[str, Any]]:
    """Warnings about both sides, those of one kind together."""
    result = []
    known = {} if known is None else known
    for side, letter in ((0, "a"), (1, "b")):
        label = comparison[f"label_{letter}"]
        key = (label, tuple(comparison["seeds"]))
        if key not in known:
            known[key] = _warnings_of([pair[side] for pair in pairs], names, values[side])
        result += [{"policy": label} | warning for warning in known[key]]
    return result


def _warnings_of(runs: list[Run], names: list[str], values: np.ndarray) -> list[dict[str, Any]]:
    """Warnings about one side: `kind`, `metrics`, `text` of the first, `hint`."""
    started = [run["started_ns"] for run in runs if run.get("started_ns") is not None]
    order = started if len(started) == len(runs) else None
    found: dict[str, dict[str, Any]] = {}
    for name, row in zip(names, values, strict=True):
        for warning in examine(row, order=order, show=partial(show_number, name)):
            text = f"{name}: {warning}" if warning.kind != "too-few" else str(warning)
            kind = found.setdefault(
                warning.kind, {"kind": warning.kind, "metrics": [], "text": text, "hint": warning.hint}
            )
            kind["metrics"].append(name)
    return list(found.values())
