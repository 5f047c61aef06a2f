# SPDX-License-Identifier: MIT
"""Hold the simulator against Linux; `.venv/bin/python bench/agreement_guest.py`.

    agreement_guest.py [--policies P...] [--workloads W...] [--seeds N] [--first] [--write]

Plays each workload under each policy in the guest, a real kernel with sched_ext, and
in the simulator: one CPU, ticks of 4 ms, the same program and knobs. Compares what
docs/agreement.md says, in means over seeds. With `--write` the table there is replaced.
`--first` shows instead, for each seed, the first decision that differs, which is where
to look for the reason: `--policies eevdf --workloads audio --seeds 1 --first`.

Slices are no multiples of the tick: one that ends just at a tick ends one tick later
where switching takes a microsecond, and the simulator's takes none. A lottery draws
from the policy's own register on both sides, since the kernel's numbers are others.
A task's arrival is a wake-up on both sides: the guest's processes exist before it.
The simulator is told when the kernel's own threads had the CPU.

Read next: agreement_bounds.py, what agreement is; docs/agreement.md.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from unittest import mock

import numpy as np

from agreement_bounds import (
    Cell,
    Pair,
    copied,
    first_difference,
    measure,
    over_seeds,
    table,
    variations,
    write_table,
)
from schedlab import paths
from schedlab.hosts.guest.build import toolchain
from schedlab.hosts.guest.host import GuestHost
from schedlab.hosts.guest.policies import TICK_NS, guest_system
from schedlab.hosts.host import Job
from schedlab.hosts.kinds import job_arguments, settings_of
from schedlab.hosts.sim import SimHost
from schedlab.hosts.user_half import image_of
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.policy.loader import loader_as_policy
from schedlab.program.compiler import compile_workload
from schedlab.records import ftrace
from schedlab.records.file import Kind, Overhead, Records, read_records
from schedlab.workload.find import load_workload

ROOT = Path(__file__).resolve().parent.parent
#: Names of files in it, and what stands in the table.
WORKLOADS_FOLDER = ROOT / "tests" / "linux" / "agreement"
WORKLOADS = ("mix", "web", "audio", "bsp")
TIMEOUT_SECONDS = 600
#: Knobs that differ from the defaults, and why: see above.
KNOBS = {
    "credit": {"slice_ns": 29_000_000},
    "credit_report": {"slice_ns": 29_000_000},
    "edf": {"slice_ns": 9_000_000},
    "lottery": {"slice_ns": 9_000_000, "random_source": 1},
    "mlfq": {"quantum_ns": 7_000_000, "bottom_turn_ns": 11_000_000},
    "o1": {"slice_ns": 29_000_000},
    "priority": {"slice_ns": 9_000_000, "ageing_ns": 497_000_000},
    "rr": {"slice_ns": 9_000_000},
    "rt_rr": {"slice_ns": 99_000_000},
    "stride": {"slice_ns": 9_000_000},
}
#: About what a system call, the start of a process, its end, a timer and a switch take while
#: instructions are counted and events traced: the tasks' CPU times under fifo say so.
COSTS = {"call_ns": 5_000, "start_ns": 15_000, "exit_ns": 95_000, "wakeup_ns": 800, "switch_ns": 1_000}
#: By how much less than this what a tick does comes after it.
TICK_LATE_NS = 30_000
#: A process of the guest exists, asleep, before it arrives.
ARRIVALS = ("--arrivals", "wake")


@dataclass(frozen=True)
class Run:
    """What is played on both hosts."""

    #: `workload`, `policy`: Names or paths.
    workload: str
    policy: str
    seed: int  #: Of the program, and of the policy's random numbers.
    n_cpus: int = 1  #: Of both machines.
    program_of: str = (
        ""  #: Path of the scheduler's own program, which the guest runs; empty: it loads the policy.
    )

    @cached_property
    def program(self):
        """What is played; the names of `WORKLOADS_FOLDER` come first."""
        own = WORKLOADS_FOLDER / f"{self.workload}.toml"
        return compile_workload(load_workload(str(own) if own.exists() else self.workload), seed=self.seed)

    def job(self, folder: Path, *, engine: str = "native") -> Job:
        """The same for a host; its program is written."""
        (folder / "program").write_bytes(bytes(self.program.data))
        if self.program_of and engine == "bpf":
            policy = loader_as_policy(f"loader:{self.program_of}")
        else:
            policy = build_policy(
                load_policy(self.policy), KNOBS.get(self.policy), engine=engine, toolchain=toolchain
            )
        return Job(
            label=self.policy,
            policy=policy,
            program=folder / "program",
            records=folder / "records.slr",
            n_cpus=self.n_cpus,
            seed=self.seed,
            tick_ns=TICK_NS,
        )


def in_guest(run: Run, host: GuestHost | None = None):
    """Play it in the guest, or find what came of it when that was done before: the records; RuntimeError: it fails."""
    with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder:
        job = run.job(Path(folder), engine="bpf")
        host = host or GuestHost()
        kept = _kept(job, host.lead_ms(job))
        if not kept.exists():
            _done(host.session(timeout_seconds=TIMEOUT_SECONDS), job)
            # Instructions are counted: the same job is the same run, bit by bit.
            shutil.move(job.records, kept)
        return read_records(kept)


def in_simulator(run: Run, session, *, seed_more: int = 0, costs: dict | None = None, options=()):
    """Play it in the simulator, with a server of its own: the records.

    The policy's seed is larger by `seed_more`; `costs` are in nanoseconds, by the simulator's names, by
    default none; `options` are more of its own. RuntimeError: it fails.
    """
    options = [ARRIVALS, *options, *(("--cost", f"{cost}={ns}") for cost, ns in (costs or {}).items())]
    with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder:
        job = replace(run.job(Path(folder)), seed=run.seed + seed_more, options=tuple(options))
        _done(session, job)
        return read_records(job.records)


def stolen(events: np.ndarray) -> np.ndarray:
    """Which records say that a real-time task had the CPU."""
    return (events["kind"] == Kind.OVERHEAD) & (events["flags"] == Overhead.STOLEN)


def above(real: Records) -> list[tuple[str, str]]:
    """The kernel's own threads in the guest, which are real-time tasks, as the simulator's option.

    One that a tick wakes has the CPU before another task is chosen there, if that tick also ends a slice: in the
    simulator, whose interrupts take no time, it comes at the tick.
    """
    is_stop = real.events["kind"] == Kind.STOP
    stops = set(zip(real.events["cpu"][is_stop], real.events["t_ns"][is_stop], strict=True))
    spans: list[tuple[int, int, int]] = []
    for event in real.events[stolen(real.events)]:
        cpu, begin_ns, ns = int(event["cpu"]), int(event["t_ns"] - event["arg"]), int(event["arg"])
        if begin_ns < 0:
            continue
        if spans and spans[-1][0] == cpu and sum(spans[-1][1:]) == begin_ns:
            spans[-1] = (cpu, spans[-1][1], spans[-1][2] + ns)  # one after the other
        else:
            spans.append((cpu, begin_ns, ns))
    late = [begin_ns % TICK_NS if (cpu, begin_ns) in stops else 0 for cpu, begin_ns, _ in spans]
    words = [
        f"{cpu}:{begin_ns - (after_ns if after_ns < TICK_LATE_NS else 0)}:{ns}"
        for (cpu, begin_ns, ns), after_ns in zip(spans, late, strict=True)
    ]
    return [("--above", ",".join(words))] if words else []


def joined(records: Records) -> Records:
    """The turn of a task that goes on after a real-time task is one, as in what the guest traces."""
    events = records.events.copy()
    is_kept = np.ones(len(events), bool)
    turns = np.flatnonzero(np.isin(events["kind"], (Kind.RUN, Kind.STOP)))
    for stop, run, end in zip(turns[:-2], turns[1:-1], turns[2:], strict=True):
        if (
            events["kind"][stop] == Kind.STOP
            and events["task"][stop] == events["task"][run]
            and stolen(events[stop:run]).any()
        ):
            is_kept[[stop, run]] = False
            events["arg"][end] += events["arg"][stop]
    return replace(records, events=events[is_kept])


def _done(session, job: Job) -> None:
    """Have a host do a job."""
    outcome = session.run(job)
    if outcome.error:
        raise RuntimeError(outcome.error)


def _kept(job: Job, lead_ms: int) -> Path:
    """Where the records of a job of the guest are kept."""
    what = hashlib.sha256(guest_system()[0].hash.encode() + Path(ftrace.__file__).read_bytes())
    what.update(
        (job.policy.policy_hash.encode() if job.policy.loader else job.policy.shared_object.read_bytes())
        + image_of(job.policy, job_arguments(job, {"--topology"}))
        + repr((job.n_cpus, lead_ms, sorted(settings_of(job).items()))).encode()
    )
    what.update(job.program.read_bytes())
    return paths.cache_folder("agreement") / f"guest-{what.hexdigest()[:24]}.slr"


def compare(workload: str, policy: str, seeds, *, costs: dict[str, int] = COSTS) -> Cell:
    """Compare guest and simulator, which charges `costs`, on one workload under one policy, by names or paths."""
    cell = Cell(Pair(workload, policy), Pair(workload, policy))
    runs = [Run(workload, policy, seed) for seed in seeds]

    def hold(charged: dict[str, int], seed_more: int = 0) -> Pair:
        pairs = []
        for run, records in zip(runs, real, strict=True):
            pairs.append(Pair(workload, policy))
            simulated = in_simulator(run, session, seed_more=seed_more, costs=charged, options=above(records))
            measure(pairs[-1], run.program, (records, joined(simulated)), TICK_NS)
        return over_seeds(pairs, TICK_NS)

    with closing(SimHost().session(timeout_seconds=TIMEOUT_SECONDS)) as session:
        try:
            real = [in_guest(run) for run in runs]
            cell.costly, cell.free = hold(costs), hold({})
            if cell.costly.beyond:
                cell.has_like = any(
                    not hold(varied, len(runs) * seed).beyond for seed, varied in variations(costs, 0)
                )
        except RuntimeError as error:
            cell.costly.error = str(error)
    return cell


def first(run: Run) -> list[str]:
    """Lines that show the first decision that differs, with what the table charges."""
    with closing(SimHost().session(timeout_seconds=TIMEOUT_SECONDS)) as session:
        real = in_guest(run)
        both = real, joined(in_simulator(run, session, costs=COSTS, options=above(real)))
    return [f"{run.workload} under {run.policy}, seed {run.seed}:", *first_difference(both, run.program)]


def main(words: list[str]) -> int:
    """Compare what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ours = sorted(path.name.removesuffix(".bpf.c") for path in paths.policies_folder().glob("*.bpf.c"))
    parser.add_argument("--policies", nargs="+", metavar="P", default=ours)
    parser.add_argument("--workloads", nargs="+", metavar="W", default=WORKLOADS)
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 1 on")
    parser.add_argument(
        "--first", action="store_true", help="show the first decision that differs, of each run"
    )
    parser.add_argument("--write", action="store_true", help="replace the table in docs/agreement.md")
    options = parser.parse_args(words)
    todo, seeds = list(itertools.product(options.workloads, options.policies)), range(1, options.seeds + 1)
    cells = []
    with (
        tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder,
        mock.patch.object(paths, "simulator", copied(paths.simulator(), folder)),
        ThreadPoolExecutor(2) as pool,
    ):
        if options.first:
            for (workload, policy), seed in itertools.product(todo, seeds):
                print("\n".join(first(Run(workload, policy, seed))), flush=True)
            return 0
        for cell in pool.map(lambda it: compare(it[0], it[1], seeds), todo):
            cells.append(cell)
            pair = cell.costly
            print(
                f"{pair.workload:6} {pair.policy:9} {cell.mark:3} {pair.error or ', '.join(pair.beyond)}",
                flush=True,
            )
    text = table(cells, f"means over {len(seeds)} seeds")
    if options.write:
        write_table("linux table", text)
    else:
        print(text)
    return 0 if all(cell.mark for cell in cells) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
