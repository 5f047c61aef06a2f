# SPDX-License-Identifier: MIT
"""`schedlab bench --policy SCHED_OTHER,mlfq`: the policy is in the kernel for each run.

This machine's kernel may have no sched_ext, so a program stands for the loader and
says what that said in the guest (test_load.py); the command is a real one.
"""

from __future__ import annotations

import sys

import pytest

from schedlab.errors import PolicyError, UnavailableError, UsageError
from schedlab.hosts import guest, load
from schedlab.hosts.guest_frames import write_frames
from schedlab.measure import bench_policy
from schedlab.measure.bench import BenchPlan, measure, parse_policies

LOADER = """#!{python}
import sys
open({log!r}, "a").write("load " + " ".join(sys.argv[2:]) + "\\n")
sys.stdout.buffer.write({begin!r})
sys.stdout.flush()
b"attached" in {begin!r} and sys.stdin.read()
open({log!r}, "a").write("unload\\n")
sys.stdout.buffer.write({end!r})
"""
BEGIN = write_frames({"loaded": b"", "attached": b""})
END = write_frames({"ended": b"by us", "kernel": b""})
THROWN_OUT = write_frames({
    "ended": b"by the kernel",
    "kernel": b'sched_ext: BPF scheduler "mlfq" disabled (runnable task stall)\n'
              b"sched_ext: mlfq: make[7] failed to run for 30.1s\n",
})  # fmt: skip


@pytest.fixture
def machine(monkeypatch, tmp_path, launcher_is_built):
    """Function that gives this machine a loader that says what is given."""
    if guest.unavailable_reason():
        pytest.skip(guest.unavailable_reason())

    def have(begin=BEGIN, end=END):
        loader, log = tmp_path / "loader", tmp_path / "log"
        loader.write_text(LOADER.format(python=sys.executable, log=str(log), begin=begin, end=end))
        loader.chmod(0o755)
        monkeypatch.setattr(bench_policy, "unavailable_reason", lambda: None)
        monkeypatch.setattr(bench_policy, "prepare_loader", lambda: loader)
        # The kernel may not have the class; who runs there is not what is tested.
        monkeypatch.setattr(bench_policy, "SCHED_EXT", 0)
        return log

    return have


@pytest.fixture
def launcher_is_built(build):
    if not (build / "hosts" / "linux" / "schedlab-launch").is_file():
        pytest.skip("schedlab-launch is not built")


def plan(log, *, rounds=2):
    return BenchPlan(("/bin/sh", "-c", f"echo run >> {log}"), parse_policies(["SCHED_OTHER", "mlfq"]),
                     nr_rounds=rounds, nr_warmups=0)  # fmt: skip


def test_policy_is_loaded_for_its_runs_and_for_no_others(machine):
    log = machine()
    result = measure(plan(log))
    assert [sample["exit_code"] for sample in result.samples] == [0] * 4
    text = log.read_text().splitlines()
    assert sorted(text) == sorted(["run"] * 4 + ["unload"] * 2 + [line for line in text if "load " in line])
    loads = [index for index, line in enumerate(text) if line.startswith("load ")]
    assert len(loads) == 2
    for index in loads:
        assert text[index].endswith("--partial") and "--set quantum_ns=10000000" in text[index]
        assert text[index + 1 : index + 3] == ["run", "unload"]


def test_run_whose_policy_was_thrown_out_or_refused_is_none(machine):
    log = machine(end=THROWN_OUT)
    with pytest.raises(PolicyError, match="mlfq: thrown out while the command ran.*SCHED_OTHER: runnable task stall"):
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
