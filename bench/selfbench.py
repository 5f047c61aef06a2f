# SPDX-License-Identifier: MIT
"""Measure schedlab's own speed and memory; behind `schedlab selfbench`.

Speeds are CPU time of the worker, as the kernel accounts it when the process
ends, so that what else runs on the machine matters little. Each figure is the
best of a few tries: disturbances only ever make a program slower. `sweep_runs_per_s`
alone is of the wall clock, since using all CPUs is what it is about: compare it with
another commit's in the same minutes. Nothing here is a test; figures are compared by people.

Read next: synthetic.py, the records that the metrics are timed on; simso_peer.py;
check_bench.py, uthreads_bench.py, linux_bench.py, record_bench.py, import_bench.py.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from schedlab import paths
from schedlab.errors import NotFoundError, did_you_mean
from schedlab.hosts.choose import open_host, unavailable_reason
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.workload.spec import parse_workload

WORKLOAD = """
[workload]
title = "Run and sleep in turn"
question = "How fast is a switch?"
tick = "10ms"
jitter = "0ms"
horizon = "{horizon_ns}ns"

[[task]]
name = "worker"
count = {n_tasks}
phases = [{{loop = "forever", do = [{{run = "1ms"}}, {{sleep = "1ms"}}]}}]
"""
HOSTS = ("sim", "check", "uthreads", "kernel", "linux", "guest")
HERE = Path(__file__).resolve().parent
TASK_COUNTS = (10, 100, 1_000, 10_000, 100_000)
CPU_COUNTS = (1, 4, 16, 64, 256)
TASKS_PER_CPU = 25
SIMSO = "simso==0.8.5"


def measure(host: str, *, is_quick: bool = False, beside: str | None = None) -> dict:
    """Measure one host, and with `beside`, a commit of this project, that commit as the peer of each row.

    `host` is `"sim"`, `"check"`, `"uthreads"`, `"kernel"`, `"linux"` or `"guest"`; quick: work a tenth as
    long, which is less exact. The result has `benchmarks`, rows as `entry` makes them; `skipped`: why a
    peer is missing; of user threads also `callbacks`, by kind of operation. NotFoundError: there is
    nothing to measure by that name. UnavailableError: the host has not been built.
    """
    if host not in HOSTS:
        raise NotFoundError(f"selfbench has nothing for '{host}'{did_you_mean(host, HOSTS)}")
    open_host("sim" if host == "check" else host)
    result = _measure_here(host, is_quick)
    if beside is not None:
        values = _load("beside").figures(beside, host, is_quick=is_quick)
        result["benchmarks"] += [
            entry(
                row["name"],
                row["value"],
                row["unit"],
                row["better"],
                peer=f"commit {beside}",
                peer_value=values[row["name"]],
            )
            for row in list(result["benchmarks"])
            if row["name"] in values
        ]
    return result


def _measure_here(host: str, is_quick: bool) -> dict:
    """`measure()` of this checkout alone."""
    if host == "check":
        return _load("check_bench").measure(entry, is_quick=is_quick)
    if host == "guest":
        return _load("guest_bench").measure(entry, is_quick=is_quick)
    if host == "kernel":
        return _load("kernel_bench").measure(entry, is_quick=is_quick)
    if host == "linux":
        found = [
            _load(name).measure(entry, is_quick=is_quick)
            for name in ("linux_bench", "record_bench", "import_bench")
        ]
        return {key: [row for each in found for row in each[key]] for key in ("benchmarks", "skipped")}
    if host == "uthreads":
        with tempfile.TemporaryDirectory(prefix="schedlab-bench-") as folder:
            return _load("uthreads_bench").measure(entry, Path(folder), is_quick=is_quick)
    with tempfile.TemporaryDirectory(prefix="schedlab-bench-") as folder:
        return _Bench(Path(folder), is_quick).run()


def _load(name: str):
    """Import another file of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"schedlab_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def entry(name: str, value: float | None, unit: str, better: str, *, peer=None, peer_value=None) -> dict:
    """One row of the result: what was measured, in what, and whether `"higher"` or `"lower"` is better.

    `peer` did the same work; `ratio` is how many times better than the peer, None where there is none.
    """
    ratio = None
    if value and peer_value:
        ratio = value / peer_value if better == "higher" else peer_value / value
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "better": better,
        "peer": peer,
        "peer_value": peer_value,
        "ratio": ratio,
    }


#: Program of the small parent: passes the output on, then says the child's peak.
MEASURED = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
print(os.wait4(pid, 0)[2].ru_maxrss, file=sys.stderr)
"""


def _answer(output: bytes) -> dict:
    """Read what the simulator printed."""
    answer = json.loads(output)
    if answer["status"] != "ok":
        raise RuntimeError(f"schedlab-sim failed: {answer['error']}")
    return answer


class _Bench:
    """All measurements of the simulator, in one scratch folder."""

    def __init__(self, folder: Path, is_quick: bool):
        self.folder = folder
        self.scale = 0.1 if is_quick else 1.0
        self.tries = 2 if is_quick else 3
        self.policy = build_policy(load_policy("rr"))
        self.skipped: list[str] = []

    def run(self) -> dict:
        """Measure everything."""
        rows = [*self.speeds(), *self.growth(), *self.memory(), *self.metrics(), self.sweep()]
        return {"benchmarks": rows, "skipped": self.skipped}

    # ---- the simulator ------------------------------------------------------

    def program(self, n_tasks: int, horizon_ns: int) -> Path:
        """Write the program of so many tasks."""
        path = self.folder / f"{n_tasks}-{horizon_ns}.slprog"
        if not path.exists():
            text = WORKLOAD.format(n_tasks=n_tasks, horizon_ns=horizon_ns)
            program = compile_workload(parse_workload(text, name="bench.toml"), seed=1)
            path.write_bytes(program.data)
        return path

    def command(self, n_tasks: int, n_cpus: int, horizon_ns: int, *, is_recorded: bool) -> list[str]:
        """Arguments that simulate once."""
        command = [
            str(paths.simulator()), "--policy", str(self.policy.shared_object),
            "--program", str(self.program(n_tasks, horizon_ns)), "--cpus", str(n_cpus),
            "--tick-ns", "10000000",
        ]  # fmt: skip
        records = self.folder / "records.slr"
        return command + (["--records", str(records)] if is_recorded else [])

    def simulate(self, n_tasks: int, n_cpus: int, horizon_ns: int, *, is_recorded=False):
        """Simulate once; (switches, CPU seconds of the worker)."""
        command = self.command(n_tasks, n_cpus, horizon_ns, is_recorded=is_recorded)
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.stdout.close()
        process.returncode = os.waitstatus_to_exitcode(status)
        return _answer(output)["nr_switches"], usage.ru_utime + usage.ru_stime

    def peak_bytes(self, n_tasks: int, horizon_ns: int, *, is_recorded=False) -> int:
        """Peak memory of one simulation on 4 CPUs.

        Linux counts for a process what its parent held when it was started, so
        a small parent is put between: nothing below some 10 MB is seen.
        """
        command = self.command(n_tasks, 4, horizon_ns, is_recorded=is_recorded)
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", MEASURED, *command], capture_output=True, check=True
        )
        _answer(done.stdout)
        return int(done.stderr) * 1024

    def cost(self, n_tasks: int, n_cpus: int, switches: float, *, is_recorded=False) -> float:
        """CPU seconds per switch, the best of a few tries, without the start of the process."""
        # Every CPU is busy, or every task runs half of the time, whichever is less.
        rate_per_ns = min(n_cpus / 1e6, n_tasks / 2e6)
        # Each task runs a few times at least, or only its start would be timed.
        wanted = max(switches * self.scale, 4 * n_tasks)
        long_ns, short_ns = int(wanted / rate_per_ns), int(wanted / rate_per_ns / 10)
        best = float("inf")
        for _ in range(self.tries):
            many, long_s = self.simulate(n_tasks, n_cpus, long_ns, is_recorded=is_recorded)
            few, short_s = self.simulate(n_tasks, n_cpus, short_ns, is_recorded=is_recorded)
            best = min(best, (long_s - short_s) / (many - few))
        return best

    def speeds(self) -> list[dict]:
        """Switches per CPU-second, without and with records, beside SimSo."""
        peer_value = self.simso()
        peer = "SimSo 0.8.5" if peer_value else None
        plain = 1 / self.cost(100, 4, 20e6)
        recorded = 1 / self.cost(100, 4, 5e6, is_recorded=True)
        return [
            entry("sim_switches_per_cpu_s", plain, "1/s", "higher", peer=peer, peer_value=peer_value),
            entry(
                "sim_switches_per_cpu_s_recorded", recorded, "1/s", "higher", peer=peer, peer_value=peer_value
            ),
            *self.sandboxed(plain),
        ]

    def sandboxed(self, native: float) -> list[dict]:
        """The same in the sandbox, instructions counted, beside the native simulator."""
        if reason := unavailable_reason("wasm"):
            self.skipped.append(f"sandbox: {reason}")
            return []
        from schedlab.hosts.wasm_run import Engine

        engine = Engine(build_policy(load_policy("rr"), engine="wasm").shared_object)
        # 4 switches each simulated ms: beside 4 million of them the start, 4 ms, is nothing.
        program = self.program(100, int(1e12 * self.scale))
        request = f"--policy\trr\t--program\t{program}\t--cpus\t4\t--tick-ns\t10000000"
        found = []
        for _ in range(self.tries):
            began = time.process_time()
            answer = engine.run(request).answer
            found.append(answer["nr_switches"] / (time.process_time() - began))
        name = "sandbox_switches_per_cpu_s"
        return [entry(name, max(found), "1/s", "higher", peer="native", peer_value=native)]

    def growth(self) -> list[dict]:
        """Cost of a switch as tasks and CPUs become many."""
        rows = []
        tasks = {n: 1e9 * self.cost(n, 4, 3e6) for n in TASK_COUNTS}
        cpus = {n: 1e9 * self.cost(TASKS_PER_CPU * n, n, 3e6) for n in CPU_COUNTS}
        for n, value in tasks.items():
            rows.append(entry(f"sim_ns_per_switch_{n}_tasks", value, "ns", "lower"))
        for n, value in cpus.items():
            rows.append(entry(f"sim_ns_per_switch_{n}_cpus", value, "ns", "lower"))
        rows.append(entry("sim_growth_10_to_100000_tasks", tasks[100_000] / tasks[10], "1", "lower"))
        rows.append(entry("sim_growth_1_to_256_cpus", cpus[256] / cpus[1], "1", "lower"))
        return rows

    def memory(self) -> list[dict]:
        """Memory per task; and how much a run ten times as long takes more."""
        # Both are far above what the small parent holds, so it cancels out.
        few, many = self.peak_bytes(100_000, 10**8), self.peak_bytes(300_000, 10**8)
        short = self.peak_bytes(100, int(1e11 * self.scale), is_recorded=True)
        long = self.peak_bytes(100, int(1e12 * self.scale), is_recorded=True)
        return [
            entry("sim_bytes_per_task", (many - few) / 200_000, "B", "lower"),
            entry("sim_memory_growth_10_times_longer", long / short, "1", "lower"),
        ]

    # ---- the peer -----------------------------------------------------------

    def simso(self) -> float | None:
        """Switches per CPU-second of SimSo, or None with the reason in `skipped`."""
        folder = paths.cache_folder("peers") / "simso"
        python = folder / "bin" / "python"
        stamp = folder / "installed"
        try:
            if not stamp.is_file():
                subprocess.run(
                    [sys.executable, "-m", "venv", "--clear", str(folder)],
                    check=True,
                    capture_output=True,
                    timeout=120,
                )
                subprocess.run(
                    [str(python), "-m", "pip", "install", "-q", SIMSO],
                    check=True,
                    capture_output=True,
                    timeout=600,
                )
                stamp.touch()
            done = subprocess.run(
                [str(python), str(HERE / "simso_peer.py"), str(int(2000 * self.scale) + 200)],
                check=True,
                capture_output=True,
                text=True,
                timeout=300,
            )
            answer = json.loads(done.stdout)
            return answer["switches"] / answer["cpu_seconds"]
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            said = getattr(error, "stderr", None) or b""
            text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
            last = text.strip().splitlines()[-1:] or [str(error)]
            self.skipped.append(f"SimSo cannot be run here: {last[0]}")
            return None

    # ---- Python -------------------------------------------------------------

    def metrics(self) -> list[dict]:
        """Seconds for reading, checking and computing ten million records."""
        from schedlab.metrics import consistency
        from schedlab.metrics.dictionary import compute_metrics
        from schedlab.metrics.timeline import Timeline
        from schedlab.records.file import read_records, write_records

        synthetic = _load("synthetic")
        n_records = int(10_000_000 * self.scale)
        path = self.folder / "synthetic.slr"
        write_records(path, synthetic.round_robin_records(n_records), n_cpus=4)
        computing, checking = [], []
        for _ in range(self.tries):
            begin = time.process_time()
            timeline = Timeline(read_records(path))
            compute_metrics(timeline)
            middle = time.process_time()
            verdict = consistency.check(
                timeline, consistency.Expectations(horizon_ns=1, work_conserving=True)
            )
            checking.append(time.process_time() - middle)
            computing.append(middle - begin)
            if verdict != "ok":
                raise RuntimeError(f"the synthetic records are unlawful: {verdict}")
        millions = n_records // 1_000_000
        return [
            entry(f"metrics_{millions}m_records_s", min(computing), "s", "lower"),
            entry(f"consistency_{millions}m_records_s", min(checking), "s", "lower"),
        ]

    def sweep(self) -> dict:
        """Short runs per second of the wall clock: a sweep of many seeds, all its files kept."""
        import schedlab

        n_runs = int(1000 * self.scale)
        schedlab.sweep("mixed", "rr", seeds=2)  # what is imported and compiled once
        seconds = []
        for i in range(self.tries):
            out = self.folder / f"sweep-{i}"
            begin = time.perf_counter()
            result = schedlab.sweep("mixed", "rr", seeds=n_runs, out=out)
            seconds.append(time.perf_counter() - begin)
            if not result.is_good:
                raise RuntimeError(f"a run of the sweep failed: {result.errors[0]}")
            shutil.rmtree(out)
        return entry("sweep_runs_per_s", n_runs / min(seconds), "1/s", "higher")
