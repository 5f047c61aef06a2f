# SPDX-License-Identifier: MIT
"""`schedlab guest`: a command in a Linux with sched_ext, on this machine's files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schedlab import paths
from schedlab.hosts.guest import live
from schedlab.hosts.guest.live import VIRTIOFSD

GUEST = [sys.executable, "-m", "schedlab", "guest"]
needs_guest = pytest.mark.skipif(os.geteuid() != 0, reason="virtiofsd needs root")


def run(*words, cwd, **environment):
    return subprocess.run(
        [*GUEST, *words], cwd=cwd, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.full
@needs_guest
def test_a_command_finds_its_files_and_a_kernel_with_sched_ext(need, tmp_path):
    need(str(VIRTIOFSD))
    (tmp_path / "asked").write_text("a b")
    script = 'cat asked; echo "$WORD" > given; cat /sys/kernel/sched_ext/state; nproc; grep RCU /boot/config-$(uname -r); echo wrong >&2; exit 3'
    done = run("--cpus", "3", "--", "sh", "-c", script, cwd=tmp_path, WORD="x  y")
    assert done.returncode == 3, done.stderr
    assert done.stdout.split() == ["a", "bdisabled", "3", "CONFIG_PREEMPT_RCU=y"]
    assert done.stderr.splitlines()[-1] == "wrong"
    assert (tmp_path / "given").read_text() == "x  y\n"


@pytest.mark.parametrize(
    ("command", "policies"),
    [
        ("./lab load {folder}/mine.bpf.c --for 3s", ["mine"]),
        ("python3 -m schedlab bench -p SCHED_OTHER,rr --runs 2 -- seq mlfq", ["rr"]),
        ("/opt/bin/schedlab load {folder}/none.bpf.c", []),
        ("cat rr", []),
    ],
)
def test_what_a_command_of_schedlab_loads_is_compiled_before(command, policies, tmp_path, monkeypatch):
    """There it would take minutes."""
    (tmp_path / "mine.bpf.c").write_bytes((paths.policies_folder() / "fifo.bpf.c").read_bytes())
    asked = []
    monkeypatch.setattr(live, "build_policy", lambda policy, **_: asked.append(policy.name))
    live.compile_named(command.format(folder=tmp_path).split())
    assert asked == policies


@pytest.mark.nightly
@needs_guest
def test_bench_measures_under_a_policy_there(tmp_path):
    words = ["-m", "schedlab", "bench", "-p", "SCHED_OTHER,rr", "--runs", "2", "--json", "--", "seq", "1000"]
    done = run("--", sys.executable, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"policy": "rr"' in done.stdout


@pytest.mark.nightly
@needs_guest
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_one_that_was_ended(how, tmp_path):
    """QEMU ends with us; and virtiofsd where its only machine does."""
    child = subprocess.Popen(
        [*GUEST, "--", "sleep", "1000"], cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    mine = str(tmp_path).encode()

    def left() -> list[bytes]:
        lines = []
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                lines.append(place.read_bytes())
            except OSError:
                continue  # it has ended
        return [line for line in lines if mine in line]

    deadline = time.monotonic() + 100
    while len(left()) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(left()) >= 2, "QEMU and virtiofsd"
    child.send_signal(how)
    child.wait()
    while left() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left() == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--cpus", "9", "--", "true"], "--cpus 9: the guest has 1 to 8 CPUs"),
        (["--memory", "1MiB", "--", "true"], "--memory 1MiB: give 256MiB to 1TiB"),
        (["--memory", "much", "--", "true"], "'much' is not a"),
        (["--kernel", "none", "--", "true"], "none"),
    ],
)
def test_bad_input_is_one_line(words, why, tmp_path):
    done = run(*words, cwd=tmp_path)
    assert done.returncode in (2, 3)
    assert why in done.stderr and len(done.stderr.splitlines()) == 1
