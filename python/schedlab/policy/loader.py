# SPDX-License-Identifier: MIT
"""A scheduler's own program as a policy: `--loader './scx_x --an-option'`.

The program, what the dynamic linker says that it needs, and files that its words name go into the guest under the
same paths; it loads its scheduler there itself. Only x86-64 programs for Linux are taken, since that is what the guest is.

Must stay true: nothing of the program is executed here. The dynamic linker of this machine is asked, which
only reads it.
Read next: hosts/guest/host.py, which runs it; hosts/linux/guest/loader.c, which starts it there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from ..errors import NotFoundError, PolicyError, UsageError
from ..tools import ask
from .build import BuiltPolicy
from .find import Policy

#: What begins the name of such a policy.
PREFIX = "loader:"
#: Of an ELF file: class and order of its bytes, its machine; its table of segments; a segment of its linker.
_MAGIC, _MACHINE, _X86_64 = b"\x7fELF\x02\x01", 18, 62
_SEGMENTS, _SEGMENT = struct.Struct("<32xQ14xHH"), struct.Struct("<IIQQQQ")
_INTERPRETER = 3
#: Where the linkers of systems are: another one would be a program of somebody's.
_LINKER_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_LIBRARY = re.compile(r"^\s+(?:(\S+) => )?(/\S+|not found)", re.MULTILINE)
SECONDS_MAX = 30
#: Together; they come into the guest by memory.
BYTES_MAX = 256 << 20


@dataclass(frozen=True)
class Loader:
    """A program that loads a scheduler, and all that it needs."""

    argv: tuple[str, ...]  #: Its path here and there, and its words.
    folder: str  #: Where it is started.
    files: tuple[Path, ...]  #: By their paths, here and there.

    @property
    def environment(self) -> dict[str, str]:
        """All that it finds there: nothing of this machine's, so that a run can be repeated."""
        libraries = dict.fromkeys(str(file.parent) for file in self.files if ".so" in file.name)
        return {"PATH": "/usr/bin:/bin", "HOME": "/root", "LD_LIBRARY_PATH": ":".join(libraries)}


def is_loader(text: str) -> bool:
    """Whether a name is meant as a program that loads a scheduler."""
    return text.startswith(PREFIX)


def loader_as_policy(text: str) -> BuiltPolicy:
    """Make of a program and its words, behind `PREFIX`, what a host is handed as a policy."""
    try:
        words = shlex.split(text.removeprefix(PREFIX))
    except ValueError as error:
        raise UsageError(f"--loader {text.removeprefix(PREFIX)}: {error}") from error
    if not words:
        raise UsageError(
            "--loader is empty; name a program and its options, such as --loader './scx_simple -f'"
        )
    loader = _find_loader(words)
    # By content: the same program elsewhere is the same scheduler.
    digest = hashlib.sha256(repr([Path(words[0]).name, *words[1:]]).encode())
    for file in loader.files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    program = Path(loader.argv[0])
    policy = Policy(
        name=PREFIX + " ".join([program.name, *words[1:]]),
        path=program,
        summary=f"The scheduler that {program.name} loads.",
        knobs={},
        work_conserving=None,
        work_conserving_reason="",
        source_text="",
        content_hash=digest.hexdigest(),
    )
    return BuiltPolicy(policy, program, {}, digest.hexdigest(), loader=loader)


def _find_loader(words: list[str]) -> Loader:
    """Find the program and its files."""
    found = words[0] if "/" in words[0] else shutil.which(words[0]) or words[0]
    # Not resolved: a program may look at its own name.
    program = Path(os.path.abspath(found))
    if not program.is_file():
        raise NotFoundError(f"--loader {words[0]}: no such program; give its path, such as ./scx_simple")
    if not os.access(program, os.X_OK):
        raise UsageError(f"{program}: is not executable; chmod +x {words[0]}, if it is a program")
    interpreter = _interpreter(program)
    named = [file for word in words[1:] for file in _files_named(word)]
    files = [program, *(_libraries(program, interpreter) if interpreter else []), *named]
    for file in files:
        if re.search(r"\s", str(file)):
            raise UsageError(
                f"{file}: a path with a blank in it cannot go into the guest; copy the file elsewhere"
            )
    total = sum(file.stat().st_size for file in dict.fromkeys(files))
    if total > BYTES_MAX:
        raise UsageError(
            f"{program}: with its libraries and files it has {total >> 20} MiB, and the guest takes "
            f"{BYTES_MAX >> 20}; strip {words[0]} makes a program smaller"
        )
    return Loader((str(program), *words[1:]), os.getcwd(), tuple(dict.fromkeys(files)))


def _interpreter(program: Path) -> str:
    """The dynamic linker that a program asks for; empty where it needs none."""
    data = program.read_bytes()
    if not data.startswith(_MAGIC) or data[_MACHINE : _MACHINE + 2] != struct.pack("<H", _X86_64):
        raise PolicyError(
            f"{program}: is no program for Linux on x86-64, which the guest is; give the scheduler's own "
            "program, not a script that starts it"
        )
    try:
        at, size, count = _SEGMENTS.unpack_from(data)
        for index in range(count):
            kind, _, offset, _, _, n_bytes = _SEGMENT.unpack_from(data, at + index * size)
            if kind == _INTERPRETER:
                return data[offset : offset + n_bytes].rstrip(b"\0").decode(errors="replace")
    except struct.error as error:
        raise PolicyError(f"{program}: is cut short ({len(data)} bytes); copy or build it again") from error
    return ""


def _libraries(program: Path, interpreter: str) -> list[Path]:
    """The linker of a program, and the libraries that it finds for it here."""
    if not Path(interpreter).is_file() or os.path.dirname(interpreter) not in _LINKER_FOLDERS:
        raise PolicyError(
            f"{program}: its dynamic linker {interpreter} is not on this machine; link the program statically"
        )
    done = ask(
        [interpreter, str(program)],
        seconds_max=SECONDS_MAX,
        env=os.environ | {"LD_TRACE_LOADED_OBJECTS": "1"},
        late=PolicyError(f"{program}: {interpreter} had not named its libraries after {SECONDS_MAX} s"),
    )
    found = _LIBRARY.findall(done.stdout)
    missing = [name for name, path in found if path == "not found"]
    if done.returncode or missing:
        what = f"the library {missing[0]} is not found" if missing else done.stderr.strip()
        raise PolicyError(
            f"{program}: {what}; install it here, where the guest gets it from, or link the program statically"
        )
    return [Path(interpreter), *(Path(path) for _, path in found if path != interpreter)]


def _files_named(word: str) -> list[Path]:
    """A file that a word of a command names, alone or as in --config=FILE or f:FILE."""
    texts = dict.fromkeys([word, word.partition("=")[2], word.rpartition(":")[2]])
    return [Path(os.path.abspath(text)) for text in texts if text and Path(text).is_file()]
