# SPDX-License-Identifier: MIT
"""`schedlab run --host guest`: the same runs as everywhere, in a real kernel."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from schedlab.errors import HostError, UnavailableError, UsageError
from schedlab.hosts.choose import open_host
from schedlab.hosts.guest import boot as guest_boot
from schedlab.hosts.guest import policies as guest
from schedlab.hosts.kinds import with_program_pids
from schedlab.policy.bpf import compile_object
from schedlab.runs.run import make_plan, run_plan

#: Each verb once: what tasks share, real work, a device, a child, a change of weight.
WORKLOAD = """
[workload]
title = "A little of everything"
question = "Does it run on Linux?"
tick = "1ms"
[[lock]]
name = "l"
[[pipe]]
name = "p"
[[barrier]]
name = "b"
parties = 2
[[task]]
name = "hog"
weight = 300
phases = [{run = "31ms"}, {set = {weight = 100}}, {barrier = "b"}, {work = {kernel = "spin", count = 300000}}]
[[task]]
name = "writer"
count = 2
phases = [{loop = 4, do = [{run = "1ms"}, {write = {bytes = "64KiB", chunk = "16KiB", sync = true}}, {lock = "l"}, {run = "500us"}, {unlock = "l"}]}]
[[task]]
name = "sender"
phases = [{loop = 5, do = [{sleep = "3ms"}, {send = {pipe = "p", bytes = "1KiB"}}, {yield = true}]}, {barrier = "b"}]
[[task]]
name = "receiver"
phases = [{loop = 5, do = [{recv = {pipe = "p", bytes = "1KiB"}}]}, {read = {bytes = "8KiB"}}]
"""
#: Wrong on purpose; what the error must say, with the line of the source.
WRONG = {
    "stalls": ("stall", r"^runnable task stall: \w+\[\d\] failed to run for \d\.\d+s\n.*stalls\.bpf\.c:7: void"),
    "unknown_dsq": ("policy", r"non-existent DSQ 0x63\n.*unknown_dsq\.bpf\.c:9: scx_bpf_dsq_insert\(p, 0x63"),
    "gives_up": ("policy", r"^scx_bpf_error: gives_up: enough after 3\n.*gives_up\.bpf\.c:14: scx_bpf_error"),
    "no_null_check": ("policy", r"^refused by Linux: no_null_check\.bpf\.c:12: .*attr->burst_ns.*\nR0 invalid mem access 'map_value_or_null'"),
}  # fmt: skip


def do(out, workload, policies, **more):
    runs = run_plan(make_plan([str(workload)], policies, out, host="guest", **more)).runs
    return {run["policy"]: run for run in runs}


@pytest.fixture(scope="module")
def workload(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("guest") / "little.toml"
    path.write_text(WORKLOAD)
    return path


@pytest.fixture(scope="module")
def runs(guest_parts, workload, bad_policies):
    wrong = [str(bad_policies / f"{name}.bpf.c") for name in WRONG]
    return do(workload.parent / "out", workload, ["rr", "mlfq", *wrong], settings=["mlfq.quantum_ns=3ms"])


@pytest.mark.full
def test_run_has_records_metrics_and_its_environment(runs):
    for name in ("rr", "mlfq"):
        run = runs[name]
        assert (run["status"], run["error"], run["consistency"]) == ("ok", None, "ok")
        assert run["metrics"]["busy_ns"] > 40_000_000
        # One for each of 32 synchronous calls, and for each message.
        assert run["metrics"]["wakeups"] >= 37
        assert run["tick_ns"] == guest.TICK_NS
        said = run["environment"]
        assert re.match(r"Linux \d+\.\d+.* SMP ", said["uname"])
        assert said["qemu"].startswith("QEMU emulator version")
        assert min(said["verifier_instructions"].values()) > 0
        held = json.loads((Path(run["directory"]) / "run.json").read_text())
        assert held["environment"] == said
    assert runs["mlfq"]["knobs"]["quantum_ns"] == 3_000_000


@pytest.mark.full
@pytest.mark.parametrize("name", WRONG)
def test_error_of_the_kernel_names_the_line(runs, name):
    kind, pattern = WRONG[name]
    run = runs[name]
    assert (run["status"], run["error_kind"], run["metrics"]) == ("failed", kind, {})
    assert re.search(pattern, run["error"]), run["error"]


@pytest.mark.full
def test_an_event_of_the_workload_is_that_of_the_option(guest_parts, workload, tmp_path):
    event = '\n[[event]]\nkind = "take"\ncpu = 0\nat = "5ms"\ntime = "20ms"\n'
    (tmp_path / "little.toml").write_text(workload.read_text() + event)
    of_workload = do(tmp_path / "one", tmp_path / "little.toml", ["rr"])["rr"]
    of_option = do(tmp_path / "two", workload, ["rr"], above=["0:5ms:20ms"])["rr"]
    assert of_workload["error"] is None and of_workload["record_hash"] == of_option["record_hash"]


ONLY_LINUX = """
#include <scx/common.bpf.h>
#ifndef __bpf__
#error only Linux has this
#endif
char _license[] SEC("license") = "GPL";
void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}
SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .name = "t");
"""


@pytest.mark.full
def test_what_only_linux_takes_runs(runs, root, workload, tmp_path):
    (tmp_path / "linux.bpf.c").write_text(ONLY_LINUX)
    (tmp_path / "round.bpf.o").write_bytes(compile_object(root / "policies" / "rr.bpf.c").read_bytes())
    policies = [str(tmp_path / name) for name in ("linux.bpf.c", "round.bpf.o")]
    done = do(tmp_path / "out", workload, policies)
    assert [(run["status"], run["error"], run["consistency"]) for run in done.values()] == [
        ("ok", None, "ok")
    ] * 2
    # An object has no comment that declares knobs; setting them takes the kernel time.
    assert (done["round"]["knobs"], runs["rr"]["knobs"] != {}) == ({}, True)
    assert done["round"]["metrics"]["wakeups"] == runs["rr"]["metrics"]["wakeups"]


@pytest.mark.full
def test_same_job_is_the_same_run_whatever_ran_before(runs, workload):
    again = do(workload.parent / "again", workload, ["rr"])["rr"]
    assert again["record_hash"] == runs["rr"]["record_hash"]
    assert again["record_hash"] != runs["mlfq"]["record_hash"]
    slow = do(workload.parent / "slow", workload, ["rr"], io=["latency_ns=5ms"])["rr"]
    # Four calls of each writer, sixteen times, one after the other.
    assert slow["metrics"]["makespan_ns"] > again["metrics"]["makespan_ns"] + 32 * 4_000_000


@pytest.mark.full
def test_what_it_cannot_do_is_refused_with_the_reason(guest_parts, workload, tmp_path):
    run = do(tmp_path, workload, ["rr"], cpus=9)["rr"]
    assert run["error_kind"] == "usage" and "at most 8 CPUs" in run["error"]


def test_kernel_that_is_none_says_so(workload, tmp_path):
    if guest.unavailable_reason():
        pytest.skip(guest.unavailable_reason())
    with pytest.raises(UsageError, match="nowhere: cannot be read: No such file.*; name a kernel image"):
        do(tmp_path, workload, ["rr"], kernel=tmp_path / "nowhere")
    with pytest.raises(UsageError, match="nowhere: means nothing on --host sim; hosts that have it: guest"):
        make_plan([str(workload)], ["rr"], tmp_path, kernel=tmp_path / "nowhere")


def test_saved_machine_that_is_not_whole_is_made_again(monkeypatch, tmp_path):
    """As after a full disk: QEMU ends before the machine goes on."""
    saved, boots = tmp_path / "machine", []

    def saved_machine(_system, _runner=None):
        if not saved.exists():
            boots.append(saved)
            saved.write_text("whole")
        return saved

    said = guest_boot.Said(b"", "", has_timed_out=False)
    monkeypatch.setattr(guest_boot, "saved_machine", saved_machine)
    monkeypatch.setattr(
        guest_boot.GuestRunner,
        "_go_on",
        lambda _self, _system, path, *_: said if path.read_text() == "whole" else None,
    )
    saved.write_text("cut")
    assert guest_boot.GuestRunner().run(None, {}, timeout_s=1) is said and len(boots) == 1
    assert guest_boot.GuestRunner().run(None, {}, timeout_s=1) is said and len(boots) == 1
    monkeypatch.setattr(guest_boot.GuestRunner, "_go_on", lambda *_: None)
    with pytest.raises(
        HostError, match="machine: qemu.* does not go on from the machine that it has just saved"
    ):
        guest_boot.GuestRunner().run(None, {}, timeout_s=1)


def test_missing_emulator_is_named_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="qemu-system-x86_64 is missing; to have it: .*apt-get"):
        open_host("guest")


def test_pids_of_the_kernel_become_those_of_the_program():
    said = with_program_pids(
        "reader-with-a-l[57] waits for init[1]", {57: 2}, ["a", "reader-with-a-long-name"]
    )
    assert said == ("reader-with-a-long-name[2] waits for init[1]", 2)


@pytest.mark.full
def test_saved_machines_do_not_fill_the_disk(tmp_path):
    for number in range(9):
        (tmp_path / f"machine-{number:016x}").touch()
        (tmp_path / "machine-lock").touch()
    guest_boot._forget_the_oldest(tmp_path)
    assert len(list(tmp_path.glob("machine-0*"))) == guest_boot.SAVED_MAX
    assert (tmp_path / "machine-lock").exists()


@pytest.mark.parametrize("comes_up", [True, False])
def test_own_cpus_are_used_where_the_kernel_comes_up_on_them(comes_up, tmp_path, monkeypatch):
    """It is tried once; what is counted never asks."""
    tried = []

    def saved_machine(system, runner, *, boot_seconds):
        tried.append((system.is_kvm, boot_seconds))
        if not comes_up:
            raise HostError("failed to set MSR 0x10a")

    monkeypatch.setattr(guest_boot, "saved_machine", saved_machine)
    monkeypatch.setattr(guest_boot, "cache_folder", lambda name: tmp_path)
    monkeypatch.setattr(guest_boot.os, "access", lambda *_: True)
    kernel = tmp_path / "vmlinuz"
    kernel.write_bytes(b"")
    emulated = guest_boot.GuestSystem(kernel, b"", n_cpus=2, is_counted=False)
    for _ in range(2):
        system = guest_boot.on_own_cpus(emulated, guest_boot.GuestRunner())
        assert system.is_kvm == comes_up
        assert ("kvm" in system.words) == comes_up and "-icount" not in system.words
    assert tried == [(True, guest_boot.KVM_BOOT_SECONDS_MAX)] * (2 if comes_up else 1)
    assert [path.read_text() for path in tmp_path.glob("no-kvm-*")] == ["failed to set MSR 0x10a\n"] * (
        not comes_up
    )
    monkeypatch.setattr(guest_boot.os, "access", lambda *_: False)
    assert guest_boot.on_own_cpus(emulated, guest_boot.GuestRunner()) is emulated


def test_in_real_time_a_run_says_whose_cpus_it_had(tmp_path):
    workload = tmp_path / "short.toml"
    workload.write_text(
        '[workload]\ntitle = "Short"\n[[task]]\nname = "hog"\ncount = 3\nphases = [{run = "20ms"}]\n'
    )
    run = do(tmp_path / "out", workload, ["fifo"], parallel=True, cpus=2)["fifo"]
    assert run["status"] == "ok", run["error"]
    assert isinstance(run["environment"]["is_kvm"], bool)
