# SPDX-License-Identifier: MIT
"""`./lab soak check`: each of schedlab's policies searched for so many seconds.

Each finding is one that docs/check.md declares, or a defect: of the policy or of the search.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from schedlab.check.search import search
from schedlab.policy.find import list_policies

from .test_check import task_of

pytestmark = pytest.mark.nightly
SECONDS = int(os.environ.get("SCHEDLAB_CHECK_SECONDS", "5"))
#: Worlds that no other test draws.
SEED = 20261127
#: A knob, at a bound of which docs/check.md says what such a policy does.
DECLARED = {"priority": "kill_ns", "lottery": "slice_ns"}


@pytest.mark.parametrize("name", list_policies())
def test_no_world_breaks_what_a_policy_declares(name, simulator, capsys):
    task = replace(task_of(name), seed=SEED)
    report = search(task, budget_seconds=SECONDS, n_processes=1, finds_all=True)
    found = [
        (each.smallest.finding.text, each.smallest.world)
        for each in report.found
        if DECLARED.get(name) not in dict(each.smallest.world.settings)
    ]
    with capsys.disabled():
        print(f"{name}: {report.n_worlds:,} worlds in {report.seconds:.0f} s, {len(found)} found")
    assert not found, found
