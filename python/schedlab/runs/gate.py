# SPDX-License-Identifier: MIT
"""`schedlab compare`: two folders of runs, and conditions that fail a build.

A condition such as 'wakeup_p99 > +5%' holds only where the whole interval lies
beyond the threshold: what is undecided passes. With several conditions, workloads or
policies the intervals widen, so that all of them hold together with the
confidence asked for (Bonferroni).

Must stay true: runs of different programs are refused, whatever is asked; a
failed run on either side never passes.
Read next: compare.py for the comparison itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UnitError, UsageError, did_you_mean
from ..metrics.dictionary import DICTIONARY, find_metric
from ..model import differences
from ..stats.inference import CONFIDENCE, SEED, Interval, compare_paired, mean_interval
from ..stats.sentences import is_share, label, reservation, show_number, signed
from ..units import counted, format_duration, parse_duration
from .compare import Pairs, compare_pairs, decide_together, different_work, is_confounded
from .folders import read_run_folder

_CONDITION = re.compile(r"\s*([\w.-]+)\s*(>=|<=|>|<)\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*(\S*)\s*")
_REFUSALS_SHOWN = 5


@dataclass(frozen=True)
class Condition:
    """One `--fail-if`."""

    text: str  #: As the user wrote it.
    metric: str  #: Name in the dictionary.
    operator: str  #: `">"`, `">="`, `"<"` or `"<="`.
    #: `"relative"` (change as a part of the first side), `"change"` (difference in the metric's unit) or
    #: `"value"` (the second side's own mean).
    kind: str
    threshold: float  #: A part for `"relative"`, otherwise in the metric's unit.

    def holds(self, low: float, high: float) -> bool:
        """Whether an interval lies wholly beyond the threshold."""
        return {
            ">": low > self.threshold,
            ">=": low >= self.threshold,
            "<": high < self.threshold,
            "<=": high <= self.threshold,
        }[self.operator]


def parse_condition(text: str, *, option: str = "--fail-if") -> Condition:
    """Read a condition; `option` is what messages name.

    >>> parse_condition("wakeup_p99 > +5%").threshold
    0.05
    >>> parse_condition("fairness_jain < 0.9").kind
    'value'
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise UsageError(f"{option} '{text}': should read METRIC > +5%, METRIC > +2ms or METRIC < 0.9")
    name, operator, sign, number, unit = match.groups()
    metric = _run_metric(f"{option} '{text}'", name)
    is_time = DICTIONARY[metric].unit == "ns"
    value = float(number)
    kind = "change" if sign else "value"
    if unit == "%":
        if sign:
            kind = "relative"
        elif is_time or not is_share(metric):
            raise UsageError(f"{option} '{text}': a change needs its sign: +{number}% or -{number}%")
        value /= 100
    elif is_time:
        try:
            value = float(parse_duration(number + unit))
        except UnitError as error:
            raise UsageError(f"{option} '{text}': {error}") from error
    elif unit:
        raise UsageError(
            f"{option} '{text}': {metric} has no unit '{unit}'; write a number, or {sign or '+'}"
            f"{number}% for a change"
        )
    return Condition(text.strip(), metric, operator, kind, -value if sign == "-" else value)


def _run_metric(place: str, name: str) -> str:
    """Full name of a metric that a run has one value of."""
    of_runs = [n for n, metric in DICTIONARY.items() if metric.level == "run"]
    metric = find_metric(name)
    if metric.level != "run":
        hint = did_you_mean(metric.name.removeprefix(f"{metric.level}_"), of_runs)
        raise UsageError(
            f"{place}: {metric.name} has one value per {metric.level}; name a metric of runs{hint}"
        )
    return metric.name


def compare_folders(
    folder_a: str | Path,
    folder_b: str | Path,
    *,
    conditions: tuple[str, ...] | list[str] = (),
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> dict[str, Any]:
    """Compare two folders of runs."""
    wanted = [parse_condition(text) for text in conditions]
    if not 0.5 <= confidence < 1:
        raise UsageError(f"--confidence must be from 0.5 to below 1 (got {confidence:g})")
    runs = [read_run_folder(folder) for folder in (folder_a, folder_b)]
    notes: list[str] = []
    groups = _pair(folder_a, folder_b, runs, notes)
    failed = [
        {
            "directory": str(folder),
            **{key: run[key] for key in ("workload", "policy", "seed")},
            "error": run.get("error"),
        }
        for folder, side in zip((folder_a, folder_b), runs, strict=True)
        for run in side
        if run["status"] != "ok"
    ]
    comparisons = []
    for pairs in groups:
        names = _labels(folder_a, folder_b, pairs)
        entry = compare_pairs(pairs, label_a=names[0], label_b=names[1], confidence=confidence, seed=seed)
        comparisons.append(entry | {"directory_a": str(folder_a), "directory_b": str(folder_b)})
        notes += _what_else_differs(pairs)
    decide_together(comparisons)
    if wanted and (
        confounded := [
            entry for entry, pairs in zip(comparisons, groups, strict=True) if is_confounded(pairs)
        ]
    ):
        entry = confounded[0]
        raise UsageError(
            f"--fail-if '{wanted[0].text}': {entry['label_a']} and {entry['label_b']} differ in more than the "
            f"policy on {entry['workload']}: {'; '.join(entry['differs'])}; run both sides with the same options"
        )
    gates = _gates(wanted, groups, comparisons, confidence, seed) if groups else []
    return {
        "comparisons": comparisons,
        "gates": gates,
        "failed_runs": failed,
        "notes": list(dict.fromkeys(notes)),
        "is_failed": bool(failed) or any(gate["holds"] for gate in gates),
    }


# ---- who is compared with whom ----------------------------------------------


def _pair(
    folder_a: str | Path, folder_b: str | Path, runs: Sequence[Sequence[Any]], notes: list[str]
) -> list[list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Good runs in pairs, one list per workload, host, CPUs and policy.

    Policies go together by name; where each folder has one, whatever its name.
    """
    policies = [{run["policy"] for run in side} for side in runs]
    is_renamed = len(policies[0]) == len(policies[1]) == 1

    def key(run: dict[str, Any]) -> tuple[Any, ...]:
        policy = "" if is_renamed else run["policy"]
        return run["workload"], run["host"], run["cpus"], policy

    sides: list[dict[tuple[Any, ...], dict[int, dict[str, Any]]]] = [{}, {}]
    for side, found in zip(runs, sides, strict=True):
        for run in side:
            found.setdefault(key(run), {})[run["seed"]] = run
    groups, refusals = [], []
    for group in sides[0]:
        before, after = sides[0][group], sides[1].get(group, {})
        every = [(before[s], after[s]) for s in sorted(before.keys() & after.keys())]
        if refusal := different_work(every):
            refusals.append(f"{group[0]}: {refusal}")
        good = [pair for pair in every if all(run["status"] == "ok" for run in pair)]
        if good:
            groups.append(good)
        if missing := before.keys() ^ after.keys():
            notes.append(f"{_named(group)}: {len(missing)} seeds are in one folder only")
    notes += [f"{_named(g)}: only in {folder_b}" for g in sides[1] if g not in sides[0]]
    if refusals:
        more = len(refusals) - _REFUSALS_SHOWN
        shown = refusals[:_REFUSALS_SHOWN] + ([f"({more} more)"] if more > 0 else [])
        raise UsageError("\n".join(shown))
    if not any(group in sides[1] for group in sides[0]):
        here, there = (sorted({_named(key(run)) for run in side})[:3] for side in runs)
        raise UsageError(
            f"nothing pairs: {folder_a} has {'; '.join(here)}; {folder_b} has {'; '.join(there)}; "
            "workload, host, CPUs and policy must be the same"
        )
    return groups


def _named(group: tuple[Any, ...]) -> str:
    workload, host, cpus, policy = group
    return ", ".join(part for part in (workload, policy, host, counted(cpus, "CPU")) if part)


def _labels(folder_a: str | Path, folder_b: str | Path, pairs: Pairs) -> tuple[str, str]:
    """Names of the sides that tell them apart: by the knobs that differ, and by the folder."""
    a, b = pairs[0]
    if a["policy"] != b["policy"]:
        return a["policy"], b["policy"]
    knobs = [run.get("knobs") or {} for run in (a, b)]
    names = [name for name in knobs[0] | knobs[1] if knobs[0].get(name) != knobs[1].get(name)]
    texts = [
        ", ".join(f"{name}={_knob_text(name, mine[name])}" for name in names if name in mine)
        for mine in knobs
    ]
    sides = zip((a, b), texts, (folder_a, folder_b), strict=True)
    first, second = (f"{run['policy']}{':' if text else ''}{text} ({folder})" for run, text, folder in sides)
    return first, second


def _knob_text(name: str, value: int) -> str:
    """A knob's value; a run does not say its unit, the name of a time in ns does."""
    return format_duration(value) if name.endswith("_ns") and value > 0 else str(value)


def _what_else_differs(pairs: Pairs) -> list[str]:
    """Settings that differ between the sides besides the policy."""
    a, b = pairs[0]
    found = differences(pairs, conditions=True) + differences(pairs, conditions=False)
    notes = [f"{a['workload']}: {difference}" for difference in found]
    if a.get("policy_hash") and a.get("policy_hash") == b.get("policy_hash"):
        notes.append(f"{a['workload']}: {a['policy']} is the same policy with the same knobs in both")
    environments = a.get("environment") or {}, b.get("environment") or {}
    for key in sorted(environments[0].keys() & environments[1].keys()):
        if environments[0][key] != environments[1][key]:
            one, other = (str(e[key])[:40] for e in environments)
            notes.append(f"{key} differs: {one} and {other}")
    return notes


# ---- conditions -------------------------------------------------------------


def _gates(
    wanted: list[Condition],
    groups: Sequence[Pairs],
    comparisons: list[dict[str, Any]],
    confidence: float,
    seed: int,
) -> list[dict[str, Any]]:
    """Every condition on every comparison that has its metric."""
    todo = []
    for condition in wanted:
        found = [
            (condition, pairs, entry)
            for pairs, entry in zip(groups, comparisons, strict=True)
            if all(run["metrics"].get(condition.metric) is not None for p in pairs for run in p)
        ]
        if not found:
            raise UsageError(f"--fail-if '{condition.text}': no pair of runs has {condition.metric}")
        todo += found
    single = [(condition, entry) for condition, pairs, entry in todo if len(pairs) < 2]
    if single:
        condition, entry = single[0]
        raise UsageError(
            f"--fail-if '{condition.text}': {entry['workload']} has one seed in common, and one "
            "seed decides nothing; run both sides with --seeds 10"
        )
    # All conditions are to hold together with the confidence that was asked for.
    each = 1 - (1 - confidence) / max(1, len(todo))
    return [_gate(condition, pairs, entry, each, seed) for condition, pairs, entry in todo]


def _gate(
    condition: Condition, pairs: Pairs, entry: dict[str, Any], confidence: float, seed: int
) -> dict[str, Any]:
    """One condition on one comparison."""
    values = np.array(
        [[run["metrics"][condition.metric] for run in side] for side in zip(*pairs, strict=True)],
        dtype=np.float64,
    )
    interval, is_held = _decide(condition, values, confidence, seed)
    gate = {
        "condition": condition.text, "metric": condition.metric, "kind": condition.kind,
        "threshold": condition.threshold,
        "workload": entry["workload"], "host": entry["host"], "cpus": entry["cpus"],
        "policy_a": entry["policy_a"], "policy_b": entry["policy_b"],
        "n": len(pairs), "mean_a": float(values[0].mean()), "mean_b": float(values[1].mean()),
        "estimate": interval and interval.estimate, "low": interval and interval.low,
        "high": interval and interval.high, "confidence": confidence,
        "method": interval.method if interval else "linear", "holds": is_held,
    }  # fmt: skip
    text = _gate_text(condition, gate, entry) + reservation(entry, condition.metric)
    return gate | {"text": text}


def _decide(
    condition: Condition, values: np.ndarray, confidence: float, seed: int
) -> tuple[Interval | None, bool]:
    """Interval in the threshold's terms, or None, and whether the condition holds."""
    a, b = values
    settings: dict[str, Any] = {"confidence": confidence, "seed": seed}
    if condition.kind == "value":
        interval = mean_interval(b, minimum=0, **settings)  # no metric is negative
        return interval, condition.holds(interval.low, interval.high)
    (paired,) = compare_paired(a[None, :], b[None, :], **settings)
    if condition.kind == "change":
        return paired.difference, condition.holds(paired.difference.low, paired.difference.high)
    if paired.ratio is not None:
        r = paired.ratio
        change = Interval(r.estimate - 1, r.low - 1, r.high - 1, r.n, confidence, r.method)
        return change, condition.holds(change.low, change.high)
    # No ratio, as where the first side is often 0: b > (1 + t) a, said linearly.
    rest = mean_interval(b - (1 + condition.threshold) * a, **settings)
    at_zero = Condition(condition.text, condition.metric, condition.operator, "change", 0.0)
    return None, at_zero.holds(rest.low, rest.high)


def _gate_text(condition: Condition, gate: dict[str, Any], entry: dict[str, Any]) -> str:
    """What was found, in words."""
    name = condition.metric

    def show(value: float) -> str:
        if condition.kind == "relative":
            return f"{100 * value:+.3g} %"
        return signed(name, value) if condition.kind == "change" else show_number(name, value)

    verdict = "FAILS" if gate["holds"] else "passes"
    text = (
        f"{verdict}: {condition.text} on {entry['workload']}: {label(name)} "
        f"{show_number(name, gate['mean_a'])} -> {show_number(name, gate['mean_b'])}"
    )
    if gate["estimate"] is None or not math.isfinite(gate["low"]):
        return f"{text} (no ratio: the first side is often 0), {gate['n']} seeds"
    return (
        f"{text}, {show(gate['estimate'])} ({100 * gate['confidence']:.4g} % interval "
        f"{show(gate['low'])} to {show(gate['high'])}, {gate['n']} seeds)"
    )
