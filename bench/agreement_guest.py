# SPDX-License-Identifier: MIT
"""Hold the simulator against Linux; `./lab python bench/agreement_guest.py`.

    agreement_guest.py [--policies A,B] [--workload X] [--seeds N] [--write]

Plays a workload under each policy in the guest, a real kernel with sched_ext, and in
the simulator: one CPU, ticks of 4 ms, the same program and knobs. Compares what
docs/agreement.md says: shares, switches, mean response, 99th percentiles. With
`--write` the table in docs/agreement.md is replaced.

Slices are no multiples of the tick: one that ends just at a tick ends one tick later
where switching takes a microsecond, and the simulator's takes none. A lottery draws
from the policy's own register on both sides, since the kernel's numbers are others.

Read next: docs/agreement.md; tests/linux/test_guest_agrees.py; agreement.py.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

from agreement import DOCUMENT, Pair, measure

from schedlab import paths
from schedlab.hosts import Job
from schedlab.hosts.guest import TICK_NS
from schedlab.hosts.guest_host import GuestHost
from schedlab.hosts.sim import SimHost
from schedlab.policy import load_policy
from schedlab.policy_build import build_policy
from schedlab.program import compile_workload
from schedlab.records import read_records
from schedlab.spec import load_workload

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- linux table -->", "<!-- end of linux table -->"
TIMEOUT_SECONDS = 600
#: Knobs that differ from the defaults, and why: see above.
KNOBS = {
    "credit": {"slice_ns": 29_000_000},
    "edf": {"slice_ns": 9_000_000},
    "lottery": {"slice_ns": 9_000_000, "random_source": 1},
    "mlfq": {"quantum_ns": 7_000_000, "bottom_turn_ns": 11_000_000},
    "o1": {"slice_ns": 29_000_000},
    "priority": {"slice_ns": 9_000_000, "ageing_ns": 497_000_000},
    "rr": {"slice_ns": 9_000_000},
    "rt_rr": {"slice_ns": 99_000_000},
    "stride": {"slice_ns": 9_000_000},
}


#: What the simulator charges the second time: about what a system call, the start of
#: a process and a timer take while instructions are counted and events traced.
COSTS = ("call_ns=12000", "start_ns=3000", "wakeup_ns=9000")


def run(host, folder: Path, policy: str, seed: int, costs: tuple[str, ...] = ()):
    """Run the program in `folder` once; its records.

    Parameters
    ----------
    host : Host
        Where.
    folder : pathlib.Path
        Holds `program`.
    policy : str
        Name or path.
    seed : int
        Of the policy's random numbers.
    costs : tuple of str
        `NAME=NANOSECONDS` of the simulator's cost model.

    Returns
    -------
    Records
        What happened.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    built = build_policy(load_policy(policy), KNOBS.get(policy))
    job = Job(label=policy, policy=built, program=folder / "program",
              records=folder / f"{policy}-{host.name}.slr", nr_cpus=1, seed=seed, tick_ns=TICK_NS,
              options=tuple(("--cost", cost) for cost in costs))  # fmt: skip
    session = host.session(timeout_seconds=TIMEOUT_SECONDS)
    try:
        outcome = session.run(job)
    finally:
        session.close()
    if outcome.error:
        raise RuntimeError(f"{host.name}: {outcome.error}")
    return read_records(job.records)


def compare(workload: str, policy: str, seed: int) -> tuple[Pair, Pair]:
    """Compare guest and simulator on one workload under one policy.

    Parameters
    ----------
    workload, policy : str
        Names or paths.
    seed : int
        Of the program.

    Returns
    -------
    tuple of Pair
        How far they agree: with a simulator that charges nothing, and with `COSTS`.
    """
    program = compile_workload(load_workload(workload), seed=seed)
    pairs = (Pair(workload, policy), Pair(workload, policy))
    with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as name:
        folder = Path(name)
        (folder / "program").write_bytes(bytes(program.data))
        try:
            real = run(GuestHost(), folder, policy, seed)
            for pair, costs in zip(pairs, ((), COSTS), strict=True):
                measure(pair, program, (real, run(SimHost(), folder, policy, seed, costs)), TICK_NS)
        except RuntimeError as error:
            for pair in pairs:
                pair.error = str(error)
    return pairs


def over_seeds(pairs: list[Pair]) -> Pair:
    """Sum up the runs of one policy: differences of the means over seeds.

    Parameters
    ----------
    pairs : list of Pair
        One per seed.

    Returns
    -------
    Pair
        Its shares are the largest difference of any seed.

    Notes
    -----
    A 99th percentile of a hundred waits is one of them, and one decision that goes
    the other way, after a tie, makes it another: so single runs are no sample.
    """
    whole = Pair(pairs[0].workload, pairs[0].policy)
    whole.error = next((pair.error for pair in pairs if pair.error), None)
    if whole.error:
        return whole
    for name in pairs[0].numbers:
        values = [[pair.numbers[name][host] or 0 for pair in pairs] for host in (0, 1)]
        whole.numbers[name] = tuple(sum(each) / len(each) for each in values)
    whole.share_points = max(pair.share_points for pair in pairs)
    real, simulated = whole.numbers["switches"]
    whole.switches = real / simulated - 1
    real, simulated = whole.numbers["response_ns_mean"]
    whole.response = real / simulated - 1 if abs(real - simulated) > TICK_NS / 100 else 0.0
    whole.p99_ticks = max(
        abs(whole.numbers[name][0] - whole.numbers[name][1])
        for name in ("response_ns_p99", "wakeup_ns_p99")
    ) / TICK_NS
    return whole


def row(free: Pair, charged: Pair) -> str:
    """Write one line of the table."""
    if free.error:
        return f"| {free.policy} | {free.error.splitlines()[0]} | | | | | failed | failed |"

    def three(name: str, scale: float) -> str:
        values = (*free.numbers[name], charged.numbers[name][1])
        return " / ".join(f"{(value or 0) / scale:.3g}" for value in values)

    cells = [three("switches", 1), *(three(name, 1e6) for name in
                                     ("response_ns_mean", "response_ns_p99", "wakeup_ns_p99"))]  # fmt: skip
    verdicts = [", ".join(pair.beyond) or "ok" for pair in (free, charged)]
    return f"| {free.policy} | {charged.share_points:.2f} | {' | '.join(cells)} | {' | '.join(verdicts)} |"


def _copy(program: Path, folder: str):
    """Copy a program; a function that says where the copy is."""
    own = Path(shutil.copy(program, folder))
    return lambda: own


def main(words: list[str]) -> int:
    """Compare what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ours = sorted(path.name.removesuffix(".bpf.c") for path in paths.policies_folder().glob("*.bpf.c"))
    parser.add_argument("--policies", default=",".join(ours))
    parser.add_argument("--workload", default=str(ROOT / "tests" / "linux" / "agreement.toml"))
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 1 on")
    parser.add_argument("--write", action="store_true", help="replace the table in docs/agreement.md")
    options = parser.parse_args(words)
    policies, seeds = options.policies.split(","), range(1, options.seeds + 1)
    todo = [(options.workload, policy, seed) for policy in policies for seed in seeds]
    with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder, mock.patch.object(
        # A copy: this takes minutes, and a build may go on beside it.
        paths, "simulator", _copy(paths.simulator(), folder)
    ), ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda three: compare(*three), todo))
    lines = ["| policy | largest difference of a share (points) | switches | response mean | response p99 "
             "| wake-up p99 | without costs | with costs |", "|" + "---|" * 8]  # fmt: skip
    nr_good = [0, 0]
    for index in range(len(policies)):
        mine = found[index * len(seeds) : (index + 1) * len(seeds)]
        both = [over_seeds([pairs[kind] for pairs in mine]) for kind in (0, 1)]
        lines.append(row(*both))
        print(lines[-1], flush=True)
        for kind, pair in enumerate(both):
            nr_good[kind] += not pair.error and not pair.beyond
    text = (
        f"{nr_good[0]} of {len(policies)} policies are within all bounds where the simulator charges "
        f"nothing, {nr_good[1]} where it charges `{' '.join(COSTS)}`. Means over {len(seeds)} seeds: "
        "kernel / simulator / simulator with costs; times in ms.\n\n" + "\n".join(lines)
    )
    if options.write:
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        old = DOCUMENT.read_text(encoding="utf-8")
        block = f"{BEGIN}\nMeasured on {date}. {text}\n{END}"
        DOCUMENT.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: block, old, flags=re.DOTALL), encoding="utf-8")
    return 0 if nr_good[1] == len(policies) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
