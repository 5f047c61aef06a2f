# SPDX-License-Identifier: MIT
"""Hold the simulator against the teaching kernel; `.venv/bin/python bench/agreement.py`.

    agreement.py [--policies P...] [--workloads W...] [--cpus N...] [--first] [--write]

Plays each workload under each policy on both hosts, with the same program, seed and
knobs, and compares what docs/agreement.md says: shares, switches, mean response, 99th
percentiles; and whether the very sequence of decisions is the same. First with one
CPU, then some with several. With `--write` the tables in docs/agreement.md are replaced;
`--first` shows instead, for one CPU, the first decision that differs.

The simulator is told what things cost in the kernel (COSTS), the same for all. Where
the two then differ beyond the bounds, it is asked again and again, with costs that are
somewhat different, and seeds: if one of these runs is like the kernel's, microseconds
decide about this workload under this policy.

Read next: agreement_bounds.py, what agreement is; docs/agreement.md.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from agreement_bounds import Cell, Pair, first_difference, measure, table, variations, write_table
from schedlab import paths
from schedlab.hosts.host import Job
from schedlab.hosts.kernel import build as kernel_build
from schedlab.hosts.kernel import host as kernel
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import Program, compile_workload
from schedlab.records.file import read_records
from schedlab.workload.find import load_workload

WORKLOADS = (
    "mixed", "poisson", "textbook/fcfs", "textbook/rr", "textbook/srtf",
    "classics/convoy", "classics/gamer", "classics/heavy-tail", "classics/interactive-batch",
    "classics/inversion-lock", "classics/inversion-pipe", "classics/messages",
    "classics/requests", "classics/starvation",
    "report-1/cpu-heavy", "report-1/switch", "report-1/io-bound", "report-1/mixed",
    "report-1/creation", "report-1/short", "report-1/starvation",
    "report-2/cpu:compute=60ms", "report-2/io", "report-2/mixed:compute=60ms", "report-3/matrix",
    "report-4/pi:compute=80ms", "report-4/rw",
    "report-4/mixed:compute=8ms,alternations=2",
    "report-5/cpu", "report-5/io", "report-5/mixed",
)  # fmt: skip
#: What several CPUs are compared on.
PARALLEL_WORKLOADS = ("mixed", "poisson:rho=1.6", "classics/requests", "report-1/cpu-heavy")
PARALLEL_POLICIES = ("fifo", "rr", "cfs")
PARALLEL_CPUS = (2, 4)
TIMEOUT_SECONDS = 300
#: As seen in the kernel's records: what a task has used when it first waits; what its end
#: takes; what the calls between two runs take; the time from a task that leaves to the next;
#: what a read or write that waits for the device takes beside the wait.
COSTS = {"start_ns": 5000, "exit_ns": 6000, "call_ns": 300, "leave_ns": 700, "io_call_ns": 2500}
#: Of these, what the simulator knows by another option's name.
IO_COSTS = {"io_call_ns": "call_ns"}


@dataclass(frozen=True)
class Hosts:
    """What is compared; by default what is built here."""

    simulator: Path | None = None  #: The executable.
    image: kernel_build.KernelImage | None = None  #: The kernel.


@dataclass(frozen=True)
class Run:
    """What is played on both hosts."""

    folder: Path  #: For files.
    program: Program  #: What runs.
    policy: str  #: Name or path.
    tick_ns: int  #: Time between ticks in nanoseconds.
    seed: int = 1  #: Of the random numbers that the policy draws.
    n_cpus: int = 1  #: CPUs.

    def job(self) -> Job:
        """The same for a host; its program is written."""
        (self.folder / "program").write_bytes(bytes(self.program.data))
        return Job(
            label=self.policy,
            policy=build_policy(load_policy(self.policy)),
            seed=self.seed,
            program=self.folder / "program",
            records=self.folder / "records.slr",
            n_cpus=self.n_cpus,
            tick_ns=self.tick_ns,
        )


def in_kernel(run: Run, hosts: Hosts = Hosts()):
    """Play it in the kernel, or find what came of it when that was done before: the records; RuntimeError: it fails."""
    job = run.job()
    image = hosts.image or kernel.image_for(Path(job.policy.policy.path))
    what = (image.hash, job.policy.policy.name, sorted(job.policy.values.items()), job.n_cpus,
            job.seed, job.tick_ns)  # fmt: skip
    name = hashlib.sha256(repr(what).encode() + job.program.read_bytes()).hexdigest()
    kept = paths.cache_folder("agreement") / f"{image.hash[:12]}-{name[:24]}.slr"
    if not kept.exists():
        outcome = kernel.KernelSession(timeout_seconds=TIMEOUT_SECONDS, image=image).run(job)
        if outcome.error:
            raise RuntimeError(f"kernel: {outcome.error}")
        # Counted runs are equal bit by bit, and so are worth keeping.
        shutil.move(job.records, kept)
    return read_records(kept)


def in_simulator(run: Run, hosts: Hosts = Hosts(), *, costs: dict | None = None):
    """Play it in the simulator, which is told what a unit of work costs in the kernel: the records.

    `costs` are in nanoseconds, by the simulator's names; nothing else costs any time. RuntimeError: it fails.
    """
    job = run.job()
    calibration = kernel.CALIBRATION
    words = [
        word
        for name in ("pi_ps", "matmul_ps", "spin_ps")
        for word in ("--work", f"{name}={getattr(calibration, name)}")
    ]
    for knob, value in job.policy.values.items():
        words += ["--set", f"{knob}={value}"]
    for name, value in (costs or {}).items():
        words += ["--io", f"{IO_COSTS[name]}={value}"] if name in IO_COSTS else ["--cost", f"{name}={value}"]
    done = subprocess.run(
        [hosts.simulator or paths.simulator(), "--policy", job.policy.shared_object,
         "--program", job.program, "--cpus", str(job.n_cpus), "--seed", str(job.seed),
         "--tick-ns", str(job.tick_ns), *words, "--records", job.records],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    if answer["error"]:
        raise RuntimeError(f"simulator: {answer['error']}")
    return read_records(job.records)


def compare(workload: str, policy: str, hosts: Hosts = Hosts(), *, n_cpus: int = 1) -> Cell:
    """Compare the hosts on one workload under one policy, by names or paths."""
    cell = Cell(Pair(workload, policy), Pair(workload, policy), n_cpus)
    loaded = load_workload(workload)
    program = compile_workload(loaded, seed=1)
    with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder:
        run = Run(Path(folder), program, policy, loaded.tick_ns, n_cpus=n_cpus)

        def hold(pair: Pair, simulated) -> Pair:
            measure(pair, program, (real, simulated), loaded.tick_ns)
            return pair

        try:
            real = in_kernel(run, hosts)
            hold(cell.costly, in_simulator(run, hosts, costs=COSTS))
            hold(cell.free, in_simulator(run, hosts))
            if cell.costly.beyond and n_cpus == 1:
                cell.has_like = any(
                    not hold(
                        Pair(workload, policy), in_simulator(replace(run, seed=seed), hosts, costs=costs)
                    ).beyond
                    for seed, costs in variations(COSTS, run.seed)
                )
        except (RuntimeError, subprocess.CalledProcessError) as error:
            cell.costly.error = str(error)
    return cell


def first(workload: str, policy: str) -> list[str]:
    """Lines that show the first decision that differs, with what the table charges."""
    loaded = load_workload(workload)
    program = compile_workload(loaded, seed=1)
    with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder:
        run = Run(Path(folder), program, policy, loaded.tick_ns)
        both = in_kernel(run), in_simulator(run, costs=COSTS)
    return [f"{workload} under {policy}:", *first_difference(both, program)]


def parallel_table(cells: list[Cell]) -> str:
    """Write cells of several CPUs as Markdown, a row each, with their numbers."""
    lines = [
        "| workload | policy | CPUs | largest difference of a share (points) | switches | mean response (ms) |",
        "|---|---|---|---|---|---|",
    ]
    for cell in cells:
        pair = cell.costly
        begin = f"| {pair.workload} | {pair.policy} | {cell.n_cpus} |"
        if pair.error:
            lines.append(f"{begin} {pair.error.splitlines()[0]} | | |")
            continue
        switches = " / ".join(f"{nr:.0f}" for nr in pair.numbers["switches"])
        response = " / ".join(f"{ns / 1e6:.3g}" for ns in pair.numbers["response_ns_mean"])
        lines.append(f"{begin} {pair.share_points:.1f} | {switches} | {response} |")
    return "\n".join(lines)


def _policies() -> list[str]:
    """Names of ours."""
    return sorted(path.name.removesuffix(".bpf.c") for path in paths.policies_folder().glob("*.bpf.c"))


def _compare_all(options) -> list[Cell]:
    """Compare what the command line names, and say so as it goes on."""
    todo = []
    for n_cpus in options.cpus:
        workloads, policies = (
            (WORKLOADS, _policies()) if n_cpus == 1 else (PARALLEL_WORKLOADS, PARALLEL_POLICIES)
        )
        todo += itertools.product(options.workloads or workloads, options.policies or policies, [n_cpus])
    cells = []
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory(prefix="schedlab-sim-") as folder:
        # Copies: this takes a quarter of an hour, and a build may go on beside it.
        hosts = Hosts(Path(shutil.copy(paths.simulator(), folder)), kernel_build.build_kernel())
        for old in paths.cache_folder("agreement").glob("*.slr"):
            if not old.name.startswith(hosts.image.hash[:12]):
                old.unlink()
        for cell in pool.map(lambda it: compare(it[0], it[1], hosts, n_cpus=it[2]), todo):
            cells.append(cell)
            pair = cell.costly
            said = pair.error or f"{cell.mark} {', '.join(pair.beyond)}"
            print(f"{cell.n_cpus} {pair.workload:30} {pair.policy:10} {said.splitlines()[0]}", flush=True)
    return cells


#: Before the second table.
SEVERAL = "With several CPUs (kernel / simulator):\n\n"


def main(words: list[str]) -> int:
    """Compare what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--policies", nargs="+", metavar="P", help="default: all; with several CPUs, PARALLEL_POLICIES"
    )
    parser.add_argument(
        "--workloads",
        nargs="+",
        metavar="W",
        help="default: WORKLOADS; with several CPUs, PARALLEL_WORKLOADS",
    )
    parser.add_argument("--cpus", nargs="+", type=int, default=(1, *PARALLEL_CPUS))
    parser.add_argument("--write", action="store_true", help="replace the tables in docs/agreement.md")
    parser.add_argument(
        "--first", action="store_true", help="show the first decision that differs, of each run"
    )
    options = parser.parse_args(words)
    if options.first:
        for workload, policy in itertools.product(
            options.workloads or WORKLOADS, options.policies or _policies()
        ):
            print("\n".join(first(workload, policy)), flush=True)
        return 0
    cells = _compare_all(options)
    alone, parallel = ([cell for cell in cells if (cell.n_cpus == 1) == is_one] for is_one in (True, False))
    text = "\n\n".join(
        ([table(alone)] if alone else []) + ([SEVERAL + parallel_table(parallel)] if parallel else [])
    )
    if options.write:
        write_table("kernel table", text)
    else:
        print(text)
    return 0 if all(cell.mark for cell in alone) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
