# SPDX-License-Identifier: MIT
"""What a shell may complete: names of policies and workloads, with commas between.

Read next: app.py.
"""

from __future__ import annotations


def complete_policy(incomplete: str) -> list[str]:
    """Names of policies that continue the last of those given."""
    from ..policy.find import list_policies

    before, comma, begun = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in [*list_policies(), "all"] if name.startswith(begun)]


def complete_workload(incomplete: str) -> list[str]:
    """Names of workloads that begin so."""
    from ..workload.find import workload_names

    return [name for name in workload_names() if name.startswith(incomplete)]
