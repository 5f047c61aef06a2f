# SPDX-License-Identifier: MIT
"""Simulator and teaching kernel make the same decisions where no tick interferes.

A system call costs the kernel a few microseconds and the simulator nothing. So the
tasks' bursts are drawn from milliseconds, no two the same, and one stands before whatever
may give the CPU away; then few comparisons that a policy makes are so close that microseconds decide. Everything else may happen:
yields, locks, pipes of several sizes, barriers, conditions, children.

Read next: bench/agreement.py, the same with ticks, within bounds.
"""

from __future__ import annotations

import importlib
import random
import sys

import pytest

from schedlab.paths import policies_folder
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind
from schedlab.workload.spec import parse_workload

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("image")]

POLICIES = sorted(path.name.removesuffix(".bpf.c") for path in policies_folder().glob("*.bpf.c"))
TICK_NS = 5_000_000_000
HEAD = """
[workload]
title = "T"
question = "Q?"
jitter = "0ms"
tick = "5s"

[[lock]]
name = "table"
[[pipe]]
name = "small"
capacity = "64B"
[[pipe]]
name = "large"
capacity = "4KiB"
[[barrier]]
name = "all"
parties = 4
[[condition]]
name = "news"
"""
SEEDS = (1, 2)
#: srtf puts who yields level with who is first, and who has used more decides; that
#: is the yield's own cost.
DO_NOT_YIELD = ("srtf",)


@pytest.fixture(scope="module")
def agreement(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root / "bench")
        return importlib.import_module("agreement")


def workload(seed, *, has_yields=True):
    """Tasks that do everything but wait for time; a seed draws what, and how often."""
    gives_way = '"yield"' if has_yields else '{run = "100us"}'
    draw = random.Random(seed)
    used = set()

    def run():
        while (us := draw.randrange(300, 3000)) in used:
            pass
        used.add(us)
        return f'{{run = "{us}us"}}'

    def several(*phases):
        return ", ".join(draw.sample(phases, len(phases)))

    text = HEAD
    for i in range(4):
        # Every round sends and receives as much, so that nobody waits for ever.
        rounds = 3
        body = several(run(), f'{{lock = "table"}}, {run()}, {{unlock = "table"}}', gives_way, run())
        pipe = draw.choice(["small", "large"])
        bytes_ = draw.choice([16, 64, 200])
        talk = f'{{send = {{pipe = "{pipe}", bytes = {bytes_}}}}}'
        text += (
            f'[[task]]\nname = "t{i}"\narrival = "{i * 137}us"\nnice = {draw.randrange(-5, 6)}\n'
            f"tickets = {draw.randrange(1, 9)}\npriority = {draw.randrange(0, 9)}\n"
            f'phases = [{run()}, {{loop = {rounds}, do = [{body}, {talk}, {run()}, {{barrier = "all"}}, {run()}]}}, {{signal = "news"}}]\n'
        )
        text += (
            f'[[task]]\nname = "r{i}"\narrival = "{500 + i * 91}us"\nphases = [{run()}, '
            f'{{loop = {rounds}, do = [{{recv = {{pipe = "{pipe}", bytes = {bytes_}}}}}, {run()}]}}]\n'
        )
    text += (
        f'[[task]]\nname = "boss"\narrival = "911us"\nphases = [{run()}, {{spawn = "son"}}, {run()}, '
        f'{{spawn = "daughter"}}, {{wait = true}}, {run()}]\n'
    )
    for child in ("son", "daughter"):
        text += f'[[task]]\nname = "{child}"\narrival = "spawned"\nphases = [{run()}, {gives_way}, {run()}]\n'
    return text


@pytest.mark.parametrize("policy", POLICIES)
def test_decisions_without_ticks_are_the_same(policy, agreement, tmp_path):
    for seed in SEEDS:
        text = workload(seed, has_yields=policy not in DO_NOT_YIELD)
        program = compile_workload(parse_workload(text), seed=seed)
        run = agreement.Run(tmp_path, program, policy, TICK_NS, seed=seed)
        real, simulated = agreement.in_kernel(run), agreement.in_simulator(run)
        assert len(simulated.events) > 70
        decisions = sys.modules["agreement_bounds"].decisions
        assert decisions(real) == decisions(simulated), f"seed {seed}"
        # Who woke whom, too.
        wakes = [e.events[e.events["kind"] == Kind.WAKE][["task", "arg"]].tolist() for e in (real, simulated)]
        assert sorted(wakes[0]) == sorted(wakes[1])


def test_costs_are_what_differs_between_two_ticks(agreement):
    """Of docs/agreement.md: what begins microseconds after a tick has two of them."""
    cell = agreement.compare("report-1/io-bound", "rr")
    assert cell.costly.error is None
    assert cell.mark == "=", cell.costly.beyond
    assert cell.free.beyond, "without costs the two should differ, or nothing is shown"
    assert "\n| report-1/io-bound | = |\n" in agreement.table([cell])
    # What is beyond the bounds has a number, and a note with what is behind it.
    cell.costly.switches = 0.5
    note = "| (1) |\n\n1. *report-1/io-bound* under *rr*: switches +50%"
    assert f"{note}, though every decision is the same (" in agreement.table([cell])
    cell.costly.are_equal = False
    assert f"{note} (" in agreement.table([cell])
    cell.has_like = True
    assert "| ~ |" in agreement.table([cell])
