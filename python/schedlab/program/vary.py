# SPDX-License-Identifier: MIT
"""Vary the lengths in a recorded program, as they vary from one real run to the next.

A recording is one sample: one decision that goes the other way changes all later ones. Seed 1 is the program as
recorded; every other seed draws a factor for each burst and each sleep.

Read next: compiler.py, which calls it; measure/whatif.py, which asks for it.
"""

from __future__ import annotations

import numpy as np

from . import layout
from .file import Program, read_program

#: Longer sleeps stand for the end of the recording.
SLEEP_NS_MAX = 1 << 59


def varied(program: Program, *, share: float, seed: int) -> Program:
    """Multiply each burst and sleep by a factor of its own, even over 1 - `share` to 1 + `share`."""
    if not share or seed <= 1:
        return program
    ops = program.ops.copy()
    is_length = np.isin(ops["verb"], [layout.VERB_NUMBER["run"], layout.VERB_NUMBER["sleep"]])
    chosen = np.flatnonzero(is_length & (ops["flags"] == 0) & (ops["b"] < SLEEP_NS_MAX))
    # The generator's raw numbers are the same in every version of NumPy.
    drawn = np.random.PCG64(seed).random_raw(len(chosen)) * 2.0**-64
    lengths = np.rint(ops["b"][chosen] * (1 + share * (2 * drawn - 1)))
    ops["b"][chosen] = np.maximum(lengths, 1).astype(np.uint64)
    data, offset = bytearray(program.data), int(program.header["ops_off"])
    data[offset : offset + ops.nbytes] = ops.tobytes()
    return read_program(bytes(data))
