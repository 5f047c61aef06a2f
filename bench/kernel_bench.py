# SPDX-License-Identifier: MIT
"""Measure the teaching kernel in instructions; behind `schedlab selfbench kernel`.

The machine counts instructions, so a figure is the same on every boot, whatever
else runs here. xv6's are those of its 2022 version for RISC-V, measured in the same
emulator with the same flags and the same operations.

Read next: hosts/kernel/user/bench.c; selfbench.py.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from schedlab.errors import HostError
from schedlab.hosts.choose import open_host
from schedlab.hosts.host import Job
from schedlab.hosts.kernel import boot as kernel_boot
from schedlab.hosts.kernel import build as kernel_build
from schedlab.hosts.kernel import host as kernel
from schedlab.paths import policies_folder
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.workload.spec import parse_workload

PEER = "xv6-riscv 2022"
#: What bench.c prints: our name, unit, xv6's figure.
OPERATIONS = {
    "getpid": ("kernel_getpid", 1_130),
    "pipe_write_read": ("kernel_pipe_write_read", 40_475),
    "ping_pong": ("kernel_ping_pong_round_trip", 95_790),
    "yield_alone": ("kernel_yield_alone", 14_529),
    "yield_2": ("kernel_switch_2_yielding", 8_061),
    "yield_8": ("kernel_switch_8_yielding", 3_210),
    "yield_56": ("kernel_switch_56_yielding", 1_825),
    "yield_2_present": ("kernel_switch_2_yielding_4000_present", None),
    "fork_exit_wait": ("kernel_fork_exit_wait", 519_208),
    "fork_exec_exit_wait": ("kernel_fork_exec_exit_wait", 1_715_000),
    "tick_that_switches": ("kernel_tick_that_switches", 25_000),
}
TIMEOUT_SECONDS = 300
#: Sleeps, a lock, and hogs: what a policy is asked about in a minute of most lives.
WORKLOAD = """
[workload]
title = "A little of everything"
question = "What does the policy cost?"
jitter = "0ms"
tick = "1ms"

[[lock]]
name = "table"

[[task]]
name = "hog"
count = 4
phases = [{run = "50ms"}]

[[task]]
name = "editor"
count = 16
phases = [{loop = 20, do = [{sleep = "exp(5ms)"}, {run = "exp(500us)"}, {lock = "table"}, {run = "20us"}, {unlock = "table"}]}]
"""


def measure(entry, *, is_quick: bool = False) -> dict:
    """Measure the kernel, as `selfbench.measure`; quick: without the overhead of all policies but two.

    UnavailableError: the kernel cannot be built or booted here. HostError: the machine did not do its job.
    """
    open_host("kernel")
    rows = _operations(entry)
    names = sorted(path.name.removesuffix(".bpf.c") for path in policies_folder().glob("*.bpf.c"))
    for name in ("fifo", "rr") if is_quick else names:
        rows += _overhead(entry, name)
    return {"benchmarks": rows, "skipped": []}


def read_bench(image) -> dict[str, int]:
    """Boot machines that run bench.c, and read its "NAME VALUE" lines.

    By name: what it measures as a program, and the time of a boot to the shell's prompt, which it
    measures as the first program. HostError: it ends badly; with the end of its console.
    """
    return _boot(image, {"run": "/bench"}, "yield_2_present") | _boot(
        image, {"init": "/bench"}, "boot_to_prompt"
    )


def _boot(image, arguments: dict[str, str], last: str) -> dict[str, int]:
    """Boot one machine; its lines, of which one is called `last`."""
    machine = kernel_boot.Machine(image, arguments={"tick_ns": "10000000", **arguments})
    done = subprocess.run(
        kernel_boot.machine_command(machine),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    text = done.stdout.replace("\r", "")
    found = {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}
    if done.returncode or last not in found:
        raise HostError(f"a machine with {arguments} ended with {done.returncode}:\n{text[-1500:]}")
    return found


def _operations(entry) -> list[dict]:
    """What bench.c measures, and how long a boot takes."""
    found = read_bench(kernel_build.build_kernel())
    rows = [
        entry(name, found[key], "instructions", "lower", peer=PEER if peer else None, peer_value=peer)
        for key, (name, peer) in OPERATIONS.items()
    ]
    # From the first instruction of the firmware on. An instruction is a nanosecond; the
    # disk is in memory, since the time that this machine's takes is not the kernel's.
    for name in ("boot_to_program", "boot_to_prompt"):
        rows.append(entry(f"kernel_{name}_ms", found[name] / 1e6, "ms", "lower"))
    growth = found["yield_2_present"] / found["yield_2"]
    rows.append(entry(f"kernel_switch_growth_{found['present']}_present", growth, "1", "lower"))
    return rows


def _overhead(entry, name: str) -> list[dict]:
    """Instructions per switch inside the core and the policy, and around them."""
    program = compile_workload(parse_workload(WORKLOAD, name="bench.toml"), seed=1)
    with tempfile.TemporaryDirectory(prefix="schedlab-bench-") as folder:
        path = Path(folder) / "program"
        path.write_bytes(bytes(program.data))
        job = Job(
            label=name,
            policy=build_policy(load_policy(name)),
            program=path,
            records=Path(folder) / "records",
            n_cpus=1,
            seed=1,
            tick_ns=1_000_000,
        )
        outcome = kernel.KernelSession(timeout_seconds=TIMEOUT_SECONDS).run(job)
    if outcome.error:
        raise HostError(f"{name}: {outcome.error}")
    parts = outcome.answer["overhead"][name]
    switches = parts["switch"]["times"]
    return [
        entry(
            f"kernel_{part}_per_switch_{name}",
            parts[part]["instructions"] / switches,
            "instructions",
            "lower",
        )
        for part in ("sched", "switch", "trap")
    ]
