# SPDX-License-Identifier: MIT
"""Power cuts of the real kernel: QEMU writes down every write and every flush.

A file-heavy workload runs to its end once; then the disk is put together again as it
may have been at many moments before, with all that was flushed and a random part of
what was not. Each such image must mount, pass every check, and hold all that fsync()
had promised by then. docs/kernel-files.md says what is promised.

Read next: power_cut.py, programs/diskwork.c.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import missing
from kernel.power_cut import FileSystem, Worker, compare, cuts, marks_seen, read_log
from schedlab.hosts.kernel import boot as kernel_boot
from schedlab.hosts.kernel import build as kernel_build

#: Images; `./lab soak power-cuts` sets it.
NR_CUTS = int(os.environ.get("SCHEDLAB_POWER_CUTS", "40"))
#: Of them, so many are mounted by the real kernel as well, which takes a boot each.
NR_BOOTS = max(2, NR_CUTS // 20)
SEED, NR_WORKERS, NR_OPERATIONS = 20261122, 3, max(60, NR_CUTS)
TIMEOUT_S = 240
PROGRAM = Path(__file__).parent / "programs" / "diskwork.c"


def boot(command, what):
    """Run a machine until it powers itself off; what it printed."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, (
        f"{what}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-1000:]}"
    )
    return done.stdout


@pytest.fixture(scope="module")
def image():
    """Kernel and file system, with the workload as one more program."""
    reason = kernel_boot.unavailable()
    if reason:
        missing("the teaching kernel", reason)
    return kernel_build.build_kernel(programs=[PROGRAM])


@pytest.fixture(scope="module")
def history(image, tmp_path_factory):
    """The disk before the workload, and all requests that changed it."""
    folder = tmp_path_factory.mktemp("history")
    disk, log = folder / "disk.img", folder / "log"
    shutil.copyfile(image.filesystem, disk)
    log.touch()
    run = f"/diskwork {SEED} {NR_WORKERS} {NR_OPERATIONS}"
    machine = kernel_boot.Machine(image=image, n_cpus=2, arguments={"run": run}, is_counted=False, disk=disk)
    command = kernel_boot.machine_command(machine)
    at = command.index("-drive")
    command[at : at + 2] = [
        "-blockdev",
        f"driver=file,filename={disk},node-name=file0",
        "-blockdev",
        f"driver=file,filename={log},node-name=log0",
        "-blockdev",
        "driver=blklogwrites,node-name=disk0,file=file0,log=log0",
    ]
    text = boot(command, "the workload")
    assert "diskwork: done" in text, text[-2000:]
    return image.filesystem.read_bytes(), read_log(log)


def apply(start, entries):
    """The disk with all writes done."""
    disk = bytearray(start)
    for entry in entries:
        disk[entry.offset : entry.offset + len(entry.data)] = entry.data
    return bytes(disk)


@pytest.fixture(scope="module")
def workers():
    return [Worker(SEED, process, NR_OPERATIONS) for process in range(NR_WORKERS)]


def test_everything_is_there_without_a_cut(history, workers):
    start, entries = history
    files = FileSystem(apply(start, entries))
    found = compare(files, workers, [NR_OPERATIONS] * NR_WORKERS)
    # The last operations may be without effect; so it is the state that counts.
    for worker, place in zip(workers, found, strict=True):
        assert worker.states[place] == worker.states[-1]
    assert sum(entry.is_flush for entry in entries) > NR_OPERATIONS / 3


@pytest.mark.full
def test_every_cut_keeps_what_was_promised(history, workers, mkfs, harness, image, tmp_path):
    start, entries = history
    draw = random.Random(SEED)
    seen = marks_seen(entries, NR_WORKERS)
    # Where something may be lost: not right after a flush.
    places = [i + 1 for i, entry in enumerate(entries) if not entry.is_flush]
    positions = sorted(draw.choices(places, k=NR_CUTS))
    booted = set(draw.sample(range(NR_CUTS), NR_BOOTS))
    disk = tmp_path / "disk.img"
    n_lost = n_orphans = 0
    for i, cut in enumerate(cuts(start, entries, positions, draw)):
        what = (
            f"seed {SEED}, cut {i} after {cut.position} requests, {cut.n_lost} of {cut.n_unsafe} sectors lost"
        )
        disk.write_bytes(cut.image)
        checked = subprocess.run([mkfs, "--check", disk], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, f"{what}\n{checked.stdout}{checked.stderr}"
        before = FileSystem(cut.image)
        try:
            found = compare(before, workers, seen[cut.position])
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from None
        if i in booted:
            mount_by_kernel(image, disk, what)
        else:
            subprocess.run([harness, "1", "mount", disk], check=True, capture_output=True)
        after = FileSystem(disk.read_bytes())
        assert compare(after, workers, seen[cut.position]) == found, what
        assert not after.orphans, what
        n_lost += cut.n_lost
        n_orphans += len(before.orphans)
    # The cuts were some: sectors were lost, and files were open without a name.
    assert n_lost > 2 * NR_CUTS
    assert n_orphans > NR_CUTS / 8


def mount_by_kernel(image, disk, what):
    """Boot from the disk and power off at once, which writes what the mount cleaned up."""
    machine = kernel_boot.Machine(
        image=image, arguments={"run": "/echo mounted"}, is_counted=False, disk=disk
    )
    assert "mounted" in boot(kernel_boot.machine_command(machine), what)


def test_a_cut_that_breaks_a_promise_is_found(history, workers):
    """The comparison can fail: an image from before what was promised is refused."""
    start, entries = history
    seen = marks_seen(entries, NR_WORKERS)
    with pytest.raises(AssertionError, match="was promised; found state"):
        compare(FileSystem(start), workers, seen[len(entries)])
