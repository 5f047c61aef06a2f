# SPDX-License-Identifier: MIT
"""Options of `bench` that users of hyperfine expect.

Read next: bench.py; measure/bench_series.py, which does what they ask for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
import typer.core

from .options import declared, keyword

#: How many words stand after an option that may be given again, which Typer has no type for.
_WORDS = {"parameter_list": 2, "parameter_scan": 3}


class BenchCommand(typer.core.TyperCommand):
    """A command whose options take so many words."""

    def __init__(self, *args: Any, params: list[Any], **options: Any) -> None:
        for each in params:
            each.nargs = _WORDS.get(each.name, each.nargs)
        super().__init__(*args, params=params, **options)


def _as_given(words: Any) -> Any:
    return words


#: Name, type, default and `typer.Option`.
_OPTIONS: tuple[tuple[str, Any, Any, Any], ...] = (
    ("prepare", str, "", typer.Option(help="What a shell does before each run; not measured.")),
    ("setup", str, "", typer.Option(help="What a shell does before the first run of each command.")),
    ("cleanup", str, "", typer.Option(help="What a shell does after the last run of each command.")),
    ("shell", str, "", typer.Option(metavar="none|bash", help="Each word after -- is a command: for this shell, or none.")),
    ("parameter_list", list[Any], [], typer.Option("--parameter-list", "-L", metavar="NAME A,B", parser=_as_given,
     help="Measure the command with each of these in place of {NAME}; of several parameters with each combination.")),
    ("parameter_scan", list[Any], [], typer.Option("--parameter-scan", "-P", metavar="NAME MIN MAX", parser=_as_given,
     help="The same with numbers.")),
    ("parameter_step", list[str], [], typer.Option("--parameter-step-size", "-D", metavar="STEP",
     help="Of each scan, in their order, or one of all; default: 1.")),
    ("input", Path | None, None, typer.Option(metavar="FILE", help="What the command's stdin reads; default: nothing.")),
    ("show_output", bool, False, typer.Option("--show-output", help="Show what the command prints, on stderr.")),
    ("ignore_failure", bool, False, typer.Option("--ignore-failure", "-i", help="Exit code 0, also where runs failed.")),
    ("export_json", Path | None, None, typer.Option(metavar="FILE", help="Write hyperfine's JSON, with the policy.")),
    ("export_csv", Path | None, None, typer.Option(metavar="FILE", help="The same as CSV.")),
    ("export_markdown", Path | None, None, typer.Option(metavar="FILE", help="The same as a table of Markdown.")),
)  # fmt: skip


def with_series_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; it gets their values as one dict, `series`."""
    given = inspect.signature(command, eval_str=True)
    mine = [each for each in given.parameters.values() if each.name != "series"]
    parameters = [
        *(each.replace(kind=each.KEYWORD_ONLY) for each in mine),
        *(keyword(*option) for option in _OPTIONS),
    ]

    def called(**values: Any) -> None:
        series = {name: values.pop(name) for name, *_ in _OPTIONS}
        command(**values, series=series)

    return declared(command, called, parameters)
