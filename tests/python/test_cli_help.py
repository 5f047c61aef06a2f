# SPDX-License-Identifier: MIT
"""What the command line says of itself: groups, examples, version, completion, one workload."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from schedlab.cli.app import app
from schedlab.cli.group import EXAMPLES, Group
from schedlab.errors import NotFoundError, UnavailableError

COMMANDS = get_command(app).commands


def call(*words) -> str:
    """Standard output of a command that succeeds."""
    done = CliRunner().invoke(app, [*map(str, words)], prog_name="schedlab", catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_version_is_that_of_the_file(root):
    assert call("--version") == f"schedlab {(root / 'VERSION').read_text().strip()}\n"


@pytest.mark.parametrize("words", [(), ("run",)])
def test_short_help_is_the_long_one(words):
    output = call(*words, "-h")
    assert output.startswith("Usage: schedlab")
    assert output == call(*words, "--help")


@pytest.mark.parametrize("name", sorted(EXAMPLES | COMMANDS))
def test_each_command_has_a_group_and_an_example_that_it_takes(name):
    assert re.search(rf"^  {name} {{2,}}\w", call("--help"), re.M)
    assert f"Example:\n\n  {EXAMPLES[name]}\n" in call(name, "--help")
    program, command, *words = shlex.split(
        EXAMPLES[name].removeprefix("sudo ").removesuffix(" > run.schema.json")
    )
    assert (program, command) == ("schedlab", name)
    COMMANDS[name].make_context(name, words)


def test_commands_of_a_checkout_say_so_where_there_is_none():
    with pytest.raises(UnavailableError, match="audit needs a checkout of schedlab"):
        Group(name="schedlab").get_command(None, "audit")
    assert Group(name="schedlab").get_command(None, "audits") is None


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("schedlab wor", "workloads"),
        ("schedlab run poi", "poisson"),
        ("schedlab run mixed -p rr,mlf", "rr,mlfq"),
        ("schedlab policies mlf", "mlfq"),
        ("schedlab workloads textbook/fc", "textbook/fcfs"),
    ],
)
def test_shell_completes_commands_and_names(root, line, offered):
    asked = {"_SCHEDLAB_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    code = "import sys; sys.argv = ['schedlab']; from schedlab.__main__ import main; main()"
    env = os.environ | {"PYTHONPATH": str(root / "python")} | asked
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.split() == [offered], done.stderr


def test_a_workload_is_shown_with_its_params_and_tasks(tmp_path):
    output = call("workloads", "poisson:rho=0.5")
    assert "rho = 0.5 (default 0.8)  work offered per CPU-second" in output
    assert "task customer: 2000" in output
    (entry,) = json.loads(call("workloads", "poisson:rho=0.5", "--json"))["workloads"]
    assert (entry["params"]["rho"], entry["values"]["rho"]) == ("0.8", "0.5")
    file = tmp_path / "own.toml"
    file.write_text(
        '[workload]\ntitle = "own"\nquestion = "[bold] or not?"\n[[task]]\nname = "x"\ncount = 3\nphases = [{run = "1ms"}]\n'
    )
    output = call("workloads", file)
    assert "[bold] or not?" in output and "task x: 3" in output
    with pytest.raises(NotFoundError, match="did you mean 'poisson'"):
        call("workloads", "poison")
