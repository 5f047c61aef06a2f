# SPDX-License-Identifier: MIT
"""Find out whether a policy keeps the quotas of a workload's cgroups.

Under sched_ext Linux tells a policy of a quota and limits nothing itself: with a
policy that ignores it, a group has what it likes. Such a run is right, and is not what
its workload says; so it says so.

Read next: include/scx/policy/group_quota.h, which keeps them; runs/judge.py, for which a
task without a budget may wait beside an idle CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .find import own_files

if TYPE_CHECKING:
    from .build import BuiltPolicy

#: The operation without which a policy does not hear of a quota that changes.
_OPERATION = b"cgroup_set_bandwidth"


def keeps_quotas(built: BuiltPolicy) -> bool | None:
    """Whether the quotas of cgroups are kept; None where it is not known, as of a class of Linux or an object of BPF."""
    policy = built.policy
    if policy.quotas:
        return bool(built.values[policy.quotas])
    if built.loader or not policy.path.name.endswith(".bpf.c"):
        return None
    if any(_OPERATION in text for text in own_files(policy.path)[1].values()):
        return None  # what it does with them is not known
    return False


def quotas_ignored(built: BuiltPolicy) -> str:
    """Say that a policy does not keep the quotas that its workload has."""
    name, knob = built.policy.name, built.policy.quotas
    if knob:
        names = {number: word for word, number in built.policy.knobs[knob].names.items()}
        value, better = names.get(0, "0"), names.get(1, "1")
        return (
            f"under {name} with {knob}={value} the quotas of this workload's groups have no effect; "
            f"--set {name}.{knob}={better} keeps them"
        )
    return (
        f"under {name} the quotas of this workload's groups have no effect: it has no ops.{_OPERATION.decode()}, "
        "and nothing but the policy limits a group, as on Linux"
    )
