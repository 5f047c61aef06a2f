# SPDX-License-Identifier: MIT
"""A pool of four processes that maps short jobs of different lengths, in chunks.

Not multiprocessing.Pool: under SCHED_FIFO on one CPU, with system calls recorded, it did not end within 30 s;
why was not found.
Read next: validation_set.py, which records it.
"""

from __future__ import annotations

import zlib
from concurrent.futures import ProcessPoolExecutor

N_JOBS = 240


def work(number: int) -> int:
    """Use the CPU for 1 to 4 ms."""
    data, check = bytes(4000), number
    for _ in range(400 * (1 + number % 4)):
        check = zlib.crc32(data, check)
    return check


if __name__ == "__main__":
    with ProcessPoolExecutor(4) as pool:
        assert len(list(pool.map(work, range(N_JOBS), chunksize=4))) == N_JOBS
