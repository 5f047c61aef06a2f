# SPDX-License-Identifier: MIT
"""What `schedlab new` writes works as it is, and nothing is overwritten."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from schedlab.cli.new import new_policy
from schedlab.errors import UsageError
from schedlab.policy.find import load_policy
from schedlab.workload.find import load_workload


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("", "at most 32"),
        ("my-policy", "'my_policy' would do"),
        ("Mine.bpf.c", "'mine' would do"),
        ("../mine", "'mine' would do"),
        ("9lives", "'lives' would do"),
        ("x" * 33, "at most 32"),
        ("é", "at most 32 characters$"),
        ("rr", "comes with a policy of that name; try 'my_rr'"),
        ("scx_mine", "belong to Linux"),
        ("sl_mine", "belong to schedlab"),
    ],
)
def test_a_bad_name_is_refused_and_nothing_written(tmp_path, name, match):
    with pytest.raises(UsageError, match=match):
        new_policy(name, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mine.bpf.c", "mine_test.toml", "test_mine.py"])
def test_a_file_that_is_there_stays_as_it_is(tmp_path, name):
    (tmp_path / name).write_text("precious")
    with pytest.raises(UsageError, match=f"{name}: there already"):
        new_policy("mine", folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "precious"


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file.*cannot be"):
        new_policy("mine", folder=tmp_path / "file" / "below")


def test_what_is_written_is_read_back(tmp_path):
    made = new_policy("mine", folder=tmp_path / "made" / "for_it")
    assert all(path.is_file() for path in made.files)
    assert not any("my_policy" in path.read_text() for path in made.files)
    policy = load_policy(str(made.policy))
    assert policy.name == "mine" and policy.work_conserving and list(policy.knobs) == ["slice_ns"]
    assert load_workload(made.workload).n_tasks == 3


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_it_compiles_without_a_warning(root, need, tmp_path, compiler):
    made = new_policy("mine", folder=tmp_path)
    flags = ["-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-I", root / "include"]
    targets = [["-std=gnu11", "-fPIC", "-shared"]]
    if compiler == "clang-19":
        targets.append(["-target", "bpf", "-g", "-mcpu=v3", "-c"])
    for target in targets:
        command = [need(compiler), *target, *flags, "-o", tmp_path / "made.o", made.policy]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def pytest_of(folder, root):
    """Exit code and output of pytest on a folder, as its user would start it."""
    environment = os.environ | {"PYTHONPATH": str(root / "python")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.full
def test_its_test_passes_and_can_fail(root, build, tmp_path):
    made = new_policy("mine", folder=tmp_path)
    code, output = pytest_of(tmp_path, root)
    assert code == 0 and "4 passed" in output, output
    # A policy that ignores weights breaks the promise about shares.
    text = made.policy.read_text()
    broken = text.replace("slice_ns * p->scx.weight / 100", "slice_ns")
    assert broken != text
    made.policy.write_text(broken)
    code, output = pytest_of(tmp_path, root)
    assert code == 1 and "test_the_heavy_hog" in output, output


@pytest.mark.full
def test_the_command_prints_what_to_type_next(root, build, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(root / "python")}

    def call(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "schedlab", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    done = call("new", "mine")
    assert done.returncode == 0, done.stderr
    (command,) = (line.strip() for line in done.stdout.splitlines() if " run " in line)
    done = call(*command.split()[1:], "--json")
    assert done.returncode == 0, done.stderr
    assert {run["policy"] for run in json.loads(done.stdout)["runs"]} == {"rr", "mine"}
    done = call("new", "mine")
    assert done.returncode == 2 and "there already" in done.stderr
    done = call("new", "other", "--json")
    assert json.loads(done.stdout)["policy"] == "other.bpf.c"
