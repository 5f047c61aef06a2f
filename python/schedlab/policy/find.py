# SPDX-License-Identifier: MIT
"""Find a policy, read what its header comment declares, and set its knobs.

A policy is one C file. Its header comment is also its manual: the idea, where
it does badly, one `@knob NAME UNIT MIN MAX text` line per parameter (where each
number has a meaning of its own, `@knob NAME enum WORD=N,WORD=N text`), and
`@work-conserving yes|no reason`, `@starvation-free yes|no reason`, `@virtual-time yes|no`, `@shares`, `@priority` and
`@latency`. This module reads that comment; it does not
compile (build.py does) and does not trust it: knobs are held against the
symbols of the compiled file.

Read next: build.py.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import paths
from ..errors import NotFoundError, PolicyError, UnitError, UsageError, did_you_mean
from ..units import parse_quantity
from .launch_file import launch_code
from .published import CRATE, Published, crate_version, main_file, published, scheduler_name

SUFFIX = ".bpf.c"
#: Declarations of what a task may expect beside others: the attributes by which, what follows, and an example.
ENTITLEMENTS = {
    "shares": (("weight", "tickets", "credits"), r"within +(\w+)()", "@shares tickets within slice_ns"),
    "priority": (
        ("priority", "deadline", "burst", "queued"),
        r"(?:then +queued +)?(?:at +once|when +free|within +(\w+))( +through +locks)?",
        "@priority priority at once",
    ),
    "latency": (("wake-up",), r"(?:at +once|within +(\w+))()", "@latency wake-up within slice_ns"),
}

#: Units of time that a knob may be kept in, in nanoseconds.
_TIME_KNOBS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_SIZE_KNOBS = {"bytes": 1}
_TRUTHS = {"yes": 1, "true": 1, "on": 1, "no": 0, "false": 0, "off": 0}

_COMMENT = re.compile(r"\s*(?:/\*(.*?)\*/|//([^\n]*))", re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
_KNOB = re.compile(r"@knob\s+(\w+)\s+(\S+)\s+(\S+)\s+(\S+)\s*(.*)", re.DOTALL)
_NAMED_KNOB = re.compile(r"@knob\s+(\w+)\s+enum\s+(\S*[=,]\S*)\s*(.*)", re.DOTALL)
_NAMED_VALUE = re.compile(r"([A-Za-z][\w-]*)=(-?\d{1,18})")

#: More variants of one policy than this are a slip of the pen.
VARIANTS_MAX = 1000


@dataclass(frozen=True)
class Knob:
    """A parameter of a policy, as its header comment declares it."""

    name: str  #: The `const volatile` global.
    unit: str  #: Unit of the stored number: `ns us ms s`, `bytes`, `bool`, or any word for a plain number.
    #: `minimum`, `maximum`: Smallest and largest value, in that unit.
    minimum: int
    maximum: int
    text: str  #: What it does, for people.
    line: int  #: Line of the declaration in the policy's file, from 1.
    #: Of an `enum`: each value by its name, in the order of the file. Empty where every number of the range
    #: is allowed.
    names: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Entitlement:
    """What tasks may expect beside others, as `@shares`, `@priority` or `@latency` declares it."""

    #: Of a task: its part, or how urgent it is; `queued`: the sooner it was, the more.
    attribute: str
    knob: str  #: The knob with the bound in ns; empty: at once.
    #: Of `@priority`: whether a task that waits for a lock counts, by the lock's holder.
    through_locks: bool = False
    when_free: bool = False  #: Of `@priority`: only where a CPU takes a task; nothing is preempted for it.
    then_queued: bool = False  #: Of `@priority`: among equals, that which was queued first goes first.


@dataclass(frozen=True)
class Policy:
    """A policy's source and what it declares."""

    name: str  #: File name without `.bpf.c`.
    path: Path  #: The file, as the user named it.
    summary: str  #: First sentence of the header comment.
    knobs: dict[str, Any] = field(repr=False)  #: dict of str to Knob: in the order of the file.
    work_conserving: bool | None  #: What the policy declares; None: nothing.
    work_conserving_reason: str  #: The words after it.
    source_text: str  #: Where the policy comes from (`@source`), or empty.
    content_hash: str  #: SHA-256 over the source and every header of the project that it includes.
    #: Whether each runnable task runs in the end, as the policy declares; None: nothing is declared.
    starvation_free: bool | None = None
    shares: Entitlement | None = None  #: By which tasks share a CPU; None: nothing is declared.
    priority: Entitlement | None = None  #: By which one task goes before another; None: nothing is declared.
    latency: Entitlement | None = None  #: How soon a task runs that wakes up; None: nothing is declared.
    virtual_time: bool = (
        False  #: Whether queues in order are in that of a virtual time, as the policy declares.
    )
    quotas: str = ""  #: The knob that is not 0 where a cgroup's quota is kept; empty: none is declared.


@dataclass(frozen=True)
class Variant:
    """A policy with the knobs of one run."""

    policy: Policy  #: The policy.
    values: dict[str, Any]  #: Knobs that were set, in each knob's unit.


def list_policies() -> list[str]:
    """Names of the policies that come with schedlab.

    Returns
    -------
    list of str
        Sorted; each is a valid argument of `load_policy`.
    """
    folder = paths.policies_folder()
    return sorted(file.name.removesuffix(SUFFIX) for file in folder.glob("*" + SUFFIX))


def find_policy(name_or_path: str) -> Path:
    """Find the file of a policy."""
    if "/" in name_or_path or name_or_path.endswith((".c", ".bpf.o")):
        path = Path(name_or_path)
        if path.is_file():
            return path
        main = main_file(path)
        if main:
            return main
        version, what = crate_version(path), "no such file"
        if version:
            what = (
                f"its main.bpf.c is in the crate {CRATE} {version}, which is not here: `cargo fetch` has it"
            )
        elif path.is_dir():
            what = "is a folder without main.bpf.c"
        raise NotFoundError(f"policy '{name_or_path}': {what}")
    path = paths.policies_folder() / (name_or_path + SUFFIX)
    if name_or_path and path.is_file():
        return path
    here = Path(name_or_path + SUFFIX)
    if name_or_path and here.is_file():
        raise NotFoundError(f"unknown policy '{name_or_path}'; for the file in this folder write './{here}'")
    raise NotFoundError(
        f"unknown policy '{name_or_path}'{did_you_mean(name_or_path, list_policies())}; "
        "`schedlab policies` lists them, and a path such as ./mine.bpf.c names your own"
    )


def policy_name(path: Path) -> str:
    """Name of a policy."""
    name = re.sub(r"(\.bpf)?\.[co]$", "", path.name)
    places = [scheduler_name(folder) for folder in path.resolve().parents if folder.name.startswith("scx_")]
    is_inside = places and (name == "main" or f"scx_{name}" == places[0])
    if is_inside:
        return places[0]
    return path.resolve().parent.name if name == "main" and published(path).sources else name


def load_policy(name_or_path: str, *, is_inside: bool = False) -> Policy:
    """Find a policy and read its header comment."""
    path = find_policy(name_or_path)
    if is_inside:
        source_files(path, is_inside=True)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read: {error.strerror}") from error
    header = _header_comment(text)
    knobs: dict[str, Knob] = {}
    conserving, reason, source, starvation_free = None, "", "", None
    entitlements: dict[str, Entitlement] = {}
    virtual_time, quotas = False, ""
    for line, words in _declarations(header):
        if words.startswith("@knob"):
            knob = _parse_knob(path, line, words)
            if knob.name in knobs:
                raise PolicyError(f"{path}:{line}: @knob {knob.name} is declared twice")
            knobs[knob.name] = knob
        elif words.startswith("@work-conserving"):
            conserving, reason = _parse_answer(path, line, words)
        elif words.startswith("@starvation-free"):
            starvation_free, _ = _parse_answer(path, line, words)
        elif words.startswith("@virtual-time"):
            virtual_time, _ = _parse_answer(path, line, words)
        elif words.startswith("@quotas"):
            quotas = _parse_quotas(path, line, words, knobs)
        elif words.split()[0] in ("@shares", "@priority", "@latency"):
            entitlements[words[1:].split()[0]] = _parse_entitlement(path, line, words, knobs)
        elif words.startswith("@source"):
            source = words.removeprefix("@source").strip()
    return Policy(
        name=policy_name(path),
        path=path,
        summary=_summary(path, header),
        knobs=knobs,
        work_conserving=conserving,
        work_conserving_reason=reason,
        source_text=source,
        content_hash=hash_content(path),
        starvation_free=starvation_free,
        shares=entitlements.get("shares"),
        priority=entitlements.get("priority"),
        latency=entitlements.get("latency"),
        virtual_time=virtual_time,
        quotas=quotas,
    )


def _header_comment(text: str) -> list[tuple[int, str]]:
    """Lines of the comments before the first line of code, with their numbers from 1."""
    lines, position = [], 0
    while match := _COMMENT.match(text, position):
        group = 1 if match.group(1) is not None else 2
        number = text.count("\n", 0, match.start(group)) + 1
        for offset, line in enumerate(match.group(group).split("\n")):
            lines.append((number + offset, re.sub(r"^\s*\*? ?", "", line).rstrip()))
        position = match.end()
    return lines


def _declarations(header: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Each `@word ...` with the lines that continue it, joined by blanks."""
    found: list[tuple[int, str]] = []
    is_open = False
    for number, line in header:
        if line.lstrip().startswith("@"):
            found.append((number, line.strip()))
            is_open = True
        elif not line.strip():
            is_open = False
        elif is_open:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return found


def header_declarations(path: Path) -> list[tuple[int, str]]:
    """What the header comment of a file declares: lines and words."""
    return _declarations(_header_comment(path.read_text(encoding="utf-8", errors="replace")))


def _parse_knob(path: Path, line: int, words: str) -> Knob:
    """Read one `@knob NAME UNIT MIN MAX text`, or one whose values have names."""
    named = _NAMED_KNOB.fullmatch(words)
    if named is not None:
        return _parse_named(path, line, named)
    match = _KNOB.fullmatch(words)
    if match is None:
        raise PolicyError(
            f"{path}:{line}: '{words}' should read '@knob NAME UNIT MIN MAX text', such as "
            "'@knob slice_ns ns 100us 10s how long a task may run', or '@knob NAME enum "
            "WORD=N,WORD=N text'"
        )
    name, unit, low, high, text = match.groups()
    try:
        minimum, maximum = _in_unit(low, unit), _in_unit(high, unit)
    except UnitError as error:
        raise PolicyError(f"{path}:{line}: @knob {name}: {error}") from error
    if minimum > maximum:
        raise PolicyError(f"{path}:{line}: @knob {name}: MIN {low} is above MAX {high}")
    return Knob(name, unit, minimum, maximum, " ".join(text.split()), line)


def _parse_named(path: Path, line: int, match: re.Match[str]) -> Knob:
    """Read one `@knob NAME enum WORD=N,WORD=N text`."""
    name, given, text = match.groups()
    names: dict[str, int] = {}
    for item in given.split(","):
        pair = _NAMED_VALUE.fullmatch(item)
        if pair is None:
            raise PolicyError(
                f"{path}:{line}: @knob {name}: '{item}' should read WORD=N, without blanks "
                "around, such as never=0,always=1"
            )
        if pair[1] in names or int(pair[2]) in names.values():
            raise PolicyError(f"{path}:{line}: @knob {name}: '{item}' is there twice")
        names[pair[1]] = int(pair[2])
    if len(names) < 2:
        raise PolicyError(
            f"{path}:{line}: @knob {name}: give two values or more, with commas and no blanks between"
        )
    return Knob(name, "enum", min(names.values()), max(names.values()), " ".join(text.split()), line, names)


def _parse_answer(path: Path, line: int, words: str) -> tuple[bool, str]:
    """Read `@work-conserving yes|no reason`, or another declaration of this form."""
    name, _, rest = words.partition(" ")
    answer, _, reason = rest.strip().partition(" ")
    if answer.rstrip(",;:.") not in ("yes", "no"):
        raise PolicyError(f"{path}:{line}: {name} must be followed by yes or no, not '{answer}'")
    return answer.startswith("yes"), reason.strip()


def _parse_quotas(path: Path, line: int, words: str, knobs: dict[str, Knob]) -> str:
    """Read `@quotas with KNOB`."""
    found = re.match(r"@quotas +with +(\w+)", words)
    if not found or found[1] not in knobs:
        raise PolicyError(
            f"{path}:{line}: @quotas must be followed by with, and by a @knob that stands above, such as: @quotas with groups"
        )
    return found[1]


def _parse_entitlement(path: Path, line: int, words: str, knobs: dict[str, Knob]) -> Entitlement:
    """Read `@shares ATTRIBUTE within KNOB`, `@latency wake-up BOUND`, or `@priority`.

    That is `@priority ATTRIBUTE [then queued] at once|when free|within KNOB [through locks]`.
    """
    name = words.split()[0].removeprefix("@")
    attributes, bound, example = ENTITLEMENTS[name]
    found = re.match(rf"@{name} +({'|'.join(attributes)}) +{bound}", words)
    if not found:
        raise PolicyError(
            f"{path}:{line}: @{name} must be followed by {', '.join(attributes)}, and by a bound, such as: {example}"
        )
    knob = found[2] or ""
    if knob and (knob not in knobs or knobs[knob].unit != "ns"):
        raise PolicyError(f"{path}:{line}: @{name}: {knob} is no @knob in ns that stands above")
    words = " ".join(found[0].split())
    return Entitlement(
        found[1], knob, bool(found[3]), when_free="when free" in words, then_queued="then queued" in words
    )


def _summary(path: Path, header: list[tuple[int, str]]) -> str:
    """First sentence of the header comment, without the name of the file."""
    words: list[str] = []
    for _, line in header:
        line = line.strip()
        if line.startswith(("SPDX-", "Copyright", "@")):
            continue
        if not line:
            if words:
                break
            continue
        words.append(line)
    text = re.sub(rf"^{re.escape(path.name)}\s*[-:\u2013\u2014]*\s*", "", " ".join(words))
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0].rstrip(".")


def source_files(path: Path, *, is_inside: bool = False, has_launch: bool = True) -> dict[str, Path]:
    """Find a policy's source, its user half in C and, transitively, the headers that they include."""
    found = {"": path}
    include = paths.include_folder()
    own = path.parent.resolve() if is_inside else None
    if own and not path.resolve().is_relative_to(own):
        raise PolicyError(f"{path}: it is a link to a file outside of its folder")
    more = published(path)
    launch = launch_code(policy_name(path), path) if has_launch else None
    if own and (launch or more != Published()):
        raise PolicyError(
            f"{path}: a scheduler of several files; the sandbox takes one, so leave out --sandbox"
        )
    others = [*more.sources, *([launch] if launch else [])]
    found |= {os.path.relpath(other, path.parent): other for other in (*others, *more.others)}
    folders = [include, *([include / "published"] if more.is_published else []), *more.includes]
    if more.is_published:
        found["kernel.h"] = include / "published" / "kernel.h"
    queue = list(found.values())
    while queue:
        file = queue.pop()
        text = file.read_bytes().decode("utf-8", "replace")
        for quote, name in _INCLUDE.findall(text):
            link, _, rest = name.partition("/")
            places = [folder / name for folder in ([file.parent] if quote == '"' else []) + folders]
            places += [more.links[link] / rest] if link in more.links else []
            # A header that is in neither place is the compiler's own.
            header = None
            for place in places:
                # Where it leads, not how it is written: a name with `..` begins with our folder, too.
                # Nor whether it is there: that would be known by the answer.
                if own and not any(map(place.resolve().is_relative_to, (own, include.resolve()))):
                    raise PolicyError(f"{file}: it includes {name}, which is outside of {path.parent}")
                if place.is_file():
                    header = place
                    break
            if header is None:
                continue
            # Two headers of one name in two folders: the second by its place.
            is_other = os.path.abspath(found.get(name, header)) != os.path.abspath(header)
            key = os.path.relpath(header, path.parent) if is_other else name
            if key not in found:
                found[key] = header
                queue.append(header)
    return found


def own_files(path: Path) -> tuple[Path, dict[str, bytes]]:
    """Read the files of a policy that are not schedlab's own, which are everywhere the same."""
    include = os.path.abspath(paths.include_folder()) + os.sep
    files = dict.fromkeys(os.path.abspath(file) for file in source_files(path).values())
    own = [Path(file) for file in files if not file.startswith(include)]
    folder = Path(os.path.commonpath([file.parent for file in own]))
    return folder, {str(file.relative_to(folder)): file.read_bytes() for file in own}


def hash_content(path: Path) -> str:
    """Hash a source and, transitively, the project's headers that it names."""
    contents = {
        name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in source_files(path).items()
    }
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


# ---- values of knobs --------------------------------------------------------


def _in_unit(text: str, unit: str) -> int:
    """Read a number, with or without a unit, as a whole number of `unit`."""
    if unit == "bool" and text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    try:
        # C's spelling of a number is a number here too.
        return int(text.replace("_", ""), 0)
    except ValueError:
        pass
    quantity = parse_quantity(text)
    scales = {"time": _TIME_KNOBS, "size": _SIZE_KNOBS, "number": {unit: 1}}[quantity.dimension]
    if unit not in scales:
        raise UnitError(f"'{text}' is a {quantity.dimension}, but the unit is {unit}")
    value = quantity.value / scales[unit]
    if value.denominator != 1:
        raise UnitError(f"'{text}' is not a whole number of {unit}")
    return int(value)


def show_value(knob: Knob, value: int) -> str:
    """Write a knob's value as people do."""
    for name, its in knob.names.items():
        if its == value:
            return name
    if knob.unit in _TIME_KNOBS:
        ns = value * _TIME_KNOBS[knob.unit]
        for unit in ("s", "ms", "us"):
            if ns and ns % _TIME_KNOBS[unit] == 0:
                return f"{ns // _TIME_KNOBS[unit]}{unit}"
        return f"{ns}ns" if ns else "0"
    if knob.unit == "bool":
        return "yes" if value else "no"
    return str(value)


def show_range(knob: Knob) -> str:
    """Write what a knob may be set to."""
    if knob.names:
        return ", ".join(knob.names)
    return f"{show_value(knob, knob.minimum)} .. {show_value(knob, knob.maximum)}"


def parse_settings(settings: Sequence[str], policies: Mapping[str, Policy]) -> dict[str, Variant]:
    """Read `--set POLICY.KNOB=VALUE` arguments.

    Several values with commas between them make a variant of the policy for each,
    and several such knobs one for each combination. A variant is compared like a
    policy of its own; its name shows what was set.
    """
    chosen: dict[str, dict[str, list[int]]] = {name: {} for name in policies}
    problems = []
    for setting in settings:
        try:
            policy, knob, values = _parse_setting(setting, policies)
            chosen[policy][knob] = values
        except UsageError as error:
            problems.append(f"--set {setting}: {error}")
    variants: dict[str, Variant] = {}
    for name, knobs in chosen.items():
        if math.prod(map(len, knobs.values())) > VARIANTS_MAX:
            problems.append(f"--set: more than {VARIANTS_MAX} variants of policy '{name}'; give fewer values")
            continue
        for combination in itertools.product(*knobs.values()):
            chosen_values = dict(zip(knobs, combination, strict=True))
            variant = _variant_name(name, policies[name], knobs, chosen_values)
            variants[variant] = Variant(policies[name], chosen_values)
    if problems:
        raise UsageError("\n".join(problems))
    return variants


def _variant_name(
    name: str, policy: Policy, chosen: Mapping[str, list[int]], values: Mapping[str, Any]
) -> str:
    """The policy's name, with those knobs that tell it from its other variants."""
    shown = [
        f"{knob}={show_value(policy.knobs[knob], value)}"
        for knob, value in values.items()
        if len(chosen[knob]) > 1
    ]
    return f"{name}:{','.join(shown)}" if shown else name


def _parse_setting(setting: str, policies: Mapping[str, Policy]) -> tuple[str, str, list[int]]:
    """Read one setting; see `parse_settings`."""
    target, equals, text = setting.partition("=")
    name, dot, knob_name = target.strip().rpartition(".")
    texts = [part.strip() for part in text.split(",")]
    if not equals or not dot or not all(texts):
        raise UsageError(
            "should read POLICY.KNOB=VALUE, such as mlfq.boost_ns=100ms, or several "
            "values with commas between"
        )
    if name not in policies:
        raise UsageError(f"policy '{name}' takes no part in this run{did_you_mean(name, policies)}")
    knobs = policies[name].knobs
    if knob_name not in knobs:
        known = did_you_mean(knob_name, knobs) if knobs else "; it has no knobs"
        raise UsageError(f"policy '{name}' has no knob '{knob_name}'{known}")
    values = [parse_value(knobs[knob_name], text) for text in texts]
    if len({*values}) < len(values):
        raise UsageError("one value is given twice")
    return name, knob_name, values


def parse_value(knob: Knob, text: str) -> int:
    """Read one value of a knob, as a user writes it."""
    if text in knob.names:
        return knob.names[text]
    try:
        value = _in_unit(text, knob.unit)
        # 0 is the one time that needs no unit; 1 may be meant as a millisecond.
        if knob.unit in _TIME_KNOBS and value and not text[-1].isalpha():
            raise UsageError(
                f"'{text}' has no unit, and {knob.name} is a time; write {text}{knob.unit}, or another unit of time"
            )
    except UnitError:
        if not knob.names:
            raise
        value = None
    if value is None or (knob.names and value not in knob.names.values()):
        raise UsageError(f"{knob.name} has no value '{text}'{did_you_mean(text, knob.names)}")
    if not knob.minimum <= value <= knob.maximum:
        raise UsageError(
            f"{text} is out of range: {knob.name} goes from "
            f"{show_value(knob, knob.minimum)} to {show_value(knob, knob.maximum)}"
        )
    return value


def policy_hash(policy: Policy, values: Mapping[str, int | str]) -> str:
    """Identify what decides in a run: source, headers and knob values."""
    content = json.dumps({"content": policy.content_hash, "knobs": dict(values)}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
