# SPDX-License-Identifier: MIT
"""Write files whole or not at all, and make the folders that they are in.

Invariant: a file is whole once it has its name; another process sees all of it or none.
Read next: runs/case.py, which writes the folder of a run; policy/build.py, which keeps what it compiles.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .errors import UsageError


def make_folder(folder: Path, *, out: Path | None = None) -> None:
    """Make the folder into which runs go, before anything is done for them."""
    named = out or folder
    str(named).encode()  # the command line says what is wrong with a name that is not UTF-8
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {named}: cannot be made: {error.strerror}; name another folder") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"--out {named}: may not be written; name another folder")


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files, with the folders that they are in."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def write_bytes(path: Path, data: bytes) -> None:
    """Write beside the file, then put that in its place; two processes may write the same one."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        scratch.write_bytes(data)
        os.replace(scratch, path)
    except OSError:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write what JSON can hold, for a program and a person to read."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def write_asked(option: str, path: Path, text: str) -> None:
    """Write the file that an option of the command line names."""
    try:
        write_text(path, text)
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def made_whole(target: Path) -> Iterator[Path]:
    """A path in a folder of its own, for what becomes `target` at the end."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as scratch:
        made = Path(scratch) / target.name
        yield made
        os.replace(made, target)
