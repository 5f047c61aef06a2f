# SPDX-License-Identifier: MIT
"""schedlab: write a CPU scheduler once; run, measure and compare it everywhere.

In a program or a notebook, `schedlab.run(workloads, policies, seeds=10)` returns
tables, and `schedlab.sweep` does so for many settings; see api.py.

The stages, in the order of the data: spec and program (what runs), policy (who
decides), hosts (where it runs), records (what happened), metrics and physics
(what it means), run (all of it together), api (from a program), cli (by hand).

Must stay true: importing the package imports nothing else of it, so that the
command line answers at once.
Read next: api.py; run.py, which puts the stages together.
"""

import importlib
from types import ModuleType
from typing import Any

#: What the package itself offers, and the module that has it.
_OFFERED = {
    "Result": "api",
    "Sweep": "api",
    "sweep": "api",
    "SchedlabError": "errors",
    "list_policies": "policy",
    "list_workloads": "spec",
}
__all__ = ["run", *_OFFERED]  # noqa: PLE0604, the names come from the table


class CallableModule(ModuleType):
    """The class of the module `run`, which is also the function `schedlab.run`.

    Importing `schedlab.run` makes Python put the module into the package under
    that name; a function there would work until somebody did so.
    """

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Run workloads under policies; see `schedlab.api.run`."""
        return importlib.import_module(f"{__name__}.api").run(*arguments, **options)

    def __reduce__(self) -> tuple:
        """Let an executor pickle it, as it would a function."""
        return importlib.import_module, (self.__name__,)


def __getattr__(name: str) -> Any:
    """Import what is offered when it is asked for."""
    if name == "__version__":
        from .paths import resource_root

        return (resource_root() / "VERSION").read_text(encoding="utf-8").strip()
    if name == "run":
        return importlib.import_module(f"{__name__}.run")
    if name in _OFFERED:
        return getattr(importlib.import_module(f"{__name__}.{_OFFERED[name]}"), name)
    raise AttributeError(f"module 'schedlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names for a shell that completes them."""
    return sorted({*globals(), *__all__, "__version__"})
