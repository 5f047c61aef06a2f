# SPDX-License-Identifier: MIT
"""The pieces of a report's page: failures, warnings, sentences, tables, provenance.

Each function takes what data.py gathered and returns what templates/report.html shows.

Read next: write.py, which puts the pieces together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from ..html import Cell, Table
from ..metrics.dictionary import DICTIONARY
from ..model import OPTIONS, show_value
from ..stats.sentences import label, show_number, show_time
from ..units import counted
from ..workload.events import read_events
from .by_task import is_disturbed
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


# ---- what is wrong ------------------------------------------------------------


def failures(sections: Sequence[Section]) -> list[tuple[str, str, str, str]]:
    """Failed runs, equal ones together: policy, place, which seeds, error."""
    groups: dict[tuple[Any, ...], set[int]] = {}
    for run in (run for s in sections for run in s.failed):
        place = "every workload" if run.get("error_kind") == "compile" else run["workload"]
        groups.setdefault((run["policy"], place, run["error"] or ""), set()).add(run["seed"])
    return [
        (
            policy,
            place,
            f"{f'{len(seeds)} seeds, the first' if len(seeds) > 1 else 'seed'} {min(seeds)}",
            error,
        )
        for (policy, place, error), seeds in groups.items()
    ]


def warnings(sections: Sequence[Section]) -> dict[str, Any] | None:
    """Warnings of the comparisons, each kind once per policy and workload."""
    seen: dict[tuple[Any, ...], str] = {}
    places: dict[str, list[str]] = {}
    for section in sections:
        for comparison in section.comparisons:
            for warning in comparison["warnings"]:
                policy = "" if warning["kind"] == "too-few" else warning["policy"]
                more = len(warning["metrics"]) - 1
                others = f" (and {counted(more, 'more metric')})" if policy and more else ""
                where = f"{section.workload}" + (f", {policy}" if policy else "")
                text = f"{warning['text']}{others}; {warning['hint']}."
                if seen.setdefault((section.workload, policy, warning["kind"]), text) == text:
                    places.setdefault(text, []).append(where)
    if not seen:
        return None
    kinds = Counter(kind for _, _, kind in seen)
    advice = "The numbers stand; read them with these in mind."
    if "confounded" in kinds:
        advice = "Numbers of policies under different conditions say nothing about the policies."
    elif "survivors" in kinds:
        advice = "Numbers that are not of the same tasks under all policies must not be compared."
    lines = [f"{_places(list(dict.fromkeys(where)))}: {text}" for text, where in places.items()]
    return {
        "count": len(seen),
        "summary": ", ".join(f"{kind} ({n})" if n > 1 else kind for kind, n in kinds.most_common()),
        "advice": advice,
        "lines": lines,
        "is_open": len(lines) <= WARNINGS_OPEN,
    }


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
    text += f", on {counted(section.cpus, 'CPU')} of {host}."
    seeds = len(section.seeds)
    if seeds > 1:
        text += (
            f" Each policy ran {seeds} times, each time with other random numbers (a seed), "
            "the same for all policies."
        )
    else:
        text += " One seed: what is seen here is one case, not a rule."
    return text


def table(section: Section, names: Sequence[str], *, caption: str) -> Table:
    """One row per policy, one column per metric: the mean, and its interval below."""
    heads = [("policy", ""), ("check", ""), *((_heading(n), DICTIONARY[n].formula) for n in names)]
    best = {name: _best(section, name) for name in names}
    rows = [] if section.recorded is None else [_recorded_row(section.recorded, names)]
    for policy in section.policies:
        cells = [_cell(section, policy, name, is_best=policy in best[name]) for name in names]
        bad = sum(run["policy"] == policy for run in section.failed)
        runs = sum(run["policy"] == policy for run in section.runs)
        rows.append((policy, [f"{bad} of {runs} failed" if bad else "ok", *cells]))
    return Table("Table", caption, heads, rows)


def _recorded_row(run: dict[str, Any], names: Sequence[str]) -> tuple[str, list[str | Cell]]:
    """What was recorded, above what other policies make of it."""
    head = f"as recorded: {run['host']}, {run['policy']}"
    if is_disturbed(run):
        return head, ["disturbed", *["-"] * len(names)]
    values = [(name, run["metrics"].get(name)) for name in names]
    return head, ["ok", *("-" if v is None else Cell(show_number(name, v)) for name, v in values)]


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


def _cell(section: Section, policy: str, name: str, *, is_best: bool) -> str | Cell:
    """One cell of the table."""
    interval = section.intervals.get(policy, {}).get(name)
    if interval is None:
        return "-"
    between = ""
    if interval.method == "deterministic" and not math.isnan(interval.low):
        between = "the same each time"
    elif not math.isnan(interval.low):
        between = f"{show_number(name, interval.low)} to {show_number(name, interval.high)}"
    data = {"data-policy": policy, "data-metric": name, "data-mean": repr(interval.estimate)}
    return Cell(show_number(name, interval.estimate), between, data | ({"class": "best"} if is_best else {}))


# ---- how to repeat it ---------------------------------------------------------


def provenance(section: Section, shown: set[str]) -> tuple[list[tuple[str, Any]], list[tuple[str, str]]]:
    """What is needed to repeat the runs: the command, every option, knobs; each policy's source, once."""
    first = section.runs[0]
    environment = "; ".join(f"{k} {v}" for k, v in first.get("environment", {}).items() if v)
    facts = [("command", first["command_line"])] if first.get("command_line") else []
    facts += [
        ("host", f"{section.host}, {counted(section.cpus, 'CPU')}"),
        ("seeds", ", ".join(map(str, section.seeds))),
        ("tick", show_time(first.get("tick_ns") or 0)),
        *_options(first),
        *(
            [("events", "; ".join(event.sentence for event in read_events(first["events"])))]
            if first.get("events")
            else []
        ),
        *([("interleaving", first["interleave"])] if first.get("interleave") else []),
        ("environment", environment),
    ]
    if section.shown_seed is not None:
        facts.append(("drawn in time", f"seed {section.shown_seed}"))
    sources: list[tuple[str, str]] = []
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
    return facts, sources


def _options(run: dict[str, Any]) -> list[tuple[str, str]]:
    """Options of the command line that a run was done with; those left out are the host's own."""
    shown = ((name, option) for name, option in OPTIONS.items() if name not in ("host", "cpus", "tick_ns"))
    return [
        (option.flag, show_value(name, run[name]))
        for name, option in shown
        if name in run and (run[name] != option.json_default or not option.is_condition)
    ]


def _sources(section: Section, run: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The files of a policy, as they were when it ran."""
    folder = section.folder(run)
    for name in run["source"]["files"]:
        # Of the run's own folder: its JSON may be from anywhere.
        if folder and (folder / name).resolve().is_relative_to(folder.resolve()):
            with suppress(OSError):
                yield name, (folder / name).read_text(encoding="utf-8", errors="replace")
