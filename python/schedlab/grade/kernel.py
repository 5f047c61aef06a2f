# SPDX-License-Identifier: MIT
"""A submission in the teaching kernel: as its policy, or as a patch of its files.

        patch  -> a copy of the sources -> clang, lld in the jail -> kernel, programs
        program of the assignment -> a machine that counts instructions -> what it prints

What builds a submission opens the sources, a copy of the teacher's objects, and the compiler,
and starts nothing that was built; the file system is made outside, by the teacher's own
maker. The machine is in the jail, too: QEMU opens the image and its scratch folder.

Invariant: a submission changes no file but what the assignment lets it, and none of the cache.
Read next: hosts/kernel/build.py; runs.py.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import schedlab

from .. import paths
from ..errors import PolicyError, UnavailableError
from ..hosts.kernel import boot as kernel_boot
from ..hosts.kernel.build import KernelImage, make_filesystem
from ..hosts.kernel.host import KernelSession
from ..policy import jail
from ..tools import ask
from .assignment import GradedProgram

#: What a kernel is built from.
SOURCES = (
    "VERSION",
    "bpf",
    "core",
    "hosts/common",
    "hosts/kernel",
    "include",
    "player",
    "policies",
    "tools/link-policies",
)
BUILD_SECONDS_MAX = 300
#: QEMU maps room for what it translates beside the machine's memory.
QEMU_BYTES_MAX = 6 << 30
LINES_MAX, LINE_MAX = 1000, 500
#: The last line that the firmware prints of itself.
FIRMWARE_LAST = "Boot HART MEDELEG"
_MOVED = re.compile(r"^rename from (.*)$", re.MULTILINE)
#: A line of a panic's backtrace.
_PLACE = re.compile(r"  0x[0-9a-f]{8,}  \S+\+0x[0-9a-f]+$")


def unavailable() -> str | None:
    """Why submissions cannot be graded in the teaching kernel here, or None."""
    if shutil.which("git") is None:
        return "git is missing, which applies patches; to have it: sudo apt-get install git"
    return kernel_boot.unavailable() or jail.unavailable()


def sources() -> list[Path]:
    """All that a kernel is built from."""
    root = paths.resource_root()
    listed = [
        path
        for name in SOURCES
        for path in ((root / name).rglob("*") if (root / name).is_dir() else [root / name])
    ]
    return sorted(path for path in listed if path.is_file())


def build(
    folder: Path,
    *,
    policy: Path | None,
    patch: Path | None,
    allowed: Sequence[str],
    programs: Sequence[GradedProgram],
) -> KernelImage:
    """Build the kernel of a submission.

    `folder` is new, and the image, which is in it, is of no use once it is gone. A stranger's policy is
    linked in; a stranger's patch may change files of the patterns `allowed`, from the checkout's root.
    PolicyError: the patch does not apply, changes another file, or does not compile.
    """
    tree = paths.resource_root()
    if patch is not None:
        tree = _copied(folder / "tree")
        _apply(patch, tree, allowed)
    cache = folder / "cache"
    shutil.copytree(_objects(), cache)
    # By a name that nobody can guess, in a folder that cannot be listed: no patch includes one.
    place = Path(tempfile.mkdtemp(prefix="programs-", dir=folder))
    copies = [place / program.path.name for program in programs]
    for program, copy in zip(programs, copies, strict=True):
        shutil.copyfile(program.path, copy)
    try:
        made = _built(folder, tree, cache, [policy] if policy else [], copies)
    except PolicyError as error:
        hidden = [program.path.stem for program in programs if program.is_hidden]
        if any(
            f"{place}/{name}.c" in str(error) or re.search(rf"/{name}-[0-9a-f]{{24}}", str(error))
            for name in hidden
        ):
            raise PolicyError(
                "a hidden program does not compile, or link, with this kernel's files"
            ) from None
        raise PolicyError(str(error).replace(f"{place}/", "")) from None
    kernel, linked = Path(made[0]), {name: Path(path) for name, path in made[1].items()}
    filesystem = make_filesystem(list(linked.values()), folder)
    digest = hashlib.sha256(kernel.read_bytes() + filesystem.read_bytes()).hexdigest()
    return KernelImage(kernel, filesystem, digest, linked)


@lru_cache(maxsize=1)
def _objects() -> Path:
    """The cache of the kernel as it is, so that a submission costs what it changes."""
    cache = paths.cache_folder("grade-kernel")
    try:
        _built(cache, paths.resource_root(), cache, [], [])
    except PolicyError as error:
        raise UnavailableError(f"the teaching kernel cannot be built in the jail: {error}") from error
    return cache


def _copied(tree: Path) -> Path:
    """The sources in a folder of their own."""
    for name in SOURCES:
        source = paths.resource_root() / name
        copy = shutil.copytree if source.is_dir() else shutil.copyfile
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        copy(source, tree / name)
    return tree


def _apply(patch: Path, tree: Path, allowed: Sequence[str]) -> None:
    """Apply a patch to a copy of the sources."""
    listed = _git(patch, tree, "--numstat", "-z")
    names = [row.split("\t", 2)[2] for row in listed.split("\0") if row.count("\t") == 2]
    # Where a file is renamed, only its new name is listed.
    names += _MOVED.findall(patch.read_text(errors="replace"))
    if not names:
        raise PolicyError(f"{patch.name}: changes no file; hand in what `git diff` prints")
    for name in names:
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed):
            raise PolicyError(
                f"{patch.name}: changes {name or 'the name of a file'}; this assignment is about {', '.join(allowed)}"
            )
    _git(patch, tree)
    for name in names:
        if (tree / name).is_symlink():
            raise PolicyError(f"{patch.name}: makes {name} a symbolic link")


def _git(patch: Path, tree: Path, *options: str) -> str:
    """What `git apply` prints."""
    # It looks for no repository around the folder, whose files it would skip.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CEILING_DIRECTORIES": str(tree.parent), "GIT_CONFIG_GLOBAL": os.devnull}
    done = ask(["git", "apply", *options, patch.resolve()], cwd=tree, env=environment)
    if done.returncode:
        raise PolicyError(
            f"{patch.name} does not apply to this version of the kernel:\n{done.stderr.strip()}"
        )
    return done.stdout


def _built(
    folder: Path, tree: Path, cache: Path, policies: Sequence[Path], programs: Sequence[Path]
) -> tuple[str, dict[str, str]]:
    """Kernel and programs by name, built in the jail with `cache` as cache."""
    scratch = folder / "tmp"
    scratch.mkdir(exist_ok=True)
    package = Path(schedlab.__file__).resolve().parent
    readable = [*_system(), str(package.parent), sys.prefix, sys.base_prefix]
    readable += [str(tree / name) for name in SOURCES] + [
        str(path.resolve()) for path in (*policies, *programs)
    ]
    command = jail.command(readable, [str(scratch), str(cache), os.devnull])
    command += [sys.executable, "-m", "schedlab.hosts.kernel.build"]
    command += [str(path.resolve()) for path in (*policies, *programs)]
    environment = {
        "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(package.parent),
        "SCHEDLAB_ROOT": str(tree), "TMPDIR": str(scratch), "XDG_CACHE_HOME": str(cache),
    }  # fmt: skip
    late = PolicyError(f"the kernel had not been built after {BUILD_SECONDS_MAX} s")
    done = ask(command, seconds_max=BUILD_SECONDS_MAX, late=late, env=environment)
    if done.returncode:
        text = done.stderr.replace(f"{tree}/", "").replace(f"{cache}/", "")
        raise PolicyError(f"the kernel does not compile:\n{text.strip()}")
    found: tuple[str, dict[str, str]] = json.loads(done.stdout)
    return found


def _system() -> Iterable[str]:
    """What compilers, Python and QEMU read of the system."""
    return (
        "/usr",
        "/bin",
        "/lib",
        "/lib64",
        "/etc/ld.so.cache",
        "/etc/alternatives",
        "/dev/urandom",
        "/proc/self/exe",
    )


# ---- machines -------------------------------------------------------------------


def session(image: KernelImage, folder: Path, *, timeout_seconds: float) -> KernelSession:
    """Machines of a submission, whose QEMU can open the image and write to `folder`."""
    readable = [*_system(), str(image.kernel), str(image.filesystem)]
    confined = jail.command(
        readable,
        [str(folder), os.devnull],
        cpu_seconds=2 * int(timeout_seconds) + 1,
        memory_bytes=QEMU_BYTES_MAX,
    )
    # A snapshot of the disk is a file there.
    confined += [shutil.which("env") or "/usr/bin/env", f"TMPDIR={folder}"]
    return KernelSession(timeout_seconds=timeout_seconds, image=image, confined=confined, folder=folder)


def printed_lines(
    machines: KernelSession, program: GradedProgram, policy: str
) -> tuple[list[str], str | None, str]:
    """Run a program of the assignment.

    `policy` is for a program that names none. What it printed; why it did not end well, or None, and the
    kind of that.
    """
    words = " ".join([f"/{program.path.stem}", *program.arguments])
    failed, console = machines.run_program(words, n_cpus=program.n_cpus, policy=program.policy or policy)
    lines = [re.sub(r"[^\x20-\x7e]", "", line)[:LINE_MAX].rstrip() for line in console.splitlines()]
    booted = next((at for at, line in enumerate(lines) if line.startswith(FIRMWARE_LAST)), -1)
    lines = [line for line in lines[booted + 1 :] if line][:LINES_MAX]
    if failed is None:
        return lines, None, ""
    panic = [line for line in lines if line.startswith("panic:")]
    places = [line.split()[1] for line in lines if _PLACE.match(line)]
    said = [
        *panic[:1],
        *([f"in {', '.join(places[:5])}"] if panic and places else []),
        *([] if panic else lines[-3:]),
    ]
    return lines, "; ".join([failed.error or "", *said]), failed.error_kind or "host"
