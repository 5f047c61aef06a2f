# SPDX-License-Identifier: MIT
"""Mutants of schedlab's policies: what they are, that one is found, and the table of all."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from check_mutants import N_MUTANTS, RULES, Mutant, draw_mutants, mutants_of, outcome  # noqa: E402

pytestmark = pytest.mark.full


def the(policy: str, kind: str, number: int = 0) -> Mutant:
    return [m for m in mutants_of(ROOT / "policies" / f"{policy}.bpf.c") if m.kind == kind][number]


def test_each_mutant_differs_in_a_line_or_two_and_none_is_there_twice():
    drawn = draw_mutants()
    assert len(drawn) == N_MUTANTS == len(set(drawn))
    assert {mutant.kind for mutant in drawn} == {*RULES}
    for mutant in drawn:
        before = (ROOT / "policies" / mutant.policy).read_text()
        assert mutant.text != before
        gone = Counter(before.splitlines()) - Counter(mutant.text.splitlines())
        assert 1 <= gone.total() <= 4, mutant


def test_what_a_search_makes_of_a_mutant(simulator):
    assert outcome(the("rr", "insertion dropped")) == "stall"
    assert outcome(the("rr", "put at the head")) == "stall"
    same = the("fifo", "insertion dropped")
    comment = (ROOT / "policies" / "fifo.bpf.c").read_text() + "\n/* Nothing else. */\n"
    assert outcome(Mutant(same.policy, same.kind, 1, comment)) == "equivalent"


def test_the_page_has_all_of_them():
    """`bench/check_mutants.py --docs` writes the rows."""
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    table = page.partition("<!-- mutants table -->")[2].partition("<!-- end of mutants table -->")[0]
    rows = re.findall(
        r"^\| ([\w ]+) \| (\d+) \| (\d+) \| .* \| (\d+) \| (\d+) \| (\d+) \|$", table, re.MULTILINE
    )
    assert [row[0] for row in rows] == [*RULES, "all"]
    drawn = Counter(mutant.kind for mutant in draw_mutants())
    for kind, *numbers in rows[:-1]:
        mutants, *parts = map(int, numbers)
        assert mutants == drawn[kind] == sum(parts)
    assert int(rows[-1][1]) == N_MUTANTS
