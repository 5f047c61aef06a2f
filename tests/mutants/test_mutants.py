# SPDX-License-Identifier: MIT
"""Mutants: small wrong changes of the sources, each of which some test must notice.

`./lab soak mutants` tries, in copies of the checkout, all mutants of named.toml and so
many generated ones per area as SCHEDLAB_MUTANTS says, drawn by SCHEDLAB_SEED, and
writes docs/mutants.md. SCHEDLAB_MUTANTS_JOBS says how many are tried at a time. A run
that was stopped continues where it was. SCHEDLAB_MUTANTS_AREA tries one area and
writes nothing.
"""

from __future__ import annotations

import datetime
import os
import queue
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor

import pytest

from mutants.areas import AREAS
from mutants.operators import Mutant, changed_lines, mutants_of, mutants_of_c, mutants_of_python
from mutants.results import KILLED, Memory, Result, explained, page
from mutants.scratch import Scratch

KILLED_MIN = 0.9


def named(root) -> list[dict]:
    """The mutants of named.toml."""
    return tomllib.loads((root / "tests/mutants/named.toml").read_text())["mutant"]


def test_an_operator_changes_one_thing():
    text = (
        'int f(int a)\n{\n\t/* a < 1 */\n\tif (a < 1 && a)\n\t\treturn a + 2;\n\tg(a);\n\treturn "<"[0];\n}\n'
    )
    changed = {mutant.applied(text) for mutant in mutants_of_c("f.c", text)}
    for new in (
        "a <= 1 && a",
        "a < 2 && a",
        "a < 1 || a",
        "!(a < 1 && a)",
        "return a - 2",
        "return a + 3",
        "\n\t;\n",
    ):
        assert sum(new in other for other in changed) == 1, new
    assert all("/* a < 1 */" in other and '"<"' in other for other in changed)
    text = (
        'def f(a: int = 1):\n    """A < b."""\n    if a < 1 and not a:\n        g(a)\n    return a[1] + 1\n'
    )
    changed = {mutant.applied(text) for mutant in mutants_of_python("f.py", text)}
    for new in (
        "a <= 1 and",
        "a < 1 or",
        "and a:",
        "a < 2 and",
        "pass",
        "a[2] + 1",
        "a[1] - 1",
        "a[1] + 2",
        "(not (a",
    ):
        assert sum(new in other for other in changed) == 1, new
    for other in changed:
        compile(other, "f.py", "exec")


@pytest.mark.full
def test_named_mutants_are_of_these_sources(root):
    """Where a source has changed, the mutant changes with it: what it is about stays."""
    for mutant in named(root):
        found = (root / mutant["file"]).read_text().count(mutant["old"])
        assert found == 1, (
            f"tests/mutants/named.toml, '{mutant['about']}': {mutant['file']} has its text {found} times"
        )


@pytest.mark.full
def test_equivalent_mutants_are_of_these_sources(root):
    """A line that has changed may be looked at by a test now."""
    made = {}
    for file, old, new in explained(root) | explained(root, "survivor"):
        if file not in made:
            text = (root / file).read_text()
            made[file] = {changed_lines(mutant, text) for mutant in mutants_of(root, file)}
        assert (old, new) in made[file], (
            f"tests/mutants/equivalent.toml: {file} has no mutant {old!r} -> {new!r}"
        )


def candidates(root, number: int, seed: int, area: str | None):
    """What is tried: area, changed lines, mutant, calls of pytest and the mutant's text of its file."""
    if area is None:
        for one in named(root):
            text = (root / one["file"]).read_text()
            start = text.index(one["old"])
            mutant = Mutant(one["file"], start, start + len(one["old"]), one["new"], "named", 0, one["old"])
            yield "named", (one["about"], one["new"]), mutant, [one["tests"]], mutant.applied(text)
    for name, sources in AREAS.items():
        for mutant in sources.draw(root, number, seed) if area in (None, name) else ():
            text = (root / mutant.file).read_text()
            yield name, changed_lines(mutant, text), mutant, sources.calls(mutant.file), mutant.applied(text)


@pytest.mark.nightly
def test_mutants_are_killed(root, tmp_path):
    seed, number = int(os.environ.get("SCHEDLAB_SEED", 1)), int(os.environ.get("SCHEDLAB_MUTANTS", 40))
    jobs, area = int(os.environ.get("SCHEDLAB_MUTANTS_JOBS", 1)), os.environ.get("SCHEDLAB_MUTANTS_AREA")
    why, memory = explained(root), Memory(root)
    scratches, sound = queue.SimpleQueue(), {}
    for job in range(jobs):
        scratches.put(Scratch(root, tmp_path / f"copy-{job}", sound))
    every = list(candidates(root, number, seed, area))
    done, remembered = [], []

    def attempt(
        name: str, lines: tuple[str, str], mutant: Mutant, calls: list[list[str]], text: str
    ) -> Result:
        found = memory.find(mutant.file, lines[1], mutant.start)
        if (mutant.file, *lines) in why:
            found = Result(name, mutant.file, mutant.line, *lines, "equivalent")
        elif found is not None:
            remembered.append(found)
        else:
            scratch = scratches.get()
            try:
                outcome = scratch.attempt(mutant.file, text, calls)
            finally:
                scratches.put(scratch)
            found = Result(name, mutant.file, mutant.line, *lines, outcome.result, outcome.killer)
            memory.keep(found, mutant.start)
        done.append(found)
        line = f"{len(done)}/{len(every)} {name} {found.result}: {found.file}:{found.line} {found.old} -> {found.new}"
        print(line, f"({found.killer})", file=sys.stderr, flush=True)
        return found

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda one: attempt(*one), every))
    # What the compiler refuses is no mutant.
    results = [result for result in results if result.result != "unbuilt"]
    generated = [result for result in results if result.area != "named"]
    if area is None:
        describe = ["git", "describe", "--always", "--dirty"]
        commit = subprocess.run(describe, cwd=root, check=True, capture_output=True, text=True).stdout.strip()
        made = f"on {datetime.datetime.now(datetime.UTC):%Y-%m-%d} at {commit}"
        command = f"SCHEDLAB_SEED={seed} SCHEDLAB_MUTANTS={number} ./lab soak mutants"
        totals = {name: len(sources.every(root)) for name, sources in AREAS.items()}
        text = page(
            generated,
            len(results) - len(generated),
            totals=totals,
            n_remembered=len(remembered),
            why=why | explained(root, "survivor"),
            made=made,
            command=command,
        )
        (root / "docs/mutants.md").write_text(text)
    survivors = [
        f"{r.file}:{r.line}: {r.old} -> {r.new}"
        for r in results
        if r.area == "named" and r.result not in KILLED
    ]
    assert not survivors, "a named mutant survives:\n" + "\n".join(survivors)
    for name in AREAS:
        tried = [result for result in generated if result.area == name and result.result != "equivalent"]
        killed = sum(result.result in KILLED for result in tried)
        assert killed >= KILLED_MIN * len(tried), (
            f"{name}: {killed} of {len(tried)} mutants killed, see docs/mutants.md"
        )
