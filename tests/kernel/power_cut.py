# SPDX-License-Identifier: MIT
"""What a power cut may leave on a disk, and what must be found on it afterwards.

Three independent readings of the kernel's promises: the log of QEMU's blklogwrites
driver says what was written and flushed in which order; `Worker` says what
programs/diskwork.c did, one atomic step after the other; `FileSystem` reads an image
without any of the kernel's code.

Read next: test_power_cut.py.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = 1024
SECTOR = 512
NDIRECT = 12
MASK64 = (1 << 64) - 1
LOG_MAGIC = 0x474F4C53
MARK = re.compile(rb"mark (\d) (\d{6})\n")


# ---- the log of the disk -----------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One request that changed the disk: a flush, or `data` at byte `offset`."""

    is_flush: bool
    offset: int
    data: bytes


def read_log(path: Path) -> list[Entry]:
    """Requests in the order in which they were begun, of a log by QEMU's blklogwrites (the format is dm-log-writes')."""
    log = path.read_bytes()
    magic, version, nr, sector_bytes = struct.unpack_from("<QQQI", log)
    if magic != 0x6A736677736872 or version != 1:
        raise ValueError(f"{path}: magic {magic:#x}, version {version}: no log of writes")
    entries, at = [], sector_bytes
    # The number in the head is that of the last flush; what came later follows.
    while at < len(log):
        sector, n_sectors, flags, _ = struct.unpack_from("<QQQQ", log, at)
        at += sector_bytes
        if flags not in (0, 1) or (flags and n_sectors) or at + n_sectors * sector_bytes > len(log):
            raise ValueError(f"{path}: entry {len(entries)} has flags {flags:#x} and {n_sectors} sectors")
        data = log[at : at + n_sectors * sector_bytes]
        at += len(data)
        entries.append(Entry(bool(flags), sector * sector_bytes, data))
    if len(entries) < nr:
        raise ValueError(f"{path}: {len(entries)} entries, but its head says {nr}")
    return entries


@dataclass(frozen=True)
class Cut:
    """The disk after a power cut."""

    position: int  #: Requests that had been begun.
    image: bytes  #: All that a flush covers, and of the rest some sectors.
    #: `n_lost`, `n_unsafe`: Sectors that did not reach the disk, of those that might not have.
    n_lost: int
    n_unsafe: int


def cuts(start: bytes, entries: list[Entry], positions: list[int], draw: random.Random) -> Iterator[Cut]:
    """Make images as power cuts at rising positions may leave the disk `start`; `draw` chooses the sectors that survive."""
    stable, applied = bytearray(start), 0
    for position in positions:
        flushes = [i for i in range(applied, position) if entries[i].is_flush]
        covered = flushes[-1] if flushes else applied
        for entry in entries[applied:covered]:
            stable[entry.offset : entry.offset + len(entry.data)] = entry.data
        applied = covered
        image, n_lost, n_unsafe = bytearray(stable), 0, 0
        kept = draw.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        for entry in entries[covered:position]:
            for at in range(0, len(entry.data), SECTOR):
                n_unsafe += 1
                if draw.random() < kept:
                    image[entry.offset + at : entry.offset + at + SECTOR] = entry.data[at : at + SECTOR]
                else:
                    n_lost += 1
        yield Cut(position, bytes(image), n_lost, n_unsafe)


def marks_seen(entries: list[Entry], n_workers: int) -> list[list[int]]:
    """For each position and worker, the highest mark in any write before it; -1: none."""
    now = [-1] * n_workers
    seen = [list(now)]
    for entry in entries:
        for worker, mark in MARK.findall(entry.data):
            now[int(worker)] = max(now[int(worker)], int(mark))
        seen.append(list(now))
    return seen


# ---- what diskwork.c does ----------------------------------------------------


class Worker:
    """One process of diskwork, and every state that its folder goes through.

    `states` is one atomic step after the other: from name in the folder to ("file", contents, number
    of links) or ("dir",); None before the folder is there. `ends` is the index of the state after
    operation k, where 0 is the setting-up; `synced` the operations that fsync() followed, rising, 0 among them.
    """

    def __init__(self, seed: int, process: int, nr: int):
        self._state = (seed * 1000 + process * 7919 + 1) & 0xFFFFFFFF
        self._process = process
        self._files: dict[str, list[bytes]] = {}  # names share one list per file
        self._folders: set[str] = set()
        self.states: list[dict | None] = [None, {}]
        self._files["mark"] = [b""]
        self._step()
        self._mark(0)
        self.ends, self.synced = [len(self.states) - 1], [0]
        for k in range(1, nr + 1):
            self._mark(k)
            self._operation(k)
            self.ends.append(len(self.states) - 1)
            if self._random(3) == 0:
                self.synced.append(k)

    def _random(self, n: int) -> int:
        x = self._state
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        self._state = x
        return (x >> 8) % n

    def _step(self) -> None:
        """Note the folder as it is now."""
        links: dict[int, int] = {}
        for box in self._files.values():
            links[id(box)] = links.get(id(box), 0) + 1
        state: dict = {name: ("dir",) for name in self._folders}
        state |= {name: ("file", box[0], links[id(box)]) for name, box in self._files.items()}
        self.states.append(state)

    def _mark(self, k: int) -> None:
        self._files["mark"][0] = b"mark %d %06d\n" % (self._process, k)
        self._step()

    def _write(self, name: str, k: int, n: int, *, is_append: bool) -> None:
        data = bytes((k * 7 + i) & 255 for i in range(n))
        box = self._files.setdefault(name, [b""])
        if not is_append:
            box[0] = b""
        self._step()
        box[0] += data
        self._step()

    def _unlink(self, name: str) -> None:
        if self._files.pop(name, None) is not None:
            self._step()

    def _link(self, old: str, new: str) -> bool:
        folder = new.partition("/")[0]
        if old not in self._files or new in self._files:
            return False
        if "/" in new and folder not in self._folders:
            return False
        self._files[new] = self._files[old]
        self._step()
        return True

    def _folder(self, name: str) -> None:
        if name not in self._folders:
            self._folders.add(name)
        elif f"{name}/x" in self._files:
            return
        else:
            self._folders.remove(name)
        self._step()

    def _orphan(self, k: int, n: int) -> None:
        self._files["o"] = [b""]
        self._step()
        self._files["o"] = [bytes([k & 255]) * n]
        self._step()
        self._unlink("o")

    def _operation(self, k: int) -> None:
        what, i, j, n = self._random(8), self._random(6), self._random(2), self._random(8191) + 1
        file, link, folder = f"f{i}", f"l{j}", f"d{j}"
        if what == 0:
            self._write(file, k, n, is_append=False)
        elif what == 1:
            self._write(file, k, n % 2000 + 1, is_append=True)
        elif what == 2:
            self._unlink(file)
        elif what == 3:
            self._link(file, link)
        elif what == 4:
            self._unlink(link)
        elif what == 5:
            self._folder(folder)
        elif what == 6:
            self._orphan(k, n)
        elif self._link(file, f"{folder}/x"):
            self._unlink(file)
        else:
            self._unlink(f"{folder}/x")

    def first_allowed(self, mark: int) -> int:
        """Index of the oldest state that may be found once `mark` was on its way."""
        if mark < 0:
            return 0
        return self.ends[max((k for k in self.synced if k < mark), default=0)] if mark else 0


# ---- an image, read without the kernel's code ---------------------------------


class FileSystem:
    """The files in an image of a whole disk, after its log was replayed; `orphans` are inodes in use without a name."""

    def __init__(self, image: bytes):
        self._image = bytearray(image)
        (_, self.size, _, self.ninodes, self.nlog, self._log, self._inodes, _) = struct.unpack_from(
            "<8I", image, BLOCK
        )
        self._replay()
        self.orphans = [
            inum for inum in range(1, self.ninodes) if self._inode(inum)[0] and not self._inode(inum)[3]
        ]

    def _replay(self) -> None:
        base = self._log * BLOCK
        magic, nr, _, total = struct.unpack_from("<IIQQ", self._image, base)
        if magic != LOG_MAGIC or not 0 < nr < self.nlog:
            return
        area = bytearray(self._image[base : base + (nr + 1) * BLOCK])
        area[16:24] = bytes(8)
        value = 0xCBF29CE484222325
        for (word,) in struct.iter_unpack("<Q", area):
            value = ((value ^ word) * 0x100000001B3) & MASK64
            value ^= value >> 29
        if value != total:
            return
        for i, block in enumerate(struct.unpack_from(f"<{nr}I", area, 24)):
            self._image[block * BLOCK : (block + 1) * BLOCK] = area[(i + 1) * BLOCK : (i + 2) * BLOCK]

    def _inode(self, inum: int) -> tuple:
        return struct.unpack_from("<4hI13I", self._image, self._inodes * BLOCK + inum * 64)

    def blocks(self, inum: int) -> list[int]:
        """Numbers of the blocks that hold a file's bytes."""
        size, addrs = self._inode(inum)[4], list(self._inode(inum)[5:])
        if addrs[NDIRECT]:
            addrs[NDIRECT:] = struct.unpack_from("<256I", self._image, addrs[NDIRECT] * BLOCK)
        return addrs[: -(-size // BLOCK)]

    def contents(self, inum: int) -> bytes:
        """All bytes of a file."""
        blocks = (self._image[a * BLOCK : (a + 1) * BLOCK] for a in self.blocks(inum))
        return b"".join(blocks)[: self._inode(inum)[4]]

    def entries(self, inum: int) -> dict[str, int]:
        """Names in a directory, but for "." and "..", with their inodes."""
        rows = struct.iter_unpack("<H14s", self.contents(inum))
        named = {name.rstrip(b"\0").decode(): child for child, name in rows if child}
        return {name: child for name, child in named.items() if name not in (".", "..")}

    def folder(self, name: str) -> dict | None:
        """A folder in the root, as `Worker.states` has it; None: not there."""
        inum = self.entries(1).get(name)
        return None if inum is None else dict(self._walk(inum, ""))

    def _walk(self, inum: int, prefix: str) -> Iterator[tuple]:
        for name, child in self.entries(inum).items():
            kind, _, _, nlink = self._inode(child)[:4]
            if kind == 1:
                yield prefix + name, ("dir",)
                yield from self._walk(child, f"{prefix}{name}/")
            else:
                yield prefix + name, ("file", self.contents(child), nlink)


def compare(files: FileSystem, workers: list[Worker], marks: list[int]) -> list[int]:
    """Find each worker's folder among the states that its promises allow: the index of each.

    `marks` are the highest marks on their way to the disk when the power went, -1: none.
    """
    found = []
    for process, worker in enumerate(workers):
        folder, first = files.folder(f"w{process}"), worker.first_allowed(marks[process])
        states = worker.states
        place = next((i for i in range(first, len(states)) if states[i] == folder), None)
        if place is None:
            older = [i for i in range(first) if states[i] == folder]
            raise AssertionError(
                f"/w{process}: mark {marks[process]} was on its way, so state {first} was promised; found "
                + (f"state {older[-1]}" if older else f"no state at all: {_brief(folder)}")
            )
        found.append(place)
    return found


def _brief(folder: dict | None) -> dict | None:
    """A folder with the lengths of its files."""
    return folder and {
        name: (row[0], len(row[1]), row[2]) if row[0] == "file" else row for name, row in folder.items()
    }
