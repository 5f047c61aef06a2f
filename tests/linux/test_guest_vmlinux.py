# SPDX-License-Identifier: MIT
"""Kernel images are unpacked once; one that is not understood is booted as it is."""

from __future__ import annotations

import gzip
import lzma
import struct

import pyarrow
import pytest

from schedlab.hosts import guest_vmlinux

XEN = (18, b"Xen\0", struct.pack("<Q", 0x39A5140))
GNU = (3, b"GNU\0", bytes(20))


def elf(*notes, machine_bits=2):
    """An ELF file with a segment to load and one of notes."""
    text = b"".join(
        struct.pack("<III", len(owner), len(value), kind) + owner + value for kind, owner, value in notes
    )
    table = 64
    head = b"\x7fELF" + bytes([machine_bits, 1, 1]) + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x39A5F80, table, 0, 0, 64, 56, 2, 0, 0, 0)
    start = table + 2 * 56
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, start, start, 4096)
    note = struct.pack("<IIQQQQQQ", 4, 4, start, 0, 0, len(text), len(text), 4)
    return head + load + note + text + b"code" * 1000


def zstd(data):
    return pyarrow.compress(data, codec="zstd", asbytes=True) + struct.pack("<I", len(data))


def image(payload, *, sectors=3, version=0x20F, length=None):
    """A bzImage: boot sector, setup, a piece of code, and the payload."""
    start = (sectors + 1) * 512
    data = bytearray(start + 100) + payload + b"behind"
    data[0x1F1] = sectors
    data[0x202:0x208] = b"HdrS" + struct.pack("<H", version)
    data[0x248:0x250] = struct.pack("<II", 100, len(payload) if length is None else length)
    return bytes(data)


def xz(data):
    return lzma.compress(data) + struct.pack("<I", len(data))


@pytest.mark.parametrize("pack", [gzip.compress, xz, zstd])
def test_what_was_packed_comes_out(pack, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "vmlinuz"
    path.write_bytes(image(pack(elf(GNU, XEN))))
    found = guest_vmlinux.unpacked(path)
    assert found != path and found.read_bytes() == elf(GNU, XEN)
    assert guest_vmlinux.unpacked(path) == found


@pytest.mark.parametrize(
    "data",
    [
        image(gzip.compress(elf(GNU))),  # says nowhere how to enter it
        image(gzip.compress(elf(XEN, machine_bits=1))),
        image(gzip.compress(b"no ELF")),
        image(b"\x02\x21\x4c\x18" + elf(XEN)),  # lz4
        image(zstd(elf(XEN))[:-20]),  # cut off
        image(gzip.compress(elf(XEN)), length=1 << 30),
        image(gzip.compress(elf(XEN)), version=0x207),
        elf(XEN),
        b"",
        b"\x7fELF\x02\x01",
    ],
)
def test_what_is_not_understood_is_booted_as_it_is(data, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "vmlinuz"
    path.write_bytes(data)
    assert guest_vmlinux.unpacked(path) == path
    assert not list(tmp_path.glob("schedlab/guest/vmlinux-*[0-9a-f]"))


def test_old_kernels_go(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for number in range(4):
        path = tmp_path / f"vmlinuz-{number}"
        path.write_bytes(image(gzip.compress(elf(XEN) + bytes([number]))))
        last = guest_vmlinux.unpacked(path)
    assert last.exists()
    assert len(list(tmp_path.glob("schedlab/guest/vmlinux-*[0-9a-f]"))) == guest_vmlinux.KEPT_MAX
