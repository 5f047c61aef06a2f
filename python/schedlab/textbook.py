# SPDX-License-Identifier: MIT
"""Read a textbook's table of processes: a CSV with one line per task.

    name,arrival,burst,priority
    P1,0,8,3
    P2,1,4,1

Times without a unit are textbook time units, of one tick of 1 ms each; "5ms" is
read as such. Besides `priority`, any attribute of a task may be a column. There
is no jitter: such tables are made to be worked out by hand.

Read next: spec.py, which calls this for files that end in .csv.
"""

from __future__ import annotations

import csv
from pathlib import Path

from .distributions import Distribution
from .errors import SpecError, SpecFault, UnitError, did_you_mean
from .model import Arrival, Task, Workload
from .phases import ATTRIBUTES, Phase, read_attribute
from .units import parse_duration, parse_quantity

UNIT_NS = 1_000_000
REQUIRED = ("name", "arrival", "burst")
COLUMNS = (*REQUIRED, *(name for name in ATTRIBUTES if name != "burst"))


def load_textbook(path: Path) -> Workload:
    """Read a CSV file of tasks.

    Parameters
    ----------
    path : pathlib.Path
        The file; its first line names the columns.

    Returns
    -------
    Workload
        Every task runs once, for its burst, and declares it.

    Raises
    ------
    SpecError
        If the file has mistakes; it lists all of them, with lines.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError([SpecFault(str(path), None, "", str(error))]) from None
    rows = [
        (number, [cell.strip() for cell in row])
        for number, row in enumerate(csv.reader(text.splitlines()), start=1)
        if any(cell.strip() for cell in row) and not row[0].lstrip().startswith("#")
    ]
    faults: list[SpecFault] = []
    columns = _columns(path, rows, faults)
    tasks: list[Task] = []
    names: set[str] = set()
    for line, row in rows[1:] if columns else []:
        task = _task(path, line, dict(zip(columns, row, strict=False)), len(tasks), faults)
        if len(row) > len(columns):
            message = f"{len(row)} values for {len(columns)} columns"
            faults.append(SpecFault(str(path), line, "", message))
        if task and task.name in names:
            faults.append(SpecFault(str(path), line, f"task {task.name!r}", "there is another"))
        if task:
            names.add(task.name)
            tasks.append(task)
    if not tasks and not faults:
        faults.append(SpecFault(str(path), None, "", "there is no task"))
    if faults:
        raise SpecError(faults)
    return Workload(
        name=path.stem,
        title=f"Textbook table {path.name}",
        question="What does each policy make of this table?",
        path=path,
        tick_ns=UNIT_NS,
        jitter_ns=0,
        tasks=tuple(tasks),
    )


def _columns(
    path: Path, rows: list[tuple[int, list[str]]], faults: list[SpecFault]
) -> list[str]:
    """Read the first line; an empty list where it is no header."""
    if not rows:
        faults.append(SpecFault(str(path), None, "", "the file is empty"))
        return []
    line, names = rows[0]
    columns = [name.lower() for name in names]
    for name in columns:
        if name not in COLUMNS:
            message = f"unknown column {name!r}{did_you_mean(name, COLUMNS)}"
            faults.append(SpecFault(str(path), line, "", message))
        elif columns.count(name) > 1:
            faults.append(SpecFault(str(path), line, "", f"column {name!r} stands twice"))
    for name in REQUIRED:
        if name not in columns:
            faults.append(SpecFault(str(path), line, "", f"column {name!r} is missing"))
    return [] if faults else columns


def _time(text: str) -> int:
    """Read a time; a bare number counts time units."""
    quantity = parse_quantity(text, tick_ns=UNIT_NS)
    if quantity.dimension == "number":
        return parse_duration(f"{text}ticks", tick_ns=UNIT_NS)
    return parse_duration(text, tick_ns=UNIT_NS)


def _task(
    path: Path, line: int, cells: dict[str, str], class_idx: int, faults: list[SpecFault]
) -> Task | None:
    """Read one line; None where it has mistakes."""
    name = cells.get("name", "")
    place = f"task {name!r}" if name else ""
    before = len(faults)
    times: dict[str, int] = {}
    attributes: dict[str, tuple[int, ...]] = {}
    for column, text in cells.items():
        try:
            if column == "name":
                if not text:
                    raise UnitError("is empty")
            elif column in ("arrival", "burst", "deadline"):
                times[column] = _time(text)
                if column == "burst" and not times[column]:
                    raise UnitError("must be more than 0 (got 0)")
            elif text:
                value = read_attribute(column, text, tick_ns=UNIT_NS)
                attributes[column] = (value,)
        except UnitError as error:
            message = f"{column}: {str(error).removeprefix(f'{column}: ')}"
            faults.append(SpecFault(str(path), line, place, message))
    for column in REQUIRED:
        if column not in cells:
            faults.append(SpecFault(str(path), line, place, f"{column}: is missing"))
    if "nice" in attributes and "weight" in attributes:
        faults.append(SpecFault(str(path), line, place, "nice and weight contradict each other"))
    if len(faults) > before:
        return None
    attributes["burst"] = (times["burst"],)
    if "deadline" in times:
        attributes["deadline"] = (times["deadline"],)
    run = Phase("run", "1", (line,), amount=Distribution("constant", (times["burst"],)))
    return Task(
        name=name, class_idx=class_idx, count=1, arrival=Arrival(times_ns=(times["arrival"],)),
        attributes=attributes, is_burst_from_run=False, affinity=(), phases=(run,), at=(line,),
    )
