# SPDX-License-Identifier: MIT
"""Programs outside the checkout build with what `meson install --tags uthreads` gives them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import QUICK_CFLAGS, _run, meson_build
from schedlab.policy.find import list_policies
from uthreads.test_docs import EXAMPLES, SAYS
from uthreads.test_threads import policy
from uthreads.uthreads_programs import HERE, HOST, ROOT, compile_all

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
    pages = {name for name in held if name.endswith(".3")}
    assert {"uthreads.3", "ut_select.3"} < pages
    held -= pages
    library = "libschedlab-uthreads.so"
    assert held == {library, f"{library}.1", f"{library}.1.0.0", "schedlab-uthreads.pc", "uthreads.h", "gt.h", "gt_include.h",
                    *(p.name for p in (ROOT / "include" / "scx").rglob("*.h")),
                    *(f"{name}.so" for name in list_policies())}  # fmt: skip
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


@pytest.mark.parametrize("n_args", [4, 5, 6, 7])
def test_a_client_of_gtthreads_compiles_as_it_is(build, need, tmp_path, n_args):
    where = install(build, tmp_path / "root")
    compile_all([need("gcc"), f"-DNR_ARGS={n_args}", "-o", tmp_path / "client", HERE / "programs" / "gt_client.c",
                 *flags(need, where, "--cflags", "--libs"), "-Wall", "-Werror"])  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GT_CPUS", "2")
        patch.setenv("GT_POLICY", "credit")
        assert run(tmp_path / "client", path=where.parent) == "28000\n"


def test_policies_are_named_and_own_ones_compiled_by_pkg_config(build, need, tmp_path):
    where = install(build, tmp_path / "root")
    words = flags(need, where, "--cflags", "--libs")
    (tmp_path / "pipe.c").write_text(EXAMPLES["pipe"])
    compile_all([need("gcc"), "-o", tmp_path / "pipe", tmp_path / "pipe.c", *words])
    own = tmp_path / "mine.bpf.c"
    own.write_text((ROOT / "policies" / "rr.bpf.c").read_text().replace("rr_ops", "mine_ops"))
    compile_all([need("gcc"), "-O2", "-fPIC", "-shared", *flags(need, where, "--cflags"), "-o",
                 tmp_path / "mine.so", own])  # fmt: skip
    for name in (*list_policies(), tmp_path / "mine.so"):
        assert run(tmp_path / "pipe", name, path=where.parent) == SAYS["pipe"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UT_POLICIES", str(tmp_path))
        assert run(tmp_path / "pipe", "mine", path=where.parent) == SAYS["pipe"]
        patch.setenv("LD_LIBRARY_PATH", str(where.parent))
        missing = subprocess.run([tmp_path / "pipe", "credit"], capture_output=True, text=True, check=False)
        assert missing.returncode == 1
        assert f"{tmp_path}/credit.so" in missing.stderr and "UT_POLICIES" in missing.stderr


#: What stands in for the C library's and the C++ runtime's, and what policies call.
UNVERSIONED = (
    r"pthread_(mutex|rwlock|spin)_\w+|pthread_once|__cxa_guard_\w+|(scx_)?bpf_\w+|sl_(?!host_)\w+|CONFIG_HZ"
)


def test_the_library_exports_what_programs_and_policies_call(build, need):
    library = build / "hosts" / "uthreads" / "libschedlab-uthreads.so"
    told = compile_all([need("readelf"), "-d", library])
    assert "Library soname: [libschedlab-uthreads.so.1]" in told
    names = [
        line.split()[-1] for line in compile_all([need("nm"), "-D", "--defined-only", library]).splitlines()
    ]
    names.remove("SCHEDLAB_UTHREADS_1")
    headers = "".join(path.read_text() for path in (HOST / "include").rglob("*.h")).replace(" GT_ARGS_", "")
    declared = set(re.findall(r"^\w[^;{}()]*?\b(\w+)\((?=[^;{]*;)", headers, re.MULTILINE))
    versioned = {name.split("@@")[0] for name in names if name.endswith("@@SCHEDLAB_UTHREADS_1")}
    assert len(versioned) > 60 and versioned == declared
    rest = [name for name in names if "@" not in name]
    assert [name for name in rest if not re.fullmatch(UNVERSIONED, name)] == []


def test_c_and_cpp_programs_with_the_static_library(toolchain, need, tmp_path):
    build = meson_build(
        ROOT / "build-static", "-Ddefault_library=static", f"-Dc_args={QUICK_CFLAGS}", target="uthreads"
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
