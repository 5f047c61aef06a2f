# SPDX-License-Identifier: MIT
"""Build the thread library and programs that use it, with sanitizers or without.

What was built is kept in the cache under a hash of all that it is made from: several
files of tests need the same, and run in processes of their own.

Read next: test_threads.py.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from schedlab import paths

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOST = ROOT / "hosts" / "uthreads"
COMMON = ROOT / "hosts" / "common"
#: The machine, the library over it, and what reads a policy's file, as meson.build names it.
SHARED = re.search(r"common_policy_file = files\((.*)\)", (COMMON / "meson.build").read_text())
SOURCES = [
    *sorted(HOST.glob("*.c")),
    *sorted(HOST.glob("lib/*.c")),
    *(COMMON / name for name in re.findall(r"'(.*?)'", SHARED[1])),
]
#: None takes a tenth of it; a machine that others use may take its time.
RUN_SECONDS_MAX = 120
BUILD_SECONDS_KEPT = 86400

#: Flags per kind of build. A policy's callback is called through another type of
#: function, which is how the contract is: that one check is off. A sanitizer delivers
#: signals late, so threads can be stopped at points of the library there.
FORCED = "-DUT_HAS_FORCED_POINTS=1"
KINDS = {
    "plain": ("-O2",),
    "address": ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", FORCED),
    "thread": ("-O1", "-fsanitize=thread", FORCED),
}
#: clang links its sanitizers into the program unless told not to.
CLANG_FLAGS = {
    "plain": (),
    "address": ("-shared-libsan", "-fno-sanitize=function"),
    "thread": ("-shared-libsan",),
}


@dataclass(frozen=True)
class Toolchain:
    """A compiler and a kind of build, with a folder for what they make."""

    compiler: str  #: Path of gcc or clang.
    kind: str  #: Key of `KINDS`.
    folder: Path  #: Where the results go; from `build_folder`.

    @property
    def flags(self) -> tuple[str, ...]:
        """What every file is compiled with."""
        clang = CLANG_FLAGS[self.kind] if "clang" in self.compiler else ()
        return ("-g", "-Wall", "-Wextra", "-Werror", *KINDS[self.kind], *clang)

    @property
    def run_path(self) -> tuple[str, ...]:
        """Where the sanitizers' own libraries are."""
        if "clang" not in self.compiler or self.kind == "plain":
            return ()
        runtime = {"thread": "tsan", "address": "asan"}[self.kind]
        name = f"libclang_rt.{runtime}-{os.uname().machine}.so"
        found = Path(compile_all([self.compiler, f"-print-file-name={name}"]).strip())
        if not found.is_file():
            pytest.skip(f"{name} is missing; to have it: ./lab setup")
        return (f"-Wl,-rpath,{found.parent}", "-Wl,--disable-new-dtags")

    def _make(self, name: str, *words: object, is_cpp: bool = False) -> Path:
        """Compile a file, unless it is there or somebody else is at it just now."""
        target = self.folder / name
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                draft = target.with_name(f"{name}.draft")
                # Without the driver's -std the suffix says which language a file is in.
                runtime = ("-lstdc++",) if is_cpp else ("-std=gnu11",)
                compile_all([self.compiler, *self.flags, "-o", draft, *words, *runtime])
                draft.rename(target)
        return target

    def library(self) -> Path:
        """Compile the library: core and host together."""
        return self._make(
            "libschedlab-uthreads.so",
            "-fPIC",
            "-shared",
            "-Wl,-Bsymbolic",
            f"-I{HOST / 'include'}",
            f"-I{ROOT / 'include'}",
            f"-I{COMMON}",
            f"-I{HOST}",
            ROOT / "core" / "build.c",
            *SOURCES,
            HOST / f"context_{os.uname().machine}.S",
            "-ldl",
            "-lpthread",
        )

    def program(self, name: str, *libraries: str) -> Path:
        """Compile programs/NAME and link it with the library."""
        self.library()
        source = HERE / "programs" / name
        return self._make(
            source.stem,
            f"-I{HOST / 'include'}",
            f"-I{HERE / 'programs'}",
            source,
            f"-L{self.folder}",
            "-lschedlab-uthreads",
            f"-Wl,-rpath,{self.folder}",
            *self.run_path,
            "-lpthread",
            *libraries,
            is_cpp=source.suffix == ".cpp",
        )

    def plugin(self, name: str) -> Path:
        """Compile programs/NAME to a library that is no part of any program."""
        source = HERE / "programs" / name
        return self._make(f"lib{source.stem}.so", "-fPIC", "-shared", source)

    def policy(self, source: Path) -> Path:
        """Compile a policy as `schedlab run` does."""
        return self._make(
            f"{source.name.removesuffix('.bpf.c')}.so",
            "-Wno-unused-parameter",
            "-fPIC",
            "-shared",
            "-fno-semantic-interposition",
            f"-I{ROOT / 'include'}",
            source,
        )


def build_folder(compiler: str, kind: str) -> Path:
    """Folder in the cache for what a compiler makes of the sources as they are now; others are removed after a day."""
    parent = paths.cache_folder("uthreads-tests")
    chain = Toolchain(compiler, kind, parent)
    digest = hashlib.sha256(repr((chain.flags, str(parent))).encode())
    digest.update(compile_all([compiler, "--version"]).encode() + Path(__file__).read_bytes())
    for folder in (
        "bpf",
        "core",
        "hosts/common",
        "hosts/uthreads",
        "include",
        "policies",
        "tests/uthreads/programs",
    ):
        for source in sorted((ROOT / folder).rglob("*")):
            if source.suffix in (".c", ".h", ".S", ".cpp"):
                digest.update(str(source).encode() + source.read_bytes())
    for old in parent.iterdir():
        if time.time() - old.stat().st_mtime > BUILD_SECONDS_KEPT:
            shutil.rmtree(old, ignore_errors=True)
    folder = parent / f"{Path(compiler).name}-{kind}-{digest.hexdigest()[:16]}"
    folder.mkdir(exist_ok=True)
    folder.touch()
    return folder


def compile_all(command: list) -> str:
    """Run a compiler; what it says is the message of a failure."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, command))}\n{done.stderr}", pytrace=False)
    return done.stdout


def run_program(
    binary: Path, *words: object, status: int = 0, env: dict | None = None, seconds: float = RUN_SECONDS_MAX
):
    """Run a test program, which must end with that status, and wait for it; `env` adds variables."""
    settings = {
        "ASAN_OPTIONS": "detect_stack_use_after_return=0:abort_on_error=0:exitcode=99",
        "TSAN_OPTIONS": "exitcode=98",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    name = Path(binary).name
    try:
        done = subprocess.run(
            [binary, *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={**os.environ, **settings, **(env or {})},
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"") + (late.stderr or b"")
        pytest.fail(f"{name} {words}: no end after {seconds} s\n{said[-2000:]!r}")
    assert done.returncode == status, (
        f"{name} {' '.join(map(str, words))}: status {done.returncode}\n"
        f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    return done
