# SPDX-License-Identifier: MIT
"""Switch Linux's real-time throttling off for a while.

By default Linux gives real-time tasks 950 ms of each second of a CPU and leaves the CPU
idle for the rest, whoever waits (sched(7), "Limiting the CPU usage of real-time and
deadline processes"). A comparison of SCHED_FIFO or SCHED_RR with SCHED_OTHER measures that
limit, too, unless it is off.

Invariant: however this process ends, also by SIGKILL, the old value is written back.
Read next: machine.py, which warns of the limit.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import UnavailableError

RUNTIME_FILE = Path("/proc/sys/kernel/sched_rt_runtime_us")
UNLIMITED = "-1"
#: Waits for the end of its input, which comes when this process closes it or ends; then restores.
_RESTORE = 'trap "" HUP INT TERM; cat >/dev/null; printf "%s\\n" "$1" >"$2"'


@contextmanager
def no_rt_throttling(file: Path = RUNTIME_FILE) -> Iterator[None]:
    """Let real-time tasks use all of each CPU, and restore the limit at the end."""
    try:
        before = file.read_text().strip()
    except OSError as error:
        raise UnavailableError(f"{file}: {error.strerror}: this kernel has no limit to switch off") from error
    if before == UNLIMITED:
        yield
        return
    restorer = subprocess.Popen(
        ["sh", "-c", _RESTORE, "sh", before, str(file)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        try:
            file.write_text(UNLIMITED)
        except OSError as error:
            raise UnavailableError(
                f"{file}: {error.strerror}: start schedlab as root to switch real-time throttling off"
            ) from error
        yield
    finally:
        assert restorer.stdin
        restorer.stdin.close()
        restorer.wait()
