# SPDX-License-Identifier: MIT
"""Mutants: small wrong changes of the sources, each of which some test must notice.

`./lab soak mutants` tries, in a copy of the checkout, all mutants of named.toml and as
many generated ones as SCHEDLAB_MUTANTS says, drawn by SCHEDLAB_SEED from metrics,
statistics, core, simulator and policies, and writes docs/mutants.md.
"""

from __future__ import annotations

import datetime
import os
import random
import tomllib

import pytest
from mutants.operators import Mutant, mutants_of, mutants_of_c, mutants_of_python
from mutants.scratch import Scratch, killer_of

KILLED_MIN = 0.9
#: Sources, and the tests that are about them, the quickest first.
GROUPS = {
    "python/schedlab/metrics/*.py": [["tests/python/test_metrics.py", "tests/python/test_physics.py"],
                                     ["tests/python/test_physics_damage.py"]],
    "python/schedlab/stats/*.py": [["tests/python/test_stats.py", "tests/python/test_compare.py",
                                    "tests/python/test_doubts.py"]],
    "core/*.c": [["tests/sim/test_golden.py", "tests/sim/test_conditions.py"],
                 ["tests/core/test_core.py", "-k", "test_unit"],
                 ["tests/conformance/test_conformance.py", "-k", "test_simulator"]],
    "hosts/sim/*.c": [["tests/sim/test_golden.py", "tests/sim/test_conditions.py", "tests/sim/test_arrivals.py"],
                      ["tests/sim/test_faults.py"]],
    "policies/*.c": [["tests/policies", "-k", "{policy}"]],
}  # fmt: skip


def named(root) -> list[dict]:
    """The mutants of named.toml."""
    return tomllib.loads((root / "tests/mutants/named.toml").read_text())["mutant"]


def test_an_operator_changes_one_thing():
    text = "int f(int a)\n{\n\t/* a < 1 */\n\tif (a < 1 && a)\n\t\treturn a + 2;\n\tg(a);\n\treturn \"<\"[0];\n}\n"
    changed = {mutant.applied(text) for mutant in mutants_of_c("f.c", text)}
    for new in ("a <= 1 && a", "a < 2 && a", "a < 1 || a", "!(a < 1 && a)", "return a - 2", "return a + 3", "\n\t;\n"):
        assert sum(new in other for other in changed) == 1, new
    assert all("/* a < 1 */" in other and '"<"' in other for other in changed)
    text = 'def f(a: int = 1):\n    """A < b."""\n    if a < 1 and not a:\n        g(a)\n    return a[1] + 1\n'
    changed = {mutant.applied(text) for mutant in mutants_of_python("f.py", text)}
    for new in ("a <= 1 and", "a < 1 or", "and a:", "a < 2 and", "pass", "a[2] + 1", "a[1] - 1", "a[1] + 2", "(not (a"):
        assert sum(new in other for other in changed) == 1, new
    for other in changed:
        compile(other, "f.py", "exec")


@pytest.mark.full
def test_named_mutants_are_of_these_sources(root):
    """Where a source has changed, the mutant changes with it: what it is about stays."""
    for mutant in named(root):
        found = (root / mutant["file"]).read_text().count(mutant["old"])
        assert found == 1, f"tests/mutants/named.toml, '{mutant['about']}': {mutant['file']} has its text {found} times"


def drawn(root, number: int, seed: int) -> list[tuple[Mutant, list[list[str]]]]:
    """Generated mutants, as many of each group as of any other."""
    rng, found = random.Random(seed), []
    for pattern, tests in GROUPS.items():
        every = [m for path in sorted(root.glob(pattern)) for m in mutants_of(root, str(path.relative_to(root)))]
        for mutant in rng.sample(every, min(len(every), -(-number // len(GROUPS)))):
            policy = mutant.file.split("/")[-1].split(".")[0]
            found.append((mutant, [[word.format(policy=policy) for word in call] for call in tests]))
    return found[:number] if number < len(GROUPS) else found


def row(*cells: str) -> str:
    """A line of a table; what would end a cell is written otherwise."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |\n"


@pytest.mark.nightly
def test_mutants_are_killed(root, tmp_path):
    seed, number = int(os.environ.get("SCHEDLAB_SEED", 1)), int(os.environ.get("SCHEDLAB_MUTANTS", 60))
    scratch = Scratch(root, tmp_path / "copy")
    lines, results = [], []
    for mutant in named(root):
        text = (root / mutant["file"]).read_text()
        sound = scratch.run(mutant["tests"])
        assert sound[0] == "passed", f"fails without a mutant: {sound[1]}"
        result, said = scratch.attempt(mutant["file"], text.replace(mutant["old"], mutant["new"]), [mutant["tests"]])
        results.append(result)
        lines.append(row(mutant["about"], f"`{mutant['file']}`", result, f"`{killer_of(said)}`"))
        print(lines[-1], end="", flush=True)
    assert "passed" not in results, "a named mutant survives:\n" + "".join(lines)
    generated, sound = [], set()
    for mutant, tests in drawn(root, number, seed):
        for call in tests:
            if tuple(call) not in sound:
                assert scratch.run(call)[0] == "passed", f"fails without a mutant: {call}"
                sound.add(tuple(call))
        result, said = scratch.attempt(mutant.file, mutant.applied((root / mutant.file).read_text()), tests)
        generated.append(result)
        change = f"`{mutant.old}` -> `{mutant.new or 'nothing'}`"
        lines.append(row(change, f"`{mutant.file}:{mutant.line}`", result, f"`{killer_of(said)}`"))
        print(lines[-1], end="", flush=True)
    tried = [result for result in generated if result != "unbuilt"]
    killed = sum(result != "passed" for result in tried)
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    (root / "docs/mutants.md").write_text(
        f"# Mutants\n\nMade by `./lab soak mutants` on {date}, seed {seed}: all {len(results)} named mutants are killed, "
        f"and {killed} of {len(tried)} generated ones. A result `slow` is one that never ended; `passed` names a "
        "mutant that no test killed.\n\n| mutant | where | result | killed by |\n|---|---|---|---|\n" + "".join(lines)
    )
    assert killed >= KILLED_MIN * len(tried), f"{killed} of {len(tried)} killed"
