# SPDX-License-Identifier: MIT
"""What a supervised command starts ends with it, and no read waits for a pipe's end."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schedlab.errors import HostError
from schedlab.hosts.process import LOG_HEAD_BYTES, STDOUT_BYTES_MAX, Log, Supervised

#: Far longer than any of this takes: who meets it hangs.
LONG = 600.0
#: A daemon as the books have it: it inherits all pipes, and nobody is its parent.
DAEMON = """
import os, sys, time
if not os.fork():
    os.setsid()
    if not os.fork():
        with open(sys.argv[1] + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(3600)
    os._exit(0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
print("answer", flush=True)
"""


@contextlib.contextmanager
def supervised(source: str, *arguments: object):
    process = Supervised([sys.executable, "-c", source, *map(str, arguments)])
    try:
        yield process
    finally:
        process.close()


def is_running(pid_file: Path) -> bool:
    """Whether the daemon is there, and no zombie."""
    try:
        state = Path(f"/proc/{pid_file.read_text()}/stat").read_text()
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] not in "ZX"


def test_a_daemon_ends_with_the_command_that_started_it(tmp_path):
    with supervised(DAEMON, tmp_path / "pid") as process:
        # Its pipes stay open for an hour: only the command's end is waited for.
        assert process.read_until(lambda: False, time.monotonic() + LONG) == 0
        assert process.stdout == b"answer\n"
    assert (tmp_path / "pid").exists() and not is_running(tmp_path / "pid")
    assert "left running" in process.log.take()


def test_a_command_beyond_its_time_is_ended_with_all_that_it_started(tmp_path):
    with supervised(DAEMON + "time.sleep(3600)", tmp_path / "pid") as process:
        process.read_until(lambda: b"answer" in process.stdout, time.monotonic() + LONG)
        assert is_running(tmp_path / "pid")
        with pytest.raises(TimeoutError):
            process.read_until(lambda: False, time.monotonic())
    assert not is_running(tmp_path / "pid")


def test_the_tree_ends_with_a_caller_that_was_killed(tmp_path):
    caller = (
        "import sys, time\n"
        "from schedlab.hosts.process import Supervised\n"
        f"process = Supervised([sys.executable, '-c', {DAEMON + 'time.sleep(3600)'!r}, sys.argv[1]])\n"
        "process.read_until(lambda: b'answer' in process.stdout, time.monotonic() + 600)\n"
        "print('ready', flush=True)\n"
        "time.sleep(3600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", caller, tmp_path / "pid"], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        assert is_running(tmp_path / "pid")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    deadline = time.monotonic() + LONG
    while is_running(tmp_path / "pid"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("has_ended", [False, True])
def test_the_end_is_noticed_below_a_caller_that_ignores_sigchld(monkeypatch, has_ended):
    open_it = os.pidfd_open

    def when_it_is_gone(pid):
        with contextlib.suppress(ProcessLookupError):
            while True:
                os.kill(pid, 0)
        return open_it(pid)

    if has_ended:
        monkeypatch.setattr(os, "pidfd_open", when_it_is_gone)
    old = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        process = Supervised(["true"])
    finally:
        signal.signal(signal.SIGCHLD, old)
    with contextlib.closing(process):
        assert process.read_until(lambda: False, time.monotonic() + LONG) == 0


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_signal_is_passed_on(number):
    with supervised(f"import os; os.kill(os.getpid(), {int(number)})") as process:
        assert process.read_until(lambda: False, time.monotonic() + LONG) == -number


def test_what_cannot_be_executed_is_named():
    process = Supervised(["/nonexistent/program"])
    try:
        assert process.read_until(lambda: False, time.monotonic() + LONG) == 127
        assert "/nonexistent/program cannot be started: No such file" in process.log.take()
    finally:
        process.close()


def test_a_missing_supervisor_is_named_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr("schedlab.paths.supervisor", lambda: tmp_path / "none")
    with pytest.raises(HostError, match="none does not exist; "):
        Supervised(["true"])


def test_an_answer_that_never_ends_is_cut():
    with (
        supervised(f"import os\nwhile True: os.write(1, bytes({1 << 16}))") as process,
        pytest.raises(OSError, match="never ends"),
    ):
        process.read_until(lambda: False, time.monotonic() + LONG)
    assert len(process.stdout) < 2 * STDOUT_BYTES_MAX


def test_nothing_that_was_printed_before_the_end_is_lost():
    with supervised("import os\nos.write(1, b'x' * 60000); os.write(2, b'y' * 60000)") as process:
        process.read_until(lambda: False, time.monotonic() + LONG)
        assert process.stdout == b"x" * 60000
        assert process.log.take() == "y" * 60000


def test_descriptors_are_given_back():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with supervised("print(1)") as process:
            process.read_until(lambda: False, time.monotonic() + LONG)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_log_keeps_its_beginning_and_its_end():
    log = Log()
    n_pieces = 3 * LOG_HEAD_BYTES // 1000
    for i in range(n_pieces):
        log.add(b"%0999d\n" % i)
    text = log.take()
    assert text.startswith("0" * 999) and text.endswith(f"{n_pieces - 1:0999d}\n")
    head, note, tail = text.partition(" bytes are left out ")
    assert note and len(head) + len(tail) < LOG_HEAD_BYTES + 70_000
    assert int(head.rpartition("... ")[2]) == n_pieces * 1000 - LOG_HEAD_BYTES - (1 << 16)
    log.add(b"next run\n")
    assert log.take() == "next run\n"


def test_a_command_that_closes_its_streams_is_waited_for_without_using_the_cpu():
    source = "import os, time\nos.close(1); os.close(2); time.sleep(1)\nos._exit(3)"
    with supervised(source) as process:
        before = time.process_time()
        assert process.read_until(lambda: False, time.monotonic() + LONG) == 3
        assert time.process_time() - before < 0.2


def test_a_command_that_cannot_be_watched_is_ended(monkeypatch, tmp_path):
    """As where the machine has no descriptor left: it had gone on for as long as it liked."""
    started, popen = [], subprocess.Popen

    def no_more(_pid):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", no_more)
    monkeypatch.setattr(
        subprocess, "Popen", lambda *words, **more: started.append(popen(*words, **more)) or started[0]
    )
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(HostError, match="cannot be watched: pidfd_open: Too many open files"):
        Supervised([sys.executable, "-c", "import time; time.sleep(3600)"])
    assert started[0].poll() is not None
    assert set(os.listdir("/proc/self/fd")) == before
