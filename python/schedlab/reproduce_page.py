# SPDX-License-Identifier: MIT
"""The page of a reproduced report, for a reader who has never seen the report.

It opens with the audit of the report's own figures; then its set-up and ours, its
tables and charts redrawn beside ours, and each claim with the test that decides it.
The page is one file that loads nothing; each number links to its run.

Must stay true: every text that comes from a file is escaped; a verdict stands
beside the numbers that it follows from.
Read next: reproduce_plots.py; report.py, the page of any folder of runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from . import report_page as page
from .audit import Finding, Formula, Range
from .errors import SpecError, SpecFault
from .reproduce_claims import DIRECTION, FAILS, HOLDS, UNTESTED, Decision, measure_on, rule_text
from .reproduce_formula import Measure, MissingError
from .reproduce_spec import PARTS, Redrawn, fill
from .reproduce_text import command_text, count_sentences, interval_text, number_text, ours_text, published_text
from .stats import mean_interval

if TYPE_CHECKING:
    from .reproduce import Reproduction

CLASSES = {HOLDS: "good", DIRECTION: "doubt", FAILS: "bad", UNTESTED: "none"}
#: For tables that are wide already.
SHORT = {DIRECTION: "direction only", FAILS: "does not"}


def page_text(made: Reproduction) -> str:
    """Write the page.

    Parameters
    ----------
    made : Reproduction
        A report, reproduced.

    Returns
    -------
    str
        HTML.
    """
    from . import __version__

    folder = files("schedlab") / "page"
    style = "".join((folder / name).read_text(encoding="utf-8") for name in ("report.css", "reproduce.css"))
    experiment = made.experiment
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="generator" content="schedlab {escape(__version__)}">
<title>{escape(experiment.title)}, reproduced</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the verdicts</a>
<div class="page">
<header>
<p class="soft small">A student report on CPU schedulers, run again with schedlab {escape(__version__)}</p>
<h1>{escape(experiment.title)}</h1>
<p class="question">{escape(experiment.question)}</p>
<p class="soft">{escape(experiment.source)}</p>
{_head(made)}
</header>
<main id="main">
{_audit(made)}
{_setup(made)}
{_redrawn(made)}
{_summary(made)}
{"".join(_claims(made, part, heading) for part, heading in PARTS.items())}
{_repeat(made)}
</main>
<footer class="small soft"><p>Verdicts, reasons and counts are computed from the published figures and the
runs; intervals follow docs/statistics.md of schedlab. This page loads nothing.</p></footer>
</div>
</body>
</html>
"""


def chip(verdict: str, words: Mapping[str, str] | None = None) -> str:
    """A verdict with its colour and its sign; colour alone says nothing."""
    return f'<span class="verdict {CLASSES[verdict]}">{escape((words or {}).get(verdict, verdict))}</span>'


def _head(made: Reproduction) -> str:
    """What came of it, in a few lines, before anything else."""
    audit = made.audit
    sentences = [f"{len(audit.wrong)} of {page.nr(len(audit.findings), 'derived figure')} do not follow "
                 "from the report's own rows.", *count_sentences(made)]  # fmt: skip
    places = ["audit"] + ["summary"] * (len(sentences) - 1)
    items = "".join(f'<li><a href="#{place}">{escape(sentence)}</a></li>'
                    for place, sentence in zip(places, sentences, strict=True))  # fmt: skip
    boxes = "".join(
        f'<div class="box doubt"><p>{escape(done.runs.title)}: {escape(done.problem)}</p></div>'
        for done in made.samples.done.values() if done.problem
    )  # fmt: skip
    if made.failed:
        first = made.failed[0]
        boxes += (f'<div class="box bad"><p><strong>{page.nr(len(made.failed), "run")} failed.</strong> The first: '
                  f'{escape(first["workload"])} under {escape(first["policy"])}: {escape(str(first["error"]))}</p></div>')  # fmt: skip
    return f'{boxes}<ul class="findings">{items}</ul>'


def _summary(made: Reproduction) -> str:
    """Every claim with its verdicts, before each is looked at."""
    tables = "".join(_matrix(made, part, heading) for part, heading in PARTS.items())
    return f"""<section id="summary">
<h2>What is true of it</h2>
<p class="soft small"><em>Direction only</em>: the effect is there, but not of the size that is claimed. Each
claim links to its numbers.</p>
{tables}
</section>"""


def _matrix(made: Reproduction, part: str, heading: str) -> str:
    """A row per claim of a part, a verdict per set of runs."""
    claims = [claim for claim in made.experiment.claims if claim.part == part]
    decided = {(each.claim.name, each.on): each.verdict for each in made.decisions}
    sets = [name for name in made.samples.done if any((claim.name, name) in decided for claim in claims)]
    if not claims:
        return ""
    heads = "".join(f'<th scope="col">{escape(made.experiment.runs[name].title)}</th>' for name in sets)
    rows = []
    for claim in claims:
        if (claim.name, "") in decided:
            cells = f'<td colspan="{max(1, len(sets))}">{chip(UNTESTED)}</td>'
        else:
            cells = "".join(f"<td>{chip(decided[claim.name, name], SHORT) if (claim.name, name) in decided else ''}</td>"
                            for name in sets)  # fmt: skip
        rows.append(f'<tr><th scope="row"><a href="#{escape(claim.name)}">{escape(claim.text)}</a> '
                    f'<span class="soft">{escape(claim.where)}</span></th>{cells}</tr>')  # fmt: skip
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(heading)}"><table class="words matrix">'
            f'<thead><tr><th scope="col">{escape(heading)}</th>{heads}</tr></thead>'
            f'<tbody>{"".join(rows)}</tbody></table></div>')  # fmt: skip


def _audit(made: Reproduction) -> str:
    """Figures that do not follow from the report's own rows; the others on demand."""
    audit = made.audit
    wrong = audit.wrong
    right = [finding for finding in audit.findings if finding.follows]
    text = (f"{len(wrong)} of {page.nr(len(audit.findings), 'derived figure')} do not follow from the report's own "
            "tables, however these were rounded. Nothing was run for this: it is the report against itself.")  # fmt: skip
    return f"""<section id="audit">
<h2>Audit: do its figures follow from its own rows?</h2>
<p>{escape(text)}</p>
{_findings(wrong) if wrong else ""}
{f"<details><summary>The {len(right)} that follow</summary>{_findings(right)}</details>" if right else ""}
</section>"""


def _findings(findings: list[Finding]) -> str:
    """A table of audited figures."""
    rows = "".join(
        f"<tr><td>{escape(finding.where)}</td><td>{escape(finding.text)}"
        f"{f' <span class=soft>({escape(finding.note)})</span>' if finding.note and not finding.follows else ''}</td>"
        f'<td class="number">{escape(finding.published)}</td><td class="number">{_recomputed(finding)}</td></tr>'
        for finding in findings
    )
    return ('<div class="scroll"><table class="words"><thead><tr><th scope="col">where</th><th scope="col">it says</th>'
            '<th scope="col" class="number">published</th><th scope="col" class="number">its own rows give</th></tr>'
            f"</thead><tbody>{rows}</tbody></table></div>")  # fmt: skip


def _recomputed(finding: Finding) -> str:
    """What follows from the report's rows."""
    if finding.kind == "order":
        return "so" if finding.follows else "not so"
    if finding.recomputed is None:
        return "-"
    low, high = f"{finding.recomputed.low:,.4g}", f"{finding.recomputed.high:,.4g}"
    return low if low == high else f"{low} to {high}"


def _setup(made: Reproduction) -> str:
    """The report's set-up, ours, and what was run."""
    experiment = made.experiment
    theirs = "".join(f"<p>{page.prose(text)}</p>" for text in experiment.setup)
    ours = "".join(f"<p>{page.prose(text)}</p>" for text in experiment.done)
    rows = []
    for name, runs in experiment.runs.items():
        done = made.samples.done.get(name)
        size = made.sizes.get(name)
        policies = ", ".join(label if label == policy else f"{label} = {policy}" for label, policy in runs.policies.items())
        what = runs.program or ", ".join(runs.workloads.values())
        amount = made.left_out.get(name, "") if done is None or size is None else done.problem or (
            f"{done.nr_runs} runs, {page.nr(size.seeds, 'run' if runs.program else 'seed')} of each"
            + (f", scale {size.scale:g}" if runs.scaled else ""))  # fmt: skip
        machine = ", ".join([page.nr(runs.cpus, "CPU")] if runs.cpus else []) or "as each workload says"
        costs = ", ".join((*runs.costs, *runs.io)) or "-"
        rows.append(f"<tr><td>{escape(runs.title)}</td><td>{escape(machine)}</td><td>{escape(what)}</td>"
                    f"<td>{escape(policies)}</td><td>{escape(costs)}</td><td>{escape(amount)}</td></tr>")  # fmt: skip
    heads = "".join(f'<th scope="col">{head}</th>' for head in
                    ("set of runs", "CPUs", "work", "schedulers", "costs, device", "how much"))  # fmt: skip
    return f"""<section id="setup" class="about">
<h2>What was done</h2>
<div class="two"><div class="half"><h3>In the report</h3>{theirs}</div><div class="half"><h3>Here</h3>{ours}</div></div>
<div class="scroll" tabindex="0" role="region" aria-label="Sets of runs"><table class="words">
<thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>
</section>"""


# ---- tables and charts of the report -----------------------------------------


def redrawn_cells(made: Reproduction, redrawn: Redrawn) -> Iterator[dict]:
    """Compute a table of the report: its own cells, and ours.

    Parameters
    ----------
    made : Reproduction
        The runs.
    redrawn : Redrawn
        The table.

    Yields
    ------
    dict
        `row`, `column`, `on` (empty: the report), `published` (Range) or `ours`
        (Interval), `directory`, `reason` where there is no number.
    """
    for row in redrawn.rows:
        for column in redrawn.columns:
            if redrawn.published:
                text = fill(redrawn.published, row, column)
                try:
                    yield {"row": row, "column": column, "on": "", "published": Formula(text).value(made.tables)}
                except ValueError as error:
                    # A report's table may have empty cells; a wrong name is nobody's empty cell.
                    if "is in no row" not in str(error):
                        fault = SpecFault(str(made.experiment.folder), None, redrawn.title, str(error))
                        raise SpecError([fault]) from error
            for on in redrawn.on:
                if on not in made.samples.done:
                    continue
                cell = {"row": row, "column": column, "on": on}
                measure = Measure(fill(redrawn.ours, row, column), sets=tuple(made.experiment.runs))
                try:
                    sample = measure_on(measure, on, made.samples)
                except MissingError as error:
                    yield cell | {"reason": str(error)}
                    continue
                yield cell | {"ours": mean_interval(sample.values), "directory": sample.directories[0]}


def _redrawn(made: Reproduction) -> str:
    """All tables and charts of the report, with ours."""
    parts = []
    for number, redrawn in enumerate(made.experiment.redrawn):
        draw = _table if redrawn.kind == "table" else _boxes
        note = f'<p class="soft">{page.prose(redrawn.note)}</p>' if redrawn.note else ""
        unit = f" ({redrawn.unit})" if redrawn.unit else ""
        parts.append(f'<h3>{escape(redrawn.title)}{escape(unit)} <span class="soft small">{escape(redrawn.where)}</span></h3>{note}'
                     f"{draw(made, redrawn, f'f{number}')}")  # fmt: skip
    if not parts:
        return ""
    return f"""<section id="tables">
<h2>Its tables and charts, beside ours</h2>
<p>Grey is the report, as printed; blue is ours, the mean of all seeds with its 95 % interval. Units may differ, so each
line of charts has its own axis: compare shapes. Every number of ours links to the first of its runs.</p>
{"".join(parts)}</section>"""


def _table(made: Reproduction, redrawn: Redrawn, key: str) -> str:
    """A table of the report, and its chart."""
    from . import plots, reproduce_plots

    cells = list(redrawn_cells(made, redrawn))
    by_place = {(cell["row"], cell["column"], cell["on"]): cell for cell in cells}
    sources = ([""] if redrawn.published else []) + [on for on in redrawn.on if on in made.samples.done]
    titles = {"": reproduce_plots.PUBLISHED} | {name: runs.title for name, runs in made.experiment.runs.items()}
    heads = "".join(f'<th scope="colgroup" class="group" colspan="{len(sources)}">{escape(column)}</th>' for column in redrawn.columns)
    second = "".join(f'<th scope="col"{"" if source else " class=report"}>{escape(titles[source])}</th>'
                     for _ in redrawn.columns for source in sources)  # fmt: skip
    rows = "".join(
        f'<tr><th scope="row">{escape(row)}</th>'
        + "".join(_cell(made, by_place.get((row, column, source)), source)
                  for column in redrawn.columns for source in sources) + "</tr>"
        for row in redrawn.rows
    )  # fmt: skip
    drawn = [_bar(cell, titles[cell["on"]]) for cell in cells if "reason" not in cell]
    # The report's line comes first, whatever the order of the cells.
    drawn.sort(key=lambda row: sources.index(row.pop("on")))
    figure = ""
    if drawn:
        svg = plots.to_svg(reproduce_plots.bars(drawn, is_log=redrawn.is_log, is_shared=redrawn.is_shared), has_variables=True)
        figure = page.figure(svg, key=key, title=redrawn.title, is_wide=len(redrawn.columns) > 2)
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(redrawn.title)}"><table>'
            f'<thead><tr><th rowspan="2"></th>{heads}</tr><tr>{second}</tr></thead><tbody>{rows}</tbody></table></div>'
            f"{figure}")  # fmt: skip


def _bar(cell: dict, source: str) -> dict:
    """A cell as a row of `reproduce_plots.bars`."""
    common = {"source": source, "column": cell["column"], "row": cell["row"], "on": cell["on"]}
    if not cell["on"]:
        return common | {"value": cell["published"].middle, "low": None, "high": None}
    ours = cell["ours"]
    is_wide = ours.method not in ("single", "deterministic")
    return common | {"value": ours.estimate, "low": ours.low if is_wide else None,
                     "high": ours.high if is_wide else None}  # fmt: skip


def _cell(made: Reproduction, cell: dict | None, source: str) -> str:
    """A cell of a redrawn table."""
    if cell is None:
        return f"<td{'' if source else ' class=report'}></td>"
    if not source:
        return f'<td class="report">{_published_number(cell["published"])}</td>'
    if "reason" in cell:
        return f'<td title="{escape(cell["reason"])}">-</td>'
    ours = cell["ours"]
    between = ""
    if len({*map(number_text, (ours.low, ours.estimate, ours.high))}) > 1 and ours.method != "single":
        between = f'<span class="between">{number_text(ours.low)} to {number_text(ours.high)}</span>'
    return f'<td><a href="{_link(made, cell["directory"])}">{number_text(ours.estimate)}</a>{between}</td>'


def _published_number(value: Range) -> str:
    """A published figure in the digits that it has."""
    return f"{value.middle:,.6g}"


def _boxes(made: Reproduction, redrawn: Redrawn, key: str) -> str:
    """Distributions over all tasks of all seeds."""
    import numpy as np

    from . import plots, reproduce_plots

    rows = []
    for on in redrawn.on:
        for row in redrawn.rows if on in made.samples.done else ():
            measure = Measure(fill(redrawn.ours, row, ""), sets=tuple(made.experiment.runs))
            workload, policy, column, *pattern = measure.cells[0][1]
            try:
                values = made.samples.all_values(on, workload, policy, column, pattern[0] if pattern else "*")
            except MissingError:
                continue
            low, q1, median, q3, high = np.quantile(values, (0, 0.25, 0.5, 0.75, 1)) / 1e6
            rows.append({"source": made.experiment.runs[on].title, "row": row, "low": low, "q1": q1,
                         "median": median, "q3": q3, "high": high})  # fmt: skip
    if not rows:
        return ""
    svg = plots.to_svg(reproduce_plots.boxes(rows, unit="ms"), has_variables=True)
    return page.figure(svg, key=key, title=redrawn.title,
                       text="Boxes hold the middle half, whiskers reach the extremes, the tick is the median.")  # fmt: skip


def _link(made: Reproduction, directory: str) -> str:
    """A run's own file, from where the page is."""
    return escape(os.path.relpath(os.path.join(directory, "run.json"), made.folder), quote=True)


# ---- claims -----------------------------------------------------------------


def _claims(made: Reproduction, part: str, heading: str) -> str:
    """All claims of a part."""
    bodies = []
    for claim in made.experiment.claims:
        if claim.part == part:
            mine = [decision for decision in made.decisions if decision.claim is claim]
            bodies.append(_claim(made, mine) if mine else _not_run(claim))
    return f'<section id="{part}"><h2>{escape(heading)}</h2>{"".join(bodies)}</section>' if bodies else ""


def _not_run(claim) -> str:
    """A claim whose sets were all left out."""
    return (f'<div class="claim" id="{escape(claim.name)}"><h4>{escape(claim.text)}</h4>'
            f'<p class="soft">Not run this time: needs {escape(", ".join(claim.on))}.</p></div>')  # fmt: skip


def _claim(made: Reproduction, decisions: list[Decision]) -> str:
    """A claim: figures, verdicts and reasons on each set."""
    claim = decisions[0].claim
    titles = {name: runs.title for name, runs in made.experiment.runs.items()}
    measured = [each for each in decisions if each.on]
    rows = "".join(
        f"<tr><td>{escape(titles[each.on])}</td><td class='number'>{_our_number(made, each)}</td>"
        f"<td class='number'>{escape(interval_text(each))}</td><td>{chip(each.verdict)}</td>"
        f"<td>{page.prose(each.reason)}</td></tr>"
        for each in measured
    )
    heads = ('<th scope="col">run on</th><th scope="col" class="number">ours</th>'
             '<th scope="col" class="number">95 % interval</th><th scope="col">verdict</th><th scope="col">why</th>')  # fmt: skip
    table = f'<div class="scroll"><table class="words"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    lacking = "".join(f"<p>{chip(each.verdict)} {page.prose(each.reason)}</p>" for each in decisions if not each.on)
    published = published_text(decisions[0])
    measure = ""
    if claim.measure:
        figure = "" if published == "-" else f" Published: <strong>{page.prose(published)}</strong>."
        measure = f"<p>Measured: {page.prose(claim.measure)}.{figure}</p>"
    note = f'<p class="soft">{page.prose(claim.note)}</p>' if claim.note else ""
    rule = rule_text(claim)
    details = ""
    if rule:
        assert claim.ours is not None
        details = (f'<details class="small"><summary>The test</summary><p>It holds with {page.prose(rule)}.</p>'
                   f"<p><code>{escape(claim.ours.text)}</code></p></details>")  # fmt: skip
    return (f'<div class="claim" id="{escape(claim.name)}"><h4>{escape(claim.text)} '
            f'<span class="soft small">({escape(claim.where)})</span></h4>{measure}{lacking}'
            f"{table if measured else ''}{note}{details}</div>")  # fmt: skip


def _our_number(made: Reproduction, decision: Decision) -> str:
    """Our figure, with a link to its runs."""
    if decision.sample is None:
        return "-"
    return f'<a href="{_link(made, decision.sample.directories[0])}">{escape(ours_text(decision))}</a>'


def _repeat(made: Reproduction) -> str:
    """How to do all of it again."""
    scaled = any(runs.scaled for runs in made.experiment.runs.values())
    scale = ("<p>The work of some sets is scaled, as the table above says: their times are a part of the report's, "
             "ratios are compared as they are.</p>" if scaled else "")  # fmt: skip
    return f"""<section id="repeat"><h2>How to repeat this</h2>
<p><code>{escape(command_text(made))}</code> does the same again; runs that are there already are not done anew. The
experiment is <code>experiments/report-{made.experiment.report}/</code>: who disagrees with a verdict changes one row of
<code>claims.toml</code>. All numbers of this page are in <code>claims.json</code> beside it.</p>{scale}</section>"""
