# SPDX-License-Identifier: MIT
"""Every policy compiles for Linux and natively, and its header tells the truth.

The knobs are held against the object that clang makes for BPF or, where there is
no clang, against the native one: both have the same globals. A `const volatile`
global is found by name in the source, so that one without a @knob line is seen.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from schedlab.policy.elf import ElfFile
from schedlab.policy.find import load_policy

ROOT = Path(__file__).resolve().parents[2]
POLICIES = sorted((ROOT / "policies").glob("*.bpf.c"))
FIRST_SEVEN = {"fifo", "rr", "priority", "lottery", "mlfq", "cfs", "credit"}
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]
NATIVE = ["-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-fno-semantic-interposition"]
BPF = ["-target", "bpf", "-O2", "-g", "-mcpu=v3", "-c"]

#: Headers that common.bpf.h includes; the others are helpers.
COMMON = {"attrs", "bpf", "bpf_types", "common.bpf", "native", "ops", "types", "words"}
#: Error numbers alone, which ask for nothing; what is for a launch file, which is native only; and what is put
#: behind a policy for Linux.
NOT_FIRST = {"errno", "launch", "delays.bpf"}
HELPERS = sorted(
    {path.name.removesuffix(".h") for path in (ROOT / "include" / "scx").glob("*.h")} - COMMON - NOT_FIRST
)

each_policy = pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.name.split(".")[0])


def name_of(path: Path) -> str:
    return path.name.removesuffix(".bpf.c")


def header_of(path: Path) -> str:
    """The comment at the head of the file, after its SPDX line."""
    return re.search(r"/\*\n(.*?)\*/", path.read_text(), re.DOTALL).group(1)


def compiled(compiler: str, path: Path, target: Path, *flags: str) -> Path:
    command = [compiler, *flags, *WARNINGS, f"-I{ROOT / 'include'}", "-o", target, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def constants_of(path: Path) -> dict[str, str]:
    """Names and types of the `const volatile` globals in a source."""
    pattern = r"^const volatile (\w+) (\w+)(?: = [^;]*)?;"
    return {name: kind for kind, name in re.findall(pattern, path.read_text(), re.MULTILINE)}


def test_the_first_seven_are_here():
    assert {name_of(path) for path in POLICIES} >= FIRST_SEVEN


@each_policy
@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_compiles_natively(need, tmp_path, compiler, path):
    compiled(need(compiler), path, tmp_path / "policy.so", *NATIVE)


@each_policy
def test_compiles_for_linux(need, tmp_path, path):
    compiled(need("clang-19"), path, tmp_path / "policy.bpf.o", *BPF)


@pytest.mark.parametrize("helper", HELPERS)
def test_helpers_stand_alone(need, tmp_path, helper):
    """A policy may include any of them first, and use a part of it or nothing."""
    source = tmp_path / "policy.bpf.c"
    source.write_text(
        f'#include <scx/{helper}.h>\nchar _license[] SEC("license") = "GPL";\n'
        'SCX_OPS_DEFINE(ops, .name = "none");\n'
    )
    compiled(need("gcc"), source, tmp_path / "policy.so", *NATIVE)
    compiled(need("clang-19"), source, tmp_path / "policy.bpf.o", *BPF)


@each_policy
def test_knobs_are_the_constants(need, tmp_path, path):
    """One @knob line for each, and none without; the default lies within its bounds."""
    symbols = ElfFile(compiled(need("gcc"), path, tmp_path / "policy.so", *NATIVE)).objects()
    knobs = load_policy(str(path)).knobs
    constants = constants_of(path)
    assert path.read_text().count("const volatile") == len(constants)
    assert header_of(path).count("@knob") == len(knobs)
    assert set(knobs) == set(constants)
    for name, knob in knobs.items():
        assert len(symbols[name]) in (4, 8), name
        default = int.from_bytes(symbols[name], "little", signed=constants[name][0] == "s")
        assert knob.minimum <= default <= knob.maximum, name


@each_policy
def test_the_text_of_a_knob_says_its_default(need, tmp_path, path):
    """A time in words, such as `default 10 ms`, the name of a value, or the number itself."""
    symbols = ElfFile(compiled(need("gcc"), path, tmp_path / "policy.so", *NATIVE)).objects()
    units = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
    for name, knob in load_policy(str(path)).knobs.items():
        said = re.search(r"default (-?\w+)(?: (s|ms|us|ns)\b)?", knob.text)
        assert said, f"{name}: {knob.text}"
        value = int(knob.names.get(said[1], said[1])) * units.get(said[2], 1)
        assert value == int.from_bytes(symbols[name], "little"), name


@each_policy
def test_knobs_do_not_hide_a_function_of_the_c_library(path):
    """A policy is loaded beside libc, which would win over a global of the same name."""
    libc = ctypes.CDLL(None)
    assert [name for name in constants_of(path) if hasattr(libc, name)] == []


@each_policy
def test_native_and_bpf_have_the_same_knobs(need, tmp_path, path):
    """What is set by name in one is there in the other."""
    need("llvm-nm-19")
    target = compiled(need("clang-19"), path, tmp_path / "policy.bpf.o", *BPF)
    listing = subprocess.run(["llvm-nm-19", target], capture_output=True, text=True, check=True).stdout
    read_only = {line.split()[-1] for line in listing.splitlines() if " R " in line}
    assert set(constants_of(path)) <= read_only


@each_policy
def test_header_says_what_a_reader_needs(path):
    text, header = path.read_text(), header_of(path)
    assert text.startswith("/* SPDX-License-Identifier: MIT OR GPL-2.0-only */\n")
    assert f" * {path.name} - " in header
    assert len(re.findall(r"^ \* @work-conserving (yes|no)  \S", header, re.MULTILINE)) == 1
    assert len(re.findall(r"^ \* @source \S", header, re.MULTILINE)) == 1
    assert re.search(r"^ \* Good at: ", header, re.MULTILINE)
    assert re.search(r"^ \* Bad at: ", header, re.MULTILINE)
    assert re.search(r"^ \* Read next: ", header, re.MULTILINE)
    assert f'.name = "{name_of(path)}"' in text


@each_policy
def test_functions_fit_a_screen(path):
    lines = path.read_text().splitlines()
    start = 0
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        if line == "}":
            assert number - start < 70, f"{path.name}:{start}"
