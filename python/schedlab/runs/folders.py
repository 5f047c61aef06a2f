# SPDX-License-Identifier: MIT
"""Read back the runs that `schedlab run` left in a folder.

A folder with `runs.json` is a whole set; without it (interrupted, or a part of a
set) every `run.json` below counts. A seed that was run twice on a deterministic
host counts once.

Must stay true: a damaged file is refused with its name, never skipped.
Read next: gate.py, which compares two folders.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import NotFoundError, UsageError, did_you_mean
from ..model import RunResult, check_results

if TYPE_CHECKING:
    from ..program.file import Program
    from ..records.file import Records

_FILES_MAX = 1_000_000


def read_run_folder(path: str | Path) -> list[RunResult]:
    """Read the runs of a folder."""
    path = Path(path)
    if path.is_dir():
        whole = path / "runs.json"
        files = [whole] if whole.is_file() else sorted(path.rglob("run.json"))[:_FILES_MAX]
        if not files:
            raise NotFoundError(f"{path}: holds no run; give a folder that `schedlab run --out` wrote")
    elif path.is_file():
        files = [path]
    else:
        beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise NotFoundError(f"{path}: no such folder{did_you_mean(path.name, beside)}")
    return _without_copies(path, [run for file in files for run in _read(file)])


def _read(file: Path) -> list[RunResult]:
    """Runs of one JSON file."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{file}: damaged ({error}); run again to replace it") from error
    runs = content.get("runs", [content]) if isinstance(content, dict) else None
    if not isinstance(runs, list):
        raise UsageError(f"{file}: is no list of runs; give what `schedlab run` wrote")
    return check_results(runs, str(file))


def find_records(folder: Path) -> Path:
    """The records of the folder of one run."""
    return file_of_run(folder, "records.slr")


def file_of_run(folder: Path, name: str) -> Path:
    """A file that the folder of one run has."""
    path = folder / name
    if not folder.exists():
        beside = [entry.name for entry in folder.parent.glob("*") if entry.is_dir()]
        raise NotFoundError(f"{folder}: no such folder{did_you_mean(folder.name, beside)}")
    if not path.is_file():
        inside = sorted(folder.glob(f"**/{name}"))[:3]
        hint = f"; runs below it: {', '.join(str(p.parent) for p in inside)}" if inside else ""
        raise NotFoundError(f"{folder}: is not the folder of a run: it has no {name}{hint}")
    return path


def _run_json(folder: Path) -> dict[str, Any]:
    """What the folder of one run says of it; empty where that cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        run: dict[str, Any] = json.loads((folder / "run.json").read_text())
        return run
    return {}


def records_until_failure(folder: Path) -> Records:
    """Records of the folder of one run; of one that failed, until it did: then built-in FIFO goes on."""
    from ..records.file import read_records

    records = read_records(find_records(folder))
    run = _run_json(folder)
    if not run:
        return records
    failed_at_ns = (run.get("host_answer") or {}).get("failed_at_ns", records.end_ns)
    # What has waited until then is queued elsewhere at that instant.
    return records.until(failed_at_ns - (run.get("error_kind") == "stall"))


def program_of_run(folder: Path) -> Program | None:
    """The program of the folder of one run; None where it is not there any more."""
    from ..program.file import find_program

    with contextlib.suppress(OSError, ValueError):
        return find_program(folder, _run_json(folder).get("program_hash"))
    return None


def task_names(folder: Path) -> dict[int, str]:
    """Names by pid in the table of tasks of a run."""
    import polars as pl

    tasks = pl.read_parquet(folder / "tasks.parquet", columns=["task", "name"])
    return dict(zip(tasks["task"].to_list(), tasks["name"].cast(str).to_list(), strict=True))


def _without_copies(path: Path, runs: list[RunResult]) -> list[RunResult]:
    """One run per workload, host, CPUs, policy and seed."""
    found: dict[tuple[Any, ...], RunResult] = {}
    for run in runs:
        key = (run["workload"], run["host"], run["cpus"], run["policy"], run["seed"])
        other = found.setdefault(key, run)
        if other is not run and other.get("record_hash") != run.get("record_hash"):
            raise UsageError(
                f"{path}: holds two different runs of {run['workload']}, {run['policy']}, seed "
                f"{run['seed']}; give the folder of one set of runs"
            )
    return list(found.values())


def fresh_folder() -> Path:
    """Find a folder below `out/` that does not exist yet."""
    from datetime import datetime

    stem = datetime.now().strftime("%Y%m%d-%H%M%S")
    for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
        path = Path("out") / (stem + suffix)
        if not path.exists():
            return path
    raise UsageError("out/ is full; name a folder with --out")
