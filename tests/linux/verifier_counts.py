# SPDX-License-Identifier: MIT
"""What the verifier of a real kernel counted for each policy, kept in a file.

A policy that grows is read and verified longer at each load, and one day refused.
The file says with which kernel and which clang it was made: with others the counts
differ a little, so that more is tolerated then.

Called by tools/bless. Read next: test_guest_load.py.
"""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

from schedlab.hosts.guest import image as guest_image
from schedlab.hosts.guest import policies as guest
from schedlab.policy.bpf import compile_object, find_bpf_compiler

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BASELINE = HERE / "verifier.toml"
#: Growth that is none, with the same kernel and clang, and with others.
TOLERATED, TOLERATED_ELSEWHERE = 0.0, 0.25

#: The verifier sees a knob as a constant and drops what it excludes, so a policy
#: is another program for every setting. Each variant turns on what is off.
KNOB_VARIANTS = {
    "credit longest": {"balance": 2},
    "credit push": {"balance": 3, "wakeup_boost": 0},
    "credit_report longest": {"balance": 2},
    "credit_report push": {"balance": 3},
    "lottery report": {"random_source": 1},
    "lottery compensated": {"compensation": 1},
    "mlfq fair": {"allotment": 1, "boost_ns": 100_000_000, "rotate": 1},
    "priority report": {
        "short_fifo": 1,
        "fifo_first": 1,
        "pid_rule": 1,
        "sched_log": 1,
        "min_slice_ns": 50_000_000,
        "high_slice_ns": 50_000_000,
        "kill_ns": 1_000_000_000_000,
    },
    "priority without-ageing": {"ageing_ns": 0},
    "priority inheriting": {"inherit_ns": 10_000_000},
    "cfs without-preemption": {"wakeup_preemption": 0},
    "cfs flat": {"groups": 1},
    "cfs tree": {"groups": 2},
    "credit flat": {"groups": 1},
    "eevdf flat": {"groups": 1},
    "eevdf tree": {"groups": 2},
}


def load_tasks() -> list[guest.GuestTask]:
    """Each policy of ours, and each variant, to be loaded and held for a moment."""
    objects = {
        path.name.removesuffix(".bpf.c"): compile_object(path).read_bytes()
        for path in sorted((ROOT / "policies").glob("*.bpf.c"))
    }
    tasks = [guest.GuestTask(name, policy, hold_ms=100) for name, policy in objects.items()]
    return tasks + [
        guest.GuestTask(name, objects[name.split()[0]], knobs=knobs, hold_ms=50)
        for name, knobs in KNOB_VARIANTS.items()
    ]


def versions() -> dict[str, str]:
    """Kernel and compiler that the counts depend on."""
    done = subprocess.run([find_bpf_compiler(), "--version"], capture_output=True, text=True, check=True)
    return {
        "kernel": guest_image.fetch_guest_parts().kernel_version,
        "clang": done.stdout.partition("\n")[0].strip(),
    }


def read_baseline() -> dict:
    """The file: `kernel`, `clang`, and `counts` by policy and callback."""
    return tomllib.loads(BASELINE.read_text())


def grown(counts: dict[str, int], before: dict[str, int], *, tolerated: float) -> list[str]:
    """What takes the verifier longer than the file says, by more than the tolerated part; one sentence each."""
    return [
        f"{name}: {count} instructions, {before[name]} before" if name in before else f"{name}: is new"
        for name, count in counts.items()
        if name not in before or count > before[name] * (1 + tolerated)
    ]


def bless() -> list[str]:
    """Write what the kernel counts now; returns the policies that changed."""
    before = read_baseline()["counts"] if BASELINE.exists() else {}
    answers = guest.run_guest(load_tasks())
    lines = [
        "# SPDX-License-Identifier: MIT",
        "# Instructions that the verifier processed; `tools/bless --verifier` writes this.",
        *(f'{key} = "{value}"' for key, value in versions().items()),
    ]
    for answer in answers:
        assert answer.is_loaded, f"{answer.name}: {answer.refusal or answer.fatal}"
        lines += [
            "",
            f'[counts."{answer.name}"]',
            *(f"{callback} = {count}" for callback, count in answer.instructions.items()),
        ]
    BASELINE.write_text("\n".join(lines) + "\n")
    return [answer.name for answer in answers if before.get(answer.name) != answer.instructions]
