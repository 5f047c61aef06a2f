# SPDX-License-Identifier: MIT
"""Build the teaching kernel: the kernel with its policies, programs, a file system.

Everything is compiled for RISC-V by clang and linked by lld, each object once
per content of its source and of all that it includes. The kernel cannot load
files, so every policy that a run may ask for is linked in; asking for another
one costs the link-up of the policies and one link, not a compilation of the rest.

    python -m schedlab.hosts.kernel.build [POLICY.bpf.c]... [PROGRAM.c]...

prints where the kernel and its programs are, as JSON: grade/kernel.py builds a stranger's
kernel so, in a process that can open nothing else. No file that was built runs there.

Must stay true: what stands in the cache is complete, since it is moved there in
one step; equal sources give equal files, since the hash of a run's kernel goes
into its `run.json`.
Read next: host.py, which boots the result.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ...errors import PolicyError, SchedlabError, UnavailableError
from ...files import made_whole
from ...paths import cache_folder, include_folder, policies_folder, resource_root
from ...tools import ask, version_of
from ...waiting import announced

TOOLS = ("clang-19", "ld.lld-19", "llvm-objcopy-19", "llvm-nm-19")
TARGET = ("--target=riscv64-unknown-elf", "-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany")
COMMON = (
    *TARGET, "-std=gnu11", "-O2", "-g", "-ffreestanding", "-fno-pic", "-fno-common",
    "-fno-omit-frame-pointer", "-ffunction-sections", "-fdata-sections",
    "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
)  # fmt: skip
#: The kernel saves floating-point registers for processes and uses none itself.
KERNEL_OPTIONS = (*COMMON, "-mno-relax", "-fno-builtin-printf")
USER_OPTIONS = (*COMMON, "-mno-relax")
#: A program from outside, xv6's for instance, is not ours to warn about.
FOREIGN_OPTIONS = (*(word for word in USER_OPTIONS if not word.startswith("-W")), "-w")
#: A policy may have unused helpers, and is not ours to warn about.
POLICY_OPTIONS = tuple(word for word in KERNEL_OPTIONS if word not in ("-Werror", "-Wextra", "-std=gnu11"))
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
MAIN = re.compile(r"^(?:int|void)\s+main\s*\(|^main\s*\(", re.MULTILINE)
#: What `llvm-nm` calls a function, global or local.
FUNCTION_KINDS = ("T", "t", "W", "w")


@dataclass(frozen=True)
class KernelImage:
    """What a machine boots."""

    kernel: Path  #: ELF file with symbols, for QEMU's `-kernel`.
    #: Image of the disk that holds the programs; to be copied or opened as a snapshot, never written to.
    filesystem: Path
    #: SHA-256 over what decides of both, in hexadecimal: over all but what is there for a debugger, which a
    #: comment in a source changes.
    hash: str
    #: Every program's ELF file with symbols, for a debugger.
    programs: dict[str, Path] = field(default_factory=dict)


def unavailable() -> str | None:
    """Say why the kernel cannot be built here."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return (
            f"{', '.join(missing)} missing, and the teaching kernel is built with it; to have it: "
            "./lab setup, or sudo apt-get install clang-19 lld-19 llvm-19"
        )
    if not _folder("kernel").is_dir():
        return f"{_folder('kernel')}: the kernel's sources are not there; use a checkout"
    return None


def build_kernel(
    policies: Sequence[Path] = (),
    *,
    programs: Sequence[Path] = (),
    files: Sequence[Path] = (),
    has_lab: bool = True,
    checks_locks: bool = False,
) -> KernelImage:
    """Build kernel and file system, or find them in the cache.

    One that `checks_locks` ends where a lock of the core is taken with interrupts on.
    """
    reason = unavailable()
    if reason:
        raise UnavailableError(reason)
    with announced("building the teaching kernel, about a minute the first time; it is kept"):
        kernel, made = link(policies, programs, has_lab=has_lab, checks_locks=checks_locks)
        filesystem = make_filesystem([*made.values(), *files], cache_folder("kernel"))
    digest = hashlib.sha256(_bare(kernel).read_bytes() + filesystem.read_bytes()).hexdigest()
    return KernelImage(kernel, filesystem, digest, made)


def link(
    policies: Sequence[Path], programs: Sequence[Path], *, has_lab: bool = True, checks_locks: bool = False
) -> tuple[Path, dict[str, Path]]:
    """Link the kernel, and all programs by name."""
    linked = _link_policies(_all_policies(policies))
    kernel = _link_kernel([_kernel_object(has_lab=has_lab, checks_locks=checks_locks), linked])
    return kernel, _link_programs(programs)


# ---- sources ---------------------------------------------------------------


def _folder(name: str) -> Path:
    """A folder of the kernel's sources."""
    return resource_root() / "hosts" / "kernel" / name


def _include_path(lab: str | None = None) -> list[Path]:
    """Where `#include` looks, first to last; for the kernel with that laboratory."""
    path = [_folder(""), include_folder(), resource_root() / "player"]
    if lab:
        path += [_folder("kernel"), _folder(lab)]
    return path


def _sources(folder: Path) -> list[Path]:
    """C and assembly files of a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".c", ".S"))


def _all_policies(extra: Sequence[Path]) -> list[Path]:
    """Policy files, one per name: the caller's before the project's."""
    by_name = {path.name: path for path in sorted(policies_folder().glob("*.bpf.c"))}
    by_name |= {path.name: path.resolve() for path in extra}
    return [by_name[name] for name in sorted(by_name)]


def _reads(source: Path, include_path: Sequence[Path]) -> list[Path]:
    """A source and every file that it includes, directly or not, in a fixed order."""
    found: dict[Path, None] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = None
        for name in INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
            near = (folder / name for folder in (path.parent, *include_path))
            waiting += [place.resolve() for place in near if place.is_file()][:1]
    return sorted(found)


def _no_place() -> list[str]:
    """Options that keep the checkout's own place out of an object file."""
    return [f"-ffile-prefix-map={resource_root()}=.", "-fdebug-compilation-dir=."]


def _digest(words: Iterable[str], files: Iterable[Path]) -> str:
    """Name of a result in the cache: by tools, options and contents."""
    digest = hashlib.sha256("\0".join([_tool_version(), *words]).encode())
    for path in files:
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


@lru_cache(maxsize=1)
def _tool_version() -> str:
    """First line of what clang says about itself."""
    return version_of([TOOLS[0]]) or ""


# ---- steps -----------------------------------------------------------------


def _make(target: Path, *command: str | Path, error: type[Exception] = UnavailableError) -> Path:
    """Run a command that writes its last word, and move the result to `target`; nothing is done where that is."""
    if target.exists():
        return target
    with made_whole(target) as made:
        done = ask([*command, made])
        if done.returncode:
            words = " ".join(shlex.quote(str(word)) for word in command[:1])
            raise error(f"{words} failed:\n{(done.stderr or done.stdout).strip()}")
    return target


def _link(target: Path, script: Path, objects: Sequence[Path]) -> Path:
    """An executable, laid out as a script says."""
    words = ("--gc-sections", "-z", "norelro", "-z", "max-page-size=4096")
    return _make(target, TOOLS[1], "-T", script, *words, *objects, "-o")


def _compile(source: Path, include_path: Sequence[Path], options: Sequence[str]) -> Path:
    """One object file."""
    words = [*options, *_no_place(), *(f"-I{folder}" for folder in include_path)]
    digest = _digest(options, _reads(source, include_path))
    target = cache_folder("kernel") / f"{source.stem}-{digest}.o"
    return _make(target, TOOLS[0], *words, "-c", source, "-o")


def _compile_all(sources: Sequence[Path], include_path: Sequence[Path], options: Sequence[str]) -> list[Path]:
    """Object files, in the order of their sources."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda source: _compile(source, include_path, options), sources))


def _kernel_object(*, has_lab: bool, checks_locks: bool) -> Path:
    """All of the kernel but its policies."""
    sources = [*_sources(_folder("kernel")), _folder("mkfs") / "fscheck.c"]
    sources += [resource_root() / "core" / "build.c"]
    if has_lab:
        sources += [*_sources(_folder("lab")), resource_root() / "player" / "objects.c"]
    options = [*KERNEL_OPTIONS, "-flto", "-fms-extensions", "-Wno-microsoft-anon-tag"]
    if checks_locks:
        options.append("-DCHECKS_LOCKS")
    objects = _compile_all(sources, _include_path("lab" if has_lab else "nolab"), options)
    # Compiled as one, so that schedule() has sl_schedule() in line.
    words = ("-r", "--lto-O2")
    target = cache_folder("kernel") / f"whole-{_digest([*words, *(path.name for path in objects)], [])}.o"
    return _make(target, TOOLS[1], *words, *objects, "-o")


def _link_policies(policies: Sequence[Path]) -> Path:
    """One object with all policies and their table."""
    tool = resource_root() / "tools" / "link-policies"
    include_path = [include_folder()]
    files = [tool, *policies]
    files += sorted({path for source in policies for path in _reads(source, include_path)})
    digest = _digest([*POLICY_OPTIONS, *(path.name for path in policies)], files)
    target = cache_folder("kernel") / f"policies-{digest}.o"
    if target.exists():
        return target
    with made_whole(target) as made:
        done = ask(
            [sys.executable, tool, "--out", made, "--cc", TOOLS[0], "--ld", TOOLS[1], "--objcopy", TOOLS[2],
             "--include", include_folder(), *policies, "--", *POLICY_OPTIONS, *_no_place()]
        )  # fmt: skip
        if done.returncode:
            raise PolicyError(f"policies cannot be linked into the kernel:\n{done.stderr.strip()}")
    return target


def _symbol_table(functions: Sequence[tuple[int, str]]) -> str:
    """Assembly of `kernel_symbols`: addresses in rising order, with names."""
    lines = [
        '\t.section .ksymbols,"a"',
        "\t.balign 8",
        "\t.globl kernel_symbols, nr_kernel_symbols",
        "nr_kernel_symbols:",
        f"\t.quad {len(functions)}",
        "kernel_symbols:",
    ]
    lines += [f"\t.quad {address:#x}, .Lname{i}" for i, (address, _) in enumerate(functions)]
    lines += [f'.Lname{i}:\t.asciz "{name}"' for i, (_, name) in enumerate(functions)]
    return "\n".join(lines) + "\n"


def _functions(kernel: Path) -> list[tuple[int, str]]:
    """Address and name of each function, by address."""
    rows = (line.split() for line in ask([TOOLS[3], kernel]).stdout.splitlines())
    found = [
        (int(row[0], 16), row[2])
        for row in rows
        if len(row) == 3 and row[1] in FUNCTION_KINDS and not row[2].startswith((".L", "$"))
    ]
    return sorted(found)


def _link_kernel(objects: Sequence[Path]) -> Path:
    """The kernel, linked twice: the second time with a table of its own functions.

    The table stands behind the code, so the second link moves no function.
    """
    script = _folder("kernel") / "kernel.ld"
    folder = cache_folder("kernel")
    digest = _digest([path.name for path in objects], [script])
    target = folder / f"kernel-{digest}.elf"
    if target.exists():
        return target
    with made_whole(target) as made:
        source = made.with_name("symbols.S")
        functions: list[tuple[int, str]] = []
        for name in ("first", "second"):
            source.write_text(_symbol_table(functions), encoding="utf-8")
            table = _make(made.with_name(f"{name}.o"), TOOLS[0], *TARGET, "-c", source, "-o")
            linked = _link(made.with_name(name), script, [*objects, table])
            before, functions = functions, _functions(linked)
            if before and before != functions:
                raise UnavailableError(
                    f"{script}: its symbol table moves the kernel's code; .ksymbols must stand behind .text"
                )
        linked.rename(made)
    return target


def _bare(kernel: Path) -> Path:
    """The kernel as it is loaded, without the names and lines of its sources."""
    target = kernel.with_suffix(".bare")
    return _make(target, TOOLS[2], "--strip-all", "--remove-section=.comment", kernel)


def _link_programs(extra: Sequence[Path]) -> dict[str, Path]:
    """Programs by name. A file with a main() is one, the others are their library."""
    sources = _sources(_folder("user"))
    mains = [path for path in sources if MAIN.search(path.read_text(encoding="utf-8"))]
    library = [path for path in sources if path not in mains]
    # What tasks wait for is the kernel's.
    library += [path for path in _sources(resource_root() / "player") if path.name != "objects.c"]
    shared = _compile_all(library, _include_path(), USER_OPTIONS)
    objects = _compile_all(mains, _include_path(), USER_OPTIONS)
    for path in extra:
        mains.append(path.resolve())
        objects.append(_compile(mains[-1], _include_path(), FOREIGN_OPTIONS))
    script = _folder("user") / "user.ld"
    made = {}
    for source, compiled in zip(mains, objects, strict=True):
        parts = [compiled, *shared]
        digest = _digest([path.name for path in parts], [script])
        target = cache_folder("kernel") / f"program-{digest}" / source.stem
        target.parent.mkdir(exist_ok=True)
        made[source.stem] = _link(target, script, parts)
    return made


def make_filesystem(files: Sequence[Path], folder: Path) -> Path:
    """The image of the disk, in a folder, with programs stripped: a file has at most 268 blocks."""
    maker = _build_mkfs()
    digest = _digest([maker.name, *(path.name for path in files)], files)
    target = folder / f"filesystem-{digest}.img"
    if target.exists():
        return target
    with made_whole(target) as image:
        root = image.with_name("root")
        root.mkdir()
        for path in files:
            if path.read_bytes()[:4] == b"\x7fELF":
                _make(root / path.name, TOOLS[2], "--strip-all", path)
            else:
                shutil.copyfile(path, root / path.name)
        done = ask([maker, image, *sorted(root.iterdir())])
        if done.returncode:
            raise UnavailableError(f"the file system cannot be made:\n{done.stderr.strip()}")
    return target


def _build_mkfs() -> Path:
    """The image maker, for this machine."""
    folder = _folder("mkfs")
    sources = sorted(folder.glob("*.c"))
    compiler = shlex.split(os.environ.get("CC", "cc"))
    include_path = [_folder(""), include_folder()]
    files = sorted({path for source in sources for path in _reads(source, include_path)})
    target = cache_folder("kernel") / f"mkfs-{_digest(compiler, files)}"
    if target.exists():
        return target
    includes = [f"-I{place}" for place in include_path]
    return _make(target, *compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", *includes, *sources, "-o")


if __name__ == "__main__":
    given = [Path(word) for word in sys.argv[1:]]
    asked = [
        [path for path in given if path.name.endswith(".bpf.c") == is_policy] for is_policy in (True, False)
    ]
    try:
        kernel_file, program_files = link(*asked)
    except SchedlabError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    print(json.dumps([str(kernel_file), {name: str(path) for name, path in program_files.items()}]))
