# SPDX-License-Identifier: MIT
"""Tell a user what takes so long, where nothing else is shown meanwhile.

Invariant: nothing is printed about what is done at once, and nothing on standard output.
Read next: hosts/kernel/build.py, which takes a minute the first time.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator


@contextlib.contextmanager
def announced(text: str, *, after_seconds: float = 1.0, every_seconds: float = 5.0) -> Iterator[None]:
    """Say on standard error what is being done, and for how long already."""
    has_ended = threading.Event()
    start_s = time.monotonic()

    def tell() -> None:
        if has_ended.wait(after_seconds):
            return
        print(f"schedlab: {text}", file=sys.stderr, flush=True)
        while not has_ended.wait(every_seconds):
            print(f"schedlab:   {time.monotonic() - start_s:.0f} s", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        has_ended.set()
        teller.join()
