# SPDX-License-Identifier: MIT
"""What may be concluded: intervals, tests, warnings, and the sentences that say so.

In: one number per run, paired by seed.
Out: intervals, p-values and effect sizes, warnings about the samples, text for people.
Read next: inference.py; then runs/compare.py, which asks.
"""
