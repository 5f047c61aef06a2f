# SPDX-License-Identifier: MIT
"""How fast a trace of a large machine is imported, and in how much memory; part of `selfbench linux`.

        .venv/bin/python bench/import_bench.py --events 20e6

writes such a trace, imports it, and prints seconds and the largest memory of a process.
64 CPUs, 1,000 tasks with names of all lengths; each wake-up is four events: waking,
wakeup, and the switches to the task and away from it.

Read next: hosts/linux/import/import.h.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from schedlab.paths import recorder

NR_CPUS, NR_TASKS = 64, 1000
#: Between two wake-ups on the machine, in nanoseconds: 20 M events are a minute.
STEP_NS = 12_000
EVENTS_PER_WAKEUP = 4
#: Wake-ups per write.
CHUNK = 20_000
#: Of the parser in Python that was before: 343,000 events in 4.7 s (November 2026).
PYTHON_EVENTS_PER_S = 343_000 / 4.7


def lines(number: int) -> Iterator[tuple[int, str]]:
    """Time and text of one wake-up's events, as `trace-cmd report -t` prints them."""
    cpu = number * 7 % NR_CPUS
    task = number * 13 % NR_TASKS
    pid, name = 1000 + task, f"worker/{task}"[: 3 + task % 13]
    t_ns = 10**12 + STEP_NS * number
    idle = f"swapper/{cpu}:0 [120]"
    wake = f"comm={name} pid={pid} prio=120 target_cpu={cpu:03d}"
    for offset_ns, who, event, what in (
        (0, "<idle>-0     ", "sched_waking: ", wake),
        (1500, "<idle>-0     ", "sched_wakeup: ", wake),
        (3000, "<idle>-0     ", "sched_switch: ", f"{idle} R ==> {name}:{pid} [120]"),
        (
            90_000 + number % 7 * 10_000,
            f"{name}-{pid:<6}",
            "sched_switch: ",
            f"{name}:{pid} [120] S ==> {idle}",
        ),
    ):
        at_ns = t_ns + offset_ns
        yield (
            at_ns,
            f"{who:>22} [{cpu:03d}] d..2. {at_ns // 10**9}.{at_ns % 10**9:09d}: {event}        {what}\n",
        )


def write_trace(path: Path, n_events: int) -> None:
    """Write a trace of so many events, in order of time but for the edges of chunks."""
    nr = n_events // EVENTS_PER_WAKEUP
    with open(path, "w") as file:
        for first in range(0, nr, CHUNK):
            rows = [row for number in range(first, min(first + CHUNK, nr)) for row in lines(number)]
            rows.sort()
            file.writelines(text for _, text in rows)


def parser_events_per_s(n_events: int) -> float:
    """Events that become events of ours per second of CPU time, the best of three."""
    with tempfile.TemporaryDirectory(prefix="schedlab-bench-") as folder:
        path = Path(folder) / "trace.txt"
        write_trace(path, n_events)
        words = [str(recorder()), "import", "text", str(path), f"{folder}/x.slev", "trace.txt"]
        best = 0.0
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            found = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert sum(found["events"].values()) == n_events
            cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            best = max(best, n_events / max(cpu_s, 1e-9))
    return best


def measure(entry: Callable[..., dict], *, is_quick: bool) -> dict:
    """Measure the reader of text; see linux_bench.measure."""
    n_events = 100_000 if is_quick else 1_000_000
    row = entry(
        "import of text",
        parser_events_per_s(n_events),
        "events/CPU-s",
        "higher",
        peer="the parser in Python",
        peer_value=PYTHON_EVENTS_PER_S,
    )
    return {"benchmarks": [row], "skipped": []}


def main() -> None:
    """Import one large trace."""
    options = argparse.ArgumentParser(description=main.__doc__)
    options.add_argument("--events", type=float, default=20e6)
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = options.parse_args()
    path = given.folder / f"trace-{given.events:g}.txt"
    if not path.exists():
        write_trace(path, int(given.events))
    print(f"{path}: {path.stat().st_size / 1e9:.2f} GB")
    with tempfile.TemporaryDirectory(dir=given.folder) as out:
        begin = time.monotonic()
        words = [sys.executable, "-m", "schedlab", "import", str(path), "--out", out, "--json"]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True, env=os.environ)
        seconds = time.monotonic() - begin
        run = json.loads(done.stdout)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{run['recording']['events']:,} events, {run['status']}: {seconds:.1f} s "
        f"({usage.ru_utime + usage.ru_stime:.1f} s of CPU), {usage.ru_maxrss / 1e6:.2f} GB"
    )


if __name__ == "__main__":
    main()
