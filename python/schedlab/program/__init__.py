# SPDX-License-Identifier: MIT
"""The exact work: a workload and a seed become the bytes that every host interprets.

In: a `Workload` and a seed.
Out: a `Program`, its hash and its file (include/schedlab/program.h), or a file of rt-app.
Read next: compiler.py; then hosts/, which run the file.
"""
