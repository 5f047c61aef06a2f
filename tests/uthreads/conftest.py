# SPDX-License-Identifier: MIT
"""Toolchains for the tests of the thread library, each built once."""

from __future__ import annotations

import pytest

from uthreads.uthreads_programs import Toolchain, build_folder

#: What debuggers run: Python of theirs, without tests.
collect_ignore_glob = ["programs/*"]


@pytest.fixture(scope="session")
def toolchain(need):
    """Function that gives a `Toolchain`: `toolchain("gcc", "address")`."""
    made = {}

    def get(compiler: str, kind: str) -> Toolchain:
        if (compiler, kind) not in made:
            path = need(compiler)
            made[compiler, kind] = Toolchain(path, kind, build_folder(path, kind))
        return made[compiler, kind]

    return get
