# SPDX-License-Identifier: MIT
"""Schedules worked out by hand are what the simulator does, record by record."""

from __future__ import annotations

import pytest

from sim import golden_trace


@pytest.mark.parametrize("name", golden_trace.names())
def test_schedule_is_as_computed_by_hand(name, simulator):
    assert golden_trace.actual(name, simulator) == golden_trace.expected(name)


@pytest.mark.parametrize("name", golden_trace.names())
def test_trace_says_how_it_was_computed(name):
    derivation = " ".join(golden_trace.comment(name))
    assert derivation.startswith("# By hand") and len(derivation) > 80


def test_no_trace_without_its_schedule():
    traces = {path.stem for path in golden_trace.FOLDER.glob("*.trace")}
    assert traces == set(golden_trace.names())


def test_bless_changes_only_what_differs(simulator, tmp_path, monkeypatch):
    for path in golden_trace.FOLDER.glob("fifo.*"):
        (tmp_path / path.name).write_text(path.read_text())
    monkeypatch.setattr(golden_trace, "FOLDER", tmp_path)
    assert not golden_trace.bless("fifo", simulator)
    trace = tmp_path / "fifo.trace"
    trace.write_text(trace.read_text().replace("20  0 stop", "21  0 stop"))
    assert golden_trace.actual("fifo", simulator) != golden_trace.expected("fifo")
    assert golden_trace.bless("fifo", simulator)
    assert golden_trace.actual("fifo", simulator) == golden_trace.expected("fifo")
    assert golden_trace.comment("fifo")[0].startswith("# By hand: nobody is interrupted")
