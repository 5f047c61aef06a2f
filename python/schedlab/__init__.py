# SPDX-License-Identifier: MIT
"""schedlab: write a CPU scheduler once; run, measure and compare it everywhere.

In a program or a notebook, `schedlab.run(workloads, policies, seeds=10)` returns
tables, and `schedlab.sweep` does so for many settings; see api.py.

A package per stage, in the order of the data; each imports earlier ones only:

    workload, program       what runs, and the exact work that a seed makes of it
    policy                  who decides
    records                 what happened, as it is written down
    hosts                   where it runs
    metrics, stats          what it means, and what may be concluded
    plots                   what it looks like
    runs                    all of it together; api.py is the same from a program
    report, measure         a page; commands on Linux
    check, grade            what breaks a policy; what students' policies are worth
    show, cli               by hand

Must stay true: importing the package imports nothing else of it, so that the
command line answers at once.
Read next: api.py; runs/run.py, which puts the stages together.
"""

import importlib
from typing import Any

#: What the package itself offers, and the module that has it.
_OFFERED = {
    "Result": "api",
    "Sweep": "api",
    "run": "api",
    "sweep": "api",
    "SchedlabError": "errors",
    "list_policies": "policy.find",
    "list_workloads": "workload.find",
}
__all__ = [*_OFFERED]


def __getattr__(name: str) -> Any:
    """Import what is offered when it is asked for."""
    if name == "__version__":
        from .paths import resource_root

        return (resource_root() / "VERSION").read_text(encoding="utf-8").strip()
    if name in _OFFERED:
        return getattr(importlib.import_module(f"{__name__}.{_OFFERED[name]}"), name)
    raise AttributeError(f"module 'schedlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names for a shell that completes them."""
    return sorted({*globals(), *__all__, "__version__"})
