# SPDX-License-Identifier: MIT
"""What the tests of the teaching kernel share: the built image, or a skip."""

from __future__ import annotations

import pytest
from schedlab.hosts.kernel_boot import unavailable
from schedlab.hosts.kernel_build import build_kernel
from conftest import missing


@pytest.fixture(scope="session")
def image():
    """Kernel and file system, built from the checkout."""
    reason = unavailable()
    if reason:
        missing("the teaching kernel", reason)
    return build_kernel()
