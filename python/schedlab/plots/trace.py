# SPDX-License-Identifier: MIT
"""Write a run for other tools: Perfetto, ftrace text, CSV.

The Perfetto file carries real ftrace events, so its viewer shows what it shows
for Linux: a row per CPU, every task's state, runnable counts. Times start at
zero, in nanoseconds.

Must stay true: what is exported can be read back, and says what the records say.
Read next: switches.py, where the events come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import UnavailableError, UsageError, did_you_mean
from ..records.file import Kind, Records
from .switches import STATE_OF_STOP, Note, Switch, Wakeup, linux_events

FORMATS = ("perfetto", "ftrace", "csv")
PRIO = 120
#: The Linux whose bits `prev_state` has.
RELEASE = "7.2.0"
#: Events per packet of a Perfetto file; its reader wants packets below 1 MiB.
BUNDLE_EVENTS = 4000
_SEQUENCE_ID = 1
_RUNNABLE_TRACK, _NOTE_TRACK = 1, 2


def task_names(names: Mapping[int, str], pid: int, cpu: int = 0) -> str:
    """Name of a task as Linux's `comm`: at most 15 bytes, no spaces.

    Parameters
    ----------
    names : mapping of int to str
        Names by pid.
    pid : int
        The task; 0 is idle.
    cpu : int, default 0
        Whose idle task.

    Returns
    -------
    str
        Never empty.
    """
    if pid == 0:
        return f"swapper/{cpu}"
    name = names.get(pid) or f"task-{pid}"
    return "".join(c if c.isprintable() and not c.isspace() else "_" for c in name)[:15]


def write_trace(records: Records, path, *, names: Mapping[int, str], form: str = "perfetto") -> int:
    """Write a run to a file.

    Parameters
    ----------
    records : Records
        The run.
    path : str or pathlib.Path
        Where to write; replaced if it exists.
    names : mapping of int to str
        Names of the tasks by pid; a task without one is called `task-PID`.
    form : {"perfetto", "ftrace", "csv"}
        Perfetto protobuf, the text of Linux's `trace` file, or one line per
        record.

    Returns
    -------
    int
        Bytes written.

    Raises
    ------
    UsageError
        If `form` is none of these.
    UnavailableError
        If the Perfetto format is asked for and its package is missing.
    """
    writers = {"perfetto": _perfetto, "ftrace": _ftrace_text, "csv": _csv}
    if form not in writers:
        raise UsageError(f"unknown trace format {form!r}{did_you_mean(form, FORMATS)}; known: {', '.join(FORMATS)}")
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
    running = [0] * records.nr_cpus
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


class _Bundles:
    """Collects ftrace events per CPU and packs them."""

    def __init__(self, trace):
        self.trace = trace
        self.bundles = {}

    def add(self, cpu: int, t_ns: int, pid: int):
        bundle = self.bundles.get(cpu)
        if bundle is None or len(bundle.event) >= BUNDLE_EVENTS:
            bundle = self.trace.packet.add().ftrace_events
            bundle.cpu = cpu
            self.bundles[cpu] = bundle
        event = bundle.event.add()
        event.timestamp, event.pid = t_ns, pid
        return event


def _describe_track(trace, uuid: int, name: str, *, is_counter: bool) -> None:
    packet = trace.packet.add()
    packet.trusted_packet_sequence_id = _SEQUENCE_ID
    packet.track_descriptor.uuid = uuid
    packet.track_descriptor.name = name
    if is_counter:
        packet.track_descriptor.counter.SetInParent()


def _add_switch(bundles: _Bundles, names, event: Switch) -> None:
    switch = bundles.add(event.cpu, event.t_ns, event.prev).sched_switch
    switch.prev_comm = task_names(names, event.prev, event.cpu)
    switch.prev_pid = event.prev
    switch.prev_prio = switch.next_prio = PRIO
    switch.prev_state = 0 if event.stop is None else STATE_OF_STOP[event.stop][1]
    switch.next_comm = task_names(names, event.next, event.cpu)
    switch.next_pid = event.next


def _add_wakeup(bundles: _Bundles, names, event: Wakeup) -> None:
    # Linux announces a new task by sched_wakeup_new alone, but Perfetto begins
    # "runnable" at sched_waking: without it, the wait of an arrival is not shown.
    for kind in ("sched_wakeup_new", "sched_waking") if event.is_new else ("sched_waking",):
        wakeup = getattr(bundles.add(event.cpu, event.t_ns, event.waker), kind)
        wakeup.comm = task_names(names, event.pid)
        wakeup.pid, wakeup.prio, wakeup.success = event.pid, PRIO, 1
        wakeup.target_cpu = event.cpu


def _add_track_event(trace, event_type, t_ns: int, uuid: int):
    packet = trace.packet.add()
    packet.timestamp = t_ns
    packet.trusted_packet_sequence_id = _SEQUENCE_ID
    packet.track_event.type = event_type
    packet.track_event.track_uuid = uuid
    return packet.track_event


def _count_change(event: Switch | Wakeup) -> int:
    """How an event changes the number of tasks that wait for a CPU."""
    if isinstance(event, Wakeup):
        return 1
    back = event.stop is not None and STATE_OF_STOP[event.stop][0].startswith("R")
    return int(back) - int(event.next != 0)


def _perfetto(records: Records, names: Mapping[int, str]) -> bytes:
    """Perfetto's protobuf: ftrace events, a counter of waiting tasks, notes."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb2
    except ImportError as error:
        raise UnavailableError(
            "the Perfetto format needs the Python package 'perfetto': pip install 'schedlab[trace]'"
        ) from error
    trace = pb2.Trace()
    # The bits of `prev_state` have changed over time: without a release they are
    # read as before Linux 4.14, where 0x100 was not "preempted". There is no
    # process tree on purpose: a task would be one click further from its states,
    # and the process with pid 2 always counts as Linux's kthreadd.
    system = trace.packet.add().system_info.utsname
    system.sysname, system.release = "Linux", RELEASE
    _describe_track(trace, _RUNNABLE_TRACK, "tasks waiting for a CPU", is_counter=True)
    _describe_track(trace, _NOTE_TRACK, "policy notes", is_counter=False)
    bundles = _Bundles(trace)
    waiting = 0
    for event in linux_events(records):
        if isinstance(event, Note):
            note = _add_track_event(trace, pb2.TrackEvent.TYPE_INSTANT, event.t_ns, _NOTE_TRACK)
            note.name = f"note {event.key} = {event.value}"
            continue
        if isinstance(event, Switch):
            _add_switch(bundles, names, event)
        else:
            _add_wakeup(bundles, names, event)
        change = _count_change(event)
        if change:
            waiting += change
            counter = _add_track_event(trace, pb2.TrackEvent.TYPE_COUNTER, event.t_ns, _RUNNABLE_TRACK)
            counter.counter_value = waiting
    return trace.SerializeToString()
