# SPDX-License-Identifier: MIT
"""In how many worlds `schedlab check` finds each bug of tests/check/bugs/, and how small it makes the first.

    .venv/bin/python bench/check_bugs.py [--docs] [--on-linux NAME ...]

`--docs` writes the table into docs/check.md. Worlds and sizes are the same on each machine,
times are not. One process searches. `--on-linux` makes another table: what a real kernel does with
the smallest world of each bug that is named; of those whose CPUs interleave a third one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python")]

from documents import write_between  # noqa: E402
from schedlab.check.search import BATCH_WORLDS, Task, do_batch  # noqa: E402
from schedlab.check.shrink import shrink  # noqa: E402
from schedlab.check.trial import PROPERTIES  # noqa: E402
from schedlab.check.world import slice_of  # noqa: E402
from schedlab.policy.build import build_policy  # noqa: E402
from schedlab.policy.find import load_policy  # noqa: E402

DOCS = ROOT / "docs" / "check.md"
SEED = 1
NR_BATCHES = 20
HEAD = (
    "| policy | property | fails in worlds | search, s | size, first | size, smallest | trials | shrinking, s |\n"
    "|---|---|---|---|---|---|---|---|\n"
)


def broken_by(path: Path) -> str:
    """The property that a policy says it breaks."""
    return re.search(r"@breaks ([\w-]+)", path.read_text())[1]


def row_of(path: Path) -> tuple[str, float, float]:
    """A line of the table, and seconds of search (infinite: not found) and shrinking.

    The line tells of the batch in which a policy fails as it says it does.
    """
    wanted = broken_by(path)
    built = build_policy(load_policy(str(path)))
    task = Task(
        built, frozenset(PROPERTIES) - {"worse"}, seed=SEED, also_held=frozenset({wanted}),
        races="@interleaved" in path.read_text(),
    )  # fmt: skip
    begun = time.monotonic()
    for number in range(NR_BATCHES):
        batch = do_batch(task, number)
        failed = [each for each in batch.failed if each[1].broken == wanted]
        if failed:
            break
    searched = time.monotonic() - begun
    row = (
        f"| `{path.name.removesuffix('.bpf.c')}` | {wanted} "
        f"| {len(failed)} of {(number + 1) * BATCH_WORLDS} | {searched:.1f} "
    )
    if not failed:
        return row + "| | | | |\n", math.inf, math.inf
    world, finding = failed[0]
    with task.laboratory() as laboratory:
        small = shrink(laboratory, world, finding, slice_ns=slice_of(built.policy, built.values))
    row += f"| {world.size} | {small.world.size} | {small.n_trials} | {small.seconds:.1f} |\n"
    return row, searched, small.seconds


def is_interleaved(name: str) -> bool:
    """Whether a bug shows only where CPUs interleave."""
    return "@interleaved" in path_of(name).read_text()


def path_of(name: str) -> Path:
    """A policy of tests/check, or of its folder bugs."""
    return next((ROOT / "tests" / "check").rglob(f"{name}.bpf.c"))


def linux_row_of(name: str) -> str:
    """A line of the other table: what Linux makes of the smallest world."""
    path = path_of(name)
    wanted = broken_by(path)
    with tempfile.TemporaryDirectory(prefix="schedlab-bugs-") as folder:
        words = ["--property", wanted, "--worlds", str(NR_BATCHES * BATCH_WORLDS), "--on-linux", "--json"]
        words += ["--races"] if is_interleaved(name) else []
        done = subprocess.run(
            [sys.executable, "-m", "schedlab", "check", path, *words, "--out", folder],
            capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        )  # fmt: skip
    if done.returncode != 1:
        return f"| `{name}` | {wanted} | {(done.stderr or 'not found').splitlines()[-1]} |\n"
    (found,) = json.loads(done.stdout)["found"]
    said = textwrap.shorten(
        found["on_linux"].replace("|", "/"), 400 if is_interleaved(name) else 200, placeholder=" ..."
    )
    return f"| `{name}` | {wanted} | {said} |\n"


def write_into_docs(name: str, how: str, table: str) -> None:
    """Replace a table of docs/check.md."""
    write_between(name, f"On {datetime.now(UTC):%Y-%m-%d}, {how}:\n\n{table.rstrip()}", DOCS)


def main() -> None:
    """Print the table, and write it into the page where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="write it into docs/check.md")
    parser.add_argument("--on-linux", nargs="+", metavar="NAME", help="run these bugs' findings in the guest")
    given = parser.parse_args()
    if given.on_linux:
        head = "| policy | property | on Linux |\n|---|---|---|\n"
        for name, with_delays in (("linux table", False), ("delays table", True)):
            rows = [linux_row_of(each) for each in given.on_linux if is_interleaved(each) is with_delays]
            print(head + "".join(rows))
            if given.docs and rows:
                write_into_docs(name, f"seed {SEED}, in the guest", head + "".join(rows))
        return
    table, times = HEAD, []
    print(HEAD, end="")
    for path in sorted((ROOT / "tests" / "check" / "bugs").glob("*.bpf.c")):
        row, searched, shrinking = row_of(path)
        if not path.name.startswith("none."):
            times.append((searched, shrinking))
        table += row
        print(row, end="", flush=True)
    found = [sum(searched <= limit for searched, _ in times) for limit in (60, 600)]
    median = statistics.median(shrinking for _, shrinking in times)
    table += (
        f"\nOf {len(times)} bugs, {found[0]} are found within 60 s and {found[1]} within 10 minutes; "
        f"shrinking takes {median:.1f} s (median).\n"
    )
    print(table.splitlines()[-1])
    if given.docs:
        write_into_docs("bugs table", f"seed {SEED}, one process", table)


if __name__ == "__main__":
    main()
