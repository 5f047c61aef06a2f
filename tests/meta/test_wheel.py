# SPDX-License-Identifier: MIT
"""The wheel, made from the source archive, holds what is needed at run time, and is for each Python."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import pytest
from packaging.tags import compatible_tags
from packaging.utils import parse_wheel_filename

from conftest import QUICK_CFLAGS
from schedlab.cli.group import OF_CHECKOUT
from schedlab.policy.build import compiled_name
from schedlab.policy.find import list_policies, load_policy
from schedlab.policy.wasm_build import unbuildable

pytestmark = pytest.mark.full


def test_it_holds_each_runtime_file_and_nothing_else(tracked_files, wheel):
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    programs = (
        "schedlab-launch",
        "schedlab-play",
        "schedlab-record",
        "schedlab-sim",
        "schedlab-sim-check",
        "schedlab-supervise",
        "schedlab-uthreads",
    )
    wanted = {"schedlab/_data/VERSION", *(f"schedlab/_data/bin/{name}" for name in programs)}
    wanted |= {f"schedlab/_data/compiled/{compiled_name(load_policy(name))}" for name in list_policies()}
    wanted.add("schedlab/_data/compiled/compiler.txt")
    wanted |= {f"schedlab/_data/hosts/sim/{name}" for name in ("gdb.py", "policy_wasm.c")}
    if not unbuildable():
        wanted.add("schedlab/_data/compiled/schedlab-sim.wasm")
    for name in tracked_files:
        if name.endswith(("meson.build", "README.md")) or name.startswith("python/checkout/"):
            continue
        if name.startswith("python/"):
            wanted.add(name.removeprefix("python/"))
        elif name.startswith(
            (
                "include/",
                "policies/",
                "workloads/",
                "hosts/linux/load/",
                "hosts/linux/guest/",
                "hosts/linux/object/",
                "hosts/linux/tasks/",
                "player/",
            )
        ):
            wanted.add(f"schedlab/_data/{name}")
    assert held - wanted == set(), "too much"
    assert wanted - held == set(), "missing"


def test_its_tag_lets_each_python_have_it_and_names_the_c_library(wheel):
    """An index refuses linux_x86_64; and there is no extension module to tie it to a Python."""
    *_, tags = parse_wheel_filename(wheel.name)
    (tag,) = tags
    assert (tag.interpreter, tag.abi) == ("py3", "none")
    minor = int(re.fullmatch(rf"manylinux_2_(\d+)_{platform.machine()}", tag.platform)[1])
    for python in ((3, 11), (3, 12), (3, 14)):
        assert tag in compatible_tags(python, platforms=[tag.platform])
    with zipfile.ZipFile(wheel) as archive:
        programs = [archive.read(name) for name in archive.namelist() if "/_data/bin/" in name]
        described = archive.read(next(name for name in archive.namelist() if name.endswith("/WHEEL")))
    assert max(int(found) for each in programs for found in re.findall(rb"GLIBC_2\.(\d+)", each)) == minor
    assert f"Tag: {tag}\n" in described.decode() + "\n" and b"Root-Is-Purelib: false" in described


def test_its_record_lists_each_file_with_its_hash(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (record,) = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
        rows = dict(line.split(",", 1) for line in archive.read(record).decode().splitlines())
        assert set(rows) == set(archive.namelist())
        for name, row in rows.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=")
            wanted = f"sha256={digest.decode()},{archive.getinfo(name).file_size}"
            assert row == ("," if name == record else wanted)
        assert all(
            archive.getinfo(name).external_attr >> 16 & 0o111 for name in rows if "/_data/bin/" in name
        )


def test_its_version_is_the_one_of_the_file(root, wheel):
    assert wheel.name.split("-")[1] == (root / "VERSION").read_text().strip()


def test_it_carries_both_licences(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("/LICENSE") for name in names)
    assert any(name.endswith("/GPL-2.0-only.txt") for name in names)


# ---- what the documents offer, from the wheel alone ----------------------------

#: Debian's `nobody`: owns no file, may not use sudo.
NOBODY = 65534
#: The project's own tests, which are not a user's, and need pytest.
NOT_OF_A_USER = ("./lab test", "./lab setup", "tools/")


@pytest.fixture(scope="module")
def empty_environment(wheel):
    """Function that runs a command as an ordinary user, who has the wheel and its dependencies, no extras."""
    folder = Path(tempfile.mkdtemp(prefix="schedlab-wheel-"))
    shutil.copy(wheel, folder)
    (folder / "work").mkdir()
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", folder], check=True)
    network = ("PIP_", "SSL_", "HTTP", "http", "NO_PROXY", "no_proxy", "REQUESTS_")
    env = {name: value for name, value in os.environ.items() if name.startswith(network)}
    env |= {
        "PATH": f"{folder}/venv/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
    }
    become = (
        []
        if os.getuid()
        else ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    )

    def run(command: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*become, "bash", "-c", command],
            cwd=folder / "work",
            env=env,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
        )

    # The base interpreter: an environment's own would bring what is installed there. Where only
    # root may start it, the system's.
    pythons = [sys._base_executable, "/usr/bin/python3"]
    python = next((each for each in pythons if run(f"{each} -c 'import ensurepip'").returncode == 0), None)
    if python is None:
        shutil.rmtree(folder)
        pytest.skip(
            f"an ordinary user has no Python with venv: {' and '.join(pythons)} do not start; "
            "to have one: sudo apt-get install python3-venv"
        )
    made = run(f"{python} -m venv {folder}/venv && pip install -q --disable-pip-version-check {folder}/*.whl")
    assert made.returncode == 0, made.stdout + made.stderr
    yield run
    shutil.rmtree(folder)


def offered(root) -> list[str]:
    """Commands that README and docs let a user type, as the wheel has them."""
    found = []
    for document in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", document.read_text(), re.M | re.S):
            lines = body.splitlines() if kind == "console" else []
            found += [line[2:] for line in lines if line.startswith("$ ")]
    # What names a file of tests/ is for a checkout, as its page says.
    wanted = [
        command for command in found if not command.startswith(NOT_OF_A_USER) and " tests/" not in command
    ]
    return list(dict.fromkeys(re.sub(r"^\./lab\b", "schedlab", command) for command in wanted))


def test_the_environment_has_the_wheel_and_no_more_than_it_needs(root, empty_environment):
    done = empty_environment("python -c 'import schedlab; print(schedlab.__file__)'")
    assert "/venv/lib/" in done.stdout and not done.stdout.startswith(str(root)), done.stdout + done.stderr
    done = empty_environment(
        "python -c 'import importlib.util as u; print([n for n in "
        '("pyarrow", "perfetto", "pandas", "pytest") if u.find_spec(n)])\''
    )
    assert done.stdout == "[]\n", "the environment has more than a default installation"
    done = empty_environment("schedlab run mixed --policy rr --json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"status": "ok"' in done.stdout or '"status":"ok"' in done.stdout


#: Size of what is installed besides the pip and setuptools of `venv`, as a user's `du` adds it up.
SIZE = """
import pathlib, sys, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
for each in site.iterdir():
    if not each.name.startswith(("pip", "setuptools", "pkg_resources", "_distutils_hack", "__pycache__")):
        files = [each, *each.rglob("*")]
        print(each.name, sum(path.lstat().st_size for path in files if path.is_file()))
"""
SIZE_MAX = 300_000_000


def test_the_environment_is_under_300_mb(empty_environment):
    """It was 559: SciPy, Altair and vl-convert were in it; docs/dependencies.md says where they are."""
    done = empty_environment(shlex.join(["python", "-c", SIZE]))
    sizes = {name: int(size) for name, size in map(str.split, done.stdout.splitlines())}
    assert {"schedlab", "numpy", "polars"} <= set(sizes), done.stderr
    assert sum(sizes.values()) < SIZE_MAX, sizes


def test_a_run_of_its_policies_needs_no_compiler_and_one_of_a_users_own_says_that_it_does(empty_environment):
    bare = 'PATH=$(dirname "$(command -v schedlab)")'
    done = empty_environment(
        f"{bare} schedlab run mixed --policy {','.join(list_policies())} --seeds 1 --json"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {run["status"] for run in json.loads(done.stdout)["runs"]} == {"ok"}
    done = empty_environment(f"{bare} schedlab doctor")
    assert done.returncode == 0 and "no C compiler" in " ".join(done.stdout.split()), (
        done.stdout + done.stderr
    )
    done = empty_environment(f"schedlab new alone && {bare} schedlab run mixed --policy ./alone.bpf.c")
    assert done.returncode == 3 and "your own are C and are compiled here" in done.stderr, done.stderr
    # One that has a compiler, and names it, has its policies compiled by it.
    done = empty_environment("CC=no-such schedlab run mixed --policy rr")
    assert done.returncode == 3 and "CC=no-such cannot be started" in done.stderr


def test_what_the_documents_offer_works_from_the_wheel_alone(root, empty_environment):
    commands = [command for command in offered(root) if command.startswith(("schedlab ", "sed "))]
    assert len(commands) > 15
    for command in commands:
        # With all its seeds test_readme.py runs it; a search that finds nothing uses its budget up.
        shorter = {"schedlab demo": "schedlab demo --seeds 1"}.get(command, command)
        done = empty_environment(shorter.replace("--budget 60s", "--budget 60s --worlds 1"))
        said = f"$ {command}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in said, said
        name = command.split()[1]
        if name in OF_CHECKOUT or "--host kernel" in command:
            assert done.returncode == 3 and "checkout" in done.stderr, said
        elif "--figures" in command:
            assert done.returncode == 3 and "pip install altair vl-convert-python" in done.stderr, said
        elif "--property inversion" in command:
            assert done.returncode == 1 and "priority inversion: " in done.stdout, said
        elif "--host uthreads" in command and "void: other processes" in done.stdout:
            # The command works; the machine was not its own.
            warnings.warn(said, stacklevel=1)
        else:
            assert done.returncode == 0, said


#: All of them in one process: most of a process's time is what it imports.
HELP = """
import sys
from typer.testing import CliRunner
from schedlab.cli.app import app
for name in sys.argv[1:]:
    done = CliRunner().invoke(app, [name, "--help"], prog_name="schedlab")
    assert done.exit_code == 0 and f"Usage: schedlab {name}" in done.output, (name, done.output, done.exception)
    print(name)
"""


def test_every_command_of_help_explains_itself_from_the_wheel_alone(empty_environment):
    names = re.findall(r"^  (\w+) {2,}", empty_environment("schedlab --help").stdout, re.M)
    assert {"run", "trace", "record", "compare"} <= set(names)
    done = empty_environment(shlex.join(["python", "-c", HELP, *names]))
    assert done.stdout.split() == names, done.stdout + done.stderr


def test_each_module_of_the_wheel_can_be_imported(wheel, empty_environment):
    """Nothing asks for a module that has stayed behind, or, but for what draws and what runs WebAssembly, for one of an extra."""
    files = [name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith("schedlab/_data/")]
    names = [name[:-3].replace("/", ".") for name in files if name.endswith(".py")]
    without = ("__main__", "charts", "wasm_run")
    names = [name.removesuffix(".__init__") for name in names if not name.endswith(without)]
    code = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    done = empty_environment(shlex.join(["python", "-c", code, *names]))
    assert done.returncode == 0, done.stderr


def test_an_editable_install_runs_the_checkout_with_programs_of_its_own(copy_tracked, empty_environment):
    """Built in isolation: neither its ninja nor its Python is there when schedlab runs."""
    work = Path(empty_environment("pwd").stdout.strip())
    copy_tracked(work / "checkout")
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", work / "checkout"], check=True)
    site = "-c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'"
    done = empty_environment(
        "python -m venv edit"
        f" && CFLAGS='{QUICK_CFLAGS}' edit/bin/pip install -q --disable-pip-version-check --no-deps -e checkout"
        # The dependencies of the other environment, behind the checkout.
        f" && python {site} > $(edit/bin/python {site})/zz-dependencies.pth"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = empty_environment("edit/bin/python -c 'import schedlab; print(schedlab.__file__)'")
    assert done.stdout.strip() == str(work / "checkout/python/schedlab/__init__.py"), done.stderr
    done = empty_environment("edit/bin/schedlab run mixed --policy rr --json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (work / "checkout/build").exists()
    assert empty_environment("edit/bin/schedlab audit --help").stdout.startswith("Usage: schedlab audit")


# ---- the wheel for any system --------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere(root, wheel, tmp_path_factory):
    """Function that runs schedlab of the wheel for any system, without compilers and what is POSIX's alone."""
    if unbuildable():
        pytest.skip(unbuildable())
    folder = tmp_path_factory.mktemp("elsewhere")
    made = subprocess.run(
        [sys.executable, root / "tools/build_backend.py", shutil.copy(wheel, folder)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (found,) = made.stdout.splitlines()
    zipfile.ZipFile(found).extractall(folder / "site")
    env = {
        "PYTHONPATH": f"{root / 'tests/meta/not_posix'}:{folder / 'site'}", "PATH": str(folder), "HOME": str(folder),
        "LANG": "C.UTF-8", "COLUMNS": "80",
    }  # fmt: skip
    shutil.copytree(root / "examples" / "mlfq", folder / "mlfq")

    def run(*words: str) -> subprocess.CompletedProcess:
        code = "from schedlab.__main__ import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=600,
        )

    run.wheel = Path(found)
    return run


def test_the_wheel_for_any_system_has_no_program(elsewhere):
    *_, tags = parse_wheel_filename(elsewhere.wheel.name)
    assert {str(tag) for tag in tags} == {"py3-none-any"}
    with zipfile.ZipFile(elsewhere.wheel) as archive:
        names = archive.namelist()
        assert not [name for name in names if archive.read(name)[:4] == b"\x7fELF"]
        described = archive.read(next(name for name in names if name.endswith("/WHEEL"))).decode()
    assert "schedlab/_data/compiled/schedlab-sim.wasm" in names
    assert "Tag: py3-none-any" in described.splitlines() and "Root-Is-Purelib: true\n" in described


def test_a_system_without_posix_and_compiler_runs_grades_and_reports(elsewhere):
    """Import of a module that is POSIX's alone, or a call of such a function, ends one of these."""
    for words in (
        ("--version",),
        ("doctor",),
        ("policies",),
        ("demo", "--seeds", "1"),
        ("new", "mine"),
        (
            "run",
            "mixed",
            "-p",
            "rr,./mine.bpf.c",
            "--set",
            "rr.slice_ns=5ms,20ms",
            "--seeds",
            "2",
            "--out",
            "a",
        ),
        ("report", "a"),
        ("gantt", "a/mixed/mine/seed-1"),
        ("compare", "a", "a"),
        (
            "grade",
            "mlfq/assignment.toml",
            "mlfq/solutions/full.bpf.c",
            "mlfq/wrong/hang.bpf.c",
            "--out",
            "grades",
        ),
        ("playground", "--out", "page"),
    ):
        done = elsewhere(*words)
        assert done.returncode == 0 and "Traceback" not in done.stderr, (words, done.stdout + done.stderr)
    done = elsewhere("run", "mixed", "-p", "rr", "--host", "uthreads")
    assert done.returncode == 3 and "not in this wheel" in done.stderr, done.stderr


def test_its_records_are_those_of_the_simulator(elsewhere, root):
    words = ["run", "mixed", "-p", "mlfq", "--seeds", "2", "--json"]
    done = elsewhere(*words)
    here = subprocess.run([root / "lab", *words], capture_output=True, text=True, check=True)
    hashes = [[run["record_hash"] for run in json.loads(each.stdout)["runs"]] for each in (done, here)]
    assert hashes[0] == hashes[1] and len(set(hashes[0])) == 2
