# SPDX-License-Identifier: MIT
"""docs/replication.md says what a quick run says, at least in direction."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from checkout.reproduce.claims import DIRECTION, HOLDS, decide, decide_all, published_value, side_of
from checkout.reproduce.published import Range
from checkout.reproduce.replication import HEAD, SUMMARY_HEADING, write_replication
from checkout.reproduce.runs import do_runs
from checkout.reproduce.samples import Samples
from checkout.reproduce.spec import read_experiment
from checkout.reproduce.steps import needed_pairs, published_tables
from python.replication_page import Row, read_replication
from schedlab.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "replication.md"
ROWS = read_replication(PAGE)


def contradiction(row: Row, decision) -> str:
    """How a row and a new decision exclude each other; empty where they may both be true."""
    ours, claim = decision.ours, decision.claim
    if row.ours is None or ours is None:
        return "" if (row.ours is None) == (ours is None) else "one of them has no number"
    if claim.null is None:
        ratio = ours.estimate / row.ours if row.ours else float("inf")
        return (
            "" if 0.75 < ratio < 1.34 or ours.estimate == row.ours else f"{ours.estimate:g}, not {row.ours:g}"
        )
    if claim.says == "equal":
        is_far = abs(ours.estimate - row.ours) > 3 * claim.margin
        return f"{ours.estimate:g}, not {row.ours:g}" if is_far else ""
    # Either interval may reach no effect: then it says nothing against the other.
    if row.low > claim.null and ours.high < claim.null:
        return f"below {claim.null:g}, not above"
    if row.high < claim.null and ours.low > claim.null:
        return f"above {claim.null:g}, not below"
    return ""


@pytest.mark.full
@pytest.mark.parametrize("report", sorted({row.report for row in ROWS}))
def test_page_has_every_claim_and_matches_a_quick_run(report, simulator, tmp_path):
    folder = ROOT / "experiments" / f"report-{report}"
    experiment = read_experiment(folder)
    rows = {(row.claim, row.on): row for row in ROWS if row.report == report}
    command = f"./lab reproduce {report} --write docs/replication.md"
    assert {claim for claim, _ in rows} >= {
        claim.name for claim in experiment.claims if claim.lacks or {on for _, on in rows} & {*claim.on}
    }, f"claims are missing; make the page anew: {command}"
    assert {claim for claim, _ in rows} <= {claim.name for claim in experiment.claims}, command
    needed = needed_pairs(experiment)
    done = {
        name: do_runs(runs, replace(runs.quick, seeds=3), tmp_path, needed=needed[name])
        for name, runs in experiment.runs.items()
        if runs.host == "sim" and not runs.quick.skip
    }
    decisions = decide_all(experiment.claims, published_tables(folder), Samples(done))
    against = {
        f"{each.claim.name} on {each.on}": found
        for each in decisions
        if (each.claim.name, each.on) in rows
        if (found := contradiction(rows[each.claim.name, each.on], each))
    }
    assert not against, f"{against}; make the page anew: {command}"
    assert_verdicts_flip(experiment, published_tables(folder), done)


def assert_verdicts_flip(experiment, tables, done):
    """With other figures, or with two policies swapped, claims that hold do so no more.

    A claim of no effect ("equal") is left out: it says nothing of a figure, and is the
    same of two policies either way round.
    """
    decisions = [
        each
        for each in decide_all(experiment.claims, tables, Samples(done))
        if each.verdict in (HOLDS, DIRECTION) and side_of(each.claim, each.published) != "equal"
    ]
    compared = [(each, sorted({keys[1] for _, keys in each.claim.ours.cells})) for each in decisions]
    of_two = [(each, policies) for each, policies in compared if len(policies) == 2]
    assert of_two
    for each, policies in of_two:
        swap = dict(zip(policies, reversed(policies), strict=True))
        others = {
            name: replace(
                runs,
                found={
                    (workload, swap.get(policy, policy)): found
                    for (workload, policy), found in runs.found.items()
                },
            )
            for name, runs in done.items()
        }
        verdict = decide_all([replace(each.claim, on=(each.on,))], tables, Samples(others))[0].verdict
        assert verdict not in (HOLDS, DIRECTION), f"{each.claim.name} on {each.on}: as before with {swap}"
    of_figures = [each for each in decisions if each.published and each.ours]
    assert of_figures
    for each in of_figures:
        # With our own mean for a figure it holds, if few seeds leave the interval as narrow as that; with one far away it does not.
        factor_within = 1 + each.claim.within
        is_narrow = (
            each.ours.high <= each.ours.estimate * factor_within
            and each.ours.estimate <= each.ours.low * factor_within
        )
        for factor, holds in ((1, is_narrow), (100, False), (0.01, False)):
            figure = Range(each.ours.estimate * factor, each.ours.estimate * factor)
            verdict, reason = decide(each.claim, figure, each.ours)
            where = f"{each.claim.name} on {each.on}, with {factor} times our mean for a figure: {verdict}, {reason}"
            assert (verdict == HOLDS) == holds or figure.low == 0, where
        if "[" in each.claim.published:
            assert published_value(each.claim, _altered(tables, each.claim.published)) != each.published


def _altered(tables, formula):
    """Tables in which the first cell that a formula names is another one."""
    name, keys = re.search(r"(\w+)\[([^\]]+)\]", formula).groups()
    *key, column = (part.strip().strip('"') for part in keys.split(","))
    table = tables[name]
    rows = {row: dict(cells) for row, cells in table.rows.items()}
    rows[tuple(key)][column] = f"{float(rows[tuple(key)][column]) * 3:.6f}"
    return tables | {name: replace(table, rows=rows)}


def test_verdicts_of_the_page_follow_from_its_rows():
    """No verdict can be typed into it, or outlive the rule that made it."""
    from schedlab.stats.inference import Interval

    wrong = []
    for report in {row.report for row in ROWS}:
        folder = ROOT / "experiments" / f"report-{report}"
        claims = {claim.name: claim for claim in read_experiment(folder).claims}
        tables = published_tables(folder)
        for row in ROWS:
            if row.report == report and row.ours is not None and row.low is not None:
                claim = claims[row.claim]
                ours = Interval(row.ours, row.low, row.high, 2, 0.95, "bca")
                verdict, reason = decide(claim, published_value(claim, tables), ours, row.resolution)
                wrong += [(row, verdict, reason)] if verdict != row.verdict else []
    assert not wrong, (
        f"{wrong[0]}; make the page anew: ./lab reproduce {wrong[0][0].report} --write docs/replication.md"
    )


def test_a_row_that_says_the_other_direction_is_found():
    """The comparison itself can fail."""
    from checkout.reproduce.claims import Decision
    from python.test_reproduce_rule import claim, interval

    row = Row(5, "c", "sim-1", 0.5, 0.4, 0.6, "holds")
    same = Decision(claim(null=1.0), "sim-1", "sim", "holds", "", None, interval(0.7, 0.8))
    other = Decision(claim(null=1.0), "sim-1", "sim", "holds", "", None, interval(1.2, 1.3))
    unsure = Decision(claim(null=1.0), "sim-1", "sim", "holds", "", None, interval(0.9, 1.3))
    assert [bool(contradiction(row, each)) for each in (same, other, unsure)] == [False, True, False]
    number = Decision(claim(), "sim-1", "sim", "holds", "", None, interval(0.9, 1.1))
    assert contradiction(row, number) == "1, not 0.5"


def test_a_section_is_replaced_and_the_others_stay(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text())
    write_replication([], page, today=date(2026, 1, 1))
    assert page.read_text() == PAGE.read_text()
    assert PAGE.read_text().startswith(HEAD.rstrip("\n"))
    page.write_text(PAGE.read_text().replace("| `", "| more | `", 1).replace("| more | `", "| `x` | `", 1))
    with pytest.raises(UsageError, match="make the page anew"):
        read_replication(page)
    with pytest.raises(UsageError, match="--write"):
        write_replication([], tmp_path / "none" / "page.md", today=date(2026, 1, 1))


def test_a_page_of_summary_stands_before_all_sections(tmp_path):
    """Made from the same numbers as the sections, by the same command."""
    from python.pretended_reports import pretend

    page = tmp_path / "page.md"
    for number in (5, 1):
        write_replication([pretend(number, tmp_path)], page, today=date(2026, 1, 1))
    text = page.read_text()
    places = [
        text.index(words)
        for words in (
            SUMMARY_HEADING,
            "<!-- summary of report 1 -->",
            "<!-- summary of report 5 -->",
            "<!-- report 1 -->",
            "<!-- report 5 -->",
        )
    ]
    assert places == sorted(places)
    assert text.count("What it came to: ") == 2
    assert text.count(SUMMARY_HEADING) == 1
    summary = text[: text.index("<!-- report 1 -->")]
    assert "{" not in summary, "numbers are filled in"
    assert "Its numbers are honest" in summary
    write_replication([], page, today=date(2026, 1, 1))
    assert page.read_text() == text
    # Each claim has one row that decides; the others stand below, as what they are.
    made = pretend(5, tmp_path)
    mine = [(row.claim, row.on) for row in read_replication(page) if row.report == 5]
    assert mine == [(each.claim.name, each.on) for each in (*made.chosen, *made.others)]
    assert (
        len({name for name, _ in mine[: len(made.chosen)]}) == len(made.chosen) == len(made.experiment.claims)
    )
