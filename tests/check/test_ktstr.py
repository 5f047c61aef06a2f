# SPDX-License-Identifier: MIT
"""`schedlab export ktstr`: a crate whose test plays the workload on the machine that broke the policy."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from schedlab.check.ktstr import export_ktstr
from schedlab.program.compiler import compile_workload
from schedlab.program.file import read_program
from schedlab.workload.find import load_workload

WORLD = """# stall: runnable task stall
# schedlab check: {"property": "stall", "topology": "smt=2,llc=4", "seed": 7, "settings": {}}
[workload]
title = "A stall"
question = "Why?"
cpus = 8
horizon = "60s"

[[task]]
name = "hog"
affinity = [0]
%sphases = [{loop = "forever", do = [{run = "100ms"}]}]
"""


@pytest.fixture
def finding(tmp_path):
    """Function that writes a finding, with more keys of its task."""

    def write(more=""):
        path = tmp_path / "stall-1.toml"
        path.write_text(WORLD % more)
        return path

    return write


def test_a_finding_has_its_machine_its_program_and_its_player(finding, tmp_path):
    path = finding()
    assert export_ktstr(str(path), "scx_mine", tmp_path / "crate") == ()
    test = (tmp_path / "crate/tests/stall_1.rs").read_text()
    assert "numa_nodes = 1, llcs = 2, cores = 2, threads = 2," in test
    assert "duration_s = 65, watchdog_timeout_s = 30," in test
    assert 'binary = "scx_mine",' in test and "--weights" not in test
    program = read_program(tmp_path / "crate/stall_1.slprog")
    assert program.program_hash == compile_workload(load_workload(path), seed=7).program_hash
    assert re.search(r'^ktstr = "=\d', (tmp_path / "crate/Cargo.toml").read_text(), re.M)


def test_the_crate_plays_what_it_holds(finding, tmp_path):
    """As ktstr does: the player, with the arguments of the test."""
    path = tmp_path / "short.toml"
    path.write_text(finding().read_text().replace("60s", "1s").replace("100ms", "1ms"))
    export_ktstr(str(path), "/opt/scx_mine", tmp_path / "crate")
    test = (tmp_path / "crate/tests/short.rs").read_text()
    assert 'binary_path = "/opt/scx_mine",' in test
    line = re.search(r"^#\[default_args\((.*)\)\]$", test, re.M)[1]
    words = [word.replace("/include-files", ".").replace("/tmp", ".") for word in json.loads(f"[{line}]")]
    subprocess.run(["./schedlab-play", *words], cwd=tmp_path / "crate", check=True, timeout=60)
    assert '"hog' in (tmp_path / "crate/short.jsonl").read_text()


def test_a_second_finding_joins_the_crate(finding, tmp_path):
    path = finding()
    export_ktstr(str(path), "scx_mine", tmp_path / "crate")
    (tmp_path / "crate/Cargo.toml").write_text("# mine\n")
    export_ktstr(str(path.rename(tmp_path / "stall-2.toml")), "scx_mine", tmp_path / "crate")
    assert (tmp_path / "crate/Cargo.toml").read_text() == "# mine\n"
    assert sorted(each.name for each in (tmp_path / "crate/tests").iterdir()) == ["stall_1.rs", "stall_2.rs"]


def test_what_is_lost_is_said(finding, tmp_path):
    (note,) = export_ktstr(str(finding("tickets = 5\nnice = 3\n")), "scx_mine", tmp_path / "crate")
    assert note.startswith("tickets of tasks: left out")
    assert ', "--weights")]' in (tmp_path / "crate/tests/stall_1.rs").read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("ktstr", "{}", "--out", "crate"), "needs --out FOLDER and --scheduler"),
        (("ktstr", "{}", "--scheduler", "scx_mine"), "needs --out FOLDER and --scheduler"),
        (("ktstr", "{}", "--out", "crate", "--scheduler", 'a"b'), "give a program's name"),
        (("ktstr", "{}", "--out", "stall-1.toml", "--scheduler", "scx_mine"), "--out stall-1.toml: "),
        (("ktstr", "textbook/rr", "--out", "crate", "--scheduler", "scx_mine"), "needs a duration"),
        (("csv", "textbook/rr", "--scheduler", "scx_mine"), "--scheduler is of ktstr, not of csv"),
    ],
)
def test_bad_input_is_one_line(words, why, finding, tmp_path):
    command = [word.format(finding()) for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "schedlab", "export", *command],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert why in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "crate").exists()
