# SPDX-License-Identifier: MIT
"""bench/agreement_*.py: the measure of agreement fails where a schedule is another one."""

from __future__ import annotations

import importlib
import sys
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from schedlab.hosts.sim import SimHost
from schedlab.records.file import RECORD_DTYPE, Kind, Overhead, Stop

pytestmark = pytest.mark.usefixtures("build")

TICK_NS = 4_000_000
SHARE_POINTS = 2.0
WORKLOADS = ("mix", "web", "audio", "bsp")


@pytest.fixture(scope="module")
def guest(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root / "bench")
        yield importlib.import_module("agreement_guest")


@pytest.fixture(scope="module")
def bounds(guest):
    return sys.modules["agreement_bounds"]


@pytest.fixture(scope="module")
def held(guest):
    """Function: how records differ from those of a policy."""

    def hold(run, real, simulated):
        pair = guest.Pair(run.workload, run.policy)
        guest.measure(pair, run.program, (real, simulated), TICK_NS)
        return pair

    return hold


@pytest.fixture(scope="module")
def simulated(guest):
    """Function: records of a workload under a policy."""
    with closing(SimHost().session(timeout_seconds=60)) as session:
        yield lambda workload, policy: guest.in_simulator(guest.Run(workload, policy, 1), session)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_another_policys_schedule_is_beyond_the_bounds_by_its_shares(guest, simulated, held, workload):
    """What tasks have had at their end is the same all the time: that told nothing."""
    run = guest.Run(workload, "rr", 1)
    rr, fifo = (simulated(workload, policy) for policy in ("rr", "fifo"))
    same, other = held(run, rr, rr), held(run, fifo, rr)
    assert (same.share_points, same.beyond) == (0, [])
    assert other.share_points > 2 * SHARE_POINTS
    assert any(text.startswith("share") for text in other.beyond)
    totals = [np.sum(shares, axis=0) for shares in other.shares]
    assert totals[0] == pytest.approx(totals[1], rel=0.01)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_schedule_at_another_speed_is_beyond_the_bounds_by_its_shares(guest, simulated, held, factor):
    run = guest.Run("mix", "rr", 1)
    rr = simulated("mix", "rr")
    events = rr.events.copy()
    events["t_ns"] = (events["t_ns"] * factor).astype(np.uint64)
    scaled = replace(rr, events=events)
    pair = held(run, scaled, rr)
    assert pair.are_equal, "each decision is the same, and at another time"
    assert pair.beyond[0].startswith("share")


def test_classes_that_change_places_are_beyond_the_bounds_by_their_shares(guest, simulated, held):
    """Each decision at its time, a build's children and tests in each other's place."""
    run = guest.Run("audio", "rr", 1)
    rr = simulated("audio", "rr")
    classes = run.program.tasks["class_idx"]
    events = rr.events.copy()
    for pid, other in zip(*(np.flatnonzero(classes == idx)[:15] + 1 for idx in (2, 4)), strict=True):
        events["task"][rr.events["task"] == pid], events["task"][rr.events["task"] == other] = other, pid
    assert held(run, replace(rr, events=events), rr).share_points > SHARE_POINTS


def test_seeds_do_not_hide_what_differs_in_each(guest, bounds, simulated, held):
    run = guest.Run("mix", "rr", 1)
    rr, fifo = (simulated("mix", policy) for policy in ("rr", "fifo"))
    whole = bounds.over_seeds([held(run, fifo, rr)] * 3, TICK_NS)
    assert whole.share_points == pytest.approx(held(run, fifo, rr).share_points)
    assert whole.beyond
    assert not bounds.over_seeds([held(run, rr, rr)] * 3, TICK_NS).beyond


def test_the_first_decision_that_differs_is_shown_with_what_is_around_it(guest, simulated, bounds):
    rr, fifo = (simulated("mix", policy) for policy in ("rr", "fifo"))
    program = guest.Run("mix", "rr", 1).program
    assert bounds.first_difference((rr, rr), program) == [
        f"all {len(bounds.decisions(rr))} decisions are the same"
    ]
    lines = bounds.first_difference((fifo, rr), program)
    marked = [i for i, line in enumerate(lines) if line.startswith("  >")]
    assert len(marked) == 2
    assert lines[marked[0]] != lines[marked[1]]
    # Three events before it, and three after it.
    assert [lines[i - 4].strip() for i in marked] == ["host:", "simulator:"]
    assert marked[1] - marked[0] == 8


def test_a_run_that_stops_short_differs_where_it_ends(guest, simulated, bounds):
    rr = simulated("mix", "rr")
    short = replace(rr, events=rr.events[:100])
    lines = bounds.first_difference((rr, short), guest.Run("mix", "rr", 1).program)
    assert lines[0].endswith(f"of {len(bounds.decisions(rr))} and {len(bounds.decisions(short))}")


def test_a_table_replaces_its_predecessor_and_nothing_else(bounds, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- end of a -->\n<!-- b -->\nkept\n<!-- end of b -->\n")
    bounds.write_table("a", r"new \\1", page)
    begin, new, rest = page.read_text().partition(r"new \\1")
    assert begin.startswith("before\n<!-- a -->\nMeasured on 2")
    assert (new, rest) == (r"new \\1", "\n<!-- end of a -->\n<!-- b -->\nkept\n<!-- end of b -->\n")


def test_a_page_without_a_tables_place_is_refused(bounds, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- a -->\nold\n")
    with pytest.raises(
        ValueError, match="0 times <!-- a --> to <!-- end of a -->; write the two comments once"
    ):
        bounds.write_table("a", "new", page)
    assert page.read_text() == "<!-- a -->\nold\n"


@pytest.fixture(scope="module")
def linux(root, guest):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root / "bench")
        yield importlib.import_module("agreement_linux")


def stolen(records, ns):
    """The same run, at whose end another process had CPU 0 for some time while a task waited."""
    events = np.zeros(1, records.events.dtype)
    at = np.flatnonzero(records.events["kind"] == Kind.RUN)[40]
    events["t_ns"], events["kind"], events["flags"] = (
        records.events["t_ns"][at],
        Kind.OVERHEAD,
        Overhead.STOLEN,
    )
    events["arg"] = ns
    return replace(records, events=np.insert(records.events, at, events))


def test_what_a_real_time_thread_takes_is_told_to_the_simulator(guest):
    """Two in a row are one; one that came with the tick that ended a slice comes at the tick."""
    tick, us = TICK_NS, 1_000
    rows = [
        (tick + 10 * us, 1, Kind.STOP, Stop.PREEMPTED, 0),  # with the tick
        (tick + 15 * us, 0, Kind.OVERHEAD, Overhead.STOLEN, 5 * us),
        (tick + 17 * us, 0, Kind.OVERHEAD, Overhead.STOLEN, 2 * us),
        (2 * tick + 16 * us, 0, Kind.OVERHEAD, Overhead.STOLEN, 6 * us),  # the task goes on
        (3 * tick + 900 * us, 2, Kind.STOP, Stop.PREEMPTED, 0),  # between two ticks
        (3 * tick + 904 * us, 0, Kind.OVERHEAD, Overhead.STOLEN, 4 * us),
        (4 * tick + 4 * us, 0, Kind.OVERHEAD, Overhead.SWITCH, 4 * us),
    ]
    events = np.zeros(len(rows), RECORD_DTYPE)
    for name, column in zip(("t_ns", "task", "kind", "flags", "arg"), zip(*rows, strict=True), strict=True):
        events[name] = column
    (option,) = guest.above(SimpleNamespace(events=events))
    spans = [(tick, 7 * us), (2 * tick + 10 * us, 6 * us), (3 * tick + 900 * us, 4 * us)]
    assert option == ("--above", ",".join(f"0:{begin_ns}:{ns}" for begin_ns, ns in spans))


def test_a_disturbed_run_and_a_void_one_are_skipped_visibly_and_done_again(linux, simulated, capsys):
    rr = simulated("mix", "rr")
    answers = iter(
        [(None, "void: task 3 computed for 4 ms instead of 5"), (stolen(rr, 100_000_000), None), (rr, None)]
    )
    records, skipped = linux.undisturbed("mix", "SCHED_RR:10", 1, 2, play=lambda *_, **__: next(answers))
    assert records is rr
    assert [text.split(":")[0] for text in skipped] == ["void", "disturbed"]
    said = capsys.readouterr().out
    assert said.count("skipped: mix, SCHED_RR:10, seed 1: ") == 2


def test_a_machine_that_is_never_quiet_gives_no_numbers(linux, simulated):
    disturbed = stolen(simulated("mix", "rr"), 100_000_000)
    pair, n_skipped = linux.compare("mix", "SCHED_RR:10", [1, 2], 2, play=lambda *_, **__: (disturbed, None))
    assert n_skipped == linux.TRIES
    assert "none undisturbed: disturbed: others had" in pair.error
    assert "| | | | seed 1: " in linux.line(pair, n_skipped)


def test_linux_is_held_to_the_same_bounds(linux, simulated):
    rr, fifo = (simulated("mix", policy) for policy in ("rr", "fifo"))

    def play(_, __, policy, *___, **____):
        return (fifo if policy == "rt_rr" else rr), None

    pair, n_skipped = linux.compare("mix", "SCHED_RR:10", [1], 2, play=play)
    assert (pair.error, n_skipped) == (None, 0)
    assert pair.share_points > SHARE_POINTS
    assert linux.line(pair, 0).endswith(f"| {', '.join(pair.beyond)} |")
