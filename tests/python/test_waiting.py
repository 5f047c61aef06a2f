# SPDX-License-Identifier: MIT
"""A user is told what takes long, and of nothing else."""

from __future__ import annotations

import sys
import threading

import pytest

from schedlab.cli import kernel as cli_kernel
from schedlab.hosts import kernel_boot, kernel_build
from schedlab.show import waiting


class Told(list):
    """Standard error that knows when its second line has come."""

    def __init__(self):
        self.is_second = threading.Event()

    def write(self, text):
        self.append(text)
        if sum("\n" in each for each in self) > 1:
            self.is_second.set()

    def flush(self):
        pass


def test_what_is_done_at_once_is_not_announced(capsys):
    with waiting.announced("building", after_seconds=600):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_long_step_is_named_and_its_time_goes_on(monkeypatch):
    told = Told()
    monkeypatch.setattr(sys, "stderr", told)
    with waiting.announced("building", after_seconds=0, every_seconds=0.001):
        assert told.is_second.wait(60)
    assert "".join(told).startswith("schedlab: building\nschedlab:   0 s\n")


def test_the_kernel_that_is_built_is_announced(monkeypatch):
    """58 s of silence, the first time."""
    seen = []

    class Built(Exception):
        pass

    def build(*_, **__):
        raise Built

    monkeypatch.setattr(kernel_boot, "unavailable", lambda: None)
    monkeypatch.setattr(kernel_build, "build_kernel", build)
    announced = waiting.announced
    monkeypatch.setattr(waiting, "announced", lambda text: seen.append(text) or announced(text))
    with pytest.raises(Built):
        cli_kernel.kernel(policy="rr", cpus=1, run=None)
    assert len(seen) == 1 and seen[0].startswith("building the teaching kernel")
