# SPDX-License-Identifier: MIT
"""The library on other processors, under QEMU's user mode.

Threads are created, switched and wait for each other there as here. QEMU 7.2 does not
deliver a timer's signal to one kernel thread, so programs/rung.c sends it: threads are
preempted, from the handler, in the midst of what they compute.

Kernel threads run at the same time here, and a load may pass an earlier store, as on
the processor below; that loads or stores pass each other, as ARM and RISC-V allow, only
such a machine shows. 4 million switches each with 2 and 4 kernel threads, under rr and
credit, were done on 22 November 2026 and found nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import missing
from uthreads.uthreads_programs import COMMON, HERE, HOST, ROOT, SOURCES, compile_all, run_program

MACHINES = ("aarch64", "riscv64")
NR_SWITCHES = 20_000


@pytest.fixture(scope="module")
def built(tmp_path_factory, need):
    """Function that compiles library, policy and program for a machine."""
    compiler = need("clang-19")
    libraries = {}

    def library(machine: str, flags: list) -> Path:
        """Folder of library and policy, compiled once for each machine."""
        folder = libraries[machine] = tmp_path_factory.mktemp(machine)
        shared = [*flags, "-fPIC", "-shared"]
        compile_all([
            *shared, "-Wl,-Bsymbolic", "-Wall", "-Wextra", "-Werror", f"-I{HOST}",
            f"-I{COMMON}", "-o", folder / "libschedlab-uthreads.so", ROOT / "core" / "build.c",
            *SOURCES, HOST / f"context_{machine}.S", "-lpthread", "-ldl",
        ])  # fmt: skip
        compile_all(
            [*shared, "-fno-semantic-interposition", "-o", folder / "rr.so", ROOT / "policies" / "rr.bpf.c"]
        )
        return folder

    def build(machine: str, program: str) -> tuple[Path, Path]:
        if not Path(f"/usr/{machine}-linux-gnu").is_dir():
            missing(f"the C library for {machine}", "./lab setup, as root or with sudo")
        flags = [compiler, f"--target={machine}-linux-gnu", "-fuse-ld=lld", "-std=gnu11", "-O2", "-g",
                 f"-I{HOST / 'include'}", f"-I{ROOT / 'include'}"]  # fmt: skip
        folder = libraries.get(machine) or library(machine, flags)
        compile_all([
            *flags, "-o", folder / program, HERE / "programs" / f"{program}.c", f"-L{folder}",
            "-lschedlab-uthreads", f"-Wl,-rpath,{folder}", "-lpthread",
        ])  # fmt: skip
        return folder / program, folder / "rr.so"

    return build


@pytest.mark.full
@pytest.mark.parametrize("cpus", [2, 4])
@pytest.mark.parametrize("machine", MACHINES)
def test_random_calls_on_several_kernel_threads(built, need, machine, cpus):
    """What a processor with a weaker order of memory does; as far as this one can play it."""
    emulator = need(f"qemu-{machine}")
    binary, policy = built(machine, "stress")
    run_program(
        Path(emulator),
        "-L",
        f"/usr/{machine}-linux-gnu",
        binary,
        policy,
        cpus,
        NR_SWITCHES,
        cpus,
        "slice_ns=200000",
        seconds=60,
    )


@pytest.mark.full
@pytest.mark.parametrize("program", ["life", "sync", "rung"])
@pytest.mark.parametrize("machine", MACHINES)
def test_switches_and_preemption(built, need, machine, program):
    emulator = need(f"qemu-{machine}")
    binary, policy = built(machine, program)
    for cpus in (1, 2):
        run_program(Path(emulator), "-L", f"/usr/{machine}-linux-gnu", binary, policy, cpus)
