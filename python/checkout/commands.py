# SPDX-License-Identifier: MIT
"""The commands, for the program `schedlab`, which looks here where it runs from a checkout.

Read next: reproduce/command.py; schedlab/cli/group.py, which lists them in `--help`.
"""

from __future__ import annotations

import typer

from .kernel import kernel
from .reproduce.audit_command import audit
from .reproduce.command import reproduce
from .selfbench import selfbench
from .soak import soak


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (reproduce, audit, kernel, selfbench, soak):
        app.command()(command)
