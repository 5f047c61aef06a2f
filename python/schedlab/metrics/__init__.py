# SPDX-License-Identifier: MIT
"""What it means: the numbers of one run, and the laws that it has to obey.

In: records, or what each task counted of itself where nothing may be recorded.
Out: metrics per run and per task, each as the dictionary defines it, and what is impossible about a run.
Read next: dictionary.py; then stats/, for more than one run.
"""
