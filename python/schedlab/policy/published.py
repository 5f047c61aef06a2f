# SPDX-License-Identifier: MIT
"""Find all files of a published sched_ext scheduler: its sources, headers and user half.

A checkout of `sched-ext/scx` has `scheds/include`. A scheduler in it is one file of
`scheds/c`, or a folder of `scheds/rust` whose `build.rs` names its sources and those of `lib`. One that cargo
has fetched is a folder such as `scx_lavd-1.1.4`, beside the crate with the headers that its Cargo.toml asks for. What
its headers mean by the kernel and libbpf is in `include/published`, which is searched before
its own folders; `kernel.h` there comes before all else. A scheduler whose main file is a crate's, which writes it
as cargo builds, is put together in a folder of the cache.

A policy of one's own is one file, or a folder with a `main.bpf.c` and others beside it.

Read next: build.py, which compiles them; launch_file.py.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .. import paths
from ..errors import PolicyError, SpecError
from ..toml_file import read_source

_MAIN = re.compile(r'enable_skel\(\s*"([^"]+)"')
_SOURCE = re.compile(r'add_source\(\s*"([^"]+)"')
#: The crate that some schedulers have their BPF half from, and which version of it.
CRATE = "scx_rustland_core"
_CRATE_VERSION = re.compile(CRATE + r'\s*=.*?version\s*=\s*"=?([\w.+-]+)"')
_LIB_SOURCES = re.compile(r"^LIB_SRCS\s*:=\s*(.*)$", re.MULTILINE)
#: A folder that cargo has unpacked: the crate's name and version.
_CRATE = re.compile(r"(scx_\w+)-(\d+)\.(\d+)\.(\d+)")
_PACKAGE = re.compile(r"^\[package\]\s[^\[]*?^version\s*=\s*\"(\d+)\.(\d+)\.(\d+)", re.MULTILINE)
#: Crates that build schedulers, and have the headers.
_BUILDERS = ("scx_cargo", "scx_utils")
SUFFIX = ".bpf.c"
_REENQUEUE = "scx_bpf_reenqueue_local"
#: For the compiler. Its warnings are its authors' to see. Linux keeps what is a kernel's pointer in a map
#: where a value is copied over it: here it becomes what the rest of an uninitialised variable is, 0.
FLAGS = ("-w", "-D__BPF__", "-ftrivial-auto-var-init=zero", "-include", "kernel.h")
#: The same for Linux, whose 7.2 has no such flag. Some include <errno.h>, half of which is a machine's,
#: and none goes without the compiler's own functions, which bpf.py's flags leave out.
FLAGS_FOR_LINUX = (
    "-w",
    "-D__TARGET_ARCH_x86",
    "-DSCX_OPS_HAS_CGROUP_WEIGHT=0",
    "-fhosted",
    f"-idirafter/usr/include/{platform.machine()}-linux-gnu",
)


@dataclass(frozen=True)
class Published:
    """Files of a policy beside the one that it is named by."""

    sources: tuple[Path, ...] = ()  #: More files to compile.
    includes: tuple[Path, ...] = ()  #: Folders for the compiler, after schedlab's.
    others: tuple[Path, ...] = ()  #: Files that decide which these are.
    #: Folders that a link beside the file points to, where the link came as a file of one line.
    links: dict[str, Path] = field(default_factory=dict)
    is_published: bool = False  #: Whether it is one of a checkout.


def main_file(folder: Path) -> Path | None:
    """Find the file that a scheduler's folder is compiled from."""
    build = folder / "build.rs"
    named = _MAIN.search(build.read_text("utf-8", "replace")) if build.is_file() else None
    places = [folder / named[1]] if named else []
    places += [folder / f"main{SUFFIX}", folder / "src" / "bpf" / f"main{SUFFIX}"]
    return next((place for place in places if place.is_file()), None) or _from_crate(folder)


def crate_version(folder: Path) -> str | None:
    """The version of `CRATE` that writes a scheduler's main file, or None: it has one of its own, or none."""
    cargo, build = folder / "Cargo.toml", folder / "build.rs"
    if not cargo.is_file() or not build.is_file() or CRATE not in build.read_text("utf-8", "replace"):
        return None
    found = _CRATE_VERSION.search(cargo.read_text("utf-8", "replace"))
    return found[1] if found else None


def _from_crate(folder: Path) -> Path | None:
    """The main file that a crate writes, in a copy of the scheduler's folder as it is once cargo has built it."""
    version = crate_version(folder)
    root = next((at for at in folder.absolute().parents if (at / "scheds" / "include").is_dir()), None)
    if version is None or root is None:
        return None
    cargo = Path(os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo"))
    places = [root / "rust" / CRATE, *(cargo / "registry" / "src").glob(f"*/{CRATE}-{version}")]
    crate = next((at / "assets" / "bpf" for at in places if (at / "assets" / "bpf").is_dir()), None)
    if crate is None:
        return None
    key = hashlib.sha256(f"{folder.absolute()}\n{crate}".encode()).hexdigest()[:16]
    made = paths.cache_folder("crates") / key
    own = made / "scheds" / "rust" / folder.absolute().name
    own.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (made / "scheds" / "include").symlink_to(root / "scheds" / "include")
    for file in (folder / "build.rs", folder / "Cargo.toml", *crate.glob("*.[ch]")):
        scratch = own / f"{file.name}-{os.getpid()}"
        scratch.write_bytes(file.read_bytes())
        os.replace(scratch, own / file.name)
    return own / f"main{SUFFIX}"


def published(path: Path) -> Published:
    """Find what belongs to a policy's file."""
    path = path.absolute()
    # The sources of Linux have schedulers, and tests of sched_ext.
    linux = next((f for f in path.parents if (f / "tools" / "sched_ext" / "include").is_dir()), None)
    if linux is not None:
        return Published(includes=(linux / "tools" / "sched_ext" / "include", path.parent), is_published=True)
    root = next((folder for folder in path.parents if (folder / "scheds" / "include").is_dir()), None)
    crate = next((folder for folder in path.parents if _CRATE.fullmatch(folder.name)), None)
    if root is None and crate and (crate / "build.rs").is_file():
        return _of_crate(path, crate)
    if root is None:
        others = sorted(path.parent.glob("*" + SUFFIX)) if path.name == f"main{SUFFIX}" else []
        return Published(sources=tuple(other for other in others if other != path))
    include = root / "scheds" / "include"
    build = next((folder / "build.rs" for folder in path.parents if (folder / "build.rs").is_file()), None)
    if build is None:
        lib = root / "lib" / "Makefile"
        names = _LIB_SOURCES.search(lib.read_text("utf-8", "replace")) if lib.is_file() else None
        uses_lib = b"<lib/" in path.read_bytes()
        sources = [root / "lib" / (name + SUFFIX) for name in names[1].split()] if names and uses_lib else []
        return Published(tuple(sources), (include,), (lib,) if sources else (), is_published=True)
    return _of_rust(path, build, include, root / "lib")


def scheduler_name(folder: Path) -> str:
    """Name of the scheduler in a folder, without the version that cargo gives it."""
    crate = _CRATE.fullmatch(folder.name)
    return crate[1] if crate else folder.name


def scheduler_version(path: Path) -> tuple[int, ...]:
    """Version of the scheduler that a file belongs to, by the nearest Cargo.toml; () where there is none."""
    manifest = next(
        (file for folder in path.absolute().parents if (file := folder / "Cargo.toml").is_file()), None
    )
    found = _PACKAGE.search(manifest.read_text("utf-8", "replace")) if manifest else None
    return tuple(map(int, found.groups())) if found else ()


def _of_crate(path: Path, crate: Path) -> Published:
    """A scheduler that cargo has unpacked: its headers are in another crate, beside it."""
    wanted = _headers_version(crate / "Cargo.toml")
    beside = [folder for folder in crate.parent.glob("scx_*/bpf_h") if _version(folder.parent) >= wanted]
    if not beside:
        version = ".".join(map(str, wanted))
        raise PolicyError(
            f"{crate}: its headers are those of the crate scx_cargo or scx_utils {version}, which is not beside it: "
            f"`cargo info scx_cargo@{version}` fetches one, `cargo info scx_utils@{version}` the other"
        )
    include = min(beside, key=lambda folder: _version(folder.parent))
    return _of_rust(path, crate / "build.rs", include, crate / "src" / "bpf" / "lib")


def _headers_version(manifest: Path) -> tuple[int, ...]:
    """The version of the crate with the headers that a scheduler's Cargo.toml asks for."""
    try:
        needed = read_source(manifest).values["build-dependencies"]
        name = next(name for name in _BUILDERS if name in needed)
        said = needed[name]
        return tuple(
            int(number) for number in (said if isinstance(said, str) else said["version"]).split(".")
        )
    except (SpecError, ValueError, LookupError, StopIteration, TypeError) as wrong:
        raise PolicyError(
            f"{manifest}: names no version of {' or '.join(_BUILDERS)} to build with"
        ) from wrong


def _version(folder: Path) -> tuple[int, ...]:
    """Version of a crate that has headers; one lower than all where it is none."""
    crate = _CRATE.fullmatch(folder.name)
    return tuple(map(int, crate.groups()[1:])) if crate and crate[1] in _BUILDERS else ()


def _of_rust(path: Path, build: Path, include: Path, lib: Path) -> Published:
    """A scheduler with a `build.rs`, which names its sources; those of `lib` may be a link to the checkout's."""
    named = dict.fromkeys(_SOURCE.findall(build.read_text("utf-8", "replace")))
    sources = [place if (place := build.parent / name).is_file() else lib / Path(name).name for name in named]
    missing = next((source for source in sources if not source.is_file()), None)
    if missing:
        raise PolicyError(
            f"{build}: names {missing.name}, which is in none of its folders, nor among the library's"
        )
    return Published(tuple(sources), (include,), (build,), _links(path.parent), is_published=True)


def _links(folder: Path) -> dict[str, Path]:
    """A scheduler may be made from another one's folder, by a link that not every copy keeps."""
    short = [file for file in folder.iterdir() if file.is_file() and file.stat().st_size < 256]
    targets = {file.name: folder / file.read_text("utf-8", "replace").strip() for file in short}
    return {name: target.resolve() for name, target in targets.items() if _is_folder(target)}


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def compiler_flags(found: Published, scratch: Path) -> list[str]:
    """Options for the compiler of a published scheduler, natively."""
    if not found.is_published:
        return []
    ours = paths.include_folder() / "published"
    folders = [f"-I{folder}" for folder in (ours, *found.includes, scratch)]
    for name, target in found.links.items():
        (scratch / name).symlink_to(target)
    return [*folders, *flags_of(found)]


def flags_of(found: Published) -> tuple[str, ...]:
    """Options for the compiler that are not folders; of a call with two forms the one that its headers know (S40)."""
    if not found.is_published:
        return ()
    headers = [folder / "scx" / "compat.bpf.h" for folder in found.includes]
    text = "".join(header.read_text("utf-8", "replace") for header in headers if header.is_file())
    is_first = f"{_REENQUEUE}___v2" not in text
    return (*FLAGS, *([f"-D{_REENQUEUE}={_REENQUEUE}___v1"] if is_first else []))
