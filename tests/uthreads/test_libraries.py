# SPDX-License-Identifier: MIT
"""Programs with libraries that know nothing of threads that are preempted in them: their results are right.

zlib computes, libpq waits, and C++ constructs static variables, in slices of 1 ms.
`./lab soak uthreads-libraries` runs each for ten minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time

import pytest

from uthreads.test_threads import policy
from uthreads.uthreads_programs import compile_all, run_program

SECONDS = 0.2
#: Where it matters most: as compiled for use, on 2 kernel threads.
SECONDS_SOAKED = float(os.environ.get("SCHEDLAB_UTHREADS_LIBRARY_SECONDS", SECONDS))
KNOBS = ("slice_ns=1000000",)
RUNS = [("plain", 1, SECONDS), ("plain", 2, SECONDS_SOAKED), ("address", 1, SECONDS), ("address", 2, SECONDS)]


def run_for(seconds, program, chain, cpus, *words):
    """Run a program that ends by itself when its time is over."""
    return run_program(
        program, policy(chain, "rr"), cpus, int(seconds * 1000), *words, *KNOBS, seconds=120 + 2 * seconds
    ).stdout


def need_header(chain, name, *flags):
    """Skip the test where a library's header is missing."""
    found = subprocess.run(
        [chain.compiler, *flags, "-E", "-x", "c", "-"],
        input=f"#include <{name}>",
        capture_output=True,
        text=True,
    )
    if found.returncode:
        pytest.skip(f"{name} is missing: the library is not on this machine")


@pytest.mark.parametrize(("kind", "cpus", "seconds"), RUNS)
def test_zlib_is_preempted_and_right(toolchain, kind, cpus, seconds):
    chain = toolchain("gcc", kind)
    need_header(chain, "zlib.h")
    n_preempted = int(run_for(seconds, chain.program("zip.c", "-lz"), chain, cpus))
    # Each of 8 threads computes for more than a slice, and others wait.
    assert n_preempted >= 8


@pytest.mark.parametrize(("kind", "cpus", "seconds"), RUNS)
def test_libpq_waits_in_ut_poll(toolchain, kind, cpus, seconds):
    chain = toolchain("gcc", kind)
    if not shutil.which("pg_config"):
        pytest.skip("pg_config is missing: libpq is not on this machine")
    include = "-I" + compile_all(["pg_config", "--includedir"]).strip()
    need_header(chain, "libpq-fe.h", include)
    # A socket's path has room for some 100 characters.
    with tempfile.TemporaryDirectory() as folder:
        run_for(seconds, chain.program("query.c", include, "-lpq"), chain, cpus, folder)


@pytest.mark.parametrize(("cpus", "seconds"), [(1, SECONDS), (2, SECONDS_SOAKED)])
def test_statics_of_cpp(toolchain, cpus, seconds):
    chain = toolchain("gcc", "plain")
    end = time.monotonic() + seconds
    while True:
        run_program(chain.program("statics.cpp"), policy(chain, "rr"), cpus, "statics")
        if time.monotonic() > end:
            break
