# SPDX-License-Identifier: MIT
"""Commands and servers on this machine's Linux, measured, recorded and replayed.

In: a command with its classes and policies, or processes that run already.
Out: a table of samples; a recording as a run; a workload made of a recording.
Read next: bench.py; recording.py and replay.py for `schedlab record` and `replay`.
"""
