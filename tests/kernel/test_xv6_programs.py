# SPDX-License-Identifier: MIT
"""A program written for xv6 compiles and runs unmodified.

The programs in programs/ are ours, in the style of xv6's and against its
interface. With SCHEDLAB_XV6=FOLDER, xv6's own are taken from there: every .c file
with a main(), such as user/ of a checkout of xv6-riscv that still says sleep().
`usertests` and `forktest` then run to their end, with procs_max=64, since they
count on running out of processes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kernel.machine import Console
from schedlab.hosts.kernel.boot import Machine
from schedlab.hosts.kernel.build import MAIN, build_kernel

pytestmark = pytest.mark.full

OURS = ("sieve", "walk", "limits")
#: xv6 itself allows so many processes, and its tests count on it.
XV6_PROCS = {"procs_max": "64"}
#: init needs the inside of xv6's kernel; play of a xv6 with more calls is not ours.
NOT_THESE = {"init"}


@pytest.fixture(scope="module")
def our_image(image):
    folder = Path(__file__).parent / "programs"
    return build_kernel(programs=[folder / f"{name}.c" for name in OURS])


def run(image, program, *, timeout_s=240, is_counted=True):
    arguments = {**XV6_PROCS, "run": f"/{program}"}
    machine = Machine(image, arguments=arguments, is_counted=is_counted)
    with Console(machine, timeout_s=timeout_s) as console:
        status = console.wait()
        # What OpenSBI prints stands before.
        return status, console.text.rpartition("MEDELEG")[2].partition("\n")[2]


def test_a_chain_of_pipes(our_image):
    status, text = run(our_image, "sieve")
    primes = [n for n in range(2, 101) if all(n % d for d in range(2, n))]
    assert text == "".join(f"prime {n}\n" for n in primes)
    assert status == 0


def test_a_tree_of_folders(our_image):
    status, text = run(our_image, "walk")
    assert status == 0
    rows = re.findall(r"^(\S+) (\d) (\S+)$", text, re.MULTILINE)
    folders = {("t", "1", "64"), ("t/a", "1", "48"), ("t/a/b", "1", "48"), ("t/c", "1", "48")}
    assert set(rows) == {*folders, ("t/a/b/file", "2", "1000"), ("t/c/same", "2", "1000")}
    assert "failed" not in text
    assert "stays" not in text


def test_limits_by_name(our_image):
    status, text = run(our_image, "limits")
    assert status == 0
    said = dict(re.findall(r"^([a-z]+) (\d)$", text, re.MULTILINE))
    names = ("forks", "descriptors", "blocks", "memory", "fault", "stack", "ticks", "top")
    assert said == dict.fromkeys(names, "1"), text
    assert "-5 ff 0x0000000000001000 text c % 7" in text


# ---- xv6's own ---------------------------------------------------------------


@pytest.fixture(scope="module")
def xv6_programs():
    """Sources of xv6's programs, or a skip."""
    given = os.environ.get("SCHEDLAB_XV6")
    if not given:
        pytest.skip("SCHEDLAB_XV6=FOLDER names no folder with xv6's own user programs")
    found = {
        path.stem: path
        for path in sorted(Path(given).glob("*.c"))
        if MAIN.search(path.read_text(encoding="utf-8")) and path.stem not in NOT_THESE
    }
    assert found, f"{given}: no .c file there has a main()"
    return found


@pytest.fixture(scope="module")
def xv6_image(xv6_programs, tmp_path_factory):
    readme = tmp_path_factory.mktemp("xv6") / "README"
    readme.write_text("A file that xv6's programs expect.\n" * 60)
    return build_kernel(programs=list(xv6_programs.values()), files=[readme])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("program", "wanted"),
    [("usertests", "ALL TESTS PASSED"), ("usertests -q", "ALL TESTS PASSED"), ("forktest", "fork test OK"),
     ("stressfs", "read"), ("ls", "README"), ("wc README", "README"), ("grep xv6 README", "xv6")],
)  # fmt: skip
def test_a_program_of_xv6(xv6_image, xv6_programs, program, wanted):
    name = program.split()[0]
    if name not in xv6_programs:
        pytest.skip(f"{name}.c is not in the folder")
    _, text = run(xv6_image, program, timeout_s=900, is_counted=False)
    assert wanted in text, text[-3000:]
    assert "panic" not in text


@pytest.mark.nightly
def test_grind_finds_nothing(xv6_image, xv6_programs):
    """It never ends by itself: 40 times 500 random calls by one of its two sides."""
    if "grind" not in xv6_programs:
        pytest.skip("grind.c is not in the folder")
    machine = Machine(xv6_image, n_cpus=3, arguments={**XV6_PROCS, "run": "/grind"}, is_counted=False)
    with Console(machine, timeout_s=900) as console:
        console.wait_for("MEDELEG.*\n")
        said = console.wait_for(r"(?:[AB][^AB]*){40}")
    assert "grind:" not in said
