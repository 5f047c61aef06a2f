# SPDX-License-Identifier: MIT
"""The teaching kernel stays as small as a student can read in an afternoon.

Counted is hosts/kernel/kernel with its headers: lines that hold anything but blanks
and comments. Not counted are core/ and what stands beside the kernel.

`python tests/kernel/test_size.py` prints every file, the longest first, and each folder.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
KERNEL = ROOT / "hosts" / "kernel"
#: Lines of code in kernel/. Who needs more takes them away elsewhere.
CODE_LINES_MAX = 6_000
FOLDERS = ("kernel", "nolab", "lab", "mkfs", "user")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def code_lines(path):
    """Lines of a C, assembly or linker file that hold more than blanks and comments."""
    return sum(1 for line in COMMENT.sub("", path.read_text()).splitlines() if line.strip())


def sources(folder):
    """Files of code in one folder of hosts/kernel."""
    return sorted(path for path in (KERNEL / folder).iterdir() if path.suffix in (".c", ".h", ".S", ".ld"))


def total(files, count=code_lines):
    """Sum over files."""
    return sum(count(path) for path in files)


def all_lines(path):
    """Lines of a file, whatever is in them."""
    return len(path.read_text().splitlines())


def test_comments_and_blanks_do_not_count(tmp_path):
    path = tmp_path / "some.c"
    path.write_text("/* one\n * two */\n\nint x; /* three */\n// four\n\tint y;\n}\n")
    assert code_lines(path) == 3


def test_the_kernel_is_no_longer_than_promised():
    code = total(sources("kernel"))
    assert code <= CODE_LINES_MAX, (
        f"hosts/kernel/kernel has {code} lines of code, more than {CODE_LINES_MAX}: what only "
        "measures belongs into hosts/kernel/lab; run this file to see the longest"
    )


if __name__ == "__main__":
    for path in sorted(sources("kernel"), key=code_lines, reverse=True):
        print(f"{code_lines(path):5} {all_lines(path):5} {path.name}")
    for folder in FOLDERS:
        print(f"{total(sources(folder)):5} {total(sources(folder), all_lines):5} {folder}/ in all")
