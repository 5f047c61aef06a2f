# SPDX-License-Identifier: MIT
"""What the tests of the harness share."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import QUICK_CFLAGS


@pytest.fixture(scope="session")
def tracked_files(root) -> list[str]:
    """Names of the files that git tracks, relative to the checkout."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


@pytest.fixture(scope="session")
def copy_tracked(root, tracked_files):
    """Function that copies the tracked files, as they are now, into a folder.

    Unlike a clone it has what is not committed yet, and unlike the checkout it
    has nothing that git does not know.
    """

    def copy(folder: Path) -> Path:
        for name in tracked_files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
        return folder

    return copy


@pytest.fixture(scope="session")
def programs_without(tmp_path_factory):
    """Function that makes a PATH of the system's programs less some.

    `programs_without(r"clang.*", r"qemu.*")` returns one folder of links, as a
    machine would look where these had never been installed.
    """

    def make(*names: str) -> str:
        folder = tmp_path_factory.mktemp("programs") / "bin"
        hidden = re.compile("|".join(names))
        folder.mkdir()
        for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
            for program in Path(place).iterdir():
                link = folder / program.name
                if not hidden.fullmatch(program.name) and not link.is_symlink():
                    link.symlink_to(program)
        return str(folder)

    return make


@pytest.fixture(scope="session")
def wheel(copy_tracked, tmp_path_factory) -> Path:
    """A wheel of what git tracks, as it is in the working tree; its source archive lies beside it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = copy_tracked(tmp_path_factory.mktemp("source"))
    # An archive has what git knows; a wheel is made from the archive.
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-C", source]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "CFLAGS": QUICK_CFLAGS},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(folder.glob("schedlab-*.tar.gz"))) == 1
    (made,) = folder.glob("*.whl")
    return made


#: It changes what `import` does, for programs that a test starts.
collect_ignore = ["not_posix"]
