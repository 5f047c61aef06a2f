# SPDX-License-Identifier: MIT
"""The harness itself: a failure is one, a skip is seen, suites choose."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import LONGEST

TESTS = """\
import pytest

def test_passes():
    pass

def test_tool(need):
    need("no-such-tool-of-schedlab", "apt-get install it")

@pytest.mark.full
def test_full():
    pass

@pytest.mark.nightly
def test_nightly():
    pass
"""


@pytest.fixture
def inner(root, tmp_path):
    """Function that runs pytest on a small project with this conftest.py."""
    (tmp_path / "tests").mkdir()
    shutil.copy(root / "tests" / "conftest.py", tmp_path / "tests")
    shutil.copy(root / "pyproject.toml", tmp_path)

    def run(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        (tmp_path / "tests" / "test_inner.py").write_text(text)
        clean = {k: v for k, v in os.environ.items() if k != "SCHEDLAB_TOOLS_REQUIRED"}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests", *arguments],
            cwd=tmp_path,
            env=clean | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_missing_tool_is_a_skip_with_reason_and_remedy(inner):
    done = inner(TESTS)
    assert done.returncode == 0, done.stdout
    assert "2 passed, 1 skipped, 1 deselected" in done.stdout
    assert "no-such-tool-of-schedlab is missing; to have it: apt-get install it" in done.stdout


def test_a_missing_tool_is_a_failure_where_all_must_be_there(inner):
    done = inner(TESTS, SCHEDLAB_TOOLS_REQUIRED="1")
    assert done.returncode == 1
    assert "1 failed, 2 passed" in done.stdout


@pytest.mark.parametrize(
    ("suite", "counts"),
    [
        ("quick", "1 passed, 1 skipped, 2 deselected"),
        ("full", "2 passed, 1 skipped, 1 deselected"),
        ("nightly", "3 passed, 1 skipped"),
    ],
)
def test_suites_grow(inner, suite, counts):
    assert counts in inner(TESTS, "--suite", suite).stdout


@pytest.mark.full
def test_a_file_stays_on_one_worker_and_the_longest_is_begun_first(inner, tmp_path):
    """What a file shares is set up once; the file with less tests, but more to do, first."""
    shared = """
import pytest

@pytest.fixture(scope="module")
def shared():
    with open("order", "a") as file:
        file.write(__name__.rpartition(".")[2] + "\\n")
"""
    tests = "".join(f"def test_{number}(shared):\n    pass\n" for number in range(6))
    long = tmp_path / "tests" / "meta" / "test_wheel.py"
    long.parent.mkdir()
    long.write_text(shared + tests[: len(tests) // 2])
    done = inner(shared + tests, "-n", "1", "--dist", "loadgroup")
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "order").read_text().split() == ["test_wheel", "test_inner"]
    (tmp_path / "order").unlink()
    done = inner(shared + tests, "-n", "2", "--dist", "loadgroup")
    assert sorted((tmp_path / "order").read_text().split()) == ["test_inner", "test_wheel"], done.stdout


def test_the_longest_files_are_there(root):
    named = [group for group in LONGEST if group.startswith("tests/")]
    assert named and [name for name in named if not (root / name).is_file()] == []


def test_a_failing_test_fails(inner):
    assert inner("def test_bad():\n    assert 1 == 2\n").returncode == 1


HANGS = """
import subprocess
import pytest

@pytest.fixture
def never():
    subprocess.run(["sleep", "1000.25"])

def test_waits():
    subprocess.run(["sleep", "1000.25"])

def test_waits_for_what_it_needs(never):
    pass

def test_follows():
    left = subprocess.run(["pgrep", "-f", "sleep 1000[.]25"], capture_output=True, text=True)
    assert left.stdout == ""
"""


@pytest.mark.full
def test_a_test_that_hangs_is_named_and_ended_with_its_child(inner):
    done = inner(HANGS.replace("1000", f"1{os.getpid()}"), "--timeout", "1")
    assert "1 failed, 1 passed, 1 error" in done.stdout
    assert "FAILED tests/test_inner.py::test_waits - Failed: Timeout (>1.0s)" in done.stdout
    assert "ERROR tests/test_inner.py::test_waits_for_what_it_needs" in done.stdout


def test_a_warning_is_a_failure(inner):
    text = "import warnings\ndef test_bad():\n    warnings.warn('old', DeprecationWarning)\n"
    assert inner(text).returncode == 1


def test_a_marker_that_does_not_exist_is_refused(inner):
    text = "import pytest\n@pytest.mark.quik\ndef test_it():\n    pass\n"
    assert inner(text).returncode != 0


def test_no_test_at_all_is_no_success(inner):
    assert inner("").returncode != 0


@pytest.mark.parametrize("status", [0, 1, 3])
def test_ci_runs_the_tests_and_ends_as_they_do(root, tmp_path, status):
    (tmp_path / ".ci").mkdir()
    shutil.copy(root / ".ci" / "run", tmp_path / ".ci" / "run")
    lab = tmp_path / "lab"
    lab.write_text(
        f'#!/bin/sh\necho "lab $* tools=$SCHEDLAB_TOOLS_REQUIRED ci=${{CI:+yes}}"\nexit {status}\n'
    )
    lab.chmod(0o755)
    done = subprocess.run(
        ["bash", tmp_path / ".ci" / "run"],
        cwd=Path("/"),
        env={name: value for name, value in os.environ.items() if name != "CI"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    required = "1" if os.getuid() == 0 else os.environ.get("SCHEDLAB_TOOLS_REQUIRED", "")
    assert done.stdout == f"lab test tools={required} ci=yes\n"
