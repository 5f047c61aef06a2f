# SPDX-License-Identifier: MIT
"""The package is typed strictly, all of it; what is beside it uses what the package has."""

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


#: Of a name or an argument that is not there: a benchmark that nothing calls for weeks breaks so.
NOT_THERE = r"^(?:bench|tools)/.*\[(?:call-arg|name-defined|attr-defined)\]$"


def test_benchmarks_and_tools_use_what_is_there(root, tmp_path):
    lax = tmp_path / "mypy.ini"
    lax.write_text("[mypy]\nignore_missing_imports = true\nfollow_imports = silent\nmypy_path = python\n")
    done = mypy(root, "--config-file", lax, "bench", "tools")
    assert not re.findall(NOT_THERE, done.stdout, re.M), done.stdout
    assert re.search(r"checked \d\d+ source files", done.stdout), done.stdout + done.stderr


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
