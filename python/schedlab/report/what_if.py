# SPDX-License-Identifier: MIT
"""What `schedlab whatif` found, as the first section of its page: fidelity, ranking, who pays.

`whatif.json` beside `runs.json` has it; where there is none, the page has no such section.

Read next: measure/whatif.py, which writes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..html import Cell, Table
from ..stats.sentences import label, show_change, show_number, show_time, signed
from ..units import counted
from .over_time import longest_waits, waited_ns, window_of

WHATIF_FILE = "whatif.json"
GROUPS_SHOWN = 8
#: Of each of the two policies.
WAITS_SHOWN = 3
_GRADE_STYLE = {"good": "good", "rough": "warning"}


def read_what_if(folder: Path) -> dict[str, Any] | None:
    """Read what was found; None where nothing was asked."""
    path = folder / WHATIF_FILE
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{path}: damaged ({error}); ask again to replace it") from error


def change_text(name: str, entry: dict[str, Any]) -> str:
    """A change with its interval: `-42 % (-45 .. -40 %)`; as a difference where a ratio has no sense."""
    if entry["ratio"] is None:
        middle, ends = (
            signed(name, entry["difference"]),
            [signed(name, entry[end]) for end in ("low", "high")],
        )
    else:
        middle = show_change(entry["ratio"])
        ends = [show_change(entry[end]) for end in ("ratio_low", "ratio_high")]
    if "-" in ends or entry["difference"] == 0:
        return middle
    if all(end.endswith(" %") for end in ends):
        ends[0] = ends[0].removesuffix(" %")
    return f"{middle} ({' .. '.join(ends)})"


def fidelity_sentence(found: dict[str, Any]) -> str:
    """How far the replay may be trusted, in one sentence."""
    fidelity = found["fidelity"]
    if fidelity is None:
        reason = (
            "its replay failed"
            if found["is_recording"]
            else "nothing was recorded, the work is what its file says"
        )
        return f"not known: {reason}."
    knobs = f" with {', '.join(fidelity['knobs'])}" if fidelity["knobs"] else ""
    text = f"Recorded under {fidelity['recorded_under']}, replayed under {fidelity['replayed_under']}{knobs}"
    what = f" for {fidelity['metric']}" if fidelity.get("metric") else ""
    reason = f" ({fidelity['reason']})" if fidelity["reason"] else ""
    note = f"; {fidelity['note']}" if fidelity["note"] else ""
    return f"{text}: {fidelity['grade']}{what}{reason}{note}."


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose first column names its rows; what follows a comma in a cell stands below it."""
    cells = [(first, [Cell(*text.partition(", ")[::2]) for text in rest]) for first, *rest in rows]
    return Table(caption, caption, [(head, "") for head in heads], cells)


def ratio_rows(rows: Sequence[dict[str, Any]], *, is_short: bool = False) -> list[list[str]]:
    """Recorded and replayed values, the error and its grade: metrics, or what groups of tasks waited."""
    found = []
    for row in rows:
        name = row.get("metric")
        keys = ("recorded", "replayed", "varied") if name else ("recorded", "replayed")
        values = [show_number(name, row[key]) if name else show_time(row[key]) for key in keys]
        first = row["group"] if not name else name if is_short else label(name)
        found.append([first, *values, show_change(row["ratio"]), row["grade"]])
    return found


def name_of(row: dict[str, Any]) -> str:
    """An alternative by its policy, and what was changed."""
    return f"{row['policy']} {row['change']}".strip()


def best_other(found: dict[str, Any]) -> dict[str, Any] | None:
    """The best alternative without a change besides the baseline."""
    here = [row for row in found["ranking"] if not row["change"] and not row["is_baseline"]]
    return here[0] if here else None


def ranking_rows(found: dict[str, Any]) -> list[list[str]]:
    """Each alternative with its mean of each metric, and the change from the baseline with its interval."""
    rows = []
    for row in found["ranking"]:
        cells = [name_of(row) + " =" * row["is_tied"]]
        for metric, entry in row["metrics"].items():
            mean = show_number(metric, entry["mean_b"])
            unsure = "" if entry["better"] or entry["verdict"] == "no difference" else " ?"
            cells.append(
                f"{mean}, baseline" if row["is_baseline"] else f"{mean}, {change_text(metric, entry)}{unsure}"
            )
        rows.append(cells)
    return rows


def host_rows(found: dict[str, Any]) -> list[list[str]]:
    """The same of the host that was to confirm the first of them; none where no host was asked."""
    return ranking_rows(found["on_host"]) if found.get("on_host") else []


def host_caption(found: dict[str, Any]) -> str:
    """What its table is of."""
    there = found["on_host"]
    return f"The baseline and the first {len(there['ranking']) + len(there['failed']) - 1} on the host {there['host']}, {counted(found['seeds'], 'seed')}"


def forecast_rows(found: dict[str, Any]) -> list[list[str]]:
    """What Linux would measure of each metric, with its interval; only for the work as it is."""
    rows = []
    for row in found["ranking"]:
        if made := row.get("forecast"):
            name = row["policy"] + (f" as {row['class']}" if row["class"] else "")
            rows.append([name, *(forecast_text(each, made.get(each)) for each in found["metrics"])])
    return rows


def forecast_text(metric: str, made: dict[str, float] | None) -> str:
    """A prediction with its interval."""
    if made is None:
        return "-"
    predicted, low, high = (show_number(metric, made[key]) for key in ("predicted", "low", "high"))
    return f"{predicted}, {low} .. {high}"


def measured_sentence(found: dict[str, Any]) -> str:
    """What real runs of the best say; empty where there were none."""
    measured = found.get("measured")
    if not measured:
        return ""
    parts = [
        f"{name} {show_number(name, each['measured'])}, "
        f"{'inside' if each['is_inside'] else 'outside'} {show_number(name, each['low'])} .. {show_number(name, each['high'])}"
        for name, each in measured["metrics"].items()
    ]
    runs = f"{measured['runs']} real run{'s' * (measured['runs'] > 1)}"
    return f"{runs} under {measured['class']}, which is {measured['policy']}: {'; '.join(parts)}"


def group_rows(row: dict[str, Any]) -> list[list[str]]:
    """Groups of tasks by how much longer, or less long, they wait."""
    return [
        [g["group"], str(g["tasks"]), show_time(g["mean_a"]), show_time(g["mean_b"]), show_change(g["ratio"]),
         f"{show_time(g['longest_a'])}, {show_time(g['longest_b'])}"]
        for g in row["groups"][:GROUPS_SHOWN]
        if g["mean_a"] or g["mean_b"]
    ]  # fmt: skip


def confirmed_sentence(found: dict[str, Any]) -> str:
    """What fresh seeds say of the best; empty where none was to be confirmed."""
    confirmed = found["confirmed"]
    if confirmed is None:
        return ""
    first, seeds = confirmed["first_seed"], confirmed["seeds"]
    (name, entry), *_ = confirmed["metrics"].items()
    chosen = next(
        row for row in found["ranking"] if row["policy"] == confirmed["policy"] and not row["change"]
    )
    return (
        f"{seeds} fresh seeds ({first} to {first + seeds - 1}) say {name} {change_text(name, entry)} for {confirmed['policy']}; "
        f"those that chose it said {change_text(name, chosen['metrics'][name])}"
    )


def left_out(found: dict[str, Any]) -> list[str]:
    """What failed, in the simulator or on the host that was to confirm it."""
    there = found.get("on_host") or {"failed": []}
    return [f"left out: {name_of(each)}: {each['error']}" for each in found["failed"]] + [
        f"left out on the host {there['host']}: {each['policy']}: {each['error']}" for each in there["failed"]
    ]


FORECAST_CAPTION = "The recording replayed as it is, and what nine of ten real runs were between, of other programs whose replay was as faithful."
GROUP_HEADS = ("group", "tasks", "baseline", "then", "change", "longest")


def _moments(found: dict[str, Any], bodies: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The longest waits under the baseline and under the best other, each as a window of both charts."""
    best = best_other(found)
    names = [found["baseline"], best["policy"] if best else ""]
    body = next((each for each in bodies if each["workload"] == found["subject"]), None)
    place = {chart["policy"]: i for i, chart in enumerate(body["charts"])} if body else {}
    if body is None or not place.keys() >= {*names}:
        return []
    charts = [body["charts"][place[name]] for name in names]
    shown = []
    for name, chart in zip(names, charts, strict=True):
        for pid, begin, end in longest_waits(chart["slices"], n_max=WAITS_SHOWN):
            low, high = window_of(begin, end)
            before, after = (show_time(waited_ns(each["slices"], low, high)) for each in charts)
            shown.append({
                "viewer": f"{body['key']}-gantt", "charts": [place[each] for each in names],
                "view": [low, high], "side": names.index(name), "pid": pid, "at": begin,
                "button": f"{show_time(begin)} to {show_time(end)}",
                "text": f"{chart['names'][pid]}[{pid}] waits {show_time(end - begin)} under {name}. In the time that is shown "
                f"all tasks wait {before} under {names[0]}, {after} under {names[1]}",
            })  # fmt: skip
    return shown


def what_if_section(folder: Path, bodies: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """What the page shows of a folder; None where nothing was asked."""
    found = read_what_if(folder)
    if found is None:
        return None
    fidelity = found["fidelity"] or {"rows": [], "groups": []}
    metrics = [label(name) for name in found["metrics"]]
    heads = ("recorded", "replayed", "error", "grade")
    recorded = [
        ("The recording, and its replay under what it was recorded under, with what recording cost it",
         ("metric", "recorded", "replayed", "varied", "error", "grade"), ratio_rows(fidelity["rows"])),
        ("Waited for a CPU, by group of tasks", ("group", *heads), ratio_rows(fidelity["groups"])),
    ]  # fmt: skip
    caption = (
        f"Best first; mean of {found['seeds']} seeds, change from {found['baseline']} on {counted(found['cpus'], 'CPU')} with "
        f"its {found['confidence']:.0%} interval. = is not told apart from the first, ? not from the baseline."
    )
    return {
        "subject": found["subject"],
        "style": _GRADE_STYLE.get(fidelity["grade"], "bad") if found["fidelity"] else "warning",
        "fidelity": fidelity_sentence(found),
        "recorded": [_table(*each) for each in recorded if each[2]],
        "ranking": _table(caption, ("policy", *metrics), ranking_rows(found)) if found["ranking"] else None,
        "on_host": _table(f"{host_caption(found)}.", ("policy", *map(label, found["on_host"]["metrics"])), host_rows(found)) if host_rows(found) else None,
        "forecast": _table(FORECAST_CAPTION, ("policy", *metrics), forecast_rows(found)) if forecast_rows(found) else None,
        "measured": measured_sentence(found),
        "moments": _moments(found, bodies),
        "confirmed": confirmed_sentence(found),
        "advice": found["advice"],
        "load": found["load"],
        "warnings": [*found["warnings"], *left_out(found)],
        "who_pays": [
            (name_of(row), row is best_other(found),
             _table("Waited for a CPU: all tasks of a group; the longest single wait, at the baseline and then",
                    GROUP_HEADS, rows))
            for row in found["ranking"]
            if not row["is_baseline"] and (rows := group_rows(row))
        ],
    }  # fmt: skip
