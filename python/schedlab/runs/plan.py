# SPDX-License-Identifier: MIT
"""What `schedlab run` is asked to do.

Read next: run.py, which does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..hosts.choose import in_parallel, open_host, with_kernel
from ..hosts.host import Host
from ..workload.model import Workload

#: Seeds where policies are compared in virtual time: enough to decide what the eye sees;
#: docs/statistics.md has how much that is.
SEEDS_COMPARED = 20


@dataclass(frozen=True)
class Plan:
    """What `schedlab run` was asked to do.

    Attributes
    ----------
    workloads : sequence of (str or Workload)
        Names or paths; or what is made already, such as a recorded run.
    policies : sequence of str
        Names or paths.
    out : pathlib.Path
        Where the run directories go.
    host : str, default "sim"
        One of `HOST_NAMES` in hosts/choose.py.
    cpus : int, optional
        Number of CPUs; default: what each workload is meant for.
    nr_seeds : int, default 1
        How many seeds.
    first_seed : int, default 1
        The first of them; seed 0 means no jitter.
    settings : sequence of str
        `POLICY.KNOB=VALUE`; several values make variants of the policy.
    tick_ns : int, optional
        Time between ticks; default: what each workload says.
    costs : sequence of str
        `NAME=TIME` of the simulator's cost model, such as `"switch_ns=2us"`.
    io : sequence of str
        `NAME=VALUE` of the simulator's device, such as `"latency_ns=100us"`.
    topology : str, default ""
        CPUs per core, cache and NUMA node of the simulated machine, such as
        `"smt=2,llc=8"`.
    is_parallel : bool, default False
        On a host that emulates CPUs: a thread for each, and real time.
    kernel : pathlib.Path, optional
        On the host `guest`: the kernel image to boot; default: Debian's.
    are_threads : bool, default False
        On Linux: tasks are threads of one process, not processes.
    scale : float, default 1
        How much of each workload's work is to be done.
    timeout_seconds : float, default 300
        Longest time on the wall clock for one run.
    keep_parquet : bool, default True
        Whether to write the tables that are derived from the records.
    is_kept : bool, default True
        Whether the run directories outlive their runs; otherwise only what is computed
        from them is wanted.
    baseline : str, optional
        The policy that all others are compared with; default: the first.
    command_line : str, default ""
        What the user has typed, as a shell takes it; empty: no command was.
    """

    workloads: Sequence[str | Workload]
    policies: Sequence[str]
    out: Path
    host: str = "sim"
    cpus: int | None = None
    nr_seeds: int = 1
    first_seed: int = 1
    settings: Sequence[str] = ()
    tick_ns: int | None = None
    costs: Sequence[str] = ()
    io: Sequence[str] = ()
    topology: str = ""
    is_parallel: bool = False
    kernel: Path | None = None
    are_threads: bool = False
    scale: float = 1.0
    timeout_seconds: float = 300.0
    keep_parquet: bool = True
    is_kept: bool = True
    baseline: str | None = None
    command_line: str = ""


def default_seeds(host: str, policies: Sequence[str], settings: Sequence[str], first_seed: int) -> int:
    """How many seeds a plan has that does not say: one where nothing is compared, drawn, or cheap."""
    is_compared = len(policies) > 1 or any("," in setting for setting in settings)
    return SEEDS_COMPARED if is_compared and host == "sim" and first_seed else 1


def host_of(plan: Plan) -> Host:
    """The host of a plan, as its options want it: here, and the same on a worker."""
    host = open_host(plan.host)
    if plan.is_parallel:
        host = in_parallel(host)
    if plan.kernel is not None:
        host = with_kernel(host, plan.kernel)
    return host
