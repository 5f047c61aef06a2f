# SPDX-License-Identifier: MIT
"""Start compilers and other tools, and read what they say.

Read next: policy/build.py, the main caller.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any


def ask(
    command: Sequence[str | Path],
    *,
    seconds_max: float | None = None,
    late: Exception | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Start a tool and wait for what it prints; it reads nothing but `input`, and `late` is raised if it takes longer."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds_max,
            check=False,
            **options,
        )
    except subprocess.TimeoutExpired as error:
        if late is None:
            raise
        raise late from error


def version_of(command: Sequence[str | Path], **options: Any) -> str | None:
    """First line that a tool prints about itself; None: it cannot be started."""
    try:
        done = ask([*command, "--version"], seconds_max=60, **options)
    except (OSError, subprocess.SubprocessError):
        return None
    return None if done.returncode else done.stdout.partition("\n")[0]


def source_line(compiled: Path, address: str) -> str | None:
    """File and line of the source that an address of a compiled file comes from, such as `mine.bpf.c:12`."""
    reader = shutil.which("addr2line") or shutil.which("llvm-addr2line-19")
    if reader is None:
        return None
    # Such as "my policies/mine.bpf.c:12 (discriminator 3)".
    said = ask([reader, "-e", compiled, address]).stdout.strip()
    place = re.match(r"(.+):([1-9]\d*)(?: \(|$)", said)
    return f"{PurePath(place[1]).name}:{place[2]}" if place else None
