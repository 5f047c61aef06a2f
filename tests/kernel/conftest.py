# SPDX-License-Identifier: MIT
"""What the tests of the teaching kernel share: the built image, or a skip."""

from __future__ import annotations

import pytest

from conftest import missing
from kernel.fs_build import build_harness, build_mkfs
from schedlab.hosts.kernel.boot import unavailable
from schedlab.hosts.kernel.build import build_kernel


@pytest.fixture(scope="session")
def image():
    """Kernel and file system, built from the checkout."""
    reason = unavailable()
    if reason:
        missing("the teaching kernel", reason)
    return build_kernel()


@pytest.fixture(scope="session")
def harness(tmp_path_factory, need):
    """The kernel's file system as a program of this machine, with sanitizers."""
    need("gcc")
    return build_harness(tmp_path_factory.mktemp("harness"))


@pytest.fixture(scope="session")
def mkfs(tmp_path_factory, need):
    """The image maker, with sanitizers."""
    need("gcc")
    return build_mkfs(tmp_path_factory.mktemp("mkfs"))
