# SPDX-License-Identifier: MIT
"""What the benchmark times goes through the policy, as often as docs/semantics.md says.

And a thread that sleeps takes little memory, however many there are.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from schedlab import paths
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy

#: Per operation, on one kernel thread: a thread that yields makes way once (S14); two
#: threads that hand over to each other each block and wake once (S1, S11).
MAKES_WAY = {"dequeue": 1, "dispatch": 1, "enqueue": 1, "running": 1, "stopping": 1}
BLOCKS_AND_WAKES = MAKES_WAY | {"runnable": 1, "quiescent": 1}
LIVES = {"init_task": 1, "enable": 1, "disable": 1, "exit_task": 1}


def twice(calls: dict) -> dict:
    return {name: 2 * number for name, number in calls.items()}


EXPECTED = {
    "yield_2": MAKES_WAY | {"yield": 1},
    "ping_pong": twice(BLOCKS_AND_WAKES),
    "create_join": twice(BLOCKS_AND_WAKES) | LIVES,
}


@pytest.fixture(scope="module")
def bench(root, build):
    assert paths.uthreads_runner().is_relative_to(build)
    spec = importlib.util.spec_from_file_location("uthreads_bench", root / "bench" / "uthreads_bench.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", EXPECTED)
def test_nothing_goes_around_the_policy(bench, tmp_path, kind):
    program, policy = bench.compile_bench(tmp_path), bench.compile_counting()
    calls = bench.count_callbacks(program, policy, kind, 2_000)
    # A joiner is woken when the thread has left its stack. If that is from the idle
    # loop, a dispatch before it found nobody.
    idle = calls.pop("dispatch") - EXPECTED[kind]["dispatch"]
    assert idle in (0, 1) if kind == "create_join" else idle == 0
    assert calls == {name: number for name, number in EXPECTED[kind].items() if name != "dispatch"}


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_million_threads_would_sleep_in_16_gb(bench, tmp_path, cpus):
    """A page of stack, and what the core, the policy and the library know of each."""
    fifo = build_policy(load_policy("fifo")).shared_object
    said = subprocess.run(
        [bench.compile_bench(tmp_path), "sleepers", fifo, str(cpus), "20000"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert 4096 < json.loads(said)["bytes"] < 16e9 / 1e6 / 2
