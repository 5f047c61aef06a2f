# SPDX-License-Identifier: MIT
"""One recording, written as other tools write it: for tests of what reads them.

An event is a time, a CPU, the pid that runs there, the tracepoint's name and its fields
in the kernel's order.
"""

from __future__ import annotations

import struct
import zlib

from schedlab.plots.perfetto import message
from schedlab.plots.switches import STATE_OF_STOP, Note, Switch, linux_events, task_names

SWITCH, WAKING, NEW = "sched_switch", "sched_waking", "sched_wakeup_new"
HARDIRQ = 8  # in the flags that are common to all events
LETTERS = {0: "R", 1: "S", 0x10: "X", 0x100: "R+"}


def events_of(records, names):
    """What Linux's tracing would have seen of a run; no two events at one time."""
    events, last_ns, cpu_of = [], 0, {}
    for event in linux_events(records):
        if isinstance(event, Note):
            continue
        last_ns = max(last_ns + 1, event.t_ns)
        if isinstance(event, Switch):
            state = 0 if event.stop is None else STATE_OF_STOP[event.stop][1]
            prev, following = (task_names(names, pid, event.cpu) for pid in (event.prev, event.next))
            fields = (prev, event.prev, 120, state, following, event.next, 120)
            events.append((last_ns, event.cpu, event.prev, SWITCH, fields))
            cpu_of[event.next] = event.cpu
        else:
            kind = NEW if event.is_new else WAKING
            fields = (task_names(names, event.pid), event.pid, 120, event.cpu)
            # A task wakes another one from where it runs itself.
            cpu = cpu_of[event.waker] if event.waker else event.cpu
            events.append((last_ns, cpu, event.waker, kind, fields))
    return events


def _seconds(t_ns):
    return f"{t_ns // 10**9}.{t_ns % 10**9:09d}"


def _plain(name, fields):
    if name == SWITCH:
        *before, state, comm, pid, prio = fields
        before = "prev_comm={} prev_pid={} prev_prio={}".format(*before)
        return f"{before} prev_state={LETTERS[state]} ==> next_comm={comm} next_pid={pid} next_prio={prio}"
    return "comm={} pid={} prio={} target_cpu={:03d}".format(*fields)


def _short(name, fields):
    """As trace-cmd's plugin has it."""
    if name == SWITCH:
        prev, pid, prio, state, comm, next_pid, next_prio = fields
        return f"{prev}:{pid} [{prio}] {LETTERS[state]} ==> {comm}:{next_pid} [{next_prio}]"
    return "{}:{} [{}] CPU:{:03d}".format(*fields)


def ftrace(events):
    head = "# tracer: nop\n#\n"
    return head + "".join(
        f"{'x':>16}-{pid:<7} [{cpu:03d}] d..2. {_seconds(t)}: {name}: {_plain(name, fields)}\n"
        for t, cpu, pid, name, fields in events
    )


def trace_cmd(events):
    return "cpus=8\n" + "".join(
        f"{'x':>16}-{pid:<7} [{cpu:03d}] d..2.  {_seconds(t)}: {name + ':':<21} {_short(name, fields)}\n"
        for t, cpu, pid, name, fields in events
    )


def perf_script(events):
    return "".join(
        f"{'x y':>16} {pid:>5} [{cpu:03d}] {_seconds(t)}: {'sched:' + name:>20}: {_plain(name, fields)}\n"
        for t, cpu, pid, name, fields in events
    )


def systrace(events):
    body = "".join(
        f"{'x':>16}-{pid:<7} (-----) [{cpu:03d}] d..2 {_seconds(t)}: {name}: {_plain(name, fields)}\n"
        for t, cpu, pid, name, fields in events
    )
    # The viewer's own script speaks of such lines, too.
    script = "<script>\n// x-1 [000] d..2 1.0: sched_switch: prev_comm=\n</script>\n"
    page = f"<!DOCTYPE html>\n<html>\n{script}"
    return f'{page}<script class="trace-data" type="application/text">\n{body}</script>\n</html>\n'


def _bundles(events, size):
    """Events of one CPU, some at a time, as Perfetto's ftrace reader leaves them."""
    by_cpu = {}
    for event in events:
        by_cpu.setdefault(event[1], []).append(event)
    for cpu, own in by_cpu.items():
        for start in range(0, len(own), size):
            yield cpu, own[start : start + size]


def _numbered(name, fields):
    if name == SWITCH:
        return message(dict(enumerate(fields, 1)))
    comm, pid, prio, cpu = fields
    return message({1: comm, 2: pid, 3: prio, 5: cpu})


KINDS = {SWITCH: 4, WAKING: 20, NEW: 114}


def perfetto(events, *, size=50, is_compressed=False):
    packets = [message({1: message({8: 1, 10: 1})})]
    for cpu, own in _bundles(events, size):
        body = b"".join(
            message({2: message({1: t, 2: pid, KINDS[name]: _numbered(name, fields)})})
            for t, _, pid, name, fields in own
        )
        packets.append(message({1: message({1: message({1: cpu}) + body})}))
    if is_compressed:
        packets = [
            message({1: message({50: zlib.compress(b"".join(packets[i : i + 3]))})})
            for i in range(0, len(packets), 3)
        ]
    return b"".join(packets)


def _packed(values):
    return b"".join(message({0: value})[1:] for value in values)


def _deltas(times):
    return [t - before for t, before in zip(times, [0, *times], strict=False)]


def perfetto_compact(events, *, size=50):
    packets = []
    for cpu, own in _bundles(events, size):
        names = sorted({fields[4] if name == SWITCH else fields[0] for _, _, _, name, fields in own})
        switches = [(t, fields) for t, _, _, name, fields in own if name == SWITCH]
        wakings = [(t, fields) for t, _, _, name, fields in own if name == WAKING]
        interrupts = [0 if pid else HARDIRQ for _, _, pid, name, _ in own if name == WAKING]
        columns = {
            1: _deltas([t for t, _ in switches]), 2: [f[3] for _, f in switches], 3: [f[5] for _, f in switches],
            4: [f[6] for _, f in switches], 6: [names.index(f[4]) for _, f in switches],
            7: _deltas([t for t, _ in wakings]), 8: [f[1] for _, f in wakings], 9: [f[3] for _, f in wakings],
            10: [f[2] for _, f in wakings], 11: [names.index(f[0]) for _, f in wakings], 12: interrupts,
        }  # fmt: skip
        compact = b"".join(message({5: name}) for name in names)
        compact += message({number: _packed(values) for number, values in columns.items()})
        rest = b"".join(
            message({2: message({1: t, 2: pid, 114: _numbered(name, fields)})})
            for t, _, pid, name, fields in own
            if name == NEW
        )
        packets.append(message({1: message({1: rest + message({4: compact, 1: cpu})})}))
    return b"".join(packets)


# ---- trace.dat, version 6 ----------------------------------------------------

PAGE = 4096
_COMMON = (("unsigned short", "common_type", 2), ("unsigned char", "common_flags", 1),
           ("unsigned char", "common_preempt_count", 1), ("int", "common_pid", 4))  # fmt: skip
_SWITCH_FIELDS = (("char", "prev_comm[16]", 16), ("pid_t", "prev_pid", 4), ("int", "prev_prio", 4),
                  ("long", "prev_state", 8), ("char", "next_comm[16]", 16), ("pid_t", "next_pid", 4),
                  ("int", "next_prio", 4))  # fmt: skip
_WAKE_FIELDS = (("char", "comm[16]", 16), ("pid_t", "pid", 4), ("int", "prio", 4), ("int", "target_cpu", 4))
_PRINT_SWITCH = (
    r'"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", '
    r"REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, "
    r'"|", { 0x01, "S" }, { 0x02, "D" }, { 0x04, "T" }, { 0x08, "t" }, { 0x10, "X" }, { 0x20, "Z" }) : "R", '
    r'REC->prev_state & 0x100 ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio'
)
_PRINT_WAKE = '"comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu'
_IDS = {SWITCH: 300, WAKING: 301, NEW: 302}


def _format(name):
    fields, text = (_SWITCH_FIELDS, _PRINT_SWITCH) if name == SWITCH else (_WAKE_FIELDS, _PRINT_WAKE)
    lines, offset = [f"name: {name}", f"ID: {_IDS[name]}", "format:"], 0
    for group in (_COMMON, fields):
        for kind, field, size in group:
            signed = int("unsigned" not in kind)
            offset += -offset % (1 if "[" in field else size)
            lines.append(f"\tfield:{kind} {field};\toffset:{offset};\tsize:{size};\tsigned:{signed};")
            offset += size
        lines.append("")
    return "\n".join([*lines, f"print fmt: {text}", ""])


def _raw(pid, name, fields):
    common = struct.pack("<HBBi", _IDS[name], 0, 0, pid)
    if name == SWITCH:
        prev, prev_pid, prio, state, comm, next_pid, next_prio = fields
        return common + struct.pack(
            "<16siiq16sii", prev.encode(), prev_pid, prio, state, comm.encode(), next_pid, next_prio
        )
    comm, task, prio, cpu = fields
    return common + struct.pack("<16siii", comm.encode(), task, prio, cpu)


def _pages(events):
    """Ring pages of one CPU, a few events each."""
    for start in range(0, len(events), 40):
        part = events[start : start + 40]
        body, last_ns = b"", part[0][0]
        for t, _, pid, name, fields in part:
            raw = _raw(pid, name, fields)
            delta, last_ns = t - last_ns, t
            if delta >= 1 << 27:
                body += struct.pack("<II", (delta & (1 << 27) - 1) << 5 | 30, delta >> 27)
                delta = 0
            body += struct.pack("<I", delta << 5 | len(raw) // 4) + raw
        yield (struct.pack("<QQ", part[0][0], len(body)) + body).ljust(PAGE, b"\0")


def trace_dat(events, n_cpus):
    header_page = (
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
        "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
    )
    header_event = (
        "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n"
        "\tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n"
    )
    out = b"\x17\x08\x44tracing6\0" + struct.pack("<BBI", 0, 8, PAGE)
    for name, text in (("header_page", header_page), ("header_event", header_event)):
        out += name.encode() + b"\0" + struct.pack("<Q", len(text)) + text.encode()
    out += struct.pack("<I", 0) + struct.pack("<I", 1) + b"sched\0" + struct.pack("<I", len(_IDS))
    for name in _IDS:
        text = _format(name).encode()
        out += struct.pack("<Q", len(text)) + text
    out += struct.pack("<IIQI", 0, 0, 0, n_cpus) + b"flyrecord\0"
    data = [b"".join(_pages([event for event in events if event[1] == cpu])) for cpu in range(n_cpus)]
    begin = -(-(len(out) + 16 * n_cpus) // PAGE) * PAGE
    at = begin
    for pages in data:
        out += struct.pack("<QQ", at, len(pages))
        at += len(pages)
    return out.ljust(begin, b"\0") + b"".join(data)
