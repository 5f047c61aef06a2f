# SPDX-License-Identifier: MIT
"""Look at this machine: what works, what does not, and how to get it.

Read next: app.py, which prints the findings.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from .. import paths
from ..errors import SchedlabError, UnavailableError
from ..hosts.choose import HOST_NAMES, engine_here, unavailable_reason
from ..hosts.linux.recorder import probe, program
from ..policy.bpf import second_opinion_compiler
from ..policy.build import find_compiler


def examine() -> list[dict[str, Any]]:
    """Check everything that a command may need.

    Each has `name`, `status` (`"ok"` or `"missing"`), `detail` (what was found, or the reason and the hint)
    and `needed`: whether the simulator, and so the main job, needs it.
    """
    findings = [_finding("files of schedlab", lambda: str(paths.resource_root()), needed=True)]
    if findings[0]["status"] != "ok":
        return findings
    # Where policies came compiled, only a user's own need it.
    is_needed = not paths.compiled_folder().is_dir() and engine_here()[0] == "native"
    findings.append(_finding("C compiler", lambda: " at ".join(reversed(find_compiler())), needed=is_needed))
    findings.append(_finding("clang for BPF", second_opinion_compiler, needed=False))
    findings.append(_finding("cache", lambda: str(paths.cache_folder("policies")), needed=False))
    engine, why = engine_here()
    detail = f"{engine}: {why}" if engine == "native" else f"WebAssembly, since {why}"
    is_usable = engine == "native" and paths.why_unusable(paths.simulator()) is None
    findings.append(
        {
            "name": "engine of sim",
            "status": "ok" if is_usable or engine == "wasm" else "missing",
            "detail": detail,
            "needed": True,
        }
    )
    for host in HOST_NAMES:
        reason = unavailable_reason(host)
        findings.append(
            {
                "name": f"host {host}",
                "status": "ok" if reason is None else "missing",
                "detail": reason or _host_detail(host),
                "needed": host == "sim" and engine == "native",
            }
        )
    findings.append(_finding("recorder", program, needed=False))
    for part, what in _RECORDING.items():
        findings.append(_finding(f"recording: {part}", partial(_allowed, part, what), needed=False))
    findings.append(
        {
            "name": "machine",
            "status": "ok",
            "detail": f"{os.cpu_count()} CPUs, Python {sys.version.split()[0]}",
            "needed": False,
        }
    )
    return findings


#: What `schedlab record` needs of the kernel.
_RECORDING = {
    "tracefs": "its events' numbers can be read",
    "perf_event_open": "the scheduler's events of whole CPUs can be recorded",
}


def _allowed(part: str, what: str) -> str:
    """What this user may do; raises with the reason and the hint."""
    reason = probe()[part]
    if reason is not None:
        raise UnavailableError(reason)
    return what


def _finding(name: str, look: Callable[[], str | None], *, needed: bool) -> dict[str, Any]:
    """One finding of a look that raises when something is missing."""
    try:
        return {"name": name, "status": "ok", "detail": look(), "needed": needed}
    except SchedlabError as error:
        return {"name": name, "status": "missing", "detail": str(error), "needed": needed}


def _host_detail(host: str) -> str:
    """Where a host that works was found."""
    if host == "kernel":
        from ..hosts.kernel.boot import qemu_version

        return qemu_version()
    return str(paths.simulator()) if host == "sim" else "ready"
