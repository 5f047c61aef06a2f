# SPDX-License-Identifier: MIT
"""docs/uthreads.md says what every call does, and its examples do what they say."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from uthreads.test_threads import policy
from uthreads.uthreads_programs import HOST, ROOT, run_program

DOCUMENT = (ROOT / "docs" / "uthreads.md").read_text()
HEADER = (HOST / "include" / "schedlab" / "uthreads.h").read_text()
EXAMPLES = ROOT / "docs" / "examples"
CODE = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
NR_EXAMPLES = 3


def test_the_tables_have_every_call_of_the_header_once():
    declared = re.findall(r"\b(ut_\w+)\((?=[^;{]*;)", CODE)
    told = re.findall(r"^\| `(ut_\w+)\(", DOCUMENT, re.MULTILINE)
    assert len(declared) > 50
    assert sorted(told) == sorted(declared)


def test_what_may_switch_is_what_the_header_says():
    """A comment that says "May switch" stands right before the calls it is about."""
    told = dict(re.findall(r"^\| `(ut_\w+)\([^|]*\| (yes|no|if it waits) \|", DOCUMENT, re.MULTILINE))
    for comment, declarations in re.findall(r"/\*((?:(?!\*/).)*)\*/\n((?:[^/\n][^\n]*\n)+)", HEADER, re.DOTALL):
        names = re.findall(r"\b(ut_\w+)\(", declarations)
        # Comments about several calls say which; the tables are held to the others.
        if len(names) == 1 and re.search(r"May\s+(?:\*\s+)?switch", comment):
            assert told[names[0]] != "no", names[0]


def test_every_flag_and_attribute_is_explained():
    named = set(re.findall(r"^#define (UT_[A-Z_]+)\s+0x", CODE, re.MULTILINE))
    assert len(named) > 10
    missing = {name for name in named if name not in DOCUMENT}
    assert not missing


def test_every_example_is_linked_and_tested():
    linked = set(re.findall(r"\]\(examples/(\w+\.c)\)", DOCUMENT))
    assert linked == {path.name for path in EXAMPLES.glob("*.c")} and len(linked) == NR_EXAMPLES


@pytest.fixture(scope="module", params=["gcc", "clang-19"])
def example(request, toolchain, tmp_path_factory):
    """Function that compiles an example as a reader would, and runs it."""
    chain = toolchain(request.param, "plain")
    folder = tmp_path_factory.mktemp("examples")
    chain.library()

    def run(name, *words, env=None):
        target = folder / name
        if not target.exists():
            done = subprocess.run(
                [chain.compiler, *chain.flags, f"-I{HOST / 'include'}", EXAMPLES / f"{name}.c", "-o", target,
                 f"-L{chain.folder}", "-lschedlab-uthreads", f"-Wl,-rpath,{chain.folder}"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        return run_program(target, *words, env=env).stdout

    run.chain = chain
    return run


@pytest.mark.parametrize("cpus", [1, 2])
def test_report_3_s_client_multiplies(example, cpus):
    env = {"SCHEDLAB_POLICY": str(policy(example.chain, "credit")), "SCHEDLAB_CPUS": str(cpus)}
    said = example("matrix", 8, env=env)
    assert said.endswith("128 threads, 0 products wrong\n")
    assert len(re.findall(r"^ +\d+ +\d+ +\d+\.\d\d +\d+\.\d\d$", said, re.MULTILINE)) == 16


@pytest.mark.parametrize("cpus", [1, 2])
def test_the_echo_server_serves_more_than_there_are_helpers(example, cpus):
    helpers = re.search(r"#define HELPERS_MAX (\d+)", (HOST / "io.c").read_text())
    assert int(helpers[1]) < 40
    said = example("echo", policy(example.chain, "rr"), cpus, 40, 10)
    assert said == "400 of 400 messages came back\n"


@pytest.mark.parametrize("cpus", [1, 2])
def test_producers_and_consumers_agree(example, cpus):
    assert example("pipeline", policy(example.chain, "fifo"), cpus, 2000) == "sum 4002000, expected 4002000\n"


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("build", [("gcc", "plain"), ("gcc", "address")], ids="-".join)
def test_more_threads_wait_for_pipes_than_there_are_helpers(toolchain, build, cpus):
    chain = toolchain(*build)
    run_program(chain.program("pipes.c"), policy(chain, "rr"), cpus)


def test_the_first_program_of_the_document_compiles(toolchain, tmp_path):
    chain = toolchain("gcc", "plain")
    chain.library()
    source = re.search(r"^```c\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "first.c").write_text(source)
    done = subprocess.run(
        [chain.compiler, *chain.flags, f"-I{HOST / 'include'}", tmp_path / "first.c", "-o", tmp_path / "first",
         f"-L{chain.folder}", "-lschedlab-uthreads", f"-Wl,-rpath,{chain.folder}"],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert run_program(tmp_path / "first").stdout == "42\n"
