# SPDX-License-Identifier: MIT
"""How long the guest takes until its first task runs; behind `schedlab selfbench guest`.

In CPU time of the emulator, which has one thread: that is what the wall clock
shows on a machine that does nothing else. The boot is given by the wall clock, too.

Read next: python/schedlab/hosts/guest/boot.py.
"""

from __future__ import annotations

import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from schedlab import paths
from schedlab.hosts.guest import boot as guest_boot
from schedlab.hosts.guest import policies as guest
from schedlab.policy.bpf import compile_object
from schedlab.program.compiler import compile_workload
from schedlab.workload.spec import parse_workload

WORKLOAD = """
[workload]
title = "One task"
question = "When does it run?"
jitter = "0ms"
[[task]]
name = "first"
phases = [{run = "1ms"}]
"""
TRIES = 3


def _used_seconds() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _task() -> guest.GuestTask:
    """One task under fifo; the policy is attached at once."""
    program = compile_workload(parse_workload(WORKLOAD, name="one.toml"), seed=1)
    policy = compile_object(paths.policies_folder() / "fifo.bpf.c").read_bytes()
    return guest.GuestTask("one", policy, program=bytes(program.data), lead_ms=guest.LEAD_MS_LONG)


def _run(system, task) -> tuple[float, float]:
    """One run on a saved machine, to its end: seconds of the CPU, and of the clock."""
    before, began = _used_seconds(), time.monotonic()
    said = guest_boot.GuestRunner().run(system, guest.job_files([task]), timeout_s=120)
    (answer,) = guest.read_answers([task], said, timeout_s=120)
    assert answer.trace is not None and not answer.fatal, answer.fatal or answer.refusal
    return _used_seconds() - before, time.monotonic() - began


def _boot(system) -> tuple[float, float]:
    """One boot from nothing, and the saving of the machine: seconds, as above."""
    before, began = _used_seconds(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="schedlab-bench-") as folder:
        guest_boot._boot_and_save(
            system, Path(folder) / "machine", guest_boot.GuestRunner(), guest_boot.BOOT_SECONDS_MAX
        )
    return _used_seconds() - before, time.monotonic() - began


def measure(entry, *, is_quick: bool = False) -> dict:
    """Measure booting and going on from a saved machine, with and without counting, as `selfbench.measure`.

    Quick: one try of each, instead of the best of `TRIES`.
    """
    counted, _ = guest.guest_system()
    task = _task()
    rows = []
    for name, system in (("real_time", replace(counted, is_counted=False)), ("counted", counted)):
        guest_boot.saved_machine(system)
        tries = 1 if is_quick else TRIES
        first = [min(times) for times in zip(*(_run(system, task) for _ in range(tries)), strict=True)]
        rows.append(entry(f"guest_{name}_saved_to_first_task_s", first[0], "CPU s", "lower"))
        if is_quick:
            continue
        n_boots = tries if name == "real_time" else 1
        boot = [min(times) for times in zip(*(_boot(system) for _ in range(n_boots)), strict=True)]
        for what, unit, i in (("s", "CPU s", 0), ("wall_s", "s", 1)):
            rows.append(entry(f"guest_{name}_boot_to_first_task_{what}", boot[i] + first[i], unit, "lower"))
    return {"benchmarks": rows, "skipped": []}
