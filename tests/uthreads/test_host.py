# SPDX-License-Identifier: MIT
"""What a run on user threads says about the machine it was done on.

How it measures CPU time is in the environment, for every run alike; for how long other
processes had its CPUs each run measures, and metrics/consistency.py judges by that: an idle CPU
beside a waiting task is no fault of a policy's where the machine had taken the CPU.
"""

from __future__ import annotations

import os

import pytest

from schedlab import paths
from schedlab.hosts.choose import open_host
from schedlab.hosts.host import Job
from schedlab.metrics.conservation import check_clock
from schedlab.metrics.dictionary import compute_metrics
from schedlab.metrics.timeline import Timeline
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import read_records
from schedlab.runs.judge import Judge
from schedlab.workload.spec import parse_workload

WORKLOAD = """
[workload]
title = "Two that compute"
question = "For how long does somebody else have the CPU?"

[[task]]
name = "a"
count = 2
phases = [{run = "150ms"}]
"""


@pytest.fixture
def host(build):
    assert paths.uthreads_runner().is_relative_to(build)
    return open_host("uthreads")


@pytest.fixture
def busy_cpu(busy_process):
    """A CPU, which this process stays on, with another one that computes."""
    allowed = os.sched_getaffinity(0)
    cpu = min(allowed)
    os.sched_setaffinity(0, {cpu})
    busy_process(cpu)
    yield cpu
    os.sched_setaffinity(0, allowed)


@pytest.fixture
def run(host, tmp_path):
    """Function that plays WORKLOAD under a policy on one CPU: its program, the job, how it ended."""

    def do(policy):
        program = compile_workload(parse_workload(WORKLOAD, name="two.toml"), seed=1)
        (tmp_path / "program").write_bytes(bytes(program.data))
        job = Job(
            label="fifo",
            policy=build_policy(load_policy(policy)),
            program=tmp_path / "program",
            records=tmp_path / "records",
            n_cpus=1,
            seed=1,
            tick_ns=1_000_000,
        )
        session = host.session(timeout_seconds=60)
        outcome = session.run(job)
        session.close()
        assert outcome.error is None
        return program, job, outcome

    return do


def test_the_environment_says_how_cpu_time_is_measured(host):
    clock = host.environment()["run_clock"]
    assert clock.endswith("less what other processes took")
    assert clock == host.environment()["run_clock"]


def test_a_run_measures_what_other_processes_took(host, run, busy_cpu):
    program, job, outcome = run("fifo")
    taken_ns = outcome.answer["taken_ns"]
    # Two tasks of 150 ms each, and the other process as much as it can get.
    assert taken_ns > 50_000_000
    assert 0 < outcome.away_ns <= taken_ns + 1_000_000
    assert outcome.answer["end_ns"] > 300_000_000 + taken_ns / 2
    judge = Judge(
        latency_ns=host.latency_ns(job),
        work_conserving=True,
        tables_folder=None,
        tolerance_ns=host.tolerance_ns(job),
        has_exact_work=host.has_exact_work,
        calibration=host.calibration(job),
    )
    assert judge.verdict(program, job.records, outcome)["consistency"] == "ok"


def test_a_run_that_begins_without_its_cpu_says_so(run, tmp_path, monkeypatch):
    """Time goes on while the machine has the CPU, also before the first task could arrive."""
    source = (paths.policies_folder() / "fifo.bpf.c").read_text()
    starts = "\treturn scx_bpf_create_dsq(FIFO_DSQ, -1);"
    assert source.count(starts) == 1
    # Asleep the kernel thread has no CPU, as if another process had it; no policy may call that.
    monkeypatch.setattr("schedlab.policy.build.check_object", lambda *_: None)
    (tmp_path / "late.bpf.c").write_text(
        source.replace(starts, "\textern int usleep(unsigned int us);\n\n\tusleep(20000);\n" + starts)
    )
    _, _, outcome = run(str(tmp_path / "late.bpf.c"))
    assert outcome.away_ns >= 19_000_000
    assert outcome.answer["taken_ns"] >= 19_000_000


CROWD = """
[workload]
title = "Many that compute and yield"
question = "Does each get the CPU time that it is said to have?"

[[task]]
name = "a"
count = 40
phases = [{work = {kernel = "spin", count = 400000}}, {yield = true}, {work = {kernel = "spin", count = 400000}}]
"""


def test_the_tasks_cpu_time_is_what_the_kernel_counted(host, tmp_path, busy_process):
    """Two kernel threads on one CPU, beside four processes: each loses it in the scheduler, too."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        for _ in range(4):
            busy_process(min(allowed))
        program = compile_workload(parse_workload(CROWD, name="crowd.toml"), seed=1)
        (tmp_path / "program").write_bytes(bytes(program.data))
        session = host.session(timeout_seconds=120)
        job = Job(
            label="rr",
            policy=build_policy(load_policy("rr")),
            program=tmp_path / "program",
            records=tmp_path / "records",
            n_cpus=2,
            seed=1,
            tick_ns=1_000_000,
        )
        outcome = session.run(job)
        session.close()
    finally:
        os.sched_setaffinity(0, allowed)
    assert outcome.error is None
    timeline = Timeline(read_records(job.records))
    assert check_clock(timeline, outcome.clock) == "ok"
    ran_ns = compute_metrics(timeline).tasks["run_ns"]
    assert len(ran_ns) == 40 and (ran_ns > 0).all()
