# SPDX-License-Identifier: MIT
"""`schedlab bench --policy SCHED_OTHER,mlfq`, and `schedlab run --host linux`: the policy
is in the kernel for each run.

This machine's kernel may have no sched_ext, so a program stands for the loader and
says what that said in the guest (test_load.py); commands and workloads are real ones.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from linux.attributes_map import AttributesMap
from schedlab.errors import PolicyError, UnavailableError, UsageError
from schedlab.hosts.guest import policies as guest
from schedlab.hosts.guest.frames import write_frames
from schedlab.hosts.linux import ext_class, load
from schedlab.hosts.linux import host as linux
from schedlab.measure.bench import BenchPlan, measure, parse_policies
from schedlab.runs.run import make_plan, run_plan

LOADER = """#!{python}
import sys
from pathlib import Path
open({log!r}, "a").write("load " + " ".join(sys.argv[2:]) + "\\n")
sys.stdout.buffer.write({begin!r})
sys.stdout.flush()
b"attached" in {begin!r} and sys.stdin.read()
open({log!r}, "a").write("unload\\n")
sys.stdout.buffer.write({end!r})
"""
BEGIN = write_frames({"loaded": b"", "attached": b""})
END = write_frames({"ended": b"by us", "kernel": b""})
THROWN_OUT = write_frames(
    {
        "ended": b"by the kernel",
        "kernel": b'sched_ext: BPF scheduler "mlfq" disabled (runnable task stall)\n'
        b"sched_ext: mlfq: make[7] failed to run for 30.1s\n",
    }
)


@pytest.fixture
def machine(monkeypatch, tmp_path, launcher_is_built):
    """Function that gives this machine a loader that says what is given."""
    if guest.unavailable_reason():
        pytest.skip(guest.unavailable_reason())

    def have(begin=BEGIN, end=END):
        loader, log = tmp_path / "loader", tmp_path / "log"
        loader.write_text(LOADER.format(python=sys.executable, log=str(log), begin=begin, end=end))
        loader.chmod(0o755)
        monkeypatch.setattr(ext_class, "unavailable_reason", lambda: None)
        monkeypatch.setattr(ext_class, "prepare_loader", lambda: loader)
        # The kernel may not have the class; who runs there is not what is tested.
        monkeypatch.setattr(ext_class, "SCHED_EXT", 0)
        return log

    return have


@pytest.fixture
def launcher_is_built(build):
    if not (build / "hosts" / "linux" / "schedlab-launch").is_file():
        pytest.skip("schedlab-launch is not built")


def plan(log, *, rounds=2):
    return BenchPlan(
        ("/bin/sh", "-c", f"echo run >> {log}"),
        parse_policies(["SCHED_OTHER", "mlfq"]),
        n_rounds=rounds,
        n_warmups=0,
    )


def test_policy_is_loaded_for_its_runs_and_for_no_others(machine):
    log = machine()
    result = measure(plan(log))
    assert [sample["exit_code"] for sample in result.samples] == [0] * 4
    text = log.read_text().splitlines()
    assert sorted(text) == sorted(["run"] * 4 + ["unload"] * 2 + [line for line in text if "load " in line])
    loads = [index for index, line in enumerate(text) if line.startswith("load ")]
    assert len(loads) == 2
    for index in loads:
        assert " --partial " in text[index] and "--set quantum_ns=10000000" in text[index]
        assert text[index + 1 : index + 3] == ["run", "unload"]


def test_run_whose_policy_was_thrown_out_or_refused_is_none(machine):
    log = machine(end=THROWN_OUT)
    with pytest.raises(
        PolicyError, match="mlfq: thrown out while it had tasks.*SCHED_OTHER: runnable task stall"
    ):
        measure(plan(log, rounds=1))
    log = machine(begin=write_frames({"refused": b"Permission denied"}), end=b"")
    with pytest.raises(PolicyError, match="mlfq: the kernel refuses it:\nPermission denied"):
        measure(plan(log, rounds=1))


def test_policy_that_is_none_is_named_before_the_machine_is_asked():
    with pytest.raises(UsageError, match="mlfq"):
        parse_policies(["mlfk"])


def test_machine_without_sched_ext_refuses_with_the_reason():
    if load.unavailable_reason() is None:
        pytest.skip("this machine can load policies")
    with pytest.raises(UnavailableError, match="^mlfq: this kernel .* has no sched_ext"):
        parse_policies(["mlfq"])


# ---- the same for a workload ---------------------------------------------------

WORKLOAD = """
[workload]
title = "t"
question = "q"
jitter = "0ms"
[[task]]
name = "rich"
tickets = 70
weight = 300
phases = [{run = "2ms"}]
"""


@pytest.fixture
def workload(tmp_path):
    (tmp_path / "w.toml").write_text(WORKLOAD)
    return make_plan(
        [str(tmp_path / "w.toml")],
        ["mlfq", "SCHED_OTHER"],
        tmp_path / "out",
        host="linux",
        cpus=1,
        settings=["mlfq.quantum_ns=3ms"],
    )


def test_workload_runs_under_policy_and_class_with_its_attributes(machine, workload):
    held = AttributesMap()
    verified = b"mlfq_enqueue 30\nprocessed 30 insns"
    log = machine(
        begin=write_frames(
            {"program": verified, "loaded": b"", "attributes": str(held.number).encode(), "attached": b""}
        )
    )
    ours, theirs = run_plan(workload).runs
    assert (ours["policy"], ours["error"], ours["status"]) == ("mlfq", None, "ok")
    assert (theirs["policy"], theirs["error"], theirs["status"]) == ("SCHED_OTHER", None, "ok")
    assert ours["knobs"]["quantum_ns"] == 3_000_000 and "--set quantum_ns=3000000" in log.read_text()
    assert ours["environment"]["verifier_instructions"] == {"mlfq_enqueue": 30}
    assert ours["program_hash"] == theirs["program_hash"]
    (task,) = linux.read_played(Path(ours["directory"]) / linux.TASKS_FILE).tasks
    assert held[task["tid"]]["tickets"] == 70
    (task,) = linux.read_played(Path(theirs["directory"]) / linux.TASKS_FILE).tasks
    with pytest.raises(FileNotFoundError):
        held[task["tid"]]
    assert log.read_text().splitlines()[1:] == ["unload"]
    held.close()


def test_workload_whose_policy_was_thrown_out_fails_alone(machine, workload):
    machine(end=THROWN_OUT)
    ours, theirs = run_plan(workload).runs
    assert (ours["status"], ours["error_kind"], ours["metrics"]) == ("failed", "stall", {})
    assert (
        "mlfq: thrown out while it had tasks" in ours["error"]
        and "make[7] failed to run for 30.1s" in ours["error"]
    )
    assert theirs["status"] == "ok"


def test_workload_is_refused_where_the_kernel_takes_no_policy(workload):
    if load.unavailable_reason() is None:
        pytest.skip("this machine can load policies")
    with pytest.raises(UnavailableError, match="^mlfq: this kernel .* has no sched_ext.*--host guest"):
        run_plan(workload)
