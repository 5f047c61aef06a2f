# SPDX-License-Identifier: MIT
"""Describe a policy for `schedlab policies`, whether or not it compiles, and a workload.

Read next: policy/build.py.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import PolicyError
from ..hosts.choose import engine_here
from ..policy.build import build_policy
from ..policy.find import find_policy, load_policy, show_range, show_value
from ..workload.find import load_workload


def describe_workload(name: str) -> dict[str, Any]:
    """Read a workload, and list its params, classes of tasks and groups.

    `params` are the defaults as text; `values` what they are in `name`, such as ``mixed:hogs=4``.
    """
    workload = load_workload(name)
    params = workload.params.values()
    return {
        "name": workload.name,
        "title": workload.title,
        "question": workload.question,
        "description": workload.description,
        "cpus": workload.cpus,
        "tasks": workload.n_tasks,
        "params": {param.name: param.default for param in params},
        "values": {param.name: param.text for param in params},
        "about": {param.name: param.about for param in params},
        "classes": [
            {"name": task.name, "tasks": task.count, "parent": task.parent, "group": task.group}
            for task in workload.tasks
        ],
        "groups": [
            {"name": group.name, "parent": group.parent, "weight": group.weight, "cpus": list(group.cpus)}
            for group in workload.groups
        ],
        "path": str(workload.path),
    }


def describe_policy(name: str) -> dict[str, Any]:
    """Look a policy up, compile it, and list its knobs."""
    entry: dict[str, Any] = {
        "name": Path(name).name.removesuffix(".c").removesuffix(".bpf"), "path": "", "summary": "",
        "work_conserving": None, "work_conserving_reason": "", "source": "", "policy_hash": None,
        "knobs": [], "error": None,
    }  # fmt: skip
    entry["path"] = str(find_policy(name))
    try:
        policy = load_policy(name)
        entry |= {
            key: getattr(policy, key)
            for key in ("name", "summary", "work_conserving", "work_conserving_reason")
        }
        entry |= {"path": str(policy.path), "source": policy.source_text}
        built = build_policy(policy, engine=engine_here()[0])
    except PolicyError as error:
        return entry | {"error": str(error)}
    knobs = [
        {key: value for key, value in asdict(knob).items() if key != "line"}
        | {"default": value, "default_text": show_value(knob, value), "range_text": show_range(knob)}
        for knob, value in ((knob, built.values[knob.name]) for knob in policy.knobs.values())
    ]
    return entry | {"policy_hash": built.policy_hash, "knobs": knobs}
