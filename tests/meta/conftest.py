# SPDX-License-Identifier: MIT
"""What the tests of the harness share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def programs_without(tmp_path_factory):
    """Function that makes a PATH of the system's programs less some.

    `programs_without(r"clang.*", r"qemu.*")` returns one folder of links, as a
    machine would look where these had never been installed.
    """

    def make(*names: str) -> str:
        folder = tmp_path_factory.mktemp("programs") / "bin"
        hidden = re.compile("|".join(names))
        folder.mkdir()
        for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
            for program in Path(place).iterdir():
                link = folder / program.name
                if not hidden.fullmatch(program.name) and not link.is_symlink():
                    link.symlink_to(program)
        return str(folder)

    return make
