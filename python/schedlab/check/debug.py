# SPDX-License-Identifier: MIT
"""`schedlab debug`: gdb on the policy of a run of the simulator, stopped at a simulated time.

The run is done again, in gdb, from what its folder holds: program, seed, machine and knobs, and the
copy of the policy, compiled without optimisation. First it is done once without gdb, and must give the
records of the folder: what one looks at is that run, not one like it.

Read next: hosts/sim/gdb.py, the commands; runs/case.py, which does a run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import paths
from ..errors import NotFoundError, PolicyError, SchedlabError, UnavailableError, UsageError
from ..hosts.host import Job
from ..hosts.kinds import job_arguments
from ..hosts.sim import program_of
from ..policy.build import BuiltPolicy, build_policy, compile_policy
from ..policy.find import load_policy
from ..program.file import find_program_file
from ..records.file import hash_file
from ..runs.case import options_of_run
from ..runs.folders import file_of_run

#: Each line of the source is there, and each variable; results are those of any other level.
FLAGS = ("-O0", "-g3")
SECONDS_MAX = 600


def read_run(folder: Path, *, may_interleave: bool = False) -> dict[str, Any]:
    """What `run.json` of a run's folder says; a UsageError where that run can not be done again here."""
    file = file_of_run(folder, "run.json")
    try:
        run: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read ({error}); do the run again") from error
    if run.get("host") != "sim":
        raise UsageError(
            f"{folder}: a run of host {run.get('host')!r} does not repeat itself exactly; take one of --host sim"
        )
    if run.get("interleave") and not may_interleave:
        raise UsageError(
            f"{folder}: its CPUs interleave, which gdb does not follow; see what `schedlab check` said of it"
        )
    if not run.get("source"):
        raise UsageError(f"{folder}: no policy has run there ({run.get('error') or 'no source was kept'})")
    return run


def job_again(folder: Path, run: Mapping[str, Any], records: Path) -> Job:
    """A run of a folder as it is done again, with records elsewhere; `do_again` says with which options."""
    program = find_program_file(folder, run["program_hash"])
    if program is None:
        raise NotFoundError(
            f"{folder}: its program, {run['program_hash'][:12]}, is in no folder `programs` above it; do the run again"
        )
    return Job(
        label="again", policy=_policy_again(folder, run), program=program, records=records, n_cpus=run["cpus"],
        seed=run["seed"], tick_ns=run["tick_ns"],
    )  # fmt: skip


def _policy_again(folder: Path, run: Mapping[str, Any]) -> BuiltPolicy:
    """The policy of the folder's copy; of a crate, of which a copy is not one, what was copied, if it is the same."""
    copied = run["source"]["files"][0]
    try:
        return build_policy(load_policy(str(folder / copied)), run["knobs"])
    except PolicyError:
        original = Path(run["source"].get("path", copied))
        if not original.is_file():
            raise
        built = build_policy(load_policy(str(original)), run["knobs"])
        if built.policy_hash != run["policy_hash"]:
            raise UsageError(
                f"{folder}: {original} is not any more what has run there; do the run again"
            ) from None
        return built


def do_again(folder: Path, run: Mapping[str, Any], job: Job, do: Callable[[Job], object]) -> Job:
    """Do a run of a folder again, and return it with the options with which it leaves the folder's records.

    Whether tasks were there before is the one thing that the folder does not say, so both are tried.
    UsageError: neither leaves them. SchedlabError: it does not come to an end.
    """
    recorded = folder / "records.slr"
    wanted = run["record_hash"] or (hash_file(recorded) if recorded.is_file() else None)
    for are_roots_woken in (False, True):
        tried = replace(job, options=options_of_run(run, are_roots_woken=are_roots_woken))
        job.records.unlink(missing_ok=True)
        try:
            do(tried)
        except subprocess.TimeoutExpired as error:
            raise SchedlabError(f"{folder}: the run had not ended after {SECONDS_MAX} s") from error
        if wanted is None or (job.records.is_file() and hash_file(job.records) == wanted):
            return tried
    raise UsageError(
        f"{folder}: this version of schedlab gives other records than the folder has; do the run again"
    )


def simulator_words(folder: Path, run: Mapping[str, Any], scratch: Path) -> list[str]:
    """The simulator's words for a run, tried: they give the folder's records. `scratch` is a folder for those."""
    first = job_again(folder, run, scratch / "records.slr")
    policy = first.policy.policy
    # One that was compiled of the same text elsewhere names that file, which may be another by now.
    own = f"-fdebug-prefix-map={policy.path.parent}={policy.path.parent}"
    compiled = compile_policy(policy, more_flags=(*FLAGS, own))
    words: list[str] = []

    def do(job: Job) -> None:
        words[:] = [str(program_of(job)), "--no-fork", "--policy", str(compiled), *job_arguments(job)]
        subprocess.run(words, capture_output=True, check=False, timeout=SECONDS_MAX)

    do_again(folder, run, first, do)
    at = words.index("--records")
    return words[:at] + words[at + 2 :]


def gdb_words(folder: Path, at_ns: int | None, commands: list[str]) -> list[str]:
    """The words that start gdb: at the run's time `at_ns` in ns, or where it failed, then with these commands alone."""
    gdb = shutil.which("gdb")
    if gdb is None:
        raise UnavailableError("debug needs gdb: apt-get install gdb")
    run = read_run(folder)
    with tempfile.TemporaryDirectory(prefix="schedlab-debug-") as scratch:
        words = simulator_words(folder, run, Path(scratch))
    begin = "failure" if at_ns is None and run["status"] == "failed" else f"at {at_ns or 0}ns"
    batch = ["-batch"] if commands else []
    script = paths.resource_root() / "hosts" / "sim" / "gdb.py"
    return [
        gdb, "-q", "-nx", *batch, "-x", str(script),
        *(word for command in (begin, *commands) for word in ("-ex", command)), "--args", *words,
    ]  # fmt: skip
