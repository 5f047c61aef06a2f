# SPDX-License-Identifier: MIT
"""Have policies loaded by a real Linux kernel with sched_ext, many in one machine.

The guest is a distribution kernel in QEMU with one program as its user space
(hosts/linux/guest/). One machine does any number of tasks one after the other: load
a policy and hold it, play a workload under it, or run a program. It counts
instructions instead of time, which makes a run the same every time. With more than
one CPU it runs them in turns of up to a millisecond, so that a wake-up on another
CPU may be that late, and a task that looks at its own CPU time sees it that
coarsely: good for finding faults, not for measuring.

Must stay true: a task that fails keeps none from being done.
Read next: host.py, one run of `schedlab run`; records/ftrace.py, which makes
records of what the guest's kernel saw.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import HostError, UnavailableError, UsageError
from ...model import parse_topology
from ...policy.bpf import find_bpf_compiler
from .boot import QEMU, GuestRunner, GuestSystem, Said
from .build import build_program
from .frames import Answer, read_frames
from .image import GuestParts, fetch_guest_parts
from .vmlinux import refuse_unusable

if TYPE_CHECKING:
    from ...policy.loader import Loader

#: HZ of Debian's kernel is 250.
TICK_NS = 4_000_000
#: From attaching a policy to time 0 of a program: with one CPU whose instructions
#: are counted, and where attaching may take longer. Periods of 60, 30, 20 and 10 ms
#: divide both, so that a policy's timer is in phase.
LEAD_MS, LEAD_MS_LONG = 60, 600
#: horizon_ns in the header of a program; include/schedlab/program.h.
HORIZON, HORIZON_OFFSET = struct.Struct("<Q"), 32


@dataclass(frozen=True)
class GuestTask:
    """One thing for the guest to do."""

    name: str  #: For messages.
    policy: bytes  #: BPF object file.
    knobs: dict[str, int] = field(default_factory=dict)  #: Values of the policy's `const volatile` globals.
    program: bytes | None = None  #: A workload program to play under the policy; None: only hold it.
    hold_ms: int = 100  #: Without a program: how long to leave the CPUs to the policy, in milliseconds.
    #: Instead of all that: a program to be run and its arguments, in which `POLICY` is the policy's file. It
    #: is interrupted after `hold_ms`.
    command: tuple[str, ...] = ()
    #: For `read` and `write` of the program: latency and time per KiB in nanoseconds, CPU time of a call in
    #: nanoseconds, requests at once.
    device: tuple[int, ...] = (100_000, 1000, 1000, 1)
    loader: Loader | None = (
        None  #: Instead of a policy: a program that loads one, under which `program` is played.
    )
    image: bytes = b""  #: What the policy's launch() leaves behind (user_half.py).
    #: Real-time tasks beside the program: CPU, start and length in nanoseconds.
    above: tuple[tuple[int, int, int], ...] = ()
    offline: tuple[tuple[int, int, int], ...] = ()  #: When which CPUs are offline, in the same form.
    #: When which groups get which weight, and which quota in nanoseconds: object of the program, time, value.
    weight: tuple[tuple[int, int, int], ...] = ()
    quota: tuple[tuple[int, int, int], ...] = ()
    lead_ms: int = LEAD_MS  #: How long before time 0 of the program the policy is attached, in milliseconds.


def spans_of(text: str) -> tuple[tuple[int, int, int], ...]:
    """CPU, start and length of each, from `--above` or `--offline` as the simulator takes them."""
    items = (item.split(":") for item in text.split(",") if item)
    return tuple((int(cpu), int(start_ns), int(length_ns)) for cpu, start_ns, length_ns in items)


def unavailable_reason() -> str | None:
    """Why the guest cannot be used here, without fetching anything."""
    if shutil.which(QEMU) is None:
        return f"{QEMU} is missing; to have it: ./lab setup, or sudo apt-get install qemu-system-x86"
    try:
        find_bpf_compiler()
    except UnavailableError as error:
        return str(error)
    return None


def node_cpus_of(topology: str, n_cpus: int) -> int:
    """CPUs of each node, 0 if there is one, of `--topology`.

    >>> node_cpus_of("node=2", 4), node_cpus_of("", 4), node_cpus_of("node=4", 4)
    (2, 0, 0)
    """
    sizes = parse_topology("--topology", topology)
    for name in sizes:
        if name != "node":
            raise UsageError(f"--topology {topology}: the guest has nodes only, not {name}; leave that out")
    node_cpus = sizes.get("node", n_cpus)
    if node_cpus < n_cpus and n_cpus % node_cpus:
        raise UsageError(
            f"--topology {topology}: the guest's nodes are alike, and {n_cpus} CPUs are no multiple of {node_cpus}"
        )
    return node_cpus if node_cpus < n_cpus else 0


def guest_system(
    *,
    kernel: Path | None = None,
    n_cpus: int = 1,
    is_counted: bool = True,
    data_bytes: int = 0,
    topology: str = "",
) -> tuple[GuestSystem, GuestParts]:
    """Find or fetch what is booted."""
    reason = unavailable_reason()
    if reason:
        raise UnavailableError(reason)
    if kernel is not None:
        refuse_unusable(kernel)
    parts = fetch_guest_parts(kernel=kernel)
    init = build_program("guest", parts.libbpf)
    node_cpus = node_cpus_of(topology, n_cpus)
    return GuestSystem(parts.kernel, init.read_bytes(), n_cpus, is_counted, data_bytes, node_cpus), parts


def run_guest(
    tasks: list[GuestTask],
    *,
    cpus: int = 1,
    topology: str = "",
    timeout_s: float = 240.0,
    files: dict[str, bytes] | None = None,
) -> list[Answer]:
    """Have one machine do all tasks."""
    system, _ = guest_system(n_cpus=cpus, topology=topology)
    if cpus > 1:
        tasks = [replace(task, lead_ms=LEAD_MS_LONG) for task in tasks]
    said = GuestRunner().run(system, job_files(tasks) | (files or {}), timeout_s=timeout_s)
    return read_answers(tasks, said, timeout_s=timeout_s)


def job_files(tasks: list[GuestTask]) -> dict[str, bytes]:
    """Write down what the guest is to do."""
    files: dict[str, bytes] = {}
    lines: list[str] = []
    for index, task in enumerate(tasks):
        if task.loader:
            lines.append(_start_loader(f"/{index}", task.loader, files))
            lines += _play(f"/{index}.slprog", task, files)
            continue
        path = f"/{index}.bpf.o"
        files[path] = task.policy
        if task.command:
            words = [path if word == "POLICY" else word for word in task.command]
            lines.append(f"exec {task.hold_ms} {' '.join(words)}")
            continue
        lines.append(f"policy {path}")
        lines += [f"set {knob} {value % 2**64}" for knob, value in task.knobs.items()]
        if task.image:
            files[f"/{index}.image"] = task.image
            lines.append(f"image /{index}.image")
        if task.program is None:
            lines.append(f"hold {task.hold_ms}")
        else:
            lines += _play(f"/{index}.slprog", task, files)
    return files | {"/job": "".join(f"{line}\n" for line in lines).encode()}


def _play(path: str, task: GuestTask, files: dict[str, bytes]) -> list[str]:
    """Lines that play the program of a task."""
    assert task.program is not None
    files[path] = bytes(task.program)
    return [
        f"lead {task.lead_ms}",
        *(f"above {' '.join(map(str, span))}" for span in task.above),
        *(f"offline {' '.join(map(str, span))}" for span in task.offline),
        *(f"weight {' '.join(map(str, span))}" for span in task.weight),
        *(f"quota {' '.join(map(str, span))}" for span in task.quota),
        f"device {' '.join(map(str, task.device))}",
        f"play {path}",
    ]


def words_of(texts: Iterable[str]) -> bytes:
    """Words as the guest reads them: a command or an environment."""
    return b"".join(os.fsencode(text) + b"\0" for text in texts)


def _start_loader(place: str, loader: Loader, files: dict[str, bytes]) -> str:
    """The line that has a program started, whose files are added."""
    files |= {str(file): file.read_bytes() for file in loader.files}
    files[f"{place}.command"] = words_of([loader.folder, *loader.argv])
    files[f"{place}.environment"] = words_of(f"{name}={value}" for name, value in loader.environment.items())
    return f"loader {place}.command {place}.environment"


def read_answers(tasks: list[GuestTask], said: Said, *, timeout_s: float) -> list[Answer]:
    """Sort what a machine said by task."""
    frames = read_frames(said.frames)
    end = f"the end of the kernel's messages:\n{said.console[-2000:]}"
    if not frames and not said.has_timed_out:
        raise HostError(f"the guest said nothing{': ' + said.complaint if said.complaint else ''}; {end}")
    starts = [index for index, (name, _) in enumerate(frames) if name == "next"]
    first = frames[: starts[0]] if starts else frames
    formats = {
        name.removeprefix("format "): text.decode() for name, text in first if name.startswith("format ")
    }
    general = [frame for frame in first if not frame[0].startswith("format ")]
    answers = []
    for index, task in enumerate(tasks):
        answer = Answer(task.name)
        answer.read(general)
        if index < len(starts):
            stop = starts[index + 1] if index + 1 < len(starts) else len(frames)
            answer.read(frames[starts[index] + 1 : stop])
        if answer.trace is not None:
            answer.trace.formats = formats
            if answer.n_left and task.program is not None:
                # The guest needs a moment to see that the time has come.
                (horizon_ns,) = HORIZON.unpack_from(task.program, HORIZON_OFFSET)
                answer.trace.end_ns = min(answer.trace.end_ns, horizon_ns)
        answers.append(answer)
    if not frames or frames[-1][0] != "done":
        why = f"no end after {timeout_s:g} s" if said.has_timed_out else "the guest stopped"
        answers[max(len(starts) - 1, 0)].fatal.append(f"{why}; {end}")
    return answers
