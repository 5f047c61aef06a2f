# SPDX-License-Identifier: MIT
"""What recording and watching cost, and how fast events become records; part of `selfbench linux`.

Two processes wake each other by turns on one CPU, in a real-time class, so that
what else runs hardly matters: with the recorder and without it, by turns. The
recorder's cost is its own CPU time per event, times the three events that a switch
by a wake-up makes, times 100,000 switches a second. What the kernel spends on
noting the events is in the slow-down.

Read next: hosts/linux/record/capture.c.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from schedlab.hosts.linux.launch import Command, Launcher
from schedlab.hosts.linux.recorder import Recorder, convert_events, unavailable_reason
from schedlab.policy.linux_class import parse_class

SWITCHES_PER_S = 100_000
#: Of a machine that is watched.
WATCHED_PER_S = 10_000
#: sched_switch, sched_waking, sched_wakeup.
EVENTS_PER_SWITCH = 3
TIMEOUT_NS = 60 * 10**9
PING_PONG = """
import os, sys
rounds = int(sys.argv[1])
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    for _ in range(rounds):
        os.write(back[1], os.read(there[0], 1))
    os._exit(0)
for _ in range(rounds):
    os.write(there[1], b"x")
    os.read(back[0], 1)
os.wait()
"""
HEADER = struct.Struct("<8sIIIIQQQIIII")
EVENT = struct.Struct("<IHBBQIi")
SWITCH, WAKING, WAKEUP, MEMBER, END = 1, 2, 3, 12, 15
#: Events of the file whose conversion is timed: four CPUs, a hundred tasks.
NR_TASKS, NR_CPUS = 100, 4


def measure(entry, *, is_quick: bool) -> dict:
    """Measure recording and converting, as `selfbench.measure`; quick: a tenth of the work."""
    scale = 1 if is_quick else 10
    rows = [
        entry(
            "conversion",
            conversion_events_per_s(200_000 * scale),
            "events/CPU-s",
            "higher",
            peer="needed",
            peer_value=5e6,
        )
    ]
    reason = unavailable_reason()
    if reason:
        return {"benchmarks": rows, "skipped": [f"recording: {reason}"]}
    share, slowdown, switch_ns = recording(3_000 * scale, pairs=3 if is_quick else 7)
    rows.append(
        entry(
            f"recording {SWITCHES_PER_S:,} switches/s",
            share,
            "% of a CPU",
            "lower",
            peer="allowed",
            peer_value=5.0,
        )
    )
    rows.append(entry("switch, not recorded", switch_ns, "ns", "lower"))
    rows.append(entry("slow-down by recording", slowdown, "%", "lower"))
    rows.append(
        entry(
            f"top, {WATCHED_PER_S:,} switches/s",
            watching(1.0 * scale),
            "% of a CPU",
            "lower",
            peer="allowed",
            peer_value=1.0,
        )
    )
    return {"benchmarks": rows, "skipped": []}


def write_synthetic(path: Path, n_events: int) -> None:
    """Write a recording in which tasks wake, run and block by turns on each CPU."""
    per_cpu = NR_TASKS // NR_CPUS
    parts = [HEADER.pack(b"SLEVTS\0\1", 1, HEADER.size, EVENT.size, NR_CPUS, 4_000_000, 0, 0, 1, 0, 0, 0)]
    parts += [EVENT.pack(1000 + i, 0, MEMBER, 0, 1, 1, 0) for i in range(NR_TASKS)]
    running = [0] * NR_CPUS
    for number in range(n_events // 3):
        cpu = number % NR_CPUS
        t_ns = 1000 + 2000 * number
        pid = 1000 + cpu * per_cpu + number // NR_CPUS % per_cpu
        parts.append(EVENT.pack(pid, cpu, WAKING, 0, t_ns, running[cpu], cpu))
        parts.append(EVENT.pack(pid, cpu, WAKEUP, 0, t_ns + 10, running[cpu], cpu))
        parts.append(EVENT.pack(running[cpu], cpu, SWITCH, 120, t_ns + 500, pid, 1))
        running[cpu] = pid
    parts.append(EVENT.pack(0, 0, END, 0, 2000 + 2000 * (n_events // 3), 0, 0))
    path.write_bytes(b"".join(parts))


def children_cpu_s() -> float:
    """CPU time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def conversion_events_per_s(n_events: int) -> float:
    """Events converted per second of CPU time, the best of three."""
    with tempfile.TemporaryDirectory(prefix="schedlab-bench-") as folder:
        path = Path(folder) / "x.slev"
        write_synthetic(path, n_events)
        best = 0.0
        for _ in range(3):
            before_s = children_cpu_s()
            convert_events(path, Path(folder) / "x.slr")
            best = max(best, n_events / max(children_cpu_s() - before_s, 1e-9))
    return best


def recording(rounds: int, *, pairs: int) -> tuple[float, float, float]:
    """Share of a CPU in percent, slow-down in percent, and time of a switch in ns."""
    cpu = (max(os.sched_getaffinity(0)),)
    command = Command((sys.executable, "-S", "-c", PING_PONG, str(rounds)), parse_class("SCHED_FIFO:10"), cpu)
    costs, with_ns, without_ns = [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="schedlab-bench-") as folder,
        Recorder() as recorder,
        Launcher() as launcher,
    ):

        def play() -> int:
            report = launcher.run([command], timeout_ns=TIMEOUT_NS)["commands"][0]
            return report["own"]["user_us"] * 1000 + report["own"]["system_us"] * 1000

        play()
        for _ in range(pairs):
            without_ns.append(play())
            recorder.follow(Path(folder) / "x.slev", pid=launcher.pid, generation=2)
            with_ns.append(play())
            captured = recorder.stop()
            costs.append(captured.cpu_ns / max(captured.n_events, 1))
    share = min(costs) * EVENTS_PER_SWITCH * SWITCHES_PER_S / 1e9 * 100
    slowdown = median(a / b for a, b in zip(with_ns, without_ns, strict=True)) - 1
    return share, slowdown * 100, median(without_ns) / (2 * rounds)


def watching(seconds: float) -> float:
    """Share of a CPU in percent that `schedlab top` needs, its recorder included: without a load, and more with each switch."""
    with (
        tempfile.TemporaryDirectory(prefix="schedlab-bench-") as folder,
        subprocess.Popen(
            [sys.executable, "-m", "schedlab", "top", "--export", str(Path(folder) / "top.prom")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        ) as top,
    ):
        time.sleep(3)  # until it has begun
        idle_share, idle_rate = _share_and_rate(top.pid, seconds)
        with subprocess.Popen(
            [sys.executable, "-S", "-c", PING_PONG, str(10**9)], start_new_session=True
        ) as load:
            time.sleep(0.5)
            share, rate = _share_and_rate(top.pid, seconds)
            os.killpg(load.pid, signal.SIGKILL)
        top.send_signal(signal.SIGINT)
    return idle_share + (share - idle_share) / (rate - idle_rate) * WATCHED_PER_S


def _share_and_rate(pid: int, seconds: float) -> tuple[float, float]:
    """Share of a CPU in percent that a process and its children have, and the machine's switches per second."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def cpu_s() -> float:
        fields = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in pids]
        return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")

    def n_switches() -> int:
        return int(Path("/proc/stat").read_text().partition("\nctxt ")[2].split()[0])

    began_s, before_s, before = time.monotonic(), cpu_s(), n_switches()
    time.sleep(seconds)
    took_s = time.monotonic() - began_s
    return (cpu_s() - before_s) / took_s * 100, (n_switches() - before) / took_s
