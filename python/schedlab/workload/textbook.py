# SPDX-License-Identifier: MIT
"""Read a textbook's table of processes: a CSV with one line per task.

    name,arrival,burst,priority
    P1,0,8,3
    P2,1,4,1

Times without a unit are textbook time units, of one tick of 1 ms each; "5ms" is
read as such. Besides `priority`, any attribute of a task may be a column. There
is no jitter: such tables are made to be worked out by hand.

`export_textbook` writes such a table, of workloads that are no more than that.

Read next: find.py, which calls this for files that end in .csv.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ..errors import SpecError, SpecFault, UnitError, did_you_mean
from ..units import format_duration, parse_duration, parse_quantity
from .distributions import Distribution
from .model import Arrival, Converted, Task, Workload
from .phases import ATTRIBUTES, Phase, read_attribute
from .toml_text import clean_name, unique, write_toml

UNIT_NS = 1_000_000
REQUIRED = ("name", "arrival", "burst")
COLUMNS = (*REQUIRED, *(name for name in ATTRIBUTES if name != "burst"))


def load_textbook(path: Path) -> Workload:
    """Read a CSV file of tasks."""
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


def _columns(path: Path, rows: list[tuple[int, list[str]]], faults: list[SpecFault]) -> list[str]:
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
        name=name,
        class_idx=class_idx,
        count=1,
        arrival=Arrival(times_ns=(times["arrival"],)),
        attributes=attributes,
        is_burst_from_run=False,
        affinity=(),
        phases=(run,),
        at=(line,),
    )


def export_textbook(workload: Workload) -> Converted:
    """Write a workload as a textbook's table.

    >>> from schedlab.workload.find import load_workload
    >>> print(export_textbook(load_workload("textbook/fcfs")).text.splitlines()[0])
    name,arrival,burst
    """
    faults: list[SpecFault] = []
    if workload.horizon_ns:
        faults.append(SpecFault(workload.name, None, "", "a horizon: a table ends when its tasks do"))
    rows: list[dict[str, str]] = []
    for task in workload.tasks:
        reason = _why_no_row(task)
        if reason:
            faults.append(SpecFault(workload.name, None, f"task {task.name!r}", reason))
        else:
            rows += [_row(task, instance) for instance in range(task.count)]
    if faults:
        raise SpecError(faults)
    used = {column for row in rows for column in row}
    columns = [column for column in COLUMNS if column in used]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return Converted(buffer.getvalue(), tuple(_lost(workload)))


def _why_no_row(task: Task) -> str:
    """Say what a task has that a line of a table cannot say, or nothing."""
    if task.arrival.is_spawned:
        return "it is spawned, a table has only times"
    if not task.arrival.times_ns:
        return "its arrival is drawn, a table has only times; fix it first"
    if task.affinity:
        return "affinity: there is no such column"
    if len(task.phases) != 1 or task.phases[0].verb != "run":
        return "a line of a table is one run and nothing else"
    burst_ns = _burst_ns(task)
    if not burst_ns:
        return "its run is 0 or drawn, a table has only times above 0"
    if any(value != burst_ns for value in task.attributes.get("burst", ())):
        return "burst: a table declares the true length of each run"
    return ""


def _burst_ns(task: Task) -> int:
    """Length of the first run; 0 where it is drawn, or no run."""
    amount = task.phases[0].amount
    return (amount.constant if amount else None) or 0


def _row(task: Task, instance: int) -> dict[str, str]:
    """One line; an attribute with several values gives each instance its own."""
    times = task.arrival.times_ns
    name = task.name if task.count == 1 else f"{task.name}-{instance + 1}"
    row = {"name": name, "arrival": _units(times[instance % len(times)]), "burst": _units(_burst_ns(task))}
    for attribute, values in task.attributes.items():
        value = values[instance % len(values)]
        if attribute != "burst":
            row[attribute] = _units(value) if ATTRIBUTES[attribute][3] == "time" else str(value)
    return row


def _units(time_ns: int) -> str:
    """Textbook units where they are whole, as people write them."""
    whole, rest = divmod(time_ns, UNIT_NS)
    return format_duration(time_ns) if rest else str(whole)


def _lost(workload: Workload) -> list[str]:
    lost = []
    if workload.tick_ns != UNIT_NS:
        lost.append(f"tick: {format_duration(workload.tick_ns)}; a table's is {format_duration(UNIT_NS)}")
    if workload.jitter_ns:
        lost.append(f"jitter: {format_duration(workload.jitter_ns)}; a table has none")
    if workload.cpus != 1:
        lost.append(f"cpus: {workload.cpus}; give them to `schedlab run`")
    if any("burst" not in task.attributes and not task.is_burst_from_run for task in workload.tasks):
        lost.append("burst: tasks that declare none declare theirs in a table")
    return lost


def textbook_as_toml(path: Path) -> Converted:
    """Turn a textbook's table into a workload file, to go on from."""
    workload = load_textbook(path)
    tasks: list[dict[str, object]] = []
    for task in workload.tasks:
        name = unique(clean_name(task.name), {str(other["name"]) for other in tasks}, "task")
        table: dict[str, object] = {"name": name}
        table["arrival"] = format_duration(task.arrival.times_ns[0])
        for attribute, values in task.attributes.items():
            is_time = ATTRIBUTES[attribute][3] == "time"
            table[attribute] = format_duration(values[0]) if is_time else values[0]
        table["phases"] = [{"run": format_duration(_burst_ns(task))}]
        tasks.append(table)
    head = {
        "title": f"Textbook table {clean_name(path.stem)}",
        "question": workload.question,
        "tick": format_duration(workload.tick_ns),
        "jitter": "0ms",
    }
    comment = "Converted from a table by `schedlab import csv`."
    return Converted(write_toml({"workload": head, "task": tasks}, comment=comment))
