# SPDX-License-Identifier: MIT
"""Figures, intervals and counts of a reproduction in words, for terminal and page.

Read next: show.py, page.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from schedlab.units import counted

from .audit import Finding
from .claims import VERDICTS, Decision, decide
from .reproduction import Reproduction


def number_text(value: float, digits: int = 4) -> str:
    """Write a number in few digits.

    >>> number_text(0.059257), number_text(12345.5), number_text(27.0)
    ('0.05926', '12,346', '27')
    """
    return f"{value:,.0f}" if abs(value) >= 10000 else f"{value:.{digits}g}"


def recomputed_text(finding: Finding, between: str = " .. ") -> str:
    """What follows from the report's rows, in as many digits as they allow.

    >>> from checkout.reproduce.published import Range
    >>> recomputed_text(Finding(5, "", "", "153 %", Range(142.44, 142.58), False, "figure"))
    '142.4 .. 142.6'
    >>> recomputed_text(Finding(1, "", "", "72 %", Range(71.2, 73.6), True, "figure", unit="%"))
    '71.2 .. 73.6 %'
    """
    if finding.is_comparison:
        return "holds" if finding.follows else "does not hold"
    if finding.recomputed is None:
        return "-"
    ends = dict.fromkeys(map(number_text, (finding.recomputed.low, finding.recomputed.high)))
    return f"{between.join(ends)} {finding.unit}".rstrip()


def digits_of(decision: Decision) -> int:
    """How many digits tell a decision's interval from no effect, and still give its verdict."""
    ours, null = decision.ours, decision.claim.null
    if ours is None or ours.method == "single":
        return 4
    ends = {ours.low, ours.high, *([] if null is None else [null])}

    def is_enough(digits: int) -> bool:
        low, mean, high = (
            float(number_text(value, digits).replace(",", ""))
            for value in (ours.low, ours.estimate, ours.high)
        )
        written = replace(ours, estimate=mean, low=low, high=high)
        return (
            len({number_text(end, digits) for end in ends}) == len(ends)
            and decide(decision.claim, decision.published, written, decision.resolution)[0]
            == decision.verdict
        )

    return next(filter(is_enough, (4, 5, 6)), 7)


def published_text(decision: Decision) -> str:
    """Write the published figure of a claim."""
    if decision.published is None:
        return decision.claim.stated or "-"
    text = f"{number_text(decision.published.middle, 5)} {decision.claim.unit}".strip()
    return f"{text} ({decision.claim.stated})" if decision.claim.stated else text


def ours_text(decision: Decision) -> str:
    """Write our figure, or `"-"`."""
    if decision.ours is None:
        return "-"
    return f"{number_text(decision.ours.estimate, digits_of(decision))} {decision.claim.unit}".strip()


def interval_text(decision: Decision) -> str:
    """Write our interval, or why it has no width."""
    ours = decision.ours
    if ours is None or ours.method == "single":
        return "-"
    if ours.method == "deterministic":
        return f"all {ours.n} equal"
    digits = digits_of(decision)
    return f"{number_text(ours.low, digits)} .. {number_text(ours.high, digits)}"


def count_sentences(made: Reproduction) -> list[str]:
    """Say how many claims hold: one result per claim."""
    sentences = []
    for part, what in (("claim", "claim"), ("left-out", "further question")):
        counts = Counter(each.verdict for each in made.chosen if each.claim.part == part)
        total = sum(counts.values())
        parts = [
            f"{counts[verdict]} {plural(verdict, counts[verdict])}" for verdict in VERDICTS if counts[verdict]
        ]
        if total:
            sentences.append(f"Of {counted(total, what)} {', '.join(parts)}.")
    by_claim = {each.claim.name: each.verdict for each in made.chosen}
    n_other = len({each.claim.name for each in made.others if each.verdict != by_claim[each.claim.name]})
    if made.others:
        sentences.append(
            f"On further sets of runs {n_other or 'no'} claim{'' if n_other == 1 else 's'} "
            f"come{'s' if n_other == 1 else ''} to another result."
        )
    return sentences


def command_text(made: Reproduction) -> str:
    """Write the command that does the same again."""
    wanted = made.wanted
    words = ["./lab reproduce", str(made.experiment.report), "--quick" if wanted.is_quick else "--full"]
    words += [f"--host {','.join(wanted.hosts)}"] if wanted.hosts else []
    words += [f"--scale {wanted.scale:g}"] if wanted.scale is not None else []
    return " ".join(words)


def plural(verdict: str, count: int) -> str:
    """A verdict as a verb for several."""
    if count == 1:
        return verdict
    return {
        "holds": "hold",
        "holds in direction only": "hold in direction only",
        "does not hold": "do not hold",
        "not decidable by the report": "are not decidable by the report",
    }.get(verdict, verdict)
