# SPDX-License-Identifier: MIT
"""Start a program that can open the files it is given, and no others.

        python jail.py --seconds N --memory BYTES --read PATH ... --write PATH ... -- COMMAND ...

Linux's landlock (5.13 or later) does it, without root: this process gives up every other
file, its TCP ports where the kernel knows how, and new privileges; limits of CPU time,
memory and size of files follow; then it becomes COMMAND. Where there is no landlock, the
limits remain, and the caller is told by `unavailable`.

It is a script of its own that imports nothing of schedlab: a thread pool may not fork
Python code, and what is executed here is executed with the rights of the user.

Read next: wasm_build.py and grade/kernel.py, the callers.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

CPU_SECONDS_MAX = 10
MEMORY_BYTES_MAX = 2 << 30
FILE_BYTES_MAX = 64 << 20
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE = 1 << 14
#: Rights that a file, not a folder, can have.
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_NO_NEW_PRIVILEGES = 38
#: How many rights each version of landlock knows.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("ports", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """Landlock's version, 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG), 0)


def unavailable() -> str | None:
    """Why files cannot be kept from a program here; None: they can."""
    return None if version() else "the kernel has no landlock (Linux 5.13 or later, enabled)"


def command(
    readable: list[str],
    writable: list[str],
    *,
    cpu_seconds: int = CPU_SECONDS_MAX,
    memory_bytes: int = MEMORY_BYTES_MAX,
) -> list[str]:
    """Beginning of a command that can open these files alone; what follows begins with a whole path."""
    words = ["--seconds", str(cpu_seconds), "--memory", str(memory_bytes)]
    words += [word for path in readable for word in ("--read", path)]
    words += [word for path in writable for word in ("--write", path)]
    return [sys.executable, "-I", os.path.abspath(__file__), *words, "--"]


def restrict(readable: list[str], writable: list[str]) -> None:
    """Give up all files but these, and what lies below them; raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    known = version()
    every = (1 << _RIGHTS.get(known, 16)) - 1
    rules = _Ruleset(every, 3 if known >= 4 else 0)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), 16 if known >= 4 else 8, 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock")
    reading = _EXECUTE | _READ_FILE | _READ_DIR
    for path, rights in [*((path, reading) for path in readable), *((path, every) for path in writable)]:
        with contextlib.suppress(FileNotFoundError):
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rule = _Beneath((rights if os.path.isdir(path) else rights & _OF_FILES) & every, opened)
            if libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0):
                raise OSError(ctypes.get_errno(), "landlock")
            os.close(opened)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(_RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "landlock")
    os.close(ruleset)


def limit(cpu_seconds: int, memory_bytes: int) -> None:
    """Bound CPU time, memory and the size of files, where the system has such limits."""
    import resource

    for name, most in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, FILE_BYTES_MAX),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(name, (most, most))


def main() -> None:
    """Restrict this process, and become the command."""
    cut = sys.argv.index("--")
    words, command = sys.argv[1:cut], sys.argv[cut + 1 :]
    given: dict[str, list[str]] = {"--read": [], "--write": [], "--seconds": [], "--memory": []}
    for option, value in zip(words[::2], words[1::2], strict=True):
        given[option].append(value)
    if os.name == "posix":
        limit(int(given["--seconds"][0]), int(given["--memory"][0]))
    if version():
        restrict(given["--read"], given["--write"])
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
