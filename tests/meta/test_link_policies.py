# SPDX-License-Identifier: MIT
"""tools/link-policies: policies that name things alike live in one program."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from schedlab.policy.find import load_policy

HERE = Path(__file__).resolve().parent
LINKED = HERE / "linked"
TOOLCHAINS = {"gcc": ("gcc", "objcopy", "ld"), "clang": ("clang-19", "llvm-objcopy-19", "ld.lld-19")}


@pytest.fixture(scope="session")
def link_policies(root):
    """Function that runs tools/link-policies and returns the finished process."""

    def run(out: Path, policies: list[Path], *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, root / "tools" / "link-policies", "--out", out, *policies, *words],
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def describe(root, tmp_path, need, link_policies):
    """Function that links policies, runs describe.c on them, and splits its lines."""

    def run(toolchain: str, policies: list[Path], *arguments: str) -> list[list[str]]:
        compiler, objcopy, linker = map(need, TOOLCHAINS[toolchain])
        linked = tmp_path / "linked.o"
        tools = ["--cc", compiler, "--objcopy", objcopy, "--ld", linker]
        done = link_policies(linked, policies, *tools)
        assert done.returncode == 0, done.stderr
        program = tmp_path / "describe"
        # The host's functions are absent: nothing here calls them.
        flags = ["-std=gnu11", "-O2", "-no-pie", "-Wl,--unresolved-symbols=ignore-all"]
        subprocess.run(
            [compiler, *flags, f"-I{root}/include", LINKED / "describe.c", linked, "-o", program], check=True
        )
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
        return [line.split() for line in done.stdout.splitlines()]

    return run


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_names_that_two_policies_share_do_not_collide(describe, toolchain):
    lines = describe(toolchain, [LINKED / "one.bpf.c", LINKED / "two.bpf.c"], "init")
    assert lines == [
        ["policy", "one", "one"],
        ["knob", "one", "slice_ns", "8", "1000", "1", "1000000000"],
        ["map", "one", "&stats", "2", "4", "8", "3", "inside"],
        ["restored", "one", "yes"],
        ["policy", "two", "two"],
        ["knob", "two", "slice_ns", "8", "2000", "10000", "1000000000"],
        ["map", "two", "&stats", "2", "4", "32", "5", "inside"],
        ["restored", "two", "yes"],
        # Each start adds 10 (data) and 1 (bss); a restore forgets both.
        ["init", "one", "1011", "1022", "1011"],
        ["init", "two", "2011", "2022", "2011"],
    ]


@pytest.mark.full
@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_all_policies_of_the_project_link_together(root, describe, toolchain):
    policies = sorted((root / "policies").glob("*.bpf.c"))
    assert policies
    lines = describe(toolchain, policies)
    names = [path.name.removesuffix(".bpf.c") for path in policies]
    called = [re.search(r'\.name\s*=\s*"([^"]+)"', path.read_text())[1] for path in policies]
    assert [line[1:] for line in lines if line[0] == "policy"] == [
        list(pair) for pair in zip(names, called, strict=True)
    ]
    assert [line[1:] for line in lines if line[0] == "restored"] == [[n, "yes"] for n in names]
    assert {line[-1] for line in lines if line[0] == "map"} <= {"inside"}
    knobs = {(line[1], line[2], int(line[5]), int(line[6])) for line in lines if line[0] == "knob"}
    # The same ranges as schedlab reads from the same lines.
    written = {
        (name, knob.name, knob.minimum, knob.maximum)
        for name, path in zip(names, policies, strict=True)
        for knob in load_policy(str(path)).knobs.values()
    }
    assert knobs == written


def test_another_target_needs_only_other_flags(need, tmp_path, link_policies):
    compiler, objcopy, linker = map(need, TOOLCHAINS["clang"])
    tools = ["--cc", compiler, "--objcopy", objcopy, "--ld", linker]
    out = tmp_path / "linked.o"
    done = link_policies(
        out,
        [LINKED / "one.bpf.c", LINKED / "two.bpf.c"],
        *tools,
        *["--", "--target=riscv64-unknown-elf", "-march=rv64gc", "-ffreestanding", "-O2"],
    )
    assert done.returncode == 0, done.stderr
    assert out.read_bytes()[18:20] == b"\xf3\x00", "a RISC-V object"


def test_operations_may_be_defined_as_in_linux_documentation(tmp_path, link_policies):
    source = tmp_path / "form.bpf.c"
    source.write_text(
        '#include <scx/common.bpf.h>\nSEC(".struct_ops.link")\nstruct sched_ext_ops form_ops = { .name = "form" };\n'
    )
    done = link_policies(tmp_path / "out.o", [source])
    assert done.returncode == 0, done.stderr


def test_a_file_without_a_policy_is_refused(root, tmp_path, link_policies):
    source = tmp_path / "none.bpf.c"
    source.write_text("#include <scx/common.bpf.h>\nint x = 1;\n")
    done = link_policies(tmp_path / "out.o", [source])
    assert done.returncode == 1
    assert "none.bpf.c: defines no policy; end it with SCX_OPS_DEFINE" in done.stderr


def test_a_knob_that_names_nothing_is_refused_with_the_nearest_name(tmp_path, link_policies):
    source = tmp_path / "typo.bpf.c"
    text = (LINKED / "one.bpf.c").read_text()
    source.write_text(text.replace("@knob slice_ns", "@knob slices_ns"))
    done = link_policies(tmp_path / "out.o", [source])
    assert done.returncode == 1
    assert "typo.bpf.c:7: @knob slices_ns is no global number here; is it slice_ns?" in done.stderr


def test_a_compile_error_is_shown_as_the_compiler_said_it(tmp_path, link_policies):
    source = tmp_path / "broken.bpf.c"
    source.write_text("#include <scx/common.bpf.h>\nu64 f(void) { return missing; }\n")
    done = link_policies(tmp_path / "out.o", [source])
    assert done.returncode == 1
    assert "broken.bpf.c:2" in done.stderr


def test_two_files_of_one_name_are_refused(tmp_path, link_policies):
    copy = tmp_path / "one.bpf.c"
    shutil.copy(LINKED / "one.bpf.c", copy)
    done = link_policies(tmp_path / "out.o", [LINKED / "one.bpf.c", copy])
    assert done.returncode == 1
    assert "have one name; rename one" in done.stderr
