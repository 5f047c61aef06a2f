# SPDX-License-Identifier: MIT
"""Draw tables for people, with Rich; nothing here computes a result or a verdict.

Must stay true: the consistency check is printed before any number; a narrow terminal gets
more lines, never fewer columns, units or words.
Read next: cli/app.py.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..metrics.dictionary import DICTIONARY
from ..paths import own_command
from ..runs.case import LOG_FILE
from ..stats.decide import EXPLORATORY
from ..stats.sentences import findings, fixed_makespan, method_sentence, show_change, show_number
from ..units import counted

if TYPE_CHECKING:
    from ..runs.run import RunSet

#: Columns of the table of runs: metric, heading, how the seeds are put together.
COLUMNS = (
    ("turnaround_ns_mean", "turnaround\nmean"),
    ("response_ns_mean", "response\nmean"),
    ("wakeup_ns_p99", "wake-up\np99"),
    ("starvation_ns", "longest\nwait"),
    ("slowdown_mean", "slowdown\nmean"),
    ("throughput_per_s", "tasks\nper s"),
    ("switches", "switches"),
    ("fairness_jain", "fairness"),
    ("cpu_utilisation", "CPU\nbusy"),
    ("energy_j", "energy\nJ"),
)

#: Headings of columns of words; all others are of numbers, which stand to the right.
OF_WORDS = ("command", "policy", "workload", "group", "knob", "searched", "metric", "check", "verdict")
#: Below it six columns of words would be broken in words.
TABLE_WIDTH_MIN = 100
#: A width at which lines stay whole where nobody measures it, such as in a file.
UNMEASURED_WIDTH = 140


def _console() -> Console:
    """Standard output; wide when nobody measures it, so that lines stay whole."""
    return Console() if _is_measured() else Console(width=UNMEASURED_WIDTH)


def _is_measured() -> bool:
    """Whether the width of the output is known: a terminal's, or what `COLUMNS` says."""
    return Console().is_terminal or os.environ.get("COLUMNS", "").isdecimal()


def say(markup: str, *, is_whole: bool = False) -> None:
    """Print a sentence: broken between words where the width is known and it need not stay whole, else in one line."""
    if is_whole or not _is_measured():
        _console().print(markup, highlight=False, soft_wrap=True)
        return
    text = markup.lstrip(" ")
    _console().print(Padding(text, (0, 0, 0, len(markup) - len(text)), expand=False), highlight=False)


def _mean(runs: list[dict[str, Any]], name: str) -> float | None:
    """Mean over the seeds that have the metric."""
    values = [run["metrics"][name] for run in runs if run["metrics"].get(name) is not None]
    return sum(values) / len(values) if values else None


def show_runs(result: RunSet) -> None:
    """Print what came of a plan: the verdict, a table per workload, the failures."""
    _show_verdict(result)
    groups: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = {}
    for run in result.runs:
        key = (run["workload"], run["host"], run["cpus"])
        groups.setdefault(key, {}).setdefault(run["policy"], []).append(run)
    for (workload, _, _), policies in groups.items():
        print()
        _show_run_table(workload, policies)
        _show_usage([run for runs in policies.values() for run in runs])
    for comparison in result.comparisons:
        if comparison["error"]:
            say(
                f"[red]{escape(comparison['workload'])}, {escape(comparison['policy_a'])} against "
                f"{escape(comparison['policy_b'])}: {escape(comparison['error'])}[/red]"
            )
    for key in groups:
        _show_findings(key, result.comparisons)
    _show_machine(result.runs)
    print(f"\nRuns, tables and records: {result.out}/")


def _show_usage(runs: list[dict[str, Any]]) -> None:
    """Print what `time` prints, where the runs were Linux's own."""
    from .usage import usage_columns

    columns = usage_columns(runs)
    if columns:
        print()
        show_table("all processes together", columns)
    reasons = {run["no_records"] for run in runs if run.get("no_records")}
    for reason in reasons:
        say(f"[yellow]not recorded[/]: {escape(reason)}; so there are no wake-up latencies and migrations")


def _show_machine(runs: list[dict[str, Any]]) -> None:
    """Print the warnings about this machine, for runs on Linux itself."""
    from .usage import machine_warnings

    for warning in machine_warnings(runs):
        say(f"  [yellow]{warning['kind']}[/]: {escape(warning['text'])}; {escape(warning['hint'])}")


def _show_verdict(result: RunSet) -> None:
    """Say first whether the numbers may be believed."""
    failed = [run for run in result.runs if run["status"] != "ok"]
    good = len(result.runs) - len(failed)
    if good:
        say(f"[green]Consistency: ok in {good} of {len(result.runs)} runs[/]")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in failed:
        # A policy that does not compile fails everywhere in the same words.
        place = "every workload" if run["error_kind"] == "compile" else run["workload"]
        groups.setdefault((place, run["policy"], run["error"]), []).append(run)
    for (place, policy, error), runs in groups.items():
        seeds = "" if place == "every workload" else f", seed {runs[0]['seed']}"
        more = f" (and {len(runs) - 1} more seeds)" if seeds and len(runs) > 1 else ""
        say(f"[red bold]failed[/] {escape(place)}, {escape(policy)}{seeds}{more}: {escape(error)}")
        if seeds and Path(runs[0]["directory"], "records.slr").exists():
            print(f"  to see it: {own_command()} gantt {shlex.quote(runs[0]['directory'])}")
    for note in dict.fromkeys(note for run in result.runs for note in run.get("notes", ())):
        say(f"[yellow]note[/]: {escape(note)}")
    _show_logs(result.runs)


def _show_logs(runs: list[dict[str, Any]]) -> None:
    """Print the last lines of what each policy printed, once for all of its runs."""
    printed: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs:
        if run["log"]:
            printed.setdefault((run["workload"], run["policy"]), []).append(run)
    for (workload, policy), of_policy in printed.items():
        run = next((run for run in of_policy if run["status"] != "ok"), of_policy[0])
        more = f" ({len(of_policy) - 1} more runs printed, too)" if len(of_policy) > 1 else ""
        print(f"{workload}, {policy}, seed {run['seed']} printed, at its end{more}:")
        for line in run["log"]:
            print(f"  | {line}")
        print(f"  all of it: {Path(run['directory'], LOG_FILE)}")


def _show_findings(key: tuple[Any, ...], comparisons: list[dict[str, Any]]) -> None:
    """Say which policies differ on one workload, what differs most first."""
    here = [c for c in comparisons if (c["workload"], c["host"], c["cpus"]) == key and c["metrics"]]
    if not here:
        return
    print()
    _show_warnings(here, is_grave=True)
    say(f"[bold]{escape(key[0])}[/]: what the numbers say")
    for line in findings(here):
        say(f"  {escape(line)}")
    _show_warnings(here)


def _show_warnings(comparisons: list[dict[str, Any]], *, is_grave: bool = False) -> None:
    """Print the warnings about the numbers, each kind once per policy; the grave kind in red."""
    seen = set()
    style = "red bold" if is_grave else "yellow"
    for comparison in comparisons:
        for warning in comparison["warnings"]:
            label = "" if warning["kind"] == "too-few" else f"{warning['policy']}, "
            if (label, warning["kind"]) in seen or is_grave != (
                warning["kind"] in ("survivors", "confounded")
            ):
                continue
            seen.add((label, warning["kind"]))
            more = len(warning["metrics"]) - 1
            others = f" (and {counted(more, 'more metric')})" if label and more else ""
            say(
                f"  [{style}]{warning['kind']}[/]: {escape(label)}{escape(warning['text'])}{others}; "
                f"{escape(warning['hint'])}"
            )


def show(table: Table) -> None:
    """Print a table."""
    _console().print(table, highlight=False)


def plain_table(title: str = "") -> Table:
    """A table without bars, and without a rule where that would cost too much width."""
    return Table(
        title=escape(title),
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD if _console().width >= TABLE_WIDTH_MIN else None,
        show_edge=False,
        padding=(0, 1, 0, 0),
        header_style="underline",
    )


def show_table(title: str, columns: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Print a table; one that is too wide in several parts, each with the first column."""
    for number, part in enumerate(_parts(columns, _console().width)):
        table = plain_table(title if number == 0 else "continued")
        for heading, _ in part:
            # Only a name may be broken, where it leaves no room for its numbers.
            is_name = heading == part[0][0]
            table.add_column(
                heading,
                justify="left" if heading in OF_WORDS else "right",
                no_wrap=not is_name,
                overflow="fold",
            )
        for row in zip(*(cells for _, cells in part), strict=True):
            table.add_row(*row)
        show(table)


def _parts(columns: Sequence[Any], width: int) -> Iterator[list[Any]]:
    """Put columns into tables of a width, one beside the first column if need be."""
    first, *rest = columns
    while rest:
        room = width - min(_column_width(first), max(8, width // 2))
        nr = max(1, sum(sum(map(_column_width, rest[:n])) <= room for n in range(1, len(rest) + 1)))
        yield [first, *rest[:nr]]
        rest = rest[nr:]


def _show_run_table(workload: str, policies: dict[str, list[dict[str, Any]]]) -> None:
    """One row per policy: means over the seeds."""
    first = next(iter(policies.values()))[0]
    seeds = max(len(runs) for runs in policies.values())
    title = f"{workload} on {first['host']}, {counted(first['cpus'], 'CPU')}"
    machine = [f"{name} {first[name]}" for name in ("topology", "capacity") if first.get(name)]
    title += f" ({', '.join(machine)})" if machine else ""
    title += f", mean of {seeds} seeds" if seeds > 1 else ""
    columns = [("policy", [escape(policy) for policy in policies])]
    for name, heading in COLUMNS:
        values = {policy: _mean(runs, name) for policy, runs in policies.items()}
        # A workload without sleepers has no wake-ups, a machine of equal CPUs no energy: dashes say nothing.
        if any(value is not None for value in values.values()):
            columns.append((heading, [_cell(name, values, policy) for policy in policies]))
    bad = [sum(run["status"] != "ok" for run in runs) for runs in policies.values()]
    columns.append(("check", [f"[red]{n} of {seeds} failed[/red]" if n else "ok" for n in bad]))
    show_table(title, columns)


def _column_width(column: tuple[str, list[str]]) -> int:
    """Characters that a column takes, with the space after it."""
    heading, cells = column
    lines = [*heading.split("\n"), *(Text.from_markup(cell).plain for cell in cells)]
    return max(map(len, lines)) + 2


def _show_workload_table(name: str, groups: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
    """One metric: a row per workload, a column per policy."""
    policies = list(dict.fromkeys(policy for runs in groups.values() for policy in runs))
    labels: list[str] = []
    cells: dict[str, list[Any]] = {policy: [] for policy in policies}
    for workload, runs in groups.items():
        values = {policy: _mean(runs.get(policy, []), name) for policy in policies}
        cpus = max(run["cpus"] for each in runs.values() for run in each)
        labels.append(escape(workload) + (f" ({cpus})" if cpus > 1 else ""))
        for policy in policies:
            cells[policy].append(_cell(name, values, policy))
    columns = [("workload", labels), *((escape(policy), cells[policy]) for policy in policies)]
    show_table(f"{name}: {DICTIONARY[name].formula}", columns)


def _cell(name: str, values: dict[str, float | None], policy: str) -> str:
    """A value; in bold when it is the best of its column and not all are equal."""
    value = values[policy]
    text = show_number(name, value)
    known = [v for v in values.values() if v is not None]
    direction = DICTIONARY[name].direction
    if value is None or direction == "none" or max(known) - min(known) <= 1e-9 * abs(max(known)):
        return text
    best = min(known) if direction == "lower" else max(known)
    return f"[bold]{text}[/bold]" if value == best else text


def show_demo(result: RunSet) -> None:
    """Print the demo's tables and how to go on."""
    _show_verdict(result)
    lab = own_command()
    main = next((run["workload"] for run in result.runs), None)
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for run in result.runs:
        groups.setdefault(run["workload"], {}).setdefault(run["policy"], []).append(run)
    if main is not None:
        print()
        _show_run_table(main, groups[main])
        for name in ("turnaround_ns_mean", "response_ns_mean", "starvation_ns"):
            print()
            _show_workload_table(name, groups)
        is_parallel = any(run["cpus"] > 1 for run in result.runs)
        note = "In brackets: the number of CPUs, where it is not one.\n"
        print("\n" + (note if is_parallel else ""))
    for workload in groups:
        if text := fixed_makespan([c for c in result.comparisons if c["workload"] == workload]):
            say(f"{escape(workload)}: {text}")
    print(f"\nRuns, tables and records: {result.out}/")
    print(
        "All policies got the same work: same tasks, same arrivals, same seeds.\n"
        "Bold is the best mean; the page says which differences are more than chance.\n"
        f"`{lab} metrics` explains the columns.\n"
        f"Your own policy: `{lab} new mine` writes one that works, and says how to go on."
    )


def show_policies(entries: list[dict[str, Any]]) -> None:
    """Print the policies with their knobs."""
    for entry in entries:
        if entry["error"]:
            say(f"[red bold]{escape(entry['name'])}[/]  {escape(entry['error'])}", is_whole=True)
            continue
        declared = {True: " [dim](work-conserving)[/]", False: " [dim](not work-conserving)[/]", None: ""}
        say(
            f"[bold]{escape(entry['name'])}[/]  {escape(entry['summary'])}{declared[entry['work_conserving']]}"
        )
        for knob in entry["knobs"]:
            say(
                f"    {escape(knob['name'])} = {knob['default_text']}  [dim]{knob['range_text']}[/]  "
                f"{escape(knob['text'])}"
            )


def _show_rows(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """A plain table of some keys of dicts; in a narrow terminal a paragraph for each, where no word is broken."""
    if _console().width < TABLE_WIDTH_MIN:
        for row in rows:
            say(f"[bold]{escape(str(row[columns[0]]))}[/]")
            for column in columns[1:]:
                if str(row[column]) not in ("", "-"):
                    say(f"    [dim]{column}[/] {escape(str(row[column]))}")
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(row[column])) for column in columns))
    show(table)


def show_workloads(entries: list[dict[str, Any]]) -> None:
    """Print the workloads."""
    _show_rows(entries, ("name", "tasks", "cpus", "title", "question"))


def show_workload(entry: dict[str, Any]) -> None:
    """Print one workload, as `schedlab workloads NAME --json` has it."""
    say(f"[bold]{escape(entry['name'])}[/]  {escape(entry['title'])}")
    place = f"{entry['path']}; cpus = {entry['cpus']}"
    for text in (entry["question"], *entry["description"].strip().splitlines(), place):
        if text:
            say(f"    {escape(text)}")
    for name, value in entry["values"].items():
        default = "" if value == entry["params"][name] else f" [dim](default {entry['params'][name]})[/]"
        say(f"    {escape(name)} = {escape(value)}{default}  {escape(entry['about'][name])}")
    for each in entry["classes"]:
        where = f", spawned by {each['parent']}" if each["parent"] else ""
        where += f", in group {each['group']}" if each["group"] else ""
        say(f"    task {escape(each['name'])}: {each['tasks']}{escape(where)}")
    for each in entry["groups"]:
        where = f" in {each['parent']}" if each["parent"] else ""
        cpus = f", CPUs {', '.join(map(str, each['cpus']))}" if each["cpus"] else ""
        say(f"    group {escape(each['name'] + where)}: weight {each['weight']}{cpus}")


def show_metrics(entries: list[dict[str, Any]]) -> None:
    """Print the metric dictionary."""
    rows = [
        entry | {"better": "" if entry["direction"] == "none" else entry["direction"]} for entry in entries
    ]
    columns = ("name", "unit", "better", "level", "formula", "reference")
    _show_rows(rows, columns)


def show_findings(findings: list[dict[str, Any]]) -> None:
    """Print what `doctor` found."""
    for finding in findings:
        style = "green" if finding["status"] == "ok" else "red" if finding["needed"] else "yellow"
        say(f"[{style}]{finding['status']:>8}[/]  {escape(finding['name'])}: {escape(finding['detail'])}")


def show_benchmarks(result: dict[str, Any]) -> None:
    """Print what `selfbench` measured."""
    rows = []
    for entry in result["benchmarks"]:
        row = dict(entry)
        for key in ("value", "peer_value", "ratio"):
            row[key] = "-" if entry[key] is None else f"{entry[key]:,.4g}"
        row["peer"] = entry["peer"] or "-"
        rows.append(row)
    columns = ("name", "value", "unit", "better", "peer", "peer_value", "ratio")
    _show_rows(rows, columns)
    for kind, calls in result.get("callbacks", {}).items():
        said = ", ".join(f"{name} {number:g}" for name, number in calls.items())
        say(f"callbacks per {kind}: {said}")
    for reason in result["skipped"]:
        say(f"[yellow]skipped[/]  {escape(reason)}")


def show_comparison(result: dict[str, Any]) -> None:
    """Print what `schedlab compare` found."""
    for run in result["failed_runs"]:
        say(
            f"[red bold]failed[/] {escape(run['directory'])}: {escape(run['workload'])}, "
            f"{escape(run['policy'])}, seed {run['seed']}: {escape(str(run['error']))}",
            is_whole=True,
        )
    for comparison in result["comparisons"]:
        equal = [n for n, m in comparison["metrics"].items() if m["difference"] == 0 == m["high"]]
        _show_warnings([comparison], is_grave=True)
        title, columns = _comparison_columns(comparison, left_out=equal)
        if columns[0][1]:
            show_table(title, columns)
        else:
            say(f"[bold]{escape(title)}[/]")
        if equal:
            say(
                f"  No difference seen, to the last digit with every seed: {len(equal)} of "
                f"{len(comparison['metrics'])} metrics."
            )
        say(f"  {escape(method_sentence(comparison))}")
        if columns[0][1]:
            _show_warnings([comparison])
        print()
    for note in result["notes"]:
        say(f"note: {escape(note)}")
    for gate in result["gates"]:
        style = "red bold" if gate["holds"] else "green"
        say(f"[{style}]{escape(gate['text'])}[/]")


def _comparison_columns(
    comparison: dict[str, Any], *, left_out: list[str]
) -> tuple[str, list[tuple[str, list[str]]]]:
    """One row per metric that differs at all: both means, the change with its interval, the verdict."""
    label_a, label_b = comparison["label_a"], comparison["label_b"]
    title = f"{comparison['workload']} on {comparison['host']}, {counted(comparison['cpus'], 'CPU')}: a = {label_a}, b = {label_b}"
    rows = []
    for name, entry in comparison["metrics"].items():
        if name in left_out:
            continue
        low, high = (show_change(entry[key]) for key in ("ratio_low", "ratio_high"))
        verdict = entry["verdict"] + (
            ", exploratory" if entry["family"] == EXPLORATORY and entry["better"] else ""
        )
        rows.append((
            name, show_number(name, entry["mean_a"]), show_number(name, entry["mean_b"]),
            show_change(entry["ratio"]), "-" if low == "-" else f"{low} .. {high}",
            f"{entry['cliffs_delta']:+.2f}", f"[bold]{verdict}[/]" if entry["better"] else verdict,
        ))  # fmt: skip
    headings = ("metric", "a", "b", "change", "interval", "delta", "verdict")
    return title, [(heading, [row[i] for row in rows]) for i, heading in enumerate(headings)]
