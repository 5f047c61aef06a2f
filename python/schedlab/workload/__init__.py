# SPDX-License-Identifier: MIT
"""What runs: a workload file becomes a checked `Workload`.

In: a TOML file, a textbook's CSV or a file of rt-app, and the values of its parameters.
Out: a `Workload`: every task with its arrival, attributes and phases; or all faults at once.
Read next: spec.py; then program/, which draws the random values.
"""
