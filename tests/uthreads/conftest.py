# SPDX-License-Identifier: MIT
"""Toolchains for the tests of the thread library, each built once."""

from __future__ import annotations

import pytest
from uthreads.uthreads_programs import Toolchain


@pytest.fixture(scope="session")
def toolchain(tmp_path_factory, need):
    """Function that gives a `Toolchain`: `toolchain("gcc", "address")`."""
    made = {}

    def get(compiler: str, kind: str) -> Toolchain:
        if (compiler, kind) not in made:
            folder = tmp_path_factory.mktemp(f"{compiler}-{kind}")
            made[compiler, kind] = Toolchain(need(compiler), kind, folder)
        return made[compiler, kind]

    return get
