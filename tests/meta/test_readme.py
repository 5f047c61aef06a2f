# SPDX-License-Identifier: MIT
"""What the documentation tells a reader to type works, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
#: Run by this very test run, or by ./lab test as a whole.
RUN_ELSEWHERE = {"./lab test", "./lab test --suite quick", "tools/tidy"}


def documents() -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split()]


def commands(document: Path) -> list[str]:
    blocks = [body for kind, body in FENCE.findall(document.read_text()) if kind == "console"]
    return [line[2:] for body in blocks for line in body.splitlines() if line.startswith("$ ")]


def test_commands_are_written_in_console_blocks():
    """A block of another kind would not be run by the test below."""
    kinds = {
        kind
        for name in ("README.md", "CONTRIBUTING.md")
        for kind, _ in FENCE.findall((ROOT / name).read_text())
    }
    assert kinds <= {"console", "", "python"}  # tests/python/test_api.py runs the last
    plain = [body for kind, body in FENCE.findall((ROOT / "README.md").read_text()) if not kind]
    assert not any("./lab" in body for body in plain)


@pytest.fixture(scope="module")
def copy(tmp_path_factory, build, copy_tracked) -> Path:
    """A copy of what git tracks, so that a command may write beside its input.

    The environment and the build are this checkout's: test_fresh_clone.py is
    about making them.
    """
    folder = copy_tracked(tmp_path_factory.mktemp("readme") / "schedlab")
    # A `lab` of the same words that skips set-up: it runs this checkout's.
    (folder / "lab").write_text(f'#!/bin/sh\nexec "{ROOT}/lab" "$@"\n')
    # Tests of the reader's own run with the copy's package, which looks for it.
    (folder / "build").symlink_to(ROOT / "build")
    return folder


@pytest.mark.full
def test_every_command_of_the_readme_works(copy):
    for command in commands(ROOT / "README.md"):
        if command in RUN_ELSEWHERE:
            continue
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=copy,
            env={**os.environ, "LAB_NO_ROOT": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        assert done.stdout.strip() or command.startswith("sed "), f"$ {command} said nothing"


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(document):
    text = FENCE.sub("", document.read_text())
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not (document.parent / target).exists()]
    assert missing == []


def test_the_table_of_policies_is_that_of_the_folder():
    rows = re.findall(
        r"^\| \[(\w+)\]\((\w+)\.bpf\.c\) \|", (ROOT / "policies" / "README.md").read_text(), re.M
    )
    there = [path.name.removesuffix(".bpf.c") for path in (ROOT / "policies").glob("*.bpf.c")]
    assert sorted(rows) == sorted((name, name) for name in there)


def test_the_page_of_workloads_names_them_all():
    text = (ROOT / "docs" / "workloads.md").read_text()
    there = [
        str(path.relative_to(ROOT / "workloads").with_suffix(""))
        for path in (ROOT / "workloads").rglob("*.toml")
    ]
    assert [name for name in there if not re.search(rf"\*\*{name}\*\*|`{name}[`:]", text)] == []
