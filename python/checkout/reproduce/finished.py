# SPDX-License-Identifier: MIT
"""Sets of runs that an earlier call has finished, read back from its folder.

        OUT/SET/set.json   what the set was, its size, and every run with its metrics

So a call with `--host` adds to what is on disk: its page shows all sets that have
finished runs. A set whose definition or policies have changed since is not shown.

Invariant: what is read back is what `do_runs` returned, or nothing.
Read next: runs.py, which does the runs; steps.py, the only caller.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from schedlab.errors import SchedlabError
from schedlab.files import write_text
from schedlab.policy.find import find_policy
from schedlab.policy.linux_class import is_class

from .samples import Done
from .spec import Runs, Size

SET_FILE = "set.json"
#: What no claim, table or page reads of a run; its own run.json has it.
_LARGE = {"host_answer", "environment"}


def save_finished(done: Done, size: Size, out: Path, *, today: date) -> None:
    """Write down a set that was run; not one whose host is not here."""
    if done.problem or not done.n_runs:
        return
    content = {
        "set": _identity(done.runs), "size": asdict(size), "made": today.isoformat(),
        "found": [[workload, policy, [{name: value for name, value in run.items() if name not in _LARGE} for run in runs]]
                  for (workload, policy), runs in done.found.items()],
    }  # fmt: skip
    write_text(out / done.runs.name / SET_FILE, json.dumps(content) + "\n")


def load_finished(runs: Runs, out: Path) -> tuple[Done, Size, str] | None:
    """Read back a set that an earlier call has finished."""
    try:
        content = json.loads((out / runs.name / SET_FILE).read_text(encoding="utf-8"))
        if content["set"] != _identity(runs):
            return None
        found = {(workload, policy): each for workload, policy, each in content["found"]}
        size, made = Size(**content["size"]), str(content["made"])
        folders = {run["directory"] for each in found.values() for run in each if run["status"] == "ok"}
        if not all((Path(folder) / "run.json").is_file() for folder in folders):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Done(runs, found), size, made


def _identity(runs: Runs) -> dict[str, Any]:
    """All that a set is made from, with its policies by their text."""
    texts = {}
    for words in runs.policies.values():
        name = words.split()[0]
        try:
            texts[name] = (
                "" if is_class(name) else hashlib.sha256(Path(find_policy(name)).read_bytes()).hexdigest()
            )
        except (OSError, SchedlabError):
            texts[name] = ""
    spec = {name: value for name, value in asdict(runs).items() if name not in ("title", "quick", "full")}
    return json.loads(json.dumps(spec | {"texts": texts}))
