# SPDX-License-Identifier: MIT
"""A machine with the teaching kernel, as a test talks to it: by its console.

A test waits for a line, never for a time; `timeout_s` is only there to end a
machine that is stuck, with all that it said in the message.

Read next: test_checks.py.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time

from schedlab.hosts.kernel.boot import Machine, machine_command


class Console:
    """A running QEMU; use it in a `with` block, which ends it. No wait takes longer than `timeout_s` of this machine's time."""

    def __init__(self, machine: Machine, *, timeout_s: float = 240):
        self.timeout_s = timeout_s
        self._text = ""
        self._seen = 0
        self._has_ended = False
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            machine_command(machine), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Console:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._process.stdin.close()
        self._process.stdout.close()

    def _read(self) -> None:
        while data := self._process.stdout.read1(65536):
            with self._news:
                self._text += data.decode(errors="replace").replace("\r", "")
                self._news.notify_all()
        with self._news:
            self._has_ended = True
            self._news.notify_all()

    @property
    def text(self) -> str:
        """All that it has printed so far."""
        return self._text

    def send(self, text: str) -> None:
        """Type something; a line ends with a newline."""
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def wait_for(self, pattern: str) -> str:
        """Wait until a regular expression matches what came since the last match; returns what came, up to its end."""
        deadline = time.monotonic() + self.timeout_s
        wanted = re.compile(pattern, re.MULTILINE)
        with self._news:
            while not (match := wanted.search(self._text, self._seen)):
                left_s = deadline - time.monotonic()
                assert not self._has_ended, f"QEMU ended; {pattern!r} never came:\n{self._text}"
                assert left_s > 0, f"no {pattern!r} in {self.timeout_s} s:\n{self._text}"
                self._news.wait(left_s)
            answer = self._text[self._seen : match.end()]
            self._seen = match.end()
        return answer

    def run(self, line: str) -> str:
        """Type a command at the shell's prompt; returns what it prints until the next prompt, without the line typed."""
        self.send(line + "\n")
        answer = self.wait_for(r"^\$ \Z")
        return answer.partition("\n")[2].removesuffix("$ ")

    def wait(self) -> int:
        """Wait until the machine is off. Return: QEMU's exit status."""
        try:
            status = self._process.wait(self.timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still on after {self.timeout_s} s:\n{self._text}") from None
        self._reader.join()
        return status
