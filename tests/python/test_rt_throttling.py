# SPDX-License-Identifier: MIT
"""The limit of real-time tasks is switched off for a while, and is back however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from schedlab.errors import UnavailableError
from schedlab.hosts.linux.rt_throttling import no_rt_throttling

HOLD = """
import sys, pathlib
from schedlab.hosts.linux.rt_throttling import no_rt_throttling
with no_rt_throttling(pathlib.Path(sys.argv[1])):
    print("off", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def limit(tmp_path):
    file = tmp_path / "sched_rt_runtime_us"
    file.write_text("950000\n")
    return file


def wait_for(file, text):
    end = time.monotonic() + 60
    while file.read_text() != text and time.monotonic() < end:
        time.sleep(0.01)
    assert file.read_text() == text


def test_the_limit_is_off_and_back_after_an_error(limit):
    with pytest.raises(KeyError), no_rt_throttling(limit):
        assert limit.read_text() == "-1"
        raise KeyError
    assert limit.read_text() == "950000\n"


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_limit_is_back_when_the_process_is_killed(limit, way):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, limit],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stdout.readline() == b"off\n"
        assert limit.read_text() == "-1"
        # As Ctrl-C and a closed terminal: to the whole group.
        os.killpg(child.pid, way)
    wait_for(limit, "950000\n")


def test_no_limit_stays_no_limit(limit):
    limit.write_text("-1\n")
    with no_rt_throttling(limit):
        assert limit.read_text() == "-1\n"
    assert limit.read_text() == "-1\n"


def test_a_kernel_without_the_file_says_so(tmp_path):
    with pytest.raises(UnavailableError, match="no limit to switch off"), no_rt_throttling(tmp_path / "none"):
        pass
