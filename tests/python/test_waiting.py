# SPDX-License-Identifier: MIT
"""A user is told what takes long, and of nothing else."""

from __future__ import annotations

import re
import sys
import threading
import types

import pytest

from schedlab import waiting
from schedlab.hosts.guest import boot as guest_boot
from schedlab.hosts.kernel import build as kernel_build
from schedlab.policy import build
from schedlab.policy.find import load_policy


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


@pytest.fixture
def seen(monkeypatch):
    """What is announced, whether or not it takes long enough to be printed."""
    texts = []

    def announced(text):
        texts.append(text)
        return waiting.announced(text, after_seconds=600)

    for module in (build, guest_boot, kernel_build):
        monkeypatch.setattr(module, "announced", announced)
    return texts


def test_the_kernel_that_is_built_is_announced(monkeypatch, seen):
    """58 s of silence, the first time; on `run --host kernel` as well."""

    class Built(Exception):
        pass

    def link(*_):
        raise Built

    monkeypatch.setattr(kernel_build, "unavailable", lambda: None)
    monkeypatch.setattr(kernel_build, "_link_policies", link)
    with pytest.raises(Built):
        kernel_build.build_kernel()
    assert len(seen) == 1 and re.match("building the teaching kernel, about a minute", seen[0])


def test_the_first_boot_of_the_guest_is_announced_and_no_later_one(monkeypatch, tmp_path, seen):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(
        guest_boot, "_boot_and_save", lambda _system, saved, _runner, _seconds: saved.write_text("machine")
    )
    system = types.SimpleNamespace(hash="0" * 16)
    assert guest_boot.saved_machine(system).read_text() == "machine"
    assert len(seen) == 1 and re.match("booting Linux for the guest, about 10 s", seen[0])
    guest_boot.saved_machine(system)
    assert len(seen) == 1


def test_the_first_build_of_a_policy_is_announced_and_no_later_one(monkeypatch, tmp_path, seen):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    policy = load_policy("fifo")
    build.compile_policy(policy)
    assert len(seen) == 1 and re.match(r"compiling fifo\.bpf\.c, about a second", seen[0])
    build.compile_policy(policy)
    assert len(seen) == 1
