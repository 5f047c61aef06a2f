# SPDX-License-Identifier: MIT
"""All C files have the form that .clang-format describes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig

import pytest

from conftest import missing

FORM = "int f(int a)\n{\n\treturn a ? 1 : 2;\n}\n"


def clang_format(root, *words, text=None) -> subprocess.CompletedProcess:
    program = shutil.which("clang-format", path=sysconfig.get_path("scripts"))
    if not program:
        missing("clang-format of the version in pyproject.toml", "./lab setup")
    return subprocess.run([program, *words], cwd=root, input=text, capture_output=True, text=True)


def test_clang_format_has_nothing_to_change(root, tracked_files):
    files = [name for name in tracked_files if re.search(r"\.[ch]$", name)]
    done = clang_format(root, "--dry-run", "-Werror", *files)
    assert done.returncode == 0, f"{done.stderr}to mend it: clang-format -i FILE"


@pytest.mark.parametrize(
    "text",
    [FORM.replace("\t", "    "), FORM.replace("\n{", " {"), FORM.replace("1", " + ".join(["a"] * 25))],
    ids=["spaces", "brace", "too-long"],
)
def test_clang_format_finds_what_it_is_there_for(root, text):
    for given, code in ((FORM, 0), (text, 1)):
        done = clang_format(root, "--dry-run", "-Werror", "--assume-filename=core/x.h", text=given)
        assert done.returncode == code, done.stderr


def test_hook_has_the_version_that_the_tests_have(root):
    wanted = (root / "pyproject.toml").read_text().split('"clang-format')[1].split('"')[0]
    assert f'"clang-format{wanted}"' in (root / ".pre-commit-config.yaml").read_text()
