# SPDX-License-Identifier: MIT
"""The examples of docs/uthreads.md compile, with C11 and C++, and do what they say."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from uthreads.test_threads import policy
from uthreads.uthreads_programs import HOST, ROOT, compile_all

TEXT = (ROOT / "docs" / "uthreads.md").read_text()
EXAMPLES = dict(re.findall(r"```c\n/\* (\w+)\.c \*/\n(.*?)```", TEXT, re.DOTALL))
SAYS = {"pipe": "500500\n", "echo": "10 echoes\n", "matrix": "4 of 4\n"}


@pytest.mark.parametrize("name", SAYS)
def test_examples(toolchain, tmp_path, name):
    chain = toolchain("gcc", "plain")
    source = tmp_path / f"{name}.c"
    source.write_text(EXAMPLES[name])
    library = chain.library()
    compile_all([chain.compiler, *chain.flags, "-std=c11", "-D_GNU_SOURCE", f"-I{HOST / 'include'}", "-o",
                 tmp_path / name, source, f"-L{library.parent}", "-lschedlab-uthreads",
                 f"-Wl,-rpath,{library.parent}"])  # fmt: skip
    done = subprocess.run(
        [tmp_path / name, *([] if name == "matrix" else [policy(chain, "rr")])],
        capture_output=True, text=True, timeout=30, check=True,
        env={**os.environ, "GT_CPUS": "2", "GT_POLICY": str(policy(chain, "credit"))},
    )  # fmt: skip
    assert done.stdout == SAYS[name]


def test_every_example_is_run():
    assert set(EXAMPLES) == set(SAYS)


def test_headers_are_cpp(need, tmp_path):
    source = tmp_path / "all.cpp"
    source.write_text("#include <schedlab/uthreads.h>\n#include <schedlab/gt.h>\n"
                      "int main() { ut_config c = UT_CONFIG_INIT; return (int)c.nr_cpus; }\n")
    compile_all([need("g++"), "-Wall", "-Werror", "-fsyntax-only", f"-I{HOST / 'include'}", source])


def test_every_call_is_in_the_manual_or_its_header():
    header = (HOST / "include" / "schedlab" / "uthreads.h").read_text()
    declared = set(re.findall(r"^\w[\w *]*\b(ut_\w+)\(", header, re.MULTILINE))
    named = set(re.findall(r"`(ut_[a-z_]+)\(?\)?`", TEXT))
    assert {name for name in named if name not in declared} <= {"ut_mutex"}
