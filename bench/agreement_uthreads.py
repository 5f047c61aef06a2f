# SPDX-License-Identifier: MIT
"""Hold the simulator against user threads; `.venv/bin/python bench/agreement_uthreads.py`.

    agreement_uthreads.py [--policies A,B] [--tries N] [--write]

Plays one workload under each policy on one CPU of both hosts, with the same program,
seed and knobs: twelve tasks in three groups that compute, and are there from the start.
With `--write` the table in docs/agreement.md is replaced.

This machine's other programs take as much of the CPU as they like, so times are counted
in the CPU time that all tasks together have had: the CPU is never idle here, and what
others take lies between. Ticks go on meanwhile, and turns end at ticks, so the run in
which others took least is the one that counts.

Read next: docs/agreement.md; agreement.py, the same for the teaching kernel.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

from agreement_bounds import RESPONSE, SHARE_POINTS, copied, write_table
from schedlab import paths
from schedlab.calibration import DEFAULT_CALIBRATION
from schedlab.hosts.choose import open_host
from schedlab.hosts.host import Job
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Stop, read_records
from schedlab.workload.spec import parse_workload

#: Lengths are no multiples of a tick or a slice: a burst that ends just at a tick ends
#: one turn later where switching takes a microsecond. Nor is one weight another's
#: multiple: after 2 turns of the one and 1 of the other, a microsecond would decide.
WORKLOAD = """
[workload]
title = "Three groups that compute"
question = "Who gets how much, and when?"
tick = "1ms"
jitter = "0ms"

[[task]]
name = "long"
count = 4
group = 0
weight = 430
tickets = 430
credits = 430
priority = 4
burst = "249.7ms"
phases = [{run = "249.7ms"}]

[[task]]
name = "middle"
count = 4
group = 1
weight = 210
tickets = 210
credits = 210
priority = 5
burst = "194.9ms"
phases = [{run = "194.9ms"}]

[[task]]
name = "short"
count = 4
group = 2
weight = 150
tickets = 150
credits = 150
priority = 6
burst = "51.7ms"
phases = [{run = "51.7ms"}]
"""
#: Slices are no multiples of a tick on either side, as in agreement_guest.py; the
#: lottery draws from the policy's own register on both.
KNOBS = {
    "credit": {"slice_ns": 29_500_000},
    "credit_report": {"slice_ns": 29_500_000},
    "edf": {"slice_ns": 9_500_000},
    "lottery": {"slice_ns": 9_500_000, "random_source": 1},
    "mlfq": {"quantum_ns": 7_500_000, "bottom_turn_ns": 11_500_000},
    "o1": {"slice_ns": 29_500_000},
    "priority": {"slice_ns": 9_500_000},
    "rr": {"slice_ns": 9_500_000},
    "rt_rr": {"slice_ns": 99_500_000},
    "stride": {"slice_ns": 9_500_000},
}
NR_EACH = 4
GROUPS = ("long", "middle", "short")
TRIES = 3
TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Told:
    """What one run says."""

    shares: np.ndarray  #: Of each group, in percent, when half of all CPU time has been used.
    order: tuple[str, ...]  #: Groups by the mean time at which their tasks end.
    response_ns: float  #: Mean over all tasks: CPU time used by all before a task runs first.
    stolen: float  #: Part of the time that passed in which no task ran.


def tell(path: Path) -> Told:
    """Read what the records of one CPU that is never idle say, in CPU time."""
    records = read_records(path)
    n_tasks = NR_EACH * len(GROUPS)
    used, first, end = 0, np.zeros(n_tasks), np.zeros(n_tasks)
    turns = []
    seen = set()
    for event in records.events[np.isin(records.events["kind"], (Kind.RUN, Kind.STOP))]:
        task = int(event["task"]) - 1
        if event["kind"] == Kind.RUN:
            if task not in seen:
                first[task] = used
            seen.add(task)
            continue
        turns.append((task // NR_EACH, used, used + int(event["arg"])))
        used += int(event["arg"])
        if event["flags"] == Stop.EXITED:
            end[task] = used
    half = np.zeros(len(GROUPS))
    for group, begin_ns, end_ns in turns:
        half[group] += max(0, min(end_ns, used / 2) - begin_ns)
    means = end.reshape(len(GROUPS), NR_EACH).mean(axis=1)
    order = tuple(GROUPS[i] for i in np.argsort(means))
    return Told(100 * half / half.sum(), order, float(first.mean()), 1 - used / records.end_ns)


def run(host: str, folder: Path, program, policy: str, tick_ns: int) -> Told:
    """Run the compiled workload once, on `"sim"` or `"uthreads"`; RuntimeError: it fails."""
    (folder / "program").write_bytes(bytes(program.data))
    work = tuple(
        ("--work", f"{name}={getattr(DEFAULT_CALIBRATION, name)}")
        for name in ("pi_ps", "matmul_ps", "spin_ps")
    )
    job = Job(
        label=policy,
        policy=build_policy(load_policy(policy), KNOBS.get(policy)),
        program=folder / "program",
        records=folder / f"{host}.slr",
        n_cpus=1,
        seed=1,
        tick_ns=tick_ns,
        options=work,
    )
    session = open_host(host).session(timeout_seconds=TIMEOUT_SECONDS)
    try:
        outcome = session.run(job)
    finally:
        session.close()
    if outcome.error:
        raise RuntimeError(f"{host}, {policy}: {outcome.error}")
    return tell(job.records)


def row(policy: str, real: Told, simulated: Told) -> tuple[str, bool]:
    """Write one line of the table; (line, whether it is within all bounds)."""
    share_points = float(np.abs(real.shares - simulated.shares).max())
    response = (real.response_ns - simulated.response_ns) / simulated.response_ns
    beyond = []
    if share_points > SHARE_POINTS:
        beyond.append("shares")
    if real.order != simulated.order:
        beyond.append("order")
    if abs(response) > RESPONSE:
        beyond.append("response")
    orders = " < ".join(real.order)
    if real.order != simulated.order:
        orders += f", simulator {' < '.join(simulated.order)}"
    return (
        f"| {policy} | {share_points:.2f} | {orders} | {real.response_ns / 1e6:.2f} / "
        f"{simulated.response_ns / 1e6:.2f} | {response:+.1%} | {real.stolen:.0%} | "
        f"{'beyond: ' + ', '.join(beyond) if beyond else 'within all bounds'} |"
    ), not beyond


def main(words: list[str]) -> int:
    """Compare what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ours = sorted(path.name.removesuffix(".bpf.c") for path in paths.policies_folder().glob("*.bpf.c"))
    parser.add_argument("--policies", default=",".join(ours))
    parser.add_argument("--tries", type=int, default=TRIES, help="runs on user threads per policy")
    parser.add_argument("--write", action="store_true", help="replace the table in docs/agreement.md")
    options = parser.parse_args(words)
    workload = parse_workload(WORKLOAD, name="groups.toml")
    program = compile_workload(workload, seed=1)
    lines = [
        "| policy | shares differ by (points) | groups by mean end | mean response (ms), here / simulator "
        "| difference | taken by others | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    n_good = 0
    with (
        tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder,
        mock.patch.multiple(
            paths,
            simulator=copied(paths.simulator(), folder),
            uthreads_runner=copied(paths.uthreads_runner(), folder),
        ),
    ):
        for policy in options.policies.split(","):
            simulated = run("sim", Path(folder), program, policy, workload.tick_ns)
            tries = [
                run("uthreads", Path(folder), program, policy, workload.tick_ns) for _ in range(options.tries)
            ]
            line, is_good = row(policy, min(tries, key=lambda told: told.stolen), simulated)
            lines.append(line)
            n_good += is_good
            print(line, flush=True)
    text = (
        f"{n_good} of {len(lines) - 2} policies are within all bounds; of {options.tries} runs each, the one "
        "of which other programs took least:\n\n" + "\n".join(lines)
    )
    if options.write:
        write_table("uthreads table", text)
    return 0 if n_good == len(lines) - 2 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
