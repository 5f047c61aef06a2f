# SPDX-License-Identifier: MIT
"""Where a policy can run, and how the rest of schedlab talks to such a place.

A host takes a job (a compiled policy, a program, a number of CPUs) and leaves
a record file. What it says besides is an `Outcome`; every number is computed
from the records, by the same code for all hosts.

Must stay true: a host never raises for what a policy did; that is an outcome.
Read next: sim.py, the first host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ..calibration import Calibration
from ..errors import NotFoundError, UnavailableError, UsageError, did_you_mean
from ..policy.build import BuiltPolicy

#: What a user may write after `--host`.
HOST_NAMES = ("sim", "uthreads", "kernel", "linux", "guest")


@dataclass(frozen=True)
class Job:
    """One run to be done.

    Attributes
    ----------
    label : str
        For messages: workload, policy and seed.
    policy : BuiltPolicy
        Who decides.
    program : pathlib.Path
        What runs.
    records : pathlib.Path
        Where to write what happened.
    nr_cpus : int
        Number of CPUs, at least 1.
    seed : int
        Of the random numbers that the policy draws.
    tick_ns : int
        Time between ticks in nanoseconds.
    options : tuple of (str, str)
        Further options of this host, such as `("--cost", "switch_ns=2000")`.
    """

    label: str
    policy: BuiltPolicy
    program: Path
    records: Path
    nr_cpus: int
    seed: int
    tick_ns: int
    options: tuple = ()


@dataclass(frozen=True)
class Outcome:
    """What a host says about one run.

    Attributes
    ----------
    error : str or None
        Why it failed, for people; None: it did not.
    error_kind : str or None
        One word: `stall`, `policy`, `crash`, `spin`, `deadlock`, `program`,
        `usage`, `timeout`, `host`, `late` (a machine too busy to begin at time 0).
    task : int or None
        Pid of the task that the failure is about.
    cpus : list of dict or None
        `busy_ns`, `idle_ns`, `overhead_ns` of each CPU as the host counted.
    answer : dict
        All that the host said, as it said it.
    environment : dict
        What only the run has shown about the place, for `run.json`.
    away_ns : int
        Longest time for which this machine gave a CPU of the run to somebody else, as
        the run has measured it; 0 where it cannot happen, or is not measured.
    tick_ns : int or None
        Time between the ticks that there were, where the host chose it itself.
    usage : dict or None
        Of a host that is Linux: `wall_ns`, `user_ns`, `system_ns`, `cpu_percent`,
        `switches_involuntary`, `switches_voluntary` of all tasks, as `time` has them.
    tally : list of dict or None
        Of the same: what each task noted of itself, see metrics/tally.py; its records, if
        there are any, agree with it.
    no_records : str or None
        Why it could not be.
    """

    error: str | None = None
    error_kind: str | None = None
    task: int | None = None
    cpus: list | None = None
    answer: dict = field(default_factory=dict)
    environment: dict = field(default_factory=dict)
    away_ns: int = 0
    tick_ns: int | None = None
    usage: dict | None = None
    tally: list | None = None
    no_records: str | None = None


class Session(Protocol):
    """One worker's connection to a host; used by one thread at a time.

    Attributes
    ----------
    timeout_seconds : float
        Longest time on the wall clock that one run may take.
    """

    timeout_seconds: float

    def run(self, job: Job) -> Outcome:
        """Do one job and wait for it; whatever happens to it is an outcome."""

    def interrupt(self) -> None:
        """Make a job under way come back at once; from any thread."""

    def close(self) -> None:
        """End what the session started; from the thread that uses it."""


class Host(Protocol):
    """A place where policies run."""

    name: str
    #: Whether equal jobs give equal records, so that repeating one shows nothing.
    is_deterministic: bool
    #: Whether a task gets exactly the CPU time that it asks for, and no system
    #: call costs it any more.
    has_exact_work: bool

    def unavailable(self) -> str | None:
        """Why it cannot be used here, with the remedy; None: it can."""

    def environment(self) -> dict:
        """What a reader must know to repeat a run; goes into `run.json`."""

    def latency_ns(self, job: Job) -> int:
        """How long a CPU may take to notice work, by the host's own statement."""

    def tolerance_ns(self, job: Job) -> int:
        """Error of the host's clock on one interval; 0 in virtual time."""

    def calibration(self, job: Job) -> Calibration | None:
        """What a unit of `work` costs there; None where nobody knows."""

    def session(self, *, timeout_seconds: float) -> Session:
        """Open a connection for one worker, each of whose runs may take so long."""


def _sim() -> Host:
    """Import the simulator's driver only when it is asked for."""
    from .sim import SimHost

    return SimHost()


def _kernel() -> Host:
    """The same for the teaching kernel's."""
    from .kernel import KernelHost

    return KernelHost()


def _uthreads() -> Host:
    """The same for user threads."""
    from .uthreads import UthreadsHost

    return UthreadsHost()


def _linux() -> Host:
    """The same for Linux's own classes."""
    from .linux import LinuxHost

    return LinuxHost()


def _guest() -> Host:
    """The same for Linux in a virtual machine."""
    from .guest_host import GuestHost

    return GuestHost()


_BUILT: dict[str, Callable[[], Host]] = {
    "sim": _sim, "kernel": _kernel, "uthreads": _uthreads, "linux": _linux, "guest": _guest,
}  # fmt: skip

def unavailable_reason(name: str) -> str | None:
    """Why a host cannot be used here.

    Parameters
    ----------
    name : str
        One of `HOST_NAMES`.

    Returns
    -------
    str or None
        The reason with its remedy, or None when the host can be used.

    Raises
    ------
    NotFoundError
        If there is no host of that name; the message has the nearest one.
    """
    if name in _BUILT:
        return _BUILT[name]().unavailable()
    raise NotFoundError(f"unknown host '{name}'{did_you_mean(name, HOST_NAMES)}")


def in_parallel(host: Host) -> Host:
    """Get the same host in this machine's time, with its CPUs where it can have them.

    Parameters
    ----------
    host : Host
        One that emulates its CPUs, in turns unless told otherwise.

    Returns
    -------
    Host
        Its times are real, so equal jobs give different runs.

    Raises
    ------
    UsageError
        If the host has no such way to run.
    """
    if host.name not in ("kernel", "guest"):
        raise UsageError(
            f"--parallel is for --host kernel and guest; {host.name} has its own way to run"
        )
    return replace(host, is_parallel=True)


def with_kernel(host: Host, kernel: Path) -> Host:
    """Get the same host with another kernel.

    Parameters
    ----------
    host : Host
        One that boots a Linux kernel.
    kernel : pathlib.Path
        A bootable image.

    Returns
    -------
    Host
        It says what is wrong with the image when it is used.

    Raises
    ------
    UsageError
        If the host boots none.
    """
    if host.name != "guest":
        raise UsageError(f"--kernel is for --host guest; {host.name} boots no Linux kernel")
    return replace(host, kernel=kernel)


def open_host(name: str) -> Host:
    """Get a host that can be used here.

    Parameters
    ----------
    name : str
        One of `HOST_NAMES`.

    Returns
    -------
    Host
        Ready for sessions.

    Raises
    ------
    NotFoundError
        If there is no host of that name.
    UnavailableError
        If it cannot be used here; the message has the reason and the remedy.
    """
    reason = unavailable_reason(name)
    if reason is not None:
        raise UnavailableError(f"host '{name}' is unavailable here: {reason}")
    return _BUILT[name]()
