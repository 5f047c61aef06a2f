# SPDX-License-Identifier: MIT
"""`schedlab kernel`: a shell in the teaching kernel, typed into from here.

Read next: hosts/kernel/boot.py; docs/kernel.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from schedlab.errors import UnavailableError
from schedlab.hosts.kernel.build import KernelImage


def kernel(
    policy: Annotated[str, typer.Option(help="Name, or path of a .bpf.c file, to begin with.")] = "rr",
    cpus: Annotated[int, typer.Option(min=1, max=8, help="Harts.")] = 1,
    run: Annotated[
        str | None, typer.Option(help="Run this instead of a shell, and go off with its status.")
    ] = None,
    counted: Annotated[
        bool,
        typer.Option(
            "--counted",
            help="Count instructions instead of time: one per ns, the same every time; but not with --disk, nor when you type.",
        ),
    ] = False,
    gdb: Annotated[
        bool, typer.Option("--gdb", help="Wait for a debugger before the first instruction.")
    ] = False,
    gdb_port: Annotated[int, typer.Option(min=1, max=65535, help="Where.")] = 1234,
    disk: Annotated[Path | None, typer.Option(help="Keep files here; made anew if it is not there.")] = None,
    program: Annotated[
        list[Path] | None, typer.Option(help="C file of one more user program; may be repeated.")
    ] = None,
    file: Annotated[list[Path] | None, typer.Option(help="File to put into /; may be repeated.")] = None,
    arg: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Boot argument; docs/kernel.md lists them.")
    ] = None,
) -> None:
    """Open the teaching kernel's shell; ctrl-A x leaves it."""
    from schedlab.hosts.kernel.boot import Machine, machine_command, unavailable
    from schedlab.hosts.kernel.build import build_kernel

    reason = unavailable()
    if reason:
        raise UnavailableError(reason)
    name, sources = _policy(policy)
    image = build_kernel(sources, programs=program or (), files=file or ())
    machine = Machine(
        image,
        n_cpus=cpus,
        arguments=_boot_arguments(name, arg or [], run),
        is_counted=counted,
        disk=_own_disk(disk, image.filesystem),
        extra=("-S", "-gdb", f"tcp:127.0.0.1:{gdb_port}") if gdb else (),
    )
    if gdb:
        print(_how_to_debug(image, gdb_port), file=sys.stderr)
    if run is None:
        print("schedlab: ctrl-A x ends the machine, ctrl-P shows the scheduler", file=sys.stderr)
    # mon:stdio passes ctrl-C on to the machine and keeps ctrl-A for QEMU.
    command = machine_command(machine, console="mon:stdio")
    raise typer.Exit(_call_through_file(command) if counted else subprocess.call(command))


def _call_through_file(command: list[str]) -> int:
    """Run a machine that counts instructions. Return: its status.

    Its console is a file, which takes everything at once. A terminal or a pipe may be full,
    and the machine would execute instructions, which are its time, until there is room.
    """
    with tempfile.TemporaryFile() as console:
        process = subprocess.Popen(command, stdout=console)
        try:
            shown = 0
            while True:
                has_ended = process.poll() is not None
                while data := os.pread(console.fileno(), 65536, shown):
                    shown += len(data)
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()
                if has_ended:
                    return process.returncode
                time.sleep(0.01)
        finally:
            process.kill()
            process.wait()


def _policy(given: str) -> tuple[str, list[Path]]:
    """Name of a policy, and its file if that is not one of ours."""
    from schedlab.policy.find import find_policy, list_policies, policy_name

    if given == "builtin":
        return given, []
    path = find_policy(given)
    return policy_name(path), [] if given in list_policies() else [path]


def _boot_arguments(policy: str, given: list[str], run: str | None) -> dict[str, str]:
    """What the kernel is told, by name."""
    from schedlab.errors import UsageError

    arguments = {"policy": policy}
    for words in given:
        key, equals, value = words.partition("=")
        if not key or not equals:
            raise UsageError(f"--arg {words}: expected NAME=VALUE, such as procs_max=64")
        arguments[key] = value
    if run is not None:
        # The kernel starts a program by its path.
        arguments["run"] = run if run.startswith("/") else f"/{run}"
    return arguments


def _own_disk(disk: Path | None, built: Path) -> Path | None:
    """The file that stands for the disk, made from the built one if it is new."""
    import shutil

    if disk is not None and not disk.exists():
        shutil.copyfile(built, disk)
    return disk


def _how_to_debug(image: KernelImage, port: int) -> str:
    """What to type elsewhere."""
    return (
        f"schedlab: waiting for a debugger at port {port}; in another terminal:\n"
        f"  gdb-multiarch {image.kernel} -ex 'target remote :{port}'\n"
        f"symbols of a program, here the shell's: add-symbol-file {image.programs['sh']}"
    )
