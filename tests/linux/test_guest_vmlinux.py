# SPDX-License-Identifier: MIT
"""Kernel images are unpacked once, and one that cannot run policies is refused before it is booted."""

from __future__ import annotations

import gzip
import lzma
import os
import struct
import sys

import pyarrow
import pytest

from schedlab.errors import HostError, UsageError
from schedlab.hosts.guest import vmlinux as guest_vmlinux

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


@pytest.mark.parametrize("pack", [gzip.compress, xz, zstd])
def test_damaged_image_is_refused_and_a_cut_copy_made_again(pack, tmp_path, monkeypatch):
    """Booted as it is, it neither starts nor ends."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    whole, path = image(pack(elf(GNU, XEN))), tmp_path / "vmlinuz"
    path.write_bytes(whole[: 4 * 512 + 100 + 40] + bytes(30) + whole[4 * 512 + 100 + 70 :])
    with pytest.raises(
        HostError, match=f"vmlinuz: what is packed in it is damaged .*remove {tmp_path}: it is fetched again"
    ):
        guest_vmlinux.unpacked(path)
    path.write_bytes(whole[:-20])
    with pytest.raises(HostError, match="vmlinuz: it is cut short"):
        guest_vmlinux.unpacked(path)
    path.write_bytes(whole)
    guest_vmlinux._unpacked.cache_clear()
    found = guest_vmlinux.unpacked(path)
    found.write_bytes(found.read_bytes()[:200])
    guest_vmlinux._unpacked.cache_clear()
    assert guest_vmlinux.unpacked(path).read_bytes() == elf(GNU, XEN)


def test_zstd_needs_no_python_package(tmp_path, monkeypatch):
    """A default installation has none that could."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "vmlinuz"
    path.write_bytes(image(zstd(elf(GNU, XEN))))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert guest_vmlinux.unpacked(path).read_bytes() == elf(GNU, XEN)


def test_without_a_library_for_zstd_the_image_is_booted_as_it_is(tmp_path, monkeypatch):
    def no_library(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "vmlinuz"
    path.write_bytes(image(zstd(elf(GNU, XEN))))
    monkeypatch.setattr(guest_vmlinux.ctypes, "CDLL", no_library)
    assert guest_vmlinux.unpacked(path) == path


def test_old_kernels_go(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for number in range(4):
        path = tmp_path / f"vmlinuz-{number}"
        path.write_bytes(image(gzip.compress(elf(XEN) + bytes([number]))))
        last = guest_vmlinux.unpacked(path)
    assert last.exists()
    assert len(list(tmp_path.glob("schedlab/guest/vmlinux-*[0-9a-f]"))) == guest_vmlinux.KEPT_MAX


def kernel(contents=b"sched_ext_ops\0.BTF\0", *, machine=0x8664, flags=1, release=b"7.2.13-test #1"):
    """A bzImage with all that is looked at: an EFI header, lengths, flags, a release."""
    data = bytearray(image(gzip.compress(elf(XEN) + contents)))
    data += bytes(-len(data) % 16)
    data[:2], data[0x3C:0x40] = b"MZ", struct.pack("<I", 0x80)
    data[0x80:0x86] = b"PE\0\0" + struct.pack("<H", machine)
    data[0x1F4:0x1F8] = struct.pack("<I", (len(data) - 4 * 512) // 16)
    data[0x236:0x238] = struct.pack("<H", flags)
    data[0x20E:0x210], data[0x300 : 0x300 + len(release)] = struct.pack("<H", 0x100), release
    return bytes(data)


def arm(data):
    return data[:18] + struct.pack("<H", 183) + data[20:]


WRONG = {
    "text": (b"no kernel at all\n" * 100, r"is no Linux kernel: 1,700 bytes that begin with b'no kerne'"),
    "empty": (b"", "is empty"),
    "half": (kernel()[:1600], r"is cut short: it has 1,600 of [\d,]+ bytes"),
    "header": (kernel()[:300], "is no Linux kernel: 300 bytes"),
    "arm64": (kernel(machine=0xAA64), "is for another machine: 64-bit Arm"),
    "i386": (kernel(flags=0), "is for another machine: 32-bit x86"),
    "6.12": (
        kernel(b"\0.BTF\0", release=b"6.12.9 #1"),
        r"has no sched_ext \(6\.12\.9\): it is older than Linux 6\.12, or",
    ),
    "damaged": (kernel()[:2180] + bytes(20) + kernel()[2200:], "what is packed in it is damaged"),
    "untyped": (kernel(b"sched_ext_ops"), r"does not say how its structures lie \(BTF\) \(7\.2\.13-test\)"),
    "arm-elf": (arm(elf(XEN)), "is for another machine: 64-bit Arm"),
    "half-elf": (elf(XEN)[:100], "is cut short"),
    "program": (elf(GNU) + bytes(5000), "says nowhere how it is entered"),
    "bare": (elf(XEN) + bytes(5000), "has no sched_ext"),
}


@pytest.mark.parametrize("name", WRONG)
def test_kernel_in_which_no_policy_can_run_is_refused_at_once(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data, reason = WRONG[name]
    (tmp_path / "vmlinuz").write_bytes(data)
    with pytest.raises(
        UsageError, match=rf"^--kernel .*vmlinuz: {reason}.*; name a kernel image for x86_64, such as"
    ):
        guest_vmlinux.refuse_unusable(tmp_path / "vmlinuz")


def test_kernel_in_which_policies_can_run_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lz4 = image(b"\x02\x21\x4c\x18" + bytes(4096))
    lz4 = bytearray(lz4) + bytes(-len(lz4) % 16)
    lz4[0x1F4:0x1F8], lz4[0x236] = struct.pack("<I", (len(lz4) - 4 * 512) // 16), 1
    for data in (
        kernel(),
        kernel() + b"a signature",
        bytes(lz4),
        elf(XEN) + b"sched_ext_ops\0.BTF\0" + bytes(5000),
    ):
        (tmp_path / "vmlinuz").write_bytes(data)
        guest_vmlinux._why_unusable.cache_clear()
        guest_vmlinux.refuse_unusable(tmp_path / "vmlinuz")


def test_what_is_no_file_is_not_read(tmp_path):
    """Reading from a pipe would not end."""
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (
        (tmp_path, "not even a file"),
        (tmp_path / "pipe", "not even a file"),
        ("/dev/zero", "not even"),
    ):
        with pytest.raises(UsageError, match=reason):
            guest_vmlinux.refuse_unusable(type(tmp_path)(name))
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(5 << 30)
    with pytest.raises(UsageError, match="is no kernel: 5,368,709,120 bytes"):
        guest_vmlinux.refuse_unusable(tmp_path / "huge")
