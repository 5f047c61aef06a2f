# SPDX-License-Identifier: MIT
"""The driver of the simulator survives whatever stands in the simulator's place."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from schedlab import paths
from schedlab.errors import NotFoundError, UnavailableError
from schedlab.hosts import choose
from schedlab.hosts.choose import open_host
from schedlab.hosts.host import Job
from schedlab.hosts.sim import SimHost, SimSession, request_line
from schedlab.hosts.uthreads import UthreadsSession
from schedlab.model import Execution
from schedlab.policy.build import BuiltPolicy

#: A server that does what the name of the program file says.
FAKE = """\
#!{python}
import os, signal, sys, time
for line in sys.stdin:
    words = line.rstrip("\\n").split("\\t")
    what = os.path.basename(words[words.index("--program") + 1])
    if what == "die":
        print("policy said goodbye", file=sys.stderr)
        sys.exit(7)
    if what == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "hang":
        if os.fork() == 0:
            time.sleep(600)
        time.sleep(600)
    if what == "garbage":
        print("}}{{")
    elif what == "endless":
        while True:
            sys.stdout.write("x" * 65536)
    elif what == "odd":
        print('{{"status": "perhaps"}}')
    elif what == "failed":
        print('{{"status": "failed", "error": "stall", "error_kind": "stall", "task": 3}}')
    elif what == "mute":
        print('{{"status": "failed"}}')
    else:
        print('{{"status": "ok", "error": null, "cpus": [], "pid": %d}}' % os.getpgrp())
    sys.stdout.flush()
"""


@pytest.fixture
def fake(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "schedlab-sim"
    path.write_text(FAKE.format(python=sys.executable))
    path.chmod(0o755)
    monkeypatch.setattr(paths, "simulator", lambda: path)
    return path


@pytest.fixture
def session(fake):
    session = SimSession(timeout_seconds=60)
    yield session
    session.close()


def job(program: str, policy="a.so", **fields) -> Job:
    built = BuiltPolicy(None, Path(policy), {"slice_ns": 5}, "")
    plain = Job(
        label="", policy=built, program=Path(program), records=Path("r.slr"), n_cpus=2, seed=3, tick_ns=10
    )
    return replace(plain, **fields)


def test_unknown_hosts_are_refused_with_the_nearest_name():
    with pytest.raises(NotFoundError, match="unknown host 'simm' .did you mean 'sim'"):
        open_host("simm")


def test_a_simulator_that_is_not_there_is_said(tmp_path, monkeypatch):
    missing = tmp_path / "none"
    monkeypatch.setattr(paths, "simulator", lambda: missing)
    assert "does not exist; run ./lab once" in SimHost().unavailable()
    missing.write_text("")
    assert "chmod +x" in SimHost().unavailable() or os.geteuid() == 0


def test_requests_cannot_be_forged_by_names(tmp_path):
    line = request_line(job("/x/p.slprog", options=(("--cost", "ipi_ns=1"),)))
    assert line.endswith("\n")
    assert line.rstrip("\n").split("\t") == [
        "--program", "/x/p.slprog", "--cpus", "2", "--seed", "3", "--tick-ns", "10",
        "--records", "r.slr", "--set", "slice_ns=5", "--cost", "ipi_ns=1",
    ]  # fmt: skip
    for bad in ("a\tb", "a\nb"):
        with pytest.raises(ValueError, match="contains a tab or an end of line"):
            request_line(job(bad))


def test_a_name_with_a_tab_fails_its_run_only(session):
    assert session.run(job("a\tb")).error_kind == "usage"
    assert session.run(job("ok")).error is None


@pytest.mark.parametrize(
    ("program", "kind", "message"),
    [
        ("die", "host", "ended with 7 without an answer:\npolicy said goodbye"),
        ("segv", "host", "was ended by SIGSEGV"),
        ("garbage", "host", "an answer that cannot be read"),
        ("odd", "host", "status is neither ok nor failed"),
        ("failed", "stall", "stall"),
        ("mute", None, "failed without a reason"),
    ],
)
def test_failures_are_outcomes_and_the_next_run_is_done(session, program, kind, message):
    outcome = session.run(job(program))
    assert message in outcome.error
    assert outcome.error_kind == kind
    assert session.run(job("ok")).error is None


def test_an_answer_without_end_is_not_kept(session):
    outcome = session.run(job("endless"))
    assert outcome.error_kind == "host"
    assert session.run(job("ok")).error is None


def test_a_hang_is_ended_with_all_its_children(fake):
    session = SimSession(timeout_seconds=60)
    first = session.run(job("ok"))
    assert first.error is None
    session.timeout_seconds = 0.3
    begin = time.monotonic()
    outcome = session.run(job("hang"))
    assert outcome.error_kind == "timeout"
    assert "no result after 0.3 s; give more with --timeout" in outcome.error
    assert time.monotonic() - begin < 10
    # The group is gone: the server, and the child that it had forked.
    with pytest.raises(ProcessLookupError):
        for _ in range(600):
            os.killpg(first.answer["pid"], 0)
            time.sleep(0.05)
    session.timeout_seconds = 60
    assert session.run(job("ok")).error is None
    session.close()


def test_one_server_serves_one_policy(session):
    first = session.run(job("ok")).answer["pid"]
    assert session.run(job("ok")).answer["pid"] == first
    assert session.run(job("ok", policy="b.so")).answer["pid"] != first


def test_an_interrupt_from_another_thread_ends_the_wait(fake):
    session = SimSession(timeout_seconds=60)
    threading.Timer(0.3, session.interrupt).start()
    begin = time.monotonic()
    assert session.run(job("hang")).error_kind == "host"
    assert time.monotonic() - begin < 20
    assert session.run(job("ok")).error == "interrupted"
    session.close()


def test_a_simulator_that_cannot_be_started_is_an_outcome(tmp_path, monkeypatch):
    path = tmp_path / "schedlab-sim"
    path.write_text("not a program")
    monkeypatch.setattr(paths, "simulator", lambda: path)
    session = SimSession(timeout_seconds=5)
    outcome = session.run(job("ok"))
    assert outcome.error_kind == "host"
    assert "cannot be started" in outcome.error
    session.close()


def test_latency_is_what_the_costs_say():
    costs = tuple(("--cost", c) for c in ("switch_ns=2", "ipi_ns=3", "tick_ns=100", "migrate_ns=5"))
    # Two interrupts of 3, a switch of 2 and a migration of 5.
    assert SimHost().latency_ns(job("p", options=costs)) == 13
    assert SimHost().latency_ns(job("p", options=(*costs, ("--cost", "leave_ns=1")))) == 14
    assert SimHost().latency_ns(job("p")) == 0


@pytest.fixture
def sleepy_runner(tmp_path, monkeypatch) -> Path:
    """A runner of user threads that leaves a child and does not end; the file it writes pids to."""
    said = tmp_path / "pids"
    path = tmp_path / "schedlab-uthreads"
    path.write_text(f"#!/bin/sh\nsleep 600 &\necho $$ > {said}\nwait\n")
    path.chmod(0o755)
    monkeypatch.setattr(paths, "uthreads_runner", lambda: path)
    return said


def assert_group_is_gone(said: Path):
    with pytest.raises(ProcessLookupError):
        for _ in range(600):
            os.killpg(int(said.read_text()), 0)
            time.sleep(0.05)


def test_an_interrupted_run_is_not_a_crash(sleepy_runner):
    """It is left out of the results; one that was ended by a signal of its own is not."""
    session = UthreadsSession(timeout_seconds=60)

    def interrupt():
        while not sleepy_runner.is_file() or not sleepy_runner.read_text():
            time.sleep(0.02)
        session.interrupt()

    threading.Thread(target=interrupt, daemon=True).start()
    outcome = session.run(job("p"))
    assert (outcome.error, outcome.error_kind) == ("interrupted", "host")
    assert_group_is_gone(sleepy_runner)
    assert session.run(job("p")).error == "interrupted"
    session.close()


@pytest.mark.full
def test_a_process_that_does_not_end_is_ended_with_its_children(sleepy_runner):
    session = UthreadsSession(timeout_seconds=3)
    outcome = session.run(job("p"))
    assert outcome.error_kind == "timeout"
    assert "no result after 3 s; give more with --timeout" in outcome.error
    assert_group_is_gone(sleepy_runner)


def test_a_process_that_cannot_be_started_is_an_outcome(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "uthreads_runner", lambda: tmp_path / "none")
    outcome = UthreadsSession(timeout_seconds=5).run(job("p"))
    assert (outcome.error_kind, "cannot be started: No such file" in outcome.error) == ("host", True)


@pytest.mark.parametrize("is_there", [True, False])
def test_without_a_c_compiler_the_simulator_is_webassembly(is_there, monkeypatch, tmp_path):
    """Of the two engines the native one, where it can be; doctor says which, and why."""

    def no_compiler():
        raise UnavailableError("no C compiler: none is there; install one")

    monkeypatch.setattr(choose, "find_compiler", no_compiler)
    monkeypatch.setattr(choose, "unavailable_reason", lambda name: None if is_there else f"no {name} here")
    engine, why = choose.engine_here()
    assert engine == choose.engine_of(Execution(host="sim")) == ("wasm" if is_there else "native")
    assert "no C compiler: none is there" in why and is_there != ("nor WebAssembly: no wasm here" in why)
    assert choose.engine_of(Execution(host="uthreads")) == "native"
    assert choose.engine_of(Execution(host="sim", is_sandboxed=True)) == "wasm"
