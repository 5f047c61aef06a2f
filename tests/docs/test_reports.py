# SPDX-License-Identifier: MIT
"""docs/reports.md: every system of the reports has one command, and each command works."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from checkout.reproduce.spec import read_experiment
from conftest import missing
from schedlab.hosts.choose import unavailable_reason
from schedlab.hosts.kernel import boot as kernel_boot
from schedlab.policy.find import find_policy
from schedlab.policy.linux_class import is_class
from schedlab.workload.find import load_workload

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "reports.md").read_text()
COMMANDS = re.findall(
    r"`\./lab (.*?)`", "\n".join(line for line in TEXT.splitlines() if line.startswith("| "))
)
#: Less of the same work, so that each command ends within seconds.
SHORTER = (
    (r"timings -n 1", "timings -n 1 -d 100"),
    (r"--scale [\d.]+", "--scale 0.001"),
    (r"report-5/(cpu|io)\b", r"report-5/\1:forks=4"),
)


def policies_of(command: str) -> set[str]:
    """Names of the policies that a command runs."""
    words = shlex.split(command)
    named = words[words.index("-p" if "-p" in words else "--policy") + 1]
    return {name.partition(":")[0] for name in named.split(",")}


def test_every_test_and_every_system_of_the_reports_is_there():
    for number in range(1, 8):
        assert any(command.endswith(f'"timings -n 1 -a text {number}"') for command in COMMANDS), (
            f"test {number}"
        )
    shown = set().union(*map(policies_of, COMMANDS))
    for report in range(1, 6):
        experiment = read_experiment(ROOT / "experiments" / f"report-{report}")
        # A class of one task's own is written SCHED_OTHER+editor=SCHED_FIFO:10.
        used = {
            part.rpartition("=")[2].partition(":")[0]
            for runs in experiment.runs.values()
            for words in runs.policies.values()
            for part in words.split()[0].split("+")
        }
        assert used <= shown, f"report {report}"
    assert "SCHED_BATCH" in shown


def test_a_command_stands_in_one_table_only():
    assert len(COMMANDS) == len(set(COMMANDS)) > 30


@pytest.mark.parametrize("command", COMMANDS)
def test_its_workloads_and_policies_exist(command):
    for policy in policies_of(command):
        assert is_class(policy) or find_policy(policy)
    for word in shlex.split(command):
        if re.match(r"(report-\d|classics)/", word):
            load_workload(word)


def run_schedlab(words: list[str], folder: Path) -> tuple[int, str, str]:
    """Return: exit code, output, errors. One that hangs says where."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "python"), "PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "schedlab", *words], cwd=folder, env=env, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            stdout, stderr = process.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            stdout, stderr = process.communicate()
            pytest.fail(f"{shlex.join(words)} still runs after 600 s\n{stdout}{stderr}")
    return process.returncode, stdout, stderr


@pytest.mark.full
@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_works(command, tmp_path, build):
    if command.startswith("kernel") or "--host kernel" in command:
        if reason := kernel_boot.unavailable():
            missing("the teaching kernel", reason)
    elif (host := re.search(r"--host (\w+)", command)) and (reason := unavailable_reason(host[1])):
        missing(host[1], reason)
    for old, new in SHORTER:
        command = re.sub(old, new, command)
    returncode, stdout, stderr = run_schedlab(shlex.split(command), tmp_path)
    if returncode == 1 and (void := re.search(r"void: other\s+processes[^;]*", stdout)):
        pytest.skip(f"{void[0]}; repeat it on an idle machine")
    assert returncode == 0, f"$ ./lab {command}\n{stdout}{stderr}"
    shown = stdout.replace("\r", "")
    assert re.search(r"Test \d|Consistency: ok|timing|ticks", shown), shown
