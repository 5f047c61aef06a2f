# SPDX-License-Identifier: MIT
"""All Python files have one form, and ruff's linter finds nothing in them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from conftest import missing


def ruff(root, *words, text=None) -> subprocess.CompletedProcess:
    if not importlib.util.find_spec("ruff"):
        missing("ruff", "./lab setup")
    command = [sys.executable, "-m", "ruff", *words]
    return subprocess.run(command, cwd=root, input=text, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("words", "hint"),
    [(["format", "--check"], "ruff format"), (["check", "--output-format=concise"], "ruff check --fix")],
    ids=["format", "lint"],
)
def test_ruff_has_nothing_to_change(root, words, hint):
    done = ruff(root, *words, "--no-cache")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}to mend it: {hint}"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["format", "--check"], "x = [1,2]\n"),
        (["check"], "import os\n"),
        (["check"], "def f(a=[]):\n    return a\n"),
        (["check"], "import tomllib\n\nprint(tomllib)\n"),
        (["check"], "x = 1  # fmt: skip\ny = [\n    2,  # fmt: skip\n]\n"),
    ],
    ids=["format", "unused", "bugbear", "one-reader", "needless-skip"],
)
def test_ruff_finds_what_it_is_there_for(root, words, text):
    done = ruff(root, *words, "--no-cache", "--stdin-filename", "python/schedlab/x.py", "-", text=text)
    assert done.returncode == 1, done.stderr


def test_programs_without_a_suffix_and_hooks_are_seen_too(root, tracked_files):
    """ruff finds files by name, and pre-commit installs the version that the tests have."""
    seen = ruff(root, "check", "--show-files", "--no-cache").stdout.split()
    python = {
        name
        for name in tracked_files
        if name.endswith(".py") or (root / name).read_bytes().startswith(b"#!/usr/bin/env python3")
    }
    assert python <= {name.removeprefix(f"{root}/") for name in seen}
    wanted = (root / "pyproject.toml").read_text().split('"ruff')[1].split('"')[0]
    assert (root / ".pre-commit-config.yaml").read_text().count(f'"ruff{wanted}"') == 2
