# SPDX-License-Identifier: MIT
"""Fetch what the guest is made of: a Linux kernel with sched_ext, and libbpf.

Both come from Debian through apt, which checks their signatures, from the
mirror that this machine already uses. Nothing is installed: packages are
unpacked into the cache, under a private apt state, so that no root is needed
and the machine's own package lists stay as they are. libbpf is compiled here, from
its source: what Debian has compiled of it links with this machine's C library or is too old.

Must stay true: what is in the cache is complete (it is moved there in one
step), and is used again without asking the mirror.
Read next: policies.py, which boots it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UnavailableError
from ...paths import cache_folder
from ...waiting import announced

#: Debian suites that have a kernel with sched_ext; the highest version wins.
KERNEL_SUITES = ("sid", "forky")
KERNEL_PACKAGE = "linux-image-cloud-amd64"
#: 1.7: earlier ones end while they load a policy that has arenas and hundreds of functions.
LIBBPF_SUITE = "sid"
LIBBPF_SOURCE = "libbpf"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: Longest wait for the mirror, in seconds; the whole takes about 15.
FETCH_TIMEOUT_S = 300


@dataclass(frozen=True)
class GuestParts:
    """What was fetched."""

    kernel: Path  #: A bootable `vmlinuz`.
    kernel_version: str  #: Debian's version of the package it came from, such as `"7.2.13-1"`.
    libbpf: Path  #: Folder with `usr/include/bpf` and a static `libbpf.a` below `usr/lib`.
    libbpf_version: str  #: Its own.


def fetch_guest_parts(*, kernel: Path | None = None, refresh: bool = False) -> GuestParts:
    """Return the kernel and libbpf, fetching them on the first call."""
    if kernel is not None:
        libbpf, libbpf_version = _fetched(refresh, "libbpf")["libbpf"]
        return GuestParts(kernel.resolve(), str(kernel), libbpf, libbpf_version)
    found = _fetched(refresh, "kernel", "libbpf")
    folder, kernel_version = found["kernel"]
    image = _image_in(folder)
    assert image is not None, "a package of a kernel that was fetched has its image"
    return GuestParts(image, kernel_version, *found["libbpf"])


def fetch_libbpf() -> Path:
    """Return libbpf alone, fetching it on the first call."""
    return _fetched(False, "libbpf")["libbpf"][0]


def _fetched(refresh: bool, *kinds: str) -> dict[str, tuple[Path, str]]:
    """Folder and version of each kind, from the cache or the mirror."""
    folder = cache_folder("guest")
    with locked(folder / "lock"):
        found = _cached(folder)
        missing = [kind for kind in kinds if refresh or kind not in found]
        if missing:
            with announced(f"fetching {' and '.join(missing)} for Linux from Debian, once; some 20 MB"):
                _fetch(folder, missing)
            found = _cached(folder)
    lost = [kind for kind in kinds if kind not in found]
    if lost:
        raise UnavailableError(
            f"{folder}: no {lost[0]} there after a fetch that gave no error; remove the folder and try again"
        )
    return found


def _cached(folder: Path) -> dict[str, tuple[Path, str]]:
    """The newest complete one of each kind in the cache: its folder and version."""
    newest = {}
    for kind, is_whole in _PIECE.items():
        for place in sorted(folder.glob(f"{kind}-*"), key=lambda path: _version_key(path.name)):
            if is_whole(place):
                newest[kind] = (place, place.name.removeprefix(f"{kind}-"))
    return newest


def _image_in(folder: Path) -> Path | None:
    """The kernel image of an unpacked package."""
    images = sorted(folder.glob("usr/lib/modules/*/vmlinuz")) or sorted(folder.glob("boot/vmlinuz-*"))
    return images[0] if images else None


def _archive_in(folder: Path) -> Path | None:
    """The static libbpf of an unpacked package."""
    return next(folder.glob("usr/lib/**/libbpf.a"), None)


#: How what is needed of each kind is found in its folder.
_PIECE = {"kernel": _image_in, "libbpf": _archive_in}


def _version_key(name: str) -> list[Any]:
    """Sort key under which 7.2.13 comes after 7.2.9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, so that no two processes fetch the same at once."""
    import fcntl  # not there on Windows, where nothing is fetched

    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path, kinds: list[str]) -> None:
    """Fetch packages and move them into the cache."""
    if os.uname().machine != "x86_64":
        raise UnavailableError(
            f"loading policies is built for x86_64 only (this is {os.uname().machine}); use --host sim"
        )
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise UnavailableError(
                f"{tool} is missing: {' and '.join(kinds)} come from Debian's packages; use "
                "--host sim, or a Debian machine"
            )
    with tempfile.TemporaryDirectory(dir=folder, prefix="fetch-") as name:
        apt = PrivateApt(Path(name), debian_mirror())
        apt.run("apt-get", "update")
        for kind in kinds:
            if kind == "kernel":
                image = apt.dependency(KERNEL_PACKAGE, r"linux-image-\d.*-cloud-amd64")
                unpacked, version = apt.unpack(image.replace("linux-image-", "linux-binary-", 1))
            else:
                unpacked, version = _build_libbpf(*apt.source(LIBBPF_SOURCE))
            place = folder / f"{kind}-{version}"
            if not _PIECE[kind](place):
                # What is left of one that somebody has removed a part of.
                shutil.rmtree(place, ignore_errors=True)
                os.replace(unpacked, place)


def _build_libbpf(source: Path, version: str) -> tuple[Path, str]:
    """Compile libbpf; a folder with its headers and the static archive."""
    made = source.parent / "made"
    command: list[str | Path] = [
        *(
            "make",
            "-s",
            f"-j{os.cpu_count()}",
            "-C",
            str(source / "src"),
            f"OBJDIR={source.parent / 'objects'}",
        ),
        *("NO_PKG_CONFIG=1", "BUILD_STATIC_ONLY=1", f"DESTDIR={made}", "LIBDIR=/usr/lib", "install"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UnavailableError(
            "make is missing; to have it: ./lab setup, or sudo apt-get install make"
        ) from error
    if done.returncode:
        raise UnavailableError(
            f"libbpf {version} cannot be built; to have what it needs: ./lab setup, or sudo apt-get install "
            f"gcc libelf-dev zlib1g-dev libc6-dev\n{done.stderr.strip()}"
        )
    return made, version


def debian_mirror() -> str:
    """Address of the Debian mirror that this machine uses."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)|$(LABEL)|$(COMPONENT)", "Identifier: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        address, label, component = line.split("|")
        if label == "Debian" and component == "main":
            return address
    raise UnavailableError(
        "apt knows no Debian mirror, and libbpf and the guest's kernel come from there; "
        "on Debian: sudo apt-get update; elsewhere use --host sim"
    )


class PrivateApt:
    """Debian's apt with a state of its own.

    State and downloads go to `folder`; `mirror` is the address of the Debian archive.
    """

    def __init__(self, folder: Path, mirror: str):
        self.folder = folder
        sources = folder / "sources"
        for place in (sources, folder / "lists" / "partial", folder / "archives" / "partial"):
            place.mkdir(parents=True)
        signed = f"Signed-By: {KEYRING}\n" if KEYRING.exists() else ""
        (sources / "guest.sources").write_text(
            f"Types: deb\nURIs: {mirror}\nSuites: {' '.join(KERNEL_SUITES)}\n"
            f"Components: main\nArchitectures: amd64\n{signed}\n"
            f"Types: deb-src\nURIs: {mirror}\nSuites: {LIBBPF_SUITE}\nComponents: main\n{signed}"
        )
        settings = {
            "Dir::State::Lists": folder / "lists",
            "Dir::Cache": folder,
            "Dir::Cache::Archives": folder / "archives",
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": sources,
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "root",
            # What is not signed is not booted, whatever this machine lets in otherwise.
            "Acquire::AllowInsecureRepositories": "false",
            "Acquire::AllowWeakRepositories": "false",
            "Acquire::AllowDowngradeToInsecureRepositories": "false",
            "APT::Get::AllowUnauthenticated": "false",
            "APT::Get::List-Cleanup": "false",
            "Acquire::Languages": "none",
            "Acquire::Retries": 3,
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false",
            "Debug::NoLocking": "true",
        }
        self.options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def run(self, tool: str, *words: str) -> str:
        """Run an apt tool in `folder`."""
        try:
            done = subprocess.run(
                [tool, *self.options, *words],
                cwd=self.folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=FETCH_TIMEOUT_S,
                env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
            )
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                f"{tool} {' '.join(words)} gave no answer within {FETCH_TIMEOUT_S} s; look at the "
                "network, then try again"
            ) from error
        # An index that cannot be read is only a warning to apt-get update.
        if done.returncode or "\nE: " in f"\n{done.stderr}":
            raise UnavailableError(
                f"{tool} {' '.join(words)} failed; what the guest is made of must come whole and signed "
                f"from Debian's archive: look at the network, then try again\n{done.stderr.strip()}"
            )
        return done.stdout

    def dependency(self, package: str, pattern: str) -> str:
        """Find the package behind one that only names it."""
        said = self.run("apt-cache", "depends", package)
        found = re.search(rf"Depends: ({pattern})\s*$", said, re.MULTILINE)
        if not found:
            raise UnavailableError(
                f"Debian's {' and '.join(KERNEL_SUITES)} name no kernel behind {package}; use --host sim"
            )
        return found[1]

    def source(self, package: str) -> tuple[Path, str]:
        """Download a package's source, without Debian's part, and unpack it; its folder and version."""
        self.run("apt-get", "source", "--download-only", package)
        (archive,) = self.folder.glob(f"{package}_*.orig.tar.*")
        place = self.folder / "source"
        with tarfile.open(archive) as tar:
            tar.extractall(place, filter="data")
        (root,) = place.iterdir()
        return root, archive.name.removeprefix(f"{package}_").partition(".orig.")[0]

    def unpack(self, package: str) -> tuple[Path, str]:
        """Download a package and unpack it."""
        before = set(self.folder.glob("*.deb"))
        self.run("apt-get", "download", package)
        (archive,) = set(self.folder.glob("*.deb")) - before
        version = subprocess.run(
            ["dpkg-deb", "--field", archive, "Version"], capture_output=True, text=True, check=True
        ).stdout.strip()
        place = self.folder / f"unpacked-{archive.stem}"
        subprocess.run(["dpkg-deb", "--extract", archive, place], check=True)
        return place, version.replace(":", "_")
