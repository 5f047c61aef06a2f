# SPDX-License-Identifier: MIT
"""Make a long, lawful record file without a simulator, to time what reads one.

Each CPU goes round its own tasks: every slot one task blocks, the one that
blocked a slot earlier wakes, and the next in line runs. The file obeys every
rule that metrics/consistency.py checks, so both metrics and checks can be timed on it.
"""

from __future__ import annotations

import numpy as np

from schedlab.records.file import RECORD_DTYPE, Kind, Stop

SLOT_NS = 1_000_000


def round_robin_records(n_records: int, *, n_cpus: int = 4, n_tasks: int = 100) -> np.ndarray:
    """Records of tasks that run one slot, sleep one slot and wait for their turn; about `n_records`, without END.

    Slots are one millisecond. Each CPU has its own tasks: ValueError if these are not at least three for
    each, in equal numbers.
    """
    per_cpu, rest = divmod(n_tasks, n_cpus)
    if rest or per_cpu < 3:
        raise ValueError(f"n_tasks={n_tasks} must be n_cpus={n_cpus} times 3 or more")
    n_slots = max(3, (n_records - n_tasks) // (3 * n_cpus))
    arrive = np.zeros(n_tasks, RECORD_DTYPE)
    arrive["task"] = np.arange(n_tasks) + 1
    arrive["cpu"] = np.arange(n_tasks) // per_cpu
    arrive["kind"] = Kind.ARRIVE

    # Axes: slot, CPU, which of the three events.
    events = np.zeros((n_slots, n_cpus, 3), RECORD_DTYPE)
    slot = np.arange(n_slots)[:, None]
    cpu = np.arange(n_cpus)[None, :]
    events["t_ns"] = slot[:, :, None] * SLOT_NS
    events["cpu"] = cpu[:, :, None]
    first_task = cpu * per_cpu + 1
    for index, (kind, turn) in enumerate(((Kind.STOP, -1), (Kind.WAKE, -2), (Kind.RUN, 0))):
        events["kind"][:, :, index] = kind
        events["task"][:, :, index] = first_task + (slot + turn) % per_cpu
    events["flags"][:, :, 0] = Stop.BLOCKED
    events["arg"][:, :, 0] = SLOT_NS
    flat = events.reshape(-1)
    # Nobody has run before the first slot, nobody has slept before the second.
    lawful = (flat["kind"] == Kind.RUN) | (flat["t_ns"] >= SLOT_NS)
    lawful &= (flat["kind"] != Kind.WAKE) | (flat["t_ns"] >= 2 * SLOT_NS)
    cut = flat.reshape(n_slots, n_cpus, 3)[-1, :, 2].copy()
    cut["kind"], cut["flags"], cut["arg"] = Kind.STOP, Stop.HORIZON, SLOT_NS
    cut["t_ns"] += SLOT_NS
    return np.concatenate((arrive, flat[lawful], cut))
