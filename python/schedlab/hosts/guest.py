# SPDX-License-Identifier: MIT
"""Run policies in a real Linux kernel with sched_ext, in a small virtual machine.

The guest is a distribution kernel in QEMU with one program as its user space
(hosts/linux/guest/). One boot, of about two seconds of guest time, does any
number of tasks: load a policy and hold it, or play a workload under it. The
machine counts instructions instead of time, which makes a run the same every
time. With more than one CPU it runs them in turns of up to a millisecond, so
that a wake-up on another CPU may be that late, and a task that looks at its own
CPU time sees it that coarsely: good for finding faults, not for measuring.

Must stay true: whatever the guest does, or does not do, the caller gets an
answer within the time limit, and no QEMU is left behind.
Read next: ../ftrace.py, which makes records of what the guest's kernel saw.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import HostError, UnavailableError
from ..ftrace import Trace
from .guest_build import build_init, find_bpf_compiler, make_initramfs
from .guest_image import fetch_guest_parts

QEMU = "qemu-system-x86_64"
#: HZ of the guest's kernel is 250.
TICK_NS = 4_000_000
MEMORY_MIB = 512
#: Nanoseconds per instruction, as a power of two. A run is played by a CPU of
#: 1,000 million instructions a second; loading alone may be four times slower,
#: and costs the emulator a quarter of the time per guest second.
ICOUNT_SHIFT_PLAY, ICOUNT_SHIFT_LOAD = 0, 2
#: horizon_ns in the header of a program; include/schedlab/program.h.
HORIZON, HORIZON_OFFSET = struct.Struct("<Q"), 32
KERNEL_ARGUMENTS = (
    "console=ttyS0 quiet panic=-1 nokaslr norandmaps random.trust_cpu=off cryptomgr.notests "
    "nowatchdog audit=0 damon_stat.enabled=N"
)


@dataclass(frozen=True)
class GuestTask:
    """One thing for the guest to do.

    Attributes
    ----------
    name : str
        For messages.
    policy : bytes
        BPF object file.
    knobs : dict of str to int
        Values of the policy's `const volatile` globals.
    program : bytes or None
        A workload program to play under the policy; None: only hold it.
    hold_ms : int
        Without a program: how long to leave the CPUs to the policy, in
        milliseconds.
    """

    name: str
    policy: bytes
    knobs: dict[str, int] = field(default_factory=dict)
    program: bytes | None = None
    hold_ms: int = 100


@dataclass
class GuestAnswer:
    """What the guest says about one task.

    Attributes
    ----------
    name : str
        The task's name.
    is_loaded : bool
        Whether the kernel accepted the policy.
    refusal : str
        Why it did not: the verifier's text with the source line; else empty.
    instructions : dict of str to int
        How many instructions the verifier processed, per callback.
    ended_by : str
        `"by us"`, `"by the kernel"` (it was thrown out), or empty.
    kernel_text : str
        The kernel's lines about sched_ext while the policy was attached.
    trace : Trace or None
        What the scheduler did while a program was played.
    played_ns : int
        How long the program took, in nanoseconds.
    nr_left : int
        Tasks of the program that had not ended when the horizon came.
    results : dict of int to int
        Tasks of the program that ended with an error: index to error number.
    fatal : list of str
        What went wrong in the guest itself.
    """

    name: str
    is_loaded: bool = False
    refusal: str = ""
    instructions: dict[str, int] = field(default_factory=dict)
    ended_by: str = ""
    kernel_text: str = ""
    trace: Trace | None = None
    played_ns: int = 0
    nr_left: int = 0
    results: dict[int, int] = field(default_factory=dict)
    fatal: list[str] = field(default_factory=list)

    @property
    def disabled_reason(self) -> str:
        """Why the kernel ended the policy, such as `"runnable task stall"`."""
        found = re.search(r"disabled \((.*)\)", self.kernel_text)
        return found[1] if found else ""


def unavailable_reason() -> str | None:
    """Why the guest cannot be used here, without fetching anything.

    Returns
    -------
    str or None
        The reason with its remedy, or None.
    """
    if shutil.which(QEMU) is None:
        return (
            f"{QEMU} is missing; to have it: ./lab setup, or sudo apt-get install qemu-system-x86"
        )
    try:
        find_bpf_compiler()
    except UnavailableError as error:
        return str(error)
    return None


def run_guest(tasks: list[GuestTask], *, cpus: int = 1, timeout_s: float = 240.0) -> list[GuestAnswer]:
    """Boot the guest once and have it do all tasks.

    Parameters
    ----------
    tasks : list of GuestTask
        In order.
    cpus : int, default 1
        CPUs of the guest, 1 to 8. Times are meaningful with one CPU only.
    timeout_s : float, default 240
        Longest time on the wall clock; then QEMU is ended.

    Returns
    -------
    list of GuestAnswer
        One per task, in order; those that the guest did not come to are not
        loaded and say so in `fatal`.

    Raises
    ------
    UnavailableError
        If QEMU, clang or the kernel cannot be had; with the remedy.
    HostError
        If the kernel did not boot; with the end of its messages.
    """
    reason = unavailable_reason()
    if reason:
        raise UnavailableError(reason)
    parts = fetch_guest_parts()
    files = {"init": build_init(parts), "job": _job_text(tasks).encode()}
    for index, task in enumerate(tasks):
        files[f"p/{index}.bpf.o"] = task.policy
        if task.program is not None:
            files[f"w/{index}"] = task.program
    with tempfile.TemporaryDirectory(prefix="schedlab-guest-") as name:
        folder = Path(name)
        (folder / "initrd").write_bytes(make_initramfs(files))
        plays = any(task.program is not None for task in tasks)
        machine = _machine(cpus, ICOUNT_SHIFT_PLAY if plays else ICOUNT_SHIFT_LOAD)
        timed_out = _boot(parts.kernel, folder, machine, timeout_s)
        frames = read_frames((folder / "frames").read_bytes())
        console = (folder / "console").read_text(errors="replace")
    if not frames:
        raise HostError(
            f"the guest's kernel {parts.kernel_version} did not start"
            + (f" within {timeout_s:g} s" if timed_out else "")
            + f"; the end of its messages:\n{console[-2000:]}"
        )
    answers = _read_answers(tasks, frames)
    if frames[-1][0] != "done":
        why = f"no end after {timeout_s:g} s" if timed_out else "the guest stopped"
        last = next((a for a in answers if not a.is_loaded and not a.refusal), answers[-1])
        last.fatal.append(f"{why}; the end of the kernel's messages:\n{console[-2000:]}")
    return answers


def _job_text(tasks: list[GuestTask]) -> str:
    """The file that the guest's program reads."""
    lines = []
    for index, task in enumerate(tasks):
        lines.append(f"policy /p/{index}.bpf.o")
        lines += [f"set {knob} {value % 2**64}" for knob, value in task.knobs.items()]
        if task.program is None:
            lines.append(f"hold {task.hold_ms}")
        else:
            lines.append(f"play /w/{index}")
    return "\n".join(lines) + "\n"


def _machine(cpus: int, icount_shift: int) -> list[str]:
    """QEMU words for CPUs that count instructions instead of time."""
    return [
        "-accel", "tcg", "-icount", f"shift={icount_shift},sleep=off",
        "-rtc", "clock=vm,base=2026-01-01", "-cpu", "max,-rdrand,-rdseed",
        "-smp", str(cpus), "-seed", "1",
    ]  # fmt: skip


def _boot(kernel: Path, folder: Path, machine: list[str], timeout_s: float) -> bool:
    """Run QEMU to its end, or to the time limit; whether that was it."""
    command = [
        QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-m", str(MEMORY_MIB), "-nic", "none", *machine,
        "-kernel", str(kernel), "-initrd", str(folder / "initrd"), "-append", KERNEL_ARGUMENTS,
        "-chardev", f"file,id=console,path={folder / 'console'}", "-serial", "chardev:console",
        "-chardev", f"file,id=frames,path={folder / 'frames'}",
        "-device", "isa-debugcon,iobase=0xe9,chardev=frames",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    timed_out = False
    try:
        _, said = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            _, said = process.communicate()
    if timed_out:
        return True
    if process.returncode:
        raise HostError(f"{QEMU} ended with {process.returncode}: {said.strip()}")
    return False


def read_frames(data: bytes) -> list[tuple[str, bytes]]:
    """Take the guest's answers apart.

    Parameters
    ----------
    data : bytes
        All that came out of the debug port; may end in the middle of a frame.

    Returns
    -------
    list of (str, bytes)
        Name and contents of each whole frame.

    Examples
    --------
    >>> read_frames(b"boot 3\\n7.2\\npage 0 100\\ncut")
    [('boot', b'7.2')]
    """
    frames = []
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        head = data[at:end].decode(errors="replace")
        name, _, count = head.rpartition(" ")
        if not name or not count.isdigit():
            raise HostError(f"the guest's answer cannot be read at byte {at}: {head[:80]!r}")
        start = end + 1
        if start + int(count) + 1 > len(data):
            break
        frames.append((name, data[start : start + int(count)]))
        at = start + int(count) + 1
    return frames


def _read_answers(tasks: list[GuestTask], frames: list[tuple[str, bytes]]) -> list[GuestAnswer]:
    """Sort the frames by task."""
    answers = [GuestAnswer(task.name) for task in tasks]
    formats = {name.removeprefix("format "): text.decode() for name, text in frames
               if name.startswith("format ")}  # fmt: skip
    index = -1
    for name, contents in frames:
        if name == "policy":
            index += 1
        elif index >= 0 or name == "fatal":
            _read_frame(answers[max(index, 0)], formats, name, contents)
    for task, answer in zip(tasks, answers, strict=True):
        if answer.trace is not None and answer.nr_left:
            # The guest needs a moment to see that the time has come.
            (horizon_ns,) = HORIZON.unpack_from(task.program, HORIZON_OFFSET)
            answer.trace.end_ns = min(answer.trace.end_ns, horizon_ns)
    return answers


def _read_frame(answer: GuestAnswer, formats: dict, name: str, contents: bytes) -> None:
    """Add one frame to the answer that it belongs to."""
    text = contents.decode(errors="replace") if not name.startswith("page ") else ""
    kind, _, number = name.partition(" ")
    if kind == "program":
        head, _, log = text.partition("\n")
        callback, count = head.split()
        answer.instructions[callback] = int(count)
        # The verifier stops at the first bad one, so the last log is that one's.
        answer.refusal = log
    elif kind == "refused":
        answer.refusal += text
    elif kind == "loaded":
        answer.is_loaded, answer.refusal = True, ""
    elif kind == "ended":
        answer.ended_by = text
    elif kind == "kernel":
        answer.kernel_text = text
    elif kind == "fatal":
        answer.fatal.append(text)
    elif kind == "result":
        task, code = text.split()
        answer.results[int(task)] = int(code)
    elif kind in ("task", "played", "page", "stats"):
        _read_play_frame(answer, formats, kind, number, text, contents)


def _read_play_frame(answer, formats, kind: str, number: str, text: str, contents: bytes) -> None:
    """Add a frame about a program that was played."""
    if answer.trace is None:
        answer.trace = Trace(formats=formats)
    trace = answer.trace
    if kind == "task":
        task, pid = text.split()
        trace.tasks[int(pid)] = int(task) + 1
    elif kind == "played":
        start, played, left, _state = text.split(maxsplit=3)
        trace.start_ns, answer.played_ns, answer.nr_left = int(start), int(played), int(left)
        trace.end_ns = answer.played_ns
    elif kind == "page":
        trace.pages.setdefault(int(number), []).append(contents)
    elif kind == "stats":
        found = re.search(r"dropped events: (\d+)", text)
        trace.nr_lost += int(found[1]) if found else 0
