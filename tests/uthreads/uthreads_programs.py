# SPDX-License-Identifier: MIT
"""Build the thread library and programs that use it, with sanitizers or without.

Read next: test_threads.py.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOST = ROOT / "hosts" / "uthreads"
RUN_SECONDS_MAX = 20

#: Flags per kind of build. A policy's callback is called through another type of
#: function, which is how the contract is: that one check is off.
KINDS = {
    "plain": ("-O2",),
    "address": ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "thread": ("-O1", "-fsanitize=thread"),
}
#: clang links its sanitizers into the program unless told not to.
CLANG_FLAGS = {
    "plain": (),
    "address": ("-shared-libsan", "-fno-sanitize=function"),
    "thread": ("-shared-libsan",),
}


@dataclass(frozen=True)
class Toolchain:
    """A compiler and a kind of build, with a folder for what they make.

    Attributes
    ----------
    compiler : str
        Path of gcc or clang.
    kind : str
        Key of `KINDS`.
    folder : pathlib.Path
        Where the results go.
    """

    compiler: str
    kind: str
    folder: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """What every file is compiled with."""
        clang = CLANG_FLAGS[self.kind] if "clang" in self.compiler else ()
        return ("-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", *KINDS[self.kind], *clang)

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

    def library(self) -> Path:
        """Compile the library: core and host together."""
        target = self.folder / "libschedlab-uthreads.so"
        if not target.exists():
            machine = os.uname().machine
            compile_all([
                self.compiler, *self.flags, "-fPIC", "-shared", "-Wl,-Bsymbolic",
                f"-I{HOST / 'include'}", f"-I{ROOT / 'include'}", f"-I{ROOT / 'core'}", f"-I{HOST}",
                "-o", target, *sorted((ROOT / "core").glob("*.c")), *sorted(HOST.glob("*.c")),
                HOST / f"context_{machine}.S", "-ldl", "-lpthread",
            ])  # fmt: skip
        return target

    def program(self, name: str, *libraries: str) -> Path:
        """Compile programs/NAME and link it with the library."""
        library = self.library()
        source = HERE / "programs" / name
        target = self.folder / source.stem
        if not target.exists():
            compile_all([
                self.compiler, *self.flags, f"-I{HOST / 'include'}", f"-I{HERE / 'programs'}",
                "-o", target, source, f"-L{self.folder}", "-lschedlab-uthreads",
                f"-Wl,-rpath,{self.folder}", *self.run_path, "-lpthread", *libraries,
            ])  # fmt: skip
            assert library.exists()
        return target

    def policy(self, source: Path) -> Path:
        """Compile a policy as `schedlab run` does."""
        target = self.folder / f"{source.name.removesuffix('.bpf.c')}.so"
        if not target.exists():
            compile_all([
                self.compiler, *self.flags, "-Wno-unused-parameter", "-fPIC", "-shared",
                "-fno-semantic-interposition", f"-I{ROOT / 'include'}", "-o", target, source,
            ])  # fmt: skip
        return target


def compile_all(command: list) -> str:
    """Run a compiler; what it says is the message of a failure."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, command))}\n{done.stderr}", pytrace=False)
    return done.stdout


def run_program(binary: Path, *words: object, status: int = 0, env: dict | None = None):
    """Run a test program and wait for it.

    Parameters
    ----------
    binary : pathlib.Path
        From `Toolchain.program`.
    *words : object
        Its arguments.
    status : int, default 0
        The exit status that it must have.
    env : dict, optional
        More variables of the environment.

    Returns
    -------
    subprocess.CompletedProcess
        With `stdout` and `stderr` as text.
    """
    settings = {
        "ASAN_OPTIONS": "detect_stack_use_after_return=0:abort_on_error=0:exitcode=99",
        "TSAN_OPTIONS": "exitcode=98",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    try:
        done = subprocess.run(
            [binary, *map(str, words)], capture_output=True, text=True, check=False,
            timeout=RUN_SECONDS_MAX, env={**os.environ, **settings, **(env or {})},
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"") + (late.stderr or b"")
        pytest.fail(f"{binary.name} {words}: no end after {RUN_SECONDS_MAX} s\n{said[-2000:]!r}")
    assert done.returncode == status, (
        f"{binary.name} {' '.join(map(str, words))}: status {done.returncode}\n"
        f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    return done
