# SPDX-License-Identifier: MIT
"""`schedlab top`: on loads that are known, in a terminal, and what it leaves when it is killed."""

from __future__ import annotations

import bisect
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
from random import Random

import pytest

from linux import event_files as ev
from linux.linux_settings import settings_of_linux
from linux.sums_oracle import STATES, Oracle, sums_of
from schedlab.hosts.linux.recorder import unavailable_reason
from schedlab.measure.live import read_sums
from schedlab.measure.top import BUCKETS_NS, Cpu, Picture, SchedExt, Top, prometheus_text, read_sched_ext
from schedlab.show.top import top_lines

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


def intervals(tmp_path, *events):
    """Of each interval of a file: latencies, waits by CPU and by pid, and `current` and `queue` by CPU."""
    found = []
    for said in sums_of(ev.write(tmp_path / "x.slev", [*events])):
        sums = read_sums(said)
        found.append((sorted(sums.latencies.elements()), {cpu: each[3] for cpu, each in sums.cpus.items() if each[3]},
                      {pid: ns for pid, _, ns in sums.waiters}, {cpu: each[0] for cpu, each in sums.cpus.items()},
                      {cpu: each[2] for cpu, each in sums.cpus.items()}))  # fmt: skip
    return found


def test_a_wake_up_on_an_idle_cpu_whose_switch_is_hidden_is_counted(tmp_path):
    """Pid 10 ran for 40 ns until 200; 11 was on the CPU, but the next switch is from another task."""
    events = [ev.event(ev.SWITCH, 50, 0, 11), ev.event(ev.WAKING, 100, 10), ev.event(ev.RUNTIME, 200, 10, 40),
              ev.event(ev.SWITCH, 200, 10, 0, ev.BLOCKED), ev.event(ev.WAKING, 210, 11),
              ev.event(ev.SWITCH, 240, 0, 11), ev.event(ev.SYNC, 300)]  # fmt: skip
    assert intervals(tmp_path, *events) == [([32, 60], {0: 90}, {10: 60, 11: 30}, {0: 11}, {0: 1})]


def test_a_preempted_task_waits_on_the_cpu_that_it_is_moved_to(tmp_path):
    first, second, third = intervals(
        tmp_path, ev.event(ev.SWITCH, 100, 10, 11, 0), ev.event(ev.SYNC, 200),
        ev.event(ev.MIGRATE, 300, 10, 0, 1), ev.event(ev.SYNC, 500),
        ev.event(ev.WAKING, 600, 11, 10), ev.event(ev.SYNC, 700))  # fmt: skip
    assert first == ([], {0: 100}, {10: 100}, {0: 11}, {0: 2})
    assert second == ([], {0: 100, 1: 200}, {10: 300}, {0: 11, 1: 10}, {0: 1, 1: 1})
    assert third == ([], {1: 200}, {10: 200}, {0: 11, 1: 10}, {0: 1, 1: 1}), "a task that runs goes on"


def random_events(seed, n_events=600, n_cpus=3, n_pids=8):
    """Events that may contradict each other, by CPU between one SYNC and the next, and one loss."""
    random = Random(seed)
    now, found = 1000, []
    for number in range(n_events // 30):
        batch = []
        for _ in range(30):
            now += random.choice((1, 7, 100, 5000))
            kind = random.choice(STATES + (ev.SWITCH,) * 6 + (ev.WAKING,) * 4)
            pid, cpu, value = random.randrange(n_pids), random.randrange(n_cpus), random.randrange(n_cpus)
            if kind == ev.SWITCH:
                value = random.choice((0, 0, ev.BLOCKED, 256))
            flags = random.choice((0, ev.ELSEWHERE)) if kind == ev.RUNTIME else 0
            other = random.randrange(n_pids) if kind == ev.SWITCH else random.randrange(300)
            batch.append(
                (cpu, ev.event(kind, now, pid or kind != ev.SWITCH, other, value, cpu=cpu, flags=flags))
            )
        batch.sort(key=lambda each: each[0])
        found += [each for _, each in batch]
        found += [ev.event(ev.LOST, now - 50, 0, 3)] * (number == 9)
        found.append(ev.event(ev.SYNC, now - random.choice((0, 0, 200))))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_the_sums_are_those_of_a_walk_in_order_of_time(tmp_path, seed):
    path = ev.write(tmp_path / "x.slev", random_events(seed), n_cpus=3)
    events, oracle, begin = ev.read(path), Oracle(), 0
    ends = [number for number, each in enumerate(events, 1) if each[2] == ev.SYNC]
    for end, said in zip(ends, sums_of(path), strict=True):
        latencies, cpu_ns, pid_ns, queue, current, ages = oracle.interval(events[begin:end])
        begin = end
        sums = read_sums(said)
        for values, exact in ((sums.latencies, latencies), (sums.ages, ages)):
            assert len(exact) == values.total()
            for shown, real in zip(sorted(values.elements()), exact, strict=True):
                assert real <= shown <= max(real * 1.004, real + 4) and _bucket(real) == _bucket(shown)
        assert (sums.sum_ns, sums.n_lost, sums.oldest_ns) == (
            sum(latencies),
            oracle.n_lost,
            max(ages, default=0),
        )
        assert {cpu: each[3] for cpu, each in sums.cpus.items() if each[3]} == cpu_ns
        assert {cpu: each[2] for cpu, each in sums.cpus.items() if each[2]} == queue
        assert {cpu: each[0] for cpu, each in sums.cpus.items() if each[0]} == current
        assert {pid: ns for pid, _, ns in sums.waiters} == pid_ns


def _bucket(ns):
    return bisect.bisect_left(BUCKETS_NS, ns)


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
    counts, sum_ns = [1] * 22, 5


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
