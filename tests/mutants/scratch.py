# SPDX-License-Identifier: MIT
"""A copy of the checkout in which mutants are tried, one after the other.

The copy is built once, for a quick build and not for speed; a mutant rebuilds the
object of its file. Invariant: the checkout itself is never written to, and a call of
pytest that fails without any mutant tries none.

Read next: test_mutants.py.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

#: Many a mutant never ends: it has so many times the CPU time and the time that the
#: tests take without it, and so many seconds more.
TIMES_MAX, CPU_SECONDS_MORE, SECONDS_MORE = 2, 3, 300
#: A mutant may allocate for ever. Sanitizers reserve more than any machine has.
KIB_MAX = 6 << 20
#: What the copy has otherwise: (file, text, text in the copy).
_LOOSENED = (
    ("meson.build", "subdir('hosts/linux')\n", ""),
    ("meson.build", "subdir('hosts/uthreads')\n", ""),
    ("meson.build", "'optimization=2'", "'optimization=1'"),
    ("hosts/sim/meson.build", "  override_options: ['b_lto=true', 'optimization=3'],\n", ""),
    # A mutant that the compiler warns of is tried all the same.
    ("tests/core/core_programs.py", '"-Werror", ', ""),
    # That a mutant is killed is all that is asked, and not by the smallest example.
    ("tests/conftest.py", "print_blob=True", "print_blob=True, phases=list(hypothesis.Phase)[:3]"),
)


@dataclass(frozen=True)
class Outcome:
    """What became of a call of pytest."""

    result: str  #: `"passed"`, `"failed"`, `"slow"` or `"unbuilt"`.
    stdout: str = ""  #: What pytest printed.

    @property
    def killer(self) -> str:
        """Name of the first test that failed; "" where none is named."""
        for line in self.stdout.splitlines():
            if line.startswith(("FAILED ", "ERROR ")):
                return line.split(" - ")[0].split(" ", 1)[1].strip()
        return ""


class Scratch:
    """The copy of a checkout, in a new folder; copies may share `sound`, the limits of calls that pass without a mutant."""

    def __init__(self, root: Path, folder: Path, sound: dict):
        self.folder = folder
        self._sound = sound
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for name in filter(None, listed.split("\0")):
            source, target = root / name, folder / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        for name, old, new in _LOOSENED:
            path = folder / name
            text = path.read_text()
            assert old in text, f"{name} has no {old!r} any more: change it in {__file__}, too"
            path.write_text(text.replace(old, new))
        # Else sources of one length and second would share their compiled form.
        by_hash = ["compileall", "-q", "--invalidation-mode", "checked-hash", "python"]
        subprocess.run([sys.executable, "-m", *by_hash], cwd=folder, check=True)
        self.environment = dict(
            os.environ, PYTHONPATH=str(folder / "python"), CI="1", SCHEDLAB_ROOT=str(folder)
        )

    def run(self, tests: list[str], cpu_seconds_max: float = 600, seconds_max: float = 1200) -> Outcome:
        """Run tests in the copy, until the first fails, or takes longer; that there were none is a RuntimeError."""
        limits = f"ulimit -S -t {int(cpu_seconds_max) + 1}"
        if not any("tests/core" in word for word in tests):
            limits += f"; ulimit -S -v {KIB_MAX}"
        command = [
            "sh", "-c", f'{limits}; exec "$@"', "sh",
            sys.executable, "-m", "pytest", "-q", "-x", "--tb=line", "-p", "no:cacheprovider", *tests,
        ]  # fmt: skip
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            text=True,
            errors="replace",
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            stdout, _ = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Outcome("slow", process.communicate()[0])
        except BaseException:
            # Ctrl-C reaches this session only, and the tests are in their own.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if process.returncode == 0:
            return Outcome("passed", stdout)
        if process.returncode in (4, 5):
            raise RuntimeError(f"no tests: {' '.join(command)}\n{stdout}")
        if process.returncode == -signal.SIGXCPU:
            return Outcome("slow", stdout)
        return Outcome("unbuilt" if "ninja: build stopped" in stdout else "failed", stdout)

    def limits(self, tests: list[str]) -> tuple[float, float]:
        """CPU time and time that tests may take with a mutant, from what they take without; in seconds."""
        key = tuple(tests)
        if key not in self._sound:
            start_s, start = time.monotonic(), os.times()
            outcome = self.run(tests)
            if outcome.result != "passed":
                raise RuntimeError(f"fails without a mutant: {' '.join(tests)}\n{outcome.stdout}")
            end = os.times()
            cpu_s = end.children_user + end.children_system - start.children_user - start.children_system
            self._sound[key] = (
                TIMES_MAX * cpu_s + CPU_SECONDS_MORE,
                TIMES_MAX * (time.monotonic() - start_s) + SECONDS_MORE,
            )
        return self._sound[key]

    def attempt(self, file: str, text: str, calls: list[list[str]]) -> Outcome:
        """Run calls of pytest with another text of a file, until one does not pass."""
        path = self.folder / file
        original = path.read_text()
        outcome = Outcome("passed")
        for tests in calls:
            limits = self.limits(tests)
            try:
                path.write_text(text)
                outcome = self.run(tests, *limits)
            finally:
                path.write_text(original)
            if outcome.result != "passed":
                break
        return outcome
