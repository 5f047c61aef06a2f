# SPDX-License-Identifier: MIT
"""Programs outside the checkout build with what `meson install --tags uthreads` gives them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import _run, meson_build
from uthreads.test_docs import EXAMPLES, SAYS
from uthreads.test_threads import policy
from uthreads.uthreads_programs import HERE, ROOT, compile_all

pytestmark = pytest.mark.full


def install(build: Path, folder: Path) -> Path:
    """Install what C programs need below a folder; where pkg-config finds it."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    _run(
        "meson",
        "install",
        "-C",
        build,
        "--no-rebuild",
        "--tags",
        "uthreads",
        "--destdir",
        folder,
        env={**os.environ, "PATH": path},
    )
    (found,) = folder.rglob("schedlab-uthreads.pc")
    return found.parent


def flags(need, where: Path, *words: str) -> list[str]:
    """What pkg-config says of the library."""
    done = subprocess.run(
        [need("pkg-config"), *words, "schedlab-uthreads"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PKG_CONFIG_PATH": str(where)},
    )
    return done.stdout.split()


def run(program: Path, *words, path: Path | None = None) -> str:
    env = {**os.environ, **({"LD_LIBRARY_PATH": str(path)} if path else {})}
    done = subprocess.run(
        [program, *map(str, words)], capture_output=True, text=True, timeout=120, check=True, env=env
    )
    return done.stdout


def test_c_and_cpp_programs_with_the_shared_library(build, toolchain, need, tmp_path):
    where = install(build, tmp_path / "root")
    held = {p.name for p in (tmp_path / "root").rglob("*") if p.is_file()}
    assert held == {"libschedlab-uthreads.so", "schedlab-uthreads.pc", "uthreads.h", "gt.h"}
    version = (ROOT / "VERSION").read_text().strip()
    assert flags(need, where, "--modversion") == [version]
    source = tmp_path / "pipe.c"
    source.write_text(EXAMPLES["pipe"])
    words = [*flags(need, where, "--cflags", "--libs"), "-Wall", "-Werror"]
    compile_all([need("gcc"), "-o", tmp_path / "pipe", source, *words])
    compile_all([need("g++"), f"-I{HERE / 'programs'}", "-o", tmp_path / "exceptions",
                 HERE / "programs" / "exceptions.cpp", *words])  # fmt: skip
    rr = policy(toolchain("gcc", "plain"), "rr")
    assert run(tmp_path / "pipe", rr, path=where.parent) == SAYS["pipe"]
    assert run(tmp_path / "exceptions", rr, 2, path=where.parent) == "good\n"


def test_c_and_cpp_programs_with_the_static_library(toolchain, need, tmp_path):
    build = meson_build(
        ROOT / "build-static", "-Ddefault_library=static", target="hosts/uthreads/libschedlab-uthreads.a"
    )
    where = install(build, tmp_path / "root")
    words = [*flags(need, where, "--static", "--cflags", "--libs"), "-Wall", "-Werror"]
    compile_all([need("gcc"), "-o", tmp_path / "spin", HERE / "programs" / "spin.c", *words])
    compile_all([need("g++"), f"-I{HERE / 'programs'}", "-o", tmp_path / "exceptions",
                 HERE / "programs" / "exceptions.cpp", *words])  # fmt: skip
    for name in ("rr", "credit"):
        # Threads that never give way: they are preempted, and the policy finds its functions.
        chosen = policy(toolchain("gcc", "plain"), name)
        run(tmp_path / "spin", chosen, 2)
        assert run(tmp_path / "exceptions", chosen, 2) == "good\n"
    assert (
        "schedlab"
        not in subprocess.run(["ldd", tmp_path / "spin"], capture_output=True, text=True, check=True).stdout
    )
