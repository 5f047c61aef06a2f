# SPDX-License-Identifier: MIT
"""./lab sets up once, says what is missing, and survives being cut short.

Most tests run the real script in a small checkout of their own: a package that
needs nothing from outside, so that a whole set-up takes two seconds.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

PYPROJECT = """\
[build-system]
requires = []
[project]
dependencies = []
[project.optional-dependencies]
pictures = []
test = []
pytest = []
bench = []
"""
CLI = """\
import sys
def main():
    print("schedlab was called with", sys.argv[1:])
    sys.exit("fail" in sys.argv)
"""


@pytest.fixture(scope="module", autouse=True)
def without_ensurepip(tmp_path_factory):
    """A folder that hides ensurepip, as Debian splits it off: it takes most of a set-up's time.

    All use it, but for the test that has it and where this Python has no pip of its own.
    """
    folder = tmp_path_factory.mktemp("hidden")
    (folder / "ensurepip.py").write_text("raise ImportError('split off')\n")
    has_pip = subprocess.run([sys._base_executable, "-c", "import pip"], check=False)
    with pytest.MonkeyPatch.context() as patch:
        if has_pip.returncode == 0:
            patch.setenv("PYTHONPATH", str(folder))
        yield has_pip.returncode == 0


@pytest.fixture
def checkout(root, tmp_path) -> Path:
    folder = tmp_path / "a checkout"
    package = folder / "python" / "schedlab"
    package.mkdir(parents=True)
    shutil.copy(root / "lab", folder / "lab")
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(CLI)
    return folder


def environment(**changes: str) -> dict[str, str]:
    """This environment without what ./lab itself added, never installing."""
    path = os.environ["PATH"].split(":")
    own = str(Path(sys.executable).parent)
    kept = {k: v for k, v in os.environ.items() if k not in ("CC", "PYTHON", "VIRTUAL_ENV")}
    return kept | {"PATH": ":".join(p for p in path if p != own), "LAB_NO_ROOT": "1"} | changes


def lab(checkout: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [checkout / "lab", *arguments],
        capture_output=True,
        text=True,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=120,
    )


def test_the_first_start_sets_up_and_the_second_does_nothing(checkout):
    first = lab(checkout, "--help", PYTHONPATH="")
    assert first.returncode == 0, first.stderr
    assert "lab: making .venv" in first.stderr
    assert (checkout / ".venv" / "bin" / "pip").exists()
    assert first.stdout == "schedlab was called with ['--help']\n"
    second = lab(checkout, "--help")
    assert (second.returncode, second.stderr) == (0, "")
    assert second.stdout == first.stdout


def test_it_works_from_any_folder_and_through_a_link(checkout, tmp_path):
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "lab"
    link.symlink_to(checkout / "lab")
    done = subprocess.run(
        [link, "--version"], cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "bin" / ".venv").exists()


def test_a_change_of_what_it_depends_on_sets_up_again(checkout):
    lab(checkout, "--help")
    with open(checkout / "pyproject.toml", "a") as file:
        file.write("# changed\n")
    done = lab(checkout, "--help")
    assert "installing Python packages" in done.stderr
    assert "making .venv" not in done.stderr
    assert lab(checkout, "--help").stderr == ""


def test_a_checkout_that_has_moved_is_set_up_again(checkout, tmp_path):
    lab(checkout, "--help")
    moved = checkout.rename(tmp_path / "moved")
    done = lab(moved, "--help")
    assert done.returncode == 0, done.stderr
    assert "making .venv" in done.stderr


def test_packages_of_another_checkout_are_not_emptied(checkout, tmp_path):
    others = tmp_path / "of another checkout"
    (others / "bin").mkdir(parents=True)
    (others / "bin" / "schedlab").write_text("")
    (checkout / ".venv").symlink_to(others)
    done = lab(checkout, "--help")
    assert done.returncode == 3
    assert "made for another folder\n     to mend it: rm .venv\n" in done.stderr
    assert (others / "bin" / "schedlab").exists()


def test_a_python_that_was_removed_is_noticed(checkout):
    lab(checkout, "--help")
    (checkout / ".venv" / "bin" / "python").unlink()
    (checkout / ".venv" / "lab-made").unlink()
    done = lab(checkout, "--help")
    assert done.returncode == 0, done.stderr


def test_an_interrupted_set_up_goes_on_at_the_next_start(checkout, tmp_path):
    slow = tmp_path / "slow-python"
    slow.write_text(
        f'#!/bin/sh\n[ "$2" != venv ] || {{ touch "{tmp_path}/started"; sleep 60; }}\n'
        f'exec "{sys._base_executable}" "$@"\n'
    )
    slow.chmod(0o755)
    started = subprocess.Popen(
        [checkout / "lab", "--help"],
        env=environment(PYTHON=str(slow)),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        # As a terminal does it: Ctrl-C goes to the whole group.
        os.killpg(started.pid, signal.SIGINT)
        _, errors = started.communicate(timeout=30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 130
    assert "the next start goes on from here" in errors
    assert not list((checkout / ".venv").glob("lab-stamp*"))
    done = lab(checkout, "--help")
    assert done.returncode == 0, done.stderr


def test_two_starts_at_once_set_up_once(checkout):
    both = [
        subprocess.Popen(
            [checkout / "lab", "--help"],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert sum("making .venv" in errors for _, errors in outputs) == 1
    assert {output for output, _ in outputs} == {"schedlab was called with ['--help']\n"}


def test_the_exit_code_is_schedlab_s(checkout):
    assert lab(checkout, "fail", "--help").returncode == 1


def test_who_may_only_read_uses_what_is_built(checkout):
    def read_only() -> subprocess.CompletedProcess:
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", 'mount --bind "$1" "$1" && '
             'mount -o remount,ro,bind "$1" "$1" && exec "$1/lab" policies', "sh", str(checkout)],
            capture_output=True, text=True, env=environment(), check=False, timeout=60,
        )  # fmt: skip

    assert lab(checkout, "--help").returncode == 0
    answer = read_only()
    if "unshare" in answer.stderr or "mount" in answer.stderr:
        pytest.skip(f"no mount name space here: {answer.stderr.strip()}")
    assert answer.returncode == 3
    assert "is not built" in answer.stderr and "to mend it" in answer.stderr
    (checkout / "build").mkdir()
    made = (checkout / ".venv" / "lab-made").read_text()
    (checkout / "build" / "lab-made").write_text(f"{checkout} {made}")
    answer = read_only()
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "schedlab was called with ['policies']" in answer.stdout


def test_no_compiler_is_said_with_the_remedy(checkout, programs_without):
    path = programs_without(r"(.*-)?(gcc|cc|c99|c89|clang)(-[\d.]+)?")
    done = lab(checkout, "--help", PATH=path)
    assert done.returncode == 3
    assert "there is no C compiler" in done.stderr
    assert "sudo apt-get install gcc libc6-dev" in done.stderr


def test_a_compiler_that_does_not_compile_is_named(checkout):
    done = lab(checkout, "--help", CC="false")
    assert done.returncode == 3
    assert "CC=false does not compile" in done.stderr


def test_no_python_is_said_with_the_remedy(checkout, programs_without):
    path = programs_without(r"python.*")
    # The last resort is named by its full path: an old one must not be taken.
    script = (checkout / "lab").read_text().replace(" /usr/bin/python3;", ";")
    (checkout / "lab").write_text(script)
    done = lab(checkout, "--help", PATH=path)
    assert done.returncode == 3
    assert "no Python 3.11 or newer" in done.stderr
    assert "sudo apt-get install python3 python3-venv" in done.stderr


def test_an_older_python_is_not_taken(checkout, programs_without):
    path = programs_without(r"python.*")
    old = Path(path) / "python3"
    old.write_text("#!/bin/sh\nexit 1 # as `sys.version_info < (3, 11)` would\n")
    old.chmod(0o755)
    (Path(path) / "python3.12").symlink_to(sys._base_executable)
    done = lab(checkout, "--help", PATH=path)
    assert done.returncode == 0, done.stderr


def test_a_python_without_ensurepip_uses_its_own_pip(checkout, without_ensurepip):
    """Debian splits ensurepip off; a user without root has only python3-pip."""
    if not without_ensurepip:
        pytest.skip("this Python has no pip of its own")
    done = lab(checkout, "--help")
    assert done.returncode == 0, done.stderr
    assert not (checkout / ".venv" / "bin" / "pip").exists()


def test_pip_that_fails_shows_its_words_and_leaves_no_stamp(checkout):
    text = PYPROJECT.replace("dependencies = []", 'dependencies = ["./no-such-folder"]', 1)
    (checkout / "pyproject.toml").write_text(text)
    done = lab(checkout, "--help")
    assert done.returncode == 3
    assert "no-such-folder" in done.stderr
    assert not list((checkout / ".venv").glob("lab-stamp*"))


def use_a_build(checkout: Path) -> dict[str, str]:
    """Make the checkout a built one, with a `ninja` that has nothing to do; changes of the environment."""
    assert lab(checkout, "--help").returncode == 0
    (checkout / "build").mkdir()
    made = (checkout / ".venv" / "lab-made").read_text()
    (checkout / "build" / "lab-made").write_text(f"{checkout} {made}")
    (checkout / "bin").mkdir()
    (checkout / "bin" / "ninja").symlink_to("/bin/true")
    return {"PATH": f"{checkout}/bin:{environment()['PATH']}"}


def forbid(checkout: Path, *extras: str) -> None:
    """Let the installation of these extras fail."""
    text = PYPROJECT
    for extra in extras:
        text = text.replace(f"\n{extra} = []", f'\n{extra} = ["./no-such-folder-{extra}"]')
    (checkout / "pyproject.toml").write_text(text)


@pytest.mark.parametrize(
    "words", [["selfbench", "--help"], ["soak", "--help"], ["test", "--help"], ["setup", "-h"]]
)
def test_help_installs_nothing_beside_the_package(checkout, words):
    forbid(checkout, "test", "pytest", "bench")
    done = lab(checkout, *words)
    assert done.returncode == 0, done.stderr
    assert "./lab test [ARGS]" in done.stdout or "schedlab was called with" in done.stdout


def test_help_of_a_command_to_be_measured_is_none_of_ours(checkout):
    """It is built, as for any other command."""
    assert lab(checkout, "--help").returncode == 0
    done = lab(checkout, "bench", "--", "make", "--help")
    assert "configuring build/" in done.stderr


def test_a_test_of_the_user_s_own_needs_pytest_alone(checkout, tmp_path):
    changes = use_a_build(checkout)
    forbid(checkout, "test", "bench")
    (checkout / "python" / "pytest.py").write_text(
        "import sys; print('pytest was called with', sys.argv[1:])\n"
    )
    (checkout / "tests").mkdir()
    for folder in (checkout, tmp_path, checkout / "tests"):
        (folder / "test_mine.py").write_text("")
    for folder in (checkout, tmp_path):
        done = lab(checkout, "test", f"{folder}/test_mine.py::test_one", "-q", **changes)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"pytest was called with ['{folder}/test_mine.py::test_one', '-q']\n"
    for words in (["test"], ["test", f"{checkout}/tests/test_mine.py"], ["test", f"{checkout}"]):
        done = lab(checkout, *words, **changes)
        assert "no-such-folder-test" in done.stderr, "the project's own tests need all"


def test_debian_packages_that_cannot_be_had_are_named_and_not_fatal(checkout):
    script = (checkout / "lab").read_text()
    script = script.replace("debian_packages=(", "debian_packages=(no-such-package-schedlab ")
    (checkout / "lab").write_text(script)
    done = lab(checkout, "setup", **use_a_build(checkout))
    assert done.returncode == 0, done.stderr
    assert "tests that need them will be skipped" in done.stderr
    assert "sudo apt-get install no-such-package-schedlab" in done.stderr


def test_help_is_quick_when_everything_is_in_place(root):
    """In CPU time, and beside what its command line alone takes to import: 0.18 s and 0.08 s.

    What others do here, and how fast this machine is, both have in common.
    """
    lab(root, "--help")
    help_s, import_s = zip(*((_cpu_s(_help, root), _cpu_s(_import_typer)) for _ in range(7)), strict=True)
    assert min(help_s) < 5 * min(import_s)


def _cpu_s(do: Callable, *arguments: object) -> float:
    """What the processes that it waits for have used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    do(*arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _help(root: Path) -> None:
    done = lab(root, "--help")
    assert (done.returncode, done.stderr) == (0, "")


def _import_typer() -> None:
    subprocess.run([sys.executable, "-c", "import typer"], check=True)
