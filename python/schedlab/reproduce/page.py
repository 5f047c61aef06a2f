# SPDX-License-Identifier: MIT
"""The page of a reproduced report, for a reader who has never seen the report.

It says what the report asks and concludes, and opens with the audit of its own
figures; then its set-up and ours, what is true of each claim, its tables and charts
redrawn beside ours, and each claim with the test that decides it. The page is one
file that loads nothing; each number links to its run.

Must stay true: every text that comes from a file is escaped; a verdict stands
beside the numbers that it follows from.
Read next: page_audit.py, tables.py; report/write.py, the page of any folder of runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from importlib.resources import files

from ..report import pieces as page
from .claims import DIRECTION, FAILS, HOLDS, UNDECIDABLE, UNTESTED, Decision, contradicts_itself, rule_text
from .page_audit import audit_section, rows_section
from .reproduction import Reproduction
from .runs import workload_of
from .spec import PARTS, Claim, Runs, Size
from .tables import link, tables_section, values_text
from .text import command_text, count_sentences, interval_text, ours_text, published_text

CLASSES = {HOLDS: "good", DIRECTION: "doubt", FAILS: "bad", UNDECIDABLE: "none", UNTESTED: "none"}
#: For tables that are wide already.
SHORT = {DIRECTION: "direction only", FAILS: "does not", UNDECIDABLE: "not decidable"}
#: What comes of a claim over all its runs, and what is said of it.
OUTCOMES = {
    "everywhere": "Holds wherever it could be tested",
    "partly": "Holds in part: on some machines, or in direction only",
    "nowhere": "Holds nowhere",
    "open": "Cannot be tested, or was not run this time",
}


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
    from .. import __version__

    folder = files("schedlab") / "report" / "page"
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
<a class="skip" href="#summary">Skip to the verdicts</a>
<div class="page">
<header>
<p class="soft small">A report by students on CPU schedulers, run again with schedlab {escape(__version__)}</p>
<h1>{escape(experiment.title)}</h1>
<p class="question">{escape(experiment.question)}</p>
<p class="soft">{escape(experiment.source)}</p>
{_head(made)}
</header>
<main id="main">
{audit_section(made)}
{_setup(made)}
{_summary(made)}
{tables_section(made)}
{"".join(_claims(made, part, heading) for part, heading in PARTS.items())}
{rows_section(made)}
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
    """What it concludes and what came of it, in a few lines, before anything else."""
    audit = made.audit
    concludes = made.experiment.concludes
    says = f"<p><strong>It concludes:</strong> {page.prose(concludes)}</p>" if concludes else ""
    items = f'<li><a href="#audit">{escape(audit.sentence)}</a></li>'
    for part, what in (("claim", "claim"), ("left-out", "further question")):
        counts = {outcome: len(claims) for outcome, claims in _by_outcome(made, part).items()}
        if total := sum(counts.values()):
            said = ", ".join(f"{number} {_outcome_words(outcome, number)}" for outcome, number in counts.items() if number)
            text = f"Of {page.nr(total, what)}{' that it leaves open' if part == 'left-out' else ''} {said}."
            items += f'<li><a href="#summary">{escape(text)}</a></li>'
    boxes = "".join(
        f'<div class="box doubt"><p>{escape(done.runs.title)}: {escape(done.problem)}</p></div>'
        for done in made.samples.done.values() if done.problem
    )  # fmt: skip
    if made.failed:
        first = made.failed[0]
        boxes += (f'<div class="box bad"><p><strong>{page.nr(len(made.failed), "run")} failed.</strong> The first: '
                  f'{escape(first["workload"])} under {escape(first["policy"])}: {escape(str(first["error"]))}</p></div>')  # fmt: skip
    places = {"audit": "Audit", "setup": "What was done", "summary": "What is true of it",
              "tables": "Tables and charts", "claim": "Claim by claim", "rows": "Its own rows", "repeat": "Repeat it"}  # fmt: skip
    links = "".join(f'<li><a href="#{place}">{name}</a></li>' for place, name in places.items()
                    if place != "tables" or made.experiment.redrawn)  # fmt: skip
    return (f'{says}{boxes}<p><strong>What came of it:</strong></p><ul class="findings">{items}</ul>'
            f'<nav aria-label="On this page"><ul>{links}</ul></nav>')  # fmt: skip


def _outcome_words(outcome: str, number: int) -> str:
    """What is said of several claims."""
    hold = "holds" if number == 1 else "hold"
    return {"everywhere": f"{hold} wherever tested", "partly": f"{hold} in part", "nowhere": f"{hold} nowhere",
            "open": f"cannot be tested or {'was' if number == 1 else 'were'} not run"}[outcome]  # fmt: skip


def _by_outcome(made: Reproduction, part: str) -> dict[str, list[Claim]]:
    """Claims of a part by what came of them over all runs."""
    found: dict[str, list[Claim]] = {outcome: [] for outcome in OUTCOMES}
    for claim in made.experiment.claims:
        if claim.part == part:
            verdicts = {each.verdict for each in made.decisions if each.claim is claim} - {UNTESTED, UNDECIDABLE}
            outcome = ("open" if not verdicts else "everywhere" if verdicts == {HOLDS}
                       else "nowhere" if verdicts == {FAILS} else "partly")  # fmt: skip
            found[outcome].append(claim)
    return found


def _summary(made: Reproduction) -> str:
    """Every claim with its verdicts, before each is looked at."""
    tables = "".join(_matrix(made, part, heading) for part, heading in PARTS.items())
    sets = "".join(f"<li>{escape(sentence)}</li>" for sentence in count_sentences(made))
    return f"""<section id="summary">
<h2>What is true of it</h2>
<p>A claim <em>holds</em> where the whole 95 % interval of our runs lies on the side that it claims and within a factor of its
figure; in <em>direction only</em> where the effect is there but of another size; it <em>does not</em> where there is no
such effect, or the opposite one. It is <em>not decidable</em> where the effect is below the smallest step of the report's own
instrument, and <em>cannot be tested</em> where something is missing, or too few runs leave it open.
Each claim links to its numbers.</p>
{tables}
<details><summary>Counted for each set of runs</summary><ul>{sets}</ul></details>
</section>"""


def _matrix(made: Reproduction, part: str, heading: str) -> str:
    """A row per claim of a part, a verdict per set of runs, by what came of them."""
    decided = {(each.claim.name, each.on): each.verdict for each in made.decisions}
    outcomes = _by_outcome(made, part)
    names = {claim.name for claims in outcomes.values() for claim in claims}
    sets = [on for on in made.samples.done if any((name, on) in decided for name in names)]
    if not names:
        return ""
    heads = "".join(f'<th scope="col">{escape(made.experiment.runs[on].title)}</th>' for on in sets)
    bodies = []
    for outcome, claims in outcomes.items():
        rows = []
        for claim in claims:
            cells = "".join(f'<td data-label="{escape(made.experiment.runs[on].title)}">{chip(decided[claim.name, on], SHORT)}</td>'
                            if (claim.name, on) in decided else "<td></td>" for on in sets)  # fmt: skip
            if not any((claim.name, on) in decided for on in sets):
                cells = f'<td colspan="{max(1, len(sets))}">{chip(UNTESTED) if claim.lacks else "not run this time"}</td>'
            rows.append(f'<tr><th scope="row"><a href="#{escape(claim.name)}">{escape(claim.text)}</a> '
                        f'<span class="soft">{escape(claim.where)}</span></th>{cells}</tr>')  # fmt: skip
        if rows:
            title = f"{OUTCOMES[outcome]} ({len(rows)})"
            bodies.append(f'<tbody><tr class="check"><th scope="rowgroup" colspan="{1 + max(1, len(sets))}">{escape(title)}</th>'
                          f"</tr>{''.join(rows)}</tbody>")  # fmt: skip
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(heading)}"><table class="words matrix">'
            f'<thead><tr><th scope="col">{escape(heading)}</th>{heads}</tr></thead>'
            f'{"".join(bodies)}</table></div>')  # fmt: skip


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
        policies = ", ".join(label if label == policy else f"{label} = {policy}" for label, policy in runs.policies.items())
        what = _work(runs, size or runs.full)
        amount = made.left_out.get(name, "") if done is None or size is None else done.problem or (
            f"{done.nr_runs} runs, {page.nr(size.seeds, 'run' if runs.program else 'seed')} of each"
            + (f", scale {size.scale:g}" if runs.scaled else ""))  # fmt: skip
        machine = page.nr(runs.cpus, "CPU") if runs.cpus else "as each workload says"
        if runs.parallel:
            machine += f", in real time, on {page.nr(os.cpu_count() or 1, 'CPU')} of this machine"
        costs = ", ".join((*runs.costs, *runs.io)) or "-"
        cells = zip(heads[1:], (machine, what, policies, costs, amount), strict=True)
        rows.append(f'<tr><th scope="row">{escape(runs.title)}</th>'
                    + "".join(f'<td data-label="{head}">{escape(cell)}</td>' for head, cell in cells) + "</tr>")  # fmt: skip
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return f"""<section id="setup" class="about">
<h2>What was done</h2>
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
        f'<tr><th scope="row">{escape(titles[each.on])}</th><td class="number" data-label="ours">{_our_number(made, each)}</td>'
        f'<td class="number" data-label="95 % interval">{escape(interval_text(each))}</td><td>{chip(each.verdict)}</td>'
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
        otherwise = ", which does not say what the text says" if contradicts_itself(claim, decisions[0].published) else ""
        figure = "" if published == "-" else f" Published: <strong>{page.prose(published)}</strong>{otherwise}."
        measure = f"<p>Measured: {page.prose(claim.measure)}.{figure}</p>"
    note = f'<p class="soft">{page.prose(claim.note)}</p>' if claim.note else ""
    rule = rule_text(claim)
    details = ""
    if rule:
        assert claim.ours is not None
        details = (f'<details class="small"><summary>The test, and every run, seed 1 first</summary><p>It holds with {page.prose(rule)}.</p>'
                   f"<p><code>{escape(claim.ours.text)}</code></p>{''.join(_runs(made, each) for each in measured)}"
                   "</details>")  # fmt: skip
    return (f'<div class="claim" id="{escape(claim.name)}"><h4>{escape(claim.text)} '
            f'<span class="soft small">({escape(claim.where)})</span></h4>{measure}{lacking}'
            f"{table if measured else ''}{note}{details}</div>")  # fmt: skip


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
    return f'<a href="{link(made, decision.sample.directories[0])}">{escape(ours_text(decision))}</a>'


def _repeat(made: Reproduction) -> str:
    """How to do all of it again."""
    scaled = any(runs.scaled for runs in made.experiment.runs.values())
    scale = ("<p>The work of some sets is scaled, as the table of what was done says: their times are a part of the report's, "
             "ratios are compared as they are. <code>--scale</code> chooses another size; 1 is the report's own.</p>" if scaled else "")  # fmt: skip
    return f"""<section id="repeat"><h2>How to repeat this</h2>
<p><code>{escape(command_text(made))}</code> does the same again; runs that are there already are not done anew. The
experiment is <code>experiments/report-{made.experiment.report}/</code>: who disagrees with a verdict changes one row of
<code>claims.toml</code>. All numbers of this page are in <code>claims.json</code> beside it.</p>{scale}</section>"""
