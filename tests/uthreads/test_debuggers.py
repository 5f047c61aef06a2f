# SPDX-License-Identifier: MIT
"""gdb and perf see whole stacks, also while they are switched; Valgrind knows them, and strace slows them.

`./lab soak uthreads-strace` does a thousand runs under strace on each number of kernel threads.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from conftest import missing
from uthreads.test_threads import policy
from uthreads.uthreads_programs import HERE, HOST, run_program

pytestmark = pytest.mark.full
#: What a thread's stack ends with, and the first one's, below the C library.
ENTRY = ["run_thread", "ut_context_entry"]
STRACE_RUNS = int(os.environ.get("SCHEDLAB_UTHREADS_STRACE_RUNS", 5))


@pytest.fixture
def gdb(toolchain, need):
    """Function that runs programs/unwind.c in gdb with some of its commands."""
    if os.uname().machine != "x86_64":
        missing("an x86-64 processor", "another machine")
    chain, path = toolchain("gcc", "plain"), need("gdb")

    def run(*words: str) -> str:
        done = subprocess.run(
            [path, "-q", "-nx", "-batch", *words, "--args", chain.program("unwind.c"), policy(chain, "rr"), "1"],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_the_stack_of_a_thread_that_does_not_run(gdb):
    said = gdb(
        "-ex",
        "set environment UNWIND_NEW=1",
        "-ex",
        "break stop_here",
        "-ex",
        "run",
        "-ex",
        f"source {HOST / 'gdb.py'}",
        "-ex",
        "ut-threads",
        "-ex",
        "backtrace",
        "-ex",
        "continue",
    )
    assert "main[1] runs on kernel thread" in said
    assert "new[3] has not begun" in said
    threads = said.partition("waits[2] does not run\n")[2]
    names = [
        line.split(" in ")[-1].split(" (")[0].split()[-1]
        for line in threads.splitlines()
        if line.startswith("#")
    ]
    waits, main = names[: names.index("ut_context_entry") + 1], names[names.index("ut_context_entry") + 1 :]
    assert waits[-6:] == ["inner", "middle", "outer", "wait_deep", *ENTRY], said
    # It goes on behind a call in switch_to(), perhaps in what is in line there.
    assert "switch_to" in waits[:4] or "ut_switch" in waits[0], said
    # gdb's own view is as it was, and the program goes on.
    assert main[:2] == ["stop_here", "main"]
    assert "good" in said


def test_every_instruction_of_a_switch_can_be_unwound(gdb):
    said = gdb("-x", str(HERE / "programs" / "step_switch.py"))
    stacks = [line.split()[1:] for line in said.splitlines() if line.startswith("STACK")]
    assert len(stacks) > 100
    for names in stacks:
        assert names[0] != "ut_switch" or names[1] in (
            "ut_switch_sanitized",
            "switch_to",
            "idle_enter",
            "ut_context_entry",
        ), names
        assert names[-1] in ("ut_context_entry", "main") or names[-1].startswith(("_start", "__libc")), names
    # A thread's beginning and its end have nothing above them.
    assert stacks.count(["ut_context_entry"]) > 5
    # To a thread's stack, and to the idle loop's.
    assert any("wait_deep" in names for names in stacks)
    assert any("ut_idle_loop" in names for names in stacks)


def test_perf_unwinds_to_the_entry_of_a_thread(toolchain, tmp_path):
    perf = shutil.which("perf")
    if perf is None:
        pytest.skip("perf is not here; to have it: sudo apt-get install linux-perf")
    chain, data = toolchain("gcc", "plain"), tmp_path / "perf.data"
    words = [perf, "record", "-q", "-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf,4096", "-o", data]
    done = subprocess.run(
        [*words, chain.program("spin.c"), policy(chain, "rr"), "1"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"perf may not measure here: {done.stderr.strip().splitlines()[-1]}")
    said = subprocess.run(
        [perf, "script", "-i", data, "-F", "ip,sym"], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    stacks = [
        [line.split()[-1] for line in sample.splitlines() if line.strip()] for sample in said.split("\n\n")
    ]
    assert ["spin", *ENTRY] in stacks


@pytest.mark.parametrize("cpus", [1, 2, 4])
def test_strace_makes_signals_slow_and_nothing_else(toolchain, need, cpus):
    # A signal, its handler and the return then take longer than until the next try: handlers must not nest.
    chain = toolchain("gcc", "plain")
    for _ in range(STRACE_RUNS):
        run_program(
            need("strace"), "-f", "-o", os.devnull, chain.program("spin.c"), policy(chain, "rr"), cpus
        )


def test_valgrind_finds_nothing(toolchain, need):
    chain = toolchain("gcc", "plain")
    run_program(
        need("valgrind"),
        "-q",
        "--error-exitcode=9",
        "--leak-check=full",
        chain.program("sync.c"),
        policy(chain, "rr"),
        2,
        seconds=100,
    )
