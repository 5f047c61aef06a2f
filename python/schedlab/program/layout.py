# SPDX-License-Identifier: MIT
"""The bytes of a workload program: include/schedlab/program.h, in Python.

Constants and record types only; a test compares them with the header, so that
the two cannot drift apart.

Read next: compiler.py, which writes and reads these.
"""

from __future__ import annotations

import numpy as np

MAGIC = b"SLPROG\0\1"
#: That without groups, that of a program that has some, and that of one where a group has CPUs.
VERSION, VERSION_WITH_GROUPS, VERSION_WITH_CPUSETS = 1, 2, 3


def version_of(*, has_groups: bool, has_cpusets: bool) -> int:
    """The least that a program needs, so that older readers take what they know."""
    if has_cpusets:
        return VERSION_WITH_CPUSETS
    return VERSION_WITH_GROUPS if has_groups else VERSION


NONE = 0xFFFFFFFF
ARRIVAL_SPAWNED = 2**64 - 1

#: enum sl_verb, in order.
VERBS = (
    "exit",
    "run",
    "work",
    "sleep",
    "period",
    "read",
    "write",
    "yield",
    "lock",
    "unlock",
    "send",
    "recv",
    "barrier",
    "spawn",
    "wait",
    "set",
    "loop",
    "end",
    "await",
    "signal",
    "timer",
    "join",
    "change",
)
VERB_NUMBER = {name: number for number, name in enumerate(VERBS)}


def which_verbs(*verbs: str) -> np.ndarray:
    """Table by which an array of verbs is looked up."""
    table = np.zeros(256, bool)
    table[[VERB_NUMBER[verb] for verb in verbs]] = True
    return table


OP_TABLE, OP_SYNC, OP_DIRECT = 1, 2, 4
#: What a `change` changes, where it is no attribute.
CHANGE_AFFINITY = 15

#: enum sl_object_kind.
OBJECT_NUMBER = {"lock": 1, "pipe": 2, "barrier": 3, "condition": 4, "group": 5}
OBJECT_NAME = {number: name for name, number in OBJECT_NUMBER.items()}

#: Values of a group: parent, weight, period and quota in microseconds (enum sl_group_value); then, where a
#: group has CPUs, the place of their mask, 0 for those of the parent.
N_GROUP_VALUES, GROUP_CPUS = 4, 4


def _struct(*rows: tuple[str, str]) -> np.dtype:
    """A C structure without holes: types, each with the fields that have it, in order."""
    return np.dtype([(name, kind) for kind, names in rows for name in names.split()])


HEADER_DTYPE = _struct(
    ("S8", "magic"),
    ("<u4", "version header_bytes"),
    ("<u8", "total_bytes seed horizon_ns"),
    ("<u4", "nr_tasks nr_ops nr_objects nr_values strings_bytes nr_cpus_min"),
    ("<u8", "tasks_off ops_off objects_off values_off strings_off"),
    ("<u4", "name flags"),
)
TASK_DTYPE = _struct(
    ("<u8", "arrival_ns deadline_ns burst_ns"),
    ("<u4", "name class_idx parent op_first nr_ops affinity affinity_words attr_given"),
    ("<i4", "nice priority"),
    ("<u4", "tickets"),
    ("<i4", "credits"),
    ("<u4", "cap_percent group weight group_object"),
)
OP_DTYPE = np.dtype([("verb", "u1"), ("flags", "u1"), ("slot", "<u2"), ("a", "<u4"), ("b", "<u8")])
OBJECT_DTYPE = np.dtype([("kind", "<u4"), ("name", "<u4"), ("param", "<u8")])

#: Field of a task for each attribute; nice is written as weight too.
ATTRIBUTE_FIELD = {
    "priority": "priority",
    "tickets": "tickets",
    "credits": "credits",
    "cap": "cap_percent",
    "group": "group",
    "deadline": "deadline_ns",
    "burst": "burst_ns",
    "weight": "weight",
    "nice": "nice",
}

#: Load weight of each nice value from -20 to 19 in Linux, where 1,024 is nice 0
#: and each step is a quarter more or less.
_WEIGHTS = """
    88761 71755 56483 46273 36291 29154 23254 18705 14949 11916
     9548  7620  6100  4904  3906  3121  2501  1991  1586  1277
     1024   820   655   526   423   335   272   215   172   137
      110    87    70    56    45    36    29    23    18    15
"""
NICE_WEIGHTS = tuple(map(int, _WEIGHTS.split()))


#: The kernel's priority of nice 0, and the first that is not real-time.
PRIORITY_NICE_0, PRIORITY_FAIR = 120, 100


def weight_of_nice(nice: int) -> int:
    """Weight that sched_ext shows for a nice value.

    >>> weight_of_nice(0), weight_of_nice(-20), weight_of_nice(19)
    (100, 8668, 1)
    """
    scaled = (NICE_WEIGHTS[nice + 20] * 100 + 512) // 1024
    return min(max(scaled, 1), 10_000)


def nice_of(priority: int) -> int:
    """Nice value of the kernel's priority.

    >>> nice_of(120), nice_of(139), nice_of(89)
    (0, 19, 0)
    """
    return min(priority - PRIORITY_NICE_0, 19) if priority >= PRIORITY_FAIR else 0


def weight_of_priority(priority: int) -> int:
    """Weight of a task of Linux, by the kernel's priority as `nice_of` has it."""
    return weight_of_nice(nice_of(priority))
