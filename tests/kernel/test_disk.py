# SPDX-License-Identifier: MIT
"""Disks that the kernel does not start from: it says why, and QEMU ends with an error.

Read next: hosts/kernel/kernel/fsmount.c.
"""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest

from kernel.power_cut import BLOCK, FileSystem
from schedlab.hosts.kernel import boot as kernel_boot
from schedlab.hosts.kernel.build import build_kernel

TIMEOUT_S = 240
INODE_START = BLOCK + 24
ROOT = 1


def boot(command):
    """Exit status and console of a machine that ends by itself."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    return done.returncode, done.stdout


def command_for(image, **words):
    """Command of a machine with a disk of QEMU's, unless told otherwise."""
    arguments = {"run": "/echo started", **words.pop("arguments", {})}
    return kernel_boot.machine_command(
        kernel_boot.Machine(image=image, arguments=arguments, **{"is_counted": False, **words})
    )


def refused(command, reason):
    status, text = boot(command)
    assert status != 0
    assert reason in text
    assert "no file system to start from" in text
    assert "started" not in text


def damaged(image, tmp_path, change):
    disk = tmp_path / "disk.img"
    data = bytearray(image.filesystem.read_bytes())
    change(data)
    disk.write_bytes(data)
    return disk


def test_a_broken_inode(image, tmp_path):
    def change(data):
        (start,) = struct.unpack_from("<I", data, INODE_START)
        struct.pack_into("<I", data, start * BLOCK + 2 * 64 + 12, 3)

    disk = damaged(image, tmp_path, change)
    before = disk.read_bytes()
    refused(
        command_for(image, disk=disk), "fs: refused: inode 2: block 0 of the file is 3, not in the data area"
    )
    assert disk.read_bytes() == before


def test_no_file_system(image, tmp_path):
    disk = tmp_path / "disk.img"
    disk.write_bytes(bytes(100 * BLOCK))
    refused(command_for(image, disk=disk), "fs: refused: superblock: magic is 0x0, not 0x10203040")


def test_cut_short(image, tmp_path):
    disk = tmp_path / "disk.img"
    disk.write_bytes(image.filesystem.read_bytes()[: 500 * BLOCK])
    refused(command_for(image, disk=disk), "but the device has 500: it was cut short")


def test_no_disk(image):
    command = command_for(image)
    at = command.index("-drive")
    del command[at : at + 2]
    at = command.index("virtio-blk-device,drive=disk0")
    del command[at - 1 : at + 1]
    refused(command, "disk: there is none; give QEMU a virtio-blk-device")


def test_a_legacy_device(image):
    command = command_for(image)
    at = command.index("virtio-mmio.force-legacy=false")
    del command[at - 1 : at + 1]
    refused(command, "virtio: a legacy device; start QEMU with -global virtio-mmio.force-legacy=false")


def test_a_disk_that_may_only_be_read(image):
    command = command_for(image)
    at = command.index("-drive") + 1
    command[at] = command[at].replace("snapshot=on", "readonly=on")
    refused(command, "disk: it is read-only; give QEMU a copy, or snapshot=on")


@pytest.mark.parametrize("offset", ["4096", "12", "7"])
def test_no_place_in_the_initrd(image, tmp_path, offset):
    job = tmp_path / "job"
    job.write_bytes(bytes(100))
    status, text = boot(command_for(image, job=job, arguments={"ramdisk": offset}))
    assert status != 0
    assert f"ramdisk={offset} is no place in the initrd of 100 bytes" in text


def test_a_disk_in_memory(image, tmp_path):
    """The same image, behind 4 KiB of a job; nothing of it is written to a file."""
    job = tmp_path / "initrd"
    job.write_bytes(bytes(4096) + image.filesystem.read_bytes())
    command = command_for(image, job=job, arguments={"ramdisk": "4096"})
    at = command.index("-drive")
    del command[at : at + 2]
    at = command.index("virtio-blk-device,drive=disk0")
    del command[at - 1 : at + 1]
    assert "started" in boot(command)[1]


def test_what_was_written_is_there_after_a_power_off(image, tmp_path):
    disk = tmp_path / "disk.img"
    shutil.copyfile(image.filesystem, disk)
    assert boot(command_for(image, disk=disk, arguments={"run": "/mkdir kept"}))[0] == 0
    text = boot(command_for(image, disk=disk, arguments={"run": "/ls kept"}))[1]
    assert "cannot" not in text.splitlines()[-1]
    assert ".." in text


def failing(image, tmp_path, program, **error):
    """The command for a machine whose disk fails at what `error` says of a request."""
    disk = tmp_path / "disk.img"
    shutil.copyfile(image.filesystem, disk)
    command = command_for(image, disk=disk, arguments={"run": program})
    words = {"event": "none", "errno": 5, **error}
    at = command.index("-drive")
    command[at : at + 2] = [
        "-blockdev",
        f"driver=file,filename={disk},node-name=file0",
        "-blockdev",
        "driver=blkdebug,node-name=disk0,image=file0"
        + "".join(f",inject-error.0.{word}={value}" for word, value in words.items()),
    ]
    return command


@pytest.mark.parametrize(
    ("what", "program", "reason"),
    [
        ("write", "/mkdir new", "cannot be written, nor anything promised"),
        ("flush", "/mkdir new", "cannot be written, nor anything promised"),
        ("read", "/echo started", "fs: refused: block 1 cannot be read"),
    ],
)
def test_a_disk_that_fails_stops_the_machine(image, tmp_path, what, program, reason):
    """It is not gone on with: what comes after could not be promised."""
    status, text = boot(failing(image, tmp_path, program, iotype=what))
    assert status != 0
    assert reason in text and "panic" in text


@pytest.mark.usefixtures("image")
def test_a_block_that_cannot_be_read_is_an_error_of_the_file(tmp_path):
    """Of what is in files: the program gets -1, or does not start; all else goes on."""
    words = tmp_path / "words"
    words.write_text("words\n" * 1000)
    image = build_kernel(files=[words])
    files = FileSystem(image.filesystem.read_bytes())
    second = files.blocks(files.entries(ROOT)["words"])[1]
    command = failing(image, tmp_path, "/cat words", iotype="read", sector=2 * second)
    status, text = boot(command)
    assert "cat: cannot read words" in text and "panic" not in text
    assert status == 1


def test_hardly_a_disk(image, tmp_path):
    disk = tmp_path / "disk.img"
    disk.write_bytes(bytes(2 * BLOCK))
    refused(command_for(image, disk=disk), "fs: refused: the device has 2 blocks, too few")
