# SPDX-License-Identifier: MIT
"""Run policies in the teaching kernel: a machine of its own per run, in QEMU.

The kernel is built with all policies linked in (build.py), booted without
a screen, plays one workload, says what happened through a virtio port, and goes
off. The machine counts instructions instead of time (`-icount`): one instruction
takes one nanosecond, so equal jobs are equal bit by bit, and what scheduling costs
is counted exactly. Its disk is in RAM, since a real one answers when this machine
gets round to it.

With several CPUs the emulator runs them in turns, one at a time, each until a timer is
due: still the same every time, but between any two instructions of a CPU the others may
have had a tick each, and that is how late it can be. `--parallel` gives each
CPU a thread of this machine instead; then times are real, and no run is repeated.

Must stay true: whatever the kernel does, or does not do, the caller gets an
outcome within the time limit, and no QEMU is left behind.
Read next: frames.py, what the kernel says; hosts/kernel/user/play.c.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...calibration import Calibration
from ...errors import HostError
from ...paths import policies_folder
from ...program.file import read_program
from ...records.file import write_records
from ..host import Job, Outcome
from ..kinds import EmulatedHost, device_of, settings_of, too_large, with_program_pids
from ..process import ProcessSession, timed_out
from . import boot as kernel_boot
from . import build as kernel_build
from .boot import CPUS_MAX, QEMU, Machine, qemu_version
from .frames import Sent, played_records, read_frames, read_overhead

TASKS_MAX = 4000
#: Processes besides those of the workload: init, play, and some to spare.
PROCS_SPARE = 16
#: BOOTARGS_MAX of the kernel, its 0 included.
ARGUMENTS_BYTES_MAX = 1023
CONSOLE_LINES_KEPT = 20
#: How often all other CPUs may have their turns while a counted one does what is one
#: moment to the scheduler: when its own turn ends there, and once for each lock that
#: it waits for or timer that it sets meanwhile (both end a turn, too).
ROUNDS_MAX = 3
#: One unit of work in picoseconds, an instruction being a nanosecond: what the
#: compiled loops of player/work.c execute, measured by `./lab selfbench kernel`.
CALIBRATION = Calibration(pi_ps=8_000, matmul_ps=22_125, spin_ps=2_000)


@dataclass(frozen=True)
class KernelHost(EmulatedHost):
    """The teaching kernel as a host."""

    name = "kernel"
    options = frozenset({"io", "is_parallel", "tick_ns", "topology"})
    LATENCY_ONE_NS = 100_000
    LATENCY_PARALLEL_NS = 50_000_000
    TOLERANCE_ONE_NS = 20_000

    def latency_ns(self, job: Job) -> int:
        """Longest time from the moment a task may run on an idle CPU until it runs there."""
        if self.is_parallel:
            return self.LATENCY_PARALLEL_NS
        return self.LATENCY_ONE_NS + rounds_ns(job)

    def tolerance_ns(self, job: Job) -> int:
        """Error of the clock on one interval: two looks at it for one moment."""
        if self.is_parallel:
            return self.TOLERANCE_MANY_NS
        return self.TOLERANCE_ONE_NS + rounds_ns(job)

    def unavailable(self) -> str | None:
        """Why the kernel cannot be used here, or None."""
        return kernel_boot.unavailable()

    def environment(self) -> dict[str, Any]:
        """Kernel and QEMU: with equal ones, equal jobs give equal runs."""
        return {"kernel_hash": kernel_build.build_kernel().hash, "qemu": qemu_version()}

    def calibration(self, job: Job) -> Calibration | None:
        """Known only while instructions are counted, by one CPU."""
        return None if self.is_parallel or job.n_cpus > 1 else CALIBRATION

    def session(self, *, timeout_seconds: float) -> KernelSession:
        """Open a connection for one worker."""
        return KernelSession(timeout_seconds=timeout_seconds, is_parallel=self.is_parallel)


class KernelSession(ProcessSession):
    """One worker's machines, one after the other.

    `is_parallel` takes a thread for each CPU, and real time. Without `image`, the kernel is booted with the
    job's policy linked in. `confined` begins the command, where QEMU may open only some files; each machine
    has a folder in `folder`, or where temporary files are. A run may take `timeout_seconds` on the wall
    clock.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float,
        is_parallel: bool = False,
        image: kernel_build.KernelImage | None = None,
        confined: Sequence[str] = (),
        folder: Path | None = None,
    ):
        super().__init__(timeout_seconds=timeout_seconds)
        self.is_parallel = is_parallel
        self._image = image
        self._confined = confined
        self._folder = folder

    def _run(self, job: Job) -> Outcome:
        """Boot a machine for one job, and wait until it is off."""
        with tempfile.TemporaryDirectory(prefix="schedlab-kernel-", dir=self._folder) as name:
            return self._run_in(Path(name), job)

    def run_program(self, words: str, *, n_cpus: int, policy: str) -> tuple[Outcome | None, str]:
        """Run a program of the session's image in place of a workload.

        `words` are its path on the disk and its arguments, `policy` names one that is linked in. Why it did
        not end with status 0, if so; what was on the console.
        """
        assert self._image is not None
        with tempfile.TemporaryDirectory(prefix="schedlab-kernel-", dir=self._folder) as name:
            console = Path(name) / "console"
            arguments = {"policy": policy, "run": words}
            machine = Machine(self._image, n_cpus=n_cpus, arguments=arguments, extra=("-seed", "1"))
            try:
                how = self._boot(kernel_boot.machine_command(machine, console=f"file:{console}"))
            except TimeoutError:
                how = timed_out(self.timeout_seconds)
            return how, console.read_text(errors="replace") if console.exists() else ""

    def _run_in(self, folder: Path, job: Job) -> Outcome:
        """Do one job with its files in `folder`."""
        problem = too_large(job, "the teaching kernel", cpus_max=CPUS_MAX, tasks_max=TASKS_MAX)
        if problem:
            return Outcome(error=problem, error_kind="usage")
        image = self._image or image_for(Path(job.policy.policy.path))
        program = job.program.read_bytes()
        ramdisk = write_initrd(folder / "initrd", program, image.filesystem.read_bytes())
        arguments = _arguments(job, ramdisk, read_program(program).n_tasks)
        n_bytes = len(kernel_boot.boot_arguments(arguments))
        if n_bytes > ARGUMENTS_BYTES_MAX:
            return Outcome(
                error=f"{n_bytes} bytes of settings are more than the kernel takes "
                f"({ARGUMENTS_BYTES_MAX}); use a policy with fewer knobs",
                error_kind="usage",
            )
        command = job_command(
            image, folder, n_cpus=job.n_cpus, arguments=arguments, is_parallel=self.is_parallel
        )
        how = self._boot(command)
        console = (folder / "console").read_text(errors="replace")
        if how is not None and how.error_kind != "crash":
            return how
        sent = read_frames((folder / "channel").read_bytes())
        return replace(outcome_of(job, sent, console, ended_badly=how), log="\n".join(sent.said("print")))

    def _boot(self, command: list[str]) -> Outcome | None:
        """Run the machine until it is off; None if it went off by itself and well."""
        done = self._wait_for([*self._confined, *command])
        said = done.stderr.strip()
        if done.status < 0 or said:
            return Outcome(error=f"{QEMU} ended with {done.status}: {said}", error_kind="host")
        if done.status:
            return Outcome(error=f"the machine went off with status {done.status}", error_kind="crash")
        return None


def rounds_ns(job: Job) -> int:
    """Longest time that other CPUs' turns take within one moment of a counted CPU.

    A turn ends with the tick of whoever has it, if nothing ends it before.
    """
    return ROUNDS_MAX * (job.n_cpus - 1) * job.tick_ns


def image_for(policy: Path) -> kernel_build.KernelImage:
    """Build the kernel for a policy, or find it in the cache."""
    is_ours = policy.resolve().parent == policies_folder().resolve()
    return kernel_build.build_kernel([] if is_ours else [policy])


# ---- what the machine is given ----------------------------------------------


def write_initrd(path: Path, program: bytes, disk: bytes) -> int:
    """Write what the machine is given beside the kernel: the job, then the disk."""
    at = (len(program) + 4095) // 4096 * 4096
    path.write_bytes(program.ljust(at, b"\0") + disk)
    return at


def _arguments(job: Job, ramdisk: int, n_tasks: int) -> dict[str, str]:
    """The kernel's boot arguments."""
    shown = {}
    for option, value in job.options:
        if option == "--topology":
            shown = {key: size for key, _, size in (part.partition("=") for part in value.split(","))}
    io = ",".join(map(str, device_of(job)))
    name = Path(job.policy.policy.path).name.removesuffix(".bpf.c")
    knobs = [f"{knob}={value}" for knob, value in settings_of(job).items()]
    return {
        "tick_ns": str(job.tick_ns),
        "seed": str(job.seed),
        "overhead": "1",
        "ramdisk": str(ramdisk),
        "procs_max": str(max(64, n_tasks + PROCS_SPARE)),
        **shown,
        "run": " ".join(["/play", "-t", str(job.tick_ns), "-i", io, "-c", str(job.n_cpus), name, *knobs]),
    }


def job_command(
    image: kernel_build.KernelImage,
    folder: Path,
    *,
    n_cpus: int,
    arguments: dict[str, str],
    is_parallel: bool = False,
) -> list[str]:
    """Write QEMU's command line for a machine that does a job."""
    channel = (
        "-seed",
        "1",
        "-device",
        "virtio-serial-device",
        "-chardev",
        f"file,id=channel,path={folder / 'channel'}",
        "-device",
        "virtconsole,chardev=channel",
    )
    machine = Machine(
        image,
        n_cpus=n_cpus,
        arguments=arguments,
        is_counted=not is_parallel,
        job=folder / "initrd",
        extra=channel,
    )
    return kernel_boot.machine_command(machine, console=f"file:{folder / 'console'}")


# ---- what it said -----------------------------------------------------------


def outcome_of(job: Job, sent: Sent, console: str, *, ended_badly: Outcome | None = None) -> Outcome:
    """Make an outcome, and the record file, of what a machine left."""
    answer: dict[str, Any] = {
        "overhead": read_overhead(sent.said("overhead")),
        "counted": _counts(sent.said("counted")),
        "lines": sent.said("print"),
        "console": _tail(console),
    }
    refused = sent.said("refused")
    if refused:
        return Outcome(error=refused[0], error_kind="policy", answer=answer)
    if ended_badly is not None or sent.status is None:
        how = ended_badly.error if ended_badly else "the machine went off before its job was done"
        return Outcome(
            error=f"{how}; the end of its console:\n{_tail(console)}", error_kind="crash", answer=answer
        )
    program = read_program(job.program.read_bytes())
    names = [program.string(int(row["name"])) for row in program.task_rows]
    parent = program.task_rows["parent"].astype("int64")
    parents = (parent + 1) * (parent < program.n_tasks)
    try:
        played = played_records(sent, parents)
    except HostError as error:
        return Outcome(
            error=f"{error}; the end of its console:\n{_tail(console)}", error_kind="host", answer=answer
        )
    write_records(job.records, played.events, n_cpus=job.n_cpus, tick_ns=job.tick_ns, end_ns=played.end_ns)
    answer |= {"nr_exited": played.n_exited, "end_ns": played.end_ns}
    return _judged(sent, played, names, answer)


def _judged(sent: Sent, played: Any, names: list[str], answer: dict[str, Any]) -> Outcome:
    """What the policy or the workload did wrong, if anything."""
    for line in sent.said("failed"):
        kind, _code, pid, reason = line.split(" ", 3)
        task = played.tasks.get(int(pid))
        if reason.startswith("unregistered from BPF"):
            continue
        reason, _ = with_program_pids(reason, played.tasks, names)
        return Outcome(
            error=reason,
            error_kind="stall" if "stall" in reason.partition(":")[0] else "policy",
            task=task,
            answer=answer | {"exit_kind": int(kind)},
        )
    for line in sent.said("deadlock"):
        pid, reason = line.split(" ", 1)
        reason, _ = with_program_pids(reason, played.tasks, names)
        return Outcome(error=reason, error_kind="deadlock", task=played.tasks.get(int(pid)), answer=answer)
    for line in sent.said("result"):
        task, code, op = map(int, line.split())
        return Outcome(
            error=f"{names[task]}[{task + 1}] ended at op {op} of its program with error {code}",
            error_kind="program",
            task=task + 1,
            answer=answer,
        )
    return Outcome(answer=answer)


def _counts(lines: list[str]) -> dict[str, Any]:
    """Read `name=number` pairs of the last line."""
    pairs = (item.partition("=") for item in (lines[-1].split() if lines else ()))
    return {name: int(value) for name, _, value in pairs}


def _tail(console: str) -> str:
    """The last lines of a console."""
    return "\n".join(console.replace("\r", "").strip().splitlines()[-CONSOLE_LINES_KEPT:])
