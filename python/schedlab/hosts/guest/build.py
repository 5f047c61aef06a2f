# SPDX-License-Identifier: MIT
"""Build what compiles and loads policies: programs, the kernel's types, an initramfs.

Must stay true: equal inputs give an equal initramfs, bit by bit, or a guest run
could not be repeated; so files have no times and no owners in it.
Read next: policies.py, which boots it.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from ...errors import UnavailableError
from ...files import made_whole
from ...paths import cache_folder, include_folder, resource_root
from ...policy.bpf import Toolchain
from ...tools import ask
from ...waiting import announced
from .image import fetch_guest_parts, locked
from .vmlinux import unpacked

INIT_OPTIONS = ("-std=gnu11", "-O2", "-static", "-Wall", "-Wextra")

#: Folders and files, below hosts/linux or the root, that each program is made of.
_PROGRAMS = {
    "guest": (
        "hosts/linux/guest/*.c",
        "hosts/linux/load/frame.c",
        "hosts/linux/load/kernel.c",
        "hosts/linux/load/launch.c",
        "hosts/linux/load/lines.c",
        "hosts/linux/load/policy.c",
        "hosts/linux/tasks/*.c",
        # Without objects.c: a task waits for Linux's own locks and pipes.
        "player/player.c",
        "player/program.c",
        "player/work.c",
    ),
    "load": ("hosts/linux/load/*.c",),
    "object": ("hosts/linux/object/*.c",),
}
_HEADERS = ("hosts/linux/*/*.h", "player/*.h", "include/*/*.h")


def build_program(name: str, libbpf: Path) -> Path:
    """Compile a program that loads policies, or find it in the cache."""
    root = resource_root()
    sources = sorted(path for pattern in _PROGRAMS[name] for path in root.glob(pattern))
    if not sources:
        raise UnavailableError(
            f"{root / 'hosts' / 'linux'}: the sources of the loader are not there; use a checkout"
        )
    compiler = shlex.split(os.environ.get("CC", "cc"))
    digest = hashlib.sha256(repr((compiler, INIT_OPTIONS, libbpf.name)).encode())
    for path in (*sources, *sorted(path for pattern in _HEADERS for path in root.glob(pattern))):
        digest.update(path.read_bytes())
    target = cache_folder("guest") / f"{name}-{digest.hexdigest()[:16]}"
    with locked(target.parent / "build-lock"):
        if not target.exists():
            with announced(
                f"building the loader of policies ({name}), some seconds the first time; it is kept"
            ):
                _compile_program([*compiler, *INIT_OPTIONS], sources, libbpf, target)
    return target


def toolchain(kernel: Path | None = None) -> Toolchain:
    """Find or make what published schedulers are compiled with for a kernel; None: Debian's."""
    parts = fetch_guest_parts(kernel=kernel)
    tool, image = build_program("object", parts.libbpf), unpacked(parts.kernel)
    folder = cache_folder("guest") / f"types-{image.name}-{tool.name}"
    with locked(folder.parent / "types-lock"):
        if not folder.exists():
            done = ask([tool, "types", image])
            if done.returncode:
                raise UnavailableError(done.stderr.strip())
            with made_whole(folder) as made:
                made.mkdir()
                (made / "vmlinux.h").write_text(done.stdout, encoding="utf-8")
    return Toolchain((folder, parts.libbpf / "usr" / "include"), tool)


def _compile_program(compiler: Sequence[str], sources: Sequence[Path], libbpf: Path, target: Path) -> None:
    """Compile and link into `target`."""
    command: list[str | Path] = [
        *compiler, f"-I{include_folder()}", f"-I{resource_root() / 'player'}", f"-I{libbpf / 'usr' / 'include'}",
        *sources, next(libbpf.glob("usr/lib/**/libbpf.a")), *_libelf(), "-Wl,-s",
    ]  # fmt: skip
    with made_whole(target) as made:
        try:
            done = ask([*command, "-o", made])
        except FileNotFoundError as error:
            raise UnavailableError(f"{compiler[0]} is missing; install a C compiler") from error
        if done.returncode:
            raise UnavailableError(
                "the loader of policies cannot be built; to have what it needs: ./lab setup, or sudo "
                f"apt-get install libelf-dev zlib1g-dev libc6-dev\n{done.stderr.strip()}"
            )


def _libelf() -> list[str]:
    """Linker words for a static libelf; newer ones need zstd beside zlib."""
    with contextlib.suppress(FileNotFoundError):
        done = ask(["pkg-config", "--static", "--libs", "libelf"])
        if done.returncode == 0:
            return done.stdout.split()
    return ["-lelf", "-lz"]


def make_initramfs(files: dict[str, bytes]) -> bytes:
    """Pack files the way the kernel unpacks them at boot.

    Folders are made as needed; everything is root's, executable, and of time 0.
    """
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    entries = [(name, 0o040755, b"") for name in sorted(folders)]
    entries += [(name, 0o100755, files[name]) for name in sorted(files)]
    entries.append(("TRAILER!!!", 0, b""))
    archive = b"".join(
        _cpio_entry(number, name, mode, data) for number, (name, mode, data) in enumerate(entries, start=1)
    )
    return gzip.compress(archive, compresslevel=1, mtime=0)


def _cpio_entry(inode: int, name: str, mode: int, data: bytes) -> bytes:
    """One file: fourteen numbers in hexadecimal, the name, the contents."""
    encoded = name.encode() + b"\0"
    numbers = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + encoded
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
