# SPDX-License-Identifier: MIT
"""A process that runs the sandbox, on any system: no pidfd, no select() on pipes, no session.

A thread reads each of its two pipes. What runs there starts nothing of its own, so ending it
ends all of it.

Invariant: as process.py's.
Read next: wasm.py, the caller.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

from ..errors import HostError
from .process import END_SECONDS, STDOUT_BYTES_MAX, Log, Supervised


class Piped(Supervised):
    """A command that starts no other; used by one thread, ended by any. HostError: it cannot be started."""

    def __init__(self, command: list[str]):
        self.stdout = bytearray()
        self.log = Log()
        self._changed = threading.Condition()
        try:
            self._process = subprocess.Popen(
                command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise HostError(f"{command[0]} cannot be started: {error.strerror}") from error
        assert self._process.stdout and self._process.stderr
        self._readers = [
            threading.Thread(target=self._read, args=arguments, daemon=True)
            for arguments in (
                (self._process.stdout, self.stdout.extend),
                (self._process.stderr, self.log.add),
            )
        ]
        self._n_open = len(self._readers)
        for reader in self._readers:
            reader.start()

    def _read(self, stream: BinaryIO, add: Callable[[bytes], None]) -> None:
        while piece := stream.read(1 << 16):
            with self._changed:
                add(piece)
                self._changed.notify()
        with self._changed:
            self._n_open -= 1
            self._changed.notify()

    def read_until(self, is_done: Callable[[], bool], deadline: float) -> int | None:
        """Read what it prints until that is enough, or it has ended."""
        with self._changed:
            while not is_done():
                if len(self.stdout) > STDOUT_BYTES_MAX:
                    raise OSError("the answer never ends")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                if not self._n_open:
                    return self._process.wait()
                self._changed.wait(left)
        return None

    def end(self) -> None:
        """Have it ended; does not wait. From any thread."""
        self._process.kill()

    def close(self) -> None:
        """End it, wait for that, and close the pipes."""
        self.end()
        self._process.wait()
        for reader in self._readers:
            reader.join(END_SECONDS)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()
