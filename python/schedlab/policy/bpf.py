# SPDX-License-Identifier: MIT
"""Clang for BPF: it compiles policies for Linux, and has a second opinion on all others.

A policy that this machine's compiler takes may be one that no BPF has: more than five
arguments on the stack, 512 bytes of variables, assembly of x86. Where clang is there, it
is asked once for each content of a file, which a note in the cache remembers.

Invariant: a refusal is an error of clang's on a line of the policy. Its warnings, its own
crash and its absence refuse nothing. BPF is taken as Linux 6.12 has it, the first with
sched_ext (-mcpu=v4), though what schedlab loads is made for older ones as well.
Read next: build.py, which asks; hosts/guest/policies.py, which loads the objects.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .. import paths
from ..errors import PolicyError, UnavailableError
from ..tools import ask
from .find import hash_content, policy_name
from .launch_file import launch_file, with_map_sizes
from .published import FLAGS_FOR_LINUX, Published, published

BPF_COMPILERS = ("clang-19", "clang", "clang-20", "clang-18", "clang-16")
#: Of the compiler's options, those that decide what it accepts.
_OPINION = ("-target", "bpf", "-mcpu=v4", "-std=gnu11", "-ffreestanding", "-O2", "-g", "-w")
#: What is loaded. -mcpu=v3 has 32-bit compare-and-swap, which older encodings lack.
_FOR_LINUX = ("-target", "bpf", "-mcpu=v3", "-std=gnu11", "-ffreestanding", "-O2", "-g", "-Wall")
#: Of a text that has been optimised before.
_CODE_ONLY = ("-target", "bpf", "-mcpu=v3", "-O2", "-Xclang", "-disable-llvm-passes")
#: Name of a policy's folder in what is made of it.
POLICY_LINK = "policy-folder"
#: An array that a user half gives one entry per CPU, and its form with as many as there can be: libbpf 1.4
#: loses the operations when it resizes one.
_SIZED_BY_CPUS, _ENTRIES = re.compile(r"\bRESIZABLE_ARRAY\((\w+), (\w+)\)"), r'\2[1024] SEC(".\1.\2")'
SECONDS_MAX = 60
ERRORS_MAX = 10
#: Of what another target has made; "fatal error" and "error" alike.
_ERROR = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<what>.+)$", re.MULTILINE)
#: What says nothing to a reader: the compiler's own data, and an option that Linux does not have.
_NOISE = re.compile(r"0x[0-9a-f]+: .* (?=too many arguments)| For non-kernel uses.*")


def find_bpf_compiler() -> str:
    """Path of a clang that can compile for BPF."""
    for name in BPF_COMPILERS:
        path = shutil.which(name)
        if path:
            return path
    raise UnavailableError(
        "clang-19 is missing, and a policy for Linux is compiled with it; to have it: "
        "./lab setup, or sudo apt-get install clang-19"
    )


def second_opinion_compiler() -> str:
    """Path of a clang that knows BPF as Linux 6.12 has it."""
    for path in filter(None, map(shutil.which, BPF_COMPILERS)):
        if _knows_bpf(path, os.stat(path).st_mtime_ns):
            return path
    raise UnavailableError(
        "no clang for BPF (18 or later) is there, so policies are held against what Linux accepts by names and "
        "prototypes only; to have it: ./lab setup, or sudo apt-get install clang-19"
    )


@lru_cache(maxsize=8)
def _knows_bpf(compiler: str, _mtime_ns: int) -> bool:
    """Whether it compiles nothing at all for such a CPU; a clang may be built without BPF."""
    return _run([compiler, *_OPINION, "-x", "c", "-c", "/dev/null", "-o", "/dev/null"]) == ""


def _run(command: list[str], *, folder: str | None = None) -> str | None:
    """What it wrote, empty where it succeeded; None where it could not be asked."""
    try:
        done = ask(command, seconds_max=SECONDS_MAX, cwd=folder, env=os.environ | {"LC_ALL": "C.UTF-8"})
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr or f"ended with {done.returncode}" if done.returncode else ""


def is_object(path: Path) -> bool:
    """Whether a policy is given as an object of BPF, not as its source."""
    return path.name.endswith(".bpf.o")


@dataclass(frozen=True)
class Toolchain:
    """What a published scheduler needs to be compiled for a kernel."""

    #: Folders with the kernel's types (vmlinux.h) and libbpf's headers, called by their versions.
    includes: tuple[Path, ...]
    linker: Path  #: hosts/linux/object.


@dataclass(frozen=True)
class Changed:
    """A policy that is changed between the two halves of the compiler."""

    header: str  #: Included after it.
    change: Callable[[str], str]  #: What is made of the text of LLVM.
    more: str = ""  #: C after the header.


def compile_object(
    path: Path, content_hash: str | None = None, *, toolchain: Callable[[], Toolchain] | None = None
) -> Path:
    """Compile a policy for Linux, or find the result in the cache; a published one where there are tools."""
    if is_object(path):
        return path
    parts = _parts_of(path, toolchain)
    versions = (*map(str, parts.tools.includes), *FLAGS_FOR_LINUX) if parts.tools else ()
    key = [content_hash or hash_content(path), path.name, *_FOR_LINUX, *versions, *filter(None, [parts.text])]
    result = _kept(key, ".bpf.o")
    if not result.is_file():
        _make_object(path, parts, result, None)
    return result


def compile_changed(
    path: Path, made: Path, changed: Changed, *, toolchain: Callable[[], Toolchain] | None = None
) -> None:
    """Compile a policy for Linux into a file, with a change on the way."""
    _make_object(path, _parts_of(path, toolchain), made, changed)


@dataclass(frozen=True)
class _Parts:
    """What a policy is made of."""

    found: Published
    tools: Toolchain | None  #: None: the headers of this project are enough.
    text: str  #: Of the main file with its sizes, where there are tools.


def _parts_of(path: Path, toolchain: Callable[[], Toolchain] | None) -> _Parts:
    """Find what a policy needs."""
    found = published(path)
    tools = toolchain() if toolchain and found.is_published else None
    return _Parts(found, tools, _with_sizes(path) if tools else "")


def _make_object(path: Path, parts: _Parts, made: Path, changed: Changed | None) -> None:
    """Compile a policy into a file, which is there when it is whole."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=made.parent) as scratch:
        if parts.tools:
            said = _make_published(path, parts.text, parts.found, parts.tools, scratch, changed)
        else:
            said = _make_own(path, scratch, changed)
        if said != "":
            raise PolicyError(
                f"{path} does not compile for Linux:\n{said or f'clang is not to be had, or was not done after {SECONDS_MAX} s'}"
            )
        os.replace(f"{scratch}/policy.bpf.o", made)


def _make_one(words: list[str], source: str, made: str, folder: str, changed: Changed | None) -> str | None:
    """Compile one file in a folder; `words` are compiler and options."""
    if changed is None:
        return _run([*words, "-c", source, "-o", made], folder=folder)
    whole, text = Path(folder) / "changed.c", Path(folder) / "changed.ll"
    whole.write_text(f'#include "{source}"\n#include <{changed.header}>\n{changed.more}')
    said = _run([*words, "-S", "-emit-llvm", whole.name, "-o", text.name], folder=folder)
    if said != "":
        return said
    text.write_text(changed.change(text.read_text("utf-8", errors="replace")))
    back = [words[0], *_CODE_ONLY, "-c", "-x", "ir", text.name, "-o", made]
    return _run(back, folder=folder)


def _make_own(path: Path, scratch: str, changed: Changed | None) -> str | None:
    """Compile one file with the headers of this project."""
    folder = os.path.abspath(path.parent)
    # The object has the names of the files in it, and its length is time in the guest:
    # under their real names a run was another one in another folder.
    (Path(scratch) / POLICY_LINK).symlink_to(folder)
    (Path(scratch) / "include").symlink_to(paths.include_folder())
    words = [find_bpf_compiler(), *_FOR_LINUX, "-fdebug-compilation-dir=.", "-Iinclude"]
    said = _make_one(words, f"{POLICY_LINK}/{path.name}", "policy.bpf.o", scratch, changed)
    return said and said.strip().replace(f"{POLICY_LINK}/", f"{folder}/")


def _with_sizes(path: Path) -> str:
    """The main file, with the sizes that its maps and arrays get from its launch file and from this project."""
    text = path.read_text("utf-8", errors="replace")
    sized = with_map_sizes(launch_file(policy_name(path), path), text)
    return f'#line 1 "{path.absolute()}"\n{_SIZED_BY_CPUS.sub(_ENTRIES, sized)}'


def _make_published(
    path: Path, text: str, found: Published, tools: Toolchain, scratch: str, changed: Changed | None
) -> str | None:
    """Compile all files of a scheduler with its own headers, and the kernel's types; the main one may be changed."""
    path = path.absolute()
    main = Path(scratch) / path.name
    main.write_text(text)
    for name, target in found.links.items():
        (Path(scratch) / name).symlink_to(target)
    # Some versions have the types of a kernel of their time among their headers.
    folders = [*tools.includes, *found.includes, *(folder / "bpf-compat" for folder in found.includes)]
    flags = [
        *_FOR_LINUX,
        *FLAGS_FOR_LINUX,
        f"-iquote{path.parent}",
        *(f"-I{folder}" for folder in folders),
        "-I.",
        *(["-idirafter", str(paths.include_folder())] if changed else []),
    ]
    compiler = find_bpf_compiler()
    sources = [str(main), *map(str, found.sources)]
    objects = [f"{number}.o" for number in range(len(sources))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = pool.map(
            lambda source, made: _make_one(
                [compiler, *flags], source, made, scratch, changed if source == str(main) else None
            ),
            sources,
            objects,
        )
    said = next((error for error in errors if error != ""), "")
    return said if said != "" else _run([str(tools.linker), "link", "policy.bpf.o", *objects], folder=scratch)


def _kept(content: Sequence[str], suffix: str) -> Path:
    """Place in the cache of what clang makes, or says, of some content."""
    compiler = find_bpf_compiler()
    key = "\0".join([*content, compiler, str(os.stat(compiler).st_mtime_ns)])
    return paths.cache_folder("policies") / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}{suffix}"


def check_for_linux(path: Path, content_hash: str) -> None:
    """Have clang compile a policy for BPF, unless it has done so before."""
    try:
        note = _kept([content_hash, *_OPINION], ".linux")
        if note.exists():
            return
        compiler = second_opinion_compiler()
    except UnavailableError:
        return
    with tempfile.TemporaryDirectory(prefix="schedlab-bpf-") as made:
        said = _run(
            [
                compiler,
                *_OPINION,
                "-I",
                str(paths.include_folder()),
                "-c",
                str(path),
                "-o",
                f"{made}/policy.o",
            ]
        )
    lines = [
        f"{found['file']}:{found['line']}: {_NOISE.sub('', found['what'])}"
        for found in _ERROR.finditer(said or "")
    ]
    if lines:
        lines = list(dict.fromkeys(lines))
        left = len(lines) - ERRORS_MAX
        shown = "\n".join(lines[:ERRORS_MAX]) + (f"\n({left} more)" if left > 0 else "")
        raise PolicyError(
            f"{path} compiles here and not for Linux, says {Path(compiler).name} -target bpf:\n{shown}"
        )
    note.touch()
