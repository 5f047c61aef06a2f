# SPDX-License-Identifier: MIT
"""docs/kernel.md says what is there: files, system calls, boot arguments; its exercise works."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
KERNEL = ROOT / "hosts" / "kernel"
DOCUMENT = (ROOT / "docs" / "kernel.md").read_text()
COMMAND = re.compile(r"^\$ \./lab (.*)$", re.MULTILINE)


def section(title):
    """What stands under a heading of the document."""
    return DOCUMENT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_tour_has_every_file_once():
    linked = re.findall(r"\]\(\.\./(hosts/kernel/\S+?)\)", section("The tour, in reading order"))
    assert sorted(linked) == sorted(set(linked)), "some file is there twice"
    files = {
        str(path.relative_to(ROOT)) for path in KERNEL.rglob("*") if path.suffix in (".c", ".h", ".S", ".ld")
    }
    assert set(linked) == files


def prototypes(text):
    """Of C functions: name to declaration, blanks made one."""
    found = re.findall(r"^((?:\w+ )+\**(\w+)\([^;]*\))(?: __attribute__.*)?;", text, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", whole.partition(" __attribute__")[0]) for whole, name in found}


def test_the_table_of_calls_is_that_of_the_kernel():
    rows = re.findall(r"^\| (\d+) \| `(.*?)` \|", section("System calls"), re.MULTILINE)
    numbers = {int(number): words for number, words in rows}
    header = (KERNEL / "kernel" / "syscall.h").read_text()
    calls = {
        int(number): name for name, number in re.findall(r"^#define SYS_(\w+)\s+(\d+)", header, re.MULTILINE)
    }
    assert sorted(numbers) == sorted(calls)
    declared = prototypes((KERNEL / "user" / "user.h").read_text())
    assert numbers == {number: declared[name] for number, name in calls.items()}
    stubs = re.findall(r"CALL\((\w+)\)", (KERNEL / "user" / "usys.S").read_text())
    assert set(calls.values()) <= set(stubs)
    assert int(re.search(r"NR_SYSCALLS\s+(\d+)", header)[1]) == max(calls) + 1


def test_the_first_calls_are_those_of_xv6():
    """Their numbers are part of the contract, whatever else changes."""
    names = [
        "fork",
        "exit",
        "wait",
        "pipe",
        "read",
        "kill",
        "exec",
        "fstat",
        "chdir",
        "dup",
        "getpid",
        "sbrk",
        "sleep",
        "uptime",
        "open",
        "write",
        "mknod",
        "unlink",
        "link",
        "mkdir",
        "close",
    ]
    header = (KERNEL / "kernel" / "syscall.h").read_text()
    for number, name in enumerate(names, start=1):
        assert re.search(rf"^#define SYS_{name}\s+{number}$", header, re.MULTILINE), name


def test_the_boot_arguments_are_those_that_are_read():
    rows = re.findall(r"^\| (`.*?) \|", section("Boot arguments"), re.MULTILINE)
    told = re.findall(r"`(\w+)`", " ".join(rows))
    sources = "".join(
        path.read_text() for folder in ("kernel", "lab") for path in sorted((KERNEL / folder).glob("*.c"))
    )
    read = re.findall(r'(?:bootarg(?:_u64)?|groups_of)\("(\w+)"', sources)
    assert sorted(told) == sorted(set(read))


@pytest.mark.full
def test_the_first_exercise_works_as_printed(image, tmp_path):
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    said = {}
    commands = COMMAND.findall(section("A first exercise: your own scheduler"))
    assert len(commands) == 4
    for words in commands:
        done = subprocess.run(
            [sys.executable, "-m", "schedlab", *shlex.split(words)],
            cwd=tmp_path,
            timeout=300,
            capture_output=True,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        said[words] = done.stdout.replace("\r", "")
    _, shown, niced, compared = said.values()
    # What the text promises of each.
    assert "policy: mine slice_ns=10000000\n" in shown
    assert re.search(r"^ +\d+ +\d+ running +\d+ +5 .* ps", niced, re.MULTILINE)
    assert "mine_test on kernel" in compared
    assert "Consistency: ok" in compared
    assert re.search(r"Number of switches is (lower|higher) under mine", compared)
    assert "turn_ns" in (tmp_path / "mine.bpf.c").read_text()


@pytest.mark.full
def test_the_command_at_the_top_works(image, tmp_path):
    command = COMMAND.findall(DOCUMENT)[0]
    assert command.startswith("kernel --run")
    done = subprocess.run(
        [sys.executable, "-m", "schedlab", "kernel", "--run", "echo hello"],
        cwd=tmp_path,
        timeout=240,
        env=dict(os.environ, PYTHONPATH=str(ROOT / "python")),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace("\r", "").endswith("hello\n")
