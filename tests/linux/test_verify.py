# SPDX-License-Identifier: MIT
"""`schedlab verify`: the guest's kernel accepts or refuses, and is asked once."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from schedlab.cli.app import app
from schedlab.hosts.guest import verify

pytestmark = pytest.mark.full


def test_a_policy_is_accepted_or_refused_at_its_line(guest_parts, bad_policies, tmp_path, monkeypatch):
    monkeypatch.setattr(verify, "cache_folder", lambda name: tmp_path)
    words = ["verify", "rr", str(bad_policies / "no_null_check.bpf.c"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1, done.output
    good, bad = json.loads(done.stdout.splitlines()[-1])["policies"]
    assert (good["policy"], good["is_accepted"], good["reason"]) == ("rr", True, "")
    assert good["kernel"].startswith("Linux 7.") and good["instructions"]["rr_enqueue"] > 0
    assert not bad["is_accepted"]
    assert bad["reason"].splitlines() == [
        "no_null_check.bpf.c:12: scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, attr->burst_ns, enq_flags);",
        "R0 invalid mem access 'map_value_or_null'",
    ]
    monkeypatch.setattr(verify, "GuestRunner", None)
    again = CliRunner().invoke(app, words)
    assert again.stdout.splitlines()[-1] == done.stdout.splitlines()[-1]
