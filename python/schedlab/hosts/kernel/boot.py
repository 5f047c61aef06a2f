# SPDX-License-Identifier: MIT
"""The command that boots the teaching kernel in QEMU, for everybody who does.

Must stay true: the image in the cache is never written to. A machine writes to a
snapshot that goes with it, or to a disk of its own. And no machine outlives the
program that started it, however that ends.
Read next: host.py, which runs workloads; checkout/kernel.py, the shell.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ...errors import UsageError
from ...tools import version_of
from . import build as kernel_build

QEMU = "qemu-system-riscv64"
CPUS_MAX = 8
MEMORY_MIB = 256
#: Words before a command: the kernel of this machine ends it when the thread that
#: started it is gone, which no handler of ours can do after a SIGKILL.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")


@dataclass(frozen=True)
class Machine:
    """What is to be booted, and how."""

    image: kernel_build.KernelImage  #: Kernel and file system.
    n_cpus: int = 1  #: Harts, 1 to 8.
    #: Boot arguments of the kernel; `run` goes last, since it takes the rest of the line.
    arguments: Mapping[str, str] = field(default_factory=dict)
    #: Count instructions instead of time: one per ns, the same on every boot. Without it time is the host's,
    #: and several harts run in parallel.
    is_counted: bool = True
    job: Path | None = None  #: File that the machine finds as `/job`.
    #: Image to use and to write to; default: a snapshot of the built one. With it, or with a job of one's
    #: own, a counted machine is the same every time only until it waits for the disk, which answers when this
    #: machine gets round to it.
    disk: Path | None = None
    extra: tuple[str, ...] = ()  #: Further words for QEMU.


def unavailable() -> str | None:
    """Say why the kernel cannot be built or booted here."""
    reason = kernel_build.unavailable()
    if reason is None and shutil.which(QEMU) is None:
        reason = (
            f"{QEMU} is missing, and the teaching kernel runs in it; to have it: ./lab setup, or "
            "sudo apt-get install qemu-system-misc opensbi"
        )
    return reason


@lru_cache(maxsize=2)
def qemu_version(program: str = QEMU) -> str:
    """First line of what a QEMU says about itself; empty where it is missing."""
    return version_of([program]) or ""


def boot_arguments(arguments: Mapping[str, str]) -> str:
    """Write the kernel's command line.

    >>> boot_arguments({"run": "/checks -q", "policy": "rr"})
    'policy=rr run=/checks -q'
    """
    for name, value in arguments.items():
        if name != "run" and " " in value:
            raise UsageError(f"boot argument {name}={value!r}: only run may hold a blank")
    names = sorted(arguments, key=lambda name: name == "run")
    return " ".join(f"{name}={arguments[name]}" for name in names)


def machine_command(machine: Machine, *, console: str = "stdio") -> list[str]:
    """Write QEMU's command line."""
    if not 1 <= machine.n_cpus <= CPUS_MAX:
        raise UsageError(f"cpus={machine.n_cpus}: the teaching kernel has 1 to {CPUS_MAX}")
    time = (
        ["-icount", "shift=0,sleep=off"]
        if machine.is_counted
        else ["-accel", f"tcg,thread={'multi' if machine.n_cpus > 1 else 'single'}"]
    )
    disk = f"file={machine.disk or machine.image.filesystem},format=raw,if=none,id=disk0"
    initrd, arguments = machine.job, dict(machine.arguments)
    if machine.is_counted and not (machine.disk or initrd):
        # A hart that waits for QEMU's disk executes instructions until it answers.
        initrd, arguments = machine.image.filesystem, {"ramdisk": "0"} | arguments
    return [
        *(ENDS_WITH_US if shutil.which(ENDS_WITH_US[0]) else ()), QEMU, "-machine", "virt", "-bios", "default", "-m", f"{MEMORY_MIB}M",
        "-smp", str(machine.n_cpus), *time,
        "-nodefaults", "-display", "none", "-no-reboot", "-serial", console,
        "-global", "virtio-mmio.force-legacy=false",
        "-drive", disk if machine.disk else f"{disk},snapshot=on",
        "-device", "virtio-blk-device,drive=disk0",
        "-kernel", str(machine.image.kernel), "-append", boot_arguments(arguments),
        *(["-initrd", str(initrd)] if initrd else []),
        *machine.extra,
    ]  # fmt: skip
