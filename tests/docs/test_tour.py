# SPDX-License-Identifier: MIT
"""docs/tour.md says what is true: its quotes, its command, its records, its links."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TOUR = ROOT / "docs" / "tour.md"


@pytest.fixture(scope="module")
def text() -> str:
    return TOUR.read_text()


def test_quoted_lines_stand_in_the_files(text):
    quotes = re.findall(r"<!-- quote (\S+) -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert len(quotes) >= 6
    for name, lines in quotes:
        assert lines.rstrip("\n") in (ROOT / name).read_text(), f"{name} no longer contains\n{lines}"


def test_named_files_exist(text):
    planned = {"hosts/uthreads/host.c", "hosts/kernel/kernel/host.c"}
    for name in (
        set(re.findall(r"`((?:core|hosts|include|policies|python|workloads)/[\w./-]+)`", text)) - planned
    ):
        assert (ROOT / name).exists(), name
    for link in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (TOUR.parent / link).exists(), link


def test_command_and_records(text, simulator, tmp_path):
    """The command of the page, with another folder, gives the records it shows."""
    pl = pytest.importorskip("polars")
    command = re.search(r"^\$ (\./lab run .*)$", text, re.MULTILINE).group(1)
    arguments = shlex.split(command)[1:]
    out = arguments[arguments.index("--out") + 1]
    arguments[arguments.index("--out") + 1] = str(tmp_path)
    subprocess.run([ROOT / "lab", *arguments], check=True, capture_output=True, cwd=ROOT)
    for path, task, rows, shown in re.findall(
        r"<!-- records (\S+) task (\d+) rows (\d+) -->\n```text\n(.*?)```", text, re.DOTALL
    ):
        table = pl.read_parquet(tmp_path / path.removeprefix(out + "/"))
        found = table.filter(pl.col("task") == int(task)).head(int(rows))
        lines = [f"{row['t_ns']} {row['kind']}" for row in found.to_dicts()]
        assert lines == [" ".join(line.split()) for line in shown.splitlines()]


def test_wakeup_followed_is_computed_right(text):
    """The two numbers of section 7 are those of the records in section 6."""
    woke, ran = 2_772_594_658, 3_259_182_484
    assert str(woke) in text and str(ran) in text
    assert f"{(ran - woke) / 1e6:.1f} ms" in text
