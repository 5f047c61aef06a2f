# SPDX-License-Identifier: MIT
"""A Linux kernel with sched_ext, booted in QEMU: policies are compiled for it, checked and run.

In: jobs; policies as C.
Out: outcomes and records; what the kernel says of a policy.
Read next: host.py; boot.py.
"""
