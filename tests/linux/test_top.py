# SPDX-License-Identifier: MIT
"""`schedlab top`: on loads that are known, in a terminal, and what it leaves when it is killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from linux import event_files as ev
from linux.linux_settings import settings_of_linux
from schedlab.hosts.linux.recorder import unavailable_reason
from schedlab.measure.live import LiveTasks
from schedlab.measure.top import Cpu, Picture, SchedExt, Top, prometheus_text, read_sched_ext
from schedlab.show.top import top_lines

MS = 1_000_000
TOP = [sys.executable, "-m", "schedlab", "top"]
NUMBER = r"[0-9.e+-]+|\+Inf"
SAMPLE = re.compile(
    rf'([a-z_]+)(?:\{{([a-z_]+="(?:[^"\\\n]|\\[\\n"])*"(?:,[a-z_]+="(?:[^"\\\n]|\\[\\n"])*")*)\}})? ({NUMBER})'
)
needs_recorder = pytest.mark.skipif(bool(unavailable_reason()), reason=str(unavailable_reason()))


def samples_of(text):
    """The samples of Prometheus's text format by name and labels; anything else in it fails."""
    found, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if match := re.fullmatch(r"# TYPE ([a-z_]+) (gauge|counter|histogram)", line):
            assert match[1] not in kinds
            kinds[match[1]] = match[2]
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert match[1] in kinds or re.sub("_(bucket|sum|count)$", "", match[1]) in kinds, line
        assert (match[1], match[2]) not in found, line
        found[match[1], match[2]] = float(match[3])
    assert text.endswith("\n")
    return found


WAITERS_SHOWN = 10


@contextlib.contextmanager
def load_on(cpu):
    """Two busy loops and a sleeper, all on one CPU; their pids."""
    sleeper = "import time\nwhile True: time.sleep(0.01)"
    words = [["sh", "-c", "while :; do :; done"]] * 2 + [[sys.executable, "-c", sleeper]]
    started = [subprocess.Popen(["taskset", "-c", str(cpu), *each]) for each in words]
    try:
        time.sleep(0.5)
        yield [each.pid for each in started]
    finally:
        for each in started:
            each.kill()
            each.wait()


@needs_recorder
def test_two_busy_loops_are_a_queue_of_two_and_wait_half_of_the_time():
    cpu = max(os.sched_getaffinity(0))
    with load_on(cpu) as (first, second, sleeper), Top() as top:
        time.sleep(0.5)
        top.look()
        time.sleep(2)
        picture = top.look()
        text = prometheus_text(top, picture)
    seen = next(each for each in picture.cpus if each.number == cpu)
    assert seen.busy > 0.9 and seen.queue >= 2 and seen.queue_mean > 1.8 and seen.pid and seen.name
    waited = {pid: share for pid, _, share in picture.waiters}
    if len(waited) < WAITERS_SHOWN:  # else others crowd the machine, and wait as long
        assert waited[first] + waited[second] > 0.8
        assert waited.get(sleeper, 0) < 0.5
    # It is woken up to 100 times a second.
    assert sum(picture.counts) > 50 and picture.p50_ns <= picture.p99_ns
    samples = samples_of(text)
    assert samples["schedlab_run_queue_length", f'cpu="{cpu}"'] == seen.queue
    buckets = [value for (name, _), value in samples.items() if name.endswith("_bucket")]
    assert (
        buckets == sorted(buckets) and buckets[-1] == samples["schedlab_wakeup_latency_seconds_count", None]
    )


def test_a_wake_up_on_an_idle_cpu_whose_switch_is_hidden_is_counted():
    """Pid 10 ran for 40 ns until 200; 11 was on the CPU, but the next switch is from another task."""
    tasks = LiveTasks()
    events = [ev.event(ev.SWITCH, 50, 0, 11), ev.event(ev.WAKING, 100, 10), ev.event(ev.RUNTIME, 200, 10, 40),
              ev.event(ev.SWITCH, 200, 10, 0, ev.BLOCKED), ev.event(ev.WAKING, 210, 11),
              ev.event(ev.SWITCH, 240, 0, 11), ev.event(ev.SYNC, 300)]  # fmt: skip
    assert sorted(tasks.feed(b"".join(events)).tolist()) == [30, 60]
    assert tasks.current == {0: 11} and tasks.queue == {0: 1}
    assert tasks.waited_ns == {10: 60, 11: 30} and tasks.waits_ns == {0: 90}


def test_a_preempted_task_waits_on_the_cpu_that_it_is_moved_to():
    tasks = LiveTasks()
    tasks.feed(ev.event(ev.SWITCH, 100, 10, 11, 0) + ev.event(ev.SYNC, 200))
    assert (tasks.current, tasks.queue, tasks.waiting) == ({0: 11}, {0: 2}, {})
    tasks.feed(ev.event(ev.MIGRATE, 300, 10, 0, 1) + ev.event(ev.SYNC, 500))
    assert tasks.queue == {0: 1, 1: 1} and tasks.waits_ns == {0: 100, 1: 200}
    tasks.feed(ev.event(ev.WAKING, 600, 11, 10) + ev.event(ev.SYNC, 700))
    assert tasks.current[0] == 11 and tasks.waiting == {}, "a task that runs goes on"


def test_the_loaded_policy_is_read_from_the_kernels_files(tmp_path):
    assert read_sched_ext(tmp_path) == SchedExt(None)
    folder = tmp_path / "sys/kernel/sched_ext"
    (folder / "root").mkdir(parents=True)
    for name, text in {"state": "enabled\n", "enable_seq": "3\n", "nr_rejected": "0\n", "root/ops": "mlfq_1\n",
                       "root/events": "SCX_EV_SELECT_CPU_FALLBACK 12\nSCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE 0\n"}.items():  # fmt: skip
        (folder / name).write_text(text)
    found = read_sched_ext(tmp_path)
    assert (found.state, found.name) == ("enabled", "mlfq_1")
    assert dict(found.counters) == {"enable_seq": 3, "nr_rejected": 0, "SCX_EV_SELECT_CPU_FALLBACK": 12,
                                    "SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE": 0}  # fmt: skip


class _Counted:
    counts, sum_ns = np.ones(22, np.int64), 5


def test_the_widest_picture_has_80_columns_and_a_names_quotes_are_escaped():
    ext = SchedExt("enabled", 'a"b\\', tuple((f"SCX_EV_{'X' * 40}_{each}", 10**18) for each in range(9)))
    cpus = [Cpu(each, 1.0, 4194303, "n" * 200, 99999, 99999.99) for each in range(512)]
    picture = Picture(cpus, [10**9] * 22, 10**12, 10**13, [(4194303, "n" * 200, 1.0)] * 10, ext, 10**15, 9.9)
    lines = top_lines(picture)
    assert max(map(len, lines)) == 80 and "480 more CPUs" in "\n".join(lines)
    assert len(top_lines(picture, 80, 24)) == 24
    assert samples_of(prometheus_text(_Counted(), picture))[
        "schedlab_sched_ext_info", 'policy="a\\"b\\\\",state="enabled"'] == 1  # fmt: skip


@needs_recorder
def test_once_prints_one_table_and_a_file_for_prometheus(tmp_path):
    done = subprocess.run(
        [*TOP, "--export", str(tmp_path / "a.prom"), "--once"], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith(" CPU   busy") and "\033" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert ("schedlab_events_lost_total", None) in samples_of((tmp_path / "a.prom").read_text())
    assert os.listdir(tmp_path) == ["a.prom"]


@pytest.mark.parametrize("words, message", [
    (["--every", "10ms"], "200ms or more"), (["--export", "/nowhere/x"], "folder that exists"),
    (["--export", "99999"], "give another"),
])  # fmt: skip
def test_what_cannot_be_is_refused(words, message):
    done = subprocess.run([*TOP, *words], capture_output=True, text=True)
    assert done.returncode == 2 and message in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="gives capabilities up")
def test_without_rights_the_error_says_what_to_do():
    weak = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]
    done = subprocess.run([*weak, *TOP, "--once"], capture_output=True, text=True)
    assert done.returncode == 3 and "root" in done.stderr


class Terminal:
    """`top` in a terminal of 30 lines and 80 columns."""

    def __init__(self, folder, *words):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.execv(TOP[0], [*TOP, *words])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
        self.before, self.seen = termios.tcgetattr(self.fd), b""

    def until(self, text, seconds=30):
        """Read until this is there."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, self.seen[-2000:]
            if select.select([self.fd], [], [], 0.1)[0]:
                self.seen += os.read(self.fd, 65536)

    def settings(self):
        return termios.tcgetattr(self.fd)


@needs_recorder
@pytest.mark.parametrize("how", ["q", "\x03", signal.SIGTERM, signal.SIGKILL])
def test_the_terminal_is_as_it_was_however_it_ends(tmp_path, how):
    settings = settings_of_linux()
    terminal = Terminal(tmp_path)
    terminal.until(b"events lost: 0")
    assert terminal.settings() != terminal.before
    if isinstance(how, str):
        os.write(terminal.fd, how.encode())
    else:
        os.kill(terminal.pid, how)
    terminal.until(b"\033[?1049l")
    assert terminal.settings() == terminal.before
    _, status = os.waitpid(terminal.pid, 0)
    assert os.waitstatus_to_exitcode(status) == (0 if isinstance(how, str) else -how)
    os.close(terminal.fd)
    assert settings_of_linux() == settings


@needs_recorder
def test_a_key_writes_the_last_seconds_and_a_port_is_scraped(tmp_path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    with subprocess.Popen(["true"]) as port_source:
        port = 20000 + port_source.pid % 20000
    terminal = Terminal(tmp_path, "--every", "300ms", "--export", str(port))
    terminal.until(b"events lost: 0")
    time.sleep(1)
    os.write(terminal.fd, b"p")
    terminal.until(b" bytes, for ui.perfetto.dev")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        samples_of(answer.read().decode())
    os.write(terminal.fd, b"q")
    os.waitpid(terminal.pid, 0)
    os.close(terminal.fd)
    (path,) = Path(tmp_path).iterdir()
    trace = perfetto_trace_pb2.Trace.FromString(path.read_bytes())
    names = {event.sched_switch.next_comm for packet in trace.packet for event in packet.ftrace_events.event
             if event.HasField("sched_switch")}  # fmt: skip
    assert any(name.startswith(("python", "schedlab")) for name in names), names
