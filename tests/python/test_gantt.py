# SPDX-License-Identifier: MIT
"""The charts show what the records say, cell by cell."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from python.record_files import timeline_of
from schedlab.cli.pictures import open_run
from schedlab.errors import NotFoundError, UsageError
from schedlab.plots.gantt import RAN, draw_svg, draw_text, in_window
from schedlab.records.file import Kind, Stop

MS = 1_000_000
# Task 1 runs 0..10, is preempted, waits 10..20, runs 20..30 and ends. Task 2 arrives
# at 0, waits, runs 10..20, sleeps until 35, and runs for no time at 40.
EVENTS = [
    (0, 1, 0, Kind.ARRIVE, 0, 0),
    (0, 2, 0, Kind.ARRIVE, 0, 0),
    (0, 1, 0, Kind.RUN, 0, 0),
    (10 * MS, 1, 0, Kind.STOP, Stop.PREEMPTED, 10 * MS),
    (10 * MS, 2, 0, Kind.RUN, 0, 0),
    (20 * MS, 2, 0, Kind.STOP, Stop.BLOCKED, 10 * MS),
    (20 * MS, 1, 0, Kind.RUN, 0, 0),
    (30 * MS, 1, 0, Kind.STOP, Stop.EXITED, 10 * MS),
    (35 * MS, 2, 0, Kind.WAKE, 0, 0),
    (40 * MS, 2, 0, Kind.RUN, 0, 0),
    (40 * MS, 2, 0, Kind.STOP, Stop.EXITED, 0),
]
NAMES = {1: "one", 2: "two"}


@pytest.fixture
def records():
    return timeline_of(EVENTS, end_ns=40 * MS).records


def test_a_window_outside_the_run_is_refused(records):
    with pytest.raises(UsageError, match="is empty; the run goes from 0 to 40000000 ns"):
        in_window(records, begin_ns=40 * MS)
    with pytest.raises(UsageError, match="empty"):
        in_window(records, begin_ns=5, end_ns=5)
    with pytest.raises(UsageError, match="at least 40 columns"):
        draw_text(records, names=NAMES, width=39)


def test_a_folder_that_is_no_run_is_refused_with_what_there_is(tmp_path):
    run = tmp_path / "mixed" / "rr" / "seed-1"
    run.mkdir(parents=True)
    (run / "records.slr").touch()
    with pytest.raises(NotFoundError, match=r"seed-11: no such folder \(did you mean 'seed-1'\?\)"):
        open_run(run.with_name("seed-11"))
    with pytest.raises(NotFoundError, match=f"runs below it: {run}"):
        open_run(tmp_path)


def test_intervals_are_the_runs_and_the_waits(records):
    found = in_window(records)
    rows = sorted(
        zip(
            found.pid.tolist(),
            found.begin_ns.tolist(),
            found.end_ns.tolist(),
            found.state.tolist(),
            strict=True,
        )
    )
    ms = [
        (pid, begin // MS, end // MS, "ran" if state == RAN else "waited") for pid, begin, end, state in rows
    ]
    assert ms == [
        (1, 0, 10, "ran"),
        (1, 10, 20, "waited"),
        (1, 20, 30, "ran"),
        (2, 0, 10, "waited"),
        (2, 10, 20, "ran"),
        (2, 35, 40, "waited"),
        (2, 40, 40, "ran"),
    ]


def test_text_worked_out_by_hand(records):
    """Forty cells of one millisecond behind seven columns of labels."""
    lines = draw_text(records, names=NAMES, width=47).splitlines()
    assert lines[0] == "one[1] " + "█" * 10 + "·" * 10 + "█" * 10
    # The run of no length falls into the last cell, and is seen there.
    assert lines[1] == "two[2] " + "·" * 10 + "█" * 10 + " " * 15 + "·" * 4 + "▌"
    assert lines[2].split()[0] == "0ns" and lines[2].endswith("40ms")
    assert len(lines[2]) == 47


def test_text_names_the_tasks_it_leaves_out(records):
    text = draw_text(records, names=NAMES, width=47, n_tasks_max=1)
    assert "two" not in text and "and 1 tasks more" in text


def test_svg_is_well_formed_and_to_scale(records):
    svg = draw_svg(records, names={1: "<one>&", 2: "two"}, width_px=1140, title="a < b")
    root = ElementTree.fromstring(svg)
    bars = root.findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 7
    tips = [bar.find("{http://www.w3.org/2000/svg}title").text for bar in bars]
    assert tips[0] == "<one>&[1] ran on CPU 0, 0ns to 10ms"
    # 1,140 px less labels and margin are 1,000 px for 40 ms.
    widths = np.array([float(bar.get("width")) for bar in bars])
    assert widths[0] == pytest.approx(250)
    assert widths.min() > 0, "a run of no length can still be seen"


def test_svg_refuses_more_tasks_than_it_can_show():
    events = []
    for pid in range(1, 502):
        events += [
            (pid, pid, 0, Kind.ARRIVE, 0, 0),
            (pid, pid, 0, Kind.RUN, 0, 0),
            (pid, pid, 0, Kind.STOP, Stop.EXITED, 0),
        ]
    with pytest.raises(UsageError, match="501 tasks are in the window"):
        draw_svg(timeline_of(events, end_ns=600).records, names={})


def test_colours_are_colours():
    from schedlab.plots.gantt import PALETTE

    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in PALETTE)
