# SPDX-License-Identifier: MIT
"""Measure an earlier commit of this project by its own benchmark, on the same machine.

Used by selfbench.py for `--beside COMMIT`. The commit is built once, in a folder of the
cache, with what this environment has; its figures are those of its own bench/selfbench.py.

Read next: selfbench.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from schedlab import paths
from schedlab.errors import NotFoundError, UnavailableError

#: What the other checkout's Python runs: its own selfbench, as JSON on the last line.
MEASURE = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("schedlab_selfbench", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
print(json.dumps(module.measure(sys.argv[2], is_quick=sys.argv[3] == "quick")))
"""

#: The sweep of selfbench, for a commit whose own has none: as it is called, and with a process per CPU.
SWEEP = """
import concurrent.futures, json, multiprocessing, os, sys, tempfile, time
import schedlab

def main():
    schedlab.sweep("mixed", "rr", seeds=2)
    n_runs, seconds = int(sys.argv[1]), []
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as pool:
        schedlab.sweep("mixed", "rr", seeds=8, executor=pool)
        for executor in (None, pool):
            with tempfile.TemporaryDirectory() as out:
                begin = time.perf_counter()
                schedlab.sweep("mixed", "rr", seeds=n_runs, out=out, executor=executor)
                seconds.append(time.perf_counter() - begin)
    print(json.dumps([n_runs / s for s in seconds]))

if __name__ == "__main__":
    main()
"""


def figures(commit: str, host: str, *, is_quick: bool, root: Path | None = None) -> dict[str, float]:
    """Measure a host at another commit, tag or branch of the checkout `root`: values by the names of its rows.

    NotFoundError: there is no such commit. UnavailableError: it cannot be built or measured here.
    """
    folder = _build(root or paths.resource_root(), commit)
    text = _python(
        folder, "-c", MEASURE, folder / "bench" / "selfbench.py", host, "quick" if is_quick else "whole"
    )
    rows = json.loads(text)["benchmarks"]
    found = {row["name"]: row["value"] for row in rows if row["value"] is not None}
    if host == "sim" and "sweep_runs_per_s" not in found and (folder / "python").is_dir():
        # A file, since the processes of a pool import it.
        script = folder / "sweep.py"
        script.write_text(SWEEP)
        found["sweep_runs_per_s"] = max(json.loads(_python(folder, script, "100" if is_quick else "1000")))
    return found


def _python(folder: Path, *words: str | Path) -> str:
    """The last line that Python prints with that commit's package."""
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True, text=True, check=False, cwd=folder,
        env=dict(os.environ, PYTHONPATH=str(folder / "python")),
    )  # fmt: skip
    if done.returncode:
        raise UnavailableError(f"{folder.name}: its benchmark failed: {_last_line(done.stderr)}")
    return done.stdout.splitlines()[-1]


def _build(root: Path, commit: str) -> Path:
    """The commit's files, built; kept in the cache by its hash."""
    found = subprocess.run(
        ["git", "-C", root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise NotFoundError(f"--beside {commit}: no such commit in {root}; 'git log --oneline' lists them")
    folder = paths.cache_folder("beside") / found.stdout.strip()[:12]
    stamp = folder / "built"
    if stamp.is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    files = subprocess.run(
        ["git", "-C", root, "archive", found.stdout.strip()], capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", folder], input=files.stdout, check=True)
    meson = Path(sys.executable).parent / "meson"
    # One that was interrupted begins anew.
    wipe = ["--wipe"] if (folder / "build").exists() else []
    for words in (["setup", *wipe, "build"], ["compile", "-C", "build"]):
        done = subprocess.run([meson, *words], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(
                f"--beside {commit}: meson {words[0]} failed: {_last_line(done.stdout + done.stderr)}"
            )
    stamp.touch()
    return folder


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]
