# SPDX-License-Identifier: MIT
"""The options of a run on the command line: one for each field of `Machine` and `Execution`.

Read next: model.py, which has them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..model import OPTIONS, Option

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

    @functools.wraps(command)
    def called(**values: Any) -> None:
        command(**{name: value for name, value in values.items() if value is not None or name not in _WORDS})

    called.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


_WORDS = {option.word for option in OPTIONS.values()}


def _parameter(option: Option) -> inspect.Parameter:
    """One option, as Typer takes it."""
    flag = typer.Option(option.flag, metavar=option.metavar, help=option.help)
    default = list(option.default) if option.kind == "texts" else option.default
    annotation: Any = Annotated[_KINDS[option.kind], flag]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(option.word, kind, default=default, annotation=annotation)
