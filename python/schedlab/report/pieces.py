# SPDX-License-Identifier: MIT
"""The pieces of a report's page: verdict, sentences, tables, charts, Gantt data.

Each function takes what data.py gathered and returns HTML. Must stay
true: every text that comes from a file passes `escape` or `in_script`; failed
runs and warnings stand above the numbers.
Read next: write.py, which puts the pieces together.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from ..metrics.dictionary import DICTIONARY
from ..model import OPTIONS, show_value
from ..stats.sentences import label, show_number, show_time
from .by_task import disturbed_text, is_disturbed
from .data import Section

#: Warnings shown without being asked for.
WARNINGS_OPEN = 4
HOSTS = {
    "sim": "a simulated machine in virtual time, so that every run repeats to the bit",
    "wasm": "a simulated machine in virtual time, in a sandbox, so that every run repeats to the bit",
    "uthreads": "user-level threads",
    "kernel": "the teaching kernel",
    "linux": "Linux",
    "guest": "Linux in a virtual machine",
}


def in_script(value: Any) -> str:
    """JSON that may stand between script tags, whatever names it holds."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def prose(text: str) -> str:
    """Escape a sentence, show `names` as code, keep numbers on one line with their units, and options whole."""
    kept = escape(re.sub(r"(?<=\d) (?=(?:ns|us|ms|s|%)(?![\w]))", "\u00a0", text))
    kept = re.sub(r"(?<![\w`-])--[a-z][\w-]*(?: \d+\b)?", r'<span class="option">\g<0></span>', kept)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", kept)


def nr(count: int, word: str) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> nr(1, "seed"), nr(1200, "run")
    ('1 seed', '1,200 runs')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


# ---- verdict ------------------------------------------------------------------


def verdict(sections: Sequence[Section]) -> str:
    """Say first whether the numbers may be believed: consistency, failures, warnings, notes."""
    total = sum(len(s.runs) for s in sections)
    failed = [run for s in sections for run in s.failed]
    good = total - len(failed)
    parts = []
    if good:
        rest = "" if not failed else f" The other {len(failed)} failed and have no numbers."
        parts.append(
            f'<div class="box good" id="consistency"><p><strong>Consistency: ok in {good:,} of {nr(total, "run")}.'
            f"</strong> CPU time adds up, no task was on two CPUs or lost, no CPU stayed idle beside "
            f"waiting tasks where its policy declares otherwise.{rest}</p></div>"
        )
    parts += _failures(failed)
    refused = [c for s in sections for c in s.comparisons if c["error"]]
    for c in refused:
        text = f"{c['workload']}, {c['policy_a']} against {c['policy_b']}: {c['error']}"
        parts.append(f'<div class="box bad"><p>{escape(text)}</p></div>')
    parts += _warnings(sections)
    recordings = [run for s in sections for run in [s.recorded, *s.runs] if run is not None]
    for text in dict.fromkeys(filter(None, map(disturbed_text, recordings))):
        parts.append(
            f'<div class="box warning"><p><strong>While it was recorded,</strong> {prose(text)}.</p></div>'
        )
    notes = list(dict.fromkeys(note for s in sections for note in s.notes))
    if notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in notes[:20])
        more = f"<li>and {len(notes) - 20} more</li>" if len(notes) > 20 else ""
        parts.append(
            '<div class="box warning"><p><strong>Not everything could be shown.</strong></p>'
            f"<ul>{items}{more}</ul></div>"
        )
    return "\n".join(parts)


def _failures(failed: Sequence[dict[str, Any]]) -> list[str]:
    """Failed runs with their error, equal ones together."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in failed:
        place = "every workload" if run.get("error_kind") == "compile" else run["workload"]
        groups.setdefault((place, run["policy"], run["error"] or ""), []).append(run)
    parts = []
    for (place, policy, error), runs in groups.items():
        seeds = sorted({run["seed"] for run in runs})
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds, the first {seeds[0]}"
        parts.append(
            f'<div class="box bad failed"><p><strong>Failed: {escape(policy)} on {escape(place)}</strong> '
            f"({which}).</p><pre>{escape(error)}</pre></div>"
        )
    return parts


def _warnings(sections: Sequence[Section]) -> list[str]:
    """Warnings of the comparisons, each kind once per policy and workload."""
    seen: dict[tuple[Any, ...], str] = {}
    places: dict[str, list[str]] = {}
    for section in sections:
        for comparison in section.comparisons:
            for warning in comparison["warnings"]:
                policy = "" if warning["kind"] == "too-few" else warning["policy"]
                more = len(warning["metrics"]) - 1
                others = f" (and {nr(more, 'more metric')})" if policy and more else ""
                where = f"{section.workload}" + (f", {policy}" if policy else "")
                text = f"{warning['text']}{others}; {warning['hint']}."
                if seen.setdefault((section.workload, policy, warning["kind"]), text) == text:
                    places.setdefault(text, []).append(where)
    if not seen:
        return []
    kinds = Counter(kind for _, _, kind in seen)
    advice = "The numbers stand; read them with these in mind."
    if "confounded" in kinds:
        advice = "Numbers of policies under different conditions say nothing about the policies."
    elif "survivors" in kinds:
        advice = "Numbers that are not of the same tasks under all policies must not be compared."
    summary = ", ".join(f"{kind} ({n})" if n > 1 else kind for kind, n in kinds.most_common())
    lines = [f"{_places(list(dict.fromkeys(where)))}: {text}" for text, where in places.items()]
    items = "".join(f"<li>{prose(line)}</li>" for line in lines)
    is_open = " open" if len(lines) <= WARNINGS_OPEN else ""
    return [
        f'<div class="box warning" id="warnings"><details{is_open}><summary><strong>{nr(len(seen), "warning")} '
        f"about the samples:</strong> {escape(summary)}. {advice}</summary><ul>{items}</ul></details></div>"
    ]


def _places(names: Sequence[str]) -> str:
    """Where a warning of the same words came up."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


# ---- words and tables ---------------------------------------------------------


def setting(section: Section) -> str:
    """What was run, in a sentence."""
    runs = [run for runs in section.good.values() for run in runs]
    host = HOSTS.get(section.host, section.host)
    total, good = len(section.policies), len(section.good)
    text = (
        f"{good} of {total} policies" if good < total else "1 policy" if total == 1 else f"{total} policies"
    )
    if runs:
        tasks = sum(run["metrics"]["tasks"] for run in runs) / len(runs)
        busy = sum(run["metrics"]["busy_ns"] for run in runs) / len(runs)
        text += f" got the same {tasks:,.0f} tasks, about {show_time(busy)} of CPU time"
    else:
        text += " ran"
    text += f", on {nr(section.cpus, 'CPU')} of {host}."
    seeds = len(section.seeds)
    if seeds > 1:
        text += (
            f" Each policy ran {seeds} times, each time with other random numbers (a seed), "
            "the same for all policies."
        )
    else:
        text += " One seed: what is seen here is one case, not a rule."
    return text


def table(section: Section, names: Sequence[str], *, caption: str) -> str:
    """One row per policy, one column per metric: the mean, and its interval below."""
    heads = "".join(
        f'<th scope="col" title="{escape(DICTIONARY[n].formula)}">{escape(_heading(n))}</th>' for n in names
    )
    best = {name: _best(section, name) for name in names}
    rows = [] if section.recorded is None else [_recorded_row(section.recorded, names)]
    for policy in section.policies:
        cells = [_cell(section, policy, name, is_best=policy in best[name]) for name in names]
        bad = sum(run["policy"] == policy for run in section.failed)
        runs = sum(run["policy"] == policy for run in section.runs)
        verdict_text = f"{bad} of {runs} failed" if bad else "ok"
        rows.append(f'<tr><th scope="row">{escape(policy)}</th><td>{verdict_text}</td>{"".join(cells)}</tr>')
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table, scrolls sideways">'
        f'<table><caption>{escape(caption)}</caption><thead><tr><th scope="col">policy</th>'
        f'<th scope="col">check</th>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _recorded_row(run: dict[str, Any], names: Sequence[str]) -> str:
    """What was recorded, above what other policies make of it."""
    head = f'<tr><th scope="row">as recorded: {escape(run["host"])}, {escape(run["policy"])}</th>'
    if is_disturbed(run):
        return f"{head}<td>disturbed</td>{'<td>-</td>' * len(names)}</tr>"
    values = [(name, run["metrics"].get(name)) for name in names]
    cells = "".join(
        "<td>-</td>"
        if value is None
        else f'<td><span class="mean">{escape(show_number(name, value))}</span></td>'
        for name, value in values
    )
    return f"{head}<td>ok</td>{cells}</tr>"


def _heading(name: str) -> str:
    return {"wakeup_ns_p99": "wake-up latency, 99th percentile"}.get(name, label(name))


def _best(section: Section, name: str) -> set[str]:
    """Policies with the best mean, empty where all are equal or none is better."""
    means = {p: found[name].estimate for p, found in section.intervals.items() if name in found}
    direction = DICTIONARY[name].direction
    if direction == "none" or len(set(means.values())) < 2:
        return set()
    best = (min if direction == "lower" else max)(means.values())
    return {policy for policy, mean in means.items() if mean == best}


def _cell(section: Section, policy: str, name: str, *, is_best: bool) -> str:
    """One cell of the table."""
    interval = section.intervals.get(policy, {}).get(name)
    if interval is None:
        return "<td>-</td>"
    between = ""
    if not math.isnan(interval.low):
        text = f"{show_number(name, interval.low)} to {show_number(name, interval.high)}"
        exact = interval.method == "deterministic"
        between = f'<span class="between">{"the same each time" if exact else escape(text)}</span>'
    return (
        f'<td data-policy="{escape(policy)}" data-metric="{escape(name)}" data-mean="{interval.estimate!r}"'
        f'{" class=best" if is_best else ""}><span class="mean">'
        f"{escape(show_number(name, interval.estimate))}</span>{between}</td>"
    )


def glossary(names: Iterable[str]) -> str:
    """Say what each metric is, with its formula."""
    items = "".join(
        f"<dt>{escape(label(n))}</dt><dd>{escape(DICTIONARY[n].formula)}"
        f"{'' if DICTIONARY[n].direction == 'none' else '; ' + DICTIONARY[n].direction + ' is better'}. "
        f'<span class="soft">{escape(DICTIONARY[n].reference)}</span></dd>'
        for n in names
    )
    return f"<dl>{items}</dl>"


# ---- charts -------------------------------------------------------------------


def figure(svg: str, *, key: str, title: str, text: str = "", label: str = "", is_wide: bool = False) -> str:
    """Put a chart into a figure with its caption; `key` is unique in the page, `label` says what is drawn."""
    words = f"<span>{escape(text)}</span>" if text else ""
    # Charts are drawn one by one and all begin to count their clips at 0; in one
    # page, each needs names of its own.
    svg = re.sub(r'(\bid="|url\(#)', rf"\g<1>{key}-", svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label or title)}" ', 1)
    wide = ' class="wide"' if is_wide else ""
    # What is wide scrolls within its figure on a narrow screen, and takes the keys to do so.
    scrolls = f' tabindex="0" role="region" aria-label="{escape(title)}"' if is_wide else ""
    plot = f'<div class="plot"{scrolls}>{svg}</div>'
    return f"<figure{wide}><figcaption>{escape(title)}{words}</figcaption>{plot}</figure>"


def gantt(charts: Sequence[dict[str, Any]], key: str) -> str:
    """The Gantt viewer of a section: controls, two lanes, data."""
    if not charts:
        return ""
    metas = [{k: v for k, v in chart.items() if k != "packed"} for chart in charts]
    data = "".join(
        f'<script type="text/plain" data-chart="{i}">{chart["packed"]}</script>'
        for i, chart in enumerate(charts)
    )
    second = "1" if len(charts) > 1 else ""

    def options(chosen: str) -> str:
        return "".join(
            f'<option value="{i}"{" selected" if str(i) == chosen else ""}>{escape(c["policy"])}</option>'
            for i, c in enumerate(charts)
        )

    lanes = "".join(
        f'<div class="lane"><h4 class="lane-title"></h4><div class="scroller"><canvas tabindex="0" '
        f'role="img" aria-describedby="{key}-keys"></canvas><div class="spacer"></div></div></div>'
        for _ in "ab"
    )
    none = f'<option value=""{"" if second else " selected"}>none</option>'
    return f"""<div class="gantt" id="{key}-gantt">
<noscript><p>This chart needs JavaScript, which is switched off.</p></noscript>
<div class="controls" role="group" aria-label="Gantt chart" hidden>
<label>policy A<select name="a">{options("0")}</select></label>
<label>policy B<select name="b">{none}{options(second)}</select></label>
<label>one row per<select name="rows"><option value="cpu">CPU</option><option value="task">task</option></select></label>
<label>colour by<select name="colour"><option value="task">task</option><option value="state">how it ended</option><option value="cpu">CPU</option></select></label>
<span class="buttons"><button type="button" data-do="out" aria-label="zoom out">&#8722;</button><button type="button" data-do="in" aria-label="zoom in">+</button><button type="button" data-do="left" aria-label="earlier">&#9664;</button><button type="button" data-do="right" aria-label="later">&#9654;</button><button type="button" data-do="whole">whole run</button></span>
</div>
{lanes}
<ul class="legend" aria-label="Colours"></ul>
<div class="status" role="status"></div>
<div class="tip" hidden></div>
<p class="small soft" id="{key}-keys">Drag to move, <kbd>Ctrl</kbd> and the wheel (or two fingers) to zoom, double click to zoom in.
With the keyboard, in a chart: <kbd>&#8592;</kbd> <kbd>&#8594;</kbd> move, <kbd>+</kbd> <kbd>&#8722;</kbd> zoom, <kbd>0</kbd> whole run,
<kbd>&#8593;</kbd> <kbd>&#8595;</kbd> row, <kbd>N</kbd> <kbd>P</kbd> next and previous slice. A pixel that holds many slices is as high as its time was busy.</p>
<script type="application/json">{in_script(metas)}</script>
{data}
</div>"""


def provenance(section: Section, shown: set[str]) -> str:
    """What is needed to repeat the runs: the command, every option, knobs, each policy's source."""
    first = section.runs[0]
    environment = "; ".join(f"{k} {v}" for k, v in first.get("environment", {}).items() if v)
    facts = [("command", first["command_line"])] if first.get("command_line") else []
    facts += [
        ("host", f"{section.host}, {nr(section.cpus, 'CPU')}"),
        ("seeds", ", ".join(map(str, section.seeds))),
        ("tick", show_time(first.get("tick_ns") or 0)),
        *_options(first),
        ("environment", environment),
    ]
    if section.shown_seed is not None:
        facts.append(("drawn in time", f"seed {section.shown_seed}"))
    sources = ""
    for policy in section.policies:
        run = next(r for r in section.runs if r["policy"] == policy)
        knobs = ", ".join(f"{k} = {v}" for k, v in (run.get("knobs") or {}).items())
        digest = (run.get("source") or {}).get("hash")
        of_source = f"; source {digest[:12]}, a copy of which is in each run's folder" if digest else ""
        facts.append(
            (policy, f"{knobs or 'no knobs'}; hash {(run.get('policy_hash') or 'none')[:12]}{of_source}")
        )
        if digest and digest not in shown:
            shown.add(digest)
            sources += _sources(section, run)
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(text))}</dd>" for name, text in facts)
    return f"<dl>{items}</dl>{sources}"


def _options(run: dict[str, Any]) -> list[tuple[str, str]]:
    """Options of the command line that a run was done with; those left out are the host's own."""
    shown = ((name, option) for name, option in OPTIONS.items() if name not in ("host", "cpus", "tick_ns"))
    return [
        (option.flag, show_value(name, run[name]))
        for name, option in shown
        if name in run and (run[name] != option.json_default or not option.is_condition)
    ]


def _sources(section: Section, run: dict[str, Any]) -> str:
    """The files of a policy, as they were when it ran."""
    folder = section.folder(run)
    found = []
    for name in run["source"]["files"]:
        # Of the run's own folder: its JSON may be from anywhere.
        is_inside = folder and (folder / name).resolve().is_relative_to(folder.resolve())
        try:
            text = (folder / name).read_text(encoding="utf-8", errors="replace") if is_inside else None
        except OSError:
            text = None
        if text is not None:
            found.append(
                f'<details><summary>Source: {escape(name)}</summary><pre class="source">{escape(text)}</pre></details>'
            )
    return "".join(found)
