# SPDX-License-Identifier: MIT
"""`./lab soak check`: each of schedlab's policies searched for so many seconds of CPU time.

Each finding is one that docs/check.md declares, or a defect: of the policy or of the search. The page has a row
per policy, of the searches of all days: a soak goes on where the last one stopped, with other worlds.
"""

from __future__ import annotations

import datetime
import fcntl
import multiprocessing
import os
import re
import resource
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from schedlab.check.search import search
from schedlab.check.shrink import Shrunk
from schedlab.policy.find import list_policies

from .test_check import task_of

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(0)]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "check.md"
#: In all, where somebody asks for it; what CI does is not written down.
WANTED_SECONDS = int(os.environ.get("SCHEDLAB_CHECK_SECONDS", "0"))
CI_SECONDS = 5
#: The seed of CI: worlds that no other day draws.
TODAY = int(datetime.date.today().strftime("%Y%m%d"))
#: After so long on the wall clock what was done is written down.
PIECE_SECONDS = 300
#: A knob, or what is changed from outside, with which docs/check.md says what such a policy does.
DECLARED = {"priority": "kill_ns", "lottery": "slice_ns", "rr": "affinity"}


@dataclass(frozen=True)
class Searched:
    """What was done with a policy until now: a row of the page."""

    cpu_seconds: int = 0
    n_worlds: int = 0
    n_found: int = 0

    def row(self, name: str, when: str) -> str:
        return f"| `{name}` | {self.cpu_seconds:,} | {self.n_worlds:,} | {self.n_found} | {when} |"


def row_pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"^\| `{name}` \| ([\d,]+) \| ([\d,]+) \| (\d+) \| [-\d]+ at \S+ \|$", re.MULTILINE)


def searched(page: str, name: str) -> Searched:
    """What the page says of a policy."""
    row = row_pattern(name).search(page)
    assert row, f"{PAGE}: no row of {name} in the table of hours; write one with 0 s"
    return Searched(*(int(number.replace(",", "")) for number in row.groups()))


def write_down(name: str, more: Searched) -> Searched:
    """Add to the row of a policy; soaks of several policies may run at once."""
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
    sources = ("core", "hosts", "include", "policies", "python")
    is_changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *sources], cwd=ROOT, check=False)
    commit += "-dirty" if is_changed.returncode else ""
    with open(PAGE, "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        page = file.read()
        before = searched(page, name)
        now = Searched(
            before.cpu_seconds + more.cpu_seconds,
            before.n_worlds + more.n_worlds,
            before.n_found + more.n_found,
        )
        file.seek(0)
        file.write(
            row_pattern(name).sub(now.row(name, f"{datetime.date.today():%Y-%m-%d} at {commit}"), page)
        )
        file.truncate()
    return now


def is_declared(name: str, small: Shrunk) -> bool:
    """Whether docs/check.md says that the policy does so in such a world."""
    world = small.world
    phases = [phase for group in world.groups for phase in group.phases]
    changed = {phase.name for phase in phases if phase.verb == "change"}
    by = dict(world.settings).keys() | (changed if small.finding.broken == "stall" else set())
    return DECLARED.get(name) in by


@pytest.mark.parametrize("name", list_policies())
def test_no_world_breaks_what_a_policy_declares(name, simulator, capsys):
    before = searched(PAGE.read_text(encoding="utf-8"), name)
    found = {}
    while before.cpu_seconds < (WANTED_SECONDS or before.cpu_seconds + 1):
        begin_seconds = cpu_seconds()
        rest = WANTED_SECONDS - before.cpu_seconds if WANTED_SECONDS else CI_SECONDS
        # Worlds that no piece before has drawn.
        task = replace(task_of(name), seed=1000 + before.cpu_seconds if WANTED_SECONDS else TODAY)
        report = search(task, budget_seconds=min(rest, PIECE_SECONDS), n_processes=1, finds_all=True)
        new = {
            each.smallest.finding.signature: (each.smallest.finding.text, each.smallest.world)
            for each in report.found
            if not is_declared(name, each.smallest) and each.smallest.finding.signature not in found
        }
        found |= new
        if not WANTED_SECONDS:
            break
        used_seconds = max(1, int(cpu_seconds() - begin_seconds))
        before = write_down(name, Searched(used_seconds, report.n_worlds, len(new)))
        with capsys.disabled():
            print(
                f"{name}: {before.n_worlds:,} worlds in {before.cpu_seconds:,} s of CPU time",
                *new.values(),
                flush=True,
            )
    assert not found, found


def cpu_seconds() -> float:
    """CPU time of this process and of its children, which a search leaves to end by themselves."""
    for child in multiprocessing.active_children():
        child.join()
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
