# SPDX-License-Identifier: MIT
"""Run a scheduler's `NAME.launch.c` here, and have what it leaves behind for a kernel.

The simulator calls its launch() on a machine of as many CPUs, and writes which variables
and entries of maps have changed (hosts/sim/image.c). The loader, in the guest and here, writes the
same into the kernel's object (hosts/linux/load/launch.c), by name and size.

Read next: guest/host.py and linux/load.py, which ask.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .. import paths
from ..errors import PolicyError, UnavailableError
from ..policy.build import BuiltPolicy
from ..policy.elf import ElfFile
from ..tools import ask

SECONDS_MAX = 60


def image_of(policy: BuiltPolicy, machine: Sequence[str]) -> bytes:
    """What the user half of a policy has changed when launch() returns; nothing without one.

    `policy` is compiled for Linux; `machine` are the simulator's words for the machine, the program, and the
    values of the policy's variables.
    """
    half, path = policy.user_half, policy.policy.path
    if half is None:
        return b""
    reason = paths.why_unusable(paths.simulator())
    if reason:
        raise UnavailableError(f"{path}: its user half runs in the simulator: {reason}")
    native = ElfFile(half)
    if "sl_user_half_ns" in native.objects():
        raise PolicyError(
            f"{path}: it decides in user space, which only the simulator has; the guest runs "
            "its own program: --host guest --loader ./NAME"
        )
    # What the kernel's object does not have is a variable of the launch file's own.
    kernels = ElfFile(policy.shared_object).objects()
    variables = [each for each in native.variables() if each[0] in kernels]
    with tempfile.TemporaryDirectory(prefix="schedlab-image-") as folder:
        image = Path(folder) / "image"
        command = [str(paths.simulator()), "--policy", str(half), *machine, "--image", str(image)]
        command += ["--records", str(Path(folder) / "records")]
        done = ask(
            command,
            seconds_max=SECONDS_MAX,
            late=PolicyError(f"{path}: launch() had not ended after {SECONDS_MAX} s"),
            input="".join(f"{name} {at:x} {size:x}\n" for name, at, size in variables),
        )
        if image.is_file() and not done.returncode:
            return image.read_bytes()
    # What the policy prints comes before.
    why = (done.stderr.splitlines() or [f"ended with {done.returncode}"])[-1]
    if done.stdout:
        why = json.loads(done.stdout)["error"]
    raise PolicyError(f"{path}: its user half cannot run for the kernel: {why}")
