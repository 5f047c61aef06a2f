# SPDX-License-Identifier: MIT
"""`selfbench --beside COMMIT`: an earlier commit is built and measured by its own benchmark."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from schedlab import paths
from schedlab.errors import NotFoundError, UnavailableError

#: A project whose benchmark says a number that its build made.
MESON = "project('small')\nconfigure_file(output: 'speed', configuration: {'x': 1})\n"
BENCH = """
from pathlib import Path
def measure(host, *, is_quick=False):
    assert (Path(__file__).parents[1] / "build" / "speed").is_file()
    rows = [{"name": f"{host}_speed", "value": 7.0 if is_quick else 70.0}, {"name": "absent", "value": None}]
    return {"benchmarks": rows, "skipped": []}
"""


def load_beside():
    path = paths.resource_root() / "bench" / "beside.py"
    spec = importlib.util.spec_from_file_location("beside", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one commit, and a cache of its own."""
    root = tmp_path / "checkout"
    (root / "bench").mkdir(parents=True)
    (root / "meson.build").write_text(MESON)
    (root / "bench" / "selfbench.py").write_text(BENCH)
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"],
    ):
        subprocess.run(["git", "-C", root, *words], check=True)
    monkeypatch.setattr(paths, "cache_folder", lambda name: tmp_path / "cache" / name)
    return root


@pytest.mark.full
def test_a_commit_is_measured_as_it_was(checkout):
    beside = load_beside()
    # What is changed since is not measured.
    (checkout / "bench" / "selfbench.py").write_text("raise SystemExit('not this one')\n")
    assert beside.figures("HEAD", "sim", is_quick=True, root=checkout) == {"sim_speed": 7.0}
    assert beside.figures("HEAD", "sim", is_quick=False, root=checkout) == {"sim_speed": 70.0}


def test_an_unknown_commit_is_an_error_that_names_it(checkout):
    with pytest.raises(
        NotFoundError, match="--beside nosuch: no such commit in .*; 'git log --oneline' lists them"
    ):
        load_beside().figures("nosuch", "sim", is_quick=True, root=checkout)


def test_a_commit_that_does_not_build_is_an_error_with_its_last_line(checkout):
    (checkout / "meson.build").write_text("project('small')\nerror('not today')\n")
    subprocess.run(
        ["git", "-C", checkout, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "two"],
        check=True,
    )
    with pytest.raises(UnavailableError, match="--beside HEAD: meson setup failed"):
        load_beside().figures("HEAD", "sim", is_quick=True, root=checkout)


def test_rows_come_again_with_the_commit_as_their_peer(monkeypatch):
    path = paths.resource_root() / "bench" / "selfbench.py"
    spec = importlib.util.spec_from_file_location("selfbench_tested", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "open_host", lambda host: None)
    row = module.entry("speed", 20.0, "1/s", "higher")
    monkeypatch.setattr(module, "_measure_here", lambda host, is_quick: {"benchmarks": [row], "skipped": []})

    class Beside:
        figures = staticmethod(lambda commit, host, is_quick: {"speed": 8.0, "gone": 1.0})

    monkeypatch.setattr(module, "_load", lambda name: Beside)
    rows = module.measure("sim", is_quick=True, beside="abc")["benchmarks"]
    assert [(r["name"], r["peer"], r["ratio"]) for r in rows] == [
        ("speed", None, None),
        ("speed", "commit abc", 2.5),
    ]
    json.dumps(rows)
