# SPDX-License-Identifier: MIT
"""Drive `schedlab-uthreads`, which plays a workload on preemptive user threads.

One process per run. It does real work on this machine's CPUs, so two runs of the
same job differ, and whatever else the machine does is seen: the time that other
processes took from a CPU is recorded as overhead, not charged to a task.

Must stay true: whatever the process does, the job comes back.
Read next: runs/run.py, which hands out the jobs.
"""

from __future__ import annotations

import json
import os
import platform
import signal
from functools import lru_cache
from typing import Any

from .. import paths
from ..tools import ask
from .host import Job, Outcome
from .kinds import RealTimeHost, job_arguments
from .linux.machine import processor_name
from .process import Done, ProcessSession

#: How much of what a policy prints is kept for the message about its failure.
STDERR_BYTES_KEPT = 2000
#: Options of a job that mean something here; the others are the simulator's.
OPTIONS = frozenset({"--detail", "--limit-ns", "--topology", "--pin", "--id", "--events"})


class UthreadsHost(RealTimeHost):
    """Preemptive user threads on this machine's kernel threads."""

    name = "uthreads"
    options = frozenset({"tick_ns", "topology"})
    #: The library's own, with much room: a signal, a sleep, a bad moment to be stopped.
    #: For how long others have had a CPU every run measures for itself.
    LATENCY_NS = 20_000_000

    def unavailable(self) -> str | None:
        """Why the runner cannot be used, or None."""
        return paths.why_unusable(paths.uthreads_runner())

    def environment(self) -> dict[str, Any]:
        """The machine: kernel, processor, CPUs, its clock, and how busy it is."""
        return {
            "run_clock": _run_clock(),
            "kernel": platform.release(),
            "machine": platform.machine(),
            "processor": processor_name(),
            "n_cpus_online": os.cpu_count(),
            "n_cpus_allowed": len(os.sched_getaffinity(0)),
            "load_average": list(os.getloadavg()),
        }

    def session(self, *, timeout_seconds: float) -> UthreadsSession:
        """Open a connection for one worker."""
        return UthreadsSession(timeout_seconds=timeout_seconds)


@lru_cache
def _run_clock() -> str:
    """By what clock a task's CPU time is measured, which `run` uses up."""
    try:
        clock = json.loads(ask([paths.uthreads_runner(), "--clock"]).stdout)
        compared_ms = clock["compared_ns"] / 1e6
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown"
    if not clock["counter"]:
        return "the kernel's monotonic clock, less what other processes took"
    return (
        f"the processor's counter, compared with the kernel's monotonic clock for {compared_ms:g} ms "
        "at the start of each run, less what other processes took"
    )


def command(job: Job) -> list[str]:
    """Command line of one run."""
    runner = [str(paths.uthreads_runner()), "--policy", str(job.policy.shared_object)]
    return runner + job_arguments(job, OPTIONS)


class UthreadsSession(ProcessSession):
    """Runs jobs one after the other, each in a process of its own."""

    def _run(self, job: Job) -> Outcome:
        """What the runner said, or how it died."""
        done = self._wait_for(command(job))
        return _read_answer(done)


def _read_answer(done: Done) -> Outcome:
    """What the runner printed, or how it died."""
    try:
        answer = json.loads(done.stdout)
        return Outcome(
            error=answer["error"],
            error_kind=answer["error_kind"],
            task=answer["task"],
            cpus=answer["cpus"],
            answer=answer,
            away_ns=answer["away_ns_max"],
            log=done.stderr,
            timer_late_ns=answer["timer_late_ns_max"],
            clock={
                name: answer[name] for name in ("clock_ns", "idle_clock_ns", "switch_clock_ns", "taken_ns")
            },
        )
    except (ValueError, KeyError, TypeError):
        pass
    last = done.stderr[-STDERR_BYTES_KEPT:].strip()
    is_signal = done.status < 0
    how = f"signal {-done.status} ({signal.strsignal(-done.status)})" if is_signal else f"code {done.status}"
    return Outcome(
        error=f"the run was ended by {how} and gave no result{': ' + last if last else ''}",
        error_kind="crash",
        log=done.stderr,
    )
