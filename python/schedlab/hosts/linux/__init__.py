# SPDX-License-Identifier: MIT
"""This machine's own Linux: its classes, policies loaded into it, and the recorder.

In: jobs; commands to run, load or record.
Out: outcomes and records; what the machine is.
Read next: host.py; recorder.py.
"""
