# SPDX-License-Identifier: MIT
"""Wheel and source archive install and work on each Python, and by other installers than pip.

A newer Python comes from a newer Debian, unpacked into a folder with its own C library and
compiler: apt's packages, signed, from the mirror that this machine uses. An ordinary user
works in that folder (chroot), without a network and without the checkout; pip has fetched
the dependencies beforehand. Others are used where this machine has them.
`./lab soak pythons` runs these tests.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import missing
from schedlab.hosts.guest import image as guest_image

pytestmark = pytest.mark.nightly

#: Python, and the suite of Debian that has it; None: this machine's own, in this machine's system.
PYTHONS = [("3.13", "trixie"), ("3.14", "sid"), ("3.12", None), ("3.11", None)]
PYTHONS = PYTHONS[: int(os.environ.get("SCHEDLAB_PYTHONS", "4"))]
NOBODY = 65534
#: Of the user, in that folder: `place / HOME` would leave it.
HOME = "/user"
#: What a user does after an installation.
USE = (
    "schedlab --version",
    "schedlab demo --seeds 1 --out demo",
    "schedlab new mine",
    "schedlab run mine_test.toml --policy rr,./mine.bpf.c --seeds 2 --out runs",
    "schedlab report runs",
    "test -s runs/report.html",
)


def fetch(folder: Path, python: str, wheel: Path) -> Path:
    """Files of all that a wheel and a source archive need on a Python, and of these two."""
    files = folder / "files"
    files.mkdir()
    shutil.copy(wheel, files)
    shutil.copy(next(wheel.parent.glob("*.tar.gz")), files)
    # A source archive is built there, and pipx asks for the newest pip: both are fetched, too.
    built_with = ["meson-python", "meson", "ninja", "pip"]
    words = ["download", "--only-binary=:all:", "--python-version", python, "-q", "-d", files]
    subprocess.run([sys.executable, "-m", "pip", *words, *built_with, wheel], check=True)
    return files


def unpack(root: Path, python: str, suite: str) -> None:
    """Fill a folder with a suite's Python and compiler; nothing is installed on this machine."""
    work = root.with_name(root.name + ".new")
    shutil.rmtree(work, ignore_errors=True)
    (work / "apt").mkdir(parents=True)
    apt = guest_image.PrivateApt(work / "apt", guest_image.debian_mirror())
    (source,) = (work / "apt/sources").iterdir()
    lines = [
        f"Suites: {suite}" if line.startswith("Suites:") else line for line in source.read_text().splitlines()
    ]
    source.write_text("\n".join(lines) + "\n")
    apt.run("apt-get", "update")
    # Nothing is there, so all that a package needs comes with it.
    (work / "status").touch()
    apt.options += ["-o", f"Dir::State::status={work / 'status'}"]
    packages = (
        "base-files",
        "ca-certificates",
        "coreutils",
        "dash",
        "sed",
        "gcc",
        "libc6-dev",
        f"python{python}-venv",
    )
    apt.run("apt-get", "install", "-y", "--download-only", "--no-install-recommends", *packages)
    debs = sorted(
        (work / "apt/archives").glob("*.deb"), key=lambda path: not path.name.startswith("base-files")
    )
    for deb in debs:
        subprocess.run(["dpkg", "-x", deb, work / "root"], check=True)
    # What its installation would make, and pip opens though it uses no network.
    trusted = sorted((work / "root/usr/share/ca-certificates").rglob("*.crt"))
    bundle = work / "root/etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_text("".join(path.read_text() for path in trusted))
    shutil.rmtree(root, ignore_errors=True)
    os.replace(work / "root", root)
    shutil.rmtree(work)


def folder_of(python: str) -> Path:
    """Where this machine has a Python of its own, which need not be on the PATH nor be anybody's to read."""
    found = [shutil.which(f"python{python}"), *Path.home().glob(f".pyenv/versions/{python}.*/bin/python3")]
    for each in filter(None, found):
        words = [each, "-c", "import ensurepip, sys; print(sys.base_prefix)"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return Path(done.stdout.strip())
    pytest.skip(f"no Python {python} with ensurepip here; to have one: pyenv install {python}")


@pytest.fixture(scope="module", params=PYTHONS, ids=lambda each: each[0])
def newer(request, root, wheel, tmp_path_factory):
    """A newer Python's version, and a function that runs a command there as an ordinary user, in a folder with `files`."""
    python, suite = request.param
    if os.getuid():
        missing("root, which chroot needs", "sudo ./lab test ...")
    files = fetch(tmp_path_factory.mktemp("fetched"), python, wheel)
    binds = [("/dev", "dev"), ("/proc", "proc")]
    more = ""
    if suite:
        place = root / ".cache/pythons" / f"{suite}-{python}"
        if not (place / f"usr/bin/python{python}").exists():
            unpack(place, python, suite)
    else:
        place = tmp_path_factory.mktemp("machine")
        place.chmod(0o755)
        # This machine's system and that Python, which is where its user can read it.
        for link in ("bin", "lib", "lib64"):
            (place / link).symlink_to(f"usr/{link}")
        binds += [("/usr", "usr"), ("/etc", "etc"), (folder_of(python), "python")]
        more = "LD_LIBRARY_PATH=/python/lib"
        for name in ("dev", "proc", "usr", "etc", "python", "tmp"):
            (place / name).mkdir()
        (place / "tmp").chmod(0o1777)
    home = place / HOME.lstrip("/")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    shutil.copytree(files, home / "files")
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", home], check=True)
    inside = f"chroot --userspec={NOBODY}:{NOBODY} {shlex.quote(str(place))}"
    mounts = "".join(
        f"mount --rbind {shlex.quote(str(there))} {shlex.quote(str(place / here))} && "
        for there, here in binds
    )

    def run(command: str, *, path: str = "") -> str:
        env = f"env -i HOME={HOME} LANG=C.UTF-8 COLUMNS=100 PATH={path}/usr/bin:/python/bin {more}"
        inner = f"{inside} {env} sh -c {shlex.quote(f'cd {HOME} && {command}')}"
        # Mounts of a name space of its own: they go with it.
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", f"{mounts}exec {inner}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=800,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    yield python, run
    shutil.rmtree(home)


@pytest.mark.parametrize(
    "archive", ["files/schedlab-*.whl", "files/schedlab-*.tar.gz"], ids=["wheel", "source"]
)
def test_an_ordinary_user_installs_it_and_runs_an_own_policy(newer, archive):
    python, run = newer
    pip = "venv/bin/pip install -q --no-index --find-links files"
    run(f"rm -rf venv runs demo mine* test_mine.py && python{python} -m venv venv && {pip} {archive}")
    for command in USE:
        run(command, path=f"{HOME}/venv/bin:")
    assert run("python --version", path=f"{HOME}/venv/bin:").startswith(f"Python {python}.")


@pytest.mark.parametrize("python", ["3.12"])
def test_a_python_that_debian_lacks_has_wheels_of_all_dependencies(python, wheel, tmp_path):
    """Also where this machine has none to run them."""
    words = ["install", "--dry-run", "-q", "--ignore-installed", "--target", tmp_path]
    words += ["--only-binary=:all:", "--python-version", python, "--report", "-", wheel]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=True)
    found = {each["metadata"]["name"].lower() for each in json.loads(done.stdout)["install"]}
    assert {"schedlab", "numpy", "polars", "pydantic"} <= found


@pytest.mark.parametrize("tool", ["pipx", "uv"])
def test_other_installers_put_the_command_on_the_path(tool, wheel, tmp_path):
    files = fetch(tmp_path, f"{sys.version_info.major}.{sys.version_info.minor}", wheel)
    env = os.environ | {"HOME": str(tmp_path), "UV_PYTHON_DOWNLOADS": "never"}
    env |= {name: str(tmp_path / "bin") for name in ("PIPX_BIN_DIR", "UV_TOOL_BIN_DIR")}
    env |= {"PIPX_HOME": str(tmp_path / "pipx"), "UV_TOOL_DIR": str(tmp_path / "uv")}
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    subprocess.run([tmp_path / "venv/bin/pip", "install", "-q", tool], check=True)
    (archive,) = files.glob("schedlab-*.whl")
    from_files = ["--no-index", "--find-links", str(files)]
    offline = {
        "pipx": ["install", f"--pip-args={' '.join(from_files)}", archive],
        "uv": ["tool", "install", "--offline", *from_files, "--python", sys.executable, archive],
    }
    subprocess.run([tmp_path / "venv/bin" / tool, *offline[tool]], env=env, check=True)
    for command in USE:
        words = ["bash", "-c", command.replace("schedlab", str(tmp_path / "bin/schedlab"), 1)]
        subprocess.run(words, cwd=tmp_path, env=env, check=True, stdout=subprocess.DEVNULL)
