# SPDX-License-Identifier: MIT
"""Where a policy can run, and how the rest of schedlab talks to such a place.

A host takes a job (a compiled policy, a program, a number of CPUs) and leaves
a record file. What it says besides is an `Outcome`; every number is computed
from the records, by the same code for all hosts.

Must stay true: a host never raises for what a policy did; that is an outcome.
Read next: sim.py, the first host; choose.py, which of them is meant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..calibration import Calibration
from ..policy.build import BuiltPolicy


@dataclass(frozen=True)
class Job:
    """One run to be done."""

    label: str  #: For messages: workload, policy and seed.
    policy: BuiltPolicy  #: Who decides.
    program: Path  #: What runs.
    records: Path  #: Where to write what happened.
    n_cpus: int  #: Number of CPUs, at least 1.
    seed: int  #: Of the random numbers that the policy draws.
    tick_ns: int  #: Time between ticks in nanoseconds.
    options: tuple[Any, ...] = ()  #: Further options of this host, such as `("--cost", "switch_ns=2000")`.


@dataclass(frozen=True)
class Outcome:
    """What a host says about one run."""

    error: str | None = None  #: Why it failed, for people; None: it did not.
    #: One word: `stall`, `policy`, `crash`, `spin`, `deadlock`, `program`, `usage`, `timeout`, `host`, `late`
    #: (a machine too busy to begin at time 0).
    error_kind: str | None = None
    task: int | None = None  #: Pid of the task that the failure is about.
    cpus: list[Any] | None = None  #: `busy_ns`, `idle_ns`, `overhead_ns` of each CPU as the host counted.
    answer: dict[str, Any] = field(default_factory=dict)  #: All that the host said, as it said it.
    #: What only the run has shown about the place, for `run.json`.
    environment: dict[str, Any] = field(default_factory=dict)
    #: Longest time for which this machine gave a CPU of the run to somebody else, as the run has measured it;
    #: 0 where it cannot happen, or is not measured.
    away_ns: int = 0
    timer_late_ns: int = 0  #: How much later than asked for a timer's signal came, at most; 0 as above.
    tick_ns: int | None = None  #: Time between the ticks that there were, where the host chose it itself.
    #: Of a host that is Linux: `wall_ns`, `user_ns`, `system_ns`, `cpu_percent`, `switches_involuntary`,
    #: `switches_voluntary` of all tasks, as `time` has them.
    usage: dict[str, Any] | None = None
    #: Of the same: what each task noted of itself, see metrics/tally.py; its records, if there are any, agree
    #: with it.
    tally: list[Any] | None = None
    no_records: str | None = None  #: Why it could not be.
    log: str = ""  #: What the policy printed (`bpf_printk()`, or its own output), as far as it was kept.
    #: Of a host whose CPUs are threads of a process: `clock_ns`, what the kernel's own clock says of their
    #: CPU time, `idle_clock_ns` and `switch_clock_ns`, how much of it was used without a task and between
    #: two, and `taken_ns`, what other processes had of the CPUs.
    clock: dict[str, Any] | None = None


class Session(Protocol):
    """One worker's connection to a host; used by one thread at a time."""

    timeout_seconds: float  #: Longest time on the wall clock that one run may take.

    def run(self, job: Job) -> Outcome:
        """Do one job and wait for it; whatever happens to it is an outcome."""

    def interrupt(self) -> None:
        """Make a job under way come back at once; from any thread."""

    def close(self) -> None:
        """End what the session started; from the thread that uses it."""


class Host(Protocol):
    """A place where policies run."""

    @property
    def name(self) -> str:
        """What `--host` says."""

    @property
    def is_deterministic(self) -> bool:
        """Whether equal jobs give equal records, so that repeating one shows nothing."""

    @property
    def has_exact_work(self) -> bool:
        """Whether a task gets exactly the CPU time that it asks for, and no system call costs it any more."""

    @property
    def options(self) -> frozenset[str]:
        """Fields of `Machine` and `Execution` that it has, besides those that each host has; any other is refused."""

    def unavailable(self) -> str | None:
        """Why it cannot be used here, with the hint; None: it can."""

    def environment(self) -> dict[str, Any]:
        """What a reader must know to repeat a run; goes into `run.json`."""

    def latency_ns(self, job: Job) -> int:
        """How long a CPU may take to notice work, by the host's own statement."""

    def tolerance_ns(self, job: Job) -> int:
        """Error of the host's clock on one interval; 0 in virtual time."""

    def calibration(self, job: Job) -> Calibration | None:
        """What a unit of `work` costs there; None where nobody knows."""

    def session(self, *, timeout_seconds: float) -> Session:
        """Open a connection for one worker, each of whose runs may take so long."""
