# SPDX-License-Identifier: MIT
"""Every function of the library's headers has a manual page, and the pages are clean."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess

import pytest

from uthreads.uthreads_programs import HOST

WRITER = runpy.run_path(str(HOST / "man.py"))
HEADERS = "".join(path.read_text() for path in sorted((HOST / "include" / "schedlab").glob("*.h")))
CODE = re.sub(r"/\*.*?\*/", "", HEADERS, flags=re.DOTALL).replace(" GT_ARGS_", "")
DECLARED = re.findall(r"^\w[^;{}()]*?\b(\w+)\((?=[^;{]*;)", CODE, re.MULTILINE)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man") / "man3"
    return {path.stem: path.read_text() for path in WRITER["write"](folder)}


def test_every_function_has_a_page_with_its_declaration(pages):
    assert len(DECLARED) > 80
    for name in DECLARED:
        assert name in pages, f"{name} has no page"
        refers = re.fullmatch(r"\.so man3/(\w+)\.3\n", pages[name])
        page = pages[refers[1]] if refers else pages[name]
        declared, _ = page.split(".SH DESCRIPTION")
        assert re.search(rf"\b{name}\(", declared) and re.search(rf"\b{name}\b.* \\- ", declared), name


def test_every_type_and_constant_is_on_a_page(pages):
    named = re.findall(r"^(?:#define|struct) (\w+[a-zA-Z])\b(?=[( {]|\t)", CODE, re.MULTILINE)
    named += re.findall(r"^(?:typedef .*|\}) (\w+);", CODE, re.MULTILINE)
    text = "".join(pages.values())
    assert len(named) > 40
    assert [name for name in named if not re.search(rf"\b{name}\b", text)] == []


def test_members_of_the_library_are_not_shown(pages):
    assert not re.search(r"\w_;", "".join(pages.values()))


@pytest.mark.parametrize(
    "command", [["groff", "-man", "-ww", "-Tutf8", "-z"], ["mandoc", "-T", "lint", "-W", "warning"]]
)
def test_pages_are_clean(pages, tmp_path, command):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is missing: install the package of this name")
    for name, text in pages.items():
        if text.startswith(".so"):
            continue
        (tmp_path / name).write_text(text)
        done = subprocess.run([*command, tmp_path / name], capture_output=True, text=True)
        lines = (done.stdout + done.stderr).splitlines()
        # A page is as old as its header, and the same wherever it is written.
        assert [line for line in lines if "missing date" not in line] == []
