# SPDX-License-Identifier: MIT
"""Threads of the library: their lives, and that they make way when they must."""

from __future__ import annotations

import signal

import pytest

from uthreads.uthreads_programs import ROOT, run_program

#: One call in eight ends its caller's turn, and there are pauses where CPUs may meet.
FORCED = {"UT_FORCED_POINTS": "8"}
BUILDS = [("gcc", "plain"), ("clang-19", "plain"), ("gcc", "address"), ("clang-19", "thread")]

MAIN_IS_FIRST = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
void BPF_STRUCT_OPS(first_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (p->comm[0] == 'm')
		enq_flags |= SCX_ENQ_PREEMPT;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
}
SCX_OPS_DEFINE(first_ops, .enqueue = (void *)first_enqueue, .name = "first");
"""


def policy(chain, name):
    """A compiled policy of policies/, or "-": none."""
    return "-" if name == "-" else chain.policy(ROOT / "policies" / f"{name}.bpf.c")


@pytest.mark.parametrize("cpus", [1, 2, 4])
@pytest.mark.parametrize("build", BUILDS, ids="-".join)
def test_life(toolchain, build, cpus):
    chain = toolchain(*build)
    run_program(chain.program("life.c"), policy(chain, "fifo"), cpus)


@pytest.mark.full
@pytest.mark.parametrize("program", ["life", "sockets", "errnos"])
def test_threads_under_gccs_thread_sanitizer(toolchain, program):
    """Its warning of fences was an error."""
    chain = toolchain("gcc", "thread")
    run_program(chain.program(f"{program}.c"), policy(chain, "rr"), 2)


@pytest.mark.parametrize("cpus", [1, 2, 4])
@pytest.mark.parametrize("name", ["fifo", "rr"])
@pytest.mark.parametrize("build", BUILDS, ids="-".join)
def test_waiting_for_each_other(toolchain, build, name, cpus):
    chain = toolchain(*build)
    run_program(chain.program("sync.c"), policy(chain, name), cpus)


@pytest.mark.parametrize("cpus", [1, 2, 4])
@pytest.mark.parametrize("name", ["fifo", "rr"])
@pytest.mark.parametrize("build", BUILDS, ids="-".join)
def test_waiting_for_one_of_several_channels(toolchain, build, name, cpus):
    chain = toolchain(*build)
    run_program(chain.program("select.c"), policy(chain, name), cpus, env=FORCED, seconds=60)


@pytest.mark.parametrize("cpus", [1, 2, 4])
@pytest.mark.parametrize("build", BUILDS, ids="-".join)
def test_readers_and_writers(toolchain, build, cpus):
    chain = toolchain(*build)
    run_program(chain.program("readers.c"), policy(chain, "rr"), cpus, env=FORCED)


@pytest.mark.parametrize("name", ["-", "rr", "cfs", "credit", "mlfq", "lottery"])
@pytest.mark.parametrize("cpus", [1, 2])
def test_threads_that_never_give_way_are_preempted(toolchain, name, cpus):
    chain = toolchain("gcc", "plain")
    run_program(chain.program("spin.c"), policy(chain, name), cpus)


@pytest.mark.parametrize("name", ["fifo", "rr"])
@pytest.mark.parametrize("cpus", [2, 4])
@pytest.mark.parametrize("build", BUILDS, ids="-".join)
def test_what_is_woken_runs_although_its_waker_computes_on(toolchain, build, cpus, name):
    chain = toolchain(*build)
    run_program(chain.program("waker.c"), policy(chain, name), cpus)


@pytest.mark.parametrize("what", ["compute", "count"])
@pytest.mark.parametrize("cpus", [1, 2, 4])
def test_threads_make_way_in_libraries_but_not_with_their_locks(toolchain, cpus, what):
    chain = toolchain("gcc", "plain")
    run_program(
        chain.program("library.c", "-ldl"),
        policy(chain, "rr"),
        cpus,
        chain.plugin("plugin.c"),
        what,
        seconds=20,
    )


@pytest.mark.parametrize("what", ["ask", "change"])
def test_calls_that_charge_a_thread_do_not_put_off_its_tick(toolchain, what):
    chain = toolchain("gcc", "plain")
    n_switches = int(run_program(chain.program("charged.c"), policy(chain, "rr"), 1, what).stdout)
    # 300 ms in slices of a tick of 1 ms, when the signal does not meet it in the library; it was 49.
    assert n_switches > 120


@pytest.mark.parametrize("build", [("gcc", "plain"), ("clang-19", "thread")], ids="-".join)
def test_statistics_of_threads_that_run_elsewhere(toolchain, build):
    chain = toolchain(*build)
    run_program(chain.program("asked.c"), policy(chain, "rr"), 2)


@pytest.mark.parametrize("cpus", [1, 4])
def test_idle_cpus_cost_nothing(toolchain, cpus):
    """CPU time, whatever the machine does meanwhile; a CPU that turns round takes all of it."""
    chain = toolchain("gcc", "plain")
    slept_ms = 300
    used_us = int(run_program(chain.program("idle.c"), policy(chain, "rr"), cpus, slept_ms).stdout)
    assert used_us < slept_ms * 1000 / 50


def test_who_stays_after_an_endless_slice_makes_way_later(toolchain):
    chain = toolchain("gcc", "plain")
    endless = chain.policy(ROOT / "tests" / "conformance" / "s25_default_choice.bpf.c")
    run_program(chain.program("stay.c"), endless, 1)


def test_a_bell_that_is_rung_late_does_not_keep_signals_away(toolchain):
    chain = toolchain("gcc", "address")
    endless = chain.policy(ROOT / "tests" / "conformance" / "s25_default_choice.bpf.c")
    run_program(chain.program("bell.c"), endless, 2, env=FORCED)


def test_who_leaves_a_barrier_is_not_counted(toolchain):
    chain = toolchain("gcc", "address")
    run_program(chain.program("leave.c"), policy(chain, "rr"), 2, env=FORCED)


@pytest.mark.parametrize(
    "words",
    [("priority", "smallest"), ("rt_fifo", "smallest"), ("rt_fifo", "largest", "rt_priority=1")],
    ids="-".join,
)
def test_a_mutex_lends_its_owner_the_priority_of_who_waits(toolchain, words):
    chain = toolchain("gcc", "plain")
    run_program(chain.program("lend.c"), policy(chain, words[0]), 1, *words[1:])


@pytest.mark.parametrize("kind", ["plain", "address"])
@pytest.mark.parametrize("cpus", [1, 2])
def test_threads_of_report_3_create_threads(toolchain, kind, cpus):
    chain = toolchain("gcc", kind)
    for _ in range(5):
        run_program(
            chain.program("gt_nested.c"),
            env={"GT_CPUS": str(cpus), "GT_POLICY": str(policy(chain, "credit"))},
        )


@pytest.mark.parametrize(
    ("what", "name"),
    [
        (what, name)
        for what in ("hold", "nothing")
        for name in ("-", "rr", "credit", "o1")
        if (what, name) != ("nothing", "o1")
    ],
)
def test_who_holds_a_thread_local_address_is_bound(toolchain, what, name):
    chain = toolchain("gcc", "plain")
    said = run_program(chain.program("bound.c"), policy(chain, name), 2, what).stderr
    # Bound is not first: where others wait for long, the policy is ended and named.
    assert not said


@pytest.mark.parametrize("cpus", [1, 2, 4])
@pytest.mark.parametrize("build", BUILDS, ids="-".join)
def test_errno_is_the_threads_own(toolchain, build, cpus):
    chain = toolchain(*build)
    run_program(chain.program("errnos.c"), policy(chain, "rr"), cpus)


def test_a_timer_that_goes_off_while_a_thread_is_left_is_not_lost_under_a_sanitizer(toolchain):
    """ThreadSanitizer keeps the signal for the thread that it met: the next one was never preempted."""
    chain = toolchain("clang-19", "thread")
    run_program(chain.program("kept.c"), policy(chain, "rr"), 1)


@pytest.mark.parametrize("build", [("gcc", "plain"), ("clang-19", "thread")], ids="-".join)
def test_a_kick_is_not_lost_behind_the_beat_that_looks_at_the_policy(toolchain, tmp_path, build):
    """With an endless slice nothing else would stop the thread: it ran for ever."""
    chain = toolchain(*build)
    source = tmp_path / "first.bpf.c"
    source.write_text(MAIN_IS_FIRST)
    run_program(chain.program("beat.c"), chain.policy(source), 1, seconds=30)


@pytest.mark.parametrize("cpus", [1, 2])
def test_the_policy_changes_while_threads_run(toolchain, cpus):
    chain = toolchain("gcc", "plain")
    names = ("cfs", "-", "fifo", "credit", "rr")
    run_program(
        chain.program("change.c"), policy(chain, "rr"), cpus, *(policy(chain, name) for name in names)
    )


@pytest.mark.parametrize("cpus", [1, 2, 4])
@pytest.mark.parametrize("what", ["statics", "once"])
@pytest.mark.parametrize("build", BUILDS, ids="-".join)
def test_what_is_constructed_once_is_waited_for(toolchain, build, what, cpus):
    if what == "statics" and "thread" in build:
        pytest.skip("ThreadSanitizer has guards of its own")
    chain = toolchain(*build)
    run_program(chain.program("statics.cpp"), policy(chain, "rr"), cpus, what, env=FORCED)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize(
    ("what", "why"), [("recursive", "by its own constructor"), ("disabled", "preemption disabled")]
)
def test_statics_that_cannot_be_waited_for_end_the_process(toolchain, what, why, cpus):
    chain = toolchain("gcc", "plain")
    said = run_program(
        chain.program("statics.cpp"), policy(chain, "rr"), cpus, what, status=-signal.SIGABRT
    ).stderr
    assert why in said
