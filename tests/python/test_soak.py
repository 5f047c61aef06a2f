# SPDX-License-Identifier: MIT
"""A soak says what it did, also when it failed."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from checkout import soak
from schedlab.errors import NotFoundError


def test_unknown_soak_is_refused():
    with pytest.raises(NotFoundError, match="did you mean 'properties'"):
        soak.run_soak("propertys")


@pytest.mark.parametrize(("code", "last"), [(0, "== 3 passed in 1.0s =="), (1, "1 failed, 2 passed in 1.0s")])
def test_result_is_written_down_either_way(monkeypatch, tmp_path, code, last):
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs").mkdir()
    calls = []

    def answer(command, **options):
        if command[0] == "git":
            # Somebody commits while it runs.
            return SimpleNamespace(returncode=0, stdout="def456\n" if calls else "abc123\n")
        calls.append((command, options.get("env", {}).get("SCHEDLAB_EXAMPLES")))
        return SimpleNamespace(returncode=code, stdout=f"..\n{last}\n")

    monkeypatch.setattr(subprocess, "run", answer)
    monkeypatch.setattr(soak.paths, "resource_root", lambda: tmp_path)
    assert soak.run_soak("properties", amount=7) == (code == 0)
    assert calls[0][1] == "7" and "tests/sim/test_properties.py" in calls[0][0]
    log = (tmp_path / "docs" / "soaks.md").read_text()
    assert log.startswith("# Soaks")
    assert (
        f"| properties | abc123 | 0.0 | {last.strip('= ')} | `SCHEDLAB_EXAMPLES=7 ./lab soak properties` |"
        in log
    )
    soak.run_soak("properties", amount=8)
    assert (tmp_path / "docs" / "soaks.md").read_text().count("\n| 20") == 2
