# SPDX-License-Identifier: MIT
"""A broken property as files: a workload, the run that shows it, and a test.

        out/check/mine/stall-1.toml     the world; its first lines say how it is run
        out/check/mine/stall-1/         the run's folder, for `schedlab gantt` and `trace`
        out/check/mine/test_mine_check.py   one test for each file that is there

Invariant: what is written is enough to repeat the failure without the search.
Read next: cli/check.py.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
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
from .trial import Finding
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
POLICY = {policy!r}


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

    #: The file that says how it is run; None: the workload was given, and `run` repeats it.
    world: Path | None
    #: Folder of the run; None: its CPUs interleave or an invariant is tested, or there are events, which `--replay` alone repeats.
    run: Path | None
    #: `run_command`, `replay_command`: What repeats it.
    run_command: str
    replay_command: str
    on_linux: str = ""  #: What a real kernel made of it, where it was asked.


def save(
    world: World, finding: Finding, built: BuiltPolicy, folder: Path, *, number: int, workload_name: str = ""
) -> Saved:
    """Write the files of failure `number`, from 1; `workload_name` is what the user calls a given workload."""
    policy = policy_word(built)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{finding.broken}-{number}.toml"
    source = Path(workload_name).resolve() if world.given and Path(workload_name).is_file() else None
    is_known = source is not None and _is_in(source, world)
    if is_known:
        path = Path(workload_name)
    elif source == path.resolve():
        path = folder / f"{finding.broken}-{number}-again.toml"
    name = workload_name or str(path)
    settings = [(f"{built.policy.name}.{key}", in_words(built, key, value)) for key, value in world.settings]
    options = ["--topology", world.topology] if world.topology else []
    for key, words in settings:
        options += ["--set", f"{key}={words}"]
    machine = ["--cpus", str(world.n_cpus), "--seed", str(world.seed)]
    run_command = shlex.join(["schedlab", "run", name, "--policy", policy, *machine, *options])
    # A workload that was given has a file of its own, which says nothing of what is drawn here.
    is_drawn = bool(
        world.given and (world.events != world.given.events or world.interleaving != world.given.interleaving)
    )
    # What `schedlab run` does not hold.
    tested = ("invariant", "ignored-error", "vtime")
    is_of_check = is_drawn or finding.broken in (*tested, *RELATIONS)
    is_judged_by_check = is_of_check or finding.broken in PROMISED
    replay = shlex.join(["schedlab", "check", policy, "--replay", str(path) if is_of_check else name])
    if is_judged_by_check:
        run_command = replay
    if not is_known and (is_of_check or not workload_name):
        how = {
            "property": finding.broken, "topology": world.topology, "seed": world.seed,
            "settings": dict(world.settings),
        }  # fmt: skip
        if finding.broken in RELATIONS:
            # Another run of it is made of these.
            how["groups"] = [asdict(group) for group in world.groups]
            how["limits"] = [asdict(each) for each in world.limits]
        if world.given:
            how |= {"workload": str(source or workload_name), "cpus": world.n_cpus}
            how |= {"interleaving": world.interleaving, "events": world.machine_events}
        head = (
            f"# {finding.broken}: {finding.text.splitlines()[0]}\n# {run_command}\n{MARK}{json.dumps(how)}\n"
        )
        title = f"A {finding.broken} of {built.policy.name}, found by schedlab check"
        write_text(path, head + ("" if world.given else to_toml(world, title=title)))
        write_text(
            folder / f"test_{built.policy.name}_check.py", TEST.format(name=built.policy.name, policy=policy)
        )
    if is_of_check:
        return Saved(path, None, run_command, replay)
    result = api.run(
        name, policy, seeds=[world.seed], cpus=world.n_cpus, topology=world.topology,
        set=dict(settings), out=folder / path.stem,
    )  # fmt: skip
    return Saved(
        world=None if workload_name else path,
        run=Path(result.runs["directory"][0]),
        run_command=run_command,
        replay_command=run_command if workload_name else replay,
    )


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
    for number, each in enumerate(found, 1):
        world, finding = each.smallest.world, each.smallest.finding
        name = given_name or str(world.given.path) if world.given else ""
        saved = save(world, finding, built, folder, number=number, workload_name=name)
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
    marked = [line for line in text.splitlines() if line.startswith(MARK)]
    try:
        how = json.loads(marked[0].removeprefix(MARK))
        settings = tuple((str(key), int(value)) for key, value in how["settings"].items())
        topology, seed = str(how["topology"]), int(how["seed"])
        given = str(how.get("interleaving", "")), read_events(str(how.get("events", "")))
        source, n_cpus = str(how.get("workload", path)), int(how.get("cpus", 0))
        groups = tuple(map(_read_group, how.get("groups", ())))
        limits = tuple(Cgroup(**each) for each in how.get("limits", ()))
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


def found_in(path: Path) -> str:
    """The property that a world broke, which `read_world` has read."""
    marked = (line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(MARK))
    return str(json.loads(next(marked).removeprefix(MARK)).get("property", ""))


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
