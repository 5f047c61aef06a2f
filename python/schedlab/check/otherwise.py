# SPDX-License-Identifier: MIT
"""How long a task would have waited had a knob, or the machine, been another: what `schedlab explain --what-if` says.

        run folder -> the same run with one thing changed -> its records -> the task's longest wait

Each knob is tried at half and at twice its value, or at each other value that has a name; and the machine with a
CPU more, and one less. Tasks do what they did: those that others wake may be woken at other times.

Invariant: each number is of a run that was done.
Read next: calls.py, which does a run again, too.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import SchedlabError
from ..hosts.host import Job
from ..hosts.kinds import job_arguments
from ..hosts.sim import program_of
from ..metrics.cause import longest_wait
from ..metrics.timeline import Timeline
from ..policy.find import Knob, show_value
from ..records.file import read_records
from ..stats.sentences import show_time
from .debug import SECONDS_MAX, do_again, job_again, read_run


@dataclass(frozen=True)
class Otherwise:
    """What came of a change."""

    change: str  #: Such as `slice_ns=2ms`, or `3 CPUs`.
    wait_ns: int | None  #: The task's longest wait; None: the run failed.
    error: str = ""  #: How it failed.

    @property
    def sentence(self) -> str:
        """What a person reads."""
        if self.wait_ns is None:
            return f"With {self.change} the run fails: {self.error}"
        if not self.wait_ns:
            return f"With {self.change} it would not have waited."
        return f"With {self.change} it would have waited {show_time(self.wait_ns)} at most."

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return asdict(self)


def what_if(folder: Path, pid: int) -> list[Otherwise]:
    """Do a run of a folder again, each time with one change, and look at how long a task waits."""
    run = read_run(folder)
    found = []
    with tempfile.TemporaryDirectory(prefix="schedlab-what-if-") as scratch:
        records = Path(scratch) / "records.slr"
        job = do_again(folder, run, job_again(folder, run, records), _outcome)
        for change, other in _changed(job):
            records.unlink(missing_ok=True)
            outcome = _outcome(other)
            if outcome is None:
                continue
            if outcome.get("error"):
                found.append(Otherwise(change, None, outcome["error"].partition("\n")[0]))
                continue
            timeline = Timeline(read_records(records))
            there = pid in timeline.by_task.keys.tolist()
            stretch = longest_wait(timeline, pid) if there else None
            found.append(Otherwise(change, stretch.end_ns - stretch.begin_ns if stretch else 0))
    return found


def _changed(job: Job) -> Iterator[tuple[str, Job]]:
    """Jobs that differ in one thing, each with what it is called."""
    policy = job.policy.policy
    for name, knob in policy.knobs.items():
        value = job.policy.values[name]
        for other in _others(knob, value):
            built = replace(job.policy, values=job.policy.values | {name: other})
            yield f"{name}={show_value(knob, other)}", replace(job, policy=built)
    if not dict(job.options).get("--topology"):
        for n_cpus in (job.n_cpus - 1, job.n_cpus + 1):
            if n_cpus:
                yield f"{n_cpus} CPU{'' if n_cpus == 1 else 's'}", replace(job, n_cpus=n_cpus)


def _others(knob: Knob, value: int) -> list[int]:
    """Other values of a knob."""
    if knob.names or knob.unit == "bool":
        return [other for other in (knob.names.values() or (0, 1)) if other != value]
    half_and_twice = (max(knob.minimum, value // 2), min(knob.maximum, value * 2))
    return [other for other in half_and_twice if other != value]


def _outcome(job: Job) -> dict[str, Any] | None:
    """What the simulator says of a job; None where it can not be done, as with too few CPUs."""
    words = [str(program_of(job)), "--policy", str(job.policy.shared_object), *job_arguments(job)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
        answer: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise SchedlabError(f"the run had not ended after {SECONDS_MAX} s") from error
    except ValueError:
        return None
    return None if answer.get("error_kind") in ("usage", "program") else answer
