# SPDX-License-Identifier: MIT
"""Where it runs: the simulator, user threads, the teaching kernel, Linux and a guest.

In: a `Job`: a compiled policy, a program, a number of CPUs.
Out: an `Outcome`, and the record file that the host has written.
Read next: host.py, the contract; then sim.py, the first host.
"""
