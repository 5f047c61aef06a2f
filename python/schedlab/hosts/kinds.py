# SPDX-License-Identifier: MIT
"""What hosts of one kind have in common: how late they may be, and how a job is said.

    RealTimeHost   this machine's own CPUs, which others use, too
    EmulatedHost   a machine in QEMU: CPUs by turns, or real time

Must stay true: what a host states here is what physics.py holds its records to.
Read next: uthreads.py, a host in real time; kernel.py, one that is emulated.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import ClassVar

from ..calibration import Calibration
from . import Job


class RealTimeHost:
    """A host on this machine's CPUs: no two runs are equal."""

    is_deterministic = False
    has_exact_work = False
    #: What a shared machine may take a CPU away for before a task is noticed.
    LATENCY_NS = 100_000_000
    #: Two readings of the clock, one before and one after the other.
    TOLERANCE_NS = 5_000

    def latency_ns(self, job: Job) -> int:
        """How long a CPU may take to notice work.

        Parameters
        ----------
        job : Job
            Not used: it is the machine's.

        Returns
        -------
        int
            Nanoseconds; a kernel thread that lost its CPU notices nothing.
        """
        return self.LATENCY_NS

    def tolerance_ns(self, job: Job) -> int:
        """Error of the clock on one interval.

        Parameters
        ----------
        job : Job
            Not used.

        Returns
        -------
        int
            Nanoseconds.
        """
        return self.TOLERANCE_NS

    def calibration(self, job: Job) -> Calibration | None:
        """What a unit of `work` costs is measured by running it: not known before.

        Parameters
        ----------
        job : Job
            Not used.

        Returns
        -------
        None
            Always.
        """
        return None


@dataclass(frozen=True)
class EmulatedHost:
    """A host that boots a machine in QEMU.

    Attributes
    ----------
    is_parallel : bool, default False
        Let time be real, instead of counting instructions.
    """

    is_parallel: bool = False
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
        """Longest time from the moment a task may run on an idle CPU until it runs there.

        Parameters
        ----------
        job : Job
            What is run.

        Returns
        -------
        int
            Nanoseconds.
        """
        if self.is_parallel:
            return self.LATENCY_PARALLEL_NS
        return self.LATENCY_ONE_NS if job.nr_cpus == 1 else self.LATENCY_TURNS_NS

    def tolerance_ns(self, job: Job) -> int:
        """Error of the clock on one interval: two looks at it for one moment.

        Parameters
        ----------
        job : Job
            What is run.

        Returns
        -------
        int
            Nanoseconds.
        """
        is_exact = job.nr_cpus == 1 and not self.is_parallel
        return self.TOLERANCE_ONE_NS if is_exact else self.TOLERANCE_MANY_NS

    def calibration(self, job: Job) -> Calibration | None:
        """What a unit of `work` costs: real work, measured by running it.

        Parameters
        ----------
        job : Job
            What is run.

        Returns
        -------
        Calibration or None
            None where nobody knows.
        """
        return None


def job_arguments(job: Job, options: Container[str] | None = None) -> list[str]:
    """Say a job as the programs `schedlab-sim` and `schedlab-uthreads` take it.

    Parameters
    ----------
    job : Job
        What to run.
    options : container of str, optional
        Options of the job that the program knows; None: all.

    Returns
    -------
    list of str
        Arguments, all but the policy's file.
    """
    arguments = [
        "--program", str(job.program),
        "--cpus", str(job.nr_cpus),
        "--seed", str(job.seed),
        "--tick-ns", str(job.tick_ns),
        "--records", str(job.records),
    ]  # fmt: skip
    for name, value in job.policy.values.items():
        arguments += ["--set", f"{name}={value}"]
    for option, value in job.options:
        if options is None or option in options:
            arguments += [option, value]
    return arguments
