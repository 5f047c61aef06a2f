# SPDX-License-Identifier: MIT
"""Make record files and timelines out of lists of events, for tests."""

from __future__ import annotations

import numpy as np

from schedlab.metrics.timeline import Timeline
from schedlab.records.file import RECORD_DTYPE, Kind, Records


def timeline_of(events, *, n_cpus=1, end_ns=None):
    """Timeline of a list of (t_ns, task, cpu, kind, flags, arg)."""
    array = np.array([tuple(map(int, event)) for event in events], RECORD_DTYPE)
    if end_ns is None:
        end_ns = int(array["t_ns"][-1]) if len(array) else 0
    lost = int(array["arg"][array["kind"] == Kind.LOST].sum())
    return Timeline(Records(events=array, n_cpus=n_cpus, tick_ns=0, end_ns=end_ns, n_lost=lost))
