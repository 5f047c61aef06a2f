# SPDX-License-Identifier: MIT
"""Grading in the teaching kernel: patches and policies, and what a hostile one gets."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from schedlab.errors import PolicyError, SpecError, UsageError
from schedlab.grade import kernel
from schedlab.grade.assignment import read_assignment
from schedlab.grade.grade import count_lines, grade, read_submissions
from schedlab.grade.gradescope import files_of
from schedlab.grade.outputs import as_text
from schedlab.hosts.choose import unavailable_reason

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "syscall"
SECRET = b"a secret of the tests"

why_not = kernel.unavailable() or unavailable_reason("wasm")
needs_kernel = pytest.mark.skipif(why_not is not None, reason=str(why_not))
pytestmark = pytest.mark.xdist_group("grade-kernel")

#: Points of each file of the example, and what has to be said to the student.
POINTS = {
    "whole": (100, ""),
    "unchecked": (85, r"Hidden tests == \(0/15\)"),
    "everyones": (70, "prints no line 'first child: 0'; it ends with: first child: 5; second child: 12"),
    "compile": (0, "hosts/kernel/kernel/sysproc.c:170:.* error: expected ';'"),
    "attack": (0, "/etc/hostname: Permission denied"),
}


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    asked = read_assignment(EXAMPLE / "assignment.toml")
    files = [path for path in EXAMPLE.glob("*/*.patch") if path.name != "hang.patch"]
    found = read_submissions(files, suffix=asked.suffix)
    folder = tmp_path_factory.mktemp("syscall")
    return asked, {each.student: each for each in grade(asked, found, SECRET, folder).reports}


@needs_kernel
@pytest.mark.parametrize("student", POINTS)
def test_the_example_is_graded(example, student):
    asked, reports = example
    points, text = POINTS[student]
    seen = as_text(asked, reports[student], is_student=True)
    assert reports[student].points == points, as_text(asked, reports[student], is_student=False)
    assert re.search(text, seen), seen
    assert set(reports) == set(POINTS)
    assert str(ROOT) not in seen and "/tmp" not in seen


@needs_kernel
def test_a_panic_is_told_with_its_place(example):
    asked, reports = example
    seen = as_text(asked, reports["unchecked"], is_student=False)
    assert re.search(r"numbers: .*panic: .* load page fault.* in sys_ncalls\+0x", seen), seen


@needs_kernel
def test_a_kernel_that_hangs_is_stopped(tmp_path):
    asked = replace(read_assignment(EXAMPLE / "assignment.toml"), timeout_seconds=2.0)
    found = read_submissions([EXAMPLE / "wrong" / "hang.patch"], suffix=asked.suffix)
    (report,) = grade(asked, found, SECRET, tmp_path).reports
    seen = as_text(asked, report, is_student=True)
    # On a machine that others use, too, the work that comes before may need longer.
    assert seen.count(": stopped: no result after 2 s\n") == 1 and "family: not tried" in seen, seen


WORK = """
[workload]
title = "Two"
question = "?"
tick = "10ms"

[[task]]
name = "long"
phases = [{run = "200ms"}]

[[task]]
name = "short"
phases = [{run = "30ms"}]
"""
HEAD = """
[assignment]
title = "A"
question = "?"
seeds = 3

[[workload]]
name = "two"
source = "two.toml"
host = "kernel"
"""


def assignment(folder: Path, text: str):
    (folder / "two.toml").write_text(WORK)
    (folder / "own.c").write_text(
        '#include "user/user.h"\nint main(void) { printf("policy %d\\n", 1); return 0; }\n'
    )
    (folder / "assignment.toml").write_text(text)
    return read_assignment(folder / "assignment.toml")


@needs_kernel
def test_a_policy_is_graded_as_a_part_of_the_kernel(tmp_path):
    tests = """
[[program]]
name = "own"
source = "own.c"

[[test]]
name = "runs"
points = 1
runs = true

[[test]]
name = "no CPU is idle"
points = 2
work_conserving = true

[[test]]
name = "short ones wait less than under fifo"
points = 4
metric = "response_mean"
better_than = "fifo"
by = "10%"

[[test]]
name = "prints"
points = 8
prints = ['policy \\d']
"""
    asked = assignment(tmp_path, HEAD + tests)
    good = (ROOT / "policies" / "rr.bpf.c").read_text()
    assert good.count("SCX_OPS_DEFINE") == 1
    bad = re.sub(r"(void BPF_STRUCT_OPS\(\w+_dispatch[^{]*\{)", r"\1 return;", good)
    assert bad != good
    for name, text in (("good", good), ("bad", bad)):
        (tmp_path / f"{name}.bpf.c").write_text(text)
    found = read_submissions(tmp_path.glob("*.bpf.c"))
    bad_one, good_one = grade(asked, found, SECRET, tmp_path / "out").reports
    assert good_one.points == 15, as_text(asked, good_one, is_student=False)
    assert bad_one.points == 8, as_text(asked, bad_one, is_student=False)


# ---- hostile and wrong patches ----------------------------------------------------


def patch_of(name: str, mode: str = "100644", line: str = "x") -> str:
    return f"diff --git a/{name} b/{name}\nnew file mode {mode}\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{line}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "changes no file|does not apply"),
        ("no patch\n", "changes no file|does not apply"),
        (patch_of("hosts/kernel/mkfs/own.c"), "changes hosts/kernel/mkfs/own.c; this assignment is about"),
        (patch_of("../../outside.c"), "does not apply|changes"),
        (patch_of("hosts/kernel/kernel/../mkfs/own.c"), "does not apply|changes"),
        (patch_of("/etc/own.c"), "does not apply|changes"),
        (patch_of("hosts/kernel/kernel/own.c", "120000", "/etc/passwd"), "makes .*own.c a symbolic link"),
        (
            "diff --git a/include/scx/types.h b/hosts/kernel/kernel/own.h\nsimilarity index 100%\n"
            "rename from include/scx/types.h\nrename to hosts/kernel/kernel/own.h\n",
            "changes include/scx/types.h",
        ),
    ],
)
def test_a_patch_changes_only_what_it_may(text, message, tmp_path, need):
    need("git")
    (tmp_path / "mine.patch").write_text(text)
    tree = tmp_path / "tree"
    for name in ("hosts/kernel/kernel", "hosts/kernel/mkfs", "include/scx"):
        shutil.copytree(ROOT / name, tree / name)
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(PolicyError, match=message):
        kernel._apply(tmp_path / "mine.patch", tree, ["hosts/kernel/kernel/*.[chS]"])
    if "symbolic" not in message:
        assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@needs_kernel
@pytest.mark.parametrize(
    ("name", "line", "is_told"),
    [
        # What a hidden program asks is in its text: neither its own errors show it ...
        ("hosts/kernel/user/user.h", "/* No ncalls(). */", "a hidden program does not compile"),
        # ... nor can the kernel's files have it, or a file of the machine's, in any way.
        ("hosts/kernel/kernel/text.c", f'#include "{EXAMPLE}/numbers.c"', "Permission denied|not found"),
        ("hosts/kernel/kernel/text.c", 'asm(".incbin \\"/etc/passwd\\"");', "/etc/passwd"),
        ("hosts/kernel/kernel/text.c", '#include "/proc/kcore"', "Permission denied|not found"),
    ],
)
def test_a_patch_reads_nothing_that_it_was_not_given(name, line, is_told, tmp_path):
    asked = read_assignment(EXAMPLE / "assignment.toml")
    tree = tmp_path / "tree" / name
    tree.parent.mkdir(parents=True)
    shutil.copy(ROOT / name, tree)
    git = ["git", "-C", str(tmp_path / "tree"), "-c", "user.name=x", "-c", "user.email=x"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    text = tree.read_text()
    at = text.index("#endif") if name.endswith(".h") and "#endif" in text else len(text)
    tree.write_text(text[:at] + line + "\n" + text[at:])
    (tmp_path / "mine.patch").write_text(
        subprocess.run([*git, "diff"], capture_output=True, text=True).stdout
    )
    folder = tmp_path / "build"
    folder.mkdir()
    programs = [replace(each, is_hidden=True) for each in asked.programs.values()]
    patterns = ["hosts/kernel/kernel/*", "hosts/kernel/user/*"]
    with pytest.raises(PolicyError, match=is_told) as caught:
        kernel.build(folder, policy=None, patch=tmp_path / "mine.patch", allowed=patterns, programs=programs)
    assert "ncalls(-1)" not in str(caught.value) and "root:" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value).replace(str(tmp_path / "mine.patch"), "")


@needs_kernel
def test_the_machine_opens_no_other_file(tmp_path):
    image = kernel.KernelImage(tmp_path / "kernel", tmp_path / "disk", "")
    (tmp_path / "kernel").write_text("kernel")
    (tmp_path / "other").write_text("other")
    machines = tmp_path / "machines"
    machines.mkdir()
    session = kernel.session(image, machines, timeout_seconds=10)
    shown = {}
    for path in (image.kernel, tmp_path / "other"):
        done = subprocess.run([*session._confined, "cat", path], capture_output=True, text=True)
        shown[path.name] = done.stdout, done.stderr
    assert shown["kernel"][0] == "kernel" and shown["other"][0] == ""
    assert "Permission denied" in shown["other"][1]


# ---- what an assignment may say ---------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('patches = ["core/*.c"]', "patches: must be files below hosts/kernel/kernel/ or hosts/kernel/user/"),
        ('patches = ["hosts/kernel/kernel/../mkfs/*"]', "patches: must be files below"),
        ('patches = ["hosts/kernel/kernel/*.c"]\npolicy = "rrr"', "policy: no policy 'rrr'"),
    ],
)
def test_a_wrong_pattern_or_policy_is_told(text, message, tmp_path):
    with pytest.raises(SpecError, match=message):
        assignment(
            tmp_path, HEAD.replace("seeds = 3", text) + '[[test]]\nname = "t"\npoints = 1\nruns = true\n'
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[program]]\nname = "p"\nsource = "none.c"\n', "source: no C file"),
        ('[[program]]\nname = "two"\nsource = "own.c"\n', "name: 'two' is given twice"),
        ('[[program]]\nname = "p"\nsource = "own.c"\narguments = ["a b"]\n', "words without blanks"),
        ('[[program]]\nname = "p"\nsource = "own.c"\ncpus = 9\n', "cpus: "),
        (
            '[[test]]\nname = "t"\npoints = 1\nprints = ["a"]\n',
            r"no \[\[program\]\] that 'prints' could be about",
        ),
        (
            '[[test]]\nname = "t"\npoints = 1\nruns = true\nprograms = ["own"]\n',
            "programs: a test with 'runs'",
        ),
        ('[[test]]\nname = "t"\npoints = 1\ncost_max = 5\n', r"no \[\[workload\]\] that 'cost_max'"),
        ('[[test]]\nname = "t"\npoints = 1\ncost_max = 5\nworkloads = ["two"]\n', "two runs in the kernel"),
        (
            '[[program]]\nname = "p"\nsource = "own.c"\n[[test]]\nname = "t"\npoints = 1\nprints = ["("]\n',
            "prints: .* is no pattern",
        ),
    ],
)
def test_what_the_kernel_cannot_do_is_told(text, message, tmp_path):
    with pytest.raises(SpecError, match=message):
        assignment(tmp_path, HEAD + text)


def test_a_patch_wants_workloads_of_the_kernel(tmp_path):
    head = HEAD.replace('host = "kernel"\n', "").replace("seeds = 3", 'patches = ["hosts/kernel/kernel/*.c"]')
    with pytest.raises(SpecError, match='workload two.*write host = "kernel"'):
        assignment(tmp_path, head + '[[test]]\nname = "t"\npoints = 1\nruns = true\n')


def test_gradescope_has_no_emulator():
    with pytest.raises(UsageError, match="no emulator"):
        files_of(read_assignment(EXAMPLE / "assignment.toml"))


def test_a_patch_has_the_lines_that_it_adds():
    assert (
        count_lines(b"--- a/x.c\n+++ b/x.c\n@@ -1 +1,4 @@\n-old\n+new;\n+\n+/* why */\n same\n+two;\n") == 2
    )
