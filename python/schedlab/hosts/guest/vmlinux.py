# SPDX-License-Identifier: MIT
"""Look into a kernel image: unpack it once, so that the emulator need not do it at
every boot, and say what is wrong with one that a user has named.

What a distribution ships is a compressed kernel behind a small program that unpacks
it. That program is a third of what an emulator executes until the guest is there.
The kernel inside is an ELF file; if a note in it says where it can be entered
directly (PVH), QEMU starts it as it is.

        boot sector | setup | payload: compressed ELF | ...
                              ^ its place and length are in the header

Must stay true: an image that is not understood is booted as it is; one that cannot
run policies is refused before anything is booted, with what would do.
Read next: boot.py. The header is described in Linux's
Documentation/arch/x86/boot.rst.
"""

from __future__ import annotations

import ctypes
import hashlib
import lzma
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ...errors import HostError, UsageError
from ...files import write_bytes
from ...paths import cache_folder
from .image import locked

MAGIC, MAGIC_OFFSET, RELEASE_OFFSET = b"HdrS", 0x202, 0x20E
#: Version 2.08 of the header is the first that names the payload.
VERSION_MIN, VERSION_OFFSET = 0x208, 0x206
SETUP_SECTORS_OFFSET, PAYLOAD_OFFSET = 0x1F1, 0x248
SECTOR_BYTES = 512
#: The build of a kernel appends the length of what it has compressed.
LENGTH = struct.Struct("<I")
#: Length of what is behind the setup, in paragraphs of 16 bytes; which modes it can be entered in.
CODE_PARAGRAPHS_OFFSET, FLAGS_OFFSET, FLAG_64_BITS = 0x1F4, 0x236, 1
#: Of the note that says where to enter: who defines it, and its number.
NOTE_OWNER, NOTE_ENTRY = b"Xen\0", 18
PROGRAM_NOTE = 4
#: How ELF and the header of EFI programs, which most kernels are, too, call machines.
ELF_MACHINE_OFFSET, ELF_X86_64 = 18, 62
ELF_MACHINES = {
    3: "32-bit x86",
    21: "PowerPC",
    22: "s390",
    40: "32-bit Arm",
    183: "64-bit Arm",
    243: "RISC-V",
}
EFI_X86_64 = 0x8664
EFI_MACHINES = {
    0x14C: "32-bit x86",
    0x1C2: "32-bit Arm",
    0xAA64: "64-bit Arm",
    0x5064: "RISC-V",
    0x6264: "LoongArch",
}
#: What only a kernel with sched_ext has in it, and one that describes its types.
SCHED_EXT, TYPES = b"sched_ext_ops", b"\0.BTF\0"
#: What of an ELF file has its table of parts in it.
HEAD_BYTES = 4096
#: A kernel with all its debugging information has about 800 MB.
IMAGE_BYTES_MAX = 4 << 30
#: Unpacked kernels that are kept, of about 60 MB each.
KEPT_MAX = 2


def unpacked(image: Path) -> Path:
    """Return a file that QEMU boots faster than an image, if there can be one."""
    return _unpacked(image, image.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _unpacked(image: Path, _mtime_ns: int) -> Path:
    data = image.read_bytes()
    place = cache_folder("guest")
    kernel = place / f"vmlinux-{hashlib.sha256(data).hexdigest()[:16]}"
    with locked(place / "vmlinux-lock"):
        if kernel.exists() and not _is_cut(kernel):
            os.utime(kernel)
            return kernel
        try:
            elf = kernel_in(data)
        except ValueError as error:
            raise HostError(
                f"{image}: {error}; if it is schedlab's own copy, remove {image.parent}: it is fetched again"
            ) from error
        if elf is None or not can_be_entered(elf):
            return image
        write_bytes(kernel, elf)
        kept = sorted(place.glob("vmlinux-*[0-9a-f]"), key=lambda path: path.stat().st_mtime_ns)
        for old in kept[:-KEPT_MAX]:
            old.unlink()
    return kernel


def kernel_in(image: bytes) -> bytes | None:
    """Unpack what is in an image."""
    if len(image) < PAYLOAD_OFFSET + 8 or image[MAGIC_OFFSET:][:4] != MAGIC:
        return None
    (version,) = struct.unpack_from("<H", image, VERSION_OFFSET)
    if version < VERSION_MIN:
        return None
    start, length = struct.unpack_from("<II", image, PAYLOAD_OFFSET)
    # 0 means 4, for the sake of the oldest loaders.
    start += ((image[SETUP_SECTORS_OFFSET] or 4) + 1) * SECTOR_BYTES
    payload = image[start : start + length]
    if len(payload) < length:
        raise ValueError(f"it is cut short: it has {len(image):,} of at least {start + length:,} bytes")
    if length < LENGTH.size:
        return None
    try:
        return _decompress(payload)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"what is packed in it is damaged ({error})") from error


def _decompress(payload: bytes) -> bytes | None:
    """What a payload was made of, by the first bytes of it."""
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(payload)
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        return _decompress_zstd(payload)
    return None


def _decompress_zstd(payload: bytes) -> bytes | None:
    """The same for zstd, which Python has from 3.14 on: by the library that dpkg and rpm need.

    Without it the image boots as it is, which takes longer.
    """
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError:
        return None
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    packed, (length,) = payload[: -LENGTH.size], LENGTH.unpack(payload[-LENGTH.size :])
    made = bytearray(length)
    place = (ctypes.c_char * length).from_buffer(made)
    # An error is a number above all sizes, so it is no length either.
    if library.ZSTD_decompress(place, length, packed, len(packed)) != length:
        raise ValueError(f"zstd does not make {length:,} bytes of it")
    return bytes(made)


def refuse_unusable(image: Path) -> None:
    """Refuse a file that is no kernel in which policies can run."""
    try:
        status = image.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= IMAGE_BYTES_MAX:
            reason = _why_unusable(image, status.st_mtime_ns)
        else:
            reason = "is no kernel: " + (
                f"{status.st_size:,} bytes" if stat.S_ISREG(status.st_mode) else "not even a file"
            )
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    if reason:
        raise UsageError(
            f"--kernel {image}: {reason}; name a kernel image for x86_64, such as /boot/vmlinuz-VERSION, "
            "built with CONFIG_SCHED_CLASS_EXT=y and CONFIG_DEBUG_INFO_BTF=y, or leave --kernel out for "
            "Debian's"
        )


@lru_cache(maxsize=4)
def _why_unusable(image: Path, _mtime_ns: int) -> str | None:
    """What keeps a file from being the guest's kernel, if anything does."""
    data = image.read_bytes()
    reason = _why_no_kernel(data)
    if reason:
        return reason
    try:
        elf = data if data[:4] == b"\x7fELF" else kernel_in(data)
    except ValueError as error:
        return str(error)
    if elf is None:  # packed in a way that we do not know: its own boot will tell
        return None
    if SCHED_EXT not in elf:
        return f"has no sched_ext{_release_in(data)}: it is older than Linux 6.12, or was built without it"
    if TYPES not in elf:
        return f"does not say how its structures lie (BTF){_release_in(data)}"
    return None


def _why_no_kernel(data: bytes) -> str | None:
    """What keeps bytes from being a whole Linux kernel for x86_64, by their first few."""
    if data[:4] == b"\x7fELF":
        return _why_no_elf_kernel(data)
    (efi,) = struct.unpack_from("<I", data, 0x3C) if data[:2] == b"MZ" and len(data) >= 64 else (0,)
    if efi and data[efi : efi + 4] == b"PE\0\0" and efi + 6 <= len(data):
        (machine,) = struct.unpack_from("<H", data, efi + 4)
        if machine != EFI_X86_64:
            return f"is for another machine: {EFI_MACHINES.get(machine, hex(machine))}"
    if len(data) < PAYLOAD_OFFSET + 8 or data[MAGIC_OFFSET:][:4] != MAGIC:
        return f"is no Linux kernel: {len(data):,} bytes that begin with {data[:8]!r}" if data else "is empty"
    (paragraphs,) = struct.unpack_from("<I", data, CODE_PARAGRAPHS_OFFSET)
    length = ((data[SETUP_SECTORS_OFFSET] or 4) + 1) * SECTOR_BYTES + 16 * paragraphs
    if len(data) < length:
        return f"is cut short: it has {len(data):,} of {length:,} bytes"
    (flags,) = struct.unpack_from("<H", data, FLAGS_OFFSET)
    return None if flags & FLAG_64_BITS else "is for another machine: 32-bit x86"


def _why_no_elf_kernel(data: bytes) -> str | None:
    """The same for ELF: what a kernel's build leaves as `vmlinux`."""
    if len(data) < 64:
        return "is cut short"
    (machine,) = struct.unpack_from("<H", data, ELF_MACHINE_OFFSET)
    if machine != ELF_X86_64:
        return f"is for another machine: {ELF_MACHINES.get(machine, machine)}"
    for offset, length, _ in _program_parts(data):
        if offset + length > len(data):
            return f"is cut short: it has {len(data):,} of {offset + length:,} bytes"
    return (
        None
        if can_be_entered(data)
        else "says nowhere how it is entered (PVH), so it is no kernel to be booted as it is"
    )


def _release_in(data: bytes) -> str:
    """The release that a bzImage says it is, in parentheses; empty where it does not."""
    if data[MAGIC_OFFSET:][:4] != MAGIC:
        return ""
    (at,) = struct.unpack_from("<H", data, RELEASE_OFFSET)
    text = data[at + 0x200 :][:64].split(b"\0")[0].split(b" ")[0].decode(errors="replace")
    return f" ({text})" if at and text.isprintable() and text else ""


def _is_cut(kernel: Path) -> bool:
    """Whether an unpacked kernel is not whole, as after a disk was full or the power gone."""
    with open(kernel, "rb") as file:
        head = file.read(HEAD_BYTES)
    return (
        max((offset + length for offset, length, _ in _program_parts(head)), default=1)
        > kernel.stat().st_size
    )


def can_be_entered(elf: bytes) -> bool:
    """Whether a kernel says where it can be entered directly."""
    if elf[:6] != b"\x7fELF\x02\x01" or len(elf) < 64:
        return False
    return any(
        kind == PROGRAM_NOTE and _has_entry(elf[offset : offset + length])
        for offset, length, kind in _program_parts(elf)
    )


def _program_parts(elf: bytes) -> Iterator[tuple[int, int, int]]:
    """Place, length and kind of each part of a 64-bit ELF file, as far as its table is there."""
    (table,) = struct.unpack_from("<Q", elf, 32)
    size, number = struct.unpack_from("<HH", elf, 54)
    for index in range(number):
        at = table + index * size
        if at + 56 > len(elf):
            yield at, 56, 0
            return
        (kind,) = struct.unpack_from("<I", elf, at)
        yield struct.unpack_from("<Q", elf, at + 8)[0], struct.unpack_from("<Q", elf, at + 32)[0], kind


def _has_entry(notes: bytes) -> bool:
    at = 0
    while at + 12 <= len(notes):
        name_bytes, value_bytes, kind = struct.unpack_from("<III", notes, at)
        if kind == NOTE_ENTRY and notes[at + 12 : at + 12 + name_bytes] == NOTE_OWNER:
            return True
        at += 12 + (name_bytes + 3) // 4 * 4 + (value_bytes + 3) // 4 * 4
    return False
