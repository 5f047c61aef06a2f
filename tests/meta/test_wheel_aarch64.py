# SPDX-License-Identifier: MIT
"""The wheel for aarch64, made here by a cross compiler, does under QEMU what this machine does; and the release."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from conftest import QUICK_CFLAGS, missing

LIBRARIES = Path("/usr/aarch64-linux-gnu")
AARCH64 = 183
#: What a processor is, is asked once, when policies' names are made; Polars asks as well, and is this machine's.
PRELUDE = """
import platform
real, platform.machine = platform.machine, lambda: "aarch64"
import schedlab.policy.build
platform.machine = real
from schedlab.__main__ import main
main()
"""


#: A compiler for aarch64 calls libgcc for an atomic operation, which asks the C library for the processor's kind.
ATOMIC = """
import platform
platform.machine = lambda: "aarch64"
from schedlab.policy.build import compile_policy
from schedlab.policy.find import load_policy
print(compile_policy(load_policy("cfs")))
"""


@pytest.mark.full
def test_atomic_operations_of_a_policy_need_no_c_library(need, tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {need("clang-19")} --target=aarch64-linux-gnu -fuse-ld=lld "$@"\n')
    compiler.chmod(0o755)
    env = os.environ | {"CC": str(compiler), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", ATOMIC], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(".so\n")


@pytest.fixture(scope="module")
def wheel(root, need, tmp_path_factory) -> Path:
    need("clang-19")
    if not LIBRARIES.is_dir():
        missing("the C library for aarch64", "./lab setup, as root or with sudo")
    folder = tmp_path_factory.mktemp("aarch64")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder,
         f"-Cbuild-dir={folder / 'build'}",
         f"-Csetup-args=--cross-file={root / 'tools' / 'aarch64-linux-gnu.ini'}", root],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "CFLAGS": QUICK_CFLAGS},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.nightly
def test_all_that_is_compiled_is_for_it_and_so_is_its_name(wheel):
    assert re.fullmatch(r"schedlab-.*-py3-none-manylinux_2_\d+_aarch64\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        binaries = {
            name: archive.read(name)
            for name in archive.namelist()
            if "/_data/bin/" in name or name.endswith(".so")
        }
    assert len(binaries) > 20
    assert {name for name, data in binaries.items() if data[18] != AARCH64} == set()


@pytest.mark.nightly
def test_its_runs_are_those_of_this_machine(root, wheel, need, tmp_path):
    emulator = need("qemu-aarch64")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    for name in ("schedlab-sim", "schedlab-supervise"):
        program = tmp_path / "schedlab/_data/bin" / name
        other = program.rename(f"{program}.aarch64")
        other.chmod(0o755)
        program.write_text(f'#!/bin/sh\nexec {emulator} -L {LIBRARIES} {shlex.quote(str(other))} "$@"\n')
        program.chmod(0o755)
    words = ["run", "mixed", "--policy", "cfs,mlfq", "--seeds", "2", "--json"]
    found = []
    for folder, start in ((tmp_path, ["-c", PRELUDE]), (root / "python", ["-m", "schedlab"])):
        work = tmp_path / f"work-{len(found)}"
        work.mkdir()
        env = {**os.environ, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(work)}
        for name in ("SCHEDLAB_ROOT", "CC"):
            env.pop(name, None)
        done = subprocess.run(
            [sys.executable, *start, *words], cwd=work, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        runs = json.loads(done.stdout)["runs"]
        found.append([(run["policy"], run["seed"], run["record_hash"], run["metrics"]) for run in runs])
        if folder == tmp_path:
            assert not list(work.rglob("*.so")), "a policy that came compiled was compiled again"
    assert len(found[0]) == 4
    assert found[0] == found[1]


# ---- the release -----------------------------------------------------------------


def jobs(root) -> dict:
    return yaml.safe_load((root / ".github/workflows/release.yml").read_text())["jobs"]


def test_release_publishes_what_each_of_its_jobs_makes_and_only_for_a_tag(root):
    found = jobs(root)
    publish = found.pop("publish")
    assert set(publish["needs"]) == set(found)
    assert publish["if"] == "github.ref_type == 'tag'"
    assert publish["permissions"] == {"id-token": "write"}, "nothing else may be written"
    for name, job in found.items():
        assert "permissions" not in job
        assert "upload-artifact" in job["steps"][-1]["uses"], name
    assert found["machine"]["strategy"]["matrix"]["runner"] == ["ubuntu-24.04", "ubuntu-24.04-arm"]


def test_release_runs_what_the_documents_say(root):
    commands = [step["run"] for job in jobs(root).values() for step in job["steps"] if "run" in step]
    said = (root / "docs/versions.md").read_text()
    for command in commands:
        for file in re.findall(r"\S+\.py|VERSION", command):
            assert (root / file).is_file()
    assert any(command.startswith("python tools/build_backend.py") for command in commands)
    assert "python tools/build_backend.py" in said and "cibuildwheel" in said


def test_cibuildwheel_builds_once_for_each_machine_and_tries_the_wheel(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())
    table = project["tool"]["cibuildwheel"]
    assert table["build"] == "cp311-manylinux_*", "one that each Python 3 takes"
    assert project["project"]["requires-python"] == ">=3.11"
    assert table["manylinux-x86_64-image"] == table["manylinux-aarch64-image"]
    assert "schedlab run" in table["test-command"]
