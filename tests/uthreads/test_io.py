# SPDX-License-Identifier: MIT
"""Calls that wait for somebody else block the thread only, however many do."""

from __future__ import annotations

import re

import pytest

from uthreads.test_threads import policy
from uthreads.uthreads_programs import HOST, run_program

BUILDS = [("gcc", "plain"), ("clang-19", "plain"), ("gcc", "address")]
NR_CLIENTS, NR_MESSAGES = 40, 10


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("build", BUILDS, ids="-".join)
def test_more_connections_than_helpers(toolchain, build, cpus):
    helpers = re.search(r"#define HELPERS_MAX (\d+)", (HOST / "lib" / "io.c").read_text())
    assert int(helpers[1]) < NR_CLIENTS
    chain = toolchain(*build)
    said = run_program(chain.program("echo.c"), policy(chain, "rr"), cpus, NR_CLIENTS, NR_MESSAGES).stdout
    assert said == "400 of 400 messages came back\n"


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("build", BUILDS, ids="-".join)
def test_more_threads_wait_for_pipes_than_helpers(toolchain, build, cpus):
    chain = toolchain(*build)
    run_program(chain.program("pipes.c"), policy(chain, "rr"), cpus)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("build", [*BUILDS[::2], ("clang-19", "thread")], ids="-".join)
def test_who_waits_can_be_cancelled_and_keeps_nobody_waiting(toolchain, build, cpus):
    chain = toolchain(*build)
    run_program(chain.program("waits.c"), policy(chain, "rr"), cpus)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("build", [*BUILDS[::2], ("clang-19", "thread")], ids="-".join)
def test_a_socket_wakes_its_own_waiter(toolchain, build, cpus):
    """Also where all CPUs compute; without the watcher nobody would look there."""
    chain = toolchain(*build)
    run_program(chain.program("sockets.c"), policy(chain, "rr"), cpus)


@pytest.mark.parametrize("build", BUILDS[::2], ids="-".join)
def test_a_watcher_that_cannot_be_started_has_no_waiters(toolchain, build):
    """The second thread waited, to no end, where the first had found that there is no watcher."""
    chain = toolchain(*build)
    run_program(chain.program("watcher.c"), policy(chain, "rr"), 2)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("build", [*BUILDS[::2], ("clang-19", "thread")], ids="-".join)
def test_every_call_that_waits_ends_at_a_deadline(toolchain, build, cpus):
    chain = toolchain(*build)
    run_program(chain.program("deadlines.c"), policy(chain, "rr"), cpus)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("build", [*BUILDS[::2], ("clang-19", "thread")], ids="-".join)
def test_datagrams_messages_and_vectors(toolchain, tmp_path, build, cpus):
    chain = toolchain(*build)
    run_program(chain.program("vectors.c"), policy(chain, "rr"), cpus, tmp_path)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("build", [*BUILDS[::2], ("clang-19", "thread")], ids="-".join)
def test_kernel_threads_outside_and_handlers_wake_threads(toolchain, build, cpus):
    chain = toolchain(*build)
    run_program(chain.program("outside.c"), policy(chain, "rr"), cpus)


def test_what_the_kernel_gave_up_for_signals_is_done(toolchain):
    """Of 300 such calls 41 said -ECANCELED."""
    chain = toolchain("gcc", "plain")
    run_program(chain.program("hurried.c"), policy(chain, "rr"), 2)


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("build", [*BUILDS[::2], ("clang-19", "thread")], ids="-".join)
def test_files_pipes_and_connections(toolchain, tmp_path, build, cpus):
    chain = toolchain(*build)
    run_program(chain.program("files.c"), policy(chain, "rr"), cpus, tmp_path)
