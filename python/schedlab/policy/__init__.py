# SPDX-License-Identifier: MIT
"""Who decides: a policy by its name, compiled, or a class of Linux's own.

In: what follows `--policy` and `--set`.
Out: a `Policy` with its knobs, and the shared object that the simulator loads.
Read next: find.py; then hosts/, where it runs.
"""
