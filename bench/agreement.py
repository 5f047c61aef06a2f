# SPDX-License-Identifier: MIT
"""Hold the simulator against the teaching kernel; `./lab python bench/agreement.py`.

    agreement.py [--policies A,B] [--workloads X,Y] [--write]

Plays each workload under each policy on one CPU of both hosts, with the same
program, seed and knobs, and compares what docs/agreement.md says: shares, switches,
mean response, 99th percentiles; and whether the very sequence of decisions is the
same. With `--write` the table in docs/agreement.md is replaced.

The simulator is told what a unit of work costs in the kernel, and nothing else: no
switch, trap or system call costs it any time. Where the two then differ beyond the
bounds, it is asked again with a switch that takes a microsecond.

Read next: docs/agreement.md; tests/kernel/test_host_agrees.py.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from schedlab import paths
from schedlab.hosts import Job, kernel, kernel_build
from schedlab.metrics import compute_metrics
from schedlab.policy import load_policy
from schedlab.policy_build import build_policy
from schedlab.program import compile_workload
from schedlab.records import Kind, read_records
from schedlab.spec import load_workload
from schedlab.timeline import Timeline

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "agreement.md"
BEGIN, END = "<!-- kernel table -->", "<!-- end of kernel table -->"
#: The bounds of the project's design, fixed before the first run.
SHARE_POINTS, SWITCHES, RESPONSE, P99_TICKS = 2.0, 0.10, 0.15, 1.0
WORKLOADS = (
    "mixed", "textbook/fcfs", "textbook/rr", "textbook/srtf", "classics/convoy",
    "classics/inversion-lock", "classics/inversion-pipe", "classics/messages",
    "report-1/cpu-heavy", "report-1/switch", "report-1/io-bound", "report-1/mixed",
    "report-1/creation", "report-1/short", "report-1/starvation",
    "report-2/cpu", "report-2/io", "report-2/mixed", "report-4/rw",
    "report-5/cpu", "report-5/io", "report-5/mixed",
)  # fmt: skip
TIMEOUT_SECONDS = 300
#: About what a switch takes in the kernel; bench/kernel_bench.py counts it.
COSTS = ("--cost", "switch_ns=1000")


@dataclass(frozen=True)
class Hosts:
    """What is compared; by default what is built here.

    Attributes
    ----------
    simulator : pathlib.Path, optional
        The executable.
    image : kernel_build.KernelImage, optional
        The kernel.
    """

    simulator: Path | None = None
    image: kernel_build.KernelImage | None = None


@dataclass
class Pair:
    """One workload under one policy on both hosts.

    Attributes
    ----------
    workload, policy : str
        Which.
    error : str or None
        What kept it from being compared.
    are_equal : bool
        Whether both hosts ran the same tasks in the same order, for the same reasons.
    share_points : float
        Largest difference of a task's share of the CPU time used, in percentage points.
    switches, response : float
        Relative difference of the number of switches and of the mean response time;
        the kernel's less the simulator's, by the simulator's.
    p99_ticks : float
        Larger difference of the two 99th percentiles (response, wake-up) in ticks.
    numbers : dict
        Both hosts' values behind them.
    beyond_with_costs : list of str
        Bounds that it exceeds when a switch costs the simulator some time, too.
    """

    workload: str
    policy: str
    error: str | None = None
    are_equal: bool = False
    share_points: float = 0.0
    switches: float = 0.0
    response: float = 0.0
    p99_ticks: float = 0.0
    numbers: dict = field(default_factory=dict)
    beyond_with_costs: list[str] = field(default_factory=list)

    @property
    def beyond(self) -> list[str]:
        """Bounds that it exceeds, in words."""
        found = []
        if self.share_points > SHARE_POINTS:
            found.append(f"share {self.share_points:.1f} points")
        if abs(self.switches) > SWITCHES:
            found.append(f"switches {self.switches:+.0%}")
        if abs(self.response) > RESPONSE:
            found.append(f"response {self.response:+.0%}")
        if self.p99_ticks > P99_TICKS:
            found.append(f"p99 {self.p99_ticks:.1f} ticks")
        return found


def decisions(records) -> list[tuple]:
    """List what the scheduler decided: who runs, and why it stops.

    Parameters
    ----------
    records : Records
        Of one run.

    Returns
    -------
    list of tuple
        `(kind, task, cpu, why)` of each RUN and STOP.
    """
    events = records.events
    chosen = events[np.isin(events["kind"], (Kind.RUN, Kind.STOP))]
    why = np.where(chosen["kind"] == Kind.STOP, chosen["flags"], 0)
    return list(zip(chosen["kind"].tolist(), chosen["task"].tolist(), chosen["cpu"].tolist(),
                    why.tolist(), strict=True))


def run_both(
    folder: Path, program, policy: str, *, tick_ns: int, seed: int = 1, hosts: Hosts = Hosts()
):
    """Run a program on both hosts.

    Parameters
    ----------
    folder : pathlib.Path
        For files.
    program : Program
        What runs.
    policy : str
        Name or path.
    tick_ns : int
        Time between ticks in nanoseconds.
    seed : int, default 1
        Of the random numbers that the policy draws.
    hosts : Hosts, optional
        Both hosts.

    Returns
    -------
    tuple of Records
        The kernel's and the simulator's.

    Raises
    ------
    RuntimeError
        If either fails.
    """
    built = build_policy(load_policy(policy))
    (folder / "program").write_bytes(bytes(program.data))
    job = Job(label=policy, policy=built, program=folder / "program", records=folder / "kernel.slr",
              nr_cpus=1, seed=seed, tick_ns=tick_ns)  # fmt: skip
    outcome = kernel.KernelSession(timeout_seconds=TIMEOUT_SECONDS, image=hosts.image).run(job)
    if outcome.error:
        raise RuntimeError(f"kernel: {outcome.error}")
    return read_records(job.records), _simulate(folder, built, tick_ns, seed, hosts)


def _simulate(folder: Path, built, tick_ns: int, seed: int, hosts: Hosts, costs: tuple = ()):
    """Run the program in `folder` in the simulator; its records."""
    calibration = kernel.CALIBRATION
    work = [word for name in ("pi_ps", "matmul_ps", "spin_ps")
            for word in ("--work", f"{name}={getattr(calibration, name)}")]  # fmt: skip
    done = subprocess.run(
        [hosts.simulator or paths.simulator(), "--policy", built.shared_object, "--program", folder / "program",
         "--cpus", "1", "--seed", str(seed), "--tick-ns", str(tick_ns), *work,
         *(word for knob, value in built.values.items() for word in ("--set", f"{knob}={value}")),
         *costs, "--records", folder / "sim.slr"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    if answer["error"]:
        raise RuntimeError(f"simulator: {answer['error']}")
    return read_records(folder / "sim.slr")


def compare(workload: str, policy: str, hosts: Hosts = Hosts()) -> Pair:
    """Compare the hosts on one workload under one policy.

    Parameters
    ----------
    workload, policy : str
        Names or paths.
    hosts : Hosts, optional
        Both hosts.

    Returns
    -------
    Pair
        How far they agree.
    """
    pair = Pair(workload, policy)
    loaded = load_workload(workload)
    program = compile_workload(loaded, seed=1)
    with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder:
        try:
            both = run_both(Path(folder), program, policy, tick_ns=loaded.tick_ns,
                            hosts=hosts)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            pair.error = str(error)
            return pair
        pair.are_equal = decisions(both[0]) == decisions(both[1])
        _measure(pair, program, both, loaded.tick_ns)
        if pair.beyond and not pair.are_equal:
            built = build_policy(load_policy(policy))
            dearer = _simulate(Path(folder), built, loaded.tick_ns, 1, hosts, COSTS)
            again = Pair(workload, policy)
            _measure(again, program, (both[0], dearer), loaded.tick_ns)
            pair.beyond_with_costs = again.beyond
    return pair


def _measure(pair: Pair, program, both, tick_ns: int) -> None:
    """Fill in the differences."""
    metrics = [compute_metrics(Timeline(records), weight=program.tasks["weight"]) for records in both]
    shares = [m.tasks["run_ns"] / m.run["busy_ns"] for m in metrics]
    pair.share_points = 100 * float(np.abs(shares[0] - shares[1]).max())
    real, simulated = (m.run for m in metrics)
    pair.switches = _relative(real["switches"], simulated["switches"])
    pair.response = _relative(real["response_ns_mean"], simulated["response_ns_mean"],
                              least=tick_ns / 100)  # fmt: skip
    p99 = [abs((real[name] or 0) - (simulated[name] or 0)) for name in ("response_ns_p99", "wakeup_ns_p99")]
    pair.p99_ticks = max(p99) / tick_ns
    for name in ("switches", "response_ns_mean", "response_ns_p99", "wakeup_ns_p99"):
        pair.numbers[name] = (real[name], simulated[name])


def _relative(real: float, simulated: float, *, least: float = 0.0) -> float:
    """Difference by the simulator's value; what is less than `least` is no difference."""
    if abs(real - simulated) <= least or not simulated:
        return 0.0
    return (real - simulated) / simulated


def table(pairs: list[Pair]) -> str:
    """Write the pairs as Markdown: a row per workload, a column per policy."""
    policies = list(dict.fromkeys(pair.policy for pair in pairs))
    cells = {(pair.workload, pair.policy): pair for pair in pairs}
    lines = [f"| workload | {' | '.join(policies)} |", "|---" * (len(policies) + 1) + "|"]
    notes = []
    for workload in dict.fromkeys(pair.workload for pair in pairs):
        row = []
        for policy in policies:
            pair = cells[workload, policy]
            if pair.error or (pair.beyond and not pair.are_equal):
                notes.append(f"{len(notes) + 1}. *{workload}* under *{policy}*: {_note(pair)}")
                row.append(f"({len(notes)})")
            else:
                row.append("=" if pair.are_equal else "ok")
        lines.append(f"| {workload} | {' | '.join(row)} |")
    equal = sum(pair.are_equal for pair in pairs)
    good = sum(not pair.error and (pair.are_equal or not pair.beyond) for pair in pairs)
    mended = sum(bool(pair.beyond) and not pair.are_equal and not pair.beyond_with_costs
                 for pair in pairs)  # fmt: skip
    head = (
        f"{len(pairs)} runs on each host, seed 1, one CPU: in {equal} every decision is the same (`=`), "
        f"{good} are within all bounds (`=` or `ok`), {len(pairs) - good} are not (numbered); "
        f"{mended} of these are, once the simulator has `{' '.join(COSTS)}`.\n"
    )
    return "\n".join([head, *lines, "", *notes])


def _note(pair: Pair) -> str:
    """What is beyond the bounds, with the numbers behind it."""
    if pair.error:
        return pair.error.splitlines()[0]
    real, simulated = pair.numbers["response_ns_mean"]
    costs = ", ".join(pair.beyond_with_costs) or "within all bounds"
    return (f"{', '.join(pair.beyond)} (kernel and simulator: {pair.numbers['switches'][0]:.0f} and "
            f"{pair.numbers['switches'][1]:.0f} switches, mean response {real / 1e6:.3g} and "
            f"{simulated / 1e6:.3g} ms); with costs: {costs}")


def main(words: list[str]) -> int:
    """Compare what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ours = sorted(path.name.removesuffix(".bpf.c") for path in paths.policies_folder().glob("*.bpf.c"))
    parser.add_argument("--policies", default=",".join(ours))
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--write", action="store_true", help="replace the table in docs/agreement.md")
    options = parser.parse_args(words)
    todo = [(w, p) for w in options.workloads.split(",") for p in options.policies.split(",")]
    pairs = []
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory(prefix="schedlab-sim-") as folder:
        # Copies: this takes a quarter of an hour, and a build may go on beside it.
        hosts = Hosts(Path(shutil.copy(paths.simulator(), folder)), kernel_build.build_kernel())
        for pair in pool.map(lambda names: compare(*names, hosts), todo):
            pairs.append(pair)
            said = pair.error or ("=" if pair.are_equal else ", ".join(pair.beyond) or "ok")
            print(f"{pair.workload:26} {pair.policy:10} {said.splitlines()[0]}", flush=True)
    text = table(pairs)
    if options.write:
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        old = DOCUMENT.read_text(encoding="utf-8")
        block = f"{BEGIN}\nMeasured on {date}. {text}\n{END}"
        DOCUMENT.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: block, old, flags=re.DOTALL),
                            encoding="utf-8")
    else:
        print(text)
    return 0 if all(pair.are_equal or not (pair.error or pair.beyond) for pair in pairs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
