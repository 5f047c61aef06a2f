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


def compile_example(chain, folder, name):
    source = folder / f"{name}.c"
    source.write_text(EXAMPLES[name])
    library = chain.library()
    compile_all([chain.compiler, *chain.flags, "-std=c11", "-D_GNU_SOURCE", f"-I{HOST / 'include'}", "-o",
                 folder / name, source, f"-L{library.parent}", "-lschedlab-uthreads",
                 f"-Wl,-rpath,{library.parent}"])  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
def test_examples(toolchain, tmp_path, name):
    chain = toolchain("gcc", "plain")
    compile_example(chain, tmp_path, name)
    done = subprocess.run(
        [tmp_path / name, *([] if name == "matrix" else [policy(chain, "rr")])],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "GT_CPUS": "2", "GT_POLICY": str(policy(chain, "credit"))},
    )
    assert done.stdout == SAYS[name]


def test_the_first_commands_work_as_typed(build, tmp_path):
    """In a folder that has what the checkout has."""
    for name in ("hosts", "include", "policies"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "build").symlink_to(build)
    (tmp_path / "pipe.c").write_text(EXAMPLES["pipe"])
    commands = re.search(r"\n\n((?:    .*\n)+)", TEXT)[1]
    done = subprocess.run(
        ["sh", "-e"], input=commands, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, 2 * SAYS["pipe"], "")


@pytest.mark.parametrize("cpus", ["x", "", "2x", "0", "-1", "99999999999999999999", "5000"])
def test_gt_cpus_that_are_no_number_of_cpus_are_refused(toolchain, tmp_path, cpus):
    """All CPUs, without a word, is not what somebody meant who wrote something else."""
    chain = toolchain("gcc", "plain")
    compile_example(chain, tmp_path, "matrix")
    done = subprocess.run(
        [tmp_path / "matrix"],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "GT_CPUS": cpus, "GT_POLICY": str(policy(chain, "credit"))},
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("gtthread_app_init: ") and cpus in done.stderr


def test_every_example_is_run():
    assert set(EXAMPLES) == set(SAYS)


STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only")
EVERY_INIT = """
#include <schedlab/uthreads.h>
#include <schedlab/gt.h>
struct ut_config config = UT_CONFIG_INIT;
struct ut_attr attr = UT_ATTR_INIT;
ut_mutex mutex = UT_MUTEX_INIT, urgent = UT_MUTEX_INIT_INHERIT(UT_MUTEX_INHERIT_SMALLEST);
ut_cond cond = UT_COND_INIT;
ut_sem sem = UT_SEM_INIT(3);
ut_barrier barrier = UT_BARRIER_INIT(2);
ut_once once = UT_ONCE_INIT;
ut_rwlock lock = UT_RWLOCK_INIT;
int main(void) { return (int)config.nr_cpus; }
"""


@pytest.mark.parametrize(
    "compiler", ["gcc -std=c11", "g++ -std=c++11", "g++ -std=c++20", "clang-19 -std=c11"]
)
def test_headers_are_clean_c_and_cpp(need, tmp_path, compiler):
    name, standard = compiler.split()
    source = tmp_path / ("all.cpp" if "++" in compiler else "all.c")
    source.write_text(EVERY_INIT)
    compile_all([need(name), standard, *STRICT, f"-I{HOST / 'include'}", source])


HEADER = (HOST / "include" / "schedlab" / "uthreads.h").read_text()
CODE = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)


def test_the_tables_have_every_call_of_the_header_once():
    declared = re.findall(r"\b(ut_\w+)\((?=[^;{]*;)", re.sub(r"^#.*", "", CODE, flags=re.MULTILINE))
    told = re.findall(r"^\| `(ut_\w+)\(", TEXT, re.MULTILINE)
    assert len(declared) > 50
    assert sorted(told) == sorted(declared)
    assert set(re.findall(r"`(ut_[a-z_]+)\(?\)?`", TEXT)) - set(declared) <= {"ut_mutex"}


def test_what_may_switch_is_what_the_header_says():
    """A comment that says "May switch" right before one call is about that call."""
    told = dict(re.findall(r"^\| `(ut_\w+)\([^|]*\| (yes|no|if it waits) \|", TEXT, re.MULTILINE))
    seen = 0
    for comment, declarations in re.findall(
        r"/\*((?:(?!\*/).)*)\*/\n((?:[^/\n][^\n]*\n)+)", HEADER, re.DOTALL
    ):
        names = re.findall(r"\b(ut_\w+)\(", declarations)
        if len(names) == 1 and re.search(r"May\s+(?:\*\s+)?switch", comment):
            seen += 1
            assert told[names[0]] != "no", names[0]
    assert seen > 5


def test_every_flag_is_explained():
    named = set(re.findall(r"^#define (UT_[A-Z_]+)\s+0x", CODE, re.MULTILINE))
    assert len(named) > 10
    assert not {name for name in named if name not in TEXT}
