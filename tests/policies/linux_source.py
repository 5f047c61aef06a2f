# SPDX-License-Identifier: MIT
"""Files of Linux 7.2's source, from Debian's package; fetched when a test runs, never kept in the repository."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

import pytest

from schedlab.errors import UnavailableError
from schedlab.hosts.guest.image import PrivateApt, debian_mirror, locked
from schedlab.paths import cache_folder

PACKAGE = "linux-source-7.2"
FOLDERS = ("tools/sched_ext/", "tools/testing/selftests/sched_ext/")


def linux_source() -> Path:
    """Folder with `FOLDERS`, of a package of 164 MB; skips the test where it cannot be had."""
    folder = cache_folder("upstream")
    complete = folder / PACKAGE
    try:
        with locked(folder / "lock"):
            if not complete.is_dir():
                with tempfile.TemporaryDirectory(dir=folder, prefix="fetch-") as name:
                    _unpack(Path(name)).rename(complete)
    except UnavailableError as error:
        pytest.skip(f"{PACKAGE}: {error}")
    return complete


def _unpack(scratch: Path) -> Path:
    apt = PrivateApt(scratch, debian_mirror())
    apt.run("apt-get", "update")
    unpacked, _ = apt.unpack(PACKAGE)
    with tarfile.open(unpacked / "usr" / "src" / f"{PACKAGE}.tar.xz") as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            if member.isfile() and path.startswith(FOLDERS):
                target = scratch / "tree" / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.extractfile(member).read())
    return scratch / "tree"
