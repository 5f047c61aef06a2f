# SPDX-License-Identifier: MIT
"""The templates for continuous integration: their steps, as they stand, pass, fail and say what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "examples" / "ci"
GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org")


@pytest.fixture
def repository(tmp_path, build) -> Path:
    """A git repository with a policy, a recording and one commit, and `schedlab` on its PATH."""
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(ROOT / "policies" / "rr.bpf.c", folder / "mine.bpf.c")
    schedlab = tmp_path / "schedlab"
    schedlab.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m schedlab "$@"\n')
    schedlab.chmod(0o755)
    words = [schedlab, "run", "mixed", "--policy", "rr", "--seeds", "1", "--out", "recorded"]
    subprocess.run(words, cwd=folder, env=environment(tmp_path), check=True, capture_output=True)
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run([*GIT, *words], cwd=folder, check=True)
    return folder


def environment(bin_folder: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "python"), "PATH": f"{bin_folder}:{os.environ['PATH']}"}


def steps() -> dict[str, str]:
    """What each service runs to decide."""
    action = yaml.safe_load((CI / "github" / "action.yml").read_text())
    (compare,) = [step["run"] for step in action["runs"]["steps"] if step.get("name") == "Compare"]
    job = yaml.safe_load((CI / "gitlab.yml").read_text())[".schedlab-gate"]
    return {"github": compare, "gitlab": "\n".join(job["script"])}


def decide(repository: Path, service: str, **values: str) -> subprocess.CompletedProcess:
    given = {"RECORDING": "recorded/mixed/rr/seed-1", "POLICY": "mine.bpf.c", "BASE": "HEAD", "SEEDS": "2",
             "FAIL_IF": "switches > +5%\nwakeup_p99 > +5%\n", "GITHUB_ACTION_PATH": str(CI / "github"),
             "SCHEDLAB": str(ROOT)}  # fmt: skip
    return subprocess.run(
        ["bash", "-c", steps()[service]], cwd=repository, env=environment(repository.parent) | given | values,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_a_gate_passes_what_is_as_it_was_and_fails_what_got_worse(repository, service):
    done = decide(repository, service)
    assert done.returncode == 0, done.stdout + done.stderr
    policy = repository / "mine.bpf.c"
    policy.write_text(policy.read_text().replace("slice_ns = 10000000", "slice_ns = 1000000"))
    done = decide(repository, service)
    assert done.returncode == 1 and "FAILS: switches > +5%" in done.stdout, done.stdout + done.stderr
    cases = xml.parse(repository / "schedlab-gate" / "junit.xml").getroot().findall("testcase")
    assert [(case.get("name"), case.find("failure") is not None) for case in cases] == [
        ("switches > +5%", True),
        ("wakeup_p99 > +5%", False),
    ]
    assert "<html" in (repository / "schedlab-gate" / "report.html").read_text()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"RECORDING": "nowhere"}, "RECORDING nowhere has no run.json"),
        ({"POLICY": "nowhere.bpf.c"}, "POLICY nowhere.bpf.c: no such file"),
        ({"BASE": "0123abc"}, "BASE 0123abc is no commit here; fetch the history"),
        ({"FAIL_IF": "makespann > +5%"}, "did you mean 'makespan"),
    ],
)
def test_what_a_gate_cannot_tell_is_exit_2(repository, values, message):
    done = decide(repository, "gitlab", **values)
    assert (done.returncode, message in done.stderr + done.stdout) == (2, True), done.stdout + done.stderr


def test_the_templates_have_what_their_services_ask_for():
    action = yaml.safe_load((CI / "github" / "action.yml").read_text())
    assert {"name", "description", "inputs", "runs"} <= set(action) and action["runs"]["using"] == "composite"
    assert all("uses" in step or step["shell"] == "bash" for step in action["runs"]["steps"])
    assert all(set(each) <= {"description", "required", "default"} for each in action["inputs"].values())
    job = yaml.safe_load((CI / "gitlab.yml").read_text())[".schedlab-gate"]
    assert job["artifacts"]["reports"]["junit"] in job["artifacts"]["paths"]
