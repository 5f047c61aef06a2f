# SPDX-License-Identifier: MIT
"""A narrow terminal gets more lines, never fewer columns, units or words."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from schedlab.metrics.dictionary import DICTIONARY
from schedlab.show import bench, tables
from schedlab.show.usage import COLUMNS as USAGE_COLUMNS

POLICIES = ("rr", "a-policy-with-a-rather-long-name", "SCHED_DEADLINE:2ms/4ms/8ms")
WIDTHS = (140, 80, 60, 40)


def runs():
    """One of each policy, with all metrics of the table and those of `time`."""
    metrics = dict.fromkeys((name for name, m in DICTIONARY.items() if m.level == "run"), 123_456_789)
    metrics |= {"fairness_jain": 0.9876, "cpu_utilisation": 0.876, "slowdown_mean": 12.34}
    usage = dict.fromkeys(USAGE_COLUMNS, 98_765_432)
    return [{"workload": "mixed", "host": "uthreads", "cpus": 2, "policy": policy, "seed": 1, "status": "ok",
             "metrics": metrics, "usage": usage, "environment": {}, "log": []} for policy in POLICIES]  # fmt: skip


def measurement():
    """What `schedlab bench` shows."""
    names = ("wall_ns", "user_ns", "system_ns", "cpu_percent", "switches_involuntary", "switches_voluntary",
             "run_delay_ns", "tree_ns", "resident_kib_max")  # fmt: skip
    figures = {name: {"mean": 12_345_678.0, "low": 12e6, "high": 13e6} for name in names}
    plan = SimpleNamespace(argv=["make", "-j4"], n_rounds=6, n_warmups=1, seed=1, background=[], cpus=())
    return SimpleNamespace(
        plan=plan, machine={"cpu": "AMD EPYC", "cpus": 2, "kernel": "6.18"}, figures=list(names), recorded={},
        samples=[{"tree_ns": 10**12, "wall_ns": 1}], summaries=dict.fromkeys(POLICIES, figures), comparisons=[],
        disturbance={}, why_not_recorded="perf_event_paranoid is 3", warnings=[],
    )  # fmt: skip


def shown(capsys, monkeypatch, width, show, *arguments, **named) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    show(*arguments, **named)
    return capsys.readouterr().out


def words(text: str) -> set[str]:
    return set(re.findall(r"\S+", text))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["run", "bench"])
def test_each_column_unit_and_word_is_there_at_any_width(capsys, monkeypatch, width, kind):
    def at(columns: int) -> str:
        if kind == "bench":
            return shown(capsys, monkeypatch, columns, bench.show_bench, measurement(), is_plain=False)
        result = SimpleNamespace(runs=runs(), comparisons=[], out="out/x")
        return shown(capsys, monkeypatch, columns, tables.show_runs, result)

    whole, narrow = at(250), at(width)
    assert max(map(len, narrow.splitlines())) <= width
    assert "…" not in narrow
    lost = words(whole) - words(narrow) - {"─" * n for n in range(300)}
    # A name of more than half the width is broken; its parts are there.
    assert {word for word in lost if word not in POLICIES and "─" not in word} == set()
    assert all(policy in narrow or len(policy) > width / 2 - 2 for policy in POLICIES)


@pytest.mark.parametrize("width", WIDTHS)
def test_sentences_are_broken_between_words(capsys, monkeypatch, width):
    text = "The longest wait is higher under mlfq, which starves interactive tasks, than elsewhere: +322 ms."
    lines = shown(capsys, monkeypatch, width, lambda: tables.say(f"  {text}")).splitlines()
    assert [line.strip() for line in lines if not line.startswith("  ")] == []
    assert " ".join(line.strip() for line in lines) == text


def test_lines_of_a_file_stay_whole(capsys, monkeypatch):
    """A script looks for them; `COLUMNS` is not exported by a shell."""
    monkeypatch.delenv("COLUMNS", raising=False)
    tables.say("word " * 100)
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("width", (80, 60))
def test_the_dictionary_of_metrics_breaks_no_word(capsys, monkeypatch, width):
    entries = [{"name": "wakeup_ns_p99", "unit": "ns", "level": "run", "direction": "lower",
                "formula": "99th percentile (nearest rank) of wake-up latency over all wake-ups",
                "reference": "as schbench and perf sched latency have it"}]  # fmt: skip
    text = shown(capsys, monkeypatch, width, tables.show_metrics, entries)
    assert {"wakeup_ns_p99", "percentile", "wake-ups", "schbench"} <= words(text)
