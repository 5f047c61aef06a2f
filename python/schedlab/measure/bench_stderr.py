# SPDX-License-Identifier: MIT
"""What a measured command writes to its stderr: kept whole beside the samples, its last lines shown.

A command that fails says why on its stderr. In a folder of samples

    DIR/stderr/round-3-SCHED_FIFO_10.txt

is what one run wrote, and there is no file of a run that wrote nothing.

Invariant: a command writes to a file, never to a pipe that we would have to read while
it is measured.
Read next: bench.py, the caller.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import UsageError
from ..runs.case import folder_name

FOLDER = "stderr"
#: The last lines of a failed run that are shown, and how much of the file is read for them.
LINES_SHOWN, TAIL_BYTES = 5, 16_384


@contextlib.contextmanager
def stderr_files(folder: Path | None) -> Iterator[Path]:
    """Where the files of a measurement go."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="schedlab-bench-") as name:
            yield Path(name)
        return
    kept = folder / FOLDER
    try:
        kept.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder}: {kept}: {error.strerror}; name another folder") from error
    yield kept
    with contextlib.suppress(OSError):  # files are in it
        kept.rmdir()


@contextlib.contextmanager
def stderr_file(folder: Path, run: str, policy: str) -> Iterator[Path]:
    """Where one run's stderr goes."""
    path = folder / f"{run}-{folder_name(policy).replace('/', '_')}.txt"
    path.unlink(missing_ok=True)  # of a run that was cut short
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            if not path.stat().st_size:
                path.unlink()


def last_lines(path: Path) -> list[str]:
    """Read the end of what a run wrote."""
    try:
        with open(path, "rb") as file:
            file.seek(max(path.stat().st_size - TAIL_BYTES, 0))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    lines = ["".join(c for c in line.expandtabs() if c.isprintable()) for line in text.rstrip().split("\n")]
    return [line for line in lines if line.strip()][-LINES_SHOWN:]
