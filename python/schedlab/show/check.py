# SPDX-License-Identifier: MIT
"""What a person sees of a search for worlds that break a policy.

Must stay true: "no counter-example" is said together with what was tried; never "correct".
Read next: check/search.py.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rich.markup import escape

from ..check.calls import queued_by
from ..check.coverage import ranges
from ..check.races import columns
from ..check.save import Saved
from ..check.search import Found, Report, Task
from ..check.trial import PROPERTIES, Finding, seen_as
from ..check.world import MS, World, to_toml
from ..errors import SchedlabError
from ..plots.gantt import draw_text
from ..policy.find import Policy, policy_name, source_files
from ..policy.launch_file import filled_elsewhere, launch_code, launch_file
from ..records.file import Records
from ..runs.folders import program_of_run, records_until_failure
from ..runs.junit import junit_of
from ..stats.explain import longest_wait_as_lines
from ..stats.sentences import show_time
from ..units import counted, parse_duration
from .tables import say

#: Of an explanation: what waited, who ran then, and the cause.
CAUSE_LINES = 3
#: How much of a run is drawn around a failure.
WINDOW_NS = 100 * MS
#: As core/policy.c says of a stalled task that is in no queue.
HELD = "held by the policy"


def show_report(report: Report, task: Task, saved: list[Saved]) -> None:
    """Print what a search has found."""
    name = escape(task.built.policy.name)
    if not report.n_worlds:
        say(f"[bold]Interrupted[/] before a world was tried for {name}.")
        return
    for found, files in zip(report.found, saved, strict=True):
        _show_found(found, files, task)
    covered = [
        ", ".join(sorted(report.roles)),
        f"{', '.join(map(str, sorted(report.cpus)))} CPUs",
        f"events {', '.join(sorted(report.events))}" if report.events else "",
        f"CPUs interleaved in {report.n_interleaved:,}"
        if report.n_interleaved
        else "CPUs did not interleave",
        *_schedules(report),
        f"{report.n_repeated} run twice, alike" if report.n_repeated else "",
        _lines(report),
    ]
    tried = f"{report.n_worlds:,} worlds in {report.seconds:.0f} s ({'; '.join(filter(None, covered))})"
    held = ", ".join(sorted(task.held))
    if report.found:
        say(f"[bold red]{name} failed[/] in {tried}; held against it: {held}.")
    else:
        say(
            f"[bold]No counter-example for {name}[/] in {tried}; held against it: {held}. The longest wait was "
            f"{show_time(report.longest_wait_ns)}. This is no proof: what was not tried may fail."
        )
    if report.coverage and report.coverage.never:
        say(f"Never reached: {escape(ranges(report.coverage.never))}.")
    if report.coverage and report.coverage.in_part:
        say(f"Of these a branch was never taken: {escape(ranges(report.coverage.in_part))}.")
    if waits_for := unfilled(task.built.policy):
        say(
            f"[bold]Its user half is missing[/]: nothing here puts anything into {', '.join(waits_for)}, from which "
            "the policy takes. What is said above is of the policy without it; docs/upstream.md tells how to give it one."
        )
    if report.is_interrupted:
        say("Interrupted: what was found until then is above.")
    if report.defect:
        say(f"[bold red]The search ended early[/]: {escape(report.defect)}")


def unfilled(policy: Policy) -> list[str]:
    """Queues that a user half fills, where none is given."""
    name, path = policy_name(policy.path), policy.path
    if launch_code(name, path) or launch_file(name, path):
        return []
    return filled_elsewhere(source_files(path).values())


def _lines(report: Report) -> str:
    """How much of the policy has run; empty where that was not seen."""
    lines = report.coverage
    if lines is None:
        return ""
    n_reached = lines.n_lines - len(lines.never)
    in_part = f" ({len(lines.in_part)} in part)" if lines.in_part else ""
    return f"{n_reached} of {lines.n_lines} lines of the policy reached in a sample{in_part}"


def _schedules(report: Report) -> list[str]:
    """How many there are in the windows, and how many were run."""
    windows = report.covered
    if not windows:
        return []
    n_run = sum(each.n_run for each in windows)
    n_known = sum(each.n_known for each in windows)
    most = max(each.bound.n_preemptions for each in windows)
    of = "all" if all(each.is_complete for each in windows) else (
        f"{n_run:,} of {'' if all(each.is_counted for each in windows) else 'at least '}{n_known:,}"
    )  # fmt: skip
    schedules, preemptions, places = (
        counted(n, what)
        for n, what in ((n_known, "schedule"), (most, "preemption"), (len(windows), "window"))
    )
    text = f"{schedules} of at most {preemptions} in {places}, of which {of} were run"
    if len(windows) > 1:
        return [text]
    rest = (
        ""
        if windows[0].is_complete
        else f"; go on with --interleave {replace(windows[0].bound, n_skipped=n_run)}"
    )
    return [f"{text} ({windows[0].bound}){rest}"]


def _show_found(found: Found, files: Saved, task: Task) -> None:
    """One failure: what, where, who ran meanwhile, and how to repeat it."""
    small, finding = found.smallest, found.smallest.finding
    say(f"[bold red]{finding.broken}[/]: {escape(PROPERTIES[finding.broken])}")
    say(f"  {escape(finding.text)}")
    if small.world.given is None:
        print("\n" + _indented(_tasks(small.world)) + "\n")
    for event in small.world.events:
        say(f"  Event: {escape(event.sentence)}")
    if text := columns(finding.text, task.built.policy.path):
        print(_indented(text) + "\n")
    if files.run:
        _show_run(files.run, finding)
    if found.decided is not None:
        say(f"  {found.decided.sentence}")
    say(
        f"  Found with {counted(found.first.n_tasks, 'task')}{_children(found.first)} on {_cpus(found.first)}; smallest: "
        f"{small.world.n_tasks}{_children(small.world)} on {_cpus(small.world)}, after {counted(small.n_trials, 'trial')} in {small.seconds:.1f} s. Seen {counted(found.n_seen, 'time')}."
        if small.world.given is None
        else f"  On {_cpus(small.world)}, seed {small.world.seed}. Seen {counted(found.n_seen, 'time')}."
    )
    # What is to be typed stays in one line, so that it can be copied.
    say(f"  Repeat it:   {escape(files.run_command)}", is_whole=True)
    if files.replay_command != files.run_command:
        say(f"  Once mended: {escape(files.replay_command)}", is_whole=True)
    if found.strategy:
        say(f"  First found with {found.strategy}.")
    if files.on_linux:
        say(f"  {escape(files.on_linux[:1].upper() + files.on_linux[1:])}")
    say(f"  Its run:     {escape(str(files.run))}\n" if files.run else "", is_whole=True)


def _children(world: World) -> str:
    """What is said of tasks that others start, which are not counted."""
    return " and children" if any(group.role == "forker" for group in world.groups) else ""


def _cpus(world: World) -> str:
    machine = f" ({world.topology})" if world.topology else ""
    return f"{counted(world.n_cpus, 'CPU')}{machine}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _tasks(world: World) -> str:
    """The tasks of a world as its file has them."""
    return to_toml(world).partition("[[")[2].join(("[[", "")).strip()


def _show_run(run: Path, finding: Finding) -> None:
    """Who had the CPUs around the failure, and why a task stalled; nothing where the run has left no records."""
    try:
        records, program = records_until_failure(run), program_of_run(run)
        chart = _chart(records, program.names if program else {}, finding.text)
        stretch, lines = (
            longest_wait_as_lines(records, program, finding.text)
            if seen_as(finding.broken) == "stall"
            else (None, [])
        )
        queued = queued_by(run, stretch.task, stretch.begin_ns) if stretch else ""
    except (SchedlabError, OSError, ValueError):
        return
    if chart:
        print(_indented(chart) + "\n")
    for line in lines[:CAUSE_LINES]:
        say(f"  {escape(line)}")
    if queued:
        say(f"    {escape(queued)}")
    if lines and HELD in finding.text:
        say("    At the end it was in no queue: the policy keeps it somewhere, or has lost it.")
    if lines:
        say(f"  All of it:   schedlab explain {escape(str(run))} --calls\n", is_whole=True)


def _chart(records: Records, names: Mapping[int, str], text: str) -> str:
    """Who had the CPUs around what the text of a finding tells."""
    begins = re.search(r"at (\d+ ns)| to ([\d.]+[num]?s)\b", text)
    at_ns = parse_duration((begins[1] or begins[2]).replace(" ", "")) if begins else records.end_ns
    begin_ns = max(0, min(at_ns, records.end_ns - 1) - WINDOW_NS // (2 if begins else 1))
    width = max(40, min(100, shutil.get_terminal_size((80, 24)).columns) - 6)
    return draw_text(records, names=names, width=width, n_tasks_max=12, begin_ns=begin_ns,
                     end_ns=begin_ns + WINDOW_NS)  # fmt: skip


def as_junit(report: Report, task: Task) -> str:
    """Write a report as JUnit XML: a case for each property, and a failed one for a search that was cut short."""
    failures = {}
    for found in report.found:
        finding, world = found.smallest.finding, found.smallest.world
        failures[finding.broken] = (
            finding.text.splitlines()[0], to_toml(world) if world.given is None else finding.text
        )  # fmt: skip
    name = task.built.policy.name
    cases = [(name, each, failures.get(each)) for each in sorted(task.held)]
    if early := "interrupted before its end" if report.is_interrupted else report.defect:
        cases.append((name, "search", (early, early)))
    return junit_of(f"schedlab check {name}", cases, seconds=report.seconds)
