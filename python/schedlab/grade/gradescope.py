# SPDX-License-Identifier: MIT
"""The autograder of an assignment as Gradescope takes it, and what it finds there.

        ZIP:  setup.sh  run_autograder  assignment.toml and its files  secret.txt  [a wheel]
        /autograder/submission/*.bpf.c, submission_metadata.json  ->  /autograder/results/results.json

Invariant: whatever a student hands in, there is a results.json.
Read next: cli/grade.py.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from .. import paths
from ..errors import UsageError
from ..files import write_json
from .assignment import Assignment
from .grade import SUFFIX

_SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, when it builds the image of the assignment.
set -eu
apt-get update
apt-get install -y python3 python3-venv
python3 -m venv /autograder/venv
/autograder/venv/bin/pip install {package}
/autograder/venv/bin/schedlab doctor || true
"""
_RUN = """#!/usr/bin/env bash
# Gradescope runs this for each submission.
set -eu
autograder="${AUTOGRADER:-/autograder}"
[ ! -d "$autograder/venv" ] || PATH="$autograder/venv/bin:$PATH"
exec schedlab grade "$autograder/source/assignment.toml" --gradescope "$autograder"
"""
_SOURCE = "/autograder/source"


def files_of(assignment: Assignment) -> list[Path]:
    """Files that an assignment names, itself first.

    Those that come with schedlab are left out; one outside of the assignment's folder is a UsageError.
    """
    own = paths.resource_root().resolve()
    if assignment.is_about_kernel:
        raise UsageError(
            f"{assignment.path}: Gradescope's machines have no emulator and no sources of the teaching kernel; "
            "grade here, and upload OUT/results"
        )
    named = [assignment.starter, *(each.workload.path for each in assignment.workloads.values())]
    named += [Path(name) for name in assignment.baselines if name.endswith(".c")]
    folder = assignment.path.resolve().parent
    found = [assignment.path]
    for path in named:
        if path is None or any(
            path.resolve().is_relative_to(own / part) for part in ("workloads", "policies")
        ):
            continue
        if not path.resolve().is_relative_to(folder):
            raise UsageError(f"{path} is outside of {assignment.path.parent}: copy it there")
        found.append(path)
    return list(dict.fromkeys(found))


def write_zip(assignment: Assignment, secret: bytes, out: Path, wheel: Path | None = None) -> None:
    """Write the zip file that Gradescope takes as an autograder.

    The secret goes into it: it is not for students. Without `wheel`, this version is fetched from PyPI
    there. UsageError: a file of the assignment is outside of its folder, or `out` cannot be written.
    """
    version = (paths.resource_root() / "VERSION").read_text(encoding="utf-8").strip()
    package = f"'schedlab[anywhere]=={version}'" if wheel is None else f"'{_SOURCE}/{wheel.name}[anywhere]'"
    folder = assignment.path.resolve().parent
    try:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
            _add(file, "setup.sh", _SETUP.format(package=package).encode(), 0o755)
            _add(file, "run_autograder", _RUN.encode(), 0o755)
            _add(file, "secret.txt", secret + b"\n", 0o600)
            for path in files_of(assignment):
                is_itself = path == assignment.path
                name = "assignment.toml" if is_itself else path.resolve().relative_to(folder).as_posix()
                _add(file, name, path.read_bytes(), 0o644)
            if wheel is not None:
                _add(file, wheel.name, wheel.read_bytes(), 0o644)
    except OSError as error:
        raise UsageError(f"{error.filename or out}: {error.strerror}") from error


def _add(file: zipfile.ZipFile, name: str, data: bytes, mode: int) -> None:
    # A fixed date: equal inputs give equal files.
    info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = mode << 16
    file.writestr(info, data)


def submission_of(folder: Path) -> tuple[str, list[Path]]:
    """The student and the files of a submission.

    `folder` is Gradescope's `/autograder`. The first is the ids of all students of a group, with + between
    them; of C files there should be one. UsageError: no metadata say whose submission it is.
    """
    path = folder / "submission_metadata.json"
    try:
        users = json.loads(path.read_text(encoding="utf-8"))["users"]
        student = "+".join(sorted(str(user["id"]) for user in users))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: does not say whose submission it is ({error!r})") from error
    if not student:
        raise UsageError(f"{path}: 'users' is empty")
    found = sorted((folder / "submission").glob("*.c"))
    exact = [each for each in found if each.name.endswith(SUFFIX)]
    return student, exact or found


def write_results(folder: Path, result: dict[str, Any]) -> None:
    """Write `results/results.json`."""
    results = folder / "results"
    results.mkdir(exist_ok=True)
    write_json(results / "results.json", result)


def nothing_to_grade(assignment: Assignment, n_files: int) -> dict[str, Any]:
    """The result of a submission without one C file."""
    text = f"hand in one file NAME{SUFFIX}; there {'are' if n_files else 'is'} {n_files or 'none'}"
    tests = [
        {"name": test.name, "score": 0, "max_score": test.points, "status": "failed", "visibility": "hidden"}
        for test in assignment.tests
    ]
    return {"score": 0, "output": text, "visibility": "visible", "tests": tests}
