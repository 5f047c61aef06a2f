# SPDX-License-Identifier: MIT
"""`schedlab guest`: a command in a Linux that has sched_ext, on this machine's files.

Must stay true: options stand before `--`, the command after it, untouched.
Read next: hosts/guest/live.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(context_settings={"allow_interspersed_args": False})(guest)


def guest(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="What to run, and its arguments.")
    ],
    cpus: Annotated[int, typer.Option(help="Number of CPUs, up to 8.")] = 2,
    memory: Annotated[str, typer.Option(help="Of the machine.")] = "2GiB",
    kernel: Annotated[Path | None, typer.Option(help="Kernel image; default: Debian's newest.")] = None,
    is_kvm: Annotated[
        bool, typer.Option("--kvm", help="On this machine's own CPUs; else emulated, several times slower.")
    ] = False,
) -> None:
    """Run a command as root in a virtual machine whose Linux has sched_ext, on this machine's files."""
    from ..hosts.guest.boot import CPUS_MAX
    from ..hosts.guest.live import run_live
    from ..units import parse_size

    if not 1 <= cpus <= CPUS_MAX:
        raise UsageError(f"--cpus {cpus}: the guest has 1 to {CPUS_MAX} CPUs")
    ram_mib = parse_size(memory) >> 20
    if not 256 <= ram_mib <= 1 << 20:
        raise UsageError(f"--memory {memory}: give 256MiB to 1TiB")
    raise typer.Exit(run_live(command, n_cpus=cpus, ram_mib=ram_mib, is_kvm=is_kvm, kernel=kernel))
