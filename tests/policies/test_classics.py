# SPDX-License-Identifier: MIT
"""The classics and the workloads of servers show what their descriptions say that they show.

Each test compares policies on the workload as it comes; seed 1, no costs.
"""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.records.file import Kind, Stop

STRICT = ["rt_fifo", "rt_rr", "priority"]
FAIR = ["cfs", "eevdf", "stride"]


@pytest.fixture
def run(play, root):
    """Function that runs a classic: `run("convoy", "fifo", change={"a": "b"}, knob=1)`."""

    def classic(name: str, policy: str, *, cpus: int = 1, change: dict[str, str] | None = None, **knobs):
        text = (
            (root / "workloads" / (name if "/" in name else f"classics/{name}"))
            .with_suffix(".toml")
            .read_text()
        )
        for old, new in (change or {}).items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return play(text, policy, cpus=cpus, seed=1, **knobs)

    return classic


def turnarounds_ms(played, name: str) -> np.ndarray:
    """From arrival to end, of all tasks of a name, in order of pid."""
    found = {}
    for event in played.records.events:
        pid = int(event["task"])
        if pid == 0 or played.names[pid - 1] != name:
            continue
        if event["kind"] == Kind.ARRIVE:
            found[pid] = -int(event["t_ns"])
        elif event["kind"] == Kind.STOP and event["flags"] == Stop.EXITED:
            found[pid] += int(event["t_ns"])
    return np.array([found[pid] for pid in sorted(found)]) / 1e6


def turnaround_ms(played, name: str) -> float:
    """Mean of `turnarounds_ms`."""
    return float(turnarounds_ms(played, name).mean())


def test_convoy(run):
    convoys = [turnaround_ms(run("convoy", policy), "reader") for policy in ("fifo", "sjf")]
    free = [run("convoy", policy) for policy in ("srtf", "cfs", "mlfq", "eevdf")]
    assert min(convoys) > 2.5 * max(turnaround_ms(played, "reader") for played in free)
    ends = [turnaround_ms(played, "long") for played in free]
    assert max(ends) < 1.25 * turnaround_ms(run("convoy", "fifo"), "long")


def test_starvation(run):
    for policy in ("rt_fifo", "rt_rr", "priority", "srtf", "edf"):
        played = run("starvation", policy)
        assert played.finish_ms("victim") >= played.finish_ms("important") - 100, policy
    for policy in (*FAIR, "rr", "lottery", "credit", "o1", "mlfq"):
        assert turnaround_ms(run("starvation", policy), "victim") < 2500, policy


def test_gamer(run):
    gamed, held = run("gamer", "mlfq"), run("gamer", "mlfq", allotment=1)
    assert turnaround_ms(gamed, "gamer") < 5600
    assert turnaround_ms(gamed, "honest") > 9900
    assert turnaround_ms(held, "gamer") > 9400
    for policy in FAIR:
        assert turnaround_ms(run("gamer", policy), "gamer") > 9400, policy


@pytest.mark.parametrize("policy", STRICT)
def test_inversion_through_a_lock(run, policy):
    """Without the task in the middle all 60 rounds are in time: 3.0 s."""
    cure = {'middle = {default = "120ms"': 'middle = {default = "0ms"'}
    assert turnaround_ms(run("inversion-lock", policy), "high") > 3200
    assert turnaround_ms(run("inversion-lock", policy, change=cure), "high") == pytest.approx(3000, abs=10)


@pytest.mark.parametrize("policy", FAIR)
def test_fair_shares_bound_the_inversion(run, policy):
    assert turnaround_ms(run("inversion-lock", policy), "high") == pytest.approx(3000, abs=60)


@pytest.mark.parametrize("policy", STRICT)
def test_inversion_through_a_pipe(run, policy):
    cure = {'other = {default = "150ms"': 'other = {default = "0ms"'}
    assert turnaround_ms(run("inversion-pipe", policy), "client") > 4500
    assert turnaround_ms(run("inversion-pipe", policy, change=cure), "client") == pytest.approx(2400, abs=10)


@pytest.mark.parametrize("policy", ["mlfq", "srtf", "cfs", "eevdf"])
def test_policies_without_priorities_do_not_invert_through_a_pipe(run, policy):
    assert turnaround_ms(run("inversion-pipe", policy), "client") == pytest.approx(2400, abs=60)


def test_interactive_beside_batch(run):
    def latency_ms(policy):
        return run("interactive-batch", policy).latencies_ms("person").mean()

    quick = {policy: latency_ms(policy) for policy in ("mlfq", "srtf", "cfs", "eevdf", "credit")}
    assert max(quick.values()) < 7
    assert latency_ms("rr") > 5 * max(quick.values())
    batch = [turnaround_ms(run("interactive-batch", policy), "batch") for policy in ("rr", "mlfq", "srtf")]
    assert max(batch) < 1.05 * min(batch)


@pytest.mark.full
def test_messages_are_switches(run):
    """0.4 s of work in pieces of 5 us: a thousand switches at least, many more with preemption."""
    counts = {p: run("messages", p, cpus=4).result["nr_switches"] for p in ("fifo", "eevdf", "srtf")}
    assert min(counts.values()) > 1000
    assert counts["srtf"] > 2 * counts["fifo"]


@pytest.mark.full
def test_requests_differ_in_the_tail(run):
    p99 = {
        policy: np.percentile(run("requests", policy, cpus=4).latencies_ms("worker"), 99)
        for policy in ("fifo", "sjf", "cfs", "eevdf")
    }
    assert p99["cfs"] < 0.7 * p99["fifo"]
    assert p99["eevdf"] < 0.75 * p99["fifo"]
    assert p99["sjf"] > 1.3 * p99["fifo"]


@pytest.mark.full
def test_heavy_tail(run):
    """Small jobs gain by tens, the longest hundredth loses by little."""

    def slowdowns(policy):
        played = run("heavy-tail", policy)
        ran = np.zeros(len(played.names))
        for turn in played.turns:
            ran[turn.pid - 1] += turn.ran_ms
        slowdown = turnarounds_ms(played, "job") / ran
        return slowdown.mean(), slowdown[ran > np.quantile(ran, 0.99)].mean()

    fifo, turns, feedback, minimum = (slowdowns(policy) for policy in ("fifo", "rr", "mlfq", "srtf"))
    assert fifo[0] > 3 * turns[0] > 6 * feedback[0] > 9 * minimum[0]
    assert minimum[1] < 2 * fifo[1]


def test_storm(run):
    """An idle CPU is there for the first eight; a probe pays for what it has nothing to do with."""
    worst = {policy: run("server/storm", policy, cpus=8) for policy in ("fifo", "eevdf")}
    assert all(played.latencies_ms("worker").max() > 2.4 for played in worst.values())
    assert worst["eevdf"].latencies_ms("probe").max() < 0.75 * worst["fifo"].latencies_ms("probe").max()


def test_build(run):
    """The build is bound by its work; the editor is not."""
    played = {policy: run("server/build", policy, cpus=8) for policy in ("fifo", "eevdf")}
    work_ms = sum(turn.ran_ms for turn in played["fifo"].turns)
    spans = [one.finish_ms("make") for one in played.values()]
    assert work_ms / 8 < min(spans) and max(spans) < 1.1 * min(spans)
    assert played["eevdf"].latencies_ms("editor").max() < 0.1 * played["fifo"].latencies_ms("editor").max()


def test_web(run):
    p99 = {
        policy: np.percentile(turnarounds_ms(run("server/web", policy, cpus=8), "request"), 99)
        for policy in ("fifo", "eevdf")
    }
    assert p99["eevdf"] < 0.2 * p99["fifo"]
