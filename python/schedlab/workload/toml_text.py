# SPDX-License-Identifier: MIT
"""Write the values of a workload as a TOML file that people can go on with.

Only what workloads are made of: tables of numbers, texts, lists and tables. The
phases of a task stand one on each line, loops indented.

Read next: rtapp.py, whose result this writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_INDENT = "    "


def write_toml(values: Mapping[str, Any], *, comment: str = "") -> str:
    """Write a workload.

    >>> print(write_toml({"task": [{"name": "a", "phases": [{"run": "5ms"}]}]}), end="")
    [[task]]
    name = "a"
    phases = [
        {run = "5ms"},
    ]
    """
    parts = ["".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())]
    for key, value in values.items():
        if isinstance(value, list):
            parts += [f"[[{key}]]\n{_table(table)}" for table in value]
        elif value:
            parts.append(f"[{key}]\n{_table(value)}")
    return "\n".join(part for part in parts if part)


def _table(table: Mapping[str, Any]) -> str:
    lines = []
    for key, value in table.items():
        if key == "phases":
            lines += ["phases = [", *_phases(value, 1), "]"]
        elif isinstance(value, str) and "\n" in value:
            text = "\n".join(_quoted(line)[1:-1] for line in value.split("\n"))
            lines.append(f'{_key(key)} = """\n{text}"""')
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _phases(phases: list[Any], depth: int) -> list[str]:
    """One line for each phase; the body of a loop is indented."""
    lines, indent = [], _INDENT * depth
    for phase in phases:
        if "do" in phase:
            head = ", ".join(f"{_key(k)} = {_value(v)}" for k, v in phase.items() if k != "do")
            lines += [f"{indent}{{{head}, do = [", *_phases(phase["do"], depth + 1), f"{indent}]}},"]
        elif len(phase) == 1 and next(iter(phase.values())) is True:
            lines.append(f'{indent}"{next(iter(phase))}",')
        else:
            lines.append(f"{indent}{_value(phase)},")
    return lines


def _key(key: str) -> str:
    is_bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if is_bare else _quoted(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    return str(value)


def _quoted(text: str) -> str:
    """A text in quotes: as JSON has it, where DEL need not be escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def clean_name(name: str) -> str:
    """Turn any text into a name that a workload may hold.

    >>> clean_name("event thread [1]")
    'event_thread__1_'
    """
    own = "".join(char if char.isalnum() or char in "_.-" else "_" for char in name)
    return own[:48] or "_"


def unique(name: str, taken: set[str], suffix: str) -> str:
    """Change a name that is taken.

    >>> unique("m", {"m", "m-lock"}, "lock")
    'm-lock-2'
    """
    own, number = name, 1
    while own in taken:
        own = f"{name}-{suffix}" + (f"-{number}" if number > 1 else "")
        number += 1
    return own
