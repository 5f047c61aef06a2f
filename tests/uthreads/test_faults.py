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


def test_a_frame_larger_than_the_stack_is_an_overflow(faults):
    said = faults("large-frame", status=-signal.SIGABRT).stderr
    assert "stack overflow: thread large[2] has used up its 65536 bytes" in said


CRASHES = {
    "*(volatile int *)NULL = 1": signal.SIGSEGV,
    "nr /= zero": signal.SIGFPE,
    "__builtin_trap()": signal.SIGILL,
    "for (;;) zero = scx_bpf_now() == 0": signal.SIGABRT,
}


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("crash", CRASHES)
def test_a_policy_that_crashes_or_loops_is_named_with_its_operation(toolchain, tmp_path, crash, cpus):
    source = tmp_path / f"crashes_{CRASHES[crash].name.lower()}.bpf.c"
    source.write_text(
        '#include <scx/common.bpf.h>\nchar _license[] SEC("license") = "GPL";\nstatic volatile int nr, zero;\n'
        "void BPF_STRUCT_OPS(crashes_enqueue, struct task_struct *p, u64 enq_flags)\n{\n"
        f"\tif (++nr > 3)\n\t\t{crash};\n"
        "\tscx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);\n}\n"
        'SCX_OPS_DEFINE(crashes_ops, .enqueue = (void *)crashes_enqueue, .name = "crashes");\n'
    )
    chain = toolchain("gcc", "plain")
    said = run_program(chain.program("life.c"), chain.policy(source), cpus, status=-CRASHES[crash]).stderr
    did = "loops" if "for" in crash else "crashed"
    assert f"policy 'crashes' {did} in ops.enqueue() for thread thread[" in said


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


def test_a_thread_that_ends_with_a_mutex_is_named(faults):
    assert "thread owner[2] ended and still held mutex" in faults("mutex").stderr


def test_bad_attributes_are_refused(faults):
    faults("attributes", cpus=2)


@pytest.fixture
def plain(toolchain):
    """Function that runs a program of programs/ under rr."""
    chain = toolchain("gcc", "plain")

    def run(name, cpus, *words, status=0):
        return run_program(chain.program(name), policy(chain, "rr"), cpus, *words, status=status)

    return run


@pytest.mark.parametrize("what", ["calls", "end", "twice", "config", "attributes"])
@pytest.mark.parametrize("cpus", [1, 2])
def test_what_must_not_be_is_refused_and_nobody_suffers(plain, what, cpus):
    said = plain("misuse.c", cpus, what).stderr
    assert ("had not enabled preemption again" in said) == (what == "end")


@pytest.mark.parametrize("cpus", [1, 2])
def test_the_first_thread_s_end_is_that_of_the_process_after_all_others(plain, cpus):
    done = plain("misuse.c", cpus, "first")
    assert done.stdout == "good\n"
    assert "thread main[1] ended and still held mutex" in done.stderr


@pytest.mark.parametrize("what", ["threads", "memory", "maps"])
@pytest.mark.parametrize("cpus", [1, 2])
def test_what_runs_out_is_said_and_nothing_is_lost(plain, what, cpus):
    plain("limits.c", cpus, what)


@pytest.mark.parametrize("cpus", [1, 2])
def test_the_child_of_a_fork_has_no_machine(plain, cpus):
    said = plain("limits.c", cpus, "fork").stderr
    assert said.count("a child has to call exec or _exit") == 1


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_program_has_signals_of_its_own(plain, cpus):
    plain("signals.c", cpus)


@pytest.mark.parametrize("cpus", [1, 2])
def test_exceptions_stay_with_their_threads(plain, cpus):
    plain("exceptions.cpp", cpus)


def test_an_exception_that_leaves_a_thread_ends_the_process(plain):
    said = plain("exceptions.cpp", 2, "leave", status=-signal.SIGABRT).stderr
    assert "an exception left the function of thread careless[2]" in said
    assert "terminate called after throwing" in said


def test_pthread_exit_is_not_for_user_threads(plain):
    said = plain("exceptions.cpp", 2, "exit", status=-signal.SIGABRT).stderr
    assert "pthread_exit() or pthread_cancel(), which end a kernel thread, met thread careless[2]" in said
