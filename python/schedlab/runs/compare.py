# SPDX-License-Identifier: MIT
"""Compare policies on the same work, paired by seed.

Runs with equal seeds got the same program, so what differs between them is the
policy. Intervals and tests are those of stats/inference.py; a verdict needs a p-value that
survives Holm's adjustment over all metrics and pairs of the workload, and an
interval without 0; or, in virtual time, values that are far apart with every seed.

Must stay true: two runs of different work are never subtracted; what two policies did under different
conditions is no verdict about policies; a run counts once, however often it was repeated on a deterministic host.
Read next: stats/inference.py for the numbers, gate.py for `schedlab compare`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import combinations

import numpy as np

from ..metrics.dictionary import DICTIONARY
from ..stats.doubts import examine, survivors
from ..stats.inference import CONFIDENCE, NR_RESAMPLES, SEED, Paired, compare_paired, holm
from ..stats.sentences import show_number

#: From how many seeds on values may be called apart, and how many times the larger
#: range of the two sides the gap between them must be, both as ratios where all values
#: are positive. Two samples of three from one distribution are so in at most 0.02 % of
#: cases, of four in 0.001 %.
APART_SEEDS_MIN = 3
APART_RANGES_MIN = 5.0
#: And how far, as a share of the larger value: a millionth is no difference to anybody.
APART_SHARE_MIN = 0.05

#: Metrics that are compared: those for which one direction is better.
COMPARED = tuple(name for name, m in DICTIONARY.items() if m.level == "run" and m.direction != "none")


#: Under what a run was done besides its workload, host and CPUs; name in its JSON, and in a sentence.
CONDITIONS = {
    "tick_ns": "tick_ns", "costs": "--cost", "io": "--io", "topology": "--topology", "is_parallel": "--parallel",
    "are_threads": "--threads", "kernel": "--kernel",
}  # fmt: skip


def compare_runs(runs: Sequence[dict], *, confidence: float = CONFIDENCE, seed: int = SEED) -> list[dict]:
    """Compare every two policies on every workload.

    Parameters
    ----------
    runs : sequence of dict
        As `schedlab run --json` lists them.
    confidence : float, default 0.95
        Of intervals; verdicts are wrong with at most the rest of it, over all
        pairs and metrics of one workload together. No unit.
    seed : int, default 1
        Of the bootstrap.

    Returns
    -------
    list of dict
        One per workload, number of CPUs, host and pair of policies; see
        `compare_pairs` for its keys. A pair without two good runs of one seed
        is left out; a pair whose programs differ has `error` and no metrics.

    Notes
    -----
    docs/statistics.md says what is computed and when it is not valid.
    """
    groups: dict[tuple, dict[str, dict[int, dict]]] = {}
    for run in runs:
        if run["status"] == "ok":
            key = (run["workload"], run["host"], run["cpus"])
            groups.setdefault(key, {}).setdefault(run["policy"], {})[run["seed"]] = run
    result = []
    for policies in groups.values():
        doubts: dict = {}
        entries = []
        for name_a, name_b in combinations(policies, 2):
            runs_a, runs_b = policies[name_a], policies[name_b]
            seeds = sorted(runs_a.keys() & runs_b.keys())
            if seeds:
                pairs = [(runs_a[s], runs_b[s]) for s in seeds]
                entries.append(compare_pairs(pairs, confidence=confidence, seed=seed, doubts=doubts))
        result += judge_together(entries)
    return result


def compare_pairs(
    pairs: Sequence[tuple[dict, dict]],
    *,
    label_a: str | None = None,
    label_b: str | None = None,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    doubts: dict | None = None,
) -> dict:
    """Compare two sets of runs, run by run.

    Parameters
    ----------
    pairs : sequence of (dict, dict), shape (n_pairs,)
        Good runs, as `schedlab run --json` lists them; both of a pair have one
        seed, workload, host and number of CPUs.
    label_a, label_b : str, optional
        What sentences call the sides; default: their policies.
    confidence : float, default 0.95
        Of intervals. No unit.
    seed : int, default 1
        Of the bootstrap.
    doubts : dict, optional
        Kept between calls, so that a policy that takes part in many pairs is
        examined once.

    Returns
    -------
    dict
        `workload`, `host`, `cpus`, `policy_a`, `policy_b`, `label_a`, `label_b`,
        `seeds`, `confidence`, `error`, `differs` (conditions besides the policy), `is_deterministic`, `bootstrap` (`seed`,
        `nr_resamples`), `nr_tests`, `warnings` (`policy`, `kind`, `metrics`,
        `text`, `hint`) and `metrics`: name to `mean_a`, `mean_b`, `difference`
        (b - a), `low`, `high`, `ratio` (b / a), `ratio_low`, `ratio_high`, `n`,
        `is_apart`, `method`, `test`, `p_value`, `p_adjusted`, `cliffs_delta`,
        `vargha_delaney`, `standardised`, `verdict` and `better`. `judge_together`
        fills `nr_tests`, `p_adjusted`, `verdict` and `better` in.
    """
    first, second = pairs[0]
    entry = {
        "workload": first["workload"], "host": first["host"], "cpus": first["cpus"],
        "policy_a": first["policy"], "policy_b": second["policy"],
        "label_a": label_a or first["policy"], "label_b": label_b or second["policy"],
        "seeds": [a["seed"] for a, _ in pairs], "confidence": confidence,
        "error": different_work(pairs), "differs": different_conditions(pairs), "is_deterministic": False,
        "bootstrap": {"seed": seed, "nr_resamples": NR_RESAMPLES}, "nr_tests": 0,
        "warnings": [], "metrics": {},
    }  # fmt: skip
    if entry["error"]:
        return entry
    entry["warnings"] = [*_confounded(entry, pairs), *_survivors(entry, pairs)]
    names = [
        name
        for name in COMPARED
        if all(run["metrics"].get(name) is not None for pair in pairs for run in pair)
    ]
    if not names:
        return entry
    sides = [[[pair[side]["metrics"][name] for pair in pairs] for name in names] for side in (0, 1)]
    values_a, values_b = np.array(sides, dtype=np.float64)
    found = compare_paired(values_a, values_b, confidence=confidence, seed=seed)
    entry["is_deterministic"] = len(pairs) > 1 and _is_repeated(pairs)
    entry["metrics"] = {
        name: _as_dict(paired, entry["is_deterministic"]) | {"is_apart": bool(is_apart)}
        for name, paired, is_apart in zip(names, found, _apart(pairs, values_a, values_b), strict=True)
    }
    entry["warnings"] += _warnings(entry, pairs, names, (values_a, values_b), doubts)
    return entry


def different_work(pairs: Sequence[tuple[dict, dict]]) -> str | None:
    """Say which pair did not do the same work.

    Parameters
    ----------
    pairs : sequence of (dict, dict), shape (n_pairs,)
        Runs, as `schedlab run --json` lists them.

    Returns
    -------
    str or None
        The refusal, with the hashes of both programs; None where all is well.
    """
    for a, b in pairs:
        if a["program_hash"] != b["program_hash"]:
            return (
                f"refused: with seed {a['seed']} the two sides ran different programs "
                f"({a['program_hash'][:12]} and {b['program_hash'][:12]}), so their numbers "
                "do not compare"
            )
    return None


def different_conditions(pairs: Sequence[tuple[dict, dict]]) -> list[str]:
    """Say what differs between the sides besides the policy.

    Parameters
    ----------
    pairs : sequence of (dict, dict), shape (n_pairs,)
        Runs, as `schedlab run --json` lists them.

    Returns
    -------
    list of str
        Such as `"--io differs: none and latency_ns=5000000"`, one for each of `CONDITIONS`.
    """
    found = []
    for key, name in CONDITIONS.items():
        for a, b in pairs:
            one, other = _condition(a.get(key)), _condition(b.get(key))
            if one != other:
                found.append(f"{name} differs: {one} and {other}")
                break
    return found


def _condition(value: object) -> str:
    """A condition in words; what a run does not name was not asked for."""
    if isinstance(value, list):
        return ",".join(sorted(value)) or "none"
    return "yes" if value is True else str(value) if value else "none"


def is_confounded(pairs: Sequence[tuple[dict, dict]]) -> bool:
    """Whether policy and conditions differ at once, so that a difference has two possible causes.

    Parameters
    ----------
    pairs : sequence of (dict, dict), shape (n_pairs,)
        Runs, as `schedlab run --json` lists them.

    Returns
    -------
    bool
        True where no verdict about the policies can be given.
    """
    is_same_policy = all(a.get("policy_hash") == b.get("policy_hash") is not None for a, b in pairs)
    return bool(different_conditions(pairs)) and not is_same_policy


def _confounded(entry: dict, pairs) -> list[dict]:
    """The warning that this is no comparison of policies, where it is none."""
    if not is_confounded(pairs):
        return []
    return [{
        "policy": f"{entry['label_a']} and {entry['label_b']}", "kind": "confounded", "metrics": list(COMPARED),
        "text": f"no comparison of policies, since {'; '.join(entry['differs'])}",
        "hint": "run both sides with the same options",
    }]  # fmt: skip


def _is_repeated(pairs: Sequence[tuple[dict, dict]]) -> bool:
    """Whether all seeds gave one and the same run, on each side."""
    hashes = [{pair[side].get("record_hash") for pair in pairs} for side in (0, 1)]
    return all(len(found) == 1 and None not in found for found in hashes)


def _apart(pairs: Sequence[tuple[dict, dict]], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """For each metric, whether no seed leaves a doubt; only in virtual time, where nothing drifts."""
    is_real_time = any(run.get("started_ns") is not None for pair in pairs for run in pair)
    if len(pairs) < APART_SEEDS_MIN or is_real_time:
        return np.zeros(len(a), dtype=bool)
    # Times and counts that differ by orders of magnitude vary by them, too: ratios, where there are any.
    are_positive = (a > 0).all(axis=1) & (b > 0).all(axis=1)
    largest = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))
    scale = np.where(are_positive | (largest == 0), 1, largest)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = (np.where(are_positive[:, None], np.log(side), side / scale) for side in (a, b))
    gap = np.maximum(a.min(axis=1) - b.max(axis=1), b.min(axis=1) - a.max(axis=1))
    return (gap >= APART_SHARE_MIN) & (
        gap >= APART_RANGES_MIN * np.maximum(np.ptp(a, axis=1), np.ptp(b, axis=1))
    )


def _as_dict(paired: Paired, is_deterministic: bool) -> dict:
    """One metric's entry, before it is judged."""

    def known(value: float) -> float | None:
        return None if math.isnan(value) else value

    interval, ratio = paired.difference, paired.ratio
    return {
        "mean_a": paired.mean_a,
        "mean_b": paired.mean_b,
        "difference": interval.estimate,
        "low": known(interval.low),
        "high": known(interval.high),
        "ratio": ratio and ratio.estimate,
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
        "verdict": "not tested",
        "better": None,
    }


def judge_together(entries: list[dict]) -> list[dict]:
    """Adjust the p-values of several comparisons together, and decide.

    Parameters
    ----------
    entries : list of dict
        What `compare_pairs` returned, for all pairs that a reader sees together.

    Returns
    -------
    list of dict
        The same entries; `nr_tests`, `p_adjusted`, `verdict` (`"a is better"`,
        `"b is better"`, `"no difference"`, `"undecided"`, `"not tested"`: one seed, or
        policies under different conditions) and `better`
        (`"a"`, `"b"` or None) are filled in.

    Notes
    -----
    Where every seed gave the same run there is nothing random to test: a
    difference is a fact about this work, and is decided without a p-value. "No
    difference" is that every seed gave both sides the same value; what may be a
    difference or chance is undecided, and more seeds decide it.
    """
    rows = [(e, name, m) for e in entries for name, m in e["metrics"].items()]
    tested = [m for _, _, m in rows if m["p_value"] is not None]
    for m, p in zip(tested, holm([m["p_value"] for m in tested]), strict=True):
        m["p_adjusted"] = p
    for entry, name, m in rows:
        entry["nr_tests"] = len(tested)
        if m["n"] < 2 or any(doubt["kind"] == "confounded" for doubt in entry["warnings"]):
            continue
        is_clear = m["low"] > 0 or m["high"] < 0
        is_sure = entry["is_deterministic"] or (
            m["p_adjusted"] is not None and m["p_adjusted"] <= 1 - entry["confidence"]
        )
        m["verdict"] = "no difference" if m["difference"] == m["low"] == m["high"] == 0 else "undecided"
        if (is_clear and is_sure) or m["is_apart"]:
            is_lower = DICTIONARY[name].direction == "lower"
            m["better"] = "a" if (m["difference"] > 0) == is_lower else "b"
            m["verdict"] = f"{m['better']} is better"
    return entries


def _survivors(entry: dict, pairs) -> list[dict]:
    """The doubt whether both sides' metrics are of the same tasks, under the name of who has fewer."""
    metrics = [(a["metrics"], b["metrics"]) for a, b in pairs]
    labels = (entry["label_a"], entry["label_b"])
    found = survivors(metrics, label_a=labels[0], label_b=labels[1])
    if found is None:
        return []
    doubt, names = found
    ended = [sum(pair[side].get("tasks_ended", 0) for pair in metrics) for side in (0, 1)]
    return [{"policy": labels[ended[1] < ended[0]], "metrics": names} | doubt.as_json()]


def _warnings(entry: dict, pairs, names: list[str], values, doubts: dict | None) -> list[dict]:
    """Doubts about both sides, those of one kind together."""
    result = []
    for side, letter in ((0, "a"), (1, "b")):
        runs = [pair[side] for pair in pairs]
        key = (entry[f"label_{letter}"], tuple(entry["seeds"]))
        known = None if doubts is None else doubts.get(key)
        if known is None:
            known = _doubts_of(runs, names, values[side])
            if doubts is not None:
                doubts[key] = known
        result += [{"policy": entry[f"label_{letter}"]} | doubt for doubt in known]
    return result


def _doubts_of(runs: list[dict], names: list[str], values: np.ndarray) -> list[dict]:
    """Doubts about one side: `kind`, `metrics`, `text` of the first, `hint`."""
    started = [run.get("started_ns") for run in runs]
    order = None if None in started else started
    found: dict[str, dict] = {}
    for name, row in zip(names, values, strict=True):
        for doubt in examine(row, order=order, show=partial(show_number, name)):
            text = f"{name}: {doubt}" if doubt.kind != "too-few" else str(doubt)
            kind = found.setdefault(
                doubt.kind, {"kind": doubt.kind, "metrics": [], "text": text, "hint": doubt.hint}
            )
            kind["metrics"].append(name)
    return list(found.values())
