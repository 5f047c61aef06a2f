# SPDX-License-Identifier: MIT
"""A counter-example of `schedlab check` is run in a real kernel, and what that makes of it is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import missing
from schedlab.hosts.guest import policies as guest

pytestmark = pytest.mark.full
BUGS = Path(__file__).resolve().parent / "bugs"


@pytest.mark.parametrize(
    ("bug", "begin", "end"),
    [
        ("global_in_vtime_order", "confirmed on Linux (7.", "cannot use vtime ordering"),
        # What does not come to run confirms nothing.
        ("stale_mask", "not run on Linux (7.", "refused by Linux: stale_mask.bpf.c:18: "),
    ],
)
def test_on_linux_says_what_a_real_kernel_makes_of_it(bug, begin, end, tmp_path, simulator):
    if reason := guest.unavailable_reason():
        missing("a guest", reason)
    done = subprocess.run(
        [sys.executable, "-m", "schedlab", "check", BUGS / f"{bug}.bpf.c", "--worlds", "100", "--on-linux", "--json"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    (found,) = json.loads(done.stdout)["found"]
    assert found["on_linux"].startswith(begin), found["on_linux"]
    assert end in found["on_linux"]
