# SPDX-License-Identifier: MIT
"""What all tests share: suites, tools that may be missing, and builds.

Suites grow: `quick` (every commit, a minute) is what carries no marker and is none
of `NOT_QUICK`, `full` (the default) adds these and what is marked so, `nightly`
adds the rest.

A test that needs a tool asks for it with `need("clang-19")`. On a machine
without it the test is skipped with the reason; with SCHEDLAB_TOOLS_REQUIRED=1,
as in CI, it fails, so that a broken set-up cannot pass for a green run.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path, PurePath

import hypothesis
import pytest

# Others use the machine too, so an example has no deadline. CI draws the same
# examples each time: what it finds must belong to the change under test.
hypothesis.settings.register_profile(
    "schedlab", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True
)
hypothesis.settings.load_profile("schedlab")

# A shell that starts a job in the background has it ignore SIGINT, and so would
# all that tests start; but what Ctrl-C does is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
SUITES = ("quick", "full", "nightly")
# What pytest makes of a test file, half of the time of collecting it, is kept also where the
# environment wants no bytecode beside sources.
sys.dont_write_bytecode = False
sys.pycache_prefix = str(ROOT / "build" / "pycache")

#: Folders and files whose tests boot machines, run in real time, compile many programs, drive a
#: browser, or search: none of them is quick. tests/conformance has a little of each host.
NOT_QUICK = (
    *(
        f"tests/{name}/"
        for name in ("core", "docs", "grade", "kernel", "linux", "page", "sandbox", "uthreads")
    ),
    "tests/meta/test_harness.py",
    "tests/meta/test_link_policies.py",
    "tests/policies/test_compile.py",
    *(
        f"tests/python/test_{name}.py"
        for name in (
            "audit",
            "bench",
            "causes",
            "import_fuzz",
            "process",
            "report_recorded",
            "reproduce",
            "tune",
        )
    ),
    "tests/sim/test_determinism.py",
    "tests/sim/test_wasm.py",
)
#: Groups of tests that take minutes each, begun first: one begun last is waited for by
#: all other workers. xdist alone would begin with the groups of the most tests.
LONGEST = (
    "guest",
    "linux",
    "tests/docs/test_reports.py",
    "tests/python/test_consistency_damage.py",
    "tests/meta/test_wheel.py",
    "tests/kernel/test_late_ack.py",
    "tests/meta/test_readme.py",
    "tests/core/test_core.py",
    "tests/kernel/test_soak.py",
    "tests/kernel/test_power_cut.py",
    "tests/kernel/test_host_agrees.py",
    "tests/kernel/test_xv6_programs.py",
    "tests/meta/test_fresh_clone.py",
    "tests/uthreads/test_stress.py",
    "tests/python/test_reproduce_docs.py",
    "tests/page/test_reproduce_page.py",
    "tests/grade/test_grade_kernel.py",
    # Half a minute, and few tests: by their number they would be last of all.
    "tests/meta/test_mypy.py",
    "tests/kernel/test_checks.py",
    "tests/policies/test_everything_runs.py",
    "tests/sim/test_properties.py",
    "tests/sim/test_determinism.py",
    "tests/docs/test_ci_templates.py",
    "tests/page/test_playground_edit.py",
    "tests/uthreads/test_install.py",
)


def pytest_addoption(parser):
    parser.addoption(
        "--suite",
        choices=SUITES,
        default="full",
        help="how much to run: quick (unmarked tests), full (the default), nightly (all)",
    )


def pytest_configure(config):
    config.option.loadscopereorder = False  # the order is that of `pytest_collection_modifyitems`


def pytest_ignore_collect(collection_path, config):
    """A file of which no test would run is not even read."""
    is_left_out = config.getoption("--suite") == "quick" and collection_path.is_relative_to(ROOT)
    if is_left_out and f"{collection_path.relative_to(ROOT).as_posix()}/".startswith(NOT_QUICK):
        return True
    return None


def pytest_collection_modifyitems(config, items):
    left_out = SUITES[SUITES.index(config.getoption("--suite")) + 1 :]
    chosen, dropped = [], []
    for item in items:
        is_dropped = any(item.get_closest_marker(suite) for suite in left_out)
        (dropped if is_dropped else chosen).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = chosen
    if hasattr(config, "workerinput"):
        counts = Counter(_group(item.nodeid) for item in items)
        # Many tests, then few, as xdist itself has it.
        rank = {group: (len(LONGEST), -count) for group, count in counts.items()}
        rank |= {group: (place, 0) for place, group in enumerate(LONGEST)}
        items.sort(key=lambda item: rank[_group(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each worker whole groups.

    xdist's own loadgroup hands out test by test where pytest is 9.2 or newer, without
    a word (pytest-xdist#1386): each worker then builds and boots what a group shares.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return _group(nodeid)

    return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None


def _group(nodeid: str) -> str:
    """Name of the tests that stay on one worker with the one named: those of its file.

    A file shares what it has built. All that boot Linux share one boot, and what
    records this machine sees no other recorder.
    """
    path = PurePath(nodeid.partition("::")[0])
    if path.name.startswith("test_guest"):
        return "guest"
    return "linux" if path.parent.name == "linux" else str(path)


def first_is_quick(*axes) -> list:
    """All combinations, to parametrize with; the quick suite has the first alone, since each is many random samples."""
    return first_are_quick(1, list(itertools.product(*axes)))


def first_are_quick(number: int, rows: list) -> list:
    """These rows, of which the quick suite has the first."""
    return [
        pytest.param(*row, marks=[pytest.mark.full] if place >= number else [])
        for place, row in enumerate(rows)
    ]


def missing(what: str, hint: str) -> None:
    """Skip the calling test because `what` is not here; fail where it must be."""
    reason = f"{what} is missing; to have it: {hint}"
    if os.environ.get("SCHEDLAB_TOOLS_REQUIRED"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def need():
    """Function that returns a tool's path, or skips the test with the hint."""

    def find(tool: str, hint: str = "./lab setup, as root or with sudo") -> str:
        path = shutil.which(tool)
        if path is None:
            missing(tool, hint)
        return path

    return find


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


#: For a build that is looked at rather than waited for: linking as one unit takes more than the rest
#: of it. The build that nearly all tests use is optimised as releases are.
QUICK_CFLAGS = "-fno-lto -O1"


def _run(*command: str | Path, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        words = " ".join(map(str, command))
        pytest.fail(f"{words}\n{done.stdout}{done.stderr}", pytrace=False)


def meson_build(folder: Path, *options: str, compiler: str | None = None, target: str = "all") -> Path:
    """Configure `folder` where needed, and bring it up to date; it is kept, since ninja knows best what has changed."""
    env = dict(os.environ)
    # Programs of this interpreter's environment first, active or not.
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    if compiler:
        env["CC"] = compiler
    cache = ROOT / ".cache"
    cache.mkdir(exist_ok=True)
    # ./lab holds the same lock while it builds.
    with open(cache / "lab.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "build.ninja").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            _run("meson", "setup", folder, ROOT, *options, env=env)
        _run("ninja", "-C", folder, target, env=env)
    return folder


@pytest.fixture(scope="session")
def build() -> Path:
    """The build of this checkout, up to date."""
    return meson_build(ROOT / "build")


@pytest.fixture(scope="session")
def simulator(build) -> Path:
    """The simulator of this checkout, up to date."""
    return build / "hosts" / "sim" / "schedlab-sim"


@pytest.fixture(scope="session")
def build_variant(need):
    """Function that builds the checkout with another compiler or level.

    `build_variant("clang-19", "0")` gives `build-clang-19-plain-O0/`, with
    warnings as errors, and of it what is named as `target`. A compiler that is not here skips the test.
    Programs that ask for their own level have the one given here, and none is linked as one unit.
    """

    def make(compiler: str, optimization: str, *options: str, target: str = "all") -> Path:
        need(compiler)
        name = "-".join([f"build-{compiler}-plain-O{optimization}", *(o.removeprefix("-D") for o in options)])
        return meson_build(
            ROOT / name.replace("=", "_"),
            f"-Dc_args=-fno-lto -O{optimization}",
            "-Dwerror=true",
            *options,
            compiler=compiler,
            target=target,
        )

    return make


#: It says when it has begun, and ends with whoever started it, even if that is killed.
BUSY = """
import os, sys
parent, cpus = int(sys.argv[1]), [int(cpu) for cpu in sys.argv[2:]]
if cpus:
    os.sched_setaffinity(0, cpus)
os.write(1, b"!")
while os.getppid() == parent:
    pass
"""


@pytest.fixture
def busy_process():
    """Function that starts a process which computes until the test is over, on the CPUs given.

    It computes when the function returns: Python, which reads files, is loaded by then.
    """
    started = []

    def start(*cpus: int) -> subprocess.Popen:
        command = [sys.executable, "-S", "-c", BUSY, str(os.getpid()), *map(str, cpus)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        with started[-1].stdout as said:
            assert said.read(1) == b"!"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
