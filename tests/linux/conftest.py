# SPDX-License-Identifier: MIT
"""The guest: a real kernel in QEMU, booted once for all that only loads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from schedlab.errors import UnavailableError
from schedlab.hosts import guest, guest_build, guest_image

HERE = Path(__file__).resolve().parent


#: The verifier sees a knob as a constant and drops what it excludes, so a policy
#: is another program for every setting. Each variant turns on what is off.
KNOB_VARIANTS = {
    "credit report": {"mode": 0},
    "credit longest": {"balance": 2},
    "credit push": {"balance": 3, "wakeup_boost": 0},
    "lottery report": {"random_source": 1},
    "lottery compensated": {"compensation": 1},
    "mlfq fair": {"allotment": 1, "boost_ns": 100_000_000, "rotate": 1},
    "priority report": {"short_fifo": 1, "pid_rule": 1, "sched_log": 1, "min_slice_ns": 50_000_000,
                        "kill_ns": 1_000_000_000_000},
    "priority without-ageing": {"ageing_ns": 0},
    "priority inheriting": {"inherit_ns": 10_000_000},
    "cfs without-preemption": {"wakeup_preemption": 0},
}


@pytest.fixture(scope="session")
def guest_parts():
    """Kernel and libbpf; skips with the reason, fails where nothing may be missing."""
    try:
        reason = guest.unavailable_reason()
        if reason:
            raise UnavailableError(reason)
        parts = guest_image.fetch_guest_parts()
        guest_build.build_program("guest", parts.libbpf)
    except UnavailableError as error:
        if os.environ.get("SCHEDLAB_TOOLS_REQUIRED"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    return parts


@pytest.fixture(scope="session")
def bad_policies() -> Path:
    """Folder with policies that are wrong on purpose, and one that uses everything."""
    return HERE / "policies"


@pytest.fixture(scope="session")
def load_answers(guest_parts, root, bad_policies):
    """What the kernel says to each policy, by name: one boot for all of them."""
    sources = sorted((root / "policies").glob("*.bpf.c")) + sorted(bad_policies.glob("*.bpf.c"))
    tasks = [
        guest.GuestTask(
            name=source.name.removesuffix(".bpf.c"),
            policy=guest_build.compile_for_bpf(source),
            # Long enough for the watchdog, which looks twice per timeout of 1 s.
            hold_ms=4000 if source.name == "stalls.bpf.c" else 100,
        )
        for source in sources
    ]
    tasks += [
        guest.GuestTask(
            name=name,
            policy=guest_build.compile_for_bpf(root / "policies" / f"{name.split()[0]}.bpf.c"),
            knobs=knobs,
            hold_ms=50,
        )
        for name, knobs in KNOB_VARIANTS.items()
    ]
    return {answer.name: answer for answer in guest.run_guest(tasks)}
