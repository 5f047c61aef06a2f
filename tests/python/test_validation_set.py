# SPDX-License-Identifier: MIT
"""The validation set: what it counts, what it keeps, what it leaves out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from schedlab.errors import SchedlabError

ROOT = Path(__file__).resolve().parent.parent.parent
FIFO, OTHER, BATCH = "SCHED_FIFO:10", "SCHED_OTHER", "SCHED_BATCH"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import validation_set

    yield validation_set
    sys.modules.pop("validation_set")


def run(linux_class, makespan_ms, **predicted_ms):
    found = {
        "class": linux_class,
        "is_source": bool(predicted_ms),
        "load": 1.0,
        "metrics": {"makespan_ns": makespan_ms * 10**6},
    }
    if predicted_ms:
        names = {"fifo": FIFO, "other": OTHER, "batch": BATCH}
        found["predicted"] = {names[name]: {"makespan_ns": ms * 10**6} for name, ms in predicted_ms.items()}
        found["predicted"]["as recorded"] = found["predicted"][linux_class]
    return found


RUNS = [run(FIFO, 100), run(FIFO, 110), run(OTHER, 200), run(OTHER, 200), run(BATCH, 205), run(BATCH, 205),
        run(OTHER, 999, fifo=121, other=220, batch=100), run(FIFO, 999, fifo=100, other=90, batch=300)]  # fmt: skip


def test_errors_are_those_of_predictions_of_no_change_and_of_a_second_real_run(bench):
    found = bench.cell(RUNS, "makespan_ns", OTHER, FIFO)
    assert found == {name: pytest.approx(value) for name, value in (
        ("replay", (0.21 + 0.1) / 2), ("unchanged", (1 + 9 / 11) / 2), ("repeated", (0.1 + 1 / 11) / 2), ("spread", 0.1))}  # fmt: skip
    assert not bench.is_within(found) and bench.is_within(found | {"replay": 0.1})
    own = bench.cell(RUNS, "makespan_ns", FIFO, FIFO)
    assert own["unchanged"] == own["repeated"], "no run is held against itself"
    assert (
        bench.cell(RUNS, "wakeup_ns_p99", OTHER, FIFO) is None
        and bench.cell(RUNS, "makespan_ns", BATCH, FIFO) is None
    )


def test_only_classes_that_differ_are_ranked(bench):
    """OTHER and BATCH differ by 2.5 %; each source ranks FIFO against both, the second one OTHER wrongly."""
    found = bench.ranked(RUNS, "makespan_ns")
    assert sorted(found) == [(False, True), (False, True), (True, True), (True, True)]
    assert bench.show_order([*found, (True, False)]) == ["3 of 5 (60.0%)", "2 of 4 (50.0%)"]
    unsure = bench.ranked([*RUNS, run(FIFO, 206)], "makespan_ns")
    assert sorted(unsure) == [(False, False), (False, False), (True, False), (True, False)], (
        "a run of FIFO took as long"
    )


def test_the_table_names_what_it_leaves_out_and_the_worst(bench):
    text = bench.table({"one": RUNS}, {"two": "nginx not installed"})
    assert (
        "- Left out: two (nginx not installed)." in text
        and "- Worst makespan: one, SCHED_FIFO:10 for SCHED_OTHER, 55%." in text
    )
    assert "2 of 4" in text


def test_intervals_are_made_by_the_other_programs(bench, monkeypatch):
    """One program's predictions are 20 % too short, ten others' 10 % too long: of that one none is inside."""

    def runs(real_ms):
        sources = [run(each, 100, fifo=100, other=100, batch=100) for each in (FIFO, OTHER, BATCH) * 2]
        return [run(each, real_ms) for each in (FIFO, OTHER, BATCH) * 3] + sources

    done = {f"p{i}": runs(90) for i in range(10)} | {"nginx": runs(120)}
    rows = bench.interval_table(done)
    assert "| 120 of 132 | 0 of 12 |" in rows[2]
    assert bench.ends_of(bench.held(done))["makespan_ns"]["good"] == (-0.1, pytest.approx(0.2))


def test_what_is_done_is_not_done_again_and_what_is_missing_is_named(bench, monkeypatch, tmp_path):
    done = []
    monkeypatch.setattr(
        bench, "PROGRAM_SET", {"x": bench.Program((), "true"), "y": bench.Program(("no-such-program",), "")}
    )

    def measure(name, place, linux_class, folder, *, is_source):
        if not (place / "warm").exists():
            (place / "warm").touch()
            assert not is_source
            return run(linux_class, 1)
        assert is_source == (int(folder.name[-1]) < bench.SOURCES)
        done.append(folder.name)
        if len(done) == 8:
            raise SchedlabError("interrupted")
        return run(linux_class, 1)

    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(bench, "predict_all", lambda folder: {})
    with pytest.raises(SchedlabError, match="interrupted"):
        bench.run_program("x", tmp_path)
    assert len(bench.run_program("x", tmp_path)) == 15 == len(done) - 1 == len(set(done))
    with pytest.raises(SchedlabError, match="no-such-program not installed"):
        bench.run_program("y", tmp_path)
