# SPDX-License-Identifier: MIT
"""A fresh clone works for somebody who has a C compiler, Python, and no root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import QUICK_CFLAGS

pytestmark = pytest.mark.full

#: Debian's `nobody`: owns no file, is in no group, may not use sudo.
NOBODY = 65534
#: What `./lab setup` installs, and what an ordinary machine does not have.
TOOLS = (r"clang.*", r"ld\.lld.*", r"llvm-.*", r"qemu-.*", r"cpio", r"meson", r"ninja", r"sudo")


@pytest.fixture(scope="module")
def clone(root):
    """A clone of the last commit that belongs to an ordinary user."""
    folder = Path(tempfile.mkdtemp(prefix="schedlab-clone-"))
    subprocess.run(
        ["git", "clone", "-q", f"file://{root}", folder / "schedlab"],
        check=True,
        env={**os.environ, "GIT_CONFIG_COUNT": "0"},
    )
    (folder / "home").mkdir()
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", folder], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def lab(clone, programs_without):
    """Function that runs the clone's ./lab as that user, without our tools."""
    programs = Path(programs_without(*TOOLS))
    if os.getuid() == 0:
        # pytest's folders are its user's alone; this one is for everybody.
        moved = clone / "bin"
        shutil.copytree(programs, moved, symlinks=True)
        programs = moved
    network = ("PIP_", "SSL_", "HTTP", "http", "NO_PROXY", "no_proxy", "REQUESTS_")
    env = {name: value for name, value in os.environ.items() if name.startswith(network)}
    env |= {"PATH": str(programs), "HOME": str(clone / "home"), "LANG": "C.UTF-8", "CFLAGS": QUICK_CFLAGS}
    become = (
        []
        if os.getuid()
        else ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    )

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*become, clone / "schedlab" / "lab", *arguments],
            cwd=clone / "schedlab",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    return run


def test_demo_works_without_root_and_leaves_the_clone_clean(lab, clone):
    first = lab("demo", "--seeds", "1")  # with all of them test_readme.py runs it
    assert first.returncode == 0, first.stdout + first.stderr
    assert "lab: installing Python packages" in first.stderr
    assert first.stdout.strip()
    again = lab("workloads")
    assert again.returncode == 0, again.stderr
    assert again.stderr == "", "a second start sets up nothing"
    changed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", clone / "schedlab", "status", "--porcelain"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert changed.stdout == "", "set-up writes only where git does not look"
