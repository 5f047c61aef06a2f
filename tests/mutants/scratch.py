# SPDX-License-Identifier: MIT
"""A copy of the checkout in which mutants are tried, one after the other.

The copy is built once; a mutant rebuilds what depends on its file. Invariant: the
checkout itself is never written to, and a copy in which the tests fail without any
mutant tries none.

Read next: test_mutants.py.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

#: Statement removed, condition negated: many a mutant never ends.
SECONDS_MAX = 400


class Scratch:
    """The copy.

    Parameters
    ----------
    root : pathlib.Path
        The checkout.
    folder : pathlib.Path
        Where the copy goes; must not exist.
    """

    def __init__(self, root: Path, folder: Path):
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        for name in filter(None, listed.split("\0")):
            source, target = root / name, folder / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        # Sources of one length and second would share their compiled form.
        self.environment = dict(
            os.environ, PYTHONPATH=str(folder / "python"), PYTHONDONTWRITEBYTECODE="1", CI="1",
            SCHEDLAB_ROOT=str(folder),
        )  # fmt: skip

    def run(self, tests: list[str], seconds_max: float = SECONDS_MAX) -> tuple[str, str]:
        """Run tests in the copy.

        Parameters
        ----------
        tests : list of str
            Arguments for pytest.
        seconds_max : float
            After which the tests are killed.

        Returns
        -------
        tuple of str
            `"passed"`, `"failed"`, `"slow"` or `"unbuilt"`, and what pytest printed.

        Raises
        ------
        RuntimeError
            If pytest ran no test.
        """
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "slow", process.communicate()[0]
        except BaseException:
            # Ctrl-C reaches this session only, and the tests are in their own.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if process.returncode == 0:
            return "passed", said
        if process.returncode in (4, 5):
            raise RuntimeError(f"no tests: {' '.join(command)}\n{said}")
        is_unbuilt = "ninja: build stopped" in said
        return ("unbuilt" if is_unbuilt else "failed"), said

    def attempt(self, file: str, text: str, tests: list[list[str]]) -> tuple[str, str]:
        """Run the tests with another text of a file.

        Parameters
        ----------
        file : str
            Relative to the checkout.
        text : str
            What it is to contain meanwhile.
        tests : list of list of str
            Several calls of pytest; the first that does not pass ends it.

        Returns
        -------
        tuple of str
            As `run`; of the last call.
        """
        path = self.folder / file
        original = path.read_text()
        try:
            path.write_text(text)
            result = ("passed", "")
            for arguments in tests:
                result = self.run(arguments)
                if result[0] != "passed":
                    break
        finally:
            path.write_text(original)
        return result


def killer_of(said: str) -> str:
    """Name the first test that failed, from what pytest printed."""
    for line in said.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" - ")[0].split(" ", 1)[1].strip()
    return ""
