# SPDX-License-Identifier: MIT
"""Which host is meant by a name, and whether it can be used here.

A host is imported when it is asked for: the command line answers at once.
Read next: sim.py, the first of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from .. import paths
from ..errors import NotFoundError, UnavailableError, did_you_mean
from ..model import Execution, Machine, given_options
from ..policy.bpf import Toolchain
from ..policy.build import BuiltPolicy, build_policy, find_compiler
from ..policy.find import Policy
from .host import Host

#: What a user may write after `--host`, and the class that drives it.
_CLASSES = {
    "sim": "SimHost", "wasm": "WasmHost", "uthreads": "UthreadsHost", "kernel": "KernelHost", "linux": "LinuxHost",
    "guest": "GuestHost",
}  # fmt: skip
HOST_NAMES = tuple(_CLASSES)
_MODULES = {name: f"{name}.host" for name in ("guest", "kernel", "linux")}
#: Those in virtual time: the simulator, natively and as WebAssembly.
VIRTUAL = ("sim", "wasm")
#: Those where one task may change another, and those where they may be in cgroups.
WITH_CHANGES, WITH_GROUPS = (*VIRTUAL, "guest"), (*VIRTUAL, "uthreads", "guest")


def host_named(name: str) -> Host:
    """Import a host's driver, and make one; `name` is of `HOST_NAMES`."""
    module = importlib.import_module(f".{_MODULES.get(name, name)}", __package__)
    host: Host = getattr(module, _CLASSES[name])()
    return host


#: Options that have a meaning on each host; a host declares all others that it has.
ON_ALL = frozenset({"cpus", "host", "scale", "timeout_seconds"})


def why_no_option(machine: Machine, execution: Execution) -> list[str]:
    """Why options cannot be given for a host: what it ignored would be believed.

    >>> why_no_option(Machine(costs={"switch_ns": 2000}), Execution(host="linux"))
    ['--cost switch_ns=2000: means nothing on --host linux; hosts that have it: sim, wasm']
    """
    if execution.host not in _CLASSES:
        return []
    found = []
    mine = ON_ALL | host_named(execution.host).options
    for name, text in given_options(machine, execution).items():
        if name not in mine:
            others = ", ".join(host for host in HOST_NAMES if name in host_named(host).options)
            found.append(f"{text}: means nothing on --host {execution.host}; hosts that have it: {others}")
    if execution.host == "guest":
        found += [
            f"--topology {part}={size}: means nothing on --host guest, which has node=N alone"
            for part, size in machine.topology.items()
            if part != "node"
        ]
    return found


def engine_of(execution: Execution) -> str:
    """How policies are to be compiled: one of `ENGINES` in policy/build.py."""
    if execution.host == "guest":
        return "bpf"
    is_asked_for = execution.is_sandboxed or execution.host == "wasm"
    return "wasm" if is_asked_for or (execution.host == "sim" and engine_here()[0] == "wasm") else "native"


def build_for(execution: Execution, policy: Policy, values: Mapping[str, int] | None = None) -> BuiltPolicy:
    """Compile a policy as a host wants it."""

    def tools() -> Toolchain:
        from .guest.build import toolchain

        return toolchain(execution.kernel)

    return build_policy(policy, values, engine=engine_of(execution), toolchain=tools)


def engine_here() -> tuple[str, str]:
    """Say how the simulator runs policies here, where nothing else is asked for.

    One of `ENGINES` in policy/build.py, and why.
    """
    missing = paths.why_unusable(paths.simulator())
    # Those of a wheel came compiled; a user's own need a compiler.
    if missing is None:
        try:
            return "native", f"the simulator's program and {find_compiler()[0]} are here"
        except UnavailableError as error:
            if paths.compiled_folder().is_dir() and unavailable_reason("wasm"):
                return "native", "the simulator's program and compiled policies are here, and no compiler"
            missing = str(error).partition(";")[0]
    reason = unavailable_reason("wasm")
    return ("wasm", missing) if reason is None else ("native", f"{missing}; nor WebAssembly: {reason}")


def unavailable_reason(name: str) -> str | None:
    """Why a host cannot be used here."""
    if name in _CLASSES:
        return host_named(name).unavailable()
    raise NotFoundError(f"unknown host '{name}'{did_you_mean(name, HOST_NAMES)}")


def open_host(name: str) -> Host:
    """Get a host that can be used here."""
    reason = unavailable_reason(name)
    if reason is not None:
        raise UnavailableError(f"host '{name}' is unavailable here: {reason}")
    return host_named(name)
