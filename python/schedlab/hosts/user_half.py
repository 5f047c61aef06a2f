# SPDX-License-Identifier: MIT
"""Run a scheduler's `NAME.launch.c` here, and have what it leaves behind for a kernel.

The simulator calls its launch() on a machine of as many CPUs, and writes which variables
and entries of maps have changed (hosts/sim/image.c). The guest's loader writes the same into the
kernel's object (hosts/linux/load/launch.c), by name and size.

Read next: guest/host.py, which asks.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from .. import paths
from ..errors import PolicyError, UnavailableError
from ..policy.elf import ElfFile
from ..tools import ask
from .host import Job
from .kinds import job_arguments

SECONDS_MAX = 60


def image_of(job: Job) -> bytes:
    """What the user half of a job's policy has changed when launch() returns; nothing without one."""
    half = job.policy.user_half
    if half is None:
        return b""
    reason = paths.why_unusable(paths.simulator())
    if reason:
        raise UnavailableError(f"{job.policy.policy.path}: its user half runs in the simulator: {reason}")
    native = ElfFile(half)
    if "sl_user_half_ns" in native.objects():
        raise PolicyError(
            f"{job.policy.policy.path}: it decides in user space, which only the simulator has; the guest runs "
            "its own program: --loader ./NAME"
        )
    # What the kernel's object does not have is a variable of the launch file's own.
    kernels = ElfFile(job.policy.shared_object).objects()
    variables = [each for each in native.variables() if each[0] in kernels]
    with tempfile.TemporaryDirectory(prefix="schedlab-image-") as folder:
        image = Path(folder) / "image"
        arguments = job_arguments(replace(job, records=Path(folder) / "records"), options=())
        command = [str(paths.simulator()), "--policy", str(half), "--image", str(image), *arguments]
        done = ask(
            command,
            seconds_max=SECONDS_MAX,
            late=PolicyError(f"{job.policy.policy.path}: launch() had not ended after {SECONDS_MAX} s"),
            input="".join(f"{name} {at:x} {size:x}\n" for name, at, size in variables),
        )
        if image.is_file() and not done.returncode:
            return image.read_bytes()
    # What the policy prints comes before.
    why = (done.stderr.splitlines() or [f"ended with {done.returncode}"])[-1]
    if done.stdout:
        why = json.loads(done.stdout)["error"]
    raise PolicyError(f"{job.policy.policy.path}: its user half cannot run for the guest: {why}")
