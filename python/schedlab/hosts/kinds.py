# SPDX-License-Identifier: MIT
"""What hosts of one kind have in common: how late they may be, and how a job is said.

    RealTimeHost   this machine's own CPUs, which others use, too
    EmulatedHost   a machine in QEMU: CPUs by turns, or real time

Must stay true: what a host states here is what metrics/consistency.py holds its records to.
Read next: uthreads.py, a host in real time; kernel/host.py, one that is emulated.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import ClassVar

from ..calibration import Calibration
from ..policy.launch_file import for_machine
from ..program.file import read_program
from ..workload.events import Event
from .host import Job

#: The device of the simulator (hosts/sim/main.c), which `--io` changes: times in ns,
#: and how many requests it does at once.
DEVICE = {"latency_ns": 100_000, "ns_per_kib": 1000, "call_ns": 1000, "depth": 1}


class RealTimeHost:
    """A host on this machine's CPUs: no two runs are equal."""

    is_deterministic = False
    has_exact_work = False
    #: What a shared machine may take a CPU away for before a task is noticed.
    LATENCY_NS = 100_000_000
    #: Two readings of the clock, one before and one after the other.
    TOLERANCE_NS = 5_000

    def latency_ns(self, job: Job) -> int:
        """The machine's, whatever runs: a kernel thread that lost its CPU notices nothing."""
        return self.LATENCY_NS

    def tolerance_ns(self, job: Job) -> int:
        """The clock's, whatever runs."""
        return self.TOLERANCE_NS

    def calibration(self, job: Job) -> Calibration | None:
        """None: what a unit of `work` costs is measured by running it."""
        return None


@dataclass(frozen=True)
class EmulatedHost:
    """A host that boots a machine in QEMU."""

    is_parallel: bool = False  #: Let time be real, instead of counting instructions.
    has_exact_work: ClassVar[bool] = False
    #: From the moment a task may run until it runs: trap, choice, switch. With several
    #: CPUs that take turns, until the other one's turn is over.
    LATENCY_ONE_NS: ClassVar[int]
    LATENCY_TURNS_NS: ClassVar[int] = 20_000_000
    LATENCY_PARALLEL_NS: ClassVar[int]
    #: Between two looks at the clock for what is one moment to the scheduler.
    TOLERANCE_ONE_NS: ClassVar[int]
    TOLERANCE_MANY_NS: ClassVar[int] = 20_000_000

    @property
    def is_deterministic(self) -> bool:
        """Whether equal jobs give equal records."""
        return not self.is_parallel

    def latency_ns(self, job: Job) -> int:
        """Longest time from the moment a task may run on an idle CPU until it runs there."""
        if self.is_parallel:
            return self.LATENCY_PARALLEL_NS
        return self.LATENCY_ONE_NS if job.n_cpus == 1 else self.LATENCY_TURNS_NS

    def tolerance_ns(self, job: Job) -> int:
        """Error of the clock on one interval: two looks at it for one moment."""
        is_exact = job.n_cpus == 1 and not self.is_parallel
        return self.TOLERANCE_ONE_NS if is_exact else self.TOLERANCE_MANY_NS

    def calibration(self, job: Job) -> Calibration | None:
        """None: what a unit of `work` costs is measured by running it."""
        return None


def too_large(job: Job, host: str, *, cpus_max: int, tasks_max: int) -> str | None:
    """Why a host with limits cannot do a job that another one could."""
    if job.n_cpus > cpus_max:
        return f"{host} has at most {cpus_max} CPUs (got {job.n_cpus})"
    n_tasks = read_program(job.program.read_bytes()).n_tasks
    return f"{host} runs at most {tasks_max} tasks (got {n_tasks})" if n_tasks > tasks_max else None


def job_arguments(job: Job, options: Container[str] | None = None) -> list[str]:
    """Say a job as the programs `schedlab-sim` and `schedlab-uthreads` take it."""
    arguments = [
        "--program", str(job.program),
        "--cpus", str(job.n_cpus),
        "--seed", str(job.seed),
        "--tick-ns", str(job.tick_ns),
        "--records", str(job.records),
    ]  # fmt: skip
    for name, value in settings_of(job).items():
        arguments += ["--set", f"{name}={value}"]
    for option, value in job.options:
        if options is None or option in options:
            arguments += [option, value]
    return arguments


def settings_of(job: Job) -> dict[str, int]:
    """Values that the policy's variables get before it is loaded."""
    topology = dict(job.options).get("--topology", "")
    sizes = {key: int(size) for key, _, size in (part.partition("=") for part in topology.split(",") if part)}
    return for_machine(job.policy.launch, job.n_cpus, sizes) | job.policy.values


def device_of(job: Job) -> tuple[int, ...]:
    """Say what `read` and `write` wait for: the simulator's device, or what `--io` says."""
    device = dict(DEVICE)
    for option, value in job.options:
        if option == "--io":
            device |= {
                name: int(number) for name, _, number in (item.partition("=") for item in value.split(","))
            }
    return tuple(device[name] for name in DEVICE)


def cost_ns(job: Job, name: str) -> int:
    """Say what one of the simulator's costs is."""
    costs = [value.partition("=") for option, value in job.options if option == "--cost"]
    return {key: int(value) for key, _, value in costs}.get(name, 0)


def exit_ns(job: Job, events: Iterable[Event] = ()) -> int:
    """Say what its exit takes a task of the simulator at most: the call and what comes with it, in `events` too."""
    costs = sum(cost_ns(job, name) for name in ("call_ns", "exit_ns", "start_ns", "jitter_ns"))
    return costs + max((event.time_ns for event in events if event.kind == "exit"), default=0)


def with_program_pids(text: str, pids: dict[int, int], names: list[str]) -> tuple[str, int | None]:
    """Name tasks as the program does: `b[57]` of the kernel's is `b[3]` of the program's.

    >>> with_program_pids("b[57] failed to run", {57: 3}, ["a", "a", "b"])
    ('b[3] failed to run', 3)
    """
    found = None

    def rename(match: re.Match[str]) -> str:
        nonlocal found
        pid = pids.get(int(match[2]))
        # Names are cut in the kernel; another process may have one of the pids.
        if not pid or not names[pid - 1].startswith(match[1]):
            return match[0]
        found = pid
        return f"{names[pid - 1]}[{pid}]"

    return re.sub(r"([^\s\[\]]+)\[(\d+)\]", rename, text), found
