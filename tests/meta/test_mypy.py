# SPDX-License-Identifier: MIT
"""The package is typed strictly, all of it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest

from conftest import missing

pytestmark = pytest.mark.full


def mypy(root, *words) -> subprocess.CompletedProcess:
    if not importlib.util.find_spec("mypy"):
        missing("mypy", "./lab setup")
    command = [sys.executable, "-m", "mypy", "--cache-dir", ".cache/mypy", *words]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)


def test_package_has_no_type_errors(root):
    done = mypy(root)
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = """
from schedlab.units import parse_duration

def f(x): return x
def g(x: dict) -> None: ...
parse_duration(None, place=1)
"""


def test_mypy_finds_what_it_is_there_for(root, tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    done = mypy(root, tmp_path / "wrong.py")
    found = re.findall(r":(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M)
    wanted = [("4", "no-untyped-def"), ("5", "type-arg"), ("6", "arg-type")]
    assert sorted(set(found)) == wanted, done.stdout + done.stderr
