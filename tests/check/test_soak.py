# SPDX-License-Identifier: MIT
"""`./lab soak check`: each of schedlab's policies searched for so many seconds of CPU time.

Each finding is one that docs/check.md declares, or a defect: of the policy or of the search.
"""

from __future__ import annotations

import datetime
import os
import resource
from dataclasses import replace

import pytest

from schedlab.check.search import search
from schedlab.policy.find import list_policies

from .test_check import task_of

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(0)]
SECONDS = int(os.environ.get("SCHEDLAB_CHECK_SECONDS", "5"))
#: Worlds that no other test draws, and no other day.
SEED = int(os.environ.get("SCHEDLAB_CHECK_SEED", datetime.date.today().strftime("%Y%m%d")))
#: A search of its own seed each, so that the time that was used is known in between.
PIECE_SECONDS = 300
#: A knob, at a bound of which docs/check.md says what such a policy does.
DECLARED = {"priority": "kill_ns", "lottery": "slice_ns"}


@pytest.mark.parametrize("name", list_policies())
def test_no_world_breaks_what_a_policy_declares(name, simulator, capsys):
    begin_seconds = cpu_seconds()
    n_worlds, n_pieces, found = 0, 0, []
    while (rest := SECONDS - (cpu_seconds() - begin_seconds)) > 0:
        task = replace(task_of(name), seed=SEED * 1000 + n_pieces)
        report = search(task, budget_seconds=min(rest, PIECE_SECONDS), n_processes=1, finds_all=True)
        n_worlds, n_pieces = n_worlds + report.n_worlds, n_pieces + 1
        found += [
            (each.smallest.finding.text, each.smallest.world)
            for each in report.found
            if DECLARED.get(name) not in dict(each.smallest.world.settings)
        ]
    with capsys.disabled():
        used = cpu_seconds() - begin_seconds
        print(f"{name}: {n_worlds:,} worlds in {used:.0f} s of CPU time, {len(found)} found")
    assert not found, found


def cpu_seconds() -> float:
    """CPU time of this process and of the children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
