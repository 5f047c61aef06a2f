# SPDX-License-Identifier: MIT
"""All of it together: workloads under policies, seed by seed, and their comparison.

In: a `Plan`: workloads, policies, seeds, host, CPUs.
Out: a folder per run, verdicts, comparisons; `schedlab compare`'s exit code.
Read next: run.py; then case.py, a single run.
"""
