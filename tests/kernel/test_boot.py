# SPDX-License-Identifier: MIT
"""Booting on any number of harts, the memory map, and the ways a kernel may die."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from kernel.machine import Console
from schedlab.hosts.kernel.boot import Machine
from schedlab.hosts.kernel.build import build_kernel

pytestmark = pytest.mark.full

PROGRAMS = Path(__file__).parent / "programs"
PANIC_STATUS = 99


def boot(machine):
    """Boot, wait for the end, and return QEMU's status and what was printed."""
    with Console(machine, timeout_s=240) as console:
        return console.wait(), console.text


@pytest.mark.parametrize("n_cpus", [1, 2, 3, 4, 8])
def test_any_number_of_harts_boots(image, n_cpus):
    machine = Machine(image, n_cpus=n_cpus, is_counted=n_cpus == 1, arguments={"run": "/ls"})
    for _ in range(1 if n_cpus == 1 else 4):
        status, text = boot(machine)
        assert status == 0, text
        assert re.search(r"^- +\d+ +1 +\d+ sh$", text, re.MULTILINE), text


def test_status_of_the_program_is_the_machines(image):
    assert boot(Machine(image, arguments={"run": "/nosuch"}))[0] == 127


@pytest.mark.parametrize(
    ("arguments", "n_cpus", "says"),
    [
        ({"tick_ns": "5"}, 1, r"tick_ns=5 is less than 10000"),
        ({"procs_max": "2x"}, 1, r"boot argument procs_max=2x is no number"),
        ({"procs_max": "60000"}, 1, r"make procs_max less"),
        ({"init": "/nosuch"}, 1, r"/nosuch cannot be run"),
    ],
)
def test_wrong_arguments_are_refused_in_words(image, arguments, n_cpus, says):
    status, text = boot(Machine(image, n_cpus=n_cpus, arguments=arguments))
    assert status == PANIC_STATUS, text
    assert re.search(rf"^panic: hart 0, .*{says}", text, re.MULTILINE), text


def test_the_machine_goes_off_while_the_policy_changes():
    """Three harts change it at that moment: poweroff() failed an assertion of the core."""
    program = Path(__file__).parent / "programs" / "lastwords.c"
    machine = Machine(
        build_kernel(programs=[program]), n_cpus=4, is_counted=False, arguments={"run": "/lastwords"}
    )
    with Console(machine) as console:
        assert console.wait() == 7, console.text


def test_panic_names_the_functions(image):
    _, text = boot(Machine(image, arguments={"procs_max": "60000"}))
    places = re.findall(r"^  0x[0-9a-f]{16}  (\w+)\+0x[0-9a-f]+$", text, re.MULTILINE)
    assert places[:1] == ["kernel_main"] or places[1:2] == ["kernel_main"], text


@pytest.mark.parametrize(
    ("knobs", "says"),
    [("nowhere=0", "kernel stack overflow"), ("nowhere=1", "store page fault, address 0x123456789000")],
)
def test_a_policy_that_goes_wild_is_named(knobs, says):
    """Linux's verifier would refuse it; here the kernel says where it died."""
    image = build_kernel([PROGRAMS / "deep.bpf.c"])
    status, text = boot(Machine(image, arguments={"policy": "deep", "set": knobs, "run": "/ls"}))
    assert status == PANIC_STATUS, text
    assert says in text
    assert re.search(r"^  0x[0-9a-f]{16}  (go_deeper|deep_enqueue)\+", text, re.MULTILINE), text


@pytest.fixture(scope="module")
def busy(image):
    """An image with a program that computes inside the kernel; skipped as any image."""
    return build_kernel(programs=[PROGRAMS / "preempted.c"])


@pytest.mark.parametrize("cpu", ["rv64", "rv64,sstc=false"])
def test_kernel_is_preempted(busy, cpu):
    """Who is woken takes the CPU from who is busy inside the kernel.

    Also on a hart that cannot set its own timer and has to ask the firmware.
    """
    machine = Machine(busy, arguments={"policy": "cfs", "run": "/preempted"}, extra=("-cpu", cpu))
    _, text = boot(machine)
    match = re.search(r"one call (\d+) us, late at most (\d+) us", text)
    assert match, text
    took_us, late_us = map(int, match.groups())
    assert took_us > 2000
    assert late_us < took_us / 4


def memory_map(path):
    """Pages as QEMU's monitor sees them: `info mem` of the hart that runs."""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.settimeout(60)
        monitor.connect(str(path))
        text = ""
        monitor.sendall(b"stop\ninfo mem\ninfo status\n")
        while "VM status" not in text:
            text += monitor.recv(65536).decode()
    rows = re.findall(r"^([0-9a-f]{16}) ([0-9a-f]{16}) ([0-9a-f]{16}) ([a-z-]{7})", text, re.MULTILINE)
    return [(int(virtual, 16), int(size, 16), rights) for virtual, _, size, rights in rows]


def test_nothing_is_writable_and_executable(busy, tmp_path):
    """W^X, under every address, for kernel and user; and holes under stacks."""
    path = tmp_path / "monitor"
    # For ever, that is: until we have looked.
    machine = Machine(
        busy,
        arguments={"run": "/preempted 1000000000"},
        extra=("-monitor", f"unix:{path},server=on,wait=off"),
    )
    with Console(machine, timeout_s=240) as console:
        console.wait_for("^it begins$")
        rows = memory_map(path)
    assert not [row for row in rows if "w" in row[2] and "x" in row[2]]
    kernel = [row for row in rows if row[0] >> 63]
    assert {rights[:3] for _, _, rights in kernel} == {"r-x", "r--", "rw-"}
    assert all(rights[3:5] == "-g" for _, _, rights in kernel), "not the user's, but everybody's"
    stacks = [row for row in kernel if row[0] >= 0xFFFFFFFF00000000]
    assert len(stacks) > 4000
    assert all(virtual >> 13 & 1 and size == 0x2000 for virtual, size, _ in stacks)
    user = [row for row in rows if not row[0] >> 63]
    assert user[0][0] == 0 and user[0][2].startswith("r-xu")
    assert all(rights.startswith("rw-u") or "x" in rights for _, _, rights in user)
    ends = {virtual + size for virtual, size, _ in user}
    assert any(virtual - 4096 in ends for virtual, _, _ in user), "no guard page"
