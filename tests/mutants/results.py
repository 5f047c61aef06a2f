# SPDX-License-Identifier: MIT
"""What became of mutants: kept from run to run, and written down for readers.

A mutant is named by its lines, as they are and as they are changed, so that it stays
the same when lines are added above it. A killed one stays killed while its file is
unchanged; one that survived is tried again when a test has changed. So what is known
of the sources as they are grows with every seed.

Read next: test_mutants.py.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

KILLED = ("failed", "slow")
GOLDEN_RUNS = "tests/policies/test_golden_runs.py"


@dataclass(frozen=True)
class Result:
    """A mutant and what became of it; `result` as in `scratch.Outcome`, or `"equivalent"`."""

    area: str
    file: str
    line: int
    old: str
    new: str
    result: str
    killer: str = ""


def digest(*paths: Path) -> str:
    """A hash of files."""
    found = hashlib.sha256()
    for path in paths:
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def explained(root: Path, kind: str = "mutant") -> dict[tuple[str, str, str], str]:
    """Why mutants of equivalent.toml cannot be seen, or survive (kind `"survivor"`), by file and lines."""
    listed = tomllib.loads((root / "tests/mutants/equivalent.toml").read_text())[kind]
    return {(one["file"], one["old"], one["new"]): one["why"] for one in listed}


class Memory:
    """Results of earlier runs, one line of JSON each; a run that is killed loses none."""

    def __init__(self, root: Path):
        self._root = root
        self._path = root / ".cache" / "mutants.jsonl"
        self._path.parent.mkdir(exist_ok=True)
        tests = (
            path
            for path in sorted((root / "tests").rglob("*"))
            if path.suffix in (".py", ".c", ".h", ".toml")
        )
        self._tests = digest(*(path for path in tests if path.parent.name != "mutants"))
        self._known, self._digests = {}, {}
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                kept = json.loads(line)
                self._known[kept["key"]] = kept

    def _key(self, file: str, new: str, place: int) -> str:
        if file not in self._digests:
            self._digests[file] = digest(self._root / file)
        return f"{file} {self._digests[file]} {place} {new}"

    def find(self, file: str, new: str, place: int) -> Result | None:
        """What is known of a mutant, by its file, changed line and offset."""
        kept = self._known.get(self._key(file, new, place))
        if kept is None or (kept["result"]["result"] not in KILLED and kept["tests"] != self._tests):
            return None
        return Result(**kept["result"])

    def keep(self, result: Result, place: int) -> None:
        """Write a result down."""
        kept = {
            "key": self._key(result.file, result.new, place),
            "tests": self._tests,
            "result": asdict(result),
        }
        self._known[kept["key"]] = kept
        with open(self._path, "a") as file:
            file.write(json.dumps(kept) + "\n")


def _row(*cells: object) -> str:
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |\n"


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def page(
    results: list[Result],
    n_named: int,
    *,
    totals: dict[str, int],
    n_remembered: int,
    why: dict,
    made: str,
    command: str,
) -> str:
    """The text of docs/mutants.md; `totals` is how many mutants each area has in all."""
    areas = {result.area: [r for r in results if r.area == result.area] for result in results}
    parts = (
        f"in parts: what {n_remembered} of them came to is from runs before, since which their files have not changed.\n\n"
        if n_remembered
        else ""
    )
    lines = [
        "# Mutants\n\n"
        "A mutant is a source with one small error put in on purpose: a comparison, a condition, a constant, a sign or a\n"
        "statement is changed. A test suite that passes with it has not looked there. Each mutant below was drawn at random\n"
        f"from all that the operators of `tests/mutants/` make of an area's sources. Made {made} by\n\n"
        f"    {command}\n\n{parts}"
        f"All {n_named} mutants of `tests/mutants/named.toml`, which once survived, are killed.\n\n"
        "An equivalent mutant changes nothing that a caller, a user or a record can see; it counts neither as killed nor as\n"
        "survived.\n\n"
        f"Killed by digests alone are those that only `{GOLDEN_RUNS}` notices: it says that the\n"
        "events of a mixed load have changed, not which are right.\n\n"
        "| area | all | tried | killed | by digests alone | never ended | equivalent | survived | killed, of those not equivalent |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    ]
    for name, found in areas.items():
        counts = {
            kind: sum(r.result == kind for r in found) for kind in ("failed", "slow", "equivalent", "passed")
        }
        killed = counts["failed"] + counts["slow"]
        share = f"{100 * killed / max(1, killed + counts['passed']):.0f} %"
        by_digest = sum(r.result == "failed" and r.killer.startswith(GOLDEN_RUNS) for r in found)
        kinds = (killed, by_digest, counts["slow"], counts["equivalent"], counts["passed"])
        lines.append(_row(name, totals[name], len(found), *kinds, share))
    survived = [r for r in results if r.result == "passed"]
    lines.append("\n## Survived\n\n")
    lines.append("| where | line | changed to | why |\n|---|---|---|---|\n" if survived else "None.\n")
    lines += [
        _row(f"`{r.file}:{r.line}`", _code(r.old), _code(r.new), why.get((r.file, r.old, r.new), ""))
        for r in survived
    ]
    equivalent = [r for r in results if r.result == "equivalent"]
    lines.append("\n## Equivalent\n\n")
    lines.append(
        "| where | line | changed to | why no test can see it |\n|---|---|---|---|\n"
        if equivalent
        else "None.\n"
    )
    lines += [
        _row(f"`{r.file}:{r.line}`", _code(r.old), _code(r.new), why[r.file, r.old, r.new])
        for r in equivalent
    ]
    return "".join(lines)
