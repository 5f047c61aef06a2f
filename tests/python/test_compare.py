# SPDX-License-Identifier: MIT
"""Comparisons pair equal work, decide with care, and never call two policies equal."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import xml.etree.ElementTree as xml

import numpy as np
import pytest

from python.compared_runs import counted, noisy, run_of, runs_of
from schedlab.errors import NotFoundError, UsageError
from schedlab.metrics.dictionary import HEADLINES
from schedlab.runs.compare import COMPARED, compare_runs, decide_together
from schedlab.runs.folders import read_run_folder
from schedlab.runs.gate import compare_folders, parse_condition
from schedlab.runs.junit import comparison_as_junit
from schedlab.show.tables import show_comparison
from schedlab.stats.inference import holm
from schedlab.stats.sentences import method_sentence, verdict_sentence

OLD_KEYS = {"workload", "host", "cpus", "policy_a", "policy_b", "seeds", "confidence", "error", "metrics"}
OLD_METRIC_KEYS = {"mean_a", "mean_b", "difference", "low", "high", "better"}


def one_metric(a, b, name="turnaround_ns_mean", **fields):
    """The comparison of two policies that differ in one metric."""
    runs = runs_of("a", [{name: v} for v in a], **fields) + runs_of("b", [{name: v} for v in b], **fields)
    (comparison,) = compare_runs(runs)
    return comparison, comparison["metrics"][name]


# ---- pairs ------------------------------------------------------------------


def test_different_programs_are_refused():
    runs = [run_of("a", 1, 1.0), run_of("b", 1, 2.0, program="q")]
    (comparison,) = compare_runs(runs)
    assert "refused: with seed 1 the two sides ran different programs (p1 and q1)" in comparison["error"]
    assert comparison["metrics"] == {}


def test_pairs_are_made_by_seed():
    runs = [run_of("a", s, float(s)) for s in (1, 2, 3, 9)]
    runs += [run_of("b", s, s + 10.0) for s in (3, 2, 1)] + [run_of("b", 9, 0, status="failed")]
    (comparison,) = compare_runs(runs)
    assert comparison["seeds"] == [1, 2, 3]
    entry = comparison["metrics"]["turnaround_ns_mean"]
    assert (entry["mean_a"], entry["mean_b"], entry["difference"]) == (2, 12, 10)
    assert (entry["low"], entry["high"], entry["method"]) == (10, 10, "deterministic")
    # Three equal differences happen by chance one time in four.
    assert (entry["test"], entry["p_value"], entry["better"]) == ("sign-flip", 0.25, None)


def test_the_keys_that_others_read_are_there():
    (comparison,) = compare_runs(runs_of("a", [1.0, 2.0]) + runs_of("b", [2.0, 4.0]))
    assert set(comparison) >= OLD_KEYS
    for entry in comparison["metrics"].values():
        assert set(entry) >= OLD_METRIC_KEYS
    json.dumps(comparison, allow_nan=False)


CONDITIONS = [
    ({"io": ["latency_ns=5000000"]}, "--io differs: none and latency_ns=5000000"),
    ({"costs": ["switch_ns=2000"]}, "--cost differs: none and switch_ns=2000"),
    ({"topology": "smt=2"}, "--topology differs: none and smt=2"),
    ({"tick_ns": 1000}, "--tick differs: none and 1us"),
    ({"is_parallel": True}, "--parallel differs: none and yes"),
    ({"are_threads": True}, "--threads differs: none and yes"),
    ({"kernel": "/boot/vmlinuz"}, "--kernel differs: none and /boot/vmlinuz"),
]


@pytest.mark.parametrize(("fields", "text"), CONDITIONS)
def test_a_difference_of_conditions_is_not_credited_to_the_policy(fields, text):
    """Nor to the seed: one pair of many is enough."""
    a = [run_of("a", s, {"turnaround_ns_mean": s}) for s in range(1, 11)]
    b = [run_of("b", s, {"turnaround_ns_mean": s + 10.0}) for s in range(1, 11)]
    assert compare_runs(a + b)[0]["metrics"]["turnaround_ns_mean"]["better"] == "a"
    (comparison,) = compare_runs(a + b[:-1] + [b[-1] | fields])
    assert comparison["differs"] == [text]
    found = {(entry["verdict"], entry["better"]) for entry in comparison["metrics"].values()}
    assert found == {("not tested", None)}
    (warning,) = [warning for warning in comparison["warnings"] if warning["kind"] == "confounded"]
    assert warning["text"] == f"no comparison of policies, since {text}"
    sentence = verdict_sentence(comparison, "turnaround_ns_mean")
    assert "One seed" not in sentence and sentence.endswith("NOT UNDER THE SAME CONDITIONS: see confounded.")


def test_one_policy_under_two_conditions_is_compared_and_they_are_named(tmp_path, capsys):
    """That is what it was run for; under two policies no build can fail on it."""
    sets = {"a": {}, "b": {"io": ["latency_ns=5000000"]}, "c": {"policy": "c", "policy_hash": "c"}}
    for folder, fields in sets.items():
        runs = runs_of("a", [1.0, 2.0, 3.0], policy_hash="h", io=[])
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "runs.json").write_text(json.dumps({"runs": [run | fields for run in runs]}))
    result = compare_folders(tmp_path / "a", tmp_path / "b", conditions=["makespan > +5%"])
    assert "w: --io differs: none and latency_ns=5000000" in result["notes"]
    assert result["comparisons"][0]["warnings"][0]["kind"] != "confounded"
    assert not compare_folders(tmp_path / "a", tmp_path / "c", conditions=["makespan > +5%"])["is_failed"]
    message = r"--fail-if 'makespan > \+5%': a and c differ in more than the policy on w: --io"
    with pytest.raises(UsageError, match=message):
        compare_folders(tmp_path / "b", tmp_path / "c", conditions=["makespan > +5%"])
    show_comparison(compare_folders(tmp_path / "b", tmp_path / "c"))
    printed = " ".join(capsys.readouterr().out.split())
    assert "confounded: a and c, no comparison of policies, since --io differs" in printed


def test_one_pair_has_no_interval_and_decides_nothing():
    (comparison,) = compare_runs([run_of("a", 1, 1.0), run_of("b", 1, 2.0)])
    entry = comparison["metrics"]["turnaround_ns_mean"]
    assert (entry["low"], entry["high"], entry["better"]) == (None, None, None)
    assert (entry["verdict"], entry["method"]) == ("not tested", "single")
    assert "One seed decides nothing" in verdict_sentence(comparison, "turnaround_ns_mean")
    json.dumps(comparison, allow_nan=False)


def test_undefined_metrics_are_left_out():
    runs = [run_of("a", 1, 1.0), run_of("b", 1, None)]
    assert compare_runs(runs)[0]["metrics"] == {}


# ---- verdicts ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "winner"), [("turnaround_ns_mean", "a"), ("fairness_jain", "b"), ("makespan_ns", "a")]
)
def test_the_better_side_follows_the_metrics_direction(name, winner):
    rng = np.random.default_rng(1)
    comparison, entry = one_metric(noisy(rng, 100), noisy(rng, 110), name)
    assert (entry["better"], entry["verdict"]) == (winner, f"{winner} is better")
    assert entry["low"] < entry["difference"] < entry["high"]
    assert entry["ratio_low"] < entry["ratio"] < entry["ratio_high"]
    assert (entry["cliffs_delta"], entry["vargha_delaney"]) == (1, 1)
    assert (entry["n"], entry["method"], entry["test"]) == (12, "bca", "student")
    assert comparison["bootstrap"] == {"seed": 1, "n_resamples": 9999}
    assert verdict_sentence(comparison, name).endswith(f"{winner} is better.")


def test_compare_runs_holm_counts_the_headlines_of_a_workload():
    """Each policy with the first; what is exploratory is adjusted over all, and is not in the family."""
    rng = np.random.default_rng(2)
    runs = [
        run_of(policy, seed, {name: float(rng.normal(10, 1)) for name in COMPARED}, workload=workload)
        for workload, policy, seed in itertools.product("vw", "abcd", range(8))
    ]
    comparisons = compare_runs(runs)
    assert [(c["policy_a"], c["policy_b"]) for c in comparisons] == [("a", p) for p in "bcd"] * 2
    assert {(c["n_tests"], c["n_explored"]) for c in comparisons} == {(3 * len(HEADLINES), 3 * len(COMPARED))}
    rows = [(name, m) for c in comparisons[:3] for name, m in c["metrics"].items()]
    adjusted = [m["p_adjusted"] for name, m in rows if name in HEADLINES]
    assert adjusted == holm([m["p_value"] for name, m in rows if name in HEADLINES])
    for (name, m), p in zip(rows, holm([m["p_value"] for _, m in rows]), strict=True):
        assert (m["family"] == "headline") == (name in HEADLINES)
        assert name in HEADLINES or m["p_adjusted"] == p


def test_compare_runs_takes_the_baseline_that_is_asked_for():
    runs = [r for p, mean in (("a", 10.0), ("b", 20.0), ("c", 30.0)) for r in runs_of(p, [mean, mean + 1])]
    pairs = [(c["policy_a"], c["policy_b"]) for c in compare_runs(runs, baseline="b")]
    assert pairs == [("b", "a"), ("b", "c")]
    # One that failed everywhere compares with nothing: the next takes its place.
    for run in runs[:2]:
        run["status"] = "failed"
    assert [(c["policy_a"], c["policy_b"]) for c in compare_runs(runs, baseline="a")] == [("b", "c")]


def virtual(policy, values, started_ns=None):
    return runs_of(policy, [{"turnaround_ns_mean": value} for value in values], started_ns=started_ns)


APART = ([11.5, 11.8, 14.1], [1390.0, 1720.0, 1800.0])


def test_values_far_apart_with_every_seed_are_a_difference_though_holm_drowns_them():
    """11.8 ms against 1.72 s: three seeds, among so many tests that none survives."""
    (comparison,) = compare_runs(virtual("a", APART[0]) + virtual("b", APART[1]))
    entry = comparison["metrics"]["turnaround_ns_mean"]
    entry |= {"p_value": 0.01}
    others = [json.loads(json.dumps(comparison)) for _ in range(99)]
    for other in others:
        other["metrics"]["turnaround_ns_mean"] |= {"p_value": 0.5, "is_apart": False}
    judged, unsure = decide_together([comparison, *others])[:2]
    assert entry["p_adjusted"] == 1 and entry["verdict"] == "a is better"
    assert "far apart with each of 3 seeds; a is better." in verdict_sentence(judged, "turnaround_ns_mean")
    assert unsure["metrics"]["turnaround_ns_mean"]["verdict"] == "undecided"


@pytest.mark.parametrize(
    ("a", "b", "started_ns"),
    [
        (*APART, 1),  # real time: the machine may have changed between them
        (APART[0][:2], APART[1][:2], None),  # two seeds
        ([10.0, 12.0, 15.0], [75.0, 80.0, 85.0], None),  # a gap of four ranges, as ratios
        ([0.0, 20.0, 30.0], [100.0, 110.0, 120.0], None),  # of two, where there is no ratio
        ([100.0, 100.0, 100.0], [104.0, 104.0, 104.0], None),  # 4 %
        ([11.5, 11.8, 1750.0], APART[1], None),  # one seed says otherwise
    ],
)
def test_what_is_not_far_apart_is_left_to_the_test(a, b, started_ns):
    (comparison,) = compare_runs(virtual("a", a, started_ns) + virtual("b", b, started_ns))
    assert comparison["metrics"]["turnaround_ns_mean"]["is_apart"] is False


def test_only_equal_values_are_called_no_difference():
    comparison, entry = one_metric([5.0, 6.0, 7.0], [5.0, 6.0, 7.0])
    assert (entry["verdict"], entry["better"], entry["p_value"]) == ("no difference", None, None)
    sentence = verdict_sentence(comparison, "turnaround_ns_mean")
    assert sentence.startswith("No difference in mean turnaround: ")
    assert comparison["n_tests"] == 0


def test_no_difference_says_how_large_a_one_may_be_missed():
    rng = np.random.default_rng(4)
    comparison, _ = one_metric(noisy(rng, 100e6), noisy(rng, 100e6))
    sentence = verdict_sentence(comparison, "turnaround_ns_mean")
    assert sentence.startswith("Undecided with 12 seeds: mean turnaround is ")
    assert "cannot be ruled out" in sentence


def test_an_interval_without_zero_that_decides_nothing_says_why():
    """Three equal differences: the interval is a point, and chance gives it one time in four."""
    comparison, entry = one_metric([10.0, 20.0, 40.0], [20.0, 30.0, 50.0])
    assert (entry["low"], entry["high"], entry["p_adjusted"]) == (10, 10, 0.25)
    sentence = verdict_sentence(comparison, "turnaround_ns_mean")
    assert "leaves out zero, but among so many tests that may be chance (p = 0.25 after Holm)" in sentence
    assert "ruled out" not in sentence


def test_a_run_that_never_changes_is_a_fact_not_a_sample():
    runs = runs_of("a", [1.0] * 3, record_hash="same") + runs_of("b", [2.0] * 3, record_hash="too")
    (comparison,) = compare_runs(runs)
    entry = comparison["metrics"]["turnaround_ns_mean"]
    assert comparison["is_deterministic"]
    assert (entry["better"], entry["p_value"], entry["test"]) == ("a", None, "none")
    assert (entry["low"], entry["high"]) == (1, 1)
    assert "every seed gave the same run" in method_sentence(comparison)


@pytest.mark.parametrize(
    ("low", "high", "p_value", "better"),
    [(1, 3, 0.01, "a"), (-3, -1, 0.01, "b"), (-1, 3, 0.01, None), (0, 3, 0.01, None), (1, 3, 0.2, None)],
)
def test_a_verdict_needs_the_interval_and_the_p_value(low, high, p_value, better):
    _, metric = one_metric([1.0, 2.0], [2.0, 4.0])
    metric |= {"difference": (low + high) / 2, "low": low, "high": high, "p_value": p_value}
    metrics = {"turnaround_ns_mean": metric}
    place = {"workload": "w", "host": "sim", "cpus": 1}
    decide_together([place | {"confidence": 0.95, "warnings": [], "metrics": metrics}])
    assert metric["better"] == better


def test_a_side_that_changes_is_a_sample_even_beside_one_that_does_not():
    noise = runs_of("b", [2.0, 3.0, 4.0])
    for constant in ([1.0] * 3, [5.0] * 3):
        (comparison,) = compare_runs(runs_of("a", constant, record_hash="same") + noise)
        assert not comparison["is_deterministic"]
        assert comparison["metrics"]["turnaround_ns_mean"]["p_value"] is not None


def test_constant_values_of_different_runs_are_tested():
    _, few = one_metric([1.0] * 3, [2.0] * 3, started_ns=1)
    _, many = one_metric([1.0] * 10, [2.0] * 10)
    assert (few["test"], few["p_value"], few["better"]) == ("fisher", 0.1, None)
    assert (many["p_value"], many["better"]) == (2 / 184_756, "a")


def test_warnings_are_listed_once_per_policy_and_kind():
    rng = np.random.default_rng(5)
    values = noisy(rng, 100)
    far = [*values[:-1], 900.0]
    comparison, _ = one_metric(values, far)
    (warning,) = comparison["warnings"]
    assert (warning["policy"], warning["kind"], warning["metrics"]) == (
        "b",
        "outliers",
        ["turnaround_ns_mean"],
    )
    assert "900 ns" in warning["text"]
    assert warning["hint"]
    comparison, _ = one_metric([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    assert [d["kind"] for d in comparison["warnings"]] == ["too-few", "too-few"]


def test_metrics_of_unequally_many_tasks_are_called_so():
    runs = counted("rr", [20, 19], [20, 20]) + counted("fifo", [11, 12], [20, 20])
    (comparison,) = compare_runs(runs)
    warning, *others = comparison["warnings"]
    assert "survivors" not in [d["kind"] for d in others]
    assert (warning["kind"], warning["policy"]) == ("survivors", "fifo")
    assert warning["metrics"] == ["turnaround_ns_mean", "slowdown_max"]
    assert warning["text"] == "39 of 40 tasks ended under rr, 23 of 40 under fifo"
    assert "longer horizon" in warning["hint"]
    reserved = " BUT NOT OF THE SAME TASKS: see survivors."
    for name in comparison["metrics"]:
        assert verdict_sentence(comparison, name).endswith(reserved) == (name in warning["metrics"])
    json.dumps(comparison, allow_nan=False)


def test_who_never_ran_is_missed_in_the_response():
    runs = counted("rr", [9, 9], [20, 18]) + counted("fifo", [9, 9], [20, 19])
    (warning,) = [d for d in compare_runs(runs)[0]["warnings"] if d["kind"] == "survivors"]
    assert warning["metrics"] == ["response_ns_p99"]
    assert warning["text"] == "38 of 40 tasks ran at all under rr, 39 of 40 under fifo"
    assert warning["policy"] == "rr"


def test_survivors_are_looked_at_seed_by_seed():
    """Equal sums of unequal runs are still of different tasks; equal runs are not suspected."""
    unequal = counted("rr", [9, 11], [20, 20]) + counted("fifo", [11, 9], [20, 20])
    equal = counted("rr", [9, 11], [20, 20]) + counted("fifo", [9, 11], [20, 20])
    kinds = [[d["kind"] for d in compare_runs(runs)[0]["warnings"]] for runs in (unequal, equal)]
    assert ["survivors" in found for found in kinds] == [True, False]


def test_nobody_survived_on_one_side():
    """The metric has no value there and so no comparison: the more it must be said."""
    rr, fifo = counted("rr", [9, 9], [20, 20]), counted("fifo", [0, 0], [20, 20])
    for run in fifo:
        run["metrics"]["turnaround_ns_mean"] = None
    (comparison,) = compare_runs(rr + fifo)
    assert "turnaround_ns_mean" not in comparison["metrics"]
    assert "turnaround_ns_mean" in comparison["warnings"][0]["metrics"]


def test_drift_needs_an_order():
    rising = [100.0 + i + 0.1 * (i % 3) for i in range(12)]
    runs = runs_of("a", rising) + runs_of("b", [v + 1 for v in rising])
    (comparison,) = compare_runs(runs)
    assert "drift" not in [d["kind"] for d in comparison["warnings"]]
    for run in runs:
        run["started_ns"] = run["seed"]
    (comparison,) = compare_runs(runs)
    assert [d["kind"] for d in comparison["warnings"]] == ["drift", "drift"]


# ---- conditions -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wakeup_p99 > +5%", ("wakeup_ns_p99", ">", "relative", 0.05)),
        ("wakeup_ns_p99>=-5 %", ("wakeup_ns_p99", ">=", "relative", -0.05)),
        ("makespan > +2ms", ("makespan_ns", ">", "change", 2e6)),
        ("makespan < -1.5 us", ("makespan_ns", "<", "change", -1500)),
        ("turnaround_mean > 5s", ("turnaround_ns_mean", ">", "value", 5e9)),
        ("fairness_jain <= 0.9", ("fairness_jain", "<=", "value", 0.9)),
        ("cpu_utilisation < 90%", ("cpu_utilisation", "<", "value", 0.9)),
        ("switches > +10", ("switches", ">", "change", 10)),
    ],
)
def test_conditions_are_read(text, expected):
    condition = parse_condition(text)
    assert (condition.metric, condition.operator, condition.kind, condition.threshold) == expected


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("wakeup_p9 > +5%", NotFoundError, "did you mean 'wakeup_ns_p99'"),
        ("makespann > +5%", NotFoundError, "did you mean 'makespan_ns'"),
        ("task_wait > +5%", UsageError, "one value per task.*did you mean 'wait_ns_"),
        ("makespan > 5%", UsageError, r"a change needs its sign: \+5% or -5%"),
        ("makespan > +5", UsageError, "has no unit"),
        ("makespan > +5KiB", UsageError, "is a size"),
        ("switches > +5ms", UsageError, r"switches has no unit 'ms'; write a number, or \+5% for a change"),
        ("switches > 5ms", UsageError, r"write a number, or \+5% for a change"),
        ("switches < -5ms", UsageError, "write a number, or -5% for a change"),
        ("makespan", UsageError, "should read METRIC > "),
        ("makespan > +nan%", UsageError, "should read"),
        ("", UsageError, "should read"),
    ],
)
def test_wrong_conditions_are_refused(text, error, message):
    with pytest.raises(error, match=message):
        parse_condition(text)


@pytest.mark.parametrize(("operator", "holds"), [(">", False), (">=", True), ("<", False), ("<=", True)])
def test_an_interval_that_touches_the_threshold(operator, holds):
    condition = parse_condition(f"switches {operator} 10")
    low, high = (10, 12) if operator[0] == ">" else (8, 10)
    assert condition.holds(low, high) == holds


@pytest.fixture
def folders(tmp_path):
    """Function that writes two folders of runs and returns their paths."""

    def write(before, after):
        paths = []
        for name, runs in (("before", before), ("after", after)):
            folder = tmp_path / name
            folder.mkdir(exist_ok=True)
            (folder / "runs.json").write_text(json.dumps({"runs": runs, "comparisons": []}))
            paths.append(folder)
        return paths

    return write


def changed(factor, n=10, *, name="wakeup_ns_p99", spread=0.02, seed=7):
    """Runs before and after, the second `factor` times the first but for noise."""
    rng = np.random.default_rng(seed)
    before = 1e6 * rng.lognormal(0, 0.3, n)
    after = factor * before * rng.lognormal(0, spread, n)
    return runs_of("rr", [{name: v} for v in before]), runs_of("rr", [{name: v} for v in after])


@pytest.mark.parametrize(
    ("factor", "condition", "holds"),
    [
        (1.20, "wakeup_p99 > +5%", True),
        (1.05, "wakeup_p99 > +5%", False),  # at the threshold: what is undecided passes
        (1.00, "wakeup_p99 > +5%", False),
        (0.80, "wakeup_p99 > +5%", False),
        (0.80, "wakeup_p99 < -5%", True),
        (1.20, "wakeup_p99 > +1us", True),
        (1.20, "wakeup_p99 > +1s", False),
        (1.20, "wakeup_p99 > 1us", True),
        (1.20, "wakeup_p99 > 1s", False),
        (1.20, "wakeup_p99 < 1s", True),
    ],
)
def test_a_condition_holds_where_its_whole_interval_does(folders, factor, condition, holds):
    result = compare_folders(*folders(*changed(factor)), conditions=[condition])
    (gate,) = result["gates"]
    assert (gate["holds"], result["is_failed"]) == (holds, holds)
    assert gate["low"] <= gate["estimate"] <= gate["high"]
    assert gate["text"].startswith("FAILS" if holds else "passes")
    json.dumps(result, allow_nan=False)


def test_a_gate_pairs_by_seed_in_whatever_order_the_runs_are(folders):
    """Work that no seed changes has one hash, so that nothing else would notice."""
    before, after = changed(1.2, spread=0.001)
    for run in before + after:
        run["program_hash"] = "one"
    in_order, reversed_ = (
        compare_folders(*folders(before, runs), conditions=["wakeup_p99 > +5%", "wakeup_p99 > +1us"])
        for runs in (after, after[::-1])
    )
    assert reversed_["comparisons"] == in_order["comparisons"]
    assert reversed_["gates"] == in_order["gates"]
    fewer = compare_folders(*folders(before, after[3:]), conditions=["wakeup_p99 > +5%"])
    assert fewer["comparisons"][0]["seeds"] == [4, 5, 6, 7, 8, 9, 10]
    assert fewer["gates"][0]["estimate"] == pytest.approx(0.2, abs=0.005)


def test_a_gate_says_by_how_much(folders):
    result = compare_folders(*folders(*changed(1.2, spread=0)), conditions=["wakeup_p99 > +5%"])
    assert ", +20 % (95 % interval +20 % to +20 %, 10 seeds)" in result["gates"][0]["text"]


def test_a_gate_on_survivors_says_so(folders):
    before, after = counted("rr", [20, 20], [20, 20]), counted("rr", [12, 12], [20, 20])
    result = compare_folders(*folders(before, after), conditions=["turnaround_mean > +5%", "wait_mean > +5%"])
    texts = [gate["text"] for gate in result["gates"]]
    assert texts[0].endswith("BUT NOT OF THE SAME TASKS: see survivors.")
    assert "BUT NOT" not in texts[1]


@pytest.mark.full
def test_at_the_threshold_a_gate_fails_seldom(folders):
    """The true growth is exactly 5 %: one side of a 95 % interval, so 2.5 %."""
    failures = 0
    for seed in range(120):
        before, after = changed(1.05, seed=seed, spread=0.05)
        correction = np.exp(0.05**2 / 2)  # the mean of the noise
        for run in after:
            run["metrics"]["wakeup_ns_p99"] /= correction
        paths = folders(before, after)
        failures += compare_folders(*paths, conditions=["wakeup_p99 > +5%"])["is_failed"]
    assert failures <= 8  # binomial(120, 0.025) exceeds 8 with probability 0.006; seeded


def test_conditions_share_their_confidence(folders):
    one = compare_folders(*folders(*changed(1.2)), conditions=["wakeup_p99 > +5%"])
    two = compare_folders(*folders(*changed(1.2)), conditions=["wakeup_p99 > +5%", "wakeup_p99 > +1us"])
    assert one["gates"][0]["confidence"] == pytest.approx(0.95)
    assert [gate["confidence"] for gate in two["gates"]] == pytest.approx([0.975, 0.975])
    assert two["gates"][0]["low"] < one["gates"][0]["low"]


@pytest.mark.parametrize(("after", "holds"), [([0] * 10, False), ([900, 1000] * 5, True)])
def test_growth_from_nothing_is_growth(folders, after, holds):
    """The first side is 0, so there is no ratio; the gate must not stay silent."""
    runs = [runs_of("rr", [{"migrations": v} for v in values]) for values in ([0] * 10, after)]
    result = compare_folders(*folders(*runs), conditions=["migrations > +5%"])
    assert result["is_failed"] == holds
    json.dumps(result, allow_nan=False)


def test_different_work_is_refused_with_both_hashes(folders):
    before, after = changed(1.0)
    for run in after:
        run["program_hash"] = "other"
    with pytest.raises(UsageError, match=r"w: refused: with seed 1 .*\(p1 and other\)"):
        compare_folders(*folders(before, after))


def test_a_failed_run_does_not_pass(folders):
    before, after = changed(1.0)
    after[3] |= {"status": "failed", "error": "runnable task stall", "metrics": {}}
    result = compare_folders(*folders(before, after), conditions=["wakeup_p99 > +5%"])
    assert result["is_failed"]
    assert [(r["seed"], r["error"]) for r in result["failed_runs"]] == [(4, "runnable task stall")]
    assert result["comparisons"][0]["seeds"] == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    every = [run | {"status": "failed", "error": "x", "metrics": {}} for run in after]
    assert compare_folders(*folders(before, every), conditions=["wakeup_p99 > +5%"])["is_failed"]


@pytest.mark.parametrize(("factor", "status", "failed"), [(1.0, 0, []), (1.2, 1, ["wakeup_p99 > +5%"])])
def test_compare_writes_its_conditions_as_junit(folders, tmp_path, factor, status, failed):
    paths, file = folders(*changed(factor)), tmp_path / "junit.xml"
    gates = ["--fail-if", "wakeup_p99 > +5%", "--fail-if", "wakeup_p99 > +1s"]
    command = [sys.executable, "-m", "schedlab", "compare", *paths, *gates, "--junit", file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    suite = xml.parse(file).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", str(len(failed)))
    assert [(case.get("classname"), case.get("name")) for case in suite] == [
        ("w.rr", "wakeup_p99 > +5%"), ("w.rr", "wakeup_p99 > +1s"),
    ]  # fmt: skip
    assert [case.get("name") for case in suite if case.find("failure") is not None] == failed


def test_a_failed_run_is_a_failure_of_junit_whatever_its_error_says(folders):
    before, after = changed(1.0)
    after[3] |= {"status": "failed", "error": "stall \x1b[31m <&", "metrics": {}}
    suite = xml.fromstring(comparison_as_junit(compare_folders(*folders(before, after))).encode())
    (case,) = suite
    assert (suite.get("failures"), case.get("name")) == ("1", "run with seed 4")
    assert case.find("failure").text.endswith("stall \ufffd[31m <&")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workload": "v"}, "nothing pairs: .* has w, sim, 1 CPU; .* has v, sim, 1 CPU"),
        ({"cpus": 2}, "nothing pairs"),
    ],
)
def test_what_does_not_pair_is_refused(folders, change, message):
    before, after = changed(1.0)
    with pytest.raises(UsageError, match=message):
        compare_folders(*folders(before, [run | change for run in after]))


def test_one_seed_cannot_gate(folders):
    before, after = changed(2.0, n=1)
    with pytest.raises(UsageError, match="one seed decides nothing; run both sides with --seeds 10"):
        compare_folders(*folders(before, after), conditions=["wakeup_p99 > +5%"])
    assert not compare_folders(*folders(before, after))["is_failed"]


def test_a_metric_that_no_run_has_cannot_gate(folders):
    with pytest.raises(UsageError, match="no pair of runs has makespan_ns"):
        compare_folders(*folders(*changed(1.0)), conditions=["makespan > +5%"])


def test_one_policy_each_may_have_two_names(folders):
    before, after = changed(1.2)
    result = compare_folders(*folders(before, [run | {"policy": "mine"} for run in after]))
    (comparison,) = result["comparisons"]
    assert (comparison["label_a"], comparison["label_b"]) == ("rr", "mine")
    assert comparison["metrics"]["wakeup_ns_p99"]["better"] == "a"
    more = [run | {"policy": "other"} for run in after]
    result = compare_folders(*folders(before, [*after, *more]))
    assert [c["policy_b"] for c in result["comparisons"]] == ["rr"]
    assert f"w, other, sim, 1 CPU: only in {result['comparisons'][0]['directory_b']}" in result["notes"]
    # Two policies against one of another name: nothing is guessed.
    mine = [run | {"policy": "mine"} for run in after]
    with pytest.raises(UsageError, match="nothing pairs: .*w, rr, .*w, mine, .*w, other"):
        compare_folders(*folders(before, [*mine, *more]))


def test_the_heading_says_which_knob_differs(folders, capsys):
    """Two settings of one policy, each in a folder of its own, as a heading and as a gate's side."""
    before, after = changed(1.2)
    one = {"knobs": {"slice_ns": 10_000_000, "boost_ns": 0, "rotate": 1}}
    other = {"knobs": {"slice_ns": 10_000_000, "boost_ns": 1, "rotate": 2}}
    paths = folders([run | one for run in before], [run | other for run in after])
    result = compare_folders(*paths)
    (comparison,) = result["comparisons"]
    assert comparison["label_a"] == f"rr:boost_ns=0, rotate=1 ({paths[0]})"
    assert comparison["label_b"] == f"rr:boost_ns=1ns, rotate=2 ({paths[1]})"
    show_comparison(result)
    heading = " ".join(capsys.readouterr().out.split("metric")[0].split())
    assert "a = rr:boost_ns=0, rotate=1 (" in heading and "b = rr:boost_ns=1ns, rotate=2 (" in heading
    # A new version of a policy may have another knob; of equal ones nothing is said.
    newer = {"knobs": one["knobs"] | {"more": 3}}
    paths = folders([run | one for run in before], [run | newer for run in after])
    (comparison,) = compare_folders(*paths)["comparisons"]
    assert (comparison["label_a"], comparison["label_b"]) == (f"rr ({paths[0]})", f"rr:more=3 ({paths[1]})")


def test_what_else_differs_is_noted(folders):
    before, after = changed(1.0)
    before = [r | {"tick_ns": 1000, "environment": {"compiler": "gcc"}, "policy_hash": "h"} for r in before]
    after = [r | {"tick_ns": 2000, "environment": {"compiler": "clang"}, "policy_hash": "h"} for r in after]
    notes = " | ".join(compare_folders(*folders(before, after[:-1]))["notes"])
    assert "--tick differs: 1us and 2us" in notes
    assert "compiler differs: gcc and clang" in notes
    assert "the same policy with the same knobs" in notes
    assert "1 seeds are in one folder only" in notes


# ---- folders ----------------------------------------------------------------


def test_parts_of_a_set_are_read_too(tmp_path):
    for run in runs_of("rr", [1.0, 2.0]):
        folder = tmp_path / "w" / "rr" / f"seed-{run['seed']}"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps(run))
    assert [run["seed"] for run in read_run_folder(tmp_path)] == [1, 2]
    assert [run["seed"] for run in read_run_folder(tmp_path / "w" / "rr" / "seed-2")] == [2]
    assert len(read_run_folder(tmp_path / "w" / "rr" / "seed-2" / "run.json")) == 1


def test_a_seed_that_was_repeated_counts_once(tmp_path):
    run = run_of("rr", 1, 1.0)
    path = tmp_path / "runs.json"
    path.write_text(json.dumps({"runs": [run, run]}))
    assert len(read_run_folder(path)) == 1
    path.write_text(json.dumps({"runs": [run, run | {"record_hash": "x"}]}))
    with pytest.raises(UsageError, match="two different runs of w, rr, seed 1"):
        read_run_folder(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"runs.json: damaged \("),
        ("[]", "is no list of runs"),
        ('{"runs": 3}', "is no list of runs"),
        ('{"runs": [3]}', "run 1: Input should be a valid dictionary"),
        ('{"runs": [{"workload": "w"}]}', "run 1: 'host': is missing"),
    ],
)
def test_damaged_folders_are_refused(tmp_path, text, message):
    (tmp_path / "runs.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_run_folder(tmp_path)


def test_missing_folders_are_named(tmp_path):
    (tmp_path / "baseline").mkdir()
    with pytest.raises(NotFoundError, match="did you mean 'baseline'"):
        read_run_folder(tmp_path / "basline")
    with pytest.raises(NotFoundError, match="holds no run"):
        read_run_folder(tmp_path / "baseline")
