# SPDX-License-Identifier: MIT
"""Say how much CPU time others had while the tasks of a recording waited for it.

A recording of Linux shows the tasks that are traced, and as overhead of the kind
STOLEN when untraced ones had their CPUs. What these had while a traced task was
runnable and waited is missing in the recorded times, and no replay has it.

Invariant: time in which no traced task waits disturbs none.
Read next: measure/recording.py and measure/bench_record.py, the callers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..records.file import Kind, Overhead
from .timeline import Timeline

#: A recording whose tasks lost more of the CPU time that they asked for is compared with nothing.
DISTURBED_MAX = 0.10


def disturbance(timeline: Timeline, *, steal_ns: Mapping[int, int] | None = None) -> dict[str, Any]:
    """Add up what untraced tasks had of the CPUs, and what of that traced tasks waited for.

    `steal_ns` is what a hypervisor took of each CPU meanwhile, in ns. Returns `others_ns`, CPU time of
    untraced tasks on the CPUs that traced ones ran on; `lost_ns`, the part of it in which a traced task
    waited, at each moment for as many CPUs as both wait and are taken; `steal_ns` of these CPUs; `share`,
    what `lost_ns` and `steal_ns` are of all the CPU time that the traced tasks asked for.
    """
    events = timeline.records.events
    used = np.unique(events["cpu"][events["kind"] == Kind.RUN])
    taken = events[
        (events["kind"] == Kind.OVERHEAD)
        & (events["flags"] == Overhead.STOLEN)
        & np.isin(events["cpu"], used)
    ]
    stolen_ns = sum((steal_ns or {}).get(cpu, 0) for cpu in used.tolist())
    end_ns = taken["t_ns"].astype(np.int64)
    others_ns = taken["arg"].astype(np.int64)
    tasks = timeline.by_task
    lost_ns = 0
    if len(taken):
        waits = np.flatnonzero(timeline.is_runnable_after & (timeline.duration_ns > 0))
        wait_ns = tasks.t_ns[waits]
        lost_ns = _overlap((end_ns - others_ns, end_ns), (wait_ns, wait_ns + timeline.duration_ns[waits]))
    asked_ns = int(tasks.arg[tasks.kind == Kind.STOP].sum()) + lost_ns
    return {
        "others_ns": int(others_ns.sum()),
        "lost_ns": lost_ns,
        "steal_ns": stolen_ns,
        "share": min((lost_ns + stolen_ns) / asked_ns, 1.0) if asked_ns else 0.0,
    }


def _overlap(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    """Integral over time of the smaller of two counts of open intervals, each (begins, ends)."""
    changes = [(begins, 1, 0) if which else (begins, 0, 1) for which, (begins, _) in ((1, a), (0, b))]
    changes += [(ends, -1, 0) if which else (ends, 0, -1) for which, (_, ends) in ((1, a), (0, b))]
    t_ns = np.concatenate([change[0] for change in changes])
    steps = np.concatenate([np.tile(change[1:], (len(change[0]), 1)) for change in changes])
    if len(t_ns) == 0:
        return 0
    order = np.argsort(t_ns, kind="stable")
    open_now = np.cumsum(steps[order], axis=0)[:-1].min(axis=1)
    return int((open_now * np.diff(t_ns[order])).sum())


def describe_disturbance(found: dict[str, Any]) -> str | None:
    """Put it in one sentence.

    `found` is what `disturbance` returned; None where others had none of the CPUs.

    >>> describe_disturbance({"others_ns": 1_067_000_000, "lost_ns": 292_000_000, "steal_ns": 0, "share": 0.5})
    'other processes had 1067.0 ms of its CPUs, 292.0 ms of it while its tasks waited: 50.0 % of the CPU time that these asked for'
    """
    if not found["others_ns"] and not found["steal_ns"]:
        return None
    steal = f", and a hypervisor took {found['steal_ns'] / 1e6:.1f} ms" if found["steal_ns"] else ""
    return (
        f"other processes had {found['others_ns'] / 1e6:.1f} ms of its CPUs, {found['lost_ns'] / 1e6:.1f} ms of it while its "
        f"tasks waited{steal}: {100 * found['share']:.1f} % of the CPU time that these asked for"
    )


def counted_disturbance(*, busy_ns: int, own_ns: int, steal_ns: int, available_ns: int) -> dict[str, Any]:
    """What others had of the CPUs while commands ran, from the kernel's counts alone.

    Without a recording nobody knows which of it a command waited for; so it is told as a part of what the
    CPUs had to give. `busy_ns` is what all processes and interrupts had of the CPUs that the commands might
    use; `own_ns` what the commands had, those of `--background` included; `steal_ns` what a hypervisor took
    of these CPUs; `available_ns` wall time times CPUs. Returns `others_ns`, never below 0 though ticks are
    coarse; `steal_ns`, `available_ns`, and `share`, what others and the hypervisor had of the CPUs.
    """
    others_ns = max(busy_ns - own_ns, 0)
    share = min((others_ns + steal_ns) / available_ns, 1.0) if available_ns else 0.0
    return {"others_ns": others_ns, "steal_ns": steal_ns, "available_ns": available_ns, "share": share}


def describe_counted(found: dict[str, Any]) -> str:
    """Put it in one sentence.

    `found` is what `counted_disturbance` returned. It is said where others had no time, too: a reader sees
    that it was looked for.

    >>> describe_counted({"others_ns": 40_000_000, "steal_ns": 0, "available_ns": 2_000_000_000, "share": 0.02})
    'other processes had 40.0 ms of the 2000.0 ms that its CPUs had to give meanwhile: 2.0 %'
    """
    steal = f" and a hypervisor {found['steal_ns'] / 1e6:.1f} ms" if found["steal_ns"] else ""
    return (
        f"other processes had {found['others_ns'] / 1e6:.1f} ms{steal} of the {found['available_ns'] / 1e6:.1f} ms that its "
        f"CPUs had to give meanwhile: {100 * found['share']:.1f} %"
    )
