# SPDX-License-Identifier: MIT
"""A map in this machine's kernel like the one in which a policy finds attributes."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

import pytest

#: struct task_attr of include/scx/attrs.h.
ATTRIBUTES = struct.Struct("<QQiIiIII")
NAMES = ("deadline_ns", "burst_ns", "priority", "tickets", "credits", "cap_percent", "group", "given")
_SYS_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_CREATE, _LOOKUP, _INFO = 0, 1, 15
_HASH = 1


def _bpf(command: int, attributes: bytes) -> int:
    number = _SYS_BPF.get(platform.machine())
    if number is None:
        pytest.skip(f"bpf() has another number on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, 128)
    result = libc.syscall(number, command, buffer, 128)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


class AttributesMap:
    """A hash map by pid, in the kernel until `close`; skips the test where it cannot be."""

    def __init__(self, value_bytes: int = ATTRIBUTES.size):
        try:
            self.fd = _bpf(_CREATE, struct.pack("<5I", _HASH, 4, value_bytes, 64, 0))
        except OSError as error:
            pytest.skip(f"this machine has no BPF maps for us: {error.strerror}")
        info = ctypes.create_string_buffer(80)
        _bpf(_INFO, struct.pack("<IIQ", self.fd, len(info), ctypes.addressof(info)))
        self.number = struct.unpack_from("<II", info.raw)[1]

    def __getitem__(self, pid: int) -> dict:
        key, value = ctypes.c_int32(pid), ctypes.create_string_buffer(ATTRIBUTES.size)
        _bpf(_LOOKUP, struct.pack("<IIQQQ", self.fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0))
        return dict(zip(NAMES, ATTRIBUTES.unpack(value.raw), strict=True))

    def close(self) -> None:
        os.close(self.fd)
