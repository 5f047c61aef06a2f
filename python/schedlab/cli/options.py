# SPDX-License-Identifier: MIT
"""The options of a run on the command line: one for each field of `Machine` and `Execution`.

Read next: model.py, which has them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UsageError
from ..model import OPTIONS, Option
from ..units import parse_duration

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
OutOption = Annotated[Path | None, typer.Option(help="Folder for the runs; default: out/<time>.")]
SettingsOption = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="POLICY.KNOB=VALUE",
        help="mlfq.boost_ns=100ms; rr.slice_ns=1ms,5ms compares variants.",
    ),
]
#: Of commands that Linux runs itself.
CpusOption = Annotated[
    str, typer.Option(metavar="0,2-3", help="CPUs that the command may use; default: all.")
]
TimeoutOption = Annotated[str, typer.Option(help="Longest time of one run; then its whole tree is ended.")]

#: What stands last in `--help`.
_LATE = ("out", "executor", "as_json")
_KINDS: dict[str, Any] = {"int": int | None, "text": str | None, "texts": list[str], "yes": bool,
                          "float": float, "path": Path | None}  # fmt: skip


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every option of a run that it has not itself; it gets those that were given, by their words."""
    given = inspect.signature(command, eval_str=True)
    mine = [each for each in given.parameters.values() if each.kind is not each.VAR_KEYWORD]
    options = [_parameter(option) for option in OPTIONS.values() if option.word not in given.parameters]
    early, late = ([each for each in mine if (each.name in _LATE) == is_late] for is_late in (False, True))
    parameters = [each.replace(kind=each.KEYWORD_ONLY) for each in (*early, *options, *late)]

    def called(**values: Any) -> None:
        command(**{name: value for name, value in values.items() if value is not None or name not in _WORDS})

    return declared(command, called, parameters)


def declared(
    command: Callable[..., None], called: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Have Typer call `called` in place of a command, with these parameters and the command's help."""
    functools.update_wrapper(called, command)
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def keyword(name: str, kind: Any, default: Any, option: Any) -> inspect.Parameter:
    """One option, as Typer takes it."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def length_ns(option: str, text: str) -> int:
    """Read a length of time that is longer than 0."""
    found = parse_duration(text, place=option)
    if found <= 0:
        raise UsageError(f"{option} {text}: it must be longer than 0")
    return found


def split_names(given: Sequence[str]) -> list[str]:
    """Names given apart, or together with commas."""
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


_WORDS = {option.word for option in OPTIONS.values()}


def _parameter(option: Option) -> inspect.Parameter:
    """An option of a run."""
    flag = typer.Option(option.flag, metavar=option.metavar, help=option.help)
    default = list(option.default) if option.kind == "texts" else option.default
    return keyword(option.word, _KINDS[option.kind], default, flag)


# ---- what a shell may complete, with commas between ---------------------------


def complete_policy(incomplete: str) -> list[str]:
    """Names of policies that continue the last of those given."""
    from ..policy.find import list_policies

    before, comma, begun = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in [*list_policies(), "all"] if name.startswith(begun)]


def complete_workload(incomplete: str) -> list[str]:
    """Names of workloads that begin so."""
    from ..workload.find import workload_names

    return [name for name in workload_names() if name.startswith(incomplete)]
