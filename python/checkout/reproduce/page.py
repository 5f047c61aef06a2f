# SPDX-License-Identifier: MIT
"""The page of a reproduced report, for a reader who has never seen the report.

It answers in a minute: sentences with number and cause, one picture, what is good and
what to change (page_answer.py). Then every claim with its figure, ours and the result;
the audit of the report's own figures; its tables and charts redrawn beside ours; each
claim with the test that decides it; the set-up last. The page is one file that loads
nothing; each number links to its run. What it looks like is in templates/report.html.

Invariant: a verdict stands beside the numbers that it follows from.
Read next: page_answer.py, page_audit.py, tables.py; report/write.py, the page of any folder of runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from schedlab import html as page
from schedlab.units import counted

from .audit import KINDS
from .claims import (
    DIRECTION,
    FAILS,
    HOLDS,
    UNDECIDABLE,
    UNTESTED,
    VERDICTS,
    Decision,
    contradicts_itself,
    rule_text,
)
from .fit import fit
from .page_answer import picture_of
from .page_audit import checks, place_text, printed_tables, said_of_kind
from .reproduction import Reproduction
from .runs import workload_of
from .spec import PARTS, Claim, Runs, Size
from .summary import sentences_of
from .tables import drawn_of, is_wide, link
from .text import (
    command_text,
    count_sentences,
    interval_text,
    number_text,
    ours_text,
    published_text,
    recomputed_text,
)

#: How each verdict looks, and its words in tables that are wide already.
CLASSES = {HOLDS: "good", DIRECTION: "warning", FAILS: "bad", UNDECIDABLE: "none", UNTESTED: "none"}
SHORT = {DIRECTION: "direction only", FAILS: "does not", UNDECIDABLE: "not decidable"}
PLACES = {"answer": "Answer", "summary": "Claims", "audit": "Audit", "tables": "Tables and charts",
          "claim": "Claim by claim", "rows": "Its own rows", "setup": "Set-up", "repeat": "Repeat it"}  # fmt: skip
SET_HEADS = ("CPUs", "work", "schedulers", "costs, device", "how much")


@cache
def environment() -> Environment:
    """Templates of this folder, and what they call."""
    made = page.environment().overlay(loader=PackageLoader(__package__))
    made.globals = {
        **made.globals, "classes": CLASSES, "short": SHORT, "zip": zip, "link": link, "number_text": number_text,
        "digits_of_all": digits_of_all, "published_text": published_text, "ours_text": ours_text,
        "interval_text": interval_text, "rule_text": rule_text, "contradicts_itself": contradicts_itself,
        "kinds": KINDS, "checks": checks, "said_of_kind": said_of_kind, "place_text": place_text,
        "picture_of": picture_of, "sentences_of": sentences_of, "count_sentences": count_sentences,
        "drawn_of": drawn_of, "is_wide": is_wide, "recomputed_text": recomputed_text, "printed_tables": printed_tables,
    }  # fmt: skip
    return made


def page_text(made: Reproduction) -> str:
    """Write the page."""
    from schedlab import __version__

    sheets = files("schedlab") / "report" / "page" / "report.css", files(__package__) / "page.css"
    experiment = made.experiment
    return (
        environment()
        .get_template("report.html")
        .render(
            made=made,
            experiment=experiment,
            version=__version__,
            style=Markup("".join(sheet.read_text(encoding="utf-8") for sheet in sheets)),
            places={place: name for place, name in PLACES.items() if place != "tables" or experiment.redrawn},
            titles={name: runs.title for name, runs in experiment.runs.items()},
            chosen={each.claim.name: each for each in made.chosen},
            sentences=[*count_sentences(made), made.audit.sentence],
            fits=fit(experiment, made.tables, made.samples) if experiment.primary else [],
            parts_of_claims=list(_parts(made)),
            set_heads=SET_HEADS,
            sets=list(_sets(made)),
            command=command_text(made),
        )
    )


def digits_of_all(values: tuple[float, ...]) -> int:
    """How many digits tell the values of a sample from each other."""
    return 4 if len({*map(number_text, values)}) == len({*values}) else 7


def _parts(made: Reproduction) -> Iterator[dict[str, Any]]:
    """The claims of each part, also by their verdict: those that hold first, those that were not run last."""
    decided = {each.claim.name: each for each in made.chosen}
    for part, heading in PARTS.items():
        claims = [claim for claim in made.experiment.claims if claim.part == part]
        found: dict[str, list[tuple[Claim, Decision | None]]] = {verdict: [] for verdict in (*VERDICTS, "")}
        for claim in claims:
            decision = decided.get(claim.name)
            found[decision.verdict if decision else ""].append((claim, decision))
        yield {"name": part, "heading": heading, "claims": claims,
               "by_verdict": [(verdict, rows) for verdict, rows in found.items() if rows]}  # fmt: skip


def _sets(made: Reproduction) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What was run: title and `SET_HEADS` of each set."""
    for name, runs in made.experiment.runs.items():
        size = made.sizes.get(name)
        policies = ", ".join(
            label if label == policy else f"{label} = {policy}" for label, policy in runs.policies.items()
        )
        machine = counted(runs.machine.cpus, "CPU") if runs.machine.cpus else "as each workload says"
        if runs.execution.is_parallel:
            machine += f", in real time, on {counted(os.cpu_count() or 1, 'CPU')} of this machine"
        if not runs.rt_throttling:
            machine += ", real-time throttling off"
        options = runs.machine.as_json()
        costs = ", ".join(options["costs"] + options["io"]) or "-"
        yield runs.title, (machine, _work(runs, size or runs.full), policies, costs, _amount(made, name))


def _amount(made: Reproduction, name: str) -> str:
    """How much of a set was run, or why nothing was."""
    runs, done, size = made.experiment.runs[name], made.samples.done.get(name), made.sizes.get(name)
    if done is None or size is None:
        return made.left_out.get(name, "")
    if done.problem:
        return done.problem
    return (
        f"{done.n_runs} runs, {counted(size.seeds, 'run' if runs.program else 'seed')} of each"
        + (f", scale {size.scale:g}" if runs.scaled else "")
        + (f", of {made.earlier[name]}" if name in made.earlier else "")
    )


def _work(runs: Runs, size: Size) -> str:
    """What a set runs, as one would type it."""
    if not runs.program:
        return ", ".join(workload_of(text, runs, size) for text in runs.workloads.values())
    program = runs.program.replace("{runs}", str(size.seeds)).replace("{workload}", "...")
    return f"{program}, which stands for {'; '.join(runs.workloads.values())}"
