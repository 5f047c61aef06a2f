# SPDX-License-Identifier: MIT
"""Unpack a kernel image once, so that the emulator need not do it at every boot.

What a distribution ships is a compressed kernel behind a small program that unpacks
it. That program is a third of what an emulator executes until the guest is there.
The kernel inside is an ELF file; if a note in it says where it can be entered
directly (PVH), QEMU starts it as it is.

	boot sector | setup | payload: compressed ELF | ...
	                      ^ its place and length are in the header

Must stay true: an image that is not understood is booted as before.
Read next: guest_boot.py. The header is described in Linux's
Documentation/arch/x86/boot.rst.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import struct
import zlib
from functools import lru_cache
from pathlib import Path

from ..paths import cache_folder
from .guest_image import locked

MAGIC, MAGIC_OFFSET = b"HdrS", 0x202
#: Version 2.08 of the header is the first that names the payload.
VERSION_MIN, VERSION_OFFSET = 0x208, 0x206
SETUP_SECTORS_OFFSET, PAYLOAD_OFFSET = 0x1F1, 0x248
SECTOR_BYTES = 512
#: The build of a kernel appends the length of what it has compressed.
LENGTH = struct.Struct("<I")
#: Of the note that says where to enter: who defines it, and its number.
NOTE_OWNER, NOTE_ENTRY = b"Xen\0", 18
PROGRAM_NOTE = 4
#: Unpacked kernels that are kept, of about 60 MB each.
KEPT_MAX = 2


def unpacked(image: Path) -> Path:
    """Return a file that QEMU boots faster than an image, if there can be one.

    Parameters
    ----------
    image : pathlib.Path
        What a distribution ships.

    Returns
    -------
    pathlib.Path
        The kernel in it, in the cache; or `image` itself.
    """
    return _unpacked(image, image.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _unpacked(image: Path, _mtime_ns: int) -> Path:
    data = image.read_bytes()
    place = cache_folder("guest")
    kernel = place / f"vmlinux-{hashlib.sha256(data).hexdigest()[:16]}"
    with locked(place / "vmlinux-lock"):
        if kernel.exists():
            os.utime(kernel)
            return kernel
        elf = kernel_in(data)
        if elf is None or not can_be_entered(elf):
            return image
        made = kernel.with_name(f".{kernel.name}.{os.getpid()}")
        made.write_bytes(elf)
        os.replace(made, kernel)
        kept = sorted(place.glob("vmlinux-*[0-9a-f]"), key=lambda path: path.stat().st_mtime_ns)
        for old in kept[:-KEPT_MAX]:
            old.unlink()
    return kernel


def kernel_in(image: bytes) -> bytes | None:
    """Unpack what is in an image.

    Parameters
    ----------
    image : bytes
        A `bzImage`.

    Returns
    -------
    bytes or None
        What was compressed; None if this is no such image, or packed in another way.
    """
    if len(image) < PAYLOAD_OFFSET + 8 or image[MAGIC_OFFSET:][:4] != MAGIC:
        return None
    (version,) = struct.unpack_from("<H", image, VERSION_OFFSET)
    if version < VERSION_MIN:
        return None
    start, length = struct.unpack_from("<II", image, PAYLOAD_OFFSET)
    # 0 means 4, for the sake of the oldest loaders.
    start += ((image[SETUP_SECTORS_OFFSET] or 4) + 1) * SECTOR_BYTES
    payload = image[start : start + length]
    if len(payload) < length or length < LENGTH.size:
        return None
    try:
        return _decompress(payload)
    except (OSError, ValueError, lzma.LZMAError, zlib.error):
        return None


def _decompress(payload: bytes) -> bytes | None:
    """What a payload was made of, by the first bytes of it."""
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(payload)
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        # Imported here, as it takes a while; Python 3.11 has no zstd of its own.
        import pyarrow

        (length,) = LENGTH.unpack(payload[-LENGTH.size :])
        return pyarrow.decompress(
            payload[: -LENGTH.size], decompressed_size=length, codec="zstd", asbytes=True
        )
    return None


def can_be_entered(elf: bytes) -> bool:
    """Whether a kernel says where it can be entered directly.

    Parameters
    ----------
    elf : bytes
        A file.

    Returns
    -------
    bool
        Whether it is ELF for 64 bits with the note that QEMU looks for.
    """
    if elf[:6] != b"\x7fELF\x02\x01" or len(elf) < 64:
        return False
    (table,) = struct.unpack_from("<Q", elf, 32)
    size, number = struct.unpack_from("<HH", elf, 54)
    for at in range(table, table + size * number, size):
        if at + 56 > len(elf):
            return False
        (kind,) = struct.unpack_from("<I", elf, at)
        offset, length = struct.unpack_from("<Q", elf, at + 8)[0], struct.unpack_from("<Q", elf, at + 32)[0]
        if kind == PROGRAM_NOTE and _has_entry(elf[offset : offset + length]):
            return True
    return False


def _has_entry(notes: bytes) -> bool:
    at = 0
    while at + 12 <= len(notes):
        name_bytes, value_bytes, kind = struct.unpack_from("<III", notes, at)
        if kind == NOTE_ENTRY and notes[at + 12 : at + 12 + name_bytes] == NOTE_OWNER:
            return True
        at += 12 + (name_bytes + 3) // 4 * 4 + (value_bytes + 3) // 4 * 4
    return False
