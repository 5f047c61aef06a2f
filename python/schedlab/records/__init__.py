# SPDX-License-Identifier: MIT
"""What happened: the 24-byte records of a run, read, checked and written.

In: a record file (include/schedlab/record.h), or what Linux's own tracing saw.
Out: `Records`, one array of events in the order of time.
Read next: file.py; then metrics/, which makes numbers of them.
"""
