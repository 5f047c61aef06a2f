# SPDX-License-Identifier: MIT
"""Sentences say what the numbers say, and begin with what differs most."""

from __future__ import annotations

import re

import numpy as np

from python.compared_runs import counted, run_of, runs_of
from schedlab.metrics.dictionary import DICTIONARY
from schedlab.runs.compare import COMPARED, compare_runs
from schedlab.stats.sentences import findings, verdict_sentence


def test_findings_of_unequally_many_tasks_say_so():
    runs = [r for p, n in (("a", 20), ("b", 20), ("c", 12)) for r in counted(p, [n] * 8, [20] * 8)]
    for run in runs:
        run["metrics"]["turnaround_ns_mean"] += {"a": 9, "b": 9, "c": 1}[run["policy"]] + 0.1 * run["seed"]
        run["metrics"]["starvation_ns"] = {"a": 9, "b": 9, "c": 1}[run["policy"]] + 0.1 * run["seed"]
    lines = [line for line in findings(compare_runs(runs)) if "better under c" in line]
    assert [line.endswith("BUT NOT OF THE SAME TASKS: see survivors.") for line in lines] == [False, True]


def test_findings_lead_with_what_differs_most():
    """Each policy against the baseline, with ratios; what is not told apart is named once."""
    rng = np.random.default_rng(6)
    values = {
        "a": {"response_ns_mean": 1.7e9, "fairness_jain": 0.5, "makespan_ns": 1e9, "starvation_ns": 7e9},
        "b": {"response_ns_mean": 1.2e7, "fairness_jain": 0.9, "makespan_ns": 2e9, "starvation_ns": 7e9},
        "c": {"response_ns_mean": 3.3e7, "fairness_jain": 0.4, "makespan_ns": 3e9, "starvation_ns": 7e9},
    }
    runs = [
        run_of(policy, seed, {name: value * float(rng.normal(1, 0.01)) for name, value in means.items()})
        for policy, means in values.items()
        for seed in range(1, 21)
    ]
    response, fairness, rest, method = findings(compare_runs(runs))
    assert re.fullmatch(
        r"Mean response: 1.\d+ s under a; better under b \(1[\d.]+ ms, 1/1\d\d\) and c .*1/5[\d.]+\)\.",
        response,
    )
    assert re.fullmatch(
        r"Fairness: 0.5\d* under a; better under b .*\); worse under c \(.*, -\d+ %\)\.", fairness
    )
    assert rest == "Undecided with 20 seeds between a and any other: longest wait."
    assert "Holm over 6 tests of headline metrics. All others are exploratory." in method


def test_findings_of_one_seed_have_no_verdict():
    runs = [run_of(p, 1, {"response_ns_mean": v}) for p, v in (("a", 1e9), ("b", 1e6), ("c", 2e9))]
    first, last = findings(compare_runs(runs))
    assert first == "Mean response: 1 s under a; under b (1 ms, 1/1,000) and c (2 s, +100 %)."
    assert last == "One seed: differences are not tested; use --seeds 20."


def test_every_compared_metric_reads_well():
    rng = np.random.default_rng(8)
    values = [{name: float(v) for name in COMPARED} for v in rng.uniform(1, 2, 8)]
    more = [{name: v * 3 for name, v in row.items()} for row in values]
    (comparison,) = compare_runs(runs_of("a", values) + runs_of("b", more))
    for name in COMPARED:
        sentence = verdict_sentence(comparison, name)
        assert not sentence[0].islower()
        assert sentence.endswith(".")
        assert DICTIONARY[name].level == "run"
        assert "_" not in sentence, sentence
