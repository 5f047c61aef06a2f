# SPDX-License-Identifier: MIT
"""Pages of the reference that the code itself gives: each function returns the text of one.

Invariant: a command, a metric, a policy, a knob, a workload, a rule that is added to the
code is on its page without a line here.
Read next: stage.py, which says where each page goes.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import click
import typer

from schedlab import __all__ as offered
from schedlab import errors
from schedlab.cli.app import app
from schedlab.cli.group import EXAMPLES, GROUPS
from schedlab.cli.listing import describe_policy, describe_workload
from schedlab.metrics.dictionary import DICTIONARY
from schedlab.policy.find import list_policies
from schedlab.records.file import Kind, Overhead, Stop
from schedlab.workload.find import workload_names

LEVELS = {"run": "One value per run", "task": "One value per task", "cpu": "One value per CPU"}
DIRECTIONS = {"lower": "lower is better", "higher": "higher is better", "none": ""}
EXIT_CODES = {
    0: "good",
    1: "ran, but a check failed; the result is there",
    2: "a word of the command line, or a file, is wrong; nothing was written",
    3: "something is missing on this machine; the message says how to get it",
    130: "Ctrl-C; what had finished is kept",
}


def pages(root: Path) -> dict[str, str]:
    """Text of each generated page, by its name in the site."""
    return {
        "reference/command-line.md": command_line(),
        "reference/python.md": python(),
        "reference/metrics.md": metrics(),
        "reference/policies.md": policies(root),
        "reference/workloads.md": workloads(),
        "reference/binary-formats.md": binary_formats(root),
        "reference/rules.md": rules(root),
        "reference/errors.md": exit_codes(),
    }


def _plain(text: str) -> str:
    """Text for a table or a paragraph, in which no character is markup."""
    line = " ".join(text.split())
    return re.sub(r"([\\`*_{}\[\]<>|$])", r"\\\1", line)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _page(title: str, lead: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", lead, *parts]) + "\n"


def command_line() -> str:
    """Every command with its arguments and options, as `--help` has them."""
    group = typer.main.get_command(app)
    context = click.Context(group, info_name="schedlab")
    parts = []
    for title, examples in GROUPS.items():
        parts.append(f"## {title}")
        for name in examples:
            command = group.get_command(context, name)
            if command is not None:
                parts.append(_command(name, command, click.Context(command, info_name=name, parent=context)))
    lead = (
        "In a checkout `./lab` stands for `schedlab`. Every command answers `--help`; "
        "`schedlab --install-completion` lets a shell complete names."
    )
    return _page("Command line", lead, *parts)


def _command(name: str, command: click.Command, context: click.Context) -> str:
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"### schedlab {name}", _plain(command.help or "")]
    if isinstance(command, click.Group):
        for each in command.commands.values():
            parts.append(f"- `schedlab {name} {each.name}`: {_plain(each.help or '')}")
    parts.append(f"```\nschedlab {name} {usage}\n```")
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record:
            rows.append((f"`{record[0]}`", _plain(record[1])))
        elif isinstance(parameter, click.Argument):
            rows.append(
                (f"`{parameter.make_metavar(context)}`", _plain(getattr(parameter, "help", "") or ""))
            )
    if rows:
        parts.append(_table(("option", "meaning"), rows))
    if name in EXAMPLES:
        parts.append(f"Example:\n\n```\n$ {EXAMPLES[name]}\n```")
    return "\n\n".join(parts)


def python() -> str:
    """What `import schedlab` offers, from its docstrings."""
    lead = (
        "What `schedlab.__all__` lists is a contract ([versions](../versions.md)); other modules may change."
    )
    parts = []
    for name in sorted(offered, key=lambda name: (name != "run", name != "sweep", name)):
        import schedlab

        is_class = inspect.isclass(getattr(schedlab, name))
        directive = (
            f".. autoclass:: schedlab.{name}\n   :members:"
            if is_class
            else f".. autofunction:: schedlab.{name}"
        )
        parts.append(f"```{{eval-rst}}\n{directive}\n```")
    return _page("Python", lead, *parts)


def metrics() -> str:
    """The dictionary of metrics."""
    lead = (
        "Every number that schedlab prints about a run is one of these, computed from the records by "
        "the same code on every host. `schedlab metrics NAME` shows one. "
        "What the times mean, with a picture: [The times of a task](../times.md)."
    )
    parts = []
    for level, title in LEVELS.items():
        rows = [
            (
                f"`{metric.name}`",
                metric.unit,
                _plain(metric.formula),
                DIRECTIONS[metric.direction],
                _plain(metric.reference),
            )
            for metric in DICTIONARY.values()
            if metric.level == level
        ]
        if rows:
            parts += [f"## {title}", _table(("metric", "unit", "formula", "direction", "definition"), rows)]
    return _page("Metrics", lead, *parts)


def policies(root: Path) -> str:
    """Each policy's header comment, and its knobs."""
    lead = (
        "Each policy is one C file; its header comment is its manual, and is shown here. "
        "`schedlab policies NAME` prints the same. How to write one: "
        "[policies](../folders/policies.md)."
    )
    parts = []
    for name in list_policies():
        entry = describe_policy(name)
        comment = (root / "policies" / f"{name}.bpf.c").read_text(encoding="utf-8").split("*/")[1]
        lines = [line.removeprefix(" *").removeprefix(" ") for line in comment.splitlines()[2:]]
        prose = "\n".join(lines).split("\n@")[0].split("\nRead next:")[0].rstrip()
        parts += [f"## {name}", f"```\n{prose}\n```"]
        reason = _plain(entry["work_conserving_reason"] or "")
        parts.append(f"Work-conserving: {'yes' if entry['work_conserving'] else 'no'}; {reason}.")
        knobs = [
            (
                f"`{name}.{knob['name']}`",
                f"`{knob['default_text']}`",
                f"`{knob['range_text']}`",
                _plain(knob["text"]),
            )
            for knob in entry["knobs"]
        ]
        if knobs:
            parts.append(_table(("knob", "default", "range", "meaning"), knobs))
    return _page("Policies and their knobs", lead, *parts)


def workloads() -> str:
    """Each workload with its question, params and tasks."""
    lead = (
        "`schedlab run NAME` runs one, `NAME:PARAM=VALUE` a variant. What each is good for: "
        "[Workloads](../workloads.md); the format: [Formats](../formats.md)."
    )
    parts = []
    for name in workload_names():
        entry = describe_workload(name)
        parts += [f"## {name}", f"**{_plain(entry['title'])}.** {_plain(entry['question'])}"]
        parts += [_plain(text) for text in entry["description"].split("\n\n") if text.strip()]
        classes = ", ".join(f"`{each['name']}` ({each['tasks']})" for each in entry["classes"])
        parts.append(f"CPUs: {entry['cpus']}. Tasks: {classes}.")
        rows = [
            (f"`{param}`", f"`{default}`", _plain(entry["about"][param] or ""))
            for param, default in entry["params"].items()
        ]
        if rows:
            parts.append(_table(("param", "default", "meaning"), rows))
    return _page("Workloads and their params", lead, *parts)


def binary_formats(root: Path) -> str:
    """The headers of the two binary formats, and the numbers as Python has them."""
    lead = "The C headers are the authority; what the fields mean is in [Formats](../formats.md)."
    parts = []
    for enum, title in (
        (Kind, "Kinds of record"),
        (Stop, "Why a task stopped"),
        (Overhead, "Kinds of overhead"),
    ):
        rows = [(f"`{each.name}`", str(int(each))) for each in enum]
        parts += [f"## {title}", _table(("name", "number"), rows)]
    for name in ("record.h", "program.h"):
        text = (root / "include/schedlab" / name).read_text(encoding="utf-8")
        parts += [f"## {name}", f"```c\n{text}```"]
    return _page("Record and program, the binary formats", lead, *parts)


def rules(root: Path) -> str:
    """Which test holds which rule of docs/semantics.md."""
    text = (root / "docs/semantics.md").read_text(encoding="utf-8")
    cases = defaultdict(list)
    for path in sorted((root / "tests/conformance").glob("*.toml")):
        # A head stands before the workload: two files in one, which TOML does not take as a whole.
        case = dict(re.findall(r'^(rule|question) = "(.*)"$', path.read_text(encoding="utf-8"), re.MULTILINE))
        cases[case["rule"]].append((f"`{path.stem}`", _plain(case["question"])))
    parts = []
    for rule, title in re.findall(r"^### (S\d+) (.+)$", text, re.MULTILINE):
        parts.append(f"## {rule}: {title}")
        parts.append(_table(("case", "question"), cases.pop(rule, [])))
    lead = (
        "The rules themselves are in [Semantics](../semantics.md). A case is a small policy and a set of tasks "
        "in `tests/conformance/`; the same files run on every host. One whose name ends in `_fails` must be refused."
    )
    return _page("Rules and the cases that test them", lead, *parts)


def exit_codes() -> str:
    """Exit codes and classes of errors."""
    rows = [(str(code), text) for code, text in EXIT_CODES.items()]
    found = [
        (f"`{name}`", str(each.exit_code), _plain((inspect.getdoc(each) or "").split("\n")[0]))
        for name, each in vars(errors).items()
        if inspect.isclass(each) and issubclass(each, errors.SchedlabError)
    ]
    return _page(
        "Exit codes and errors",
        "The command line leaves with one of these codes; with `--json`, `error.kind` names the class.",
        "## Exit codes",
        _table(("code", "meaning"), rows),
        "## Classes, as Python raises them",
        _table(("class", "exit code", "meaning"), found),
    )
