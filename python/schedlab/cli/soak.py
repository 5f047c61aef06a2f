# SPDX-License-Identifier: MIT
"""`schedlab soak`: long runs of evidence, written down.

Read next: evidence.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import EXIT_CHECK_FAILED


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(soak)


def soak(
    name: Annotated[str | None, typer.Argument(help="Which; without a name they are listed.")] = None,
    amount: Annotated[int | None, typer.Option(min=1, help="How many examples or rounds.")] = None,
) -> None:
    """Run long tests, and add a dated line to docs/soaks.md."""
    from .evidence import SOAKS, run_soak

    if name is None:
        for known, its in SOAKS.items():
            print(f"{known:<12} {its.about} ({its.variable}={its.default})")
        return
    if not run_soak(name, amount=amount):
        raise typer.Exit(EXIT_CHECK_FAILED)
