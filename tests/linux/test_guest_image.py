# SPDX-License-Identifier: MIT
"""What the guest is made of comes through apt, and only what the archive's key vouches for.

A small archive in a folder stands for Debian's: InRelease signs Packages and Sources, which have
the hashes of what is fetched. apt itself reads it, with the options that schedlab gives it.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from schedlab.errors import UnavailableError
from schedlab.hosts.guest import image as guest_image

KERNEL = b"a kernel\n" * 100
VERSION, LIBBPF = "7.2.99-1", "1.9.9"
MAKEFILE = b"""install:
	mkdir -p $(DESTDIR)$(LIBDIR)
	echo made > $(DESTDIR)$(LIBDIR)/libbpf.a
"""


class Archive:
    """A Debian archive of two packages, of which a test can damage a piece."""

    def __init__(self, folder: Path, gpg: str):
        self.folder, self.gpg, self.home = folder / "archive", gpg, folder / "keys"
        self.home.mkdir(mode=0o700)
        for name in ("debian", "stranger"):
            self._gpg("--batch", "--passphrase", "", "--quick-gen-key", f"{name}@example.org", "ed25519")
        self.keyring = folder / "debian.gpg"
        self.keyring.write_bytes(self._gpg("--export", "debian@example.org"))
        kernel = f"linux-binary-{VERSION}-cloud-amd64"
        lists = {
            "sid": [
                self._package(kernel, "usr/lib/modules/7.2.99/vmlinuz"),
                self._entry("linux-image-cloud-amd64", f"Depends: {kernel.replace('binary', 'image')}\n"),
                self._entry(kernel.replace("binary", "image"), ""),
            ],
            "forky": [],
        }
        for suite, entries in lists.items():
            place = self.folder / "dists" / suite
            (place / "main" / "binary-amd64").mkdir(parents=True)
            (place / "main" / "binary-amd64" / "Packages").write_text("\n".join(entries))
            (place / "main" / "source").mkdir()
            (place / "main" / "source" / "Sources").write_text(self._source("libbpf") if entries else "")
            self.sign(suite)

    def _gpg(self, *words: str, text: bytes = b"") -> bytes:
        command = [self.gpg, "--homedir", self.home, "--quiet", *words]
        return subprocess.run(command, input=text, capture_output=True, check=True).stdout

    def _entry(self, name: str, more: str) -> str:
        return (
            f"Package: {name}\nVersion: {VERSION}\nArchitecture: amd64\nMaintainer: n\nDescription: d\n{more}"
        )

    def _package(self, name: str, file: str) -> str:
        tree = self.folder / name
        (tree / file).parent.mkdir(parents=True)
        (tree / file).write_bytes(KERNEL)
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN" / "control").write_text(self._entry(name, ""))
        path = self.folder / f"{name}_{VERSION}_amd64.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, path], capture_output=True, check=True)
        data = path.read_bytes()
        return self._entry(
            name, f"Filename: {path.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
        )

    def _source(self, name: str) -> str:
        files = description, sources = f"{name}_{LIBBPF}-1.dsc", f"{name}_{LIBBPF}.orig.tar.gz"
        with tarfile.open(self.folder / sources, "w:gz") as tar:
            for path, data in {"src/Makefile": MAKEFILE, "README": b""}.items():
                member = tarfile.TarInfo(f"{name}-{LIBBPF}/{path}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        (self.folder / description).write_text(f"Source: {name}\n")
        hashes = {"Files": "md5", "Checksums-Sha256": "sha256"}
        return (
            f"Package: {name}\nBinary: {name}-dev\nVersion: {LIBBPF}-1\nFormat: 3.0 (quilt)\nDirectory: .\n"
            + "".join(
                f"{field}:\n"
                + "".join(
                    f" {hashlib.new(kind, data).hexdigest()} {len(data)} {file}\n"
                    for file in files
                    for data in [(self.folder / file).read_bytes()]
                )
                for field, kind in hashes.items()
            )
        )

    def packages(self, suite: str) -> Path:
        return self.folder / "dists" / suite / "main" / "binary-amd64" / "Packages"

    def sign(self, suite: str, who: str = "debian") -> None:
        lists = {
            name: (self.folder / "dists" / suite / name).read_bytes()
            for name in ("main/binary-amd64/Packages", "main/source/Sources")
        }
        hashes = (f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n" for name, data in lists.items())
        text = (
            f"Origin: Debian\nLabel: Debian\nSuite: {suite}\nCodename: {suite}\nDate: Sun, 22 Nov 2026 00:00:00 UTC\n"
            f"Architectures: amd64\nComponents: main\nSHA256:\n{''.join(hashes)}"
        )
        signed = self._gpg("--batch", "--local-user", f"{who}@example.org", "--clearsign", text=text.encode())
        (self.folder / "dists" / suite / "InRelease").write_bytes(signed)

    def close(self) -> None:
        subprocess.run(["gpgconf", "--homedir", self.home, "--kill", "all"], capture_output=True, check=False)


@pytest.fixture
def archive(tmp_path, monkeypatch, need):
    need("apt-get")
    made = Archive(tmp_path, need("gpg"))
    monkeypatch.setattr(guest_image, "KEYRING", made.keyring)
    monkeypatch.setattr(guest_image, "debian_mirror", lambda: f"file://{made.folder}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # A machine whose own apt lets everything in, as those of many containers do.
    careless = tmp_path / "careless.conf"
    careless.write_text(
        'Acquire::AllowInsecureRepositories "true";\nAcquire::AllowWeakRepositories "true";\n'
        'APT::Get::AllowUnauthenticated "true";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(careless))
    yield made
    made.close()


def unsigned(archive):
    for suite in ("sid", "forky"):
        place = archive.folder / "dists" / suite
        text = (place / "InRelease").read_text().partition("\n\n")[2].partition("-----BEGIN")[0]
        (place / "Release").write_text(text)
        (place / "InRelease").unlink()


def signed_by_a_stranger(archive):
    archive.sign("sid", "stranger")


def list_changed_after_it_was_signed(archive):
    path = archive.packages("sid")
    path.write_text(path.read_text().replace("Description: d", "Description: e"))


def package_changed_after_it_was_listed(archive):
    (path,) = archive.folder.glob("linux-binary-*.deb")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def source_changed_after_it_was_listed(archive):
    (path,) = archive.folder.glob("libbpf_*.orig.*")
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def test_what_is_signed_is_fetched_once(archive):
    parts = guest_image.fetch_guest_parts()
    assert parts.kernel.read_bytes() == KERNEL
    assert (parts.kernel_version, parts.libbpf_version) == (VERSION, LIBBPF)
    assert (parts.libbpf / "usr" / "lib" / "libbpf.a").read_text() == "made\n"
    parts.kernel.unlink()
    assert guest_image.fetch_guest_parts() == parts and parts.kernel.read_bytes() == KERNEL, "fetched anew"
    unsigned(archive)
    assert guest_image.fetch_guest_parts() == parts, "the archive is not asked again"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (unsigned, "is not signed"),
        (signed_by_a_stranger, "NO_PUBKEY|not available"),
        (list_changed_after_it_was_signed, "unexpected size|Hash Sum mismatch|hashes? of"),
        (package_changed_after_it_was_listed, "Hash Sum mismatch"),
        (source_changed_after_it_was_listed, "Hash Sum mismatch"),
    ],
)
def test_what_the_key_does_not_vouch_for_is_refused_and_not_kept(archive, damage, reason, tmp_path):
    damage(archive)
    with pytest.raises(UnavailableError, match=reason):
        guest_image.fetch_guest_parts()
    kept = [path.name for path in (tmp_path / "cache" / "schedlab" / "guest").iterdir()]
    whole = "libbpf" if damage is source_changed_after_it_was_listed else "kernel"
    assert not [name for name in kept if name.startswith((whole, "fetch"))]
