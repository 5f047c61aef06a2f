# SPDX-License-Identifier: MIT
"""A command under a policy of ours, in this machine's own kernel.

The policy is loaded for each run and unloaded after it, and gets only the tasks
of the class SCHED_EXT (`schedlab load --partial`): the command and its children,
as it is with every other class that `schedlab bench` compares.

Must stay true: no policy stays behind; a run whose policy was thrown out is none.
Read next: hosts/load.py; bench.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..errors import PolicyError, UnavailableError
from ..hosts.load import LoadedPolicy, prepare_loader, unavailable_reason
from ..policy.build import BuiltPolicy, build_policy
from ..policy.find import load_policy
from ..policy.linux_class import LinuxClass

#: Linux's number of the class that sched_ext schedules.
SCHED_EXT = 7


@dataclass(frozen=True)
class PolicyClass(LinuxClass):
    """The class SCHED_EXT, and the policy that schedules it meanwhile.

    Attributes
    ----------
    built : BuiltPolicy
        Policy and knobs.
    """

    built: BuiltPolicy | None = field(default=None, compare=False)


def parse_policy(name: str) -> PolicyClass:
    """Read a name that is no class of Linux.

    Parameters
    ----------
    name : str
        Name or file of a policy.

    Returns
    -------
    PolicyClass
        What the launcher is told, and what is loaded.

    Raises
    ------
    UnavailableError
        If this machine's kernel cannot load policies; with the remedy.
    UsageError
        If there is no such policy.
    PolicyError
        If it does not compile.
    """
    policy = load_policy(name)
    reason = unavailable_reason()
    if reason:
        raise UnavailableError(f"{name}: {reason}")
    return PolicyClass(policy.name, SCHED_EXT, built=build_policy(policy))


@contextmanager
def under(each: LinuxClass) -> Iterator[None]:
    """Have a class's policy in the kernel, where it has one.

    Parameters
    ----------
    each : LinuxClass
        Of the runs inside.

    Yields
    ------
    None
        When the kernel asks the policy.

    Raises
    ------
    PolicyError
        If the kernel refuses the policy, or has thrown it out by the end.
    """
    if not isinstance(each, PolicyClass):
        yield
        return
    with LoadedPolicy(each.built, prepare_loader(), is_partial=True) as loaded:
        if not loaded.wait_until_attached():
            raise PolicyError(f"{each.name}: the kernel refuses it:\n{loaded.close().error}")
        yield
        answer = loaded.close()
    if answer.error:
        raise PolicyError(f"{each.name}: thrown out while the command ran, which then was under "
                          f"SCHED_OTHER: {answer.error}")  # fmt: skip
