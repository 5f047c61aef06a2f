# SPDX-License-Identifier: MIT
"""How long the guest takes until its first task runs; behind `schedlab selfbench guest`.

In CPU time of the emulator, which has one thread: that is what the wall clock
shows on a machine that does nothing else.

Read next: python/schedlab/hosts/guest_boot.py.
"""

from __future__ import annotations

import resource
import tempfile
from dataclasses import replace
from pathlib import Path

from schedlab import paths
from schedlab.hosts import guest, guest_boot, guest_build
from schedlab.program import compile_workload
from schedlab.spec import parse_workload

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
    policy = guest_build.compile_for_bpf(paths.policies_folder() / "fifo.bpf.c")
    return guest.GuestTask("one", policy, program=bytes(program.data), lead_ms=guest.LEAD_MS_LONG)


def _run(system, task) -> float:
    """One run on a saved machine, to its end; CPU seconds."""
    before = _used_seconds()
    said = guest_boot.GuestRunner().run(system, guest.job_files([task]), timeout_s=120)
    (answer,) = guest.read_answers([task], said, timeout_s=120)
    assert answer.trace is not None and not answer.fatal, answer.fatal or answer.refusal
    return _used_seconds() - before


def _boot(system) -> float:
    """One boot from nothing, and the saving of the machine; CPU seconds."""
    before = _used_seconds()
    with tempfile.TemporaryDirectory(prefix="schedlab-bench-") as folder:
        guest_boot._boot_and_save(system, Path(folder) / "machine", guest_boot.GuestRunner())
    return _used_seconds() - before


def measure(entry, *, is_quick: bool = False) -> dict:
    """Measure booting and going on from a saved machine, with and without counting.

    Parameters
    ----------
    entry : callable
        Makes a benchmark of name, value, unit and which way is better.
    is_quick : bool, default False
        One try of each, instead of the best of `TRIES`.

    Returns
    -------
    dict
        As `selfbench.measure`.
    """
    counted, _ = guest.guest_system()
    task = _task()
    rows = []
    for name, system in (("real_time", replace(counted, is_counted=False)), ("counted", counted)):
        guest_boot.saved_machine(system)
        tries = 1 if is_quick else TRIES
        first = min(_run(system, task) for _ in range(tries))
        rows.append(entry(f"guest_{name}_saved_to_first_task_s", first, "CPU s", "lower"))
        if not is_quick:
            boot = min(_boot(system) for _ in range(tries if name == "real_time" else 1))
            rows.append(entry(f"guest_{name}_boot_to_first_task_s", boot + first, "CPU s", "lower"))
    return {"benchmarks": rows, "skipped": []}
