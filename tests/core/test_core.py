# SPDX-License-Identifier: MIT
"""The core on a fake host: its locks on four threads, its parts on one.

The seed is new every day, and printed; SCHEDLAB_SEED=N repeats a run. With
SCHEDLAB_CORE_ROUNDS=N the random operations go on for N rounds of 100 ms per
policy instead of a few.
"""

from __future__ import annotations

import datetime
import os

import pytest
from core.core_programs import build_program, run_program

POLICIES = (
    "none", "fifo", "vtime", "percpu", "pids", "walk", "direct", "last", "preempt", "faulty",
)  # fmt: skip
#: What a policy is there to exercise: a run that never did tested nothing.
MUST_COUNT = {
    "fifo": ("enqueue", "dequeue", "dispatch", "direct"),
    "vtime": ("custody", "dequeue"),
    "percpu": ("direct", "custody"),
    "pids": ("custody", "dequeue"),
    "walk": ("moved", "timer"),
    "direct": ("direct", "enqueue"),
    "last": ("last",),
    "preempt": ("kick", "direct"),
    "faulty": ("failures",),
}
SEED = int(os.environ.get("SCHEDLAB_SEED", datetime.date.today().toordinal()))
ROUNDS = int(os.environ.get("SCHEDLAB_CORE_ROUNDS", 6))


@pytest.fixture(scope="session")
def program(root, need, tmp_path_factory):
    """Function that gives a test program, built once per kind."""
    folder = tmp_path_factory.mktemp("core")
    built = {}

    def make(name, sources, kind):
        if (name, kind) not in built:
            built[name, kind] = build_program(
                root, folder, name, sources, kind=kind, compiler=need("clang-19")
            )
        return built[name, kind]

    return make


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["thread", "address"])
def test_random_operations(program, kind, policy):
    binary = program(
        "random_ops", ["random_ops.c", "random_check.c", "random_policies.c"], kind
    )
    print(f"SCHEDLAB_SEED={SEED}")
    # Both kinds of topology: an odd seed has siblings and caches.
    seed = SEED * 2 + (kind == "thread") + POLICIES.index(policy)
    said = run_program(binary, policy, "--seed", seed, "--rounds", ROUNDS, "--round-ms", 100)
    words = said.splitlines()[-1].split()
    counts = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert counts["steps"] > 1000 and counts["spawned"] > 20
    for name in MUST_COUNT.get(policy, ()):
        assert counts[name] > 0, f"nothing counted under {name}: {said}"
