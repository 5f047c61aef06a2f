# SPDX-License-Identifier: MIT
"""Grade policies of many students: in the sandbox, each on work of its own.

In: `assignment.toml`, a secret, and a C file per student.
Out: points with their reasons, as files that Gradescope, GitHub Actions and people read.
Read next: assignment.py, what a teacher writes; runs.py, what is run; decide.py, what it is worth.
"""
