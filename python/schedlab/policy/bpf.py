# SPDX-License-Identifier: MIT
"""Clang for BPF: it compiles policies for Linux, and has a second opinion on all others.

A policy that this machine's compiler takes may be one that no BPF has: more than five
arguments on the stack, 512 bytes of variables, assembly of x86. Where clang is there, it
is asked once for each content of a file, which a note in the cache remembers.

Invariant: a refusal is an error of clang's on a line of the policy. Its warnings, its own
crash and its absence refuse nothing. BPF is taken as Linux 6.12 has it, the first with
sched_ext (-mcpu=v4), though what schedlab loads is made for older ones as well.
Read next: build.py, which asks; hosts/guest_build.py, which compiles for Linux.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from .. import paths
from ..errors import PolicyError, UnavailableError

BPF_COMPILERS = ("clang-19", "clang", "clang-20", "clang-18", "clang-16")
#: Of the compiler's options, those that decide what it accepts.
_OPINION = ("-target", "bpf", "-mcpu=v4", "-std=gnu11", "-ffreestanding", "-O2", "-g", "-w")
SECONDS_MAX = 60
ERRORS_MAX = 10
#: Of what another target has made; "fatal error" and "error" alike.
_ERROR = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<what>.+)$", re.MULTILINE)
#: What says nothing to a reader: the compiler's own data, and an option that Linux does not have.
_NOISE = re.compile(r"0x[0-9a-f]+: .* (?=too many arguments)| For non-kernel uses.*")


def find_bpf_compiler() -> str:
    """Path of a clang that can compile for BPF."""
    for name in BPF_COMPILERS:
        path = shutil.which(name)
        if path:
            return path
    raise UnavailableError(
        "clang-19 is missing, and a policy for Linux is compiled with it; to have it: "
        "./lab setup, or sudo apt-get install clang-19"
    )


def second_opinion_compiler() -> str:
    """Path of a clang that knows BPF as Linux 6.12 has it."""
    for path in filter(None, map(shutil.which, BPF_COMPILERS)):
        if _knows_bpf(path, os.stat(path).st_mtime_ns):
            return path
    raise UnavailableError(
        "no clang for BPF (18 or later) is there, so policies are held against what Linux accepts by names and "
        "prototypes only; to have it: ./lab setup, or sudo apt-get install clang-19"
    )


@lru_cache(maxsize=8)
def _knows_bpf(compiler: str, _mtime_ns: int) -> bool:
    """Whether it compiles nothing at all for such a CPU; a clang may be built without BPF."""
    return _run([compiler, *_OPINION, "-x", "c", "-c", "/dev/null", "-o", "/dev/null"]) == ""


def _run(command: list[str]) -> str | None:
    """What it wrote, empty where it succeeded; None where it could not be asked."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS_MAX,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr or f"ended with {done.returncode}" if done.returncode else ""


def is_object(path: Path) -> bool:
    """Whether a policy is given as an object of BPF, not as its source."""
    return path.name.endswith(".bpf.o")


def compile_object(path: Path, content_hash: str) -> Path:
    """Compile a policy for BPF, or find the result in the cache: to read its variables."""
    compiler = find_bpf_compiler()
    key = "\0".join([content_hash, compiler, str(os.stat(compiler).st_mtime_ns), *_OPINION])
    folder = paths.cache_folder("policies")
    result = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.bpf.o"
    if result.is_file():
        return result
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as scratch:
        made = Path(scratch) / "policy.o"
        said = _run(
            [compiler, *_OPINION, "-I", str(paths.include_folder()), "-c", str(path), "-o", str(made)]
        )
        if said != "":
            raise PolicyError(f"{path} does not compile for Linux:\n{said or 'clang could not be asked'}")
        os.replace(made, result)
    return result


def check_for_linux(path: Path, content_hash: str) -> None:
    """Have clang compile a policy for BPF, unless it has done so before."""
    compiler = next(filter(None, map(shutil.which, BPF_COMPILERS)), None)
    if compiler is None:
        return
    key = "\0".join([content_hash, compiler, str(os.stat(compiler).st_mtime_ns), *_OPINION])
    note = paths.cache_folder("policies") / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.linux"
    if note.exists():
        return
    try:
        compiler = second_opinion_compiler()
    except UnavailableError:
        return
    with tempfile.TemporaryDirectory(prefix="schedlab-bpf-") as made:
        said = _run(
            [
                compiler,
                *_OPINION,
                "-I",
                str(paths.include_folder()),
                "-c",
                str(path),
                "-o",
                f"{made}/policy.o",
            ]
        )
    lines = [
        f"{found['file']}:{found['line']}: {_NOISE.sub('', found['what'])}"
        for found in _ERROR.finditer(said or "")
    ]
    if lines:
        lines = list(dict.fromkeys(lines))
        left = len(lines) - ERRORS_MAX
        shown = "\n".join(lines[:ERRORS_MAX]) + (f"\n({left} more)" if left > 0 else "")
        raise PolicyError(
            f"{path} compiles here and not for Linux, says {Path(compiler).name} -target bpf:\n{shown}"
        )
    note.touch()
