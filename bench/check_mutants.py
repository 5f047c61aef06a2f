# SPDX-License-Identifier: MIT
"""How many of 200 mutants of schedlab's policies `schedlab check` finds, by kind of change.

    .venv/bin/python bench/check_mutants.py [--docs]

A mutant is a policy with one place changed as a programmer may have mistyped it; which places are taken
is drawn, the same on each machine. It is found where a search of 500 worlds shows what the same
search of the policy itself does not. Where it is not, and 200 worlds leave the very same records
as under the policy, it counts as equivalent. `--docs` writes the table into docs/check.md.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

from check_bugs import write_into_docs  # noqa: E402
from schedlab.check.search import Task, do_batch  # noqa: E402
from schedlab.check.trial import PROPERTIES  # noqa: E402
from schedlab.check.world import draw_world  # noqa: E402
from schedlab.errors import PolicyError, SchedlabError  # noqa: E402
from schedlab.policy.build import build_policy  # noqa: E402
from schedlab.policy.find import load_policy  # noqa: E402

SEED, N_MUTANTS, N_COMPARED = 1, 200, 200
#: Worlds of each batch: a mutant that does not return is found in the first few.
BATCHES = (5, 95, 100, 100, 100, 100)
Hashes = tuple[str | None, ...]
#: Kinds: what is looked for, and what takes its place. An argument has no comma of its own.
RULES = {
    "kick dropped": (r"\b(?:scx_bpf_kick_cpu|kick_idle_cpu)\([^;{]*?\);", "(void)0;"),
    "insertion dropped": (r"\bscx_bpf_dsq_insert(?:_vtime)?\([^;]*?\);", "(void)0;"),
    "queue not looked at": (
        r"\b(?:scx_bpf_dsq_move_to_local|take_and_(?:pass_on|preempt))\([^;{]*?\)(?=[);])",
        "false",
    ),
    "put at the head": (r"(\bscx_bpf_dsq_insert\([^;]*?, )(\w+)\);", r"\1\2 | SCX_ENQ_HEAD);"),
    "order reversed": (r"(\bscx_bpf_dsq_insert_vtime\([^;]*?,\s*)([\w.>-]+)(,\s*\w+\);)", r"\1-(\2)\3"),
    "time as a number": (r"\btime_(before|after)\(([^,()]+), ([^,()]+)\)", None),
    "comparison turned": (r"\btime_(before|after)\b", None),
    "affinity forgotten": (r"!?\bbpf_cpumask_test_cpu\([^;{]*?\)(?=\)| \|\|| &&|;)", None),
    "condition reversed": (r"\bif \(([^\n{]*)\)(?=( \{)?\n)", r"if (!(\1))"),
    "return forgotten": (r"(?<=\t)return;(?=\n(?!\}))", "(void)0;"),
    "update forgotten": (r"(?<=\t)[a-z][\w.>-]* [+-]?= [^;]+;", "(void)0;"),
    "limit dropped": (r"\? ([\w.>-]+) : ([\w.>-]+);", r"? \2 : \2;"),
    "atomic made plain": (r"__sync_fetch_and_(add|sub)\(&([\w.>-]+), ([^;]+)\);", None),
}


@dataclass(frozen=True)
class Mutant:
    """One change: `text` is the whole file with it."""

    policy: str
    kind: str
    line: int
    text: str


def _replacement(kind: str, match: re.Match[str]) -> str:
    """What takes the place of a match."""
    fixed = RULES[kind][1]
    if fixed is not None:
        return match.expand(fixed)
    if kind == "time as a number":
        return f"(({match[2]}) {'<' if match[1] == 'before' else '>'} ({match[3]}))"
    if kind == "comparison turned":
        return "time_after" if match[1] == "before" else "time_before"
    if kind == "affinity forgotten":
        return "false" if match[0].startswith("!") else "true"
    return f"{match[2]} {'+' if match[1] == 'add' else '-'}= {match[3]};"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All changes of a policy, in the order of kinds."""
    text = path.read_text()
    for kind, (pattern, _) in RULES.items():
        for match in re.finditer(pattern, text):
            changed = text[: match.start()] + _replacement(kind, match) + text[match.end() :]
            yield Mutant(path.name, kind, text.count("\n", 0, match.start()) + 1, changed)


def draw_mutants(seed: int = SEED) -> list[Mutant]:
    """As many of each kind as there are, and equally many of those that there are more of."""
    rng = random.Random(seed)
    by_kind: dict[str, list[Mutant]] = {kind: [] for kind in RULES}
    for path in sorted((ROOT / "policies").glob("*.bpf.c")):
        for mutant in mutants_of(path):
            by_kind[mutant.kind].append(mutant)
    for mutants in by_kind.values():
        rng.shuffle(mutants)
    drawn: list[Mutant] = []
    while len(drawn) < N_MUTANTS and any(by_kind.values()):
        drawn += [mutants.pop() for mutants in by_kind.values() if mutants]
    return drawn[:N_MUTANTS]


def shown_by(path: Path, known: frozenset[str] | None, *, races: bool) -> tuple[frozenset[str], Hashes]:
    """Signatures that a search of a policy finds, and hashes of its records in some worlds.

    With `known` it ends as soon as it has found another one.
    """
    task = Task(
        build_policy(load_policy(str(path))), frozenset(PROPERTIES) - {"worse"}, seed=SEED, races=races
    )
    found: set[str] = set()
    with task.laboratory() as laboratory:
        for number, n_worlds in enumerate(BATCHES):
            batch = do_batch(task, number, n_worlds, laboratory=laboratory)
            if batch.error is not None:
                raise SchedlabError(batch.error)
            found |= {finding.signature for _, finding in batch.failed}
            if known is not None and found - known:
                return frozenset(found), ()
        policy, values = task.built.policy, task.built.values
        worlds = [draw_world(random.Random(number), policy, values) for number in range(N_COMPARED)]
        return frozenset(found), tuple(trial.record_hash for trial in laboratory.try_worlds(worlds))


@lru_cache
def own(name: str, *, races: bool) -> tuple[frozenset[str], Hashes]:
    """What the policy itself shows."""
    return shown_by(ROOT / "policies" / name, None, races=races)


def outcome(mutant: Mutant) -> str:
    """`compiler`, a property, `equivalent` or `not found`."""
    races = mutant.kind == "atomic made plain"
    signatures, hashes = own(mutant.policy, races=races)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / mutant.policy
        path.write_text(mutant.text)
        try:
            found, others = shown_by(path, signatures, races=races)
        except PolicyError:
            return "compiler"
    new = sorted(found - signatures)
    if new:
        return new[0].split()[0]
    return "equivalent" if others == hashes else "not found"


def table_of(counts: dict[str, Counter[str]]) -> str:
    """Rows of kinds, then their sum; the share is of mutants that compile and are not equivalent."""
    apart = ("not found", "equivalent", "compiler")
    table = (
        "| change | mutants | found | by | not found | equivalent | does not compile |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    for kind, each in {**counts, "all": sum(counts.values(), Counter())}.items():
        by = {what: n for what, n in sorted(each.items()) if what not in apart}
        words = ", ".join(f"{what} {n}" for what, n in by.items()) or "-"
        table += (
            f"| {kind} | {each.total()} | {sum(by.values())} | {words} "
            f"| {' | '.join(str(each[what]) for what in apart)} |\n"
        )
    share = sum(by.values()) / max(1, sum(by.values()) + each["not found"])
    return table + f"\nOf those that compile and are not equivalent, {share:.0%} are found.\n"


def main() -> None:
    """Print the table, and write it into the page where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="write it into docs/check.md")
    parser.add_argument(
        "--seed", type=int, default=SEED, help="by which mutants are drawn; --docs is for the first"
    )
    given = parser.parse_args()
    if given.docs and given.seed != SEED:
        parser.error(
            f"--seed {given.seed}: the table of docs/check.md is that of seed {SEED}; leave out --docs"
        )
    counts = {kind: Counter() for kind in RULES}
    mutants = draw_mutants(given.seed)
    with ProcessPoolExecutor() as pool:
        for mutant, what in zip(mutants, pool.map(outcome, mutants), strict=True):
            counts[mutant.kind][what] += 1
            print(f"{mutant.kind}: {mutant.policy}:{mutant.line}: {what}", flush=True)
    table = table_of(counts)
    print(table)
    if given.docs:
        write_into_docs("mutants table", f"seed {SEED}", table)


if __name__ == "__main__":
    main()
