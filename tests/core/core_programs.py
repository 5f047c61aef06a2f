# SPDX-License-Identifier: MIT
"""Build the core's test programs, with a sanitizer or without, and run them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

#: Flags per kind of build. A policy's callback is called through another type of
#: function, which is how the contract is (BPF has no types there): that one check
#: of UndefinedBehaviorSanitizer is off.
KINDS = {
    "plain": ("-O2",),
    "thread": ("-O1", "-fsanitize=thread"),
    "address": ("-O1", "-fsanitize=address,undefined", "-fno-sanitize=function", "-fno-sanitize-recover=all"),
}
RUN_SECONDS_MAX = 300


def build_program(
    root: Path, folder: Path, name: str, sources: list[str], *, kind: str, compiler: str
) -> Path:
    """Compile one test program, of its own files below tests/core, together with the fake host and the whole core."""
    here = root / "tests" / "core"
    binary = folder / f"{name}-{kind}"
    files = [here / "fake_host.c", *(here / source for source in sources)]
    command = [
        compiler, "-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", *KINDS[kind],
        f"-I{here / 'fake_host'}", f"-I{here}", f"-I{root / 'core'}", f"-I{root / 'include'}",
        "-o", binary, *files, here / "inside.c", "-lpthread",
    ]  # fmt: skip
    probe = folder / f"probe-{kind}.c"
    if not probe.exists():
        probe.write_text("int main(void) { return 0; }\n")
        done = subprocess.run(
            [compiler, *KINDS[kind], "-o", folder / "probe", probe],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            probe.unlink()
            pytest.skip(f"{compiler} has no {kind} sanitizer; to have it: ./lab setup")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr, pytrace=False)
    return binary


def run_program(binary: Path, *words: object) -> str:
    """What a test program prints; a failure shows what it said, the seed included."""
    env = dict(os.environ, TSAN_OPTIONS="halt_on_error=1 exitcode=66")
    command = [str(binary), *map(str, words)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=env, timeout=RUN_SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"{' '.join(command)}\nnot done after {late.timeout} s", pytrace=False)
    if done.returncode:
        text = f"{done.stdout}{done.stderr}"[-6000:]
        pytest.fail(f"exit {done.returncode}, replay: {' '.join(command)}\n{text}", pytrace=False)
    return done.stdout
