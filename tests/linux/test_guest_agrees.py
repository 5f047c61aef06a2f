# SPDX-License-Identifier: MIT
"""The simulator says what a real kernel does: same policies, same program.

The bounds are those of the project's design, fixed before the first run:
shares within 2 percentage points, switches within 10 %, mean response within
15 %, 99th percentiles within one tick.
"""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

from schedlab.hosts import guest, guest_build
from schedlab.metrics import physics
from schedlab.metrics.dictionary import compute_metrics
from schedlab.metrics.timeline import Timeline
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Stop, read_records, write_records
from schedlab.records.ftrace import trace_records
from schedlab.workload.find import load_workload

pytestmark = pytest.mark.full

SHARE_POINTS = 0.02
SWITCHES = 0.10
RESPONSE = 0.15
#: Slices that do not end at a tick; see agreement.toml.
POLICIES = {
    "fifo": {},
    "rr": {"slice_ns": 9_000_000},
    "mlfq": {"quantum_ns": 7_000_000, "bottom_turn_ns": 11_000_000},
}
#: Real work costs the guest this much more than the program says: page faults, the
#: end of a process.
EXTRA_WORK = 0.005


@pytest.fixture(scope="module")
def program(root):
    workload = load_workload(str(root / "tests" / "linux" / "agreement.toml"))
    return compile_workload(workload, seed=1)


def sources(root):
    return {name: root / "policies" / f"{name}.bpf.c" for name in POLICIES}


def play(root, program, *, cpus=1, names=POLICIES):
    """Play the program in the guest, once per policy, in one boot."""
    return guest.run_guest(
        [
            guest.GuestTask(
                name=name,
                policy=guest_build.compile_for_bpf(sources(root)[name]),
                knobs=POLICIES[name],
                program=bytes(program.data),
            )
            for name in names
        ],
        cpus=cpus,
    )


@pytest.fixture(scope="module")
def answers(guest_parts, root, program):
    return {answer.name: answer for answer in play(root, program)}


@pytest.fixture(scope="module")
def both(answers, simulator, program, tmp_path_factory):
    """Timelines of guest and simulator, by policy."""
    folder = tmp_path_factory.mktemp("agrees")
    (folder / "program").write_bytes(bytes(program.data))
    found = {}
    for name, answer in answers.items():
        assert answer.is_loaded, answer.refusal or answer.fatal
        assert (answer.fatal, answer.results, answer.nr_left) == ([], {}, 0)
        events, end_ns = trace_records(answer.trace)
        records = folder / f"{name}-guest.slr"
        write_records(records, events, nr_cpus=1, tick_ns=guest.TICK_NS, end_ns=end_ns)
        found[name] = (
            Timeline(read_records(records)),
            simulate(simulator, name, folder),
        )
    return found


def simulate(simulator, name, folder):
    records = folder / f"{name}-sim.slr"
    settings = [word for knob, value in POLICIES[name].items() for word in ("--set", f"{knob}={value}")]
    done = subprocess.run(
        [simulator, "--policy", build_policy(load_policy(name)).shared_object,
         "--program", folder / "program", "--cpus", "1", "--seed", "1",
         "--tick-ns", str(guest.TICK_NS), "--records", records, *settings],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["error"] is None
    return Timeline(read_records(records))


@pytest.mark.parametrize("name", POLICIES)
def test_guest_obeys_physics(both, program, name):
    real, _ = both[name]
    rows = program.task_rows
    verdict = physics.check(
        real,
        physics.Expectations(
            work_ns=program.work_ns(),
            has_host_work=np.ones(len(rows), bool),
            # A timer fires a little late, never early.
            work_conserving=True,
            latency_ns=200_000,
        ),
    )
    assert verdict == "ok"
    declared_ns = program.work_ns().sum()
    received_ns = compute_metrics(real).run["busy_ns"]
    assert declared_ns <= received_ns <= declared_ns * (1 + EXTRA_WORK)


@pytest.mark.parametrize("name", POLICIES)
def test_simulator_agrees_with_the_kernel(both, program, name):
    weight = program.tasks["weight"]
    real, simulated = (compute_metrics(timeline, weight=weight) for timeline in both[name])

    shares = [metrics.tasks["run_ns"] / metrics.run["busy_ns"] for metrics in (real, simulated)]
    assert np.abs(shares[0] - shares[1]).max() < SHARE_POINTS
    assert real.run["switches"] == pytest.approx(simulated.run["switches"], rel=SWITCHES)
    assert real.run["wakeups"] == simulated.run["wakeups"]
    for metric in ("response_ns_mean", "wakeup_ns_mean", "turnaround_ns_mean"):
        assert real.run[metric] == pytest.approx(simulated.run[metric], rel=RESPONSE), metric
    for metric in ("response_ns_p99", "wakeup_ns_p99"):
        assert abs(real.run[metric] - simulated.run[metric]) < guest.TICK_NS, metric


def test_policies_differ_more_than_hosts_do(both):
    """Or agreement would prove nothing: the workload tells policies apart."""
    response_ns = {
        name: [compute_metrics(timeline).run["response_ns_mean"] for timeline in pair]
        for name, pair in both.items()
    }
    for host in (0, 1):
        assert response_ns["fifo"][host] > 2 * response_ns["rr"][host]
        assert response_ns["rr"][host] > 2 * response_ns["mlfq"][host]


def test_run_hardly_depends_on_what_ran_before_in_its_machine(answers, root, program):
    """Alone, as in `schedlab run`, it is the very same each time: test_guest_host.py."""
    (again,) = play(root, program, names=["mlfq"])
    first, _ = trace_records(answers["mlfq"].trace)
    second, _ = trace_records(again.trace)
    runs = [events[events["kind"] == Kind.RUN]["task"].tolist() for events in (first, second)]
    assert abs(len(runs[0]) - len(runs[1])) <= 0.02 * len(runs[0])


def test_two_cpus_share_the_work_and_lose_nothing(guest_parts, root, program, tmp_path):
    """The emulator runs CPUs in turns, so times mean little; physics must hold."""
    (answer,) = play(root, program, cpus=2, names=["rr"])
    assert (answer.fatal, answer.results, answer.nr_left) == ([], {}, 0)
    events, end_ns = trace_records(answer.trace)
    write_records(tmp_path / "two.slr", events, nr_cpus=2, tick_ns=guest.TICK_NS, end_ns=end_ns)
    timeline = Timeline(read_records(tmp_path / "two.slr"))
    expected = physics.Expectations(
        work_ns=program.work_ns(), has_host_work=np.ones(len(program.task_rows), bool)
    )
    assert physics.check(timeline, expected) == "ok"
    assert set(events["cpu"].tolist()) == {0, 1}
    ended = events[(events["kind"] == Kind.STOP) & (events["flags"] == Stop.EXITED)]
    assert len(ended) == len(program.task_rows)
