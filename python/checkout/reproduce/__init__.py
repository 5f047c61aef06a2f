# SPDX-License-Identifier: MIT
"""Which of a report's conclusions hold: its figures audited, its runs done again.

In: a folder of experiments/: the report's tables, its claims, and what decides them.
Out: a verdict per claim, a page, and docs/replication.md.
Read next: steps.py; spec.py for what an experiment may ask.
"""
