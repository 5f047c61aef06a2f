# SPDX-License-Identifier: MIT
"""Run a command in the guest on this machine's own files, in real time: `schedlab guest`.

        here:   virtiofsd --- shares / ---.            what it prints
                QEMU: Linux with sched_ext '-> mounted as root, the command there --> our stdout, stderr

The command is root in the guest and finds the folder, the environment and the files of the
caller; so whatever of schedlab needs a kernel with sched_ext (`bench`, `load`, `top`) runs there
as it is. Processes, CPUs and settings are the guest's. Each machine is booted anew, since one
with a shared folder cannot be saved.

Must stay true: no QEMU and no virtiofsd is left behind, however this ends.
Read next: boot.py; hosts/linux/guest/machine_root.c.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ...errors import HostError, SchedlabError, UnavailableError
from ...policy.build import build_policy
from ...policy.find import load_policy
from ..kernel.boot import ENDS_WITH_US
from .boot import BOOT_SECONDS_MAX, GuestRunner, GuestSystem
from .build import build_program, toolchain
from .frames import Answer, read_frames, write_frames
from .policies import guest_system, words_of

#: Of Debian's QEMU; it must be root, to be able to act as each owner of a file.
VIRTIOFSD = Path("/usr/lib/qemu/virtiofsd")
#: How long a command may take: no limit is like this one.
FOR_EVER_S = 1e7
#: Variables that are of the caller's session, not of the guest.
NOT_OF_GUEST = ("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


@dataclass(frozen=True)
class LiveSystem(GuestSystem):
    """A guest in this machine's time that shares its files."""

    ram_mib: int = 2048  #: Memory in MiB.

    @property
    def words(self) -> list[str]:
        """QEMU's words for CPUs and memory, which virtiofsd reads and writes, too."""
        cpu = (
            ["-accel", "kvm", "-cpu", "host"]
            if self.is_kvm
            else ["-accel", "tcg,thread=single", "-cpu", "max"]
        )
        memory = f"memory-backend-memfd,id=memory,size={self.memory_mib}M,share=on"
        return [*cpu, "-smp", str(self.n_cpus), "-object", memory, "-machine", "memory-backend=memory"]

    @property
    def memory_mib(self) -> int:
        """Memory of the machine."""
        return self.ram_mib


def run_live(
    argv: Sequence[str],
    *,
    n_cpus: int = 1,
    ram_mib: int = 2048,
    is_kvm: bool = False,
    kernel: Path | None = None,
    runner: GuestRunner | None = None,
) -> int:
    """Run a command in a guest; its exit status, 128 and the number if a signal ended it.

    Its output goes to this process's stdout and stderr as it comes. UnavailableError: something is missing;
    HostError: the guest did not come to an end of the command.
    """
    _refuse(is_kvm=is_kvm)
    plain, parts = guest_system(kernel=kernel)
    build_program("load", parts.libbpf)  # there it would take minutes, ...
    toolchain(kernel)  # ... so would the types of its kernel, ...
    compile_named(argv)  # ... and a published scheduler
    system = LiveSystem(plain.kernel, plain.init, n_cpus, is_counted=False, ram_mib=ram_mib, is_kvm=is_kvm)
    runner = runner or GuestRunner()
    with (
        tempfile.TemporaryDirectory(prefix="schedlab-guest-") as name,
        _shared_root(Path(name)) as share,
        _passed_on(sys.stdout.buffer) as out,
        _passed_on(sys.stderr.buffer) as err,
    ):
        folder = Path(name)
        (folder / "input").write_bytes(_job(argv, os.environ))
        words = [*share, "-device", "virtio-serial-pci"]
        for number, fd in enumerate((out, err), 1):
            words += ["-chardev", f"file,id=stream{number},path=/dev/fd/{fd}"]
            words += ["-device", f"virtserialport,chardev=stream{number},nr={number}"]
        with runner.started(system, folder, words, FOR_EVER_S, (out, err)) as qemu:
            timer = threading.Timer(BOOT_SECONDS_MAX, qemu.kill)
            timer.start()
            try:
                has_booted = qemu.wait_while("running") == "guest-panicked"
            finally:
                timer.cancel()
            if has_booted:
                qemu.ask("cont")
                qemu.wait_for_end()
        said = qemu.said()
    answer = Answer(argv[0])
    answer.read(frame for frame in read_frames(said.frames) if not frame[0].startswith("format "))
    if answer.status is None:
        why = "; ".join(answer.fatal) or said.complaint or said.console[-2000:]
        raise HostError(f"{argv[0]}: the guest ended before it did: {why}")
    return answer.status


def compile_named(argv: Sequence[str]) -> None:
    """Compile the policies that are words of a command of schedlab, into the cache that the guest shares.

    What cannot be compiled, or is none, is left to the command.
    """
    start = next((i for i, word in enumerate(argv, 1) if Path(word).name in ("schedlab", "lab")), len(argv))
    words = itertools.takewhile(lambda word: word != "--", argv[start:])
    for name in (part for word in words for part in word.split(",")):
        with contextlib.suppress(SchedlabError, OSError):
            build_policy(load_policy(name), engine="bpf", toolchain=toolchain)


def _refuse(*, is_kvm: bool) -> None:
    """What is missing for it here."""
    if not VIRTIOFSD.exists():
        raise UnavailableError(
            f"{VIRTIOFSD} is missing, which shares files with the guest; it is a part of Debian 12's "
            "qemu-system-common"
        )
    if os.geteuid():
        raise UnavailableError(
            f"{VIRTIOFSD} needs root; start schedlab as root, such as sudo ./lab guest ..."
        )
    if is_kvm and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise UnavailableError("--kvm: /dev/kvm is missing or not yours; without --kvm the CPUs are emulated")


def _job(argv: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """The input of the machine: the folder and the command, and the environment."""
    kept = [f"{name}={value}" for name, value in environment.items() if name not in NOT_OF_GUEST]

    return write_frames(
        {
            "/command": words_of([os.getcwd(), *argv]),
            "/environment": words_of(kept),
            "/job": b"root /command /environment\n",
        }
    )


@contextlib.contextmanager
def _shared_root(folder: Path) -> Iterator[list[str]]:
    """This machine's files; gives QEMU's words for them."""
    socket = folder / "files"
    said = folder / "virtiofsd"
    with open(said, "wb") as log:
        server = subprocess.Popen(
            [*(ENDS_WITH_US if shutil.which(ENDS_WITH_US[0]) else ()), VIRTIOFSD, f"--socket-path={socket}", "-o", "source=/", "-o", "sandbox=chroot", "-o", "cache=auto"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        while not socket.exists():
            if server.poll() is not None:
                raise HostError(f"{VIRTIOFSD} did not start: {said.read_text(errors='replace').strip()}")
            threading.Event().wait(0.01)
        yield [
            "-chardev",
            f"socket,id=files,path={socket}",
            "-device",
            "vhost-user-fs-pci,chardev=files,tag=root",
        ]
    finally:
        server.kill()
        server.wait()


@contextlib.contextmanager
def _passed_on(to: BinaryIO) -> Iterator[int]:
    """A pipe whose contents are passed on as they come; gives its end for writing."""
    read_end, write_end = os.pipe()

    def pump() -> None:
        """To the end, also past a reader that has gone: the machine waits for each byte to be taken."""
        while piece := os.read(read_end, 1 << 16):
            with contextlib.suppress(OSError):
                to.write(piece)
                to.flush()

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        yield write_end
    finally:
        os.close(write_end)
        thread.join()
        os.close(read_end)
