# SPDX-License-Identifier: MIT
"""`schedlab kernel`: boots, passes on what it is told, waits for a debugger."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parent.parent.parent


def command(*words):
    return [sys.executable, "-m", "schedlab", "kernel", *map(str, words)]


def kernel(*words, folder=ROOT):
    """Run the command to its end. Return: its status, output, and errors."""
    done = subprocess.run(
        command(*words),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        env=dict(os.environ, PYTHONPATH=str(ROOT / "python")),
        check=False,
    )
    return done.returncode, done.stdout.replace("\r", ""), done.stderr


def test_the_status_is_the_programs(image):
    assert kernel("--counted", "--run", "grep x /none")[0] == 1
    assert kernel("--counted", "--run", "poweroff 9")[0] == 9


def test_policy_and_harts_reach_the_kernel(image):
    status, out, _ = kernel("--policy", "mlfq", "--cpus", "2", "--arg", "set=boost_ns=7000000", "--run", "ps")
    assert status == 0
    assert "policy: mlfq " in out
    assert "boost_ns=7000000" in out


def test_what_one_brings_along(image, tmp_path):
    """A program and a file of one's own, and a disk that keeps what was written."""
    (tmp_path / "hello.c").write_text(
        '#include "kernel/types.h"\n#include "user/user.h"\n\n'
        'int\nmain(void)\n{\n  printf("hello from outside\\n");\n  exit(0);\n}\n'
    )
    (tmp_path / "note.txt").write_text("brought along\n")
    words = ("--counted", "--program", "hello.c", "--file", "note.txt", "--disk", "disk.img", "--run")
    assert kernel(*words, "hello", folder=tmp_path)[1].endswith("hello from outside\n")
    assert kernel(*words, "cat /note.txt", folder=tmp_path)[1].endswith("brought along\n")
    assert kernel(*words, "mkdir /kept", folder=tmp_path)[0] == 0
    assert re.search(r"^d .* \.$", kernel(*words, "ls /kept", folder=tmp_path)[1], re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "mlqf"), "mlfq"),
        (("--policy", "./none.bpf.c"), "none.bpf.c"),
        (("--arg", "novalue"), "expected NAME=VALUE"),
        (("--arg", "policy=a b"), "only run may hold a blank"),
        (("--cpus", "9"), "8"),
    ],
)
def test_mistakes_are_told(image, words, message):
    status, _, errors = kernel("--run", "echo x", *words)
    assert status == 2
    assert message in errors


def test_a_slow_reader_changes_nothing(image):
    """Of a counted machine, which prints more here than the pipe holds."""
    words = command("--counted", "--run", "chaos -v 5 40 3")
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    fast = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, timeout=200, check=True
    ).stdout
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, bufsize=0, pipesize=4096
    ) as process:
        slow = b"".join(iter(lambda: process.stdout.read(256), b""))
    assert len(fast) > 5 * 4096
    assert slow == fast


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def packet(text):
    """A message of the debugger's remote protocol."""
    return f"${text}#{sum(text.encode()) % 256:02x}".encode()


def test_a_debugger_is_waited_for(image):
    port = free_port()
    process = subprocess.Popen(
        command("--gdb", "--gdb-port", port, "--run", "echo debugged"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(ROOT / "python")),
    )
    try:
        # Before it there may be a word about what is built.
        assert any(f"target remote :{port}" in line for line in process.stderr)
        deadline_s = time.monotonic() + 60
        while True:
            try:
                line = socket.create_connection(("127.0.0.1", port), timeout=240)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline_s
                assert process.poll() is None, process.stderr.read()
        with line:
            line.sendall(b"+" + packet("?"))
            answer = b""
            while b"#" not in answer:
                answer += line.recv(100)
            assert b"$T05" in answer, "it has stopped at the first instruction"
            line.sendall(b"+" + packet("c"))
            out, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
        assert out.replace("\r", "").endswith("debugged\n")
    finally:
        process.kill()
        process.wait()
