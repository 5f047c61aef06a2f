# SPDX-License-Identifier: MIT
"""The search, on a workload of nested quotas that change while tasks move, sleep, and get other CPUs and weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.check.search import Task, do_batch
from schedlab.check.world import HORIZON_NS, MS, World
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.workload.spec import parse_workload

pytestmark = pytest.mark.full
HELD = frozenset({"consistency", "deadlock", "error", "exit", "ignored-error", "invariant", "lost", "stall"})
WORKLOAD = Path(__file__).with_name("quotas.toml")


@pytest.mark.parametrize("races", [False, True], ids=["steady", "interleaved"])
@pytest.mark.parametrize(
    ("policy", "groups"), [("cfs", 1), ("cfs", 2), ("eevdf", 1), ("eevdf", 2), ("credit", 1)]
)
def test_no_task_is_lost_where_quotas_change(policy, groups, races, simulator):
    """The policies declare that tasks may starve; of these tasks none may."""
    workload = parse_workload(WORKLOAD.read_text(), name=WORKLOAD.name)
    world = World(2, "", MS, (), horizon_ns=HORIZON_NS, given=workload, n_cpus_min=2, events=workload.events)
    built = build_policy(load_policy(policy), {"groups": groups})
    task = Task(built, HELD, seed=1, are_chosen=True, given=world, races=races)
    batch = do_batch(task, 0)
    assert not batch.error and not batch.failed
