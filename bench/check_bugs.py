# SPDX-License-Identifier: MIT
"""In how many worlds `schedlab check` finds each bug of tests/check/bugs/, and how small it makes the first.

    .venv/bin/python bench/check_bugs.py [--docs]

`--docs` writes the table into docs/check.md. Worlds and sizes are the same on each machine,
times are not. One process searches.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python")]

from schedlab.check.search import BATCH_WORLDS, Task, do_batch  # noqa: E402
from schedlab.check.shrink import shrink  # noqa: E402
from schedlab.check.trial import PROPERTIES  # noqa: E402
from schedlab.check.world import slice_of  # noqa: E402
from schedlab.policy.build import build_policy  # noqa: E402
from schedlab.policy.find import load_policy  # noqa: E402

DOCS = ROOT / "docs" / "check.md"
BEGIN, END = "<!-- bench/check_bugs.py -->\n", "<!-- end -->\n"
SEED = 1
NR_BATCHES = 10
HEAD = (
    "| policy | property | fails in worlds | search, s | size, first | size, smallest | trials | shrinking, s |\n"
    "|---|---|---|---|---|---|---|---|\n"
)


def row_of(path: Path) -> str:
    """A line of the table: the batch in which a policy fails as it says it does."""
    wanted = re.search(r"@breaks (\w+)", path.read_text())[1]
    built = build_policy(load_policy(str(path)))
    task = Task(built, frozenset(PROPERTIES) - {"worse"}, seed=SEED, races="@interleaved" in path.read_text())
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
        return row + "| | | | |\n"
    world, finding = failed[0]
    with task.laboratory() as laboratory:
        small = shrink(laboratory, world, finding, slice_ns=slice_of(built.policy, built.values))
    return row + f"| {world.size} | {small.world.size} | {small.n_trials} | {small.seconds:.1f} |\n"


def main() -> None:
    """Print the table, and write it into the page where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="write it into docs/check.md")
    given = parser.parse_args()
    table = HEAD
    print(HEAD, end="")
    for path in sorted((ROOT / "tests" / "check" / "bugs").glob("*.bpf.c")):
        row = row_of(path)
        table += row
        print(row, end="", flush=True)
    if given.docs:
        text = DOCS.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        after = rest.partition(END)[2]
        text = f"{before}{BEGIN}\nOn {datetime.now(UTC):%Y-%m-%d}, seed {SEED}, one process:\n\n{table}\n{END}{after}"
        DOCS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
