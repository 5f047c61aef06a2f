# SPDX-License-Identifier: MIT
"""Load a policy into this machine's own kernel, through `schedlab-load`.

The loader (hosts/linux/load/) is a process of its own, which the guest's init
shares. It unloads the policy when its input ends, so whatever happens to this
process, the kernel takes its CPUs back.

Must stay true: nothing of the machine is changed but which policy the kernel asks;
a machine that cannot do it says why, and what to do.
Read next: guest/frames.py, what the loader says; cli/load.py.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...errors import HostError, UnavailableError
from ...policy.bpf import compile_object
from ...policy.build import BuiltPolicy, user_half_of
from ...policy.launch_file import for_machine, has_thread, launch_code
from ...program.compiler import compile_workload
from ...workload.spec import parse_workload
from ..guest.build import build_program, toolchain
from ..guest.frames import Answer
from ..guest.image import fetch_libbpf
from ..user_half import image_of
from .machine import read_small, release_number

#: How long a loader may take to unload a policy, in seconds.
CLOSE_SECONDS = 20.0
CAP_SYS_ADMIN = 21
#: As launch() may ask; what is loaded gets the kernel's own.
TICKS_PER_SECOND = 250
#: launch() is called before any task is there, and the run ends with it.
NO_WORK = '[workload]\ntitle = "None"\n[[task]]\nname = "none"\nphases = [{run = "1ms"}]\n'


def unavailable_reason(*, system: Path = Path("/")) -> str | None:
    """Why policies cannot be loaded into this machine's kernel."""
    if not sys.platform.startswith("linux"):
        return "policies are loaded into Linux only; run a workload: schedlab run mixed --policy NAME"
    release = platform.release()
    state = read_small(system / "sys/kernel/sched_ext/state")
    if state is None:
        why = (
            "is older than Linux 6.12"
            if release_number(release) < (6, 12)
            else "was built without CONFIG_SCHED_CLASS_EXT"
        )
        return (
            f"this kernel ({release}) has no sched_ext: it {why}; boot Linux 6.12 or newer with "
            "CONFIG_SCHED_CLASS_EXT=y, or use a virtual machine that has it: schedlab run mixed --host "
            "guest --policy NAME for a workload, sudo schedlab guest -- schedlab ... for this command"
        )
    if not (system / "sys/kernel/btf/vmlinux").exists():
        return (
            f"this kernel ({release}) does not say how its structures lie, which a policy needs: "
            "boot one with CONFIG_DEBUG_INFO_BTF=y"
        )
    if not _has_capability(system, CAP_SYS_ADMIN):
        return "loading a policy needs CAP_SYS_ADMIN; start schedlab as root, such as sudo ./lab load ..."
    if state != "disabled":
        other = read_small(system / "sys/kernel/sched_ext/root/ops") or "unknown"
        return f"another policy is loaded ('{other}', {state}), and there is room for one; unload that first"
    return None


def _has_capability(system: Path, number: int) -> bool:
    """Whether this process has a capability now."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", read_small(system / "proc/self/status") or "", re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> number & 1)


def machine_sizes(*, system: Path = Path("/sys/devices/system")) -> tuple[int, dict[str, int]]:
    """How many CPUs this machine has, and a core, a cache and a node of it, as launch files ask for them."""

    def n_groups(pattern: str, otherwise: int) -> int:
        return len({read_small(path) for path in system.glob(pattern)}) or otherwise

    n_cpus = len([*system.glob("cpu/cpu[0-9]*")]) or os.cpu_count() or 1
    counts = {
        "smt": n_groups("cpu/cpu[0-9]*/topology/core_cpus_list", n_cpus),
        "llc": n_groups("cpu/cpu[0-9]*/cache/index3/shared_cpu_list", 1),
        "node": n_groups("node/node[0-9]*/cpulist", 1),
    }
    return n_cpus, {name: -(-n_cpus // count) for name, count in counts.items()}


def machine_capacity(*, system: Path = Path("/sys/devices/system")) -> str:
    """Capacities of this machine's CPUs, as `--capacity` takes them; empty where they are alike, or not known."""
    found = {
        int(path.parent.name.removeprefix("cpu")): int(read_small(path) or 0)
        for path in system.glob("cpu/cpu[0-9]*/cpu_capacity")
    }
    is_known = len({*found.values()}) > 1 and all(found.values())
    return ",".join(f"{cpu}={capacity}" for cpu, capacity in sorted(found.items())) if is_known else ""


def prepare_loader() -> Path:
    """Build the loader, or find it in the cache."""
    reason = unavailable_reason()
    if reason:
        raise UnavailableError(reason)
    return build_program("load", fetch_libbpf())


class LoadedPolicy:
    """A policy in the kernel, from `wait_until_attached` until `close`.

    `loader` is what `prepare_loader` returned, `answer` all that it has said so far; it counts every
    `every_ms`. A partial policy has only tasks of the class SCHED_EXT. With `heartbeat_ms` it is unloaded
    when `beat` has not been called for so long. PolicyError: it does not compile for Linux; HostError: the
    loader cannot be started.
    """

    def __init__(
        self,
        built: BuiltPolicy,
        loader: Path,
        *,
        is_partial: bool = False,
        every_ms: int = 1000,
        heartbeat_ms: int = 0,
    ):
        self.answer = Answer(built.policy.name)
        self.note = ""  #: What of the policy's user half the kernel goes without.
        # Beside the process, since the verifier is asked twice about what it refuses.
        self._folder = tempfile.TemporaryDirectory(prefix="schedlab-load-")
        try:
            object_file = Path(self._folder.name) / "policy.bpf.o"
            policy = built.policy
            code = launch_code(policy.name, policy.path)
            if code and has_thread(code):
                self.note = (
                    f"the thread of its user half, {code}, runs in the simulator only: "
                    f"what it writes while {policy.name} runs keeps the value that it has at the start"
                )
            made = compile_object(policy.path, policy.content_hash, toolchain=toolchain)
            object_file.write_bytes(made.read_bytes())
            n_cpus, sizes = machine_sizes()
            settings = for_machine(built.launch, n_cpus, sizes) | built.values
            words = [str(loader), str(object_file), "--every-ms", str(every_ms)]
            words += ["--heartbeat-ms", str(heartbeat_ms)] * bool(heartbeat_ms) + ["--partial"] * is_partial
            words += [
                word for knob, value in settings.items() for word in ("--set", f"{knob}={value % 2**64}")
            ]
            half = user_half_of(policy)
            machine = self._machine_words(n_cpus, sizes, settings) if half else []
            if image := image_of(replace(built, shared_object=made, user_half=half), machine):
                (Path(self._folder.name) / "image").write_bytes(image)
                words += ["--image", str(Path(self._folder.name) / "image")]
            self._process = self._start(words)
        except BaseException:
            self._folder.cleanup()
            raise

    def _machine_words(self, n_cpus: int, sizes: Mapping[str, int], settings: Mapping[str, int]) -> list[str]:
        """The simulator's words for a machine like this one, on which launch() is called."""
        program = Path(self._folder.name) / "program"
        program.write_bytes(compile_workload(parse_workload(NO_WORK), seed=1).data)
        words = [
            "--program", str(program), "--cpus", str(n_cpus), "--tick-ns", str(10**9 // TICKS_PER_SECOND),
            "--topology", ",".join(f"{name}={size}" for name, size in sizes.items()),
        ]  # fmt: skip
        if capacity := machine_capacity():
            words += ["--capacity", capacity]
        return [*words, *(word for name, value in settings.items() for word in ("--set", f"{name}={value}"))]

    @staticmethod
    def _start(words: list[str]) -> subprocess.Popen[bytes]:
        try:
            # Ctrl-C is for us: we end the loader by ending its input.
            return subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise HostError(f"{words[0]}: cannot be started: {error.strerror}") from error

    def __enter__(self) -> LoadedPolicy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next_frame(self) -> tuple[str, bytes] | None:
        """The loader's next frame, or None at its end."""
        assert self._process.stdout
        head = self._process.stdout.readline().decode(errors="replace")
        name, _, count = head.strip().rpartition(" ")
        if not name:
            return None
        assert self._process.stdout
        contents = self._process.stdout.read(int(count) + 1)
        return (name, contents[:-1]) if len(contents) == int(count) + 1 else None

    def frames(self) -> Iterator[str]:
        """Read what the loader says, as it comes, until its end."""
        while True:
            frame = self._next_frame()
            if frame is None:
                return
            self.answer.read([frame])
            yield frame[0]

    def wait_until_attached(self) -> bool:
        """Read until the kernel has given it the CPUs, or has refused it."""
        return any(name == "attached" for name in self.frames())

    def make_realtime(self, priority: int) -> None:
        """Put the loader above all that the policy schedules, where that is allowed."""
        with suppress(OSError):
            os.sched_setscheduler(self._process.pid, os.SCHED_FIFO, os.sched_param(priority))

    def beat(self) -> None:
        """Say that the policy is watched."""
        assert self._process.stdin
        with suppress(OSError, ValueError):  # it has ended, or its input has
            self._process.stdin.write(b".")
            self._process.stdin.flush()

    def unload(self) -> None:
        """Have the policy unloaded; what the loader says of it can still be read."""
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def close(self) -> Answer:
        """Unload the policy, if it is not yet."""
        self.unload()
        assert self._process.stdout
        if not self._process.stdout.closed:
            for _ in self.frames():
                pass
        try:
            self._process.wait(timeout=CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            # The kernel sees the link closed with the process.
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()
        return self.answer
