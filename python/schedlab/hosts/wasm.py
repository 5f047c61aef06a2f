# SPDX-License-Identifier: MIT
"""The simulator as WebAssembly: for code that one does not trust, and without a C compiler.

A session is one Python process that runs `wasm_run.py`; a run is an instance of two
modules in it. What `sim` says of its records, costs and seeds holds here, byte for byte.

Read next: wasm_run.py; sim.py, whose session this one has.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..policy.wasm_build import find_tools, simulator_module, unbuildable
from .process import Supervised
from .sim import SimHost, SimSession, file_hash


class WasmHost(SimHost):
    """The simulator in a sandbox; virtual time, and the same records.

    `limits` are instructions of a callback and of a run, bytes of memory and of records; default: those of
    `wasm_run.Limits`.
    """

    name = "wasm"

    def __init__(self, limits: Sequence[int] = ()):
        self.limits = tuple(limits)

    def unavailable(self) -> str | None:
        """Why it cannot be used, or None."""
        if importlib.util.find_spec("wasmtime") is None:
            return "wasmtime is not installed: pip install 'schedlab[anywhere]', or pip install wasmtime"
        return unbuildable()

    def environment(self) -> dict[str, Any]:
        """Hash of the simulator's module, its engine, and the compiler of policies."""
        return {
            "simulator_hash": file_hash(str(simulator_module())),
            "wasmtime": version("wasmtime"),
            "wasm_compiler": find_tools().version,
        }

    def session(self, *, timeout_seconds: float) -> WasmSession:
        """Open a connection for one worker."""
        return WasmSession(timeout_seconds=timeout_seconds, limits=self.limits)


class WasmSession(SimSession):
    """One worker's process, which has one policy's module."""

    def __init__(self, *, timeout_seconds: float, limits: tuple[int, ...] = ()):
        super().__init__(timeout_seconds=timeout_seconds)
        self._limits = limits

    def _start(self, program: Path, policy: Path) -> Supervised:
        """A process that nothing of a policy can leave, so that none has to be looked for."""
        package = Path(__file__).resolve().parent.parent.parent
        code = f"import sys; sys.path.insert(0, {str(package)!r}); from schedlab.hosts.wasm_run import main; main()"
        command = [sys.executable, "-c", code, str(policy), *map(str, self._limits)]
        if not hasattr(os, "pidfd_open"):
            from .process_portable import Piped

            return Piped(command)
        return Supervised(command, has_input=True, is_supervised=False)
