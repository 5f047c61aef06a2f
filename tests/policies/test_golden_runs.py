# SPDX-License-Identifier: MIT
"""Each policy still does in a mixed load what it did, event by event.

After an intended change: `tools/bless --runs`, and the commit says what changed and why.
"""

from __future__ import annotations

import pytest

from schedlab.policy.find import list_policies

from . import golden_runs


@pytest.mark.parametrize("policy", list_policies())
def test_runs_are_what_they_were(policy, simulator):
    lines = [line for line in golden_runs.listed() if line.split()[0] == policy]
    assert lines, f"{golden_runs.LISTED.name} has no run of {policy}"
    changed = [line for line in lines if golden_runs.run(line, simulator) != line]
    assert changed == [], "if that is intended: tools/bless --runs, and say why in the commit"
