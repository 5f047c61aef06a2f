# SPDX-License-Identifier: MIT
"""Write a run for other tools: Perfetto, ftrace text, CSV.

The Perfetto file carries real ftrace events, so its viewer shows what it shows
for Linux: a row per CPU, every task's state, runnable counts. Times start at
zero, in nanoseconds.

Must stay true: what is exported can be read back, and says what the records say.
Read next: perfetto.py, the binary one; switches.py, where the events come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import UsageError, did_you_mean
from ..records.file import Kind, Records
from .perfetto import perfetto_trace
from .switches import PRIO, STATE_OF_STOP, Switch, Wakeup, linux_events, task_names

FORMATS = ("perfetto", "ftrace", "csv")


def write_trace(records: Records, path: Path, *, names: Mapping[int, str], form: str = "perfetto") -> int:
    """Write a run to a file."""
    writers = {"perfetto": perfetto_trace, "ftrace": _ftrace_text, "csv": _csv}
    if form not in writers:
        raise UsageError(
            f"unknown trace format {form!r}{did_you_mean(form, FORMATS)}; known: {', '.join(FORMATS)}"
        )
    data = writers[form](records, names)
    Path(path).write_bytes(data)
    return len(data)


def _csv(records: Records, names: Mapping[int, str]) -> bytes:
    """One line per record."""
    lines = ["t_ns,kind,task,name,cpu,flags,arg"]
    for t_ns, task, cpu, kind, flags, arg in records.events[
        ["t_ns", "task", "cpu", "kind", "flags", "arg"]
    ].tolist():
        name = task_names(names, task, cpu).replace('"', "_").replace(",", "_")
        lines.append(f"{t_ns},{Kind(kind).name},{task},{name},{cpu},{flags},{arg}")
    return ("\n".join(lines) + "\n").encode()


def _seconds(t_ns: int) -> str:
    """Seconds with nine places: nothing of a nanosecond is lost."""
    return f"{t_ns // 10**9}.{t_ns % 10**9:09d}"


def _ftrace_text(records: Records, names: Mapping[int, str]) -> bytes:
    """Text of `/sys/kernel/tracing/trace`, as trace-cmd and Perfetto read it."""
    lines = ["# tracer: nop", "#"]
    running = [0] * records.n_cpus
    for event in linux_events(records):
        cpu = event.cpu
        if isinstance(event, Switch):
            state = "R" if event.stop is None else STATE_OF_STOP[event.stop][0]
            what = (
                f"sched_switch: prev_comm={task_names(names, event.prev, cpu)} prev_pid={event.prev} "
                f"prev_prio={PRIO} prev_state={state} ==> "
                f"next_comm={task_names(names, event.next, cpu)} next_pid={event.next} next_prio={PRIO}"
            )
            by = event.prev
            running[cpu] = event.next
        elif isinstance(event, Wakeup):
            name = "sched_wakeup_new" if event.is_new else "sched_waking"
            what = f"{name}: comm={task_names(names, event.pid)} pid={event.pid} prio={PRIO} target_cpu={cpu:03d}"
            by = event.waker
        else:
            what = f"bpf_trace_printk: schedlab-note {event.key} {event.value}"
            by = running[cpu]
        who = f"{task_names(names, by, cpu)}-{by}"
        lines.append(f"{who:>24} [{cpu:03d}] d..2. {_seconds(event.t_ns)}: {what}")
    return ("\n".join(lines) + "\n").encode()
