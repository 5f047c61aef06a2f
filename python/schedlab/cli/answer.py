# SPDX-License-Identifier: MIT
"""What a command says: one JSON object for a program, or where it has got, for a person who waits.

Read next: app.py, which says what went wrong; show/, which draws tables.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def print_json(value: dict[str, Any]) -> None:
    """Print the one object of `--json`."""
    print(json.dumps(value, allow_nan=False))


def show_state(text: str, *, is_last: bool = False) -> None:
    """Write where a command has got over what was last written so; on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\n" if is_last else "\r", file=sys.stderr, flush=True)
