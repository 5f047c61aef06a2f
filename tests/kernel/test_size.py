# SPDX-License-Identifier: MIT
"""The teaching kernel stays as small as a student can read in an afternoon.

Counted is hosts/kernel/kernel with its headers: lines that hold anything but blanks
and comments. Not counted are core/ and what stands beside the kernel, of which
docs/kernel.md has a table.

`python tests/kernel/test_size.py` prints every file, the longest first.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
KERNEL = ROOT / "hosts" / "kernel"
#: Lines of code in kernel/. Who needs more takes them away elsewhere.
CODE_LINES_MAX = 6_000
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


def test_the_table_of_the_document_is_not_far_off():
    """Sizes that it names are right within 5 %: it need not change with every line."""
    text = (ROOT / "docs" / "kernel.md").read_text().partition("## How long it is")[2]
    rows = re.findall(r"^\| `(\S+?)` \| (\d+) \| ([\d,]+) \| ([\d,]+) \|", text, re.MULTILINE)
    assert [name for name, *_ in rows] == ["kernel/", "nolab/", "lab/", "mkfs/", "user/"]
    for name, *numbers in rows:
        files = sources(name)
        told = [int(number.replace(",", "")) for number in numbers]
        found = [len(files), total(files), total(files, all_lines)]
        for one, other in zip(told, found, strict=True):
            assert abs(one - other) <= 0.05 * other, f"{name} has {found}, the table says {told}"


if __name__ == "__main__":
    for path in sorted(sources("kernel"), key=code_lines, reverse=True):
        print(f"{code_lines(path):5} {all_lines(path):5} {path.name}")
    print(f"{total(sources('kernel')):5} {total(sources('kernel'), all_lines):5} in all")
