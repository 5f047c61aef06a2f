# SPDX-License-Identifier: MIT
"""schedlab: write a CPU scheduler once; run, measure and compare it everywhere.

The stages, in the order of the data: spec and program (what runs), policy (who
decides), hosts (where it runs), records (what happened), metrics and physics
(what it means), run (all of it together), cli (by hand).

Must stay true: importing the package imports nothing else, so that the command
line answers at once.
Read next: run.py, which puts the stages together.
"""


def __getattr__(name: str) -> str:
    """Read `__version__` when it is asked for, from the one file that holds it."""
    if name == "__version__":
        from .paths import resource_root

        return (resource_root() / "VERSION").read_text(encoding="utf-8").strip()
    raise AttributeError(f"module 'schedlab' has no attribute {name!r}")
