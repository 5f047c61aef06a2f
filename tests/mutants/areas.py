# SPDX-License-Identifier: MIT
"""What is mutated, and which tests look at it: the narrow ones first, then wider ones.

A mutant that a call of pytest kills is not tried further, so the calls stand in the
order of what they cost.

Read next: test_mutants.py.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from mutants.operators import Mutant, changed_lines, mutants_of
from mutants.results import GOLDEN_RUNS

Calls = list[list[str]]
_POLICY_TESTS = ["test_known_answers.py", "test_known_answers_2.py", "test_known_answers_3.py", "test_known_answers_4.py",
                 "test_inversion.py", "test_classics.py"]  # fmt: skip
_SIMULATED = [
    "tests/sim/test_golden.py",
    "tests/sim/test_conditions.py",
    "tests/conformance/test_conformance.py",
    "-k",
    "test_golden or test_conditions or test_simulator",
]
#: Last: what survives all else is killed by a digest alone, and the page counts it.
_GOLDEN_RUNS = [GOLDEN_RUNS]
_DAMAGE = ["tests/python/test_consistency_damage.py", "--suite", "quick"]
_STATS = ["tests/python/test_stats.py"]
_COMPARE = ["python/schedlab/stats", "python/schedlab/runs", "tests/python/test_compare.py"]


@dataclass(frozen=True)
class Area:
    """Sources of one kind."""

    patterns: tuple[str, ...]  #: Its files, relative to the checkout.
    #: What all others are tried with, and what survives the narrow ones; `{name}` is the file's, and "", which
    #: selects all tests, of a header that several files share.
    wide: Calls
    #: Calls of pytest for single files, by the name without what follows its first dot.
    narrow: dict[str, Calls] = field(default_factory=dict)

    def calls(self, file: str) -> Calls:
        """Calls of pytest for a file, in the order in which they are made."""
        name = Path(file).name.split(".")[0]
        narrow = self.narrow.get(name, [])
        calls = [*narrow, *(call for call in self.wide if call not in narrow)]
        return [[word.format(name="" if file.endswith(".h") else name) for word in call] for call in calls]

    def every(self, root: Path) -> list[Mutant]:
        """All mutants of this area."""
        files = sorted(path for pattern in self.patterns for path in root.glob(pattern))
        return [mutant for path in files for mutant in mutants_of(root, str(path.relative_to(root)))]

    def draw(self, root: Path, number: int, seed: int) -> list[Mutant]:
        """A number of mutants of this area, each of all as likely as any other.

        The lot of a mutant depends on its own lines alone: a larger number adds to the
        sample, and an edit of the sources changes it only where they were edited.
        """
        lots, n_alike = [], Counter()
        for mutant in self.every(root):
            lines = (mutant.file, *changed_lines(mutant, (root / mutant.file).read_text()))
            lot = hashlib.sha256(repr((seed, *lines, n_alike[lines])).encode()).digest()
            n_alike[lines] += 1
            lots.append((lot, mutant))
        return [mutant for _, mutant in sorted(lots, key=lambda pair: pair[0])[:number]]


AREAS = {
    "metrics": Area(
        ("python/schedlab/metrics/*.py",),
        narrow={
            "course": [["tests/python/test_course.py"], _DAMAGE],
            "conservation": [["tests/python/test_conservation.py"]],
            "disturbance": [["tests/python/test_disturbance.py"]],
            "tally": [["tests/python/test_tally.py"]],
        },
        wide=[
            ["python/schedlab/metrics", "tests/python/test_metrics.py", "tests/python/test_consistency.py"],
            _DAMAGE,
        ],
    ),
    "statistics": Area(
        ("python/schedlab/stats/*.py", "python/schedlab/runs/compare.py", "python/schedlab/runs/gate.py"),
        narrow={
            "bootstrap": [[*_STATS, "-k", "not coverage and not alarms"], _STATS],
            "compare": [_COMPARE],
            "gate": [_COMPARE],
            "sentences": [_COMPARE],
            "inference": [[*_STATS, "-k", "not coverage and not alarms"], _STATS],
        },
        wide=[["tests/python/test_warnings.py"], _COMPARE],
    ),
    "core": Area(
        ("core/*.c", "bpf/*.c"),
        narrow={
            "schedule": [["tests/policies/test_known_answers_2.py", "-k", "very_next_tick or does_not_stall"]]
        },
        wide=[_SIMULATED, ["tests/core/test_core.py", "-k", "test_unit"], _GOLDEN_RUNS],
    ),
    "simulator": Area(
        ("hosts/sim/*.c",),
        narrow={"serve": [["tests/python/test_policy_log.py", "-k", "sim"]]},
        wide=[
            _SIMULATED,
            ["tests/sim/test_arrivals.py", "tests/sim/test_faults.py"],
            ["tests/python/test_hosts.py", "tests/python/test_process.py"],
            _GOLDEN_RUNS,
        ],
    ),
    "policies": Area(
        # Those that begin with bpf are for Linux alone.
        ("policies/*.c", "include/scx/[!b]*.h", "include/scx/policy/*.h"),
        wide=[
            [*(f"tests/policies/{file}" for file in _POLICY_TESTS), "-k", "{name}"],
            ["tests/sim/test_golden.py"],
            [*_GOLDEN_RUNS, "-k", "{name}"],
        ],
    ),
}
