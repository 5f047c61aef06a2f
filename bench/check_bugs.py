# SPDX-License-Identifier: MIT
"""In how many worlds `schedlab check` finds each bug of tests/check/bugs/, and how small it makes the first.

    .venv/bin/python bench/check_bugs.py [--docs] [NAME ...]
    .venv/bin/python bench/check_bugs.py [--docs] --on-linux NAME ...

`--docs` writes the table into docs/check.md, or the rows of the bugs that are named, beside the others. Worlds and
sizes are the same on each machine, times are not. One process searches. `--on-linux` makes another table: what a real
kernel does with the smallest world of each bug that is named; of those whose CPUs interleave a third one.
"""

from __future__ import annotations

import argparse
import json
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
from schedlab.check.search import BATCH_WORLDS, Task, do_batch, smallest_first  # noqa: E402
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


def row_of(path: Path) -> str:
    """A line of the table: of the batch in which a policy fails as it says it does."""
    wanted = broken_by(path)
    built = build_policy(load_policy(str(path)))
    task = Task(
        built, frozenset(PROPERTIES) - {"worse"}, seed=SEED, also_held=frozenset({wanted}),
        races="@interleaved" in path.read_text(),
    )  # fmt: skip
    begun = time.monotonic()
    for number in range(NR_BATCHES):
        batch = do_batch(task, number)
        if batch.error:
            raise SystemExit(f"error: {path}: {batch.error}")
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
    world, finding = smallest_first(failed)[0]
    with task.laboratory() as laboratory:
        small = shrink(laboratory, world, finding, slice_ns=slice_of(built.policy, built.values))
    return row + f"| {world.size} | {small.world.size} | {small.n_trials} | {small.seconds:.1f} |\n"


def summary_of(rows: list[str]) -> str:
    """What the rows of bugs say together."""
    cells = [[cell.strip() for cell in row.split("|")] for row in rows if "| nothing |" not in row]
    times = [(float(cell[4]), float(cell[8])) for cell in cells if cell[8]]
    found = [sum(searched <= limit for searched, _ in times) for limit in (60, 600)]
    return (
        f"Of {len(cells)} bugs, {found[0]} are found within 60 s and {found[1]} within 10 minutes; "
        f"shrinking takes {statistics.median(shrinking for _, shrinking in times):.1f} s (median).\n"
    )


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


def rows_in_docs(table: str) -> dict[str, str]:
    """The rows of a table of docs/check.md, by policy."""
    page = DOCS.read_text(encoding="utf-8")
    inside = page.partition(f"<!-- {table} -->")[2].partition(f"<!-- end of {table} -->")[0]
    return {found[1]: f"{found[0]}\n" for found in re.finditer(r"^\| `(\w+)` \|.*\|$", inside, re.MULTILINE)}


def write_into_docs(name: str, how: str, table: str) -> None:
    """Replace a table of docs/check.md."""
    write_between(name, f"On {datetime.now(UTC):%Y-%m-%d}, {how}:\n\n{table.rstrip()}", DOCS)


def write_linux_tables(names: list[str], has_docs: bool) -> None:
    """Print the rows of these bugs in the guest, and put them among those of the page where that is asked for."""
    head = "| policy | property | on Linux |\n|---|---|---|\n"
    for table, with_delays in (("linux table", False), ("delays table", True)):
        rows = {each: linux_row_of(each) for each in names if is_interleaved(each) is with_delays}
        print(head + "".join(rows.values()))
        if has_docs and rows:
            merged = rows_in_docs(table) | rows
            write_into_docs(table, f"seed {SEED}, in the guest", head + "".join(merged.values()))


def main() -> None:
    """Print the table, and write it into the page where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="write it into docs/check.md")
    parser.add_argument("--on-linux", action="store_true", help="run the findings of these bugs in the guest")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a bug, such as lost_claim; default: all")
    given = parser.parse_args()
    if given.on_linux:
        if not given.names:
            parser.error("--on-linux: name the bugs whose findings are to run in the guest")
        write_linux_tables(given.names, given.docs)
        return
    paths = sorted((ROOT / "tests" / "check" / "bugs").glob("*.bpf.c"))
    every = [path.name.removesuffix(".bpf.c") for path in paths]
    if unknown := {*given.names} - {*every}:
        parser.error(f"no such bug: {', '.join(sorted(unknown))}")
    rows = rows_in_docs("bugs table") if given.names else {}
    print(HEAD, end="")
    for name, path in zip(every, paths, strict=True):
        if not given.names or name in given.names:
            rows[name] = row_of(path)
            print(rows[name], end="", flush=True)
    ordered = [rows[name] for name in every if name in rows]
    print(summary_of(ordered))
    if given.docs:
        write_into_docs(
            "bugs table", f"seed {SEED}, one process", HEAD + "".join(ordered) + "\n" + summary_of(ordered)
        )


if __name__ == "__main__":
    main()
