# SPDX-License-Identifier: MIT
"""Run many worlds in one process, which is put back to its beginning after each.

        worlds -> words and programs -> schedlab-sim-check --worlds -> a line of JSON each

An answer decides nothing: it says that the policy has failed, or that the records are to be
looked at, or that there is nothing in them; see hosts/check/laws.c.

Invariant: a world that ends a process in which none was run before, or keeps one busy for
too long, has no answer; all others have theirs. A process that other causes end costs none.
Read next: trial.py, the caller; hosts/check/worlds.c, the other end.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .. import paths
from ..errors import SchedlabError
from ..hosts.process import Supervised
from ..policy.build import BuiltPolicy
from ..policy.launch_file import for_machine
from ..policy.races import Places
from .encode import program_of
from .world import World

#: CPU time that a callback may use here, in ms: a world in which one is ended so is run again, alone, with the simulator's
#: own limit.
CALLBACK_LIMIT_MS = 100
#: What is sent at once has to fit into a pipe, so that neither side waits for the other.
CHUNK_BYTES_MAX = 60_000
_SIZES = struct.Struct("<II")
Answer = dict[str, Any]


class Worlds:
    """The process with one policy, compiled for interleaved worlds where these are run; to be closed.

    `timeout_seconds` is the longest time on the wall clock for what is sent at once; `promises`, what is held
    against the policy in a world, see promises.py; `coverage`, where to note which blocks of the policy have
    run, if it is compiled so.
    """

    def __init__(
        self,
        built: BuiltPolicy,
        *,
        timeout_seconds: float,
        promises: Callable[[World], str] = lambda world: "",
        coverage: Path | None = None,
    ):
        self.built = built
        self._promises = promises
        self._coverage = coverage
        self.timeout_seconds = timeout_seconds
        self._process: Supervised | None = None
        self._places = Places(built.shared_object)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def run(self, worlds: Sequence[World], promise: str = "") -> list[Answer | None]:
        """Run worlds, all interleaved or none, each from the same beginning; None of each that got no answer.

        `promise` is one more that is looked at in each.
        """
        answers: list[Answer | None] = []
        for chunk in _chunks([self._request(world, promise) for world in worlds]):
            while chunk:
                is_new = self._process is None
                said, is_late = self._ask(chunk)
                answers += said
                chunk = chunk[len(said) :]
                if chunk:
                    self.close()
                    # What ends a process with a past may be its past, or a signal: the world is run again.
                    if is_late or (is_new and not said):
                        answers.append(None)
                        del chunk[0]
        return answers

    def _request(self, world: World, promise: str = "") -> bytes:
        """A world as the process takes it."""
        words = ["--cpus", str(world.n_cpus), "--seed", str(world.seed), "--tick-ns", str(world.tick_ns)]
        settings = dict(world.settings)
        if self.built.launch:
            parts = (part.partition("=") for part in world.topology.split(",") if part)
            sizes = {key: int(size) for key, _, size in parts}
            settings = for_machine(self.built.launch, world.n_cpus, sizes) | self.built.values | settings
        for name, value in settings.items():
            words += ["--set", f"{name}={value}"]
        if world.topology:
            words += ["--topology", world.topology]
        if world.interleaving:
            words += ["--interleave", world.interleaving]
        if events := world.machine_events:
            words += ["--events", events]
        if promises := ",".join(filter(None, [self._promises(world), promise])):
            words += ["--promise", promises]
        line, program = "\t".join(words).encode(), program_of(world)
        return _SIZES.pack(len(line), len(program)) + line + program

    def _ask(self, requests: list[bytes]) -> tuple[list[Answer], bool]:
        """The answers that come, fewer than requests where the process ends or is late; whether it is late."""
        is_late = False
        try:
            if self._process is None:
                self._process = self._start()
            process = self._process
            process.write(b"".join(requests))
            process.read_until(
                lambda: process.stdout.count(b"\n") >= len(requests), time.monotonic() + self.timeout_seconds
            )
        except TimeoutError:
            is_late = True
        except (SchedlabError, OSError):
            return [], False
        *lines, rest = bytes(process.stdout).split(b"\n")
        process.stdout[:] = rest
        process.log.take()
        return [self._read(line) for line in lines], is_late

    def _start(self) -> Supervised:
        """A process that has this policy."""
        words = [str(paths.interleaver()), "--worlds", "--policy", str(self.built.shared_object)]
        words += ["--callback-limit-ms", str(CALLBACK_LIMIT_MS)]
        if self._coverage is not None:
            words += ["--coverage", str(self._coverage)]
        if not self.built.launch:
            for name, value in self.built.values.items():
                words += ["--set", f"{name}={value}"]
        return Supervised(words, has_input=True)

    def _read(self, line: bytes) -> Answer:
        """An answer, with source lines."""
        answer: Answer = json.loads(line)
        if answer.get("error"):
            answer["error"] = self._places.in_text(answer["error"])
        return answer


def _chunks(requests: list[bytes]) -> Iterator[list[bytes]]:
    """Put requests together as far as they fit into a pipe; a larger one alone is sent, too."""
    chunk: list[bytes] = []
    n_bytes = 0
    for request in requests:
        if chunk and n_bytes + len(request) > CHUNK_BYTES_MAX:
            yield chunk
            chunk, n_bytes = [], 0
        chunk.append(request)
        n_bytes += len(request)
    if chunk:
        yield chunk
