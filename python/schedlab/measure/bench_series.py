# SPDX-License-Identifier: MIT
"""Several commands, one after another: their words, their parameters, and files for other programs.

The JSON, CSV and Markdown files have the columns of hyperfine, and the policy beside them: times in seconds (Markdown: ms).

Invariant: what a shell does before, between and after runs is not measured.
Read next: bench.py, which measures one command; cli/bench.py.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import shlex
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SchedlabError, UsageError

if TYPE_CHECKING:
    from .bench import BenchResult

#: Of a scan; more are a mistake.
VALUES_MAX = 10_000
SHELL_SECONDS_MAX = 3600


@dataclass(frozen=True)
class Series:
    """One command of several."""

    text: str  #: As it was given, with the values of its parameters.
    argv: tuple[str, ...]  #: What is run.
    parameters: dict[str, str]  #: Their values, by name.

    def fill(self, text: str) -> str:
        """Put the values of its parameters into another text."""
        return _fill(text, self.parameters)


def make_series(
    words: Sequence[str], shell: str, parameters: Sequence[tuple[str, Sequence[str]]]
) -> list[Series]:
    """Read commands: without a shell named, all words are one; else each word is one, and `none` splits it itself.

    >>> [each.argv for each in make_series(["sleep {n}", "true"], "none", [("n", ["1", "2"])])]
    [('sleep', '1'), ('sleep', '2'), ('true',)]
    """
    names = [name for name, _ in parameters]
    if len(set(names)) < len(names):
        raise UsageError("a parameter is given twice; give each one list or one scan")
    found: dict[tuple[str, ...], Series] = {}
    for given in [tuple(words)] if not shell else [(word,) for word in words]:
        for values in itertools.product(*(values for _, values in parameters)):
            named = dict(zip(names, values, strict=True))
            filled = tuple(_fill(word, named) for word in given)
            argv = filled if not shell else _split(filled[0]) if shell == "none" else (shell, "-c", filled[0])
            used = {
                name: value for name, value in named.items() if any(f"{{{name}}}" in word for word in given)
            }
            found.setdefault(argv, Series(filled[0] if shell else shlex.join(filled), argv, used))
    for name in names:
        if not any(f"{{{name}}}" in word for word in words):
            raise UsageError(f"parameter {name}: no command has {{{name}}}")
    return list(found.values())


def _fill(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _split(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}; quote it as for a shell, or name one with --shell") from error
    if not words:
        raise UsageError("a command is empty")
    return words


def read_parameters(
    lists: Sequence[Sequence[str]], scans: Sequence[Sequence[str]], steps: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """Names and values of lists (name, values) and scans (name, first, last), which have a step each or one for all.

    >>> read_parameters([("a", "x,y")], [("n", "1", "2"), ("m", "0", "4")], ["1", "4"])
    [('a', ['x', 'y']), ('n', ['1', '2']), ('m', ['0', '4'])]
    """
    if len(steps) > 1 and len(steps) != len(scans):
        raise UsageError(
            f"--parameter-step-size is given {len(steps)} times for {len(scans)} scans; "
            "give it once for all, or once for each"
        )
    each = list(steps) if len(steps) > 1 else [*steps, ""][:1] * len(scans)
    return [(name, values.split(",")) for name, values in lists] + [
        scan(name, low, high, step) for (name, low, high), step in zip(scans, each, strict=True)
    ]


def scan(name: str, low: str, high: str, step: str) -> tuple[str, list[str]]:
    """Values from one number to another, both included.

    >>> scan("n", "0.5", "1.5", "0.5")
    ('n', ['0.5', '1.0', '1.5'])
    """
    try:
        first, last, width = Decimal(low), Decimal(high), Decimal(step or "1")
        count = int((last - first) / width) + 1
    except (InvalidOperation, ZeroDivisionError, OverflowError, ValueError):
        raise UsageError(f"--parameter-scan {name} {low} {high}: numbers, and a step that is not 0") from None
    if not 1 <= count <= VALUES_MAX:
        raise UsageError(
            f"--parameter-scan {name} {low} {high}: {count} values; there must be 1 to {VALUES_MAX}"
        )
    return name, [str(first + i * width) for i in range(count)]


def run_shell(option: str, text: str) -> None:
    """Have the shell do something that is not measured."""
    if not text:
        return
    try:
        done = subprocess.run(["sh", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False, timeout=SHELL_SECONDS_MAX)  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise SchedlabError(f"{option} '{text}': no end after {SHELL_SECONDS_MAX} s") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise SchedlabError(
            f"{option} '{text}': ended with {done.returncode}" + "".join(f": {line}" for line in said)
        )


# ---- files for other programs -----------------------------------------------------------


def rows(measured: Sequence[tuple[Series, BenchResult]]) -> list[dict[str, Any]]:
    """One row for each command and policy, with the names of hyperfine; times in seconds."""
    found = []
    for series, result in measured:
        for policy in result.summaries:
            mine = [each for each in result.samples if each["policy"] == policy]
            times = [each["wall_ns"] / 1e9 for each in mine]
            found.append({
                "command": series.text, "policy": policy, "mean": statistics.mean(times),
                "stddev": statistics.stdev(times) if len(times) > 1 else None, "median": statistics.median(times),
                "user": statistics.mean(each["user_ns"] for each in mine) / 1e9,
                "system": statistics.mean(each["system_ns"] for each in mine) / 1e9,
                "min": min(times), "max": max(times), "times": times,
                "memory_usage_byte": [1024 * each["resident_kib_max"] for each in mine],
                "exit_codes": [each["exit_code"] for each in mine], "parameters": series.parameters,
            })  # fmt: skip
    return found


def as_csv(found: Sequence[dict[str, Any]]) -> str:
    """Write a line for each row."""
    names = list(dict.fromkeys(name for row in found for name in row["parameters"]))
    columns = ["command", "policy", "mean", "stddev", "median", "user", "system", "min", "max"]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*columns, *(f"parameter_{name}" for name in names)])
    for row in found:
        writer.writerow([*(row[name] for name in columns), *(row["parameters"].get(name) for name in names)])
    return file.getvalue()


def as_markdown(found: Sequence[dict[str, Any]]) -> str:
    """Make a table; the fastest is 1.00."""
    fastest = min(row["mean"] for row in found)
    lines = [
        "| Command | Policy | Mean [ms] | Min [ms] | Max [ms] | Relative |",
        "|:---|:---|---:|---:|---:|---:|",
    ]
    for row in found:
        spread = "" if row["stddev"] is None else f" ± {1e3 * row['stddev']:.1f}"
        command = row["command"].replace("|", "\\|")
        lines.append(f"| `{command}` | {row['policy']} | {1e3 * row['mean']:.1f}{spread} | {1e3 * row['min']:.1f} | "
                     f"{1e3 * row['max']:.1f} | {row['mean'] / fastest:.2f} |")  # fmt: skip
    return "\n".join(lines) + "\n"


def export(measured: Sequence[tuple[Series, BenchResult]], files: dict[str, Path | None]) -> None:
    """Write the files that were asked for, by format."""
    wanted = {form: path for form, path in files.items() if path is not None}
    found = rows(measured) if wanted else []
    made = {"json": lambda: json.dumps({"results": found}, indent=1, allow_nan=False) + "\n",
            "csv": lambda: as_csv(found), "markdown": lambda: as_markdown(found)}  # fmt: skip
    for form, path in wanted.items():
        try:
            path.write_text(made[form](), encoding="utf-8")
        except OSError as error:
            raise SchedlabError(f"--export-{form} {path}: {error.strerror}") from error
