# SPDX-License-Identifier: MIT
"""Tables that a program here writes into a page of docs/.

<!-- NAME -->
what is replaced
<!-- end of NAME -->
"""

from __future__ import annotations

import re
from pathlib import Path


def write_between(name: str, text: str, document: Path) -> None:
    """Replace what stands between two comments of a page: `name`, and `end of` it.

    ValueError: the page has no such comments, or has them twice.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    new, nr = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}",
        lambda _: f"{begin}\n{text}\n{end}",
        document.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    if nr != 1:
        raise ValueError(f"{document}: {nr} times {begin} to {end}; write the two comments once")
    document.write_text(new, encoding="utf-8")
