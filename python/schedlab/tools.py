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


def source_line(compiled: Path, address: str, *, but_below: Path | None = None) -> str | None:
    """File and line of the source that an address of a compiled file comes from, such as `mine.bpf.c:12`.

    Of a function that the compiler has put into another one, and that is in a file below a folder, the line that calls it.
    """
    reader = shutil.which("addr2line") or shutil.which("llvm-addr2line-19")
    if reader is None:
        return None
    # Such as "my policies/mine.bpf.c:12 (discriminator 3)"; the innermost function first.
    said = ask([reader, "-i", "-e", compiled, address]).stdout.splitlines()
    places = [place for line in said if (place := re.match(r"(.+):([1-9]\d*)(?: \(|$)", line.strip()))]
    if but_below is not None:
        outside = [
            place for place in places if not Path(place[1]).resolve().is_relative_to(but_below.resolve())
        ]
        places = outside or places
    return f"{PurePath(places[0][1]).name}:{places[0][2]}" if places else None
