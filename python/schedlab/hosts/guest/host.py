# SPDX-License-Identifier: MIT
"""Run policies in a real Linux kernel: the host `guest` of `schedlab run`.

Each run is a copy of a machine that was booted once (boot.py), so equal jobs
are equal bit by bit while instructions are counted. `--parallel` lets time be
this machine's instead, and its CPUs where KVM boots the guest; else the emulator
runs CPUs in turns all the same.

The kernel's tick is what it was built with (4 ms in Debian's), so the tick of a
workload does not count here; `run.json` says which one did. Random numbers are the
kernel's: the seed draws the program, not the policy's luck.

Must stay true: whatever the guest does, the caller gets an outcome within the time
limit, and no QEMU is left behind.
Read next: policies.py, what a job is; records/ftrace.py.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import SchedlabError
from ...policy.elf import ElfFile
from ...program.file import read_program
from ...records.file import write_records
from ...records.ftrace import printed_lines, trace_records
from ..host import Job, Outcome
from ..kernel.boot import qemu_version
from ..kinds import EmulatedHost, device_of, job_arguments, settings_of, too_large, with_program_pids
from ..process import not_done, timed_out
from ..user_half import image_of
from .boot import CPUS_MAX, QEMU, GuestRunner, on_own_cpus
from .frames import Answer
from .policies import (
    LEAD_MS,
    LEAD_MS_LONG,
    GuestTask,
    guest_system,
    job_files,
    read_answers,
    spans_of,
    unavailable_reason,
)
from .verify import reason_of

if TYPE_CHECKING:
    from ...program.file import Program

#: The guest forks them one by one before time 0.
TASKS_MAX = 4000
#: How the error of a policy begins that did not come to run.
REFUSED = "refused by Linux: "
#: What a scheduler's own program may need of memory, with its files, as much as a policy with such data.
LOADER_BYTES = 100 << 20
#: Lines of what it said last that an error shows.
SAID_LINES = 12


@dataclass(frozen=True)
class GuestHost(EmulatedHost):
    """Linux with sched_ext in a virtual machine."""

    kernel: Path | None = None  #: A kernel image; None: Debian's.
    name = "guest"
    options = frozenset({"above", "io", "is_parallel", "kernel", "offline", "topology"})
    LATENCY_ONE_NS = 200_000
    LATENCY_PARALLEL_NS = 100_000_000
    TOLERANCE_ONE_NS = 50_000

    def unavailable(self) -> str | None:
        """Why the guest cannot be used here, or None; fetches nothing."""
        return unavailable_reason()

    def environment(self) -> dict[str, Any]:
        """Package or file of the kernel, and QEMU; fetches the kernel if it must."""
        _, parts = guest_system(kernel=self.kernel)
        return {"guest_kernel": parts.kernel_version, "qemu": qemu_version(QEMU)}

    def lead_ms(self, job: Job) -> int:
        """How long before time 0 of its program the policy is attached, in ms."""
        if job.policy.loader:
            # It goes on beginning when its scheduler is attached.
            return LEAD_MS_LONG
        return LEAD_MS if job.n_cpus == 1 and not self.is_parallel else LEAD_MS_LONG

    def session(self, *, timeout_seconds: float) -> GuestSession:
        """Open a connection for one worker."""
        return GuestSession(self, timeout_seconds=timeout_seconds)


class GuestSession:
    """One worker's machines, one after the other.

    `timeout_seconds` is the longest time on the wall clock that one run may take.
    """

    def __init__(self, host: GuestHost, *, timeout_seconds: float):
        self.host = host
        self.timeout_seconds = timeout_seconds
        self._runner = GuestRunner()

    def run(self, job: Job) -> Outcome:
        """Have a machine do one job, and wait until it is off."""
        try:
            return self._run(job)
        except (SchedlabError, OSError) as error:
            return not_done(error)

    def interrupt(self) -> None:
        """End the machine under way; its job comes back as failed. From any thread."""
        self._runner.interrupt()

    def close(self) -> None:
        """End what is left."""
        self._runner.interrupt()

    def _run(self, job: Job) -> Outcome:
        problem = too_large(job, "the guest", cpus_max=CPUS_MAX, tasks_max=TASKS_MAX)
        if problem:
            return Outcome(error=problem, error_kind="usage")
        program = job.program.read_bytes()
        loader = job.policy.loader
        task = GuestTask(
            job.label,
            b"" if loader else job.policy.shared_object.read_bytes(),
            knobs=settings_of(job),
            program=program,
            device=device_of(job),
            loader=loader,
            image=image_of(job.policy, job_arguments(job, {"--topology"})),
            above=spans_of(dict(job.options).get("--above", "")),
            offline=spans_of(dict(job.options).get("--offline", "")),
            weight=spans_of(dict(job.options).get("--weight", "")),
            quota=spans_of(dict(job.options).get("--quota", "")),
            lead_ms=self.host.lead_ms(job),
        )
        system, _ = guest_system(
            kernel=self.host.kernel,
            n_cpus=job.n_cpus,
            is_counted=not self.host.is_parallel,
            data_bytes=LOADER_BYTES if loader else _data_bytes(job),
            topology=dict(job.options).get("--topology", ""),
        )
        if self.host.is_parallel:
            system = on_own_cpus(system, self._runner)
        said = self._runner.run(system, job_files([task]), timeout_s=self.timeout_seconds)
        if self._runner.is_interrupted:
            return Outcome(error="interrupted", error_kind="host")
        (answer,) = read_answers([task], said, timeout_s=self.timeout_seconds)
        if said.has_timed_out:
            return timed_out(self.timeout_seconds)
        outcome = _outcome(job, answer, read_program(program))
        outcome.environment["is_kvm"] = system.is_kvm
        return outcome


def _data_bytes(job: Job) -> int:
    """Of the variables of a policy."""
    return sum(size for _, _, size in ElfFile(job.policy.shared_object).variables())


def _outcome(job: Job, answer: Answer, program: Program) -> Outcome:
    """Make an outcome, and the record file, of what the guest said."""
    about: dict[str, Any] = {
        "answer": {"instructions": answer.instructions, "kernel_text": answer.kernel_text},
        "environment": {"uname": answer.uname, "verifier_instructions": answer.instructions},
        "tick_ns": answer.tick_ns or None,
    }
    loader = job.policy.loader
    if loader:
        about["answer"] |= {"ops": answer.ops, "status": answer.status}
        about["log"] = answer.output.decode(errors="replace")
        if not answer.is_attached and not answer.fatal:
            return Outcome(error=_never(answer, loader.argv[0]), error_kind="policy", **about)
    if answer.refusal:
        return Outcome(error=REFUSED + reason_of(answer.refusal), error_kind="policy", **about)
    if answer.fatal or answer.trace is None:
        why = "; ".join(answer.fatal) or "the guest played nothing"
        return Outcome(error=why, error_kind="host", **about)
    about["log"] = "\n".join([*filter(None, [about.get("log")]), *printed_lines(answer.trace)])
    answer.trace.has_user_half = bool(loader)
    events, end_ns = trace_records(answer.trace)
    write_records(job.records, events, n_cpus=job.n_cpus, tick_ns=answer.tick_ns, end_ns=end_ns)
    about["answer"] |= {"nr_exited": program.n_tasks - answer.n_left, "end_ns": end_ns}
    names = [program.string(int(row["name"])) for row in program.task_rows]
    error = _of_loader(answer, loader.argv[0]) if loader else answer.error
    if error:
        text, task = with_program_pids(error, answer.trace.tasks, names)
        return Outcome(error=text, error_kind=answer.error_kind or "policy", task=task, **about)
    for task, code in answer.results.items():
        return Outcome(
            error=f"{names[task]}[{task + 1}] ended with error {-code} ({os.strerror(abs(code))})",
            error_kind="program",
            task=task + 1,
            **about,
        )
    return Outcome(**about)


def _said(answer: Answer) -> str:
    """The end of what a scheduler's own program printed."""
    lines = answer.output.decode(errors="replace").strip().splitlines()
    return "\n".join(["; it said last:", *lines[-SAID_LINES:]] if lines else ["; it said nothing"])


def _how_it_ended(answer: Answer) -> str:
    """Its exit status, or the signal that ended it."""
    if answer.status is None:
        return "did not end"
    return (
        f"ended with status {answer.status}"
        if answer.status >= 0
        else f"was ended by signal {-answer.status}"
    )


def _never(answer: Answer, program: str) -> str:
    """Why a program has given the kernel no scheduler."""
    if answer.silent_ms:
        what = (
            f"had loaded no scheduler after {answer.silent_ms / 1000:g} s of the guest's time, and was killed"
        )
    else:
        what = f"{_how_it_ended(answer)} before it had loaded a scheduler"
    kernel = f"\nthe kernel said:\n{answer.kernel_text.strip()}" if answer.kernel_text.strip() else ""
    return f"{program} {what}{_said(answer)}{kernel}"


def _of_loader(answer: Answer, program: str) -> str | None:
    """What went wrong with a program that had loaded its scheduler."""
    if answer.is_early and "unregistered" in answer.disabled_reason:
        return (
            f"{program} {_how_it_ended(answer)} before the workload did, whose tasks then ran under Linux's "
            f"own scheduler{_said(answer)}"
        )
    if answer.error:
        return f"{answer.error}{_said(answer)}"
    if answer.silent_ms:
        return f"{program} had not ended {answer.silent_ms / 1000:g} s after SIGINT, and was killed{_said(answer)}"
    return None
