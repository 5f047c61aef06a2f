# SPDX-License-Identifier: MIT
"""Hold several CPUs of the simulator against Linux; `.venv/bin/python bench/agreement_linux.py`.

    agreement_linux.py [--cpus N] [--workloads W...] [--classes C...] [--seeds N] [--first] [--write]

QEMU runs a guest's CPUs one after the other, so it cannot say what two do at once; this
machine can. Plays each workload under Linux's own classes in real time, and in the
simulator under the policies that stand for them, and compares the means over seeds.
With `--write` the table in docs/agreement.md is replaced; `--first` shows instead, for
seed 1, the first decision that differs.

A run that is void, or in which others had too much of the CPUs while a task waited
(LOST_MAX), says so and is done again, TRIES times; then its row has no numbers. So the
machine must have nothing else to do. It takes root: records of Linux do.

Read next: agreement_bounds.py, what agreement is; docs/agreement.md; docs/linux.md.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

from agreement_bounds import Pair, first_difference, measure, over_seeds, write_table
from schedlab.metrics.disturbance import disturbance
from schedlab.metrics.timeline import Timeline
from schedlab.program.compiler import compile_workload
from schedlab.records.file import read_records
from schedlab.runs.plan import make_plan
from schedlab.runs.run import run_plan
from schedlab.workload.find import load_workload

ROOT = Path(__file__).resolve().parent.parent
#: Where `smp` is. Its tasks have no attributes: Linux's real-time classes give all one
#: priority. Where they may run on one CPU only, queues per CPU, as Linux has them, and one
#: for all, as policies of real-time classes have here, are the same; `free=1` shows the rest.
WORKLOADS_FOLDER = ROOT / "tests" / "linux" / "agreement"
WORKLOADS = ("smp", "smp:free=1")
#: Linux's class, the policy that stands for it, and its knobs. Since 6.6 SCHED_OTHER is EEVDF.
CLASSES = {"SCHED_FIFO:10": ("rt_fifo", ()), "SCHED_RR:10": ("rt_rr", ()), "SCHED_OTHER:0": ("eevdf", ())}
#: Of the CPU time that tasks ask for; more is disturbed.
LOST_MAX = 0.01
TRIES = 5
TIMEOUT_SECONDS = 120.0


def played(out: Path, workload: str, policy: str, seed: int, **options):
    """Run a workload once, in an empty folder: what happened, or why there is nothing to compare.

    `options` are those of `Plan`: host, CPUs, knobs.
    """
    plan = make_plan(
        workloads=[workload],
        policies=[policy],
        out=out,
        first_seed=seed,
        keep_parquet=False,
        timeout=TIMEOUT_SECONDS,
        **options,
    )
    (run,) = run_plan(plan).runs
    if run["status"] != "ok":
        return None, run["error"]
    if run.get("no_records"):
        return None, f"no records: {run['no_records']}"
    return read_records(Path(run["directory"]) / "records.slr"), None


def undisturbed(workload: str, linux_class: str, seed: int, n_cpus: int, play=played):
    """Run a workload on Linux until nothing else has had its CPUs: the records, and why other tries do not count.

    None: none of TRIES was undisturbed.
    """
    skipped = []
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder:
            records, why = play(Path(folder) / "out", workload, linux_class, seed, host="linux", cpus=n_cpus)
        if why is None:
            found = disturbance(Timeline(records))
            if found["share"] <= LOST_MAX:
                return records, skipped
            why = f"disturbed: others had {found['lost_ns'] / 1e6:.1f} ms ({found['share']:.1%}) while a task waited"
        skipped.append(why)
        print(f"  skipped: {workload}, {linux_class}, seed {seed}: {why.splitlines()[0]}", flush=True)
    return None, skipped


def path_of(workload: str) -> str:
    """Find a workload; names of WORKLOADS_FOLDER come first."""
    name, colon, settings = workload.partition(":")
    own = WORKLOADS_FOLDER / f"{name}.toml"
    return f"{own}{colon}{settings}" if own.exists() else workload


def on_both(pair: Pair, seed: int, n_cpus: int, play=played) -> tuple[tuple, int]:
    """Run a workload on Linux and in the simulator: the records of both, and how many runs were skipped.

    An error is noted in `pair`.
    """
    path = path_of(pair.workload)
    policy, settings = CLASSES[pair.policy]
    real, skipped = undisturbed(path, pair.policy, seed, n_cpus, play)
    if real is None:
        pair.error = f"seed {seed}: {len(skipped)} runs, none undisturbed: {skipped[-1].splitlines()[0]}"
        return (), len(skipped)
    with tempfile.TemporaryDirectory(prefix="schedlab-agreement-") as folder:
        simulated, pair.error = play(
            Path(folder) / "out", path, policy, seed, cpus=n_cpus, tick_ns=real.tick_ns, settings=settings
        )
    return (real, simulated), len(skipped)


def compare(workload: str, linux_class: str, seeds, n_cpus: int, play=played) -> tuple[Pair, int]:
    """Compare Linux and simulator on one workload under one of CLASSES.

    How far they agree in means over seeds, and how many runs were skipped.
    """
    pairs, n_skipped = [], 0
    for seed in seeds:
        pair = Pair(workload, linux_class)
        both, nr = on_both(pair, seed, n_cpus, play)
        n_skipped += nr
        if pair.error:
            return pair, n_skipped
        measure(pair, program_of(workload, seed), both, both[0].tick_ns)
        pairs.append(pair)
    return over_seeds(pairs, both[0].tick_ns), n_skipped


def program_of(workload: str, seed: int):
    """What is played."""
    return compile_workload(load_workload(path_of(workload)), seed=seed)


def line(pair: Pair, n_skipped: int) -> str:
    """Write one line of the table."""
    begin = f"| {pair.workload} | {pair.policy.split(':')[0]} | {n_skipped} |"
    if pair.error:
        return f"{begin} | | | | {pair.error.splitlines()[0]} |"

    def both(name: str, scale: float) -> str:
        return " / ".join(f"{value / scale:.3g}" for value in pair.numbers[name])

    p99 = "; ".join(both(name, 1e6) for name in ("response_ns_p99", "wakeup_ns_p99"))
    return (
        f"{begin} {pair.share_points:.1f} | {both('switches', 1)} | {both('response_ns_mean', 1e6)} | {p99} | "
        f"{', '.join(pair.beyond) or 'ok'} |"
    )


def main(words: list[str]) -> int:
    """Compare what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--workloads", nargs="+", metavar="W", default=WORKLOADS)
    parser.add_argument("--classes", nargs="+", metavar="C", default=list(CLASSES), choices=list(CLASSES))
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 1 on")
    parser.add_argument(
        "--first", action="store_true", help="show the first decision that differs, of each run"
    )
    parser.add_argument("--write", action="store_true", help="replace the table in docs/agreement.md")
    options = parser.parse_args(words)
    if options.first:
        for workload, linux_class in itertools.product(options.workloads, options.classes):
            pair = Pair(workload, linux_class)
            both, _ = on_both(pair, 1, options.cpus)
            lines = [pair.error] if pair.error else first_difference(both, program_of(workload, 1))
            print("\n".join([f"{workload} under {linux_class}:", *lines]), flush=True)
        return 0
    rows = []
    for workload, linux_class in itertools.product(options.workloads, options.classes):
        rows.append(compare(workload, linux_class, range(1, options.seeds + 1), options.cpus))
        print(line(*rows[-1]), flush=True)
    n_ok = sum(not pair.error and not pair.beyond for pair, _ in rows)
    text = "\n".join(
        [
            f"{n_ok} of {len(rows)} are within all bounds. {options.cpus} CPUs, means over {options.seeds} seeds; "
            "Linux / simulator, times in ms:",
            "",
            "| workload | class | runs skipped | largest difference of a share (points) | switches | response, mean "
            "| p99 of response; of wake-up | verdict |",
            "|---" * 8 + "|",
            *(line(*row) for row in rows),
        ]
    )
    if options.write:
        write_table("several CPUs table", text)
    return 0 if n_ok == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
