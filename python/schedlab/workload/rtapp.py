# SPDX-License-Identifier: MIT
"""Read a workload of rt-app, Linux's tool for synthetic real-time load.

An rt-app file is JSON; the keys of a task are its steps, in order, and may repeat
(`run`, `run1`, `run`). It becomes the values that a TOML file of ours would have,
with the JSON line of each, so that all later checks name the user's own line.

What has no counterpart is refused with the reason, or, where it changes nothing
of what the tasks do (log files, say), listed as a note in the description.
docs/formats.md says what becomes what. The meaning of each key was read from
rt-app 1.0 as Debian ships it, and from its documentation.

Read next: rtapp_events.py, the steps of a task; program/rtapp_export.py, the way back.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import SpecError, SpecFault, UnitError, did_you_mean
from ..toml_file import Place, Source, read_text
from ..units import parse_duration
from .json_text import Node, Pair, Pairs, parse_json
from .model import Converted, Workload
from .rtapp_events import POLICIES, US_MAX, Context, Lined, read_task
from .spec import read_workload
from .toml_text import write_toml

#: Keys of `global`: what a value must be, and why it is without effect here (or "").
_LOGGING = "files that rt-app writes about a run"
GLOBAL: dict[str, tuple[tuple[type, ...], str]] = {
    "duration": ((int,), ""),
    "default_policy": ((str,), ""),
    "pi_enabled": ((bool,), ""),
    "mem_buffer_size": ((int,), ""),
    "calibration": ((str, int), "how fast a machine is belongs to the machine"),
    "io_device": ((str,), "the host has its own device"),
    "lock_pages": ((bool,), "hosts do not swap"),
    "logdir": ((str,), _LOGGING),
    "log_basename": ((str,), _LOGGING),
    "log_size": ((str, int), _LOGGING),
    "ftrace": ((bool, str), _LOGGING),
    "gnuplot": ((bool,), _LOGGING),
    "cumulative_slack": ((bool,), _LOGGING),
    "frag": ((int,), "no rt-app since 1.0 reads it"),
    "fragment": ((int,), "no rt-app since 1.0 reads it"),
}
#: rt-app's threads start one after the other: tens of microseconds apart.
_JITTER = "100us"
#: Ticks of Linux as Debian builds it.
_TICK = "4ms"


def load_rtapp(path: Path, *, params: Mapping[str, object] | None = None) -> Workload:
    """Read a workload from an rt-app file."""
    overrides = dict(params or {})
    duration = overrides.get("duration")
    source = convert_rtapp(read_text(path, str(path)), name=str(path), duration=duration)
    return read_workload(source, overrides, name=_name_of(path), path=path)


def rtapp_as_toml(path: Path, *, duration: object = None) -> Converted:
    """Turn an rt-app file into TOML."""
    given = {} if duration is None else {"duration": duration}
    load_rtapp(path, params=given)  # what is written must be good
    source = convert_rtapp(read_text(path, str(path)), name=str(path), duration=duration)
    comment = f"Converted from {path.name} by `schedlab import rt-app`."
    return Converted(write_toml(source.values, comment=comment), tuple(source.notes))


def _name_of(path: Path) -> str:
    """A workload's name from that of a file; it may hold any character."""
    return "".join(c if c.isalnum() or c in "_.-" else "-" for c in path.stem)[:63] or "rt-app"


class RtappSource(Source):
    """A converted file: values and lines as if it had been TOML, and notes.

    `notes` say what was left out, and why.
    """

    def __init__(self, name: str):
        self.name = name
        self.values: dict[str, object] = {}
        self.faults: list[SpecFault] = []
        self.lines: dict[Place, int] = {}
        self.notes: list[str] = []


def convert_rtapp(text: str, *, name: str, duration: object = None) -> RtappSource:
    """Convert the text of an rt-app file."""
    root = parse_json(text, name=name)
    source = RtappSource(name)
    context = Context(source, duration=_given_duration(name, duration))
    if not isinstance(root.value, Pairs):
        raise SpecError([SpecFault(name, root.line, "", f"an rt-app file is an object, not {root.kind}")])
    sections = _sections(context, root.value)
    _read_global(context, sections.get("global"))
    tasks = _read_tasks(context, sections.get("tasks"))
    source.check()
    context.finish(tasks)
    source.check()
    source.values = _workload_values(context, name, tasks)
    _note_lines(source, source.values, ())
    return source


def _given_duration(name: str, duration: object) -> str:
    """Check what the user gave; nothing where nothing was given."""
    if duration is None:
        return ""
    try:
        return f"{parse_duration(duration)}ns"
    except UnitError as error:
        raise SpecError([SpecFault(name, None, "", f"duration: {error}")]) from None


def _sections(context: Context, pairs: Pairs) -> dict[str, Node]:
    """The three objects that a file consists of."""
    found: dict[str, Node] = {}
    for pair in pairs:
        if pair.key not in ("tasks", "global", "resources"):
            hint = did_you_mean(pair.key, ("tasks", "global", "resources"))
            context.fault(pair.line, "", f"unknown key {pair.key!r}{hint}")
        elif pair.key in found:
            context.fault(pair.line, "", f"key {pair.key!r} stands twice; rt-app would use the last")
        elif pair.key == "resources" and isinstance(pair.node.value, int):
            context.notes.append("resources: locks and conditions are made where they are used")
        elif not isinstance(pair.node.value, Pairs):
            context.fault(pair.line, "", f"{pair.key!r} must be an object (got {pair.node.kind})")
        else:
            found[pair.key] = pair.node
            if pair.key == "resources":
                context.notes.append("resources: locks and conditions are made where they are used")
    if "tasks" not in found and not context.source.faults:
        context.fault(None, "", "there is no object 'tasks'")
    return found


def _read_global(context: Context, node: Node | None) -> None:
    """Read `global`; a key that repeats counts as the last, as in rt-app."""
    settings: dict[str, Node] = {}
    ignored: dict[str, list[str]] = {}
    for pair in node.value if node else ():
        if pair.key not in GLOBAL:
            hint = did_you_mean(pair.key, GLOBAL)
            context.fault(pair.line, "global", f"unknown key {pair.key!r}{hint}")
            continue
        types, reason = GLOBAL[pair.key]
        if type(pair.node.value) not in types:
            words = " or ".join(
                {int: "a whole number", str: "a text", bool: "true or false"}[t] for t in types
            )
            context.fault(pair.line, "global", f"{pair.key} must be {words} (got {pair.node.kind})")
        elif reason:
            ignored.setdefault(reason, []).append(pair.key)
        else:
            settings[pair.key] = Node(pair.node.value, pair.line)
    for reason, keys in ignored.items():
        context.notes.append(f"global {', '.join(keys)}: {reason}")
    _check_global(context, settings)


def _check_global(context: Context, settings: dict[str, Node]) -> None:
    policy = settings.get("default_policy")
    if policy and policy.value not in POLICIES:
        hint = did_you_mean(policy.value, POLICIES)
        context.fault(policy.line, "global", f"default_policy: unknown policy {policy.value!r}{hint}")
    elif policy:
        context.default_policy = policy.value
    inherits = settings.get("pi_enabled")
    if inherits and inherits.value:
        context.fault(
            inherits.line,
            "global",
            "pi_enabled: whether a lock lends its holder the "
            "priority of who waits is the policy's business here; set it to false",
        )
    size = settings.get("mem_buffer_size")
    if size and not 1 <= size.value <= US_MAX:
        context.fault(
            size.line, "global", f"mem_buffer_size must be from 1 to {US_MAX} bytes (got {size.value})"
        )
    elif size:
        context.buffer_bytes = size.value
    duration = settings.get("duration")
    if duration and not -1 <= duration.value <= US_MAX:
        context.fault(
            duration.line, "global", f"duration must be -1 or seconds, up to {US_MAX} (got {duration.value})"
        )
    elif duration and duration.value > 0:
        context.duration = f"{duration.value}s"


def _read_tasks(context: Context, node: Node | None) -> list[Lined]:
    tasks: list[Lined] = []
    seen: set[str] = set()
    for pair in node.value if node else ():
        if pair.key in seen:
            context.fault(
                pair.line,
                f"task {pair.key!r}",
                "there is another task of that name; rt-app would use the last one",
            )
            continue
        seen.add(pair.key)
        context.task_names.append(pair.key)
    for pair in node.value if node else ():
        if not isinstance(pair.node.value, Pairs):
            context.fault(pair.line, f"task {pair.key!r}", f"must be an object (got {pair.node.kind})")
            continue
        task = read_task(context, Pair(pair.key, pair.line, pair.node))
        if task is not None:
            tasks.append(task)
    if node is not None and not seen:
        context.fault(node.line, "tasks", "there is no task")
    return tasks


def _workload_values(context: Context, name: str, tasks: list[Lined]) -> dict[str, object]:
    """Put together what a TOML file of this workload would hold."""
    stem = Path(name).stem.replace("{", "(").replace("}", ")").strip()
    title = "rt-app: " + " ".join(part for part in stem.split() if part.isprintable())
    head: dict[str, object] = {
        "title": title.strip(),
        "question": "How does each policy serve this load?",
        "tick": _TICK,
        "jitter": _JITTER,
        "cpus": context.cpus_max + 1,
    }
    if context.duration:
        head["horizon"] = "{duration}"
        about = "the run ends then"
        context.params["duration"] = {"default": context.duration, "min": "1us", "about": about}
    if context.notes:
        notes = "".join(f"- {note}\n" for note in dict.fromkeys(context.notes))
        notes = notes.replace("{", "(").replace("}", ")")
        head["description"] = "What its JSON says and this file cannot:\n" + notes
    values: dict[str, object] = {"workload": head}
    if context.params:
        values["params"] = dict(context.params)
    for kind, objects in context.objects.items():
        if objects:
            values[kind] = objects
    values["task"] = tasks
    return values


def _note_lines(source: Source, value: object, at: Place) -> None:
    """Note the JSON line of every part that has one."""
    if isinstance(value, Lined):
        source.lines[at] = value.line
    if isinstance(value, dict):
        for key, item in value.items():
            _note_lines(source, item, (*at, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _note_lines(source, item, (*at, i))
