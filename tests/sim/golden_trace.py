# SPDX-License-Identifier: MIT
"""Runs the hand-computed schedules in golden/ and writes them as text.

`NAME.toml` says policy, knobs, CPUs and options in its head, then the workload.
`NAME.trace` is what must happen: comment lines that derive it by hand, then one
line per record: time in ms, CPU, what, the task, details. Columns may be spaced
as one likes. Read next: test_golden.py; tools/bless rewrites traces.
"""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path

from schedlab.records.file import Kind, Overhead, Stop
from schedlab.workload.spec import parse_workload
from sim.simulated import simulated

FOLDER = Path(__file__).resolve().parent / "golden"
HEAD_KEYS = {"policy", "set", "cpus", "options"}


def names() -> list[str]:
    """Names of all golden schedules."""
    return [path.stem for path in sorted(FOLDER.glob("*.toml"))]


def split(name: str) -> tuple[dict, str]:
    """Head and workload text of a schedule."""
    lines = (FOLDER / f"{name}.toml").read_text().splitlines()
    cut = lines.index("[workload]")
    head = tomllib.loads("\n".join(lines[:cut]))
    unknown = set(head) - HEAD_KEYS
    if unknown:
        raise ValueError(f"{name}.toml: unknown keys {sorted(unknown)}")
    return head, "\n" * cut + "\n".join(lines[cut:])


def _ms(ns: int) -> str:
    """Milliseconds without trailing zeros; exact, since 1 ns is 0.000001 ms."""
    return f"{ns // 10**6}.{ns % 10**6:06d}".rstrip("0").rstrip(".")


def _line(event, task_names: list[str]) -> str:
    """One record as text."""

    def who(pid: int) -> str:
        return task_names[pid - 1] if pid else "0"

    kind, flags, arg = Kind(event["kind"]), int(event["flags"]), int(event["arg"])
    details = {
        Kind.ARRIVE: lambda: f"by {who(arg)}" if arg else "",
        Kind.WAKE: lambda: f"by {who(arg)}",
        Kind.RUN: lambda: "",
        Kind.STOP: lambda: f"{Stop(flags).name.lower()} {_ms(arg)}",
        Kind.MIGRATE: lambda: f"from {arg}",
        Kind.ATTR: lambda: f"{flags} = {arg}",
        Kind.OVERHEAD: lambda: f"{Overhead(flags).name.lower()} {_ms(arg)}",
    }[kind]()
    subject = "" if kind == Kind.OVERHEAD else who(int(event["task"]))
    words = f"{_ms(int(event['t_ns'])):9} {event['cpu']} {kind.name.lower():8} {subject} {details}"
    return " ".join(words.split())


def actual(name: str, simulator: Path) -> list[str]:
    """Run a schedule in the simulator: one line per record, with single spaces."""
    head, text = split(name)
    workload = parse_workload(text, name=f"{name}.toml")
    with tempfile.TemporaryDirectory() as folder:
        found = simulated(
            simulator, Path(folder), workload, head["policy"], *head.get("options", []),
            cpus=head.get("cpus", 1), knobs=head.get("set"),
        )  # fmt: skip
        if found.answer["status"] != "ok":
            raise AssertionError(found.answer)
        task_names = [found.program.string(int(row["name"])) for row in found.program.task_rows]
        return [_line(event, task_names) for event in found.records.events]


def expected(name: str) -> list[str]:
    """Lines of a trace file, comments left out, with single spaces."""
    lines = (FOLDER / f"{name}.trace").read_text().splitlines()
    return [" ".join(line.split()) for line in lines if line.strip() and not line.startswith("#")]


def comment(name: str) -> list[str]:
    """The lines of a trace file that derive it by hand."""
    path = FOLDER / f"{name}.trace"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if line.startswith("#")]


def bless(name: str, simulator: Path) -> bool:
    """Rewrite a trace with what happens now, if that is another; the derivation is kept, to be mended by hand."""
    lines = actual(name, simulator)
    if (FOLDER / f"{name}.trace").exists() and lines == expected(name):
        return False
    head = comment(name) or ["# By hand: (derive it here)"]
    rows = [line.split(maxsplit=3) for line in lines]
    text = [f"{row[0]:8} {row[1]} {row[2]:8} {' '.join(row[3:])}".rstrip() for row in rows]
    (FOLDER / f"{name}.trace").write_text("\n".join([*head, *text]) + "\n")
    return True
