# SPDX-License-Identifier: MIT
"""The guest: a real kernel in QEMU, booted once for all that only loads; and events that are made records."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from linux import event_files as ev
from linux import verifier_counts
from schedlab.errors import UnavailableError
from schedlab.hosts.guest import build as guest_build
from schedlab.hosts.guest import image as guest_image
from schedlab.hosts.guest import policies as guest
from schedlab.hosts.linux.recorder import convert_events
from schedlab.policy.bpf import compile_object
from schedlab.records.file import read_records

HERE = Path(__file__).resolve().parent


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
def load_answers(guest_parts, bad_policies):
    """What the kernel says to each policy, by name: one boot for all of them."""
    tasks = verifier_counts.load_tasks() + [
        guest.GuestTask(
            name=source.name.removesuffix(".bpf.c"),
            policy=compile_object(source).read_bytes(),
            # Long enough for the watchdog, which looks twice per timeout of 1 s.
            hold_ms=4000 if source.name == "stalls.bpf.c" else 100,
        )
        for source in sorted(bad_policies.glob("*.bpf.c"))
    ]
    return {answer.name: answer for answer in guest.run_guest(tasks)}


@pytest.fixture
def convert(build, tmp_path):
    """Events in, (Converted, Records) out; the file must always be readable."""

    def do(events, *, origin_ns=None, end_ns=None, **header):
        path, records = tmp_path / "x.slev", tmp_path / "x.slr"
        ev.write(path, events, **header)
        converted = convert_events(path, records, origin_ns=origin_ns, end_ns=end_ns)
        return converted, read_records(records)

    return do
