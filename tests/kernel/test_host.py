# SPDX-License-Identifier: MIT
"""The teaching kernel as a host: the same run every time, and an answer whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from schedlab.hosts.host import Job
from schedlab.hosts.kernel import build as kernel_build
from schedlab.hosts.kernel import host as kernel
from schedlab.hosts.kernel.boot import Machine, machine_command
from schedlab.metrics import consistency
from schedlab.metrics.timeline import Timeline
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Stop, read_records
from schedlab.workload.spec import parse_workload

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("image")]

HEAD = '[workload]\ntitle = "T"\nquestion = "Q?"\njitter = "0ms"\ntick = "1ms"\n'
MS = 1_000_000
MIXED = (
    HEAD
    + """
[[lock]]
name = "table"

[[task]]
name = "hog"
count = 2
phases = [{run = "12ms"}]

[[task]]
name = "editor"
count = 2
phases = [{loop = 4, do = [{sleep = "exp(2ms)"}, {lock = "table"}, {run = "exp(500us)"}, {unlock = "table"}]}]

[[task]]
name = "logger"
phases = [{write = {bytes = "64KiB", chunk = "16KiB", sync = true}}]
"""
)


FOR_EVER = HEAD.replace('tick = "1ms"', 'tick = "1ms"\nhorizon = "1000s"') + (
    '[[task]]\nname = "a"\nphases = [{loop = "forever", do = [{run = "1ms"}]}]\n'
)


def machines_of(pid):
    """Pids of the QEMUs that a process has started, each below its supervisor."""
    said = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,comm="], capture_output=True, text=True, check=False
    ).stdout
    rows = [
        (int(own), int(parent), name)
        for own, parent, name in (line.split(None, 2) for line in said.splitlines())
    ]
    supervisors = {own for own, parent, name in rows if parent == pid and name.startswith("schedlab-super")}
    return [own for own, parent, name in rows if parent in supervisors and name.startswith("qemu")]


def wait_until(is_so, *, timeout_s=240):
    """Wait for something that must come."""
    end = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < end, f"not within {timeout_s} s"
        time.sleep(0.02)


@pytest.fixture
def play(tmp_path):
    """Function that plays a workload in the kernel; the outcome, its job and its program."""

    def run(text, policy="rr", *, cpus=1, seed=1, tick_ns=MS, timeout_s=240, is_parallel=False, session=None):
        program = compile_workload(parse_workload(text), seed=1)
        (tmp_path / "program").write_bytes(bytes(program.data))
        job = Job(
            label="test",
            policy=build_policy(load_policy(str(policy))),
            seed=seed,
            program=tmp_path / "program",
            records=tmp_path / "records.slr",
            n_cpus=cpus,
            tick_ns=tick_ns,
        )
        session = session or kernel.KernelSession(timeout_seconds=timeout_s, is_parallel=is_parallel)
        return session.run(job), job, program

    return run


def own_policy(folder, text):
    """A policy of the user's own: rr with other code in its dispatch."""
    source = load_policy("rr").path.read_text()
    path = folder / "mine.bpf.c"
    assert source.count("BPF_STRUCT_OPS(rr_dispatch") == 1
    head, tail = source.split("BPF_STRUCT_OPS(rr_dispatch", 1)
    at = tail.index("{") + 1
    path.write_text(f"{head}BPF_STRUCT_OPS(rr_dispatch{tail[:at]}\n{text}{tail[at:]}")
    return path


@pytest.mark.parametrize("cpus", [1, 2])
def test_equal_jobs_are_equal_bit_by_bit(play, cpus):
    first, job, _ = play(MIXED, "mlfq", cpus=cpus)
    assert first.error is None
    records = job.records.read_bytes()
    second, job, _ = play(MIXED, "mlfq", cpus=cpus)
    assert job.records.read_bytes() == records
    assert second.answer == first.answer
    # Or the test would hold for a file without anything in it.
    assert first.answer["counted"]["switches"] > 20
    play(MIXED, "lottery", cpus=cpus)
    assert job.records.read_bytes() != records


def consistency_of(job, program, stated_ns=None):
    """What the consistency check says of a run of a work-conserving policy, and its records."""
    host = kernel.KernelHost()
    rows = program.task_rows
    records = read_records(job.records)
    return consistency.check(
        Timeline(records),
        consistency.Expectations(
            work_ns=program.work_ns(),
            has_host_work=np.ones(len(rows), bool),
            arrival_ns=rows["arrival_ns"],
            work_conserving=True,
            latency_ns=host.latency_ns(job) if stated_ns is None else 0,
            tolerance_ns=host.tolerance_ns(job) if stated_ns is None else stated_ns,
        ),
    ), records


@pytest.mark.parametrize("cpus", [1, 2, 4])
def test_runs_are_consistent(play, cpus):
    outcome, job, program = play(MIXED, "cfs", cpus=cpus)
    assert outcome.error is None
    verdict, records = consistency_of(job, program)
    assert verdict == "ok"
    assert set(records.events["cpu"].tolist()) == set(range(min(cpus, records.n_cpus)))
    assert outcome.answer["nr_exited"] == len(program.task_rows)


def test_the_turns_of_all_other_cpus_pass_within_a_moment(play, root):
    """Here a timer is heard of more than a round of the others' ticks after it was due."""
    text = (root / "workloads" / "mixed.toml").read_text()
    outcome, job, program = play(text, "rr", cpus=3, tick_ns=10 * MS)
    assert outcome.error is None
    verdict, records = consistency_of(job, program)
    arrives = records.events[records.events["kind"] == Kind.ARRIVE]
    late_ns = arrives["t_ns"].astype(np.int64)
    late_ns -= program.task_rows["arrival_ns"][arrives["task"] - 1].astype(np.int64)
    assert verdict == "ok"
    # Or the law would hold whatever the host states. (How late the latest is depends on the build.)
    assert consistency_of(job, program, stated_ns=int(late_ns.max()) - 1)[0] != "ok"


def test_one_cpu_has_nobody_to_wait_for():
    """Neither does a tick excuse anything there: what is stated is what its clock costs."""
    host, job = kernel.KernelHost(), SimpleNamespace(n_cpus=1, tick_ns=10 * MS)
    assert (host.latency_ns(job), host.tolerance_ns(job)) == (100_000, 20_000)


def test_harts_in_parallel_lose_nothing(play):
    """In real time: which task ran when is this machine's affair, that all did is not."""
    outcome, _, program = play(MIXED, "mlfq", cpus=2, is_parallel=True)
    assert outcome.error is None
    assert outcome.answer["nr_exited"] == len(program.task_rows)
    assert outcome.answer["counted"]["lost"] == 0


def test_a_run_takes_the_time_that_it_says(play):
    lengths_ms = (1, 5, 20)
    text = HEAD + "".join(f'[[task]]\nname = "t{ms}"\nphases = [{{run = "{ms}ms"}}]\n' for ms in lengths_ms)
    outcome, job, _ = play(text, "fifo")
    assert outcome.error is None
    events = read_records(job.records).events
    for pid, ms in enumerate(lengths_ms, 1):
        stops = events[(events["task"] == pid) & (events["kind"] == Kind.STOP)]
        assert int(stops["arg"].sum()) == pytest.approx(ms * MS, rel=0.01)


def test_work_costs_what_the_calibration_says(play):
    units = {"pi": 300_000, "matmul": 300_000, "spin": 300_000}
    text = HEAD + "".join(
        f'[[task]]\nname = "{name}"\nphases = [{{work = {{kernel = "{name}", count = {n}}}}}]\n'
        for name, n in units.items()
    )
    outcome, job, _ = play(text, "fifo")
    assert outcome.error is None
    events = read_records(job.records).events
    for pid, (name, n) in enumerate(units.items(), 1):
        stops = events[(events["task"] == pid) & (events["kind"] == Kind.STOP)]
        assert int(stops["arg"].sum()) == pytest.approx(kernel.CALIBRATION.work_ns(name, n), rel=0.02)


def test_overhead_is_counted_by_policy(play):
    outcome, _, _ = play(MIXED, "rr")
    overhead = outcome.answer["overhead"]
    assert set(overhead) == {"builtin", "rr"}
    counts = overhead["rr"]
    switches = outcome.answer["counted"]["switches"]
    # Going idle is one, too.
    assert switches <= counts["switch"]["times"] <= 2 * switches + 2
    # A scheduler that took longer than this would show in every metric.
    assert 100 < counts["sched"]["instructions"] / switches < 20_000
    total = sum(part["instructions"] for policy in overhead.values() for part in policy.values())
    assert total == pytest.approx(outcome.answer["counted"]["instructions"], rel=0.05)


def test_a_comment_makes_no_other_kernel(tmp_path):
    """A run is found again by its kernel's hash: lines that only a debugger reads must not change it."""
    code = {
        "plain": "int start(void) { return 1; }",
        "commented": "/* why */\n\nint start(void)\n{ return 1; }",
        "changed": "int start(void) { return 2; }",
    }
    made, bare = {}, {}
    for name, text in code.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "kernel.c").write_text(text + "\n")
        for command in (
            ["clang-19", *kernel_build.TARGET, "-g", "-c", "kernel.c", "-o", "kernel.o"],
            ["ld.lld-19", "-e", "start", "kernel.o", "-o", "kernel.elf"],
        ):
            subprocess.run(command, cwd=folder, check=True)
        made[name] = (folder / "kernel.elf").read_bytes()
        bare[name] = kernel_build._bare(folder / "kernel.elf").read_bytes()
    assert made["plain"] != made["commented"]
    assert bare["plain"] == bare["commented"] != bare["changed"]


def test_a_policy_of_the_users_own_is_linked_in(play, tmp_path):
    path = own_policy(tmp_path, '\tbpf_printk("mine %d", cpu);\n')
    outcome, _, _ = play(MIXED, path)
    assert outcome.error is None
    assert "mine 0" in outcome.answer["lines"]


def test_a_policy_that_fails_falls_back_and_says_so(play, tmp_path):
    path = own_policy(tmp_path, '\tif (prev)\n\t\tscx_bpf_error("enough of %d", cpu);\n')
    outcome, _, program = play(MIXED, path)
    assert outcome.error_kind == "policy"
    assert "enough of 0" in outcome.error
    assert "the built-in FIFO goes on" in outcome.answer["console"]
    assert outcome.answer["nr_exited"] == len(program.task_rows)


def test_ps_names_the_policy_that_is_left(tmp_path):
    path = own_policy(tmp_path, '\tif (prev)\n\t\tscx_bpf_error("enough of %d", cpu);\n')
    machine = Machine(kernel.image_for(path), arguments={"policy": "mine", "run": "/ps"})
    said = subprocess.run(
        machine_command(machine),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    ).stdout
    assert "enough of 0; the built-in FIFO goes on" in said
    assert "\npolicy: builtin" in said.replace("\r", "")


def test_a_policy_that_does_not_start_is_an_outcome(play, tmp_path):
    path = tmp_path / "mine.bpf.c"
    source = load_policy("rr").path.read_text()
    head, tail = source.split("BPF_STRUCT_OPS_SLEEPABLE(rr_init", 1)
    at = tail.index("{") + 1
    path.write_text(
        f"{head}BPF_STRUCT_OPS_SLEEPABLE(rr_init{tail[:at]}\n\tif (1)\n\t\treturn -5;\n{tail[at:]}"
    )
    outcome, _, _ = play(MIXED, path)
    assert outcome.error_kind == "policy"
    assert "did not start: error -5" in outcome.error


def test_a_policy_that_crashes_the_kernel_is_an_outcome(play, tmp_path):
    path = own_policy(tmp_path, "\tif (prev)\n\t\t*(volatile int *)8 = 1;\n")
    outcome, _, _ = play(MIXED, path)
    assert outcome.error_kind == "crash"
    assert "store page fault" in outcome.error
    assert "rr_dispatch" in outcome.error


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_deadlock_says_who_waits_for_what(play, cpus):
    """Also where another one waits for time, and ends: only then can nothing happen."""
    text = (
        HEAD
        + '[[lock]]\nname = "x"\n[[lock]]\nname = "y"\n'
        + "".join(
            f'[[task]]\nname = "{one}-first"\nphases = [{{lock = "{one}"}}, {{sleep = "1ms"}}, '
            f'{{lock = "{two}"}}, {{unlock = "{two}"}}, {{unlock = "{one}"}}]\n'
            for one, two in ("xy", "yx")
        )
        + (
            '[[task]]\nname = "parent"\nphases = [{sleep = "20s"}, {spawn = "child"}, {wait = true}]\n'
            '[[task]]\nname = "child"\narrival = "spawned"\nphases = [{lock = "x"}, {unlock = "x"}]\n'
        )
    )
    outcome, _, _ = play(text, "credit", cpus=cpus)
    assert (outcome.error_kind, outcome.task) == ("deadlock", 1)
    assert outcome.error == (
        "nothing can happen any more, 4 tasks wait: x-first[1] for lock, y-first[2] for lock, "
        "parent[3] for children, child[4] for lock"
    )


def test_an_interrupt_ends_the_machine(play):
    session = kernel.KernelSession(timeout_seconds=300)

    def interrupt_when_it_runs():
        wait_until(lambda: machines_of(os.getpid()), timeout_s=200)
        session.interrupt()

    thread = threading.Thread(target=interrupt_when_it_runs)
    thread.start()
    outcome, _, _ = play(FOR_EVER, session=session)
    thread.join()
    assert outcome.error == "interrupted"
    session.close()
    assert not machines_of(os.getpid())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_machine_outlives_the_command(how, root, tmp_path):
    """Not even one that had no time to clean up."""
    (tmp_path / "w.toml").write_text(FOR_EVER)
    words = ("run", "w.toml", "--policy", "rr", "--host", "kernel", "--out", "run")
    with subprocess.Popen(
        [sys.executable, "-m", "schedlab", *words],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, PYTHONPATH=str(root / "python")),
    ) as command:
        try:
            wait_until(lambda: machines_of(command.pid) or command.poll() is not None)
            (machine,) = machines_of(command.pid)
            command.send_signal(how)
        finally:
            command.kill()
    wait_until(lambda: not Path(f"/proc/{machine}").exists())


def test_the_horizon_ends_the_run_whoever_has_the_cpu(play):
    text = HEAD.replace("[workload]", '[workload]\nhorizon = "7500us"') + (
        '[[task]]\nname = "a"\nphases = [{loop = "forever", do = [{run = "1ms"}]}]\n'
        '[[task]]\nname = "b"\nphases = [{run = "50ms"}]\n'
    )
    outcome, job, _ = play(text, "fifo")
    assert outcome.error is None
    records = read_records(job.records)
    assert records.end_ns == 7_500_000
    last = records.events[-1]
    assert (last["kind"], last["flags"]) == (Kind.STOP, Stop.HORIZON)


def test_what_the_kernel_cannot_do_is_refused(play):
    outcome, _, _ = play(MIXED, cpus=9)
    assert (outcome.error_kind, "at most 8 CPUs" in outcome.error) == ("usage", True)


def test_a_program_with_groups_is_refused(play):
    """It ran as if all its tasks were in one."""
    text = '[[group]]\nname = "g"\n[[task]]\nname = "a"\ngroup = "g"\nphases = [{run = "1ms"}]\n'
    outcome, *_ = play(text)
    assert "has groups, which this kernel lacks" in (outcome.error or "")
