# SPDX-License-Identifier: MIT
"""Python's packages import themselves and what stands below them: the contract of pyproject.toml."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys

import pytest

from conftest import missing


def lint_imports(root, package) -> subprocess.CompletedProcess:
    if not importlib.util.find_spec("importlinter"):
        missing("import-linter", "./lab setup")
    return subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache",
         "--config", root / "pyproject.toml"],
        cwd=package, env={**os.environ, "PYTHONPATH": str(package), "COLUMNS": "200"}, capture_output=True, text=True,
    )  # fmt: skip


def test_no_package_imports_a_later_one(root):
    done = lint_imports(root, root / "python")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("module", "text", "message"),
    [
        (
            "program/work.py",
            "from .. import metrics\n",
            "schedlab.program is not allowed to import schedlab.metrics",
        ),
        (
            "program/work.py",
            "def f():\n    from schedlab.metrics.tally import g\n",
            "schedlab.program is not allowed to import schedlab.metrics",
        ),
        (
            "units.py",
            "from .program.file import read\n",
            "schedlab.units is not allowed to import schedlab.program",
        ),
        ("helpers.py", "", "schedlab.helpers"),
        ("helpers/__init__.py", "", "schedlab.helpers"),
    ],
)
def test_an_import_against_the_flow_is_found(root, tmp_path, module, text, message):
    shutil.copytree(
        root / "python" / "schedlab", tmp_path / "schedlab", ignore=shutil.ignore_patterns("__pycache__")
    )
    path = tmp_path / "schedlab" / module
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + text)
    done = lint_imports(root, tmp_path)
    assert done.returncode == 1 and message in done.stdout, done.stdout + done.stderr
