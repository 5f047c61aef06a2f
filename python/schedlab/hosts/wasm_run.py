# SPDX-License-Identifier: MIT
"""Run a simulation whose simulator and policy are WebAssembly modules.

        schedlab-sim.wasm   memory, table, kfuncs        <- imports: create, write, symbol, error_text
        NAME.wasm           callbacks, variables, counts <- imports: memory, table, kfuncs

The simulator imports those four functions of this file and nothing else, and the policy
only what the simulator exports: neither can open a file, read a clock, start anything or
reach the network. Both are instantiated anew for each run, so that each starts from
pristine data. A trap ends the run; the simulator then says what was going on.

    python -m schedlab.hosts.wasm_run POLICY.wasm

answers requests on its standard input as `schedlab-sim --serve` does.

Invariant: two runs of the same request are equal to the instruction, also where they end
by a limit. wasmtime's version has no part in it, but for how deep a stack may be.
Read next: policy/wasm_build.py, which makes the modules; hosts/sim/wasm.c; wasm.py.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import json
import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wasmtime

from .. import paths
from ..files import write_bytes
from ..policy.wasm_build import TABLE_BASE, simulator_module
from ..policy.wasm_file import FUNC_KIND, Module, read_module
from ..policy.wasm_meter import CALLBACK_LIMIT, COUNTS, FUEL, RUN_LEFT

#: Native policies have 2 s of CPU time per callback; this is somewhat less.
CALLBACK_FUEL = 10**9
RUN_FUEL = 10**12
MEMORY_BYTES = 1 << 30
RECORDS_BYTES = 1 << 36
#: Of the simulator's table, free for functions that are called by name.
SPARE_SLOTS = 64
#: Of WebAssembly.
PAGE_BYTES = 65536
STREAM_RECORDS, STREAM_RESULT, STREAM_LOG = range(3)
_EFBIG = 27
#: What Linux would have said of the same, in hosts/sim/posix.c's words.
_WHAT = {
    wasmtime.TrapCode.STACK_OVERFLOW: "accessed invalid memory",
    wasmtime.TrapCode.MEMORY_OUT_OF_BOUNDS: "accessed invalid memory",
    wasmtime.TrapCode.TABLE_OUT_OF_BOUNDS: "accessed invalid memory",
    wasmtime.TrapCode.INDIRECT_CALL_TO_NULL: "accessed invalid memory",
    wasmtime.TrapCode.BAD_SIGNATURE: "has a function of another type than is called, which happened",
    wasmtime.TrapCode.INTEGER_OVERFLOW: "divided by zero",
    wasmtime.TrapCode.INTEGER_DIVISION_BY_ZERO: "divided by zero",
}
_TRAPPED = "used an index outside of its array, or reached another trap,"


@dataclass(frozen=True)
class Limits:
    """What a run may use."""

    #: `callback_fuel`, `run_fuel`: Instructions of the policy's own code.
    callback_fuel: int = CALLBACK_FUEL
    run_fuel: int = RUN_FUEL
    memory_bytes: int = MEMORY_BYTES  #: Memory of simulator and policy together.
    records_bytes: int = RECORDS_BYTES  #: What a run may write: a policy that preempts for ever fills a disk.


class Engine:
    """Compiled modules of one simulator and one policy. `policy` is what `compile_wasm` has made."""

    def __init__(self, policy: Path):
        config = wasmtime.Config()
        config.cranelift_opt_level = "speed"
        self._engine = wasmtime.Engine(config)
        self.simulator = self._load(simulator_module())
        self.policy = wasmtime.Module.from_file(self._engine, str(policy))
        self.parts = read_module(policy)

    def _load(self, path: Path) -> wasmtime.Module:
        """The simulator, compiled ahead of time: that takes a third of a second, once."""
        key = hashlib.sha256(path.read_bytes() + version("wasmtime").encode()).hexdigest()[:32]
        compiled = paths.cache_folder("wasm") / f"schedlab-sim-{key}.cwasm"
        try:
            return wasmtime.Module.deserialize_file(self._engine, str(compiled))
        except wasmtime.WasmtimeError:
            # Not there, or of another processor or version.
            module = wasmtime.Module.from_file(self._engine, str(path))
        write_bytes(compiled, module.serialize())
        return module

    def run(self, request: str, limits: Limits | None = None) -> Run:
        """Do one run."""
        run = Run(self, wasmtime.Store(self._engine), limits or Limits())
        run.do(request)
        return run


class Run:
    """One run: an instance of each module, and what they say.

    `answer` is what the simulator printed, with `policy_cost`, instructions by callback; `log` what the
    policy printed.
    """

    def __init__(self, engine: Engine, store: wasmtime.Store, limits: Limits):
        self.answer: dict[str, Any] = {}
        self.log = bytearray()
        self._result = bytearray()
        self._records: int | None = None
        self._store = store
        self._limits = limits
        self._records_left = limits.records_bytes
        self._parts: Module = engine.parts
        store.set_limits(memory_size=limits.memory_bytes)
        i32 = wasmtime.ValType.i32()
        offered = {
            "create": wasmtime.Func(store, wasmtime.FuncType([i32], [i32]), self._create),
            "write": wasmtime.Func(store, wasmtime.FuncType([i32] * 3, [i32]), self._write),
            "symbol": wasmtime.Func(store, wasmtime.FuncType([i32] * 2, [i32]), self._symbol),
            "error_text": wasmtime.Func(store, wasmtime.FuncType([i32] * 3, []), self._error_text),
        }
        simulator = wasmtime.Instance(
            store, engine.simulator, [offered[i.name] for i in engine.simulator.imports]
        )
        self._simulator = simulator.exports(store)
        self._memory = self._simulator["memory"]
        table = self._simulator["__indirect_function_table"]
        self._next_slot = max(
            [
                TABLE_BASE,
                *(
                    minimum
                    for _, what, _, minimum in self._parts.imports
                    if what == "__indirect_function_table"
                ),
            ]
        )
        table.grow(store, self._next_slot + SPARE_SLOTS - table.size(store), None)
        self._table = table
        self._guard_null()
        self._policy = wasmtime.Instance(
            store, engine.policy, [self._simulator[i.name] for i in engine.policy.imports]
        ).exports(store)

    def _guard_null(self) -> None:
        """Take the first page away, as a process has none: the engine sees a signal there as a trap.

        Where the system has no such call, clang's check for NULL remains (wasm_build.py).
        """
        protect = getattr(ctypes.CDLL(None), "mprotect", None) if os.name == "posix" else None
        if protect is not None:
            start = ctypes.cast(self._memory.data_ptr(self._store), ctypes.c_void_p)
            protect(start, ctypes.c_size_t(PAGE_BYTES), 0)

    # ---- what the simulator may call ----------------------------------------

    def _text(self, address: int) -> str:
        """A string of the simulator's, at most 4 KiB of it."""
        data = bytes(
            self._memory.read(self._store, address, min(address + 4096, self._memory.data_len(self._store)))
        )
        return data.partition(b"\0")[0].decode("utf-8", "replace")

    def _create(self, _path: int) -> int:
        # The name is the caller's own: it is not asked again from within the sandbox.
        try:
            # What Windows opens is text without O_BINARY, and is not inherited anyway.
            more = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
            self._records = os.open(self._records_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | more, 0o644)
        except OSError as error:
            return -(error.errno or 5)
        return 0

    def _write(self, stream: int, address: int, n: int) -> int:
        data = self._memory.read(self._store, address & 0xFFFFFFFF, (address & 0xFFFFFFFF) + (n & 0xFFFFFFFF))
        if stream == STREAM_LOG:
            sys.stderr.buffer.write(data)
            sys.stderr.buffer.flush()
        elif stream == STREAM_RESULT:
            self._result += data
        elif self._records is not None:
            self._records_left -= len(data)
            if self._records_left < 0:
                return -_EFBIG
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._records, view) :]
            except OSError as error:
                return -(error.errno or 5)
        return 0

    def _symbol(self, name: int, size: int) -> int:
        wanted = self._text(name)
        address = self._parts.address(wanted)
        self._memory.write(self._store, self._parts.sizes.get(wanted, 0).to_bytes(4, "little"), size)
        if address is not None:
            return address
        if self._parts.exports.get(wanted, (None, 0))[0] != FUNC_KIND or self._next_slot >= self._table.size(
            self._store
        ):
            return 0
        self._table.set(self._store, self._next_slot, self._policy[wanted])
        self._next_slot += 1
        return self._next_slot - 1

    def _error_text(self, error: int, to: int, size: int) -> None:
        text = os.strerror(error).encode()[: size - 1] + b"\0"
        self._memory.write(self._store, text, to)

    # ---- a run ---------------------------------------------------------------

    def _put(self, data: bytes) -> int:
        """Some bytes in the simulator's memory."""
        address = self._simulator["sim_wasm_room"](self._store, len(data))
        self._memory.write(self._store, data, address & 0xFFFFFFFF)
        return address

    def do(self, request: str) -> None:
        """Run it to its end, whatever that is."""
        words = request.split("\t")
        values = dict(itertools.pairwise(words))
        self._records_path = values.get("--records", "")
        try:
            program = Path(values.get("--program", "")).read_bytes()
        except OSError as error:
            self.answer = _failed("usage", f"program {values.get('--program')}: {error.strerror}")
            return
        store, simulator = self._store, self._simulator
        simulator["sim_wasm_program"](store, self._put(program), len(program))
        arguments = self._put(request.encode() + b"\0")
        kinds = {kind: self._put(kind.encode() + b"\0") for kind in ("crash", "spin")}
        what = self._put(bytes(256))
        self._set_hz(int(values.get("--tick-ns", "1000000")))
        self._policy[RUN_LEFT].set_value(store, self._limits.run_fuel)
        self._policy[CALLBACK_LIMIT].set_value(store, self._limits.callback_fuel)
        stack = simulator["__stack_pointer"]
        top = stack.value(store)
        try:
            simulator["sim_wasm_run"](store, arguments)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as trap:
            kind, text = self._reason(trap)
            try:
                stack.set_value(store, top)
                self._memory.write(store, text.encode()[:255] + b"\0", what)
                simulator["sim_wasm_trapped"](store, kinds[kind], what)
            except (wasmtime.Trap, wasmtime.WasmtimeError):
                self._result[:] = b""
                self.answer = _failed(
                    "crash", f"the policy {text} and has damaged what the simulator would say of it"
                )
        finally:
            if self._records is not None:
                os.close(self._records)
        if self._result:
            self.answer = json.loads(self._result)
            self.answer["policy_cost"] = self.cost()

    def _set_hz(self, tick_ns: int) -> None:
        """CONFIG_HZ, which a policy has as its own variable."""
        address = self._parts.address("CONFIG_HZ")
        if address is not None:
            self._memory.write(self._store, max(1, 10**9 // tick_ns).to_bytes(8, "little"), address)

    def _reason(self, trap: Exception) -> tuple[str, str]:
        """Kind and words of the report about a trap."""
        if self._policy[FUEL].value(self._store) < 0:
            if self._policy[RUN_LEFT].value(self._store) < self._limits.callback_fuel:
                return "spin", f"has used the {self._limits.run_fuel} instructions of a run"
            return "spin", "did not return"
        code = trap.trap_code if isinstance(trap, wasmtime.Trap) else None
        return "crash", _WHAT.get(code, _TRAPPED)

    def cost(self) -> dict[str, dict[str, int]]:
        """Instructions of the policy's own code by callback: how often, in all, and at most."""
        made: dict[str, dict[str, int]] = {}
        for export in self._parts.exports:
            owner, _, rest = export.partition(".")
            what, _, callback = rest.partition(".")
            if owner == "schedlab" and what in COUNTS:
                made.setdefault(callback, {})[what] = self._policy[export].value(self._store)
        return {callback: counts for callback, counts in sorted(made.items()) if counts["calls"]}


def _failed(kind: str, why: str) -> dict[str, Any]:
    """An answer about what never became a run."""
    return {"id": None, "status": "failed", "error": why, "error_kind": kind, "task": None, "cpus": []}


def main() -> None:
    """Answer requests: a line in, a line out."""
    engine = failure = None
    try:
        engine = Engine(Path(sys.argv[1]))
    except Exception as error:
        failure = f"policy {sys.argv[1]}: {error}"
    limits = Limits(*(int(word) for word in sys.argv[2:6]))
    for line in sys.stdin:
        request = line.rstrip("\n")
        if not request:
            continue
        if engine is None:
            answer = _failed("policy", failure or "")
        else:
            try:
                answer = engine.run(request, limits).answer
            except wasmtime.WasmtimeError as error:
                answer = _failed("policy", f"the policy cannot be loaded: {error}")
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
