# SPDX-License-Identifier: MIT
"""How-to guides and the tutorial do what they say: their files are written, their commands run, in order.

A page marks what belongs to it: `<!-- file NAME -->` before a block that is a file, `<!-- exit N: TEXT -->`
before commands that end so and say so, `<!-- quote FILE -->` before lines of a file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    *(ROOT / "docs" / name for name in ("first-scheduler.md", "times.md")),
]
BLOCK = re.compile(r"(?:^ *<!-- (\w+) ([^>]*) -->\n)?^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def blocks(page: Path):
    """Mark, its argument, language and text of each block."""
    for mark, argument, _indent, language, text in BLOCK.findall(page.read_text()):
        yield mark, argument, language, text


@pytest.fixture(scope="module")
def commands_folder(tmp_path_factory, build) -> Path:
    """Programs `schedlab` and `python` that are this checkout's."""
    folder = tmp_path_factory.mktemp("bin")
    words = {"schedlab": f'"{sys.executable}" -m schedlab', "python": f'"{sys.executable}"'}
    for name, command in words.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_commands_work(page, tmp_path, commands_folder):
    env = dict(os.environ, PYTHONPATH=str(ROOT / "python"), PATH=f"{commands_folder}:{os.environ['PATH']}")
    env["SCHEDLAB"] = str(ROOT)
    for mark, argument, language, text in blocks(page):
        if mark == "file":
            (tmp_path / argument).write_text(text)
        if language != "console":
            continue
        code, _, wanted = argument.partition(": ") if mark == "exit" else ("0", "", "")
        for part in text.split("$ ")[1:]:
            command, *quoted = part.rstrip().splitlines()
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            shown = f"$ {command}\n{done.stdout}{done.stderr}"
            assert done.returncode == int(code) and wanted in shown, shown
            assert "too-few" not in shown or "--seeds" not in command, shown
            # Output that the page shows is what is printed, but for blanks.
            assert " ".join(" ".join(quoted).split()) in " ".join(shown.split()), shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_quoted_lines_stand_in_their_files(page):
    for mark, argument, _language, text in blocks(page):
        if mark == "quote":
            assert textwrap.dedent(text).strip() in (ROOT / argument).read_text(), argument
