# SPDX-License-Identifier: MIT
"""Boot the guest once, save the machine, and go on from there for every run.

        boot (some seconds) -> the guest stops its machine -> saved in the cache
        every run:  the saved machine + a job --- a third of a second --> answers

A machine that counts instructions instead of time is in the same state whenever
it is saved, so a run is the same every time, on whatever was saved. Its job comes
through a device of QEMU's (hosts/linux/guest/input.c), since memory is part of
what was saved.

Must stay true: whatever the guest does, or does not do, the caller gets an answer
within the time limit, and no QEMU is left behind.
Read next: frames.py, what goes in and comes out.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import HostError
from ...paths import cache_folder
from ...waiting import announced
from ..kernel.boot import ENDS_WITH_US, qemu_version
from .build import make_initramfs
from .frames import write_frames
from .image import locked
from .vmlinux import unpacked

QEMU = "qemu-system-x86_64"
CPUS_MAX = 8
MEMORY_MIB = 512
KERNEL_ARGUMENTS = (
    "console=ttyS0 quiet panic=-1 nokaslr norandmaps random.trust_cpu=off cryptomgr.notests "
    "nowatchdog audit=0 damon_stat.enabled=N rcu_nocbs=all rcutree.enable_rcu_lazy=1"
)
#: A boot takes four seconds of a machine that does nothing else; this is for a busy one.
BOOT_SECONDS_MAX = 600.0
#: One that does not come up on this machine's own CPUs by then does not come up.
KVM_BOOT_SECONDS_MAX = 60.0
#: Saved machines that are kept: of about 90 MB each, and the oldest goes first.
SAVED_MAX = 6
#: How often to ask QEMU whether it is done, in seconds; there is no event for all.
ASK_SECONDS = 0.01


@dataclass(frozen=True)
class GuestSystem:
    """What is booted, and on which machine."""

    kernel: Path  #: A bootable image.
    init: bytes  #: The one program.
    n_cpus: int = 1  #: Number of CPUs, 1 to `CPUS_MAX`.
    is_counted: bool = True  #: One instruction takes one nanosecond; otherwise time is this machine's.
    data_bytes: int = 0  #: Of the policy: the loader has them, then the kernel, and one copy on the way.
    node_cpus: int = 0  #: CPUs of each NUMA node, a divisor of `n_cpus`; 0: there is one node.
    is_kvm: bool = False  #: On this machine's own CPUs, where instructions are not counted; else emulated.

    @property
    def words(self) -> list[str]:
        """QEMU's words for the CPUs."""
        if self.is_counted:
            accelerator = ["-accel", "tcg", "-icount", "shift=0,sleep=off", "-cpu", "max,-rdrand,-rdseed"]
        elif self.is_kvm:
            accelerator = ["-accel", "kvm", "-cpu", "host"]
        else:
            # Several threads of the emulator have brought the kernel down.
            accelerator = ["-accel", "tcg,thread=single", "-cpu", "max"]
        return [*accelerator, "-rtc", "clock=vm,base=2026-01-01", *self._cpu_words, "-seed", "1"]

    @property
    def _cpu_words(self) -> list[str]:
        if not self.node_cpus:
            return ["-smp", str(self.n_cpus)]
        n_nodes = self.n_cpus // self.node_cpus
        # A socket each, as caches are a socket's.
        words = ["-smp", f"{self.n_cpus},sockets={n_nodes},cores={self.node_cpus},threads=1"]
        for node in range(n_nodes):
            cpus = f"{node * self.node_cpus}-{(node + 1) * self.node_cpus - 1}"
            memory = f"memory-backend-ram,id=node{node},size={self.memory_mib // n_nodes}M"
            words += ["-object", memory, "-numa", f"node,nodeid={node},cpus={cpus},memdev=node{node}"]
        return words

    @property
    def memory_mib(self) -> int:
        """Memory; most policies have next to no data."""
        memory_mib = MEMORY_MIB * (1 + 3 * self.data_bytes // (MEMORY_MIB << 19))
        # As much for each node.
        return memory_mib - memory_mib % (self.n_cpus // self.node_cpus) if self.node_cpus else memory_mib

    @property
    def hash(self) -> str:
        """SHA-256 over all that a saved machine depends on."""
        digest = hashlib.sha256(
            repr((self.words, KERNEL_ARGUMENTS, self.memory_mib, qemu_version(QEMU))).encode()
        )
        booted = unpacked(self.kernel)
        digest.update(booted.name.encode())
        if booted == self.kernel:
            digest.update(_hash_file(booted, booted.stat().st_mtime_ns))
        digest.update(self.init)
        return digest.hexdigest()


@lru_cache(maxsize=4)
def _hash_file(path: Path, _mtime_ns: int) -> bytes:
    """SHA-256 of a file as it was at a time."""
    return hashlib.sha256(path.read_bytes()).digest()


@dataclass(frozen=True)
class Said:
    """What came of a machine."""

    frames: bytes  #: The row of frames that it sent; may be cut short.
    console: str  #: The kernel's messages.
    has_timed_out: bool  #: Whether it was ended for taking too long.
    complaint: str = ""  #: What QEMU itself said, if it failed.


class GuestRunner:
    """Runs jobs on copies of a saved machine, one at a time.

    Once `is_interrupted` is set, by `interrupt`, no job is begun.
    """

    def __init__(self) -> None:
        self.is_interrupted = False
        self._lock = threading.Lock()
        self._qemu: _Qemu | None = None

    def run(self, system: GuestSystem, files: Mapping[str, bytes], *, timeout_s: float) -> Said:
        """Have a copy of the saved machine do a job."""
        said = self._go_on(system, saved_machine(system, self), files, timeout_s)
        if said is None:
            # What was saved is not whole: as after a disk was full, or the power gone.
            saved_machine(system).unlink(missing_ok=True)
            said = self._go_on(system, saved_machine(system, self), files, timeout_s)
        if said is None:
            raise HostError(
                f"{saved_machine(system)}: {QEMU} does not go on from the machine that it has just saved"
            )
        return said

    def _go_on(
        self, system: GuestSystem, saved: Path, files: Mapping[str, bytes], timeout_s: float
    ) -> Said | None:
        """Have a copy of a saved machine do a job; None: it cannot be gone on from."""
        with tempfile.TemporaryDirectory(prefix="schedlab-guest-") as name:
            folder = Path(name)
            (folder / "input").write_bytes(write_frames(files))
            # Open: another process may take it out of the cache.
            with open(saved, "rb") as file:
                os.utime(saved)
                words = ["-incoming", f"fd:{file.fileno()}"]
                with self.started(system, folder, words, timeout_s, (file.fileno(),)) as qemu:
                    has_begun = qemu.wait_while("inmigrate")
                    if has_begun:
                        qemu.ask("cont")
                        qemu.wait_for_end()
                said = qemu.said()
        return said if has_begun or said.has_timed_out or self.is_interrupted else None

    def started(
        self,
        system: GuestSystem,
        folder: Path,
        words: Sequence[str],
        timeout_s: float,
        fds: Sequence[int] = (),
    ) -> _Qemu:
        """Start QEMU so that `interrupt` ends it."""
        with self._lock:
            if self.is_interrupted:
                raise HostError("interrupted")
            self._qemu = _Qemu(system, folder, words, timeout_s, fds)
            return self._qemu

    def interrupt(self) -> None:
        """End the machine under way; from any thread."""
        with self._lock:
            self.is_interrupted = True
            if self._qemu is not None:
                self._qemu.kill()


def saved_machine(
    system: GuestSystem, runner: GuestRunner | None = None, *, boot_seconds: float = BOOT_SECONDS_MAX
) -> Path:
    """Return the saved machine, booting it on the first call."""
    place = cache_folder("guest")
    saved = place / f"machine-{system.hash[:16]}"
    if not saved.exists():
        with locked(place / "machine-lock"):
            if not saved.exists():
                with announced("booting Linux for the guest, about 10 s the first time; the machine is kept"):
                    _boot_and_save(system, saved, runner or GuestRunner(), boot_seconds)
                _forget_the_oldest(place)
    return saved


def on_own_cpus(system: GuestSystem, runner: GuestRunner) -> GuestSystem:
    """The system with KVM, where the kernel comes up on this machine's own CPUs; else as it is.

    There are machines that have /dev/kvm and on which it fails half-way, so it is tried, once.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return system
    tried = replace(system, is_kvm=True)
    failed = cache_folder("guest") / f"no-kvm-{os.uname().release}-{tried.hash[:16]}"
    if failed.exists():
        return system
    try:
        saved_machine(tried, runner, boot_seconds=KVM_BOOT_SECONDS_MAX)
    except HostError as error:
        if runner.is_interrupted:
            raise
        failed.write_text(f"{error}\n")
        return system
    return tried


def _boot_and_save(system: GuestSystem, saved: Path, runner: GuestRunner, boot_seconds: float) -> None:
    made = saved.with_name(f".{saved.name}.{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="schedlab-guest-") as name:
        folder = Path(name)
        (folder / "input").write_bytes(b"\n")
        try:
            with runner.started(system, folder, (), boot_seconds) as qemu:
                if qemu.wait_while("running") == "guest-panicked":
                    qemu.ask("migrate-set-parameters", {"max-bandwidth": 1 << 40})
                    qemu.ask("migrate", {"uri": f"exec:cat > '{made}'"})
                    state = qemu.wait_for_migration()
                    if state != "completed":
                        raise HostError(f"{made}: the machine cannot be saved: {state}; is the disk full?")
                    qemu.ask("quit")
                    os.replace(made, saved)
                    return
        finally:
            made.unlink(missing_ok=True)
        said = qemu.said()
    if runner.is_interrupted:
        raise HostError("interrupted")
    raise HostError(
        f"the guest's kernel {system.kernel} did not start"
        + (f" within {boot_seconds:g} s" if said.has_timed_out else "")
        + (f": {said.complaint}" if said.complaint else "")
        + f"; the end of its messages:\n{said.console[-2000:]}"
    )


def _forget_the_oldest(place: Path) -> None:
    """Keep the cache small: each change of the guest's program makes another one."""
    saved = sorted(place.glob("machine-*[0-9a-f]"), key=lambda path: path.stat().st_mtime_ns)
    for path in saved[:-SAVED_MAX]:
        path.unlink(missing_ok=True)


class _Qemu:
    """One QEMU process and the talk with it (QMP, a line of JSON each way)."""

    def __init__(
        self, system: GuestSystem, folder: Path, words: Sequence[str], timeout_s: float, fds: Sequence[int]
    ):
        self.folder = folder
        self._has_timed_out = False
        (folder / "initrd").write_bytes(make_initramfs({"init": system.init}))
        command = [
            *(ENDS_WITH_US if shutil.which(ENDS_WITH_US[0]) else ()),
            QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-m", str(system.memory_mib), "-nic", "none", *system.words,
            "-kernel", str(unpacked(system.kernel)), "-initrd", str(folder / "initrd"),
            "-append", KERNEL_ARGUMENTS,
            "-chardev", f"file,id=console,path={folder / 'console'}", "-serial", "chardev:console",
            "-chardev", f"file,id=frames,path={folder / 'frames'}",
            "-device", "isa-debugcon,iobase=0xe9,chardev=frames",
            "-device", "pvpanic", "-action", "panic=pause",
            "-fw_cfg", f"name=opt/schedlab/input,file={folder / 'input'}",
            "-qmp", "stdio", *words,
        ]  # fmt: skip
        try:
            # Ctrl-C is for us: we end the process in our own order.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=fds,
            )
        except OSError as error:
            raise HostError(f"{QEMU}: cannot be started: {error.strerror}") from error
        self._timer = threading.Timer(timeout_s, self._time_out)
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> _Qemu:
        try:
            self._read()  # its greeting
            self.ask("qmp_capabilities")
        except BaseException:  # Ctrl-C, too: no `with` has it yet
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.kill()
        assert self._process.stderr
        self._complaint = self._process.stderr.read().decode(errors="replace").strip()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(BrokenPipeError):
                assert stream
                stream.close()

    def _time_out(self) -> None:
        self._has_timed_out = True
        self.kill()

    def kill(self) -> None:
        """End it; from any thread."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _read(self) -> dict[str, Any]:
        """Its next line; empty when it has ended."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        return json.loads(line) if line else {}

    def ask(self, command: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Have it do a command; what it returns, empty when it has ended."""
        words = {"execute": command, "arguments": arguments or {}}
        try:
            assert self._process.stdin
            self._process.stdin.write(json.dumps(words).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {}
        while said := self._read():
            if "error" in said:
                raise HostError(f"{QEMU}: {command}: {said['error']['desc']}")
            if "return" in said:
                return said["return"]
        return {}

    def wait_while(self, status: str) -> str:
        """Wait until the machine is in another state; which, empty when it has ended."""
        while (now := self.ask("query-status").get("status", "")) == status:
            threading.Event().wait(ASK_SECONDS)
        return now

    def wait_for_migration(self) -> str:
        """Wait until the machine is saved, or cannot be."""
        while (now := self.ask("query-migrate").get("status", "")) in ("setup", "active", "device", "none"):
            threading.Event().wait(ASK_SECONDS)
        return now

    def wait_for_end(self) -> None:
        """Read what it says until it has ended; what KVM cannot go on from ends it."""
        while said := self._read():
            if said.get("event") == "STOP" and self.ask("query-status").get("status") == "internal-error":
                self.kill()

    def said(self) -> Said:
        """All that came of it; after its end."""
        return Said(
            frames=self._file("frames"),
            console=self._file("console").decode(errors="replace"),
            has_timed_out=self._has_timed_out,
            complaint=self._complaint,
        )

    def _file(self, name: str) -> bytes:
        path = self.folder / name
        return path.read_bytes() if path.is_file() else b""
