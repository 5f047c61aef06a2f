# SPDX-License-Identifier: MIT
"""`schedlab new`: the beginning of a policy of one's own.

Read next: scaffold.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .options import JsonOption


def new(
    name: Annotated[str, typer.Argument(help="What to call it: small letters, digits and _.")],
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("."),
    as_json: JsonOption = False,
) -> None:
    """Write a policy that works, a workload that shows it, and its test."""
    from .scaffold import new_policy

    made = new_policy(name, folder=folder)
    if as_json:
        print(json.dumps({"policy": str(made.policy), "workload": str(made.workload),
                          "test": str(made.test), "run_command": made.run_command,
                          "test_command": made.test_command}))  # fmt: skip
        return
    for path, about in zip(
        made.files,
        ("the policy: read this first", "work that shows what it does", "what it promises"),
        strict=True,
    ):
        print(f"wrote {path}, {about}")
    print(f"\nCompare it with round robin:\n  {made.run_command}\nRun its test:\n  {made.test_command}")
