# SPDX-License-Identifier: MIT
"""A workload as a test of ktstr, which boots a kernel in KVM with the machine that the test declares.

        FOLDER/Cargo.toml           ktstr pinned: its interface changes between versions
        FOLDER/tests/NAME.rs        machine, scheduler and time-out; it plays the program
        FOLDER/NAME.slprog          the workload, with all drawn
        FOLDER/schedlab-play        plays it, as the hosts `linux` and `guest` do

So tasks do there, as real processes, what they did here. Its test passes once the
scheduler survives the workload.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from .. import paths
from ..errors import SchedlabError, UsageError
from ..model import parse_topology
from ..program.compiler import compile_workload
from ..workload.find import load_workload
from ..workload.phases import ATTRIBUTES
from .save import read_world

#: Version of the crate that the test is written for.
KTSTR = "0.50.0"
#: Of Linux, in seconds; ktstr's own is 5, within which a policy may well let a task wait.
WATCHDOG_S = 30
#: The kernel boots and the policy is loaded before time 0.
MARGIN_S = 5

CARGO = """[package]
name = "{package}"
version = "0.1.0"
edition = "2024"
publish = false

[dev-dependencies]
ktstr = "={ktstr}"
"""
TEST = """// SPDX-License-Identifier: MIT
//! {title}
//!
//! Written by `schedlab export ktstr`. Passes once {scheduler} lets each task run within {watchdog} s
//! and is still loaded when the workload ends: {horizon}.
//! Run it where Cargo.toml is: cargo ktstr test --kernel 7.2

use std::time::Duration;

use ktstr::declare_scheduler;
use ktstr::prelude::*;

declare_scheduler!(SCHEDULER, {{
    name = "{name}",
    {binary} = "{scheduler}",
}});

#[derive(Payload)]
#[payload(binary = "schedlab-play")]
#[include_files("{name}.slprog")]
#[default_args("--program", "/include-files/{name}.slprog", "--result", "/tmp/{name}.jsonl", "--folder", "/tmp"{more})]
#[default_check(exit_code_eq(0))]
struct PlayPayload;

#[ktstr_test(
    scheduler = SCHEDULER,
    numa_nodes = {nodes}, llcs = {llcs}, cores = {cores}, threads = {threads},
    payload = PLAY, duration_s = {duration}, watchdog_timeout_s = {watchdog},
)]
fn {name}(ctx: &Ctx) -> Result<AssertResult> {{
    let play = vec![Op::run_payload(&PLAY, [] as [&str; 0]), Op::wait_payload(PLAY.name)];
    execute_steps(ctx, vec![Step::new(play, HoldSpec::fixed(Duration::from_secs(1)))])
}}
"""


def export_ktstr(workload_name: str, scheduler: str, folder: Path, *, seed: int = 0) -> tuple[str, ...]:
    """Write the crate; gives what it does not say, for people.

    `scheduler` is the program that loads the policy: a name that cargo builds, or an absolute path.
    """
    workload = load_workload(workload_name)
    if not workload.horizon_ns:
        raise UsageError(f"{workload_name}: ktstr's test needs a duration; give [workload] a horizon")
    if not re.fullmatch(r"[\w./+-]+", scheduler):
        raise UsageError(f"--scheduler {scheduler!r}: give a program's name, or its absolute path")
    n_cpus, topology = workload.cpus, ""
    try:
        world = read_world(Path(workload_name))
        n_cpus, topology, seed = world.n_cpus, world.topology, seed or world.seed
    except SchedlabError:
        pass  # No finding of `check`: the machine is the workload's.
    shape, notes = _shape(n_cpus, topology)
    program = compile_workload(workload, seed=seed)
    given = {key for row in program.task_rows for key in range(8) if int(row["attr_given"]) >> key & 1}
    weight = ATTRIBUTES["weight"][0]
    lost = sorted(
        name for name, (key, *_) in ATTRIBUTES.items() if key in given - {weight} and name != "nice"
    )
    if lost:
        notes.append(f"{', '.join(lost)} of tasks: left out, since only a loader of the policy could tell it")
    if program.has_groups:
        notes.append("groups: left out")
    if workload.happens:
        notes.append(f"{workload.happens}: left out")
    name = re.sub(r"\W", "_", Path(workload_name).stem.lower())
    name = name if name[0].isalpha() else f"w_{name}"
    seconds = -(-workload.horizon_ns // 10**9)
    text = TEST.format(
        title=workload.title or workload.name, name=name, scheduler=scheduler, horizon=f"{seconds} s",
        binary="binary_path" if scheduler.startswith("/") else "binary", **shape, watchdog=WATCHDOG_S,
        more=', "--weights"' if weight in given else "", duration=seconds + MARGIN_S,
    )  # fmt: skip
    try:
        (folder / "tests").mkdir(parents=True, exist_ok=True)
        manifest = folder / "Cargo.toml"
        if not manifest.exists():
            manifest.write_text(CARGO.format(package=f"{name.replace('_', '-')}-ktstr", ktstr=KTSTR))
        (folder / "tests" / f"{name}.rs").write_text(text, encoding="utf-8")
        program.save(folder / f"{name}.slprog")
        shutil.copy2(paths.linux_runner(), folder / "schedlab-play")
    except OSError as error:
        raise UsageError(f"--out {folder}: {error.strerror or error}") from error
    return tuple(notes)


def _shape(n_cpus: int, text: str) -> tuple[dict[str, int], list[str]]:
    """How many of each ktstr has: nodes, caches, cores in a cache, threads in a core."""
    sizes = parse_topology("--topology", text)
    threads = sizes.get("smt", 1)
    in_cache = sizes.get("llc", sizes.get("node", n_cpus))
    in_node = sizes.get("node", n_cpus)
    if n_cpus % in_node or in_node % in_cache or in_cache % threads:
        return (
            {"nodes": 1, "llcs": 1, "cores": n_cpus, "threads": 1},
            [f"{text}: {n_cpus} CPUs are no whole number of them, which ktstr needs; all CPUs are alike"],
        )
    return (
        {
            "nodes": n_cpus // in_node,
            "llcs": n_cpus // in_cache,
            "cores": in_cache // threads,
            "threads": threads,
        },
        [],
    )
