# SPDX-License-Identifier: MIT
"""Whether a task that is not run until the watchdog ends the policy is lost, or starves.

A policy may declare that others keep a task waiting. While the CPUs that it may use are idle, nobody does.
Read next: trial.py, the caller.
"""

from __future__ import annotations

import numpy as np

from ..metrics.timeline import Timeline
from ..program.file import Program
from ..records.file import Kind, Records
from ..stats.explain import stalled_task

#: An idle CPU goes idle, and now and then another task has it.
IDLE_SHARE = 0.9


def is_lost(
    text: str,
    records: Records,
    program: Program,
    *,
    limited: np.ndarray,
    may_leave_idle: bool,
    may_be_elsewhere: bool,
) -> bool:
    """Whether the task that a stall is about had an idle CPU beside it while it waited; `records` end with the stall.

    Where policies `may_leave_idle` a CPU beside a task that waits for another one, all that it may use have to be.
    Where it `may_be_elsewhere` than its mask says, or that has changed, all of the machine. `limited`, bool, shape (n_program_tasks,), says which tasks may be short
    of a quota, of which others use up what one waits for.
    """
    pid = stalled_task(text) or 0
    if not 0 < pid <= program.n_tasks:
        return False  # a thread of the policy's user half has no CPUs that it may use
    own = records.events["t_ns"][(records.events["task"] == pid) & (records.events["kind"] <= Kind.STOP)]
    if not len(own):
        return False
    begin_ns, end_ns = int(own[-1]), records.end_ns
    spans = Timeline(records).spans
    within_ns = np.minimum(spans.end_ns, end_ns) - np.maximum(spans.begin_ns, begin_ns)
    ran = np.unique(spans.task[spans.is_run & (within_ns > 0)])
    ran = ran[(ran > 0) & (ran <= program.n_tasks)]
    if limited[pid - 1] and limited[ran - 1].any():
        return False
    idle_ns = np.bincount(
        spans.cpu, np.where(spans.is_run, 0, np.maximum(within_ns, 0)), minlength=records.n_cpus
    )
    were_idle = idle_ns > IDLE_SHARE * (end_ns - begin_ns)
    if may_be_elsewhere or program.has_mask_changed[pid - 1]:
        return bool(were_idle.all())
    if program.affinity and (allowed := program.affinity[pid - 1]) is not None:
        were_idle = were_idle[[*allowed]]
    return bool(were_idle.all() if may_leave_idle else were_idle.any())
