# SPDX-License-Identifier: MIT
"""The teaching kernel, in QEMU: how it is built, booted, and what it sends.

In: jobs; the sources of hosts/kernel.
Out: outcomes and records.
Read next: host.py; build.py.
"""
