# SPDX-License-Identifier: MIT
"""A policy of ours as a class of Linux: what runs under it in this machine's own kernel.

The policy is loaded for each run and unloaded after it, and gets only the tasks
of the class SCHED_EXT (`schedlab load --partial`): a command or a workload and its
children, as it is with every other class.

Must stay true: no policy stays behind; a run whose policy was thrown out is none.
Read next: load.py; host.py and measure/bench.py, which run something under it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...errors import PolicyError, UnavailableError
from ...policy.build import BuiltPolicy, build_policy
from ...policy.find import load_policy
from ...policy.linux_class import LinuxClass
from ..guest.build import toolchain
from ..guest.frames import Answer
from ..guest.verify import reason_of
from .load import LoadedPolicy, prepare_loader, unavailable_reason

#: Linux's number of the class that sched_ext schedules.
SCHED_EXT = 7


@dataclass(frozen=True)
class PolicyClass(LinuxClass):
    """The class SCHED_EXT, and the policy that schedules it meanwhile."""

    built: BuiltPolicy | None = field(default=None, compare=False)  #: Policy and knobs.

    @property
    def has_weights(self) -> bool:
        """They reach the policy as `p->scx.weight`."""
        return True


class ThrownOutError(PolicyError):
    """The kernel refused a policy, or threw it out. `kind` is the `error_kind` of a run."""

    def __init__(self, message: str, kind: str):
        super().__init__(message)
        self.kind = kind


def class_of(built: BuiltPolicy) -> PolicyClass:
    """Make a class of a policy."""
    return PolicyClass(built.policy.name, SCHED_EXT, built=built)


def refuse_policies(name: str) -> None:
    """Refuse a policy where this machine's kernel cannot load any."""
    reason = unavailable_reason()
    if reason:
        raise UnavailableError(f"{name}: {reason}")


def parse_policy(name: str) -> PolicyClass:
    """Read a name that is no class of Linux."""
    policy = load_policy(name)
    refuse_policies(name)
    return class_of(build_policy(policy, engine="bpf", toolchain=toolchain))


@contextmanager
def under(each: LinuxClass) -> Iterator[Answer | None]:
    """Have a class's policy in the kernel, where it has one."""
    if not isinstance(each, PolicyClass):
        yield None
        return
    assert each.built is not None, "only a parsed name has none"
    with LoadedPolicy(each.built, prepare_loader(), is_partial=True) as loaded:
        if not loaded.wait_until_attached():
            why = reason_of(loaded.close().error or "")
            raise ThrownOutError(f"{each.name}: the kernel refuses it:\n{why}", "policy")
        yield loaded.answer
        answer = loaded.close()
    if answer.error:
        raise ThrownOutError(
            f"{each.name}: thrown out while it had tasks, which then were under SCHED_OTHER: {answer.error}",
            answer.error_kind or "policy",
        )
