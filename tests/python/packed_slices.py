# SPDX-License-Identifier: MIT
"""Slices of a page read back, as page/slices.js does it."""

from __future__ import annotations

import base64
import zlib

from schedlab.report.over_time import CPU_BITS, REASON_BITS


def unpack_numbers(data: bytes) -> list[int]:
    """Read what `pack_numbers` wrote.

    >>> unpack_numbers(bytes.fromhex("01ac02"))
    [1, 300]
    """
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    return values


def unpack_slices(text: str) -> list[tuple[int, int, int, int, int, int]]:
    """Read what `pack_slices` wrote."""
    numbers = unpack_numbers(zlib.decompress(base64.b64decode(text)))
    nr = numbers[0]
    pids, counts = numbers[1 : 1 + nr], numbers[1 + nr : 1 + 2 * nr]
    total = sum(counts)
    gap, length, code = (numbers[1 + 2 * nr + i * total : 1 + 2 * nr + (i + 1) * total] for i in range(3))
    rows, i = [], 0
    for pid, count in zip(pids, counts, strict=True):
        t = 0
        for _ in range(count):
            begin = t + gap[i]
            t = begin + length[i]
            rows.append((pid, begin, t, code[i] & 3, code[i] >> REASON_BITS & 7, code[i] >> CPU_BITS))
            i += 1
    return rows
