# SPDX-License-Identifier: MIT
"""A counter-example of `schedlab check` is run in a real kernel, and what that makes of it is said."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import missing
from schedlab.check import on_linux
from schedlab.check.on_linux import try_on_linux
from schedlab.check.save import Saved, save
from schedlab.check.trial import Finding
from schedlab.check.world import MS, Group, Phase, World
from schedlab.hosts.guest import policies as guest
from schedlab.workload.events import read_events

from .test_check import task_of

pytestmark = pytest.mark.full
BUGS = Path(__file__).resolve().parent / "bugs"


@pytest.mark.parametrize(
    ("bug", "begin", "end"),
    [
        ("global_in_vtime_order", "confirmed on Linux (7.", "cannot use vtime ordering"),
        # Tests are put into the policy, and records are held against its header.
        (
            "counter_below_zero",
            "confirmed on Linux (7.",
            "invariant of line 6 is false after ops.stopping(): ",
        ),
        ("wakes_for_next_round", "confirmed on Linux (7.", "woke up at "),
        # What does not come to run confirms nothing.
        ("stale_mask", "not run on Linux (7.", "refused by Linux: stale_mask.bpf.c:18: "),
    ],
)
def test_on_linux_says_what_a_real_kernel_makes_of_it(bug, begin, end, tmp_path, simulator):
    if reason := guest.unavailable_reason():
        missing("a guest", reason)
    done = subprocess.run(
        [sys.executable, "-m", "schedlab", "check", BUGS / f"{bug}.bpf.c", "--worlds", "100", "--on-linux", "--json"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    (found,) = json.loads(done.stdout)["found"]
    assert found["on_linux"].startswith(begin), found["on_linux"]
    assert end in found["on_linux"]


def test_an_interleaving_is_confirmed_with_delays_and_not_once_it_is_mended(tmp_path, simulator, monkeypatch):
    """Two hogs' slices end at once, and both CPUs write a pid where one has looked for room."""
    if reason := guest.unavailable_reason():
        missing("a guest", reason)
    world = World(
        n_cpus=2, topology="", tick_ns=MS, horizon_ns=500 * MS,
        groups=(Group("hog", (Phase("run", 100 * MS),), count=4),),
    )  # fmt: skip
    bug = BUGS.parent / "next_overwritten.bpf.c"
    task = replace(task_of(bug, races=True), properties=frozenset({"stall"}))
    with task.laboratory() as laboratory:
        worlds = [replace(world, interleaving=f"{seed}:pct2") for seed in range(200)]
        failed = [(each, trial) for each in worlds if (trial := laboratory.try_world(each)).finding]
    world, trial = failed[0]
    world = replace(world, horizon_ns=trial.finding.horizon_ns)
    saved = save(world, trial.finding, task.built, tmp_path / "found")
    said = try_on_linux(saved, world, trial.finding, task.built).on_linux
    assert re.match(
        r"confirmed on Linux \(7\.\S+\) with delays of up to [\d.]+ms .*before next_overwritten\.bpf\.c", said
    ), said
    assert re.search(r"\btry (\d+): runnable task stall: ", said)
    (tmp_path / "bugs").symlink_to(BUGS)
    text = bug.read_text()
    mended = text.replace("if (!READ_ONCE(next))", "if (!__sync_val_compare_and_swap(&next, 0, p->pid))")
    mended = mended.replace("\t\t__sync_lock_test_and_set(&next, p->pid);\n", "\t\t;\n")
    assert (
        mended.count("\n") == text.count("\n")
        and mended.count("__sync_lock") == text.count("__sync_lock") - 1
    )
    (tmp_path / bug.name).write_text(mended)
    monkeypatch.setattr(on_linux, "TRIES", int(re.search(r"\btry (\d+):", said)[1]))
    right = task_of(tmp_path / bug.name).built
    assert try_on_linux(saved, world, trial.finding, right).on_linux.startswith("not seen on Linux (7.")


def test_what_is_not_visible_from_outside_is_not_tried(tmp_path):
    saved = Saved(tmp_path / "exit-1.toml", tmp_path, "", "")
    world = World(n_cpus=2, topology="", tick_ns=MS, groups=(), interleaving="0.1.2>1")
    quiet = task_of(BUGS / "counter_not_back.bpf.c").built
    for broken, words in (
        ("exit", "exit is only as schedlab: what a freed task"),
        ("vtime", "vtime is only as schedlab: each virtual time"),
        ("more-cpus", "more-cpus is only as schedlab: two runs have to be alike"),
        ("invariant", "invariant is only as schedlab: threads of Linux's own"),
    ):
        said = try_on_linux(saved, world, Finding(broken, "", MS), quiet).on_linux
        assert said.startswith(f"not tried on Linux, {words}")
    disturbed = replace(world, events=read_events("take:0@5+5"))
    said = try_on_linux(saved, disturbed, Finding("stall", "", MS), None).on_linux
    assert said == "not tried on Linux: events of kind take beside chosen interleavings are schedlab's"
