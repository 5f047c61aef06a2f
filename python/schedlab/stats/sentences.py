# SPDX-License-Identifier: MIT
"""Numbers and verdicts in words, written from the numbers themselves.

Tables, pages and the command line use these, so that no text can contradict its
table. A sentence never says that two policies are equal unless every value is: a
comparison that does not decide says with how many seeds, and how large a difference
it may have missed.

Must stay true: every number in a sentence comes from the entry it describes.
Read next: runs/compare.py, which makes the entries.
"""

from __future__ import annotations

import math
from typing import Any

from ..metrics.dictionary import DICTIONARY, HEADLINES

_STATISTICS = {
    "mean": "mean {}",
    "p50": "median {}",
    "p95": "95th percentile of {}",
    "p99": "99th percentile of {}",
    "max": "largest {}",
}
_QUANTITIES = {
    "turnaround_ns": "turnaround",
    "response_ns": "response",
    "wait_ns": "waiting time",
    "wakeup_ns": "wake-up latency",
    "slowdown": "slowdown",
}
_LABELS = {
    "response_ns_iqr": "spread of response (IQR)",
    "starvation_ns": "longest wait",
    "throughput_per_s": "throughput",
    "makespan_ns": "makespan",
    "cpu_utilisation": "CPU utilisation",
    "overhead_share": "share of overhead",
    "energy_j": "energy",
    "overhead_ns": "time in the scheduler",
    "user_ns": "user time",
    "system_ns": "system time",
    "policy_cost": "instructions of the policy per switch",
    "fairness_jain": "fairness",
    "switches_involuntary": "number of preemptions",
    "switches_voluntary": "number of voluntary switches",
    "switches": "number of switches",
    "migrations": "number of migrations",
    "tasks_ended": "number of tasks that ended",
}


def label(name: str) -> str:
    """Name of a metric as a sentence has it.

    The name itself where there are no words for it.

    >>> label("wakeup_ns_p99"), label("starvation_ns")
    ('99th percentile of wake-up latency', 'longest wait')
    """
    base, _, statistic = name.rpartition("_")
    if base in _QUANTITIES and statistic in _STATISTICS:
        return _STATISTICS[statistic].format(_QUANTITIES[base])
    return _LABELS.get(name, name)


def show_number(name: str, value: float | None) -> str:
    """Write a metric's value with its unit, in few digits.

    None is not defined.

    >>> show_number("response_ns_mean", 12_500_000), show_number("switches", 1234.0)
    ('12.5 ms', '1,234')
    """
    if value is None:
        return "-"
    if DICTIONARY[name].unit == "ns":
        return show_time(value)
    if is_share(name):
        return f"{100 * value:.1f} %"
    if value == int(value) and abs(value) < 1e9 and "fairness" not in name:
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def is_share(name: str) -> bool:
    """Whether a metric is a part of a whole, which people write in percent."""
    return name == "cpu_utilisation" or name.endswith("_share")


def show_time(value_ns: float) -> str:
    """Write a time with three digits and a unit.

    The unit leaves one to three digits before the point.

    >>> show_time(999_900), show_time(0)
    ('1 ms', '0')
    """
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(value_ns) >= 0.9995 * scale:
            return (
                f"{value_ns / scale:,.3g} {unit}"
                if abs(value_ns) < 1000 * scale
                else (f"{value_ns / scale:,.0f} {unit}")
            )
    return f"{value_ns:.3g} ns" if value_ns else "0"


def show_change(ratio: float | None) -> str:
    """Write a ratio as a change.

    The new value over the old one, None where it is not defined; from tenfold and to a tenth on, as a
    factor.

    >>> show_change(1.052), show_change(0.5), show_change(10), show_change(0.00681), show_change(None)
    ('+5.2 %', '-50 %', 'x 10', '1/147', '-')
    """
    if ratio is None or not math.isfinite(ratio):
        return "-"
    if ratio >= 10 or 0 < ratio <= 0.1:
        factor = max(ratio, 1 / ratio)
        text = f"{factor:,.0f}" if factor >= 1000 else f"{factor:.3g}"
        return f"x {text}" if ratio > 1 else f"1/{text}"
    change = 100 * (ratio - 1)
    if abs(change) < 1e-9:
        return "0 %"
    text = f"{change:+.1f}" if abs(change) < 10 else f"{change:+.0f}"
    # What rounds to nothing is still a change.
    return f"{change:+.1g} %" if float(text) == 0 else f"{text} %"


def p_text(p: float) -> str:
    """Write an adjusted p-value.

    >>> p_text(0.0312), p_text(1e-9)
    ('p = 0.031', 'p < 0.0001')
    """
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def reservation(comparison: dict[str, Any], name: str) -> str:
    """Say that a metric is not of the same tasks on both sides, where it is not.

    Of one entry of `runs.compare.compare_runs`. One sentence after a space, to follow any statement about
    the metric; empty where there is nothing to say.
    """
    for warning in comparison["warnings"]:
        if warning["kind"] == "confounded":
            return " BUT NOT UNDER THE SAME CONDITIONS: see confounded."
        if warning["kind"] == "survivors" and name in warning["metrics"]:
            return " BUT NOT OF THE SAME TASKS: see survivors."
    return ""


def verdict_sentence(comparison: dict[str, Any], name: str) -> str:
    """Say what a comparison found in one metric, and whether it is of the same tasks.

    Of one entry of `runs.compare.compare_runs`, and a metric in its `metrics`; else a KeyError.
    """
    return _verdict(comparison, name) + reservation(comparison, name)


def _verdict(comparison: dict[str, Any], name: str) -> str:
    """What was found, without reservation."""
    entry = comparison["metrics"][name]
    a, b = comparison["label_a"], comparison["label_b"]
    what = label(name)
    one, other = show_number(name, entry["mean_a"]), show_number(name, entry["mean_b"])
    n = entry["n"]
    if entry["verdict"] == "not tested" and n > 1:
        return f"{_capital(what)}: {one} under {a}, {other} under {b}."
    if entry["verdict"] == "not tested":
        return (
            f"{_capital(what)}: {one} under {a}, {other} under {b}. One seed decides nothing; use --seeds 20."
        )
    if entry["verdict"] == "no difference":
        return (
            f"No difference in {what}: {one} under {a} and under {b}, "
            f"to the last digit with each of {n} seeds."
        )
    if entry["verdict"] == "undecided":
        seen = f"Undecided with {n} seeds: {what} is {one} under {a} and {other} under {b}"
        low, high = signed(name, entry["low"]), signed(name, entry["high"])
        if entry["p_adjusted"] is not None and (entry["low"] or 0) * (entry["high"] or 0) > 0:
            # The interval is of this metric alone; the verdict is one of many.
            return (
                f"{seen}; its {100 * comparison['confidence']:g} % interval, {low} to {high}, leaves out "
                f"zero, but among so many tests that may be chance ({p_text(entry['p_adjusted'])} after "
                "Holm)."
            )
        return f"{seen}; a mean difference from {low} to {high} cannot be ruled out."
    worse = "higher" if entry["difference"] > 0 else "lower"
    change = f", {show_change(entry['ratio'])}" if entry["ratio"] is not None else ""
    seen = (
        f"{_capital(what)} is {worse} under {b} ({other}) than under {a} ({one}): "
        f"{signed(name, entry['difference'])}{change}"
    )
    winner = a if entry["better"] == "a" else b
    if entry["p_adjusted"] is None:
        return f"{seen}, the same with each of {n} seeds; {winner} is better."
    if entry["p_adjusted"] > 1 - comparison["confidence"]:
        return f"{seen}, far apart with each of {n} seeds; {winner} is better."
    between = f"{signed(name, entry['low'])} to {signed(name, entry['high'])}"
    confidence = f"{100 * comparison['confidence']:g} %"
    return (
        f"{seen} ({confidence} interval {between}, {n} seeds, {p_text(entry['p_adjusted'])} "
        f"after Holm); {winner} is better."
    )


def signed(name: str, value: float | None) -> str:
    """Write a difference of a metric with its sign.

    In percentage points for a share, since "+10 %" would read as a change by a tenth; None is not defined.

    >>> signed("cpu_utilisation", 0.1), signed("switches", -3.0)
    ('+10.0 points', '-3')
    """
    if value is None:
        return "-"
    if is_share(name):
        return f"{100 * value:+.1f} points"
    return ("+" if value > 0 else "") + show_number(name, value)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def method_sentence(comparison: dict[str, Any]) -> str:
    """Say how the numbers of a comparison were made."""
    n = len(comparison["seeds"])
    if n == 1:
        return "One seed: differences are not tested; use --seeds 20."
    methods = {entry["method"] for entry in comparison["metrics"].values()}
    text = f"Paired by {n} seeds"
    if "bca" in methods:
        drawn = comparison["bootstrap"]
        text += f"; BCa bootstrap intervals ({drawn['n_resamples']:,} resamples, seed {drawn['seed']})"
    elif "student" in methods:
        text += "; Student intervals, " + (
            "since the seeds are too few for a bootstrap" if n < 100 else "as the seeds are many"
        )
    if comparison["is_deterministic"]:
        text += "; every seed gave the same run: exact for this work, silent about any other"
    elif comparison["n_tests"]:
        text += f"; Holm over {comparison['n_tests']:,} tests of headline metrics. All others are exploratory"
    return text + "."


def findings(comparisons: list[dict[str, Any]]) -> list[str]:
    """Say what was found in the headline metrics of a workload, what differs most first.

    Of entries of `runs.compare.compare_runs` of one workload on one machine: each policy with the same
    baseline. A sentence per metric that was told apart, or per metric where there is one seed or one pair;
    one that names those that were not; how the numbers were made.
    """
    comparisons = [comparison for comparison in comparisons if comparison["metrics"]]
    if not comparisons:
        return []
    names = [name for name in HEADLINES if any(name in c["metrics"] for c in comparisons)]
    if comparisons[0]["cpus"] == 1:
        names = [name for name in names if name != "migrations"]
    names.sort(key=lambda name: _rank(comparisons, name))
    if len(comparisons) == 1:
        lines = [verdict_sentence(comparisons[0], name) for name in names]
    else:
        lines = _of_many(comparisons, names)
    fixed = fixed_makespan(comparisons)
    return [
        *lines,
        *([fixed] if fixed else []),
        method_sentence(max(comparisons, key=lambda c: len(c["seeds"]))),
    ]


def _of_many(comparisons: list[dict[str, Any]], names: list[str]) -> list[str]:
    """A sentence per metric that some verdict tells apart; the others by name."""
    lines: list[str] = []
    rest: dict[str, list[str]] = {"undecided": [], "no difference": []}
    for name in names:
        verdicts = {c["metrics"][name]["verdict"] for c in comparisons if name in c["metrics"]}
        if verdicts <= rest.keys():
            rest["undecided" if "undecided" in verdicts else "no difference"].append(label(name))
        else:
            lines.append(_of_baseline(comparisons, name))
    base, n = comparisons[0]["label_a"], max(len(c["seeds"]) for c in comparisons)
    if rest["undecided"]:
        lines.append(
            f"Undecided with {n} seeds between {base} and any other: {', '.join(rest['undecided'])}."
        )
    if rest["no difference"]:
        lines.append(
            f"No difference between {base} and any other, with any seed: {', '.join(rest['no difference'])}."
        )
    return lines


def _rank(comparisons: list[dict[str, Any]], name: str) -> tuple[bool, float]:
    """Sort key of a metric: verdicts first, then the largest ratio either way."""
    entries = [c["metrics"][name] for c in comparisons if name in c["metrics"]]
    decided = [entry for entry in entries if entry["better"]]
    return not decided, -max(abs(math.log(entry["ratio"] or 1)) for entry in decided or entries)


def _of_baseline(comparisons: list[dict[str, Any]], name: str) -> str:
    """What each policy makes of one metric, against the baseline."""
    kinds: dict[str, list[tuple[float, str, dict[str, Any]]]] = {}
    here = [c for c in comparisons if name in c["metrics"]]
    for c in here:
        entry = c["metrics"][name]
        kind = {"a": "worse", "b": "better"}.get(entry["better"], entry["verdict"])
        kinds.setdefault(kind, []).append((entry["mean_b"], c["label_b"], entry))
    parts = [f"{show_number(name, here[0]['metrics'][name]['mean_a'])} under {here[0]['label_a']}"]
    told = {
        "better": "better",
        "worse": "worse",
        "not tested": "",
        "no difference": "the same",
        "undecided": "undecided",
    }
    is_reversed = DICTIONARY[name].direction == "higher"
    for kind, word in told.items():
        items = []
        for value, policy, entry in sorted(
            kinds.get(kind, []), key=lambda item: item[0], reverse=is_reversed
        ):
            change = f", {show_change(entry['ratio'])}" if entry["ratio"] is not None else ""
            items.append(
                policy if kind == "no difference" else f"{policy} ({show_number(name, value)}{change})"
            )
        if items:
            parts.append(f"{word} under {_list(items)}".lstrip())
    return f"{_capital(label(name))}: {'; '.join(parts)}.{max(reservation(c, name) for c in here)}"


def fixed_makespan(comparisons: list[dict[str, Any]]) -> str:
    """Say it where the CPUs were busy throughout, so that no policy could be faster; else empty."""

    def means(name: str) -> list[float]:
        found = [c["metrics"][name] for c in comparisons if name in c["metrics"]]
        return [entry["mean_a"] for entry in found[:1]] + [entry["mean_b"] for entry in found]

    ends, busy = means("makespan_ns"), means("cpu_utilisation")
    if not ends or not busy or min(busy) <= 0.98 or max(ends) - min(ends) > 0.001 * max(ends):
        return ""
    return (
        f"The last task ends after {show_time(max(ends))} under every policy; a busy CPU cannot "
        "do fixed work faster."
    )


def _list(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
