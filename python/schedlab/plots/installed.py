# SPDX-License-Identifier: MIT
"""Whether what draws charts is installed: the extra `pictures`, a fourth of an environment.

Read next: charts.py.
"""

from __future__ import annotations

from importlib.util import find_spec


def why_no_charts() -> str | None:
    """Reason and hint where charts cannot be drawn; the names are those of any package index."""
    if all(find_spec(name) for name in ("altair", "vl_convert")):
        return None
    return "charts need Altair and vl-convert: pip install altair vl-convert-python"
