# SPDX-License-Identifier: MIT
"""A broken property as files: a workload, the run that shows it, and a test.

        out/check/mine/stall-1.toml     the world; its first lines say how it is run, and what it breaks
        out/check/mine/stall-1/         the run's folder, for `schedlab gantt` and `trace`
        out/check/mine/test_mine_check.py   one test for each file that is there

Invariant: what is written is enough to repeat the failure without the search; of files that are there none is written.
Read next: cli/check.py.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .. import api
from ..errors import NotFoundError, SchedlabError, UsageError
from ..files import write_text
from ..policy.build import BuiltPolicy
from ..workload.events import OF_GROUP, read_events
from ..workload.find import load_workload
from .limits import Cgroup
from .relations import RELATIONS
from .search import Found
from .trial import Finding, NeverWorse
from .world import Group, Phase, World, to_toml

#: Begins the line from which `--replay` reads how a world is run.
MARK = "# schedlab check: "
#: A run does not fail of these.
PROMISED = ("shares", "priority", "inversion", "latency")
TEST = '''# SPDX-License-Identifier: MIT
"""Worlds in which {name} once failed: it has to pass each of them.

Run it with pytest, where the command `schedlab` is installed.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
POLICY = {policy}


@pytest.mark.parametrize("world", sorted(HERE.glob("*.toml")), ids=lambda path: path.stem)
def test_it_does_not_fail_again(world):
    done = subprocess.run(
        [sys.executable, "-m", "schedlab", "check", POLICY, "--replay", world],
        capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
'''


@dataclass(frozen=True)
class Saved:
    """Where a failure is."""

    world: Path  #: The file that says how it is run.
    #: Folder of the run; None: its CPUs interleave or an invariant is tested, or there are events, which `--replay` alone repeats.
    run: Path | None
    #: `run_command`, `replay_command`: What repeats it.
    run_command: str
    replay_command: str
    on_linux: str = ""  #: What a real kernel made of it, where it was asked.


def save(
    world: World,
    finding: Finding,
    built: BuiltPolicy,
    folder: Path,
    *,
    workload_name: str = "",
    never_worse: NeverWorse | None = None,
    is_asked: bool = False,
) -> Saved:
    """Write the files of a failure; `workload_name` is what the user calls a given workload.

    `is_asked`: the property is held only because it was asked for.
    """
    policy = policy_word(built)
    folder.mkdir(parents=True, exist_ok=True)
    source = Path(workload_name).resolve() if world.given and Path(workload_name).is_file() else None
    settings = [(f"{built.policy.name}.{key}", in_words(built, key, value)) for key, value in world.settings]
    options = ["--topology", world.topology] if world.topology else []
    for key, words in settings:
        options += ["--set", f"{key}={words}"]
    machine = ["--cpus", str(world.n_cpus), "--seed", str(world.seed)]
    # A workload that was given has a file of its own, which says nothing of what is drawn here.
    is_drawn = bool(
        world.given and (world.events != world.given.events or world.interleaving != world.given.interleaving)
    )
    # What `schedlab run` does not show, and what it shows, but does not hold.
    is_of_check = is_drawn or finding.broken in ("invariant", "ignored-error", "vtime", *RELATIONS)
    is_judged_by_check = (
        is_of_check
        or finding.broken in (*PROMISED, "worse")
        or (finding.broken == "work" and not built.policy.work_conserving)
    )
    how: dict[str, Any] = {
        "property": finding.broken, "topology": world.topology, "seed": world.seed,
        "settings": dict(world.settings),
    }  # fmt: skip
    if is_asked:
        how["is_asked"] = True
    if finding.broken in RELATIONS:
        # Another run of it is made of these.
        how["groups"] = [asdict(group) for group in world.groups]
        how["limits"] = [asdict(each) for each in world.limits]
    if finding.broken == "worse" and never_worse is not None:
        how["worse"] = {
            "than": _from_anywhere(never_worse.policy), "metric": never_worse.metric, "share": never_worse.share,
        }  # fmt: skip
    if world.given:
        how |= {"workload": str(source or workload_name), "cpus": world.n_cpus}
        how |= {"interleaving": world.interleaving, "events": world.machine_events}
    title = f"A {finding.broken} of {built.policy.name}, found by schedlab check"
    marked = f"{MARK}{json.dumps(how)}\n" + ("" if world.given else to_toml(world, title=title))
    if source is not None and _is_in(source, world):
        path, is_new = Path(workload_name), False
    else:
        path, is_new = _claim(folder, finding.broken, marked)
    name = workload_name or str(path)
    run_command = shlex.join(["schedlab", "run", name, "--policy", policy, *machine, *options])
    replay = shlex.join(["schedlab", "check", policy, "--replay", str(path)])
    if is_judged_by_check:
        run_command = replay
    test = folder / f"test_{built.policy.name}_check.py"
    if is_new:
        write_text(path, f"# {finding.broken}: {finding.text.splitlines()[0]}\n# {run_command}\n{marked}")
        if not test.exists():
            write_text(test, TEST.format(name=built.policy.name, policy=_from_here(policy, built, folder)))
    if is_of_check:
        return Saved(path, None, run_command, replay)
    result = api.run(
        name, policy, seeds=[world.seed], cpus=world.n_cpus, topology=world.topology,
        set=dict(settings), out=folder / path.stem,
    )  # fmt: skip
    return Saved(path, Path(result.runs["directory"][0]), run_command, replay)


def _claim(folder: Path, broken: str, marked: str) -> tuple[Path, bool]:
    """The first file that was not there, now empty, or one that says the same; which of the two it is.

    Another check may write into the same folder.
    """
    for path in (folder / f"{broken}-{number}.toml" for number in itertools.count(1)):
        try:
            path.open("x").close()
        except FileExistsError:
            with suppress(OSError):  # a folder, or not ours to read
                if _said(path.read_text(encoding="utf-8", errors="replace")) == _said(marked):
                    return path, False
        else:
            return path, True
    raise AssertionError  # numbers do not end


def _from_anywhere(built: BuiltPolicy) -> str:
    """How a policy is named in each folder."""
    word = policy_word(built)
    return word if word == built.policy.name else str(_whole(word))


def _whole(word: str) -> Path:
    """The whole path of a policy; of a link its own name, by which the policy is called."""
    return Path(word).parent.resolve() / Path(word).name


def _from_here(policy: str, built: BuiltPolicy, folder: Path) -> str:
    """A policy in Python, for a test in a folder; what was named from where the user was goes with the folder."""
    if policy == built.policy.name or Path(policy).is_absolute():
        return repr(policy)
    return f"HERE / {os.path.relpath(_whole(policy), folder.resolve())!r}"


def _said(text: str) -> list[str]:
    """A file of a world without what is a person's to read."""
    return [*_marked(text), *_body(text)]


def _marked(text: str) -> list[str]:
    """The lines that say how a world is run; the first counts."""
    return [line for line in text.splitlines() if line.startswith(MARK)]


def _is_in(path: Path, world: World) -> bool:
    """Whether that file says how this world is run."""
    try:
        return replace(read_world(path), given=world.given, horizon_ns=world.horizon_ns) == world
    except SchedlabError:
        return False


def save_all(
    found: Sequence[Found],
    built: BuiltPolicy,
    folder: Path,
    given_name: str,
    then: Callable[[Saved, World, Finding, BuiltPolicy], Saved] | None = None,
) -> list[Saved]:
    """Write the files of each failure, see `save`; `given_name` is that of a workload that was given."""
    result = []
    for each in found:
        world, finding = each.smallest.world, each.smallest.finding
        name = given_name or str(world.given.path) if world.given else ""
        saved = save(world, finding, built, folder, workload_name=name, never_worse=each.never_worse,
                     is_asked=each.is_asked)  # fmt: skip
        result.append(then(saved, world, finding, built) if then else saved)
    return result


def read_world(path: Path) -> World:
    """Read a world that `save` has written, or a workload edited since; its first lines say how it is run."""
    if not path.is_file():
        load_workload(path)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        how = json.loads(_marked(text)[0].removeprefix(MARK))
        settings = tuple((str(key), int(value)) for key, value in how["settings"].items())
        topology, seed = str(how["topology"]), int(how["seed"])
        given = str(how.get("interleaving", "")), read_events(str(how.get("events", "")))
        source, n_cpus = str(how.get("workload", path)), int(how.get("cpus", 0))
        groups = tuple(map(_read_group, how.get("groups", ())))
        limits = tuple(
            Cgroup(**(each | {"cpus": tuple(each.get("cpus", ()))})) for each in how.get("limits", ())
        )
    except (IndexError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise UsageError(
            f"{path}: no line '{MARK.strip()} {{...}}' says how it is run; give it with --workload instead"
        ) from error
    workload = load_workload(source)
    is_given = "events" in how or "interleaving" in how
    interleaving, events = given if is_given else (workload.interleaving, workload.events)
    if groups:
        world = World(
            workload.cpus,
            topology,
            workload.tick_ns,
            groups,
            settings,
            seed,
            workload.horizon_ns,
            events=tuple(
                replace(event, which=0) if event.kind in OF_GROUP else event
                for event in events
                if event.kind != "thread"
            ),
            limits=limits,
        )
        if _body(to_toml(world)) != _body(text):
            raise UsageError(
                f"{path}: its tasks are no longer those of its line '{MARK.strip()} ...', of which the other run is made"
            )
        return world
    return World(
        n_cpus=n_cpus or workload.cpus,
        topology=topology,
        tick_ns=workload.tick_ns,
        groups=(),
        settings=settings,
        seed=seed,
        horizon_ns=0,
        given=workload,
        n_cpus_min=max(1, workload.cpus_min),
        interleaving=interleaving,
        events=events,
    )


def _read_group(fields: dict[str, Any]) -> Group:
    """A group of tasks, as `save` has written it."""
    phases = tuple(Phase(**phase) for phase in fields["phases"])
    attributes = tuple((str(name), int(value)) for name, value in fields["attributes"])
    return Group(
        **(fields | {"phases": phases, "attributes": attributes, "affinity": tuple(fields["affinity"])})
    )


def _body(text: str) -> list[str]:
    """A world as TOML, without its comments and its title."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "title ="))]


def found_in(path: Path) -> dict[str, Any]:
    """How a world is run that `read_world` has read: the `property` that it broke, and what it was found by."""
    text = path.read_text(encoding="utf-8", errors="replace")
    how: dict[str, Any] = json.loads(_marked(text)[0].removeprefix(MARK))
    return {"property": ""} | how


def check_settings(world: World, built: BuiltPolicy) -> World:
    """Refuse a world whose knobs the policy does not have any more."""
    for key, _ in world.settings:
        if key not in built.policy.knobs:
            raise UsageError(
                f"the world sets {key}, which {built.policy.name} does not have; edit its first lines"
            )
    return world


def policy_word(built: BuiltPolicy) -> str:
    """How a policy is named on the command line."""
    from ..policy.find import find_policy

    try:
        is_ours = find_policy(built.policy.name) == built.policy.path
    except SchedlabError:
        is_ours = False
    return built.policy.name if is_ours else str(built.policy.path)


def in_words(built: BuiltPolicy, key: str, value: int) -> str:
    """A knob's value as `--set` takes it."""
    knob = built.policy.knobs[key]
    for name, number in knob.names.items():
        if number == value:
            return name
    if knob.unit == "bool":
        return "yes" if value else "no"
    return f"{value}{knob.unit}" if knob.unit in ("ns", "us", "ms", "s") else str(value)
