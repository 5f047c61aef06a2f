# SPDX-License-Identifier: MIT
"""Programs that Linux's headers and ours meet in compile with newer headers, too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [path for path in sorted((ROOT / "hosts").rglob("*.c")) if "<linux/bpf.h>" in path.read_text()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_linux_bpf_h_stands_without_the_types_of_a_policy(path):
    """Since Linux 6.3 it has `struct bpf_rb_node`, which scx/types.h has for the other hosts."""
    folders = [
        ROOT / "include",
        ROOT / "player",
        *(ROOT / "hosts/linux" / name for name in ("tasks", "play")),
    ]
    # Which headers of ours it includes; those of libbpf need not be there.
    words = ["cc", "-MM", "-MG", *(f"-I{folder}" for folder in folders), path]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "scx/ops.h" in done.stdout
    assert "scx/types.h" not in done.stdout
