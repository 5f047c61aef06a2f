# SPDX-License-Identifier: MIT
"""The page of a reproduced report, for a reader who has never seen the report.

It answers in a minute: sentences with number and cause, one picture, what is good and
what to change (page_answer.py). Then every claim with its figure, ours and the result;
the audit of the report's own figures; its tables and charts redrawn beside ours; each
claim with the test that decides it; the set-up last. The page is one file that loads
nothing; each number links to its run.

Invariant: every string that comes from a file is escaped; a verdict stands beside the
numbers that it follows from.
Read next: page_answer.py, page_audit.py, tables.py; report/write.py, the page of any folder of runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from importlib.resources import files

from schedlab import html as page

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
from .page_answer import answer_section
from .page_audit import audit_section, rows_section
from .reproduction import Reproduction
from .runs import workload_of
from .spec import PARTS, Claim, Runs, Size
from .tables import link, tables_section, values_text
from .text import command_text, count_sentences, interval_text, ours_text, published_text

CLASSES = {HOLDS: "good", DIRECTION: "warning", FAILS: "bad", UNDECIDABLE: "none", UNTESTED: "none"}
#: For tables that are wide already.
SHORT = {DIRECTION: "direction only", FAILS: "does not", UNDECIDABLE: "not decidable"}


def page_text(made: Reproduction) -> str:
    """Write the page."""
    from schedlab import __version__

    sheets = files("schedlab") / "report" / "page" / "report.css", files(__package__) / "page.css"
    style = "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
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
<a class="skip" href="#answer">Skip to the answer</a>
<div class="page">
<header>
<p class="soft small">A report by students on CPU schedulers, run again with schedlab {escape(__version__)}</p>
<h1>{escape(experiment.title)}</h1>
<p class="question">{escape(experiment.question)}</p>
<p class="soft">{escape(experiment.source)}</p>
{_head(made)}
</header>
<main id="main">
{answer_section(made)}
{_summary(made)}
{audit_section(made)}
{tables_section(made)}
{"".join(_claims(made, part, heading) for part, heading in PARTS.items())}
{rows_section(made)}
{_setup(made)}
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
    """What it concludes, what went wrong with the runs, and where to find what."""
    concludes = made.experiment.concludes
    says = f"<p><strong>It concludes:</strong> {page.prose(concludes)}</p>" if concludes else ""
    boxes = "".join(
        f'<div class="box warning"><p>{escape(done.runs.title)}: {escape(done.problem)}</p></div>'
        for done in made.samples.done.values()
        if done.problem
    )
    if made.failed:
        first = made.failed[0]
        boxes += (
            f'<div class="box bad"><p><strong>{page.counted(len(made.failed), "run")} failed.</strong> The first: '
            f"{escape(first['workload'])} under {escape(first['policy'])}: {escape(str(first['error']))}</p></div>"
        )
    places = {"answer": "Answer", "summary": "Claims", "audit": "Audit", "tables": "Tables and charts",
              "claim": "Claim by claim", "rows": "Its own rows", "setup": "Set-up", "repeat": "Repeat it"}  # fmt: skip
    links = "".join(
        f'<li><a href="#{place}">{name}</a></li>'
        for place, name in places.items()
        if place != "tables" or made.experiment.redrawn
    )
    return f'{says}{boxes}<nav aria-label="On this page"><ul>{links}</ul></nav>'


def _summary(made: Reproduction) -> str:
    """Every claim with its figure, ours and the result, before each is looked at."""
    tables = "".join(_matrix(made, part, heading) for part, heading in PARTS.items())
    sentences = list(count_sentences(made))
    sentences.append(made.audit.sentence)
    return f"""<section id="summary">
<h2>Every claim: what the report says, and ours</h2>
<p>{escape(" ".join(sentences))}</p>
{_primary(made)}
{tables}
<details class="small"><summary>How a result follows from the numbers</summary>
<p>A claim <em>holds</em> where the whole 95 % interval of our runs lies on the side that it claims and within a factor of its
figure; in <em>direction only</em> where the effect is there but of another size; it <em>does not</em> where there is no
such effect, or the opposite one. It is <em>not decidable</em> where the effect is below the smallest step of the report's own
instrument, and <em>cannot be tested</em> where something is missing, or too few runs leave it open.
Each claim links to its numbers.</p></details>
{_sensitivity(made)}
</section>"""


def _primary(made: Reproduction) -> str:
    """The set of runs that decides, why, and how near each candidate comes to the published numbers."""
    experiment = made.experiment
    if not experiment.primary:
        return ""
    found = fit(experiment, made.tables, made.samples)
    rows = "".join(
        f'<tr><th scope="row">{escape(experiment.runs[each.on].title)}{" (decides)" if each.on == experiment.primary else ""}</th>'
        f'<td class="number" data-label="factor">{each.factor:.3g}</td>'
        f'<td class="number" data-label="numbers compared">{each.n_cells}</td></tr>'
        for each in found
    )
    table = (
        (
            f'<details class="small"><summary>How near each set comes to the published numbers</summary><p>Half of the report\'s numbers are nearer to ours '
            'than this factor; 1 is equal.</p><div class="scroll"><table class="words"><thead><tr><th scope="col">set of runs</th>'
            '<th scope="col" class="number">factor</th><th scope="col" class="number">numbers compared</th></tr></thead>'
            f"<tbody>{rows}</tbody></table></div></details>"
        )
        if found
        else ""
    )
    return (
        f"<p>Decided on: <strong>{escape(experiment.runs[experiment.primary].title)}</strong>, unless a row names another set. "
        f"{page.prose(experiment.primary_why)}</p>{table}"
    )


def _matrix(made: Reproduction, part: str, heading: str) -> str:
    """A row per claim of a part: claimed, ours, interval and verdict; those that hold first."""
    claims = [claim for claim in made.experiment.claims if claim.part == part]
    if not claims:
        return ""
    decided = {each.claim.name: each for each in made.chosen}
    bodies = []
    for verdict in (*VERDICTS, ""):
        rows = [
            _matrix_row(made, claim, decided.get(claim.name))
            for claim in claims
            if (decided[claim.name].verdict if claim.name in decided else "") == verdict
        ]
        if rows:
            title = f"{(verdict or 'not run this time').capitalize()} ({len(rows)})"
            bodies.append(
                f'<tbody><tr class="check"><th scope="rowgroup" colspan="5">{title}</th></tr>{"".join(rows)}</tbody>'
            )
    heads = "".join(f'<th scope="col"{extra}>{head}</th>' for head, extra in (
        ("the report", ' class="number"'), ("ours", ' class="number"'), ("95 % interval", ' class="number"'), ("result", "")))  # fmt: skip
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(heading)}"><table class="words matrix">'
        f'<thead><tr><th scope="col">{escape(heading)}</th>{heads}</tr></thead>'
        f"{''.join(bodies)}</table></div>"
    )


def _matrix_row(made: Reproduction, claim: Claim, decision: Decision | None) -> str:
    """A claim and its numbers."""
    also = "".join(f"; {each['where']}" for each in claim.also)
    name = (
        f'<th scope="row"><a href="#{escape(claim.name)}">{escape(claim.text)}</a> '
        f'<span class="soft">{escape(claim.where + also)}</span></th>'
    )
    if decision is None:
        return f'<tr>{name}<td colspan="4" class="soft">needs {escape(", ".join(claim.on))}</td></tr>'
    is_elsewhere = decision.on and decision.on != made.experiment.primary
    on = (
        f' <span class="soft">{escape(made.experiment.runs[decision.on].title)}</span>'
        if is_elsewhere
        else ""
    )
    cells = (
        ("number", "the report", escape(published_text(decision))),
        ("number", "ours", _our_number(made, decision)),
        ("number", "95 % interval", escape(interval_text(decision))),
    )
    numbers = "".join(f'<td class="{kind}" data-label="{head}">{text}</td>' for kind, head, text in cells)
    return f"<tr>{name}{numbers}<td>{chip(decision.verdict, SHORT)}{on}</td></tr>"


def _sensitivity(made: Reproduction) -> str:
    """The claims on further sets: how far results hang on what was assumed."""
    others = made.others
    if not others:
        return ""
    by_claim = {each.claim.name: each for each in made.chosen}
    rows = []
    for each in others:
        is_other = each.verdict != by_claim[each.claim.name].verdict
        rows.append(
            f'<tr><th scope="row"><a href="#{escape(each.claim.name)}">{escape(each.claim.text)}</a></th>'
            f'<td data-label="run on">{escape(made.experiment.runs[each.on].title)}</td>'
            f'<td class="number" data-label="ours">{_our_number(made, each)}</td>'
            f'<td class="number" data-label="95 % interval">{escape(interval_text(each))}</td>'
            f"<td>{chip(each.verdict, SHORT)}{' another result' if is_other else ''}</td></tr>"
        )
    heads = "".join(
        f'<th scope="col">{head}</th>' for head in ("claim", "run on", "ours", "95 % interval", "result")
    )
    return (
        f'<details id="sensitivity"><summary>Sensitivity: the same claims on further sets of runs ({len(rows)})</summary>'
        "<p>These are no votes: they show how far a result hangs on the machine and on what was assumed.</p>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="Sensitivity"><table class="words"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _setup(made: Reproduction) -> str:
    """The report's set-up, ours, and what was run."""
    experiment = made.experiment
    theirs = "".join(f"<p>{page.prose(text)}</p>" for text in experiment.setup)
    ours = "".join(f"<p>{page.prose(text)}</p>" for text in experiment.done)
    heads = ("set of runs", "CPUs", "work", "schedulers", "costs, device", "how much")
    rows = []
    for name, runs in experiment.runs.items():
        done = made.samples.done.get(name)
        size = made.sizes.get(name)
        policies = ", ".join(
            label if label == policy else f"{label} = {policy}" for label, policy in runs.policies.items()
        )
        what = _work(runs, size or runs.full)
        amount = (
            made.left_out.get(name, "")
            if done is None or size is None
            else done.problem
            or (
                f"{done.n_runs} runs, {page.counted(size.seeds, 'run' if runs.program else 'seed')} of each"
                + (f", scale {size.scale:g}" if runs.scaled else "")
                + (f", of {made.earlier[name]}" if name in made.earlier else "")
            )
        )
        machine = page.counted(runs.machine.cpus, "CPU") if runs.machine.cpus else "as each workload says"
        if runs.execution.is_parallel:
            machine += f", in real time, on {page.counted(os.cpu_count() or 1, 'CPU')} of this machine"
        if not runs.rt_throttling:
            machine += ", real-time throttling off"
        options = runs.machine.as_json()
        costs = ", ".join(options["costs"] + options["io"]) or "-"
        cells = zip(heads[1:], (machine, what, policies, costs, amount), strict=True)
        rows.append(
            f'<tr><th scope="row">{escape(runs.title)}</th>'
            + "".join(f'<td data-label="{head}">{escape(cell)}</td>' for head, cell in cells)
            + "</tr>"
        )
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return f"""<section id="setup" class="about">
<h2>Set-up: what was done</h2>
<div class="two"><div class="half"><h3>In the report</h3>{theirs}</div><div class="half"><h3>Here</h3>{ours}</div></div>
<div class="scroll" tabindex="0" role="region" aria-label="Sets of runs"><table class="words">
<thead><tr>{columns}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>
</section>"""


def _work(runs: Runs, size: Size) -> str:
    """What a set runs, as one would type it."""
    if not runs.program:
        return ", ".join(workload_of(text, runs, size) for text in runs.workloads.values())
    program = runs.program.replace("{runs}", str(size.seeds)).replace("{workload}", "...")
    return f"{program}, which stands for {'; '.join(runs.workloads.values())}"


# ---- claims -----------------------------------------------------------------


def _claims(made: Reproduction, part: str, heading: str) -> str:
    """All claims of a part."""
    bodies = []
    for claim in made.experiment.claims:
        if claim.part == part:
            mine = [decision for decision in made.decisions if decision.claim is claim]
            bodies.append(_claim(made, mine) if mine else _not_run(claim))
    return f'<section id="{part}"><h2>{escape(heading)}</h2>{"".join(bodies)}</section>' if bodies else ""


def _not_run(claim: Claim) -> str:
    """A claim whose sets were all left out."""
    return (
        f'<div class="claim" id="{escape(claim.name)}"><h4>{escape(claim.text)}</h4>'
        f'<p class="soft">Not run this time: needs {escape(", ".join(claim.on))}.</p></div>'
    )


def _claim(made: Reproduction, decisions: list[Decision]) -> str:
    """A claim: figures, verdicts and reasons on each set."""
    claim = decisions[0].claim
    titles = {name: runs.title for name, runs in made.experiment.runs.items()}
    measured = [each for each in decisions if each.on]
    rows = "".join(
        f'<tr><th scope="row">{escape(titles[each.on])}</th><td class="number" data-label="ours">{_our_number(made, each)}</td>'
        f'<td class="number" data-label="95 % interval">{escape(interval_text(each))}</td><td>{chip(each.verdict)}</td>'
        f"<td>{page.prose(each.reason)}</td></tr>"
        for each in measured
    )
    heads = (
        '<th scope="col">run on</th><th scope="col" class="number">ours</th>'
        '<th scope="col" class="number">95 % interval</th><th scope="col">verdict</th><th scope="col">why</th>'
    )
    table = f'<div class="scroll"><table class="words"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    lacking = "".join(
        f"<p>{chip(each.verdict)} {page.prose(each.reason)}</p>" for each in decisions if not each.on
    )
    published = published_text(decisions[0])
    measure = ""
    if claim.measure:
        otherwise = (
            ", which does not say what the text says"
            if contradicts_itself(claim, decisions[0].published)
            else ""
        )
        figure = (
            "" if published == "-" else f" Published: <strong>{page.prose(published)}</strong>{otherwise}."
        )
        measure = f"<p>Measured: {page.prose(claim.measure)}.{figure}</p>"
    note = f'<p class="soft">{page.prose(claim.note)}</p>' if claim.note else ""
    if claim.also:
        note = f"<p>The same fact, also in:</p><ul>{''.join(map(_also, claim.also))}</ul>{note}"
    rule = rule_text(claim)
    details = ""
    if rule:
        assert claim.ours is not None
        details = (
            f'<details class="small"><summary>The test, and every run, seed 1 first</summary><p>It holds with {page.prose(rule)}.</p>'
            f"<p><code>{escape(claim.ours.text)}</code></p>{''.join(_runs(made, each) for each in measured)}"
            "</details>"
        )
    return (
        f'<div class="claim" id="{escape(claim.name)}"><h4>{escape(claim.text)} '
        f'<span class="soft small">({escape(claim.where)})</span></h4>{measure}{lacking}'
        f"{table if measured else ''}{note}{details}</div>"
    )


def _also(place: Mapping[str, str]) -> str:
    """A further place that says the same."""
    stated = f": <strong>{page.prose(place['stated'])}</strong>" if "stated" in place else ""
    return f"<li>{escape(place['where'])}: {page.prose(place['text'])}{stated}</li>"


def _runs(made: Reproduction, decision: Decision) -> str:
    """Every value behind a figure, and every run behind the values."""
    sample = decision.sample
    if sample is None:
        return ""
    title = made.experiment.runs[decision.on].title
    return f"<p>{escape(title)}: {values_text(made, sample)}.</p>"


def _our_number(made: Reproduction, decision: Decision) -> str:
    """Our figure, with a link to its runs."""
    if decision.sample is None:
        return "-"
    return f'<a href="{link(made, decision.sample.folders[0])}">{escape(ours_text(decision))}</a>'


def _repeat(made: Reproduction) -> str:
    """How to do all of it again."""
    scaled = any(runs.scaled for runs in made.experiment.runs.values())
    scale = (
        "<p>The work of some sets is scaled, as the table of what was done says: their times are a part of the report's, "
        "ratios are compared as they are. <code>--scale</code> chooses another size; 1 is the report's own.</p>"
        if scaled
        else ""
    )
    return f"""<section id="repeat"><h2>How to repeat this</h2>
<p><code>{escape(command_text(made))}</code> does the same again; runs that are there already are not done anew. The
experiment is <code>experiments/report-{made.experiment.report}/</code>: who disagrees with a verdict changes one row of
<code>claims.toml</code>. All numbers of this page are in <code>claims.json</code> beside it.</p>{scale}</section>"""
