# SPDX-License-Identifier: MIT
"""Builds the kernel's file system, and its image maker, as programs of this machine.

Read next: fs_harness/harness.h.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
KERNEL = ROOT / "hosts" / "kernel" / "kernel"
HARNESS = ROOT / "tests" / "kernel" / "fs_harness"
KERNEL_PARTS = ("cache", "bio", "log", "balloc", "inode", "dir", "file", "pipe", "sysfile", "fsmount")
#: Every source of the file system, by its name.
PARTS = {name: KERNEL / f"{name}.c" for name in KERNEL_PARTS}
PARTS["fscheck"] = ROOT / "hosts" / "kernel" / "mkfs" / "fscheck.c"
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
OPTIONS = (
    "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
    f"-I{ROOT / 'hosts' / 'kernel'}", f"-I{ROOT / 'include'}",
)  # fmt: skip


def build_harness(
    folder: Path,
    *,
    compiler: str = "gcc",
    changed: dict[str, str] | None = None,
    sanitizers: tuple[str, ...] = SANITIZED,
) -> Path:
    """Compile the harness into a folder, with other text for the parts in `changed`."""
    sources = []
    for part, source in PARTS.items():
        if part in (changed or {}):
            source = folder / f"{part}.c"
            source.write_text(changed[part])
        sources.append(source)
    program = folder / "fs_harness"
    subprocess.run(
        [compiler, *OPTIONS, *sanitizers, "-iquote", KERNEL, "-iquote", PARTS["fscheck"].parent,
         "-include", HARNESS / "stub_proc.h", *sources, *sorted(HARNESS.glob("*.c")), "-o", program,
         "-lpthread"],
        check=True,
    )  # fmt: skip
    return program


def build_mkfs(folder: Path, *, compiler: str = "gcc") -> Path:
    """Compile the image maker, with sanitizers. Parameters as above."""
    program = folder / "mkfs"
    sources = sorted((ROOT / "hosts" / "kernel" / "mkfs").glob("*.c"))
    subprocess.run([compiler, *OPTIONS, *SANITIZED, *sources, "-o", program], check=True)
    return program
