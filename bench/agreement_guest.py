# SPDX-License-Identifier: MIT
"""Hold the simulator against Linux; `.venv/bin/python bench/agreement_guest.py`.

    agreement_guest.py [--policies A,B] [--workload X] [--seeds N] [--write]

Plays a workload under each policy in the guest, a real kernel with sched_ext, and in
the simulator: one CPU, ticks of 4 ms, the same program and knobs. Compares what
docs/agreement.md says: shares, switches, mean response, 99th percentiles. With
`--write` the rows of these policies in docs/agreement.md are replaced.

Slices are no multiples of the tick: one that ends just at a tick ends one tick later
where switching takes a microsecond, and the simulator's takes none. A lottery draws
from the policy's own register on both sides, since the kernel's numbers are others.
A task's arrival is a wake-up on both sides: the guest's processes exist before it.

Read next: docs/agreement.md; tests/linux/test_guest_agrees.py; agreement_bounds.py.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

from agreement_bounds import NR_VARIATIONS, Pair, measure, variations

from schedlab import paths
from schedlab.hosts.guest import TICK_NS
from schedlab.hosts.guest_host import GuestHost
from schedlab.hosts.host import Job
from schedlab.hosts.sim import SimHost
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import read_records
from schedlab.workload.find import load_workload

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "agreement.md"
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
COSTS = {"call_ns": 12_000, "start_ns": 3_000, "wakeup_ns": 9_000}
#: A process of the guest exists, asleep, before it arrives.
ARRIVALS = ("--arrivals", "wake")


@dataclass
class Row:
    """One policy: a line of the table.

    Attributes
    ----------
    policy : str
        Name or path.
    free, charged : Pair or None
        With a simulator that charges nothing, and with `COSTS`: over all seeds.
    nr_like : int
        If `charged` is beyond the bounds: how many of `NR_VARIATIONS` are not.
    error : str or None
        What kept the hosts from being compared.
    """

    policy: str
    free: Pair | None = None
    charged: Pair | None = None
    nr_like: int = 0
    error: str | None = None


def run(session, host: str, folder: Path, policy: str, seed: int, options=()):
    """Run the program in `folder` once; its records.

    Parameters
    ----------
    session : HostSession
        Where.
    host : str
        Its name, for messages and files.
    folder : pathlib.Path
        Holds `program`.
    policy : str
        Name or path.
    seed : int
        Of the policy's random numbers.
    options : sequence of tuple of (str, str)
        Of the simulator.

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
    job = Job(label=policy, policy=built, program=folder / "program", records=folder / f"{host}.slr",
              nr_cpus=1, seed=seed, tick_ns=TICK_NS, options=tuple(options))  # fmt: skip
    outcome = session.run(job)
    if outcome.error:
        raise RuntimeError(f"{host}: {outcome.error}")
    return read_records(job.records)


def compare(workload: str, policy: str, seeds) -> Row:
    """Compare guest and simulator on one workload under one policy.

    Parameters
    ----------
    workload, policy : str
        Names or paths.
    seeds : sequence of int
        Of the program, and of the policy.

    Returns
    -------
    Row
        How far they agree.
    """
    row = Row(policy)
    with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as name:
        folders = {seed: Path(name) / str(seed) for seed in seeds}
        programs = {seed: compile_workload(load_workload(workload), seed=seed) for seed in seeds}
        guest, sim = (host.session(timeout_seconds=TIMEOUT_SECONDS) for host in (GuestHost(), SimHost()))

        def hold(costs: dict[str, int], seed_more: int = 0) -> Pair:
            options = [ARRIVALS, *(("--cost", f"{cost}={ns}") for cost, ns in costs.items())]
            pairs = []
            for seed in seeds:
                pair = Pair(workload, policy)
                simulated = run(sim, "sim", folders[seed], policy, seed + seed_more, options)
                measure(pair, programs[seed], (real[seed], simulated), TICK_NS)
                pairs.append(pair)
            return over_seeds(pairs)

        try:
            for seed, folder in folders.items():
                folder.mkdir()
                (folder / "program").write_bytes(bytes(programs[seed].data))
            real = {seed: run(guest, "guest", folders[seed], policy, seed) for seed in seeds}
            row.free, row.charged = hold({}), hold(COSTS)
            if row.charged.beyond:
                row.nr_like = sum(not hold(costs, len(seeds) * seed).beyond
                                  for seed, costs in variations(COSTS, 0))  # fmt: skip
        except RuntimeError as error:
            row.error = str(error)
        finally:
            guest.close()
            sim.close()
    return row


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


def line(row: Row) -> str:
    """Write one line of the table."""
    if row.error:
        return f"| {row.policy} | {row.error.splitlines()[0]} | | | | | failed | failed |"
    free, charged = row.free, row.charged

    def three(name: str, scale: float) -> str:
        values = (*free.numbers[name], charged.numbers[name][1])
        return " / ".join(f"{(value or 0) / scale:.3g}" for value in values)

    cells = [three("switches", 1), *(three(name, 1e6) for name in
                                     ("response_ns_mean", "response_ns_p99", "wakeup_ns_p99"))]  # fmt: skip
    verdicts = [", ".join(pair.beyond) or "ok" for pair in (free, charged)]
    if row.nr_like:
        verdicts[1] = f"~ ({row.nr_like} of {NR_VARIATIONS}): {verdicts[1]}"
    return f"| {row.policy} | {charged.share_points:.2f} | {' | '.join(cells)} | {' | '.join(verdicts)} |"


def table(lines: list[str], nr_seeds: int) -> str:
    """Write lines of `line` as Markdown, with a sentence of counts."""
    verdicts = [[cell.strip() for cell in each.split("|")[-3:-1]] for each in lines]
    nr_free, nr_charged = (sum(verdict[i] == "ok" for verdict in verdicts) for i in (0, 1))
    nr_like = sum(verdict[1].startswith("~") for verdict in verdicts)
    costs = " ".join(f"{name}={ns}" for name, ns in COSTS.items())
    head = ("| policy | largest difference of a share (points) | switches | response mean | response p99 "
            "| wake-up p99 | without costs | with costs |")  # fmt: skip
    return "\n".join([
        f"{nr_free} of {len(lines)} policies are within all bounds where the simulator charges nothing, "
        f"{nr_charged} where it charges `{costs}`; in {nr_like} more microseconds decide (`~`: so many of "
        f"{NR_VARIATIONS} simulations with somewhat different costs and seeds are within all bounds), and "
        f"{len(lines) - nr_charged - nr_like} are left. Means over {nr_seeds} seeds: kernel / simulator / "
        "simulator with costs; times in ms.",
        "", head, "|" + "---|" * 8, *lines,
    ])  # fmt: skip


def write(lines: list[str], nr_seeds: int) -> None:
    """Put lines into docs/agreement.md; policies that were not compared now keep theirs."""
    text = DOCUMENT.read_text(encoding="utf-8")
    old = text[text.index(BEGIN) : text.index(END)]
    by_policy = {each.split("|")[1].strip(): each for each in [*re.findall(r"^\| .*\|$", old, re.MULTILINE)[1:], *lines]}
    block = f"{BEGIN}\nMeasured on {datetime.now(UTC):%Y-%m-%d}. {table(list(by_policy.values()), nr_seeds)}\n"
    DOCUMENT.write_text(text.replace(old, block), encoding="utf-8")


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
    parser.add_argument("--write", action="store_true", help="put the rows into the table of docs/agreement.md")
    options = parser.parse_args(words)
    policies, seeds = options.policies.split(","), range(1, options.seeds + 1)
    rows = []
    with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder, mock.patch.object(
        # A copy: this takes minutes, and a build may go on beside it.
        paths, "simulator", _copy(paths.simulator(), folder)
    ), ThreadPoolExecutor(2) as pool:
        for row in pool.map(lambda policy: compare(options.workload, policy, seeds), policies):
            rows.append(row)
            print(line(row), flush=True)
    if options.write:
        write([line(row) for row in rows], len(seeds))
    return 0 if all(row.charged and (not row.charged.beyond or row.nr_like) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
