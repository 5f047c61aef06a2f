# SPDX-License-Identifier: MIT
"""What goes wrong in a program of threads is said, and by whom."""

from __future__ import annotations

import signal

import pytest
from uthreads.test_threads import policy
from uthreads.uthreads_programs import run_program


@pytest.fixture
def faults(toolchain):
    """Function that runs programs/faults.c and returns what it printed."""
    chain = toolchain("gcc", "plain")

    def run(what, *, cpus=1, name="rr", status=0):
        return run_program(chain.program("faults.c"), policy(chain, name), cpus, what, status=status)

    return run


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_stack_overflow_is_named(faults, cpus):
    said = faults("overflow", cpus=cpus, status=-signal.SIGABRT).stderr
    assert "stack overflow: thread deep[2] has used up its 65536 bytes" in said


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_deadlock_ends_the_process_and_says_who_waits_for_whom(faults, cpus):
    said = faults("deadlock", cpus=cpus, status=70).stderr
    assert "waits one[2] for mutex" in said and "of two[3]" in said
    assert "waits two[3] for mutex" in said and "of one[2]" in said
    assert "waits main[1] for thread one[2]" in said


def test_sigquit_shows_every_thread(faults):
    said = faults("quit").stderr
    assert said.count("waits sleeper[2] for time") == 2, said
    assert said.count("cpu 0 local 0") == 2, said


def test_another_fault_is_the_program_s_own(faults):
    assert "overflow" not in faults("segv", status=-signal.SIGSEGV).stderr


@pytest.mark.parametrize("cpus", [1, 2])
def test_errno_survives_a_preemption(faults, cpus):
    faults("errno", cpus=cpus)
