# SPDX-License-Identifier: MIT
"""What a person sees of a measurement: a table in colour, or plain text to mail.

Must stay true: every sample is in one of the two forms, not only its mean.
Read next: measure/bench.py.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from ..measure.bench import FIGURES, BenchResult
from ..measure.bench_series import rows
from ..measure.own_figures import describe_figure, tool_of_figure
from ..metrics.disturbance import DISTURBED_MAX, describe_counted, describe_disturbance
from ..stats.decide import EXPLORATORY
from ..stats.inference import CONFIDENCE
from ..stats.sentences import p_text, show_change, show_time
from .tables import say, show_table
from .usage import show_figure

if TYPE_CHECKING:
    from ..measure.bench import BenchPlan
    from ..measure.bench_series import Series

#: The reports' six columns first; heading of each figure.
HEADINGS = {
    "wall_ns": "wall", "user_ns": "user", "system_ns": "system", "cpu_percent": "CPU %",
    "switches_involuntary": "invol.\nswitches", "switches_voluntary": "vol.\nswitches",
    "run_delay_ns": "waited\nfor CPU", "tree_ns": "whole\ntree", "resident_kib_max": "memory",
}  # fmt: skip


def _conditions(plan: BenchPlan) -> list[str]:
    """Under what the command ran, besides its class."""
    found = [f"background: {shlex.join(argv)}" for argv in plan.background]
    return found + ([f"on CPU {','.join(map(str, plan.cpus))}"] if plan.cpus else [])


def show_bench(result: BenchResult, *, is_plain: bool) -> None:
    """Print a measurement."""
    if is_plain:
        print(plain_text(result))
        return
    plan = result.plan
    say(
        f"[bold]{escape(shlex.join(plan.argv))}[/]: {plan.n_rounds} rounds"
        f" after {plan.n_warmups} to warm up, order drawn from seed {plan.seed}; "
        + escape("".join(f"{text}; " for text in _conditions(plan)))
        + f"{escape(str(result.machine['cpu']))}, {result.machine['cpus']} CPUs, "
        f"Linux {escape(result.machine['kernel'])}"
    )
    shown = _shown_figures(result)
    columns = [("policy", [escape(policy) for policy in result.summaries])]
    for figure in shown:
        columns.append(
            (_heading(figure), [_number(figure, s[figure]["mean"]) for s in result.summaries.values()])
        )
        if figure == "wall_ns":
            columns.append(("interval", [_interval(s[figure]) for s in result.summaries.values()]))
    show_table(f"means; interval: {CONFIDENCE:.0%}, of the mean wall time; --json has all", columns)
    for line in _recorded_lines(result) + _sentences(result):
        say("  " + escape(line))
    for warning in result.warnings:
        place = f"{warning['policy']}, " if "policy" in warning else ""
        place += f"{warning['figure']}: " if "figure" in warning else ""
        say(
            f"  [yellow]{warning['kind']}[/]: {escape(place)}{escape(warning['text'])}; {escape(warning['hint'])}"
        )
        for line in warning.get("stderr", ()):
            say(f"    | {escape(line)}")


def show_commands(measured: Sequence[tuple[Series, BenchResult]]) -> None:
    """Print a table of several commands, the fastest first; no test stands behind it, since they ran one after another."""
    found = sorted(rows(measured), key=lambda row: row["mean"])
    fastest = found[0]["mean"]
    columns = [
        ("command", [escape(row["command"]) for row in found]),
        ("policy", [escape(row["policy"]) for row in found]),
        ("wall", [show_time(1e9 * row["mean"]) for row in found]),
        ("relative", [f"{row['mean'] / fastest:.2f}" for row in found]),
    ]
    show_table("commands, the fastest first; they ran one after another", columns)


def _shown_figures(result: BenchResult) -> list[str]:
    """Columns that say something: the tree's only where it outlived its command."""
    figures = [name for name in [*HEADINGS, *result.figures] if name in result.figures]
    figures = [name for name in dict.fromkeys(figures) if name in HEADINGS or tool_of_figure(name)]
    if all(sample["tree_ns"] < sample["wall_ns"] * 1.001 + 1e6 for sample in result.samples):
        figures.remove("tree_ns")
    return figures


def _heading(figure: str) -> str:
    """Of a column; a benchmark's own figure has its own name."""
    return HEADINGS.get(figure) or figure.removesuffix("_ns").replace("_", " ").replace(" ", "\n", 1)


def _number(figure: str, value: float) -> str:
    """A figure with its unit, in few digits."""
    return show_figure((FIGURES.get(figure) or describe_figure(figure))[0], value)


def _interval(summary: dict[str, Any]) -> str:
    """Both ends of the interval of a time."""
    if summary["low"] is None:
        return "-"
    return f"{show_time(summary['low'])} .. {show_time(summary['high'])}"


def _recorded_lines(result: BenchResult) -> list[str]:
    """What others had of the CPUs in all runs, and what the scheduler did in those that were recorded."""
    lines = [
        f"{policy}, {result.plan.n_rounds} runs: {describe_counted(found)}"
        for policy, found in result.disturbance.items()
        if found["share"] <= DISTURBED_MAX
    ]
    for policy, runs in result.recorded.items():
        for run in runs:
            took = run["wall_ns"] / result.summaries[policy]["wall_ns"]["mean"]
            if run["problem"]:
                lines.append(f"{policy}, recorded: {run['problem']}")
                continue
            wakeups = (
                "no wake-ups"
                if run["wakeup_ns_p99"] is None
                else (
                    f"wake-up latency p50 {show_time(run['wakeup_ns_p50'])}, p99 {show_time(run['wakeup_ns_p99'])}, "
                    f"largest {show_time(run['wakeup_ns_max'])} of {run['wakeups']:,}"
                )
            )
            lines.append(
                f"{policy}, recorded: {wakeups}; {run['migrations']:,} migrations; {run['tasks']:,} tasks waited "
                f"{show_time(run['run_queue_ns'])} for a CPU; this run took {took:.0%} of the mean"
            )
            if (text := describe_disturbance(run["disturbance"])) is not None:
                marked = " (disturbed)" if run["disturbance"]["share"] > DISTURBED_MAX else ""
                lines.append(f"{policy}, recorded{marked}: {text}")
    if result.why_not_recorded:
        lines.append(f"Wake-up latency and migrations are not known: {result.why_not_recorded}")
    return lines


def _sentences(result: BenchResult) -> list[str]:
    """What the comparison with the first policy allows to say."""
    lines = []
    told = {"a is better": "worse than", "b is better": "better than", "differs": "differs from"}
    for each in result.comparisons:
        for figure, entry in each["figures"].items():
            if entry["verdict"] not in told:
                continue
            change = "" if entry["ratio"] is None else f" ({show_change(entry['ratio'])})"
            kind = ", exploratory" if entry["family"] == EXPLORATORY else ""
            lines.append(
                f"{each['after']}: {_heading(figure).replace(chr(10), ' ')} "
                f"{_number(figure, entry['mean_a'])} -> {_number(figure, entry['mean_b'])}{change}, "
                f"{told[entry['verdict']]} {each['before']} ({p_text(entry['p_adjusted'])}, "
                f"delta {entry['cliffs_delta']:+.2f}{kind})"
            )
    if result.comparisons and not lines:
        lines.append(
            f"Undecided: no figure tells another policy from {result.comparisons[0]['before']} after so "
            "few runs; see the intervals, and give more --runs."
        )
    if result.comparisons:
        lines.append("Paired by round; p-values after Holm, of wall times and the command's own figures.")
    return lines


def _note(text: str) -> list[str]:
    """One point of a list."""
    return textwrap.wrap(text, 78, initial_indent="* ", subsequent_indent="  ", break_on_hyphens=False)


def plain_text(result: BenchResult) -> str:
    """A measurement as plain text."""
    machine, plan = result.machine, result.plan
    lines = [
        f"Command: {shlex.join(plan.argv)}",
        *(f"         {text}" for text in _conditions(plan)),
        f"Machine: {machine['cpu']}, {machine['cpus']} CPUs"[:78],
        f"Kernel:  {machine['kernel']}",
        f"Runs:    {plan.n_rounds} per policy after {plan.n_warmups} to warm up; order shuffled, seed {plan.seed}",
        "",
        f"{'policy':<22}{'wall ms':>10}{'+-':>8}{'user ms':>9}{'sys ms':>8}{'CPU %':>7}{'invol':>7}{'vol':>7}",
    ]
    for policy, summary in result.summaries.items():
        wall = summary["wall_ns"]
        half = "-" if wall["low"] is None else f"{(wall['high'] - wall['low']) / 2e6:.2f}"
        lines.append(
            f"{policy:<22}{wall['mean'] / 1e6:>10.2f}{half:>8}{summary['user_ns']['mean'] / 1e6:>9.2f}"
            f"{summary['system_ns']['mean'] / 1e6:>8.2f}{summary['cpu_percent']['mean']:>7.1f}"
            f"{summary['switches_involuntary']['mean']:>7.0f}{summary['switches_voluntary']['mean']:>7.0f}"
        )
    own = [name for name in result.figures if tool_of_figure(name)]
    for name in own:
        lines += ["", f"{name}, as the command says:"]
        lines += [
            f"  {policy:<20} {_number(name, summary[name]['mean'])}"
            for policy, summary in result.summaries.items()
        ]
    lines += ["", f"+- is half of the {CONFIDENCE:.0%} interval of the mean. Wall times, every run, ms:"]
    for policy in result.summaries:
        values = [s["wall_ns"] / 1e6 for s in result.samples if s["policy"] == policy]
        row = f"  {policy:<20}"
        for value in values:
            if len(row) > 68:
                lines.append(row)
                row = " " * 22
            row += f" {value:.2f}"
        lines.append(row)
    notes = _recorded_lines(result) + _sentences(result)
    lines += [""] * bool(notes or result.warnings)
    for note in notes:
        lines += _note(note)
    for warning in result.warnings:
        lines += _note(
            f"{warning['kind']}: "
            + (f"{warning['policy']}: " if "policy" in warning else "")
            + warning["text"]
        )
        lines += [f"  | {line}" for line in warning.get("stderr", ())]
    return "\n".join(lines)
