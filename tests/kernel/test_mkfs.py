# SPDX-License-Identifier: MIT
"""mkfs: an image is made, shown, and checked; each violation is named with its place.

Every invariant of mkfs/fscheck.c is broken once in a good image, and the message
must say which and where. The kernel mounts by the same check.

Read next: hosts/kernel/mkfs/mkfs.c.
"""

from __future__ import annotations

import re
import struct
import subprocess

import pytest

from kernel.fs_build import ROOT as CHECKOUT
from kernel.fs_build import build_mkfs
from kernel.power_cut import BLOCK, FileSystem

LOG_START, NR_LOG, NR_INODES, NR_BLOCKS = 2, 30, 32, 200
INODES = LOG_START + NR_LOG
BITMAP = INODES + NR_INODES // 16
DATA = BITMAP + 1
ROOT, SMALL, LARGE = 1, 2, 3


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


@pytest.fixture
def image(mkfs, tmp_path):
    """A good image with two files, the second of which needs a list of blocks."""
    (tmp_path / "_small").write_bytes(b"hello\n")
    (tmp_path / "large").write_bytes(bytes(range(256)) * 80)
    path = tmp_path / "disk.img"
    done = run(
        mkfs,
        "--blocks",
        NR_BLOCKS,
        "--inodes",
        NR_INODES,
        "--log",
        NR_LOG,
        path,
        tmp_path / "_small",
        tmp_path / "large",
    )
    assert done.returncode == 0, done.stderr
    return path


def inode_at(inum, field):
    """Where a field of an inode lies in the image: its offset."""
    return INODES * BLOCK + inum * 64 + field


TYPE, NLINK, SIZE = 0, 6, 8


def addr(slot):
    return 12 + 4 * slot


def entry_at(idx):
    """Where the root's entry number `idx` lies."""
    return DATA * BLOCK + idx * 16


def test_files_are_what_they_were(image):
    files = FileSystem(image.read_bytes())
    names = files.entries(ROOT)
    assert sorted(names) == ["large", "small"]
    assert files.contents(names["small"]) == b"hello\n"
    assert files.contents(names["large"]) == bytes(range(256)) * 80


def test_equal_files_give_an_equal_image(mkfs, image, tmp_path):
    other = tmp_path / "other.img"
    command = [mkfs, "--blocks", NR_BLOCKS, "--inodes", NR_INODES, "--log", NR_LOG]
    run(*command, other, tmp_path / "_small", tmp_path / "large")
    assert other.read_bytes() == image.read_bytes()


def test_another_compiler_makes_the_same(image, tmp_path, need):
    need("clang-19")
    other = tmp_path / "other.img"
    mkfs = build_mkfs(tmp_path, compiler="clang-19")
    command = [mkfs, "--blocks", NR_BLOCKS, "--inodes", NR_INODES, "--log", NR_LOG]
    assert run(*command, other, tmp_path / "_small", tmp_path / "large").returncode == 0
    assert other.read_bytes() == image.read_bytes()


def test_dump_shows_what_is_there(mkfs, image):
    shown = run(mkfs, "--dump", image)
    assert shown.returncode == 0
    lines = [re.sub(r" +", " ", line).strip() for line in shown.stdout.splitlines()]
    assert lines == [
        f"blocks 200 of 1024 bytes: log 2..31, inodes 32..33, bitmap 34..34, data {DATA}..199",
        "data 23 blocks used, 142 free",
        "log nothing in it is valid",
        "inode type nlink bytes path, and blocks",
        f"1 dir 1 64 / {DATA}",
        f"2 file 1 6 /small {DATA + 1}",
        f"3 file 1 20480 /large {DATA + 2}-{DATA + 13} {DATA + 15}-{DATA + 22} (listed in {DATA + 14})",
    ]


#: What is written (format, offset, value), and what must be said of it.
DAMAGE = {
    "no file system": ("<I", BLOCK, 1, "superblock: magic is 0x1, not 0x10203040: this is no file system"),
    "cut short": ("<I", BLOCK + 4, 300, "superblock: size is 300 blocks, but the device has 200: it was cut short"),
    "data counted wrong": ("<I", BLOCK + 8, 7, "superblock: nblocks is 7, not 165"),
    "too many inodes": ("<I", BLOCK + 12, 70000, "superblock: ninodes is 70000, not in 2..65535"),
    "log too short": ("<I", BLOCK + 16, 5, "superblock: nlog is 5, not in 21..200"),
    "log before its place": ("<I", BLOCK + 20, 1, "superblock: logstart is 1, not in 2..200"),
    "inodes in the log": ("<I", BLOCK + 24, 20, "superblock: inodestart is 20, not in 32..200"),
    "bitmap in the inodes": ("<I", BLOCK + 28, 33, "superblock: bmapstart is 33, not behind the inodes from 32 on"),
    "unknown type": ("<h", inode_at(SMALL, TYPE), 9, "inode 2: type is 9, not in 0..3"),
    "negative links": ("<h", inode_at(SMALL, NLINK), -1, "inode 2: nlink is -1"),
    "too large": ("<I", inode_at(SMALL, SIZE), 300000, "inode 2: size is 300000 bytes, more than 274432"),
    "half an entry": ("<I", inode_at(ROOT, SIZE), 60, "inode 1: a directory of 60 bytes, no multiple of 16"),
    "block outside": ("<I", inode_at(SMALL, addr(0)), 20, f"inode 2: block 0 of the file is 20, not in the data area {DATA}..199"),
    "block of another": ("<I", inode_at(SMALL, addr(0)), DATA, f"inode 2: block 0 of the file is {DATA}, which belongs to another as well"),
    "hole": ("<I", inode_at(LARGE, addr(3)), 0, "inode 3: block 3 of the file is missing, but its size needs 20"),
    "list missing": ("<I", inode_at(LARGE, addr(12)), 0, "inode 3: its list of blocks is missing, but its size needs 20 blocks"),
    "hole in the list": ("<I", (DATA + 14) * BLOCK, 0, "inode 3: block 12 of the file is missing, but its size needs 20"),
    "root is a file": ("<h", inode_at(ROOT, TYPE), 2, "inode 1: the root is no directory"),
    "marked free": ("<B", BITMAP * BLOCK + DATA // 8, 0, f"bitmap: block {DATA} is marked as free, but is in use"),
    "lost block": ("<B", BITMAP * BLOCK + 20, 1, "bitmap: block 160 is marked as used, but belongs to nobody: it is lost"),
    "wrong dot": ("<H", entry_at(0), 2, 'directory 1: entry 0 is "." of inode 2, not "." of inode 1'),
    "wrong parent": ("<H", entry_at(1), 3, 'directory 1: entry 1 is ".." of inode 3, not ".." of inode 1'),
    "no name": ("<B", entry_at(2) + 2, 0, 'directory 1: entry 2 is called ""'),
    "slash in a name": ("<B", entry_at(2) + 3, ord("/"), 'directory 1: entry 2 has a slash in its name "s/all"'),
    "entry of a free inode": ("<H", entry_at(2), 20, 'directory 1: entry "small" is of inode 20, which is free'),
    "entry of no inode": ("<H", entry_at(2), 999, 'directory 1: entry "small" is of inode 999, which is none'),
    "second name of a folder": ("<H", entry_at(2), 1, 'directory 1: entry "small" is a second name of directory 1'),
    "equal names": ("<5s", entry_at(3) + 2, b"small", 'directory 1: entries 2 and 3 are both called "small"'),
    "links counted wrong": ("<h", inode_at(SMALL, NLINK), 2, "inode 2: nlink is 2, but it has 1 names"),
    "no name left": ("<H", entry_at(2), 0, "inode 2: nlink is 1, but it has 0 names"),
    "folder without a path": ("<h", inode_at(SMALL, TYPE), 1, None),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_each_violation_is_named(mkfs, image, what):
    form, offset, value, message = DAMAGE[what]
    data = bytearray(image.read_bytes())
    if what == "equal names":
        data[entry_at(3) + 2 : entry_at(3) + 16] = bytes(14)
    if what == "folder without a path":
        # The small file becomes an empty directory that the root does not name.
        struct.pack_into("<H", data, entry_at(2), 0)
        struct.pack_into("<I", data, inode_at(SMALL, SIZE), 32)
        struct.pack_into("<H14sH14s", data, (DATA + 1) * BLOCK, SMALL, b".", ROOT, b"..")
        message = "inode 2: a directory that no path leads to"
    struct.pack_into(form, data, offset, value)
    image.write_bytes(data)
    checked = run(mkfs, "--check", image)
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert f"{image}: {message}\n" in checked.stdout
    shown = run(mkfs, "--dump", image)
    assert shown.returncode == 2 and "only an image without problems can be shown" in shown.stderr


def test_the_page_about_files_shows_what_happens(tmp_path):
    """The commands of docs/kernel-files.md, with what they print; but for sizes."""
    (shown,) = re.findall(
        r"```console\n(.*?)```", (CHECKOUT / "docs" / "kernel-files.md").read_text(), re.DOTALL
    )
    for name in ("hosts", "include", "README.md"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    printed = ""
    for line in shown.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                line[2:], shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
            )
            printed += f"{line}\n{done.stdout}"
    # README.md may grow.
    changing = re.compile(r"\d+ blocks used, \d+ free|\d+  /README.md.*")
    assert changing.sub("", printed) == changing.sub("", shown)


def test_an_orphan_is_no_violation_but_is_shown(mkfs, image):
    data = bytearray(image.read_bytes())
    struct.pack_into("<H", data, entry_at(2), 0)
    struct.pack_into("<h", data, inode_at(SMALL, NLINK), 0)
    image.write_bytes(data)
    assert run(mkfs, "--check", image).returncode == 0
    assert "(open when the power went; no name)" in run(mkfs, "--dump", image).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "usage: mkfs"),
        (["--blocks", "10", "disk.img"], "--blocks 10: it takes a number from 40 to 65536"),
        (["--inodes"], "--inodes : it takes a number from 2 to 65535"),
        (["--colour", "1", "disk.img"], "usage: mkfs"),
        (["--blocks", "60", "--inodes", "16", "disk.img"], "60 blocks are too few"),
        (["disk.img", "missing"], "missing: No such file or directory"),
        (["disk.img", "a_very_long_name"], '"a_very_long_name" has 16 characters, but a name has 1 to 14'),
        (["disk.img", "twice", "sub/twice"], 'there is another file called "twice"; rename one'),
        (["disk.img", "huge"], "huge: it would be 300000 bytes long; a file has at most 274432"),
        (
            ["--blocks", "200", "--log", "30", "disk.img", "half", "sub/other"],
            "is full; give it more: --blocks N",
        ),
        (["--inodes", "3", "disk.img", "half", "sub/other"], "all 3 inodes are used; make more: --inodes N"),
        (["--check", "missing"], "missing: No such file or directory"),
        (["no/such/folder/disk.img", "half"], "it cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_said(mkfs, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name, size in (("a_very_long_name", 1), ("twice", 1), ("sub/twice", 1), ("huge", 300000),
                       ("half", 90000), ("sub/other", 90000)):  # fmt: skip
        (tmp_path / name).write_bytes(bytes(size))
    done = run(mkfs, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "disk.img").exists()
