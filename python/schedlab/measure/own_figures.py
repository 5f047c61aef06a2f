# SPDX-License-Identifier: MIT
"""Read the figures that benchmarks of schedulers print about themselves.

hackbench, schbench, stress-ng and rt-app measure more than what can be seen from
outside. Whichever is measured with `schedlab bench`, its own figures stand beside
ours, under its name.

Must stay true: a text that is not as expected gives no figure, never a wrong one.
Read next: bench.py, which asks after each run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ..errors import SchedlabError
from ..workload.json_text import parse_json

Reader = Callable[[Sequence[str], str, float], dict[str, float]]


def _hackbench(_argv: Sequence[str], text: str, _since: float) -> dict[str, float]:
    """`Time: 0.109`, in seconds."""
    found = re.search(r"^Time: (\d+\.\d+)\s*$", text, re.MULTILINE)
    return {"hackbench_ns": float(found[1]) * 1e9} if found else {}


def _schbench(_argv: Sequence[str], text: str, _since: float) -> dict[str, float]:
    """A block of percentiles per kind of latency; of several blocks the last counts."""
    figures: dict[str, float] = {}
    kind = ""
    for line in text.splitlines():
        head = re.match(
            r"(?:(Wakeup|Request) )?(?:Latencies|Latency|latencies) percentiles \(usec\)", line.strip()
        )
        if head:
            kind = (head[1] or "wakeup").lower()
        elif line.strip().startswith("RPS percentiles"):
            kind = ""
        row = re.match(r"\s*\*?\s*(\d+(?:\.\d+)?)th: (\d+)", line)
        if row and kind:
            rank = f"{float(row[1]):g}".replace(".", "_")
            figures[f"schbench_{kind}_p{rank}_ns"] = float(row[2]) * 1000
        average = re.match(r"average rps: (\d+(?:\.\d+)?)", line.strip())
        if average:
            figures["schbench_requests_per_s"] = float(average[1])
    return figures


def _stress_ng(_argv: Sequence[str], text: str, _since: float) -> dict[str, float]:
    """The table of `--metrics` or `--metrics-brief`, a row per stressor."""
    row = re.compile(r"^stress-ng: \w+:\s+\[\d+\] ([\w-]+)\s+(\d+)((?:\s+\d+\.\d+){4,})", re.MULTILINE)
    figures: dict[str, float] = {}
    for name, _count, numbers in row.findall(text):
        per_s = numbers.split()[3]
        figures[f"stress_ng_{name.replace('-', '_')}_per_s"] = float(per_s)
    return figures


def _log_folder(argv: Sequence[str]) -> Path | None:
    """Where an rt-app file has its logs written; None without a readable file."""
    files = [Path(word) for word in argv[1:] if word.endswith(".json")]
    try:
        node = parse_json(files[0].read_text(encoding="utf-8"), name=str(files[0])) if files else None
    except (OSError, SchedlabError):
        return None
    if node is None:
        return None
    folder = "./"
    for table in (pair.node for pair in node.value if pair.key == "global"):
        for pair in table.value:
            folder = str(pair.node.value) if pair.key == "logdir" else folder
    return Path(folder)


def _rt_app(argv: Sequence[str], _text: str, since: float) -> dict[str, float]:
    """The logs of its threads, in the folder that its file names; in microseconds there."""
    folder = _log_folder(argv)
    if folder is None:
        return {}
    latencies: list[float] = []
    slacks: list[float] = []
    for log in sorted(folder.glob("*.log")):
        if log.stat().st_mtime < since:
            continue
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        heads = [line for line in lines if line.startswith("#idx")]
        names = heads[0].lstrip("#").split() if heads else []
        rows = [line.split() for line in lines if line and not line.startswith("#")]
        rows = [row for row in rows if len(row) == len(names)]
        for name, values in (("wu_lat", latencies), ("slack", slacks)):
            if name in names:
                values += [float(row[names.index(name)]) for row in rows]
    figures: dict[str, float] = {}
    if latencies:
        figures["rt_app_wakeup_p99_ns"] = float(np.quantile(latencies, 0.99, method="inverted_cdf")) * 1000
        figures["rt_app_wakeup_mean_ns"] = float(np.mean(latencies)) * 1000
    if slacks:
        figures["rt_app_slack_min_ns"] = min(slacks) * 1000
    return figures


READERS: dict[str, Reader] = {
    "hackbench": _hackbench,
    "schbench": _schbench,
    "stress-ng": _stress_ng,
    "rt-app": _rt_app,
}


def tool_of(argv: Sequence[str]) -> str | None:
    """Name the benchmark that a command is.

    >>> tool_of(["/usr/bin/hackbench", "-g", "2"])
    'hackbench'
    """
    name = Path(argv[0]).name
    return name if name in READERS else None


def read_figures(argv: Sequence[str], text: str, *, since: float) -> dict[str, float]:
    """Read what a benchmark said about its run.

    >>> read_figures(["hackbench"], "Time: 0.109", since=0)
    {'hackbench_ns': 109000000.0}
    """
    tool = tool_of(argv)
    return READERS[tool](argv, text, since) if tool else {}


def describe_figure(name: str) -> tuple[str, int]:
    """Say what a benchmark's own figure is.

    >>> describe_figure("stress_ng_cpu_per_s")
    ('1/s', 1)
    """
    if name.endswith("_per_s"):
        return "1/s", 1
    return "ns", 1 if "slack" in name else -1


def tool_of_figure(name: str) -> str | None:
    """Name the benchmark that prints a figure.

    >>> tool_of_figure("rt_app_wakeup_p99_ns"), tool_of_figure("wall_ns")
    ('rt-app', None)
    """
    return next((tool for tool in READERS if name.startswith(tool.replace("-", "_") + "_")), None)
